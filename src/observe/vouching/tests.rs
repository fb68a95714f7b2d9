use super::*;
use crate::core::machine::Vouched;
use crate::core::time::Sighting;
use crate::observe::status::tests::{at, leading};
use crate::zookeeper::schema::vouching::Neighbour;

const NOW: Duration = Duration::from_secs(1000);
const LIMIT: Duration = Duration::from_secs(600);
const RECENT: Duration = Duration::from_secs(2);
/// 14:22:10 UTC.
const MORNING: i64 = (14 * 3600 + 22 * 60 + 10) * 1000;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn names() -> Neighbourhood {
    let host =
        |instance, id: &str, address: &str| Neighbour { instance, id: id.into(), address: address.parse().unwrap() };
    let neighbours = vec![host(2, "web2", "10.0.0.2:4711"), host(3, "web3", "10.0.0.3:4711")];
    Neighbourhood { neighbours, ..Neighbourhood::default() }
}

/// One that promised so long ago, and owes answers since so long.
fn host(instance: u64, promised: Option<u64>, silent: Option<u64>) -> Needed {
    let ago = |length| at(NOW).lease.before(seconds(length));
    Needed { instance, promised_at: promised.map(ago), silent_since: silent.map(ago) }
}

fn status(phase: PhaseName, needed: &[Needed]) -> Status {
    let mut status = leading(at(NOW), at(NOW + seconds(4)).lease);
    let mut hosts = needed.iter().copied();
    let written_at = at(NOW).lease.before(seconds(10));
    let leads = Vouchees {
        needed: std::array::from_fn(|_| hosts.next()),
        written_at,
        limit_at: written_at.after(LIMIT),
        recent: RECENT,
    };
    status.snapshot.phase = phase;
    status.snapshot.vouching =
        Some(Vouched { limit: LIMIT, promised_until: Sighting::ZERO, promised_to: None, leads: Some(leads) });
    status
}

fn told(seen: &mut Seen, status: &Status) -> Vec<String> {
    seen.news(status, MORNING).iter().map(|line| line.sentence(&names())).collect()
}

/// Whichever of both comes first.
#[test]
fn a_pause_tells_whose_promise_would_end_it_too_and_when_the_command_is_stopped() {
    let (mut seen, well, silent) = (Seen::default(), host(2, Some(1), None), host(3, Some(8), Some(6)));
    assert_eq!(told(&mut seen, &status(PhaseName::Leading, &[well, silent])).len(), 1, "of the silence");
    let paused = status(PhaseName::Paused, &[well, silent]);
    let line = "The command is stopped at 1970-01-01 14:22:14 UTC, unless ZooKeeper is back by then or web3 (10.0.0.3:4711) \
                promises to hold back: let UDP pass between them and this host";
    assert_eq!(told(&mut seen, &paused), [line]);
    assert_eq!(told(&mut seen, &paused), [""; 0], "once");
    assert_eq!(
        told(&mut Seen::default(), &status(PhaseName::Paused, &[well])),
        [""; 0],
        "it is the only one, and has promised"
    );
}

#[test]
fn an_outage_is_told_with_those_who_vouch_and_its_end_with_its_length() {
    let (mut seen, both) = (Seen::default(), [host(2, Some(1), None), host(3, Some(1), None)]);
    assert_eq!(told(&mut seen, &status(PhaseName::Leading, &both)), [""; 0]);
    let away = status(PhaseName::Vouched, &both);
    assert_eq!(
        told(&mut seen, &away),
        [
            "The command runs on without ZooKeeper, vouched for by web2, web3, until 1970-01-01 14:32:00 UTC at most; bring ZooKeeper \
          back before then, and kill or restart none of these hosts"
        ]
    );
    assert_eq!(told(&mut seen, &away), [""; 0], "once");
    let mut back = status(PhaseName::Leading, &both);
    back.turned = at(NOW + seconds(302));
    let recently = |host: Needed| Needed { promised_at: Some(back.turned.lease), ..host };
    if let Some(leads) = back.snapshot.vouching.as_mut().and_then(|vouched| vouched.leads.as_mut()) {
        leads.needed = leads.needed.map(|host| host.map(recently));
    }
    assert_eq!(told(&mut seen, &back), [""; 0], "the command is restarted in the outage");
    if let Some(leads) = back.snapshot.vouching.as_mut().and_then(|vouched| vouched.leads.as_mut()) {
        leads.written_at = back.turned.lease;
    }
    assert_eq!(told(&mut seen, &back), ["ZooKeeper is back after 5m12s; the command ran on"]);
    assert_eq!(told(&mut seen, &back), [""; 0], "once");
}

#[test]
fn a_host_that_falls_silent_in_an_outage_is_told_with_the_time_that_is_left() {
    let mut seen = Seen::default();
    let (well, silent) = (host(2, Some(1), None), host(3, Some(5), Some(4)));
    told(&mut seen, &status(PhaseName::Vouched, &[well, host(3, Some(1), None)]));
    let line = "web3 (10.0.0.3:4711) has not answered for 5s; unless that changes, the command is stopped in 4s: look \
                whether that host is well, and let UDP pass between it and this host";
    assert_eq!(told(&mut seen, &status(PhaseName::Vouched, &[well, silent])), [line]);
    assert_eq!(told(&mut seen, &status(PhaseName::Paused, &[well, silent])), [""; 0], "once");
    let again = status(PhaseName::Vouched, &[well, host(3, Some(0), None)]);
    assert_eq!(told(&mut seen, &again), ["web3 (10.0.0.3:4711) vouches for the command again"]);
    // The question after its last promise was the first that it did not answer.
    let killed = status(PhaseName::Vouched, &[well, host(3, Some(2), Some(1))]);
    let lines = told(&mut seen, &killed);
    assert!(lines[0].starts_with("web3 (10.0.0.3:4711) has not answered for 2s;"), "{lines:?}");
    told(&mut seen, &again);
    let refuses = status(PhaseName::Vouched, &[well, host(3, Some(5), None)]);
    let line = "web3 (10.0.0.3:4711) has refused to hold back for 5s; unless that changes, the command is stopped in 4s: \
                it is stopping, or saw in ZooKeeper that this host is cut off or replaced; look at its log, and whether \
                this host reaches ZooKeeper";
    assert_eq!(told(&mut seen, &refuses), [line], "it answers, and says no");
}

#[test]
fn who_never_answers_is_told_once_while_zookeeper_is_there() {
    let mut seen = Seen::default();
    assert_eq!(told(&mut seen, &status(PhaseName::Leading, &[host(3, None, Some(7))])), [""; 0], "not at once");
    let silent = status(PhaseName::Leading, &[host(3, None, Some(8))]);
    let lines = told(&mut seen, &silent);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("web3 (10.0.0.3:4711) has not answered for 8s; in an outage of ZooKeeper"),
        "{lines:?}"
    );
    assert_eq!(told(&mut seen, &silent), [""; 0], "once");
    told(&mut seen, &status(PhaseName::Leading, &[host(2, Some(1), None)]));
    assert_eq!(told(&mut seen, &silent).len(), 1, "it was not needed meanwhile");
}

#[test]
fn an_unknown_host_is_told_by_its_instance() {
    let mut seen = Seen::default();
    let lines = told(&mut seen, &status(PhaseName::Vouched, &[host(0xabc, Some(1), None)]));
    assert!(lines[0].contains("vouched for by instance 0000000000000abc, until"), "{lines:?}");
}

#[test]
fn a_leader_whom_nobody_could_replace_is_told_what_that_means() {
    let mut seen = Seen::default();
    let mut alone = status(PhaseName::Leading, &[]);
    assert_eq!(told(&mut seen, &alone), [""; 0], "others may come");
    alone.turned = at(NOW + seconds(8));
    let lines = told(&mut seen, &alone);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("runs on for 10m at most, and a host that comes then waits for that long"), "{lines:?}");
    assert_eq!(told(&mut seen, &alone), [""; 0], "once");
    let away = told(&mut seen, &status(PhaseName::Vouched, &[]));
    assert_eq!(
        away,
        [
            "The command runs on without ZooKeeper, as no other host with --vouch is in line, until 1970-01-01 14:32:00 UTC at most; bring \
          ZooKeeper back before then"
        ]
    );
}

#[test]
fn nothing_is_told_by_who_does_not_lead() {
    let mut seen = Seen::default();
    let mut follows = status(PhaseName::Following, &[]);
    follows.snapshot.vouching =
        Some(Vouched { limit: LIMIT, promised_until: Sighting::ZERO, promised_to: None, leads: None });
    assert_eq!(told(&mut seen, &follows), [""; 0]);
}
