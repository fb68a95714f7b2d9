//! `--leaders N`: several run at once, each in a slot of its own, and never two in one.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;

use super::{election, link, millis, secs};
use crate::support::diary::{self, Diary};
use crate::support::subject::example;
use crate::support::traffic::Request;
use crate::support::{Election, Running, Subject, wait};

/// An election with several slots, and a diary for each of them.
struct Crowd {
    election: Election,
    slots: Vec<Diary>,
}

impl Crowd {
    fn of(slots: usize) -> Self {
        let election = election();
        let slots = (0..slots).map(|slot| election.diary.of_slot(slot)).collect();
        Self { election, slots }
    }

    /// A host of this election; its command writes into the diary of its slot.
    fn host(&self, subject: Subject, options: &str) -> Subject {
        let (witness, path) = (example("witness"), self.election.diary.path());
        let script = format!("exec {} {}.$ZK_LEADER_SLOT {options}", witness.display(), path.display());
        subject.option("--leaders", &self.slots.len().to_string()).command(&["sh", "-c", &script])
    }

    fn spawn(&self, id: &str) -> Running {
        self.host(self.election.steady_host(id), "").spawn()
    }

    /// One after the other, so that their order in line is theirs.
    fn spawn_in_line(&self, count: usize) -> Vec<Running> {
        let spawn = |index: usize| {
            let host = self.spawn(&index.to_string());
            self.election.until_candidates(index + 1);
            host
        };
        (0..count).map(spawn).collect()
    }

    /// How many terms there have been, in all slots.
    fn terms(&self) -> usize {
        self.slots.iter().map(|slot| slot.starts().len()).sum()
    }

    fn until_all_lead(&self) {
        for slot in &self.slots {
            slot.until_started(1);
        }
    }

    /// Who runs in each slot now.
    fn ids(&self) -> Vec<String> {
        self.slots.iter().map(|slot| slot.until_alive().id).collect()
    }

    fn slot_of(&self, host: usize) -> usize {
        self.ids().iter().position(|id| *id == host.to_string()).expect("the host leads")
    }

    fn state(&self, slot: usize) -> String {
        let record = self.election.admin.read(&self.election.path(&format!("slots/{slot}/lease")));
        serde_json::from_str::<serde_json::Value>(&record).unwrap()["state"].as_str().unwrap().to_owned()
    }

    /// The promise for each slot, no slot but these, and no token twice.
    fn assert_kept(&self) {
        for slot in &self.slots {
            slot.assert_no_overlap();
        }
        assert!(!self.election.diary.of_slot(self.slots.len()).path().exists());
        let tokens: Vec<_> = self.slots.iter().flat_map(Diary::starts).map(|start| start.token).collect();
        assert_eq!(tokens.iter().collect::<BTreeSet<_>>().len(), tokens.len(), "{tokens:?}");
    }
}

/// T41
#[test]
fn of_ten_hosts_three_lead_whatever_happens_to_them() {
    let crowd = Crowd::of(3);
    let mut hosts = crowd.spawn_in_line(10);
    crowd.until_all_lead();
    assert_eq!(crowd.ids().iter().collect::<BTreeSet<_>>(), ["0", "1", "2"].map(String::from).iter().collect());
    let starts = |slot: usize| crowd.slots[slot].starts().len();

    // One is killed: its slot alone has a new leader, the next in line.
    let slot = crowd.slot_of(1);
    let before = [0, 1, 2].map(starts);
    hosts[1].kill();
    assert_eq!(crowd.slots[slot].until_started(2).id, "3");
    assert!((0..3).all(|other| starts(other) == before[other] + usize::from(other == slot)), "the others led on");

    // Two leave at once.
    for leaver in [0, 2] {
        hosts[leaver].signal(Signal::SIGTERM);
    }
    wait::until("the next two lead", || crowd.terms() >= 6);
    assert_eq!([hosts[0].code(), hosts[2].code()], [0, 0]);
    assert_eq!(crowd.ids().iter().collect::<BTreeSet<_>>(), ["3", "4", "5"].map(String::from).iter().collect());

    // A candidate is deleted by hand, and a waiting host leaves: its place is closed.
    hosts[7].signal(Signal::SIGTERM);
    assert_eq!(hosts[7].code(), 0);
    let slot = crowd.slot_of(4);
    let (name, count) = (crowd.slots[slot].last_start().told[2].clone(), starts(slot));
    crowd.election.admin.delete(&crowd.election.path(&format!("election/{name}")));
    assert_eq!(crowd.slots[slot].until_started(count + 1).id, "6");
    for (leaver, follower) in [(3, "8"), (5, "9"), (6, "4")] {
        let slot = crowd.slot_of(leaver);
        let count = starts(slot);
        hosts[leaver].signal(Signal::SIGTERM);
        assert_eq!(crowd.slots[slot].until_started(count + 1).id, follower);
    }
    assert_eq!(crowd.ids().iter().collect::<BTreeSet<_>>(), ["4", "8", "9"].map(String::from).iter().collect());
    crowd.assert_kept();
}

/// T41
#[test]
fn who_wants_another_number_of_leaders_is_refused_and_told_both() {
    let refused = |election: &Election, number: &str| {
        let mut host = election.steady_host("x").option("--leaders", number).option("--log-level", "error").spawn();
        assert_eq!(host.code(), 78, "{}", host.log());
        host.log()
    };
    let crowd = Crowd::of(3);
    let mut host = crowd.spawn("a");
    wait::until("it leads", || crowd.slots.iter().any(|slot| slot.has("start")));
    assert!(refused(&crowd.election, "4").contains("--leaders is 4 here and 3 there"));
    assert!(refused(&crowd.election, "1").contains("--leaders is 1 here and 3 there"));
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    for (number, said) in [("2", "--leaders is 2 here and 3 there"), ("1", "--leaders is 1 here and 3 there")] {
        assert!(refused(&crowd.election, number).contains(said), "the number stays while nobody leads");
    }
    assert_eq!(crowd.election.candidates(), [""; 0]);
    let one = election();
    one.prepare();
    assert!(refused(&one, "2").contains("--leaders is 2 here and 1 there"));
    assert!(!one.admin.exists(&one.path("slots")));
}

#[test]
fn who_has_lost_the_number_of_leaders_finds_it_again() {
    let crowd = Crowd::of(2);
    let mut host = crowd.spawn("a");
    wait::until("it leads", || crowd.slots.iter().any(|slot| slot.has("start")));
    for number in ["1", "3"] {
        crowd.election.admin.delete(&crowd.election.path("lease"));
        let mut other = crowd.election.steady_host("x").option("--leaders", number).spawn();
        assert_eq!(other.code(), 78, "{}", other.log());
        assert!(crowd.election.admin.read(&crowd.election.path("lease")).contains(r#""leaders":2"#));
    }
    // History, and the time of an order, are written under the common term.
    crowd.election.admin.delete(&crowd.election.path("term"));
    let mut other = crowd.spawn("b");
    wait::until("it is made again", || crowd.election.admin.exists(&crowd.election.path("term")));
    other.signal(Signal::SIGTERM);
    assert_eq!(other.code(), 0);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    assert!((1..=2).contains(&crowd.terms()));
}

#[test]
fn a_killed_leader_gives_up_its_own_slot_and_no_other() {
    let crowd = Crowd::of(2);
    let host = |id: &str| crowd.host(crowd.election.host(id).session_timeout("20s"), "ignore-term daemonise").spawn();
    let hosts = [host("0"), host("1")];
    crowd.until_all_lead();
    let slot = crowd.slot_of(0);
    let killed_at = diary::now();
    hosts[0].kill();
    wait::until("the slot is freed", || crowd.state(slot) == "free");
    assert!(diary::now().saturating_sub(killed_at) < secs(10), "the lease would have run for 17 s and more");
    assert_eq!(crowd.state(1 - slot), "held");
    crowd.slots[slot].until_nobody_lives();
    let _third = host("2");
    assert_eq!(crowd.slots[slot].until_started(2).told[1], "clean");
    assert_eq!(crowd.slots[1 - slot].starts().len(), 1);
    crowd.assert_kept();
}

#[test]
fn a_leader_that_is_cut_off_is_dead_before_its_slot_is_taken_and_the_other_leads_on() {
    let crowd = Crowd::of(2);
    let link = link();
    let first = crowd.election.host_behind(&link, "0").session_timeout("4s");
    let first = crowd.host(first, "ignore-term daemonise").spawn();
    crowd.election.until_candidates(1);
    let others = [1, 2, 3].map(|index: usize| {
        let host = crowd.host(crowd.election.steady_host(&index.to_string()), "ignore-term daemonise").spawn();
        crowd.election.until_candidates(index + 1);
        host
    });
    crowd.until_all_lead();
    let slot = crowd.slot_of(0);
    // Its successor has watched only one of the two records all the time.
    wait::pass(secs(5));
    let cut_at = diary::now();
    link.stall();
    let start = crowd.slots[slot].until_started(2);
    assert_eq!((start.id.as_str(), start.told[1].as_str()), ("2", "unclean"));
    let took = start.at.saturating_sub(cut_at);
    assert!(took < millis(7500), "the session's 4 s and not a whole lease more: {took:?}");
    assert_eq!(crowd.slots[1 - slot].starts().len(), 1);
    link.heal();
    crowd.election.until_candidates(4);
    crowd.assert_kept();
    drop((first, others));
}

#[test]
fn two_leaders_that_die_at_once_are_both_replaced() {
    let crowd = Crowd::of(3);
    let links = [link(), link()];
    let cut_off: Vec<_> = links
        .iter()
        .enumerate()
        .map(|(index, link)| {
            let host = crowd.host(crowd.election.host_behind(link, &index.to_string()), "ignore-term").spawn();
            crowd.election.until_candidates(index + 1);
            host
        })
        .collect();
    let others = [2, 3, 4, 5].map(|index: usize| {
        let host = crowd.host(crowd.election.steady_host(&index.to_string()), "ignore-term").spawn();
        crowd.election.until_candidates(index + 1);
        host
    });
    crowd.until_all_lead();
    links.iter().for_each(crate::support::Proxy::stall);
    wait::until("the next two lead", || crowd.terms() >= 5);
    assert_eq!(crowd.ids().iter().collect::<BTreeSet<_>>(), ["2", "3", "4"].map(String::from).iter().collect());
    crowd.assert_kept();
    drop((cut_off, others));
}

/// Whoever stands further back costs nothing, so it does not matter how many they are.
#[test]
fn a_handover_among_many_costs_no_more_than_one_among_few() {
    let crowd = Crowd::of(3);
    let links: Vec<_> = (0..20).map(|_| link()).collect();
    let mut hosts = Vec::new();
    for (index, link) in links.iter().enumerate() {
        let host = crowd.election.host_behind(link, &index.to_string()).session_timeout("60s");
        hosts.push(crowd.host(host, "").spawn());
        match crowd.slots.get(index) {
            Some(_) => wait::until("it leads", || crowd.terms() == index + 1),
            None => wait::until("it waits in line", || link.has_watched(2)),
        }
    }
    let asked = || links.iter().map(|link| link.asked().len()).collect::<Vec<_>>();
    let (before, line) = (asked(), crowd.election.candidates());
    hosts[0].signal(Signal::SIGTERM);
    wait::until("the next one leads", || crowd.terms() == 4);
    assert_eq!(hosts[0].code(), 0);
    // Three and four stood next in line; now it is four and five.
    wait::until("all who move up have looked", || (3..=5).all(|index| asked()[index] > before[index]));
    wait::pass(wait::SETTLED);
    assert_eq!(asked()[6..], before[6..], "who does not move up asks for nothing");
    for (link, before) in links.iter().zip(before) {
        let is_of_others = |request: &Request| line[6..].iter().any(|name| request.text.contains(name));
        assert!(!link.asked()[before..].iter().any(is_of_others), "and nobody asks for them");
    }
    crowd.assert_kept();
}

/// All leaders keep their candidates, and stand behind the higher ones as soon as they hold nothing.
#[test]
fn who_stands_before_leaders_that_were_disabled_and_enabled_while_they_stopped_leads_next() {
    let crowd = Crowd::of(2);
    let host = |id, priority| {
        let subject = crowd.election.steady_host(id).option("--priority", priority);
        crowd.host(subject, "linger=1500").spawn()
    };
    let _leaders = ["a", "b"].map(|id| host(id, "0"));
    crowd.until_all_lead();
    let _higher = ["c", "d"].map(|id| host(id, "7"));
    crowd.election.until_candidates(4);
    let control = crowd.election.path("control");
    crowd.election.admin.create(&control, r#"{"v":1,"disabled":{"order":"1"}}"#);
    for slot in &crowd.slots {
        slot.until_noted("signal=15");
    }
    crowd.election.admin.set(&control, r#"{"v":1}"#);
    let ids: BTreeSet<_> = crowd.slots.iter().map(|slot| slot.until_started(2).id).collect();
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), ["c", "d"]);
    for slot in &crowd.slots {
        slot.assert_no_overlap();
    }
}
