//! What a host that still leads says of itself: that it is stopping its command, which may take as long as `--stop-timeout` there,
//! or that it has heard of the drain, and lets the run of a job end.
//!
//! Never: "cut off" of a host that has said that it stops.

use super::leading::may_run_under;
use crate::commands::slot_state::{self, SlotState};
use crate::zookeeper::admin::view::{ElectionView, SlotView};

/// Whether it is stopping in each slot in which its command may run. Without one, only who still stops has a command.
pub(super) fn stops(election: &ElectionView, host: &str) -> bool {
    may_run_under(election, host).all(|slot| stops_in(slot, election, host))
}

/// Where another host has taken the record and waits, its own words alone tell.
fn stops_in(slot: &SlotView, election: &ElectionView, host: &str) -> bool {
    let says_so = || election.members().any(|member| member.host == host && member.phase == "stopping");
    let is_waited_for = slot.lease.as_ref().is_some_and(|(lease, _)| lease.waiting_on.is_some());
    slot_state::stopping(slot, election).is_some() || is_waited_for && says_so()
}

/// Whether it lets a run end that no other host would repeat: it has heard of a drain, which is not forced, and goes on.
pub(super) fn lets_end(election: &ElectionView, host: &str) -> bool {
    let mut own = election.members().filter(|member| member.host == host);
    election.has_runs && own.any(|member| member.drained && slot_state::runs(Some(&member.phase)))
}

/// Why a lease of this host must run out: it is gone, with promises or without, it gave way before its command ran, or another
/// one waits for it.
pub(super) fn runs_out(election: &ElectionView, host: &str) -> Option<String> {
    let mut slots = may_run_under(election, host).filter(|slot| !stops_in(slot, election, host));
    slots.find_map(|slot| match slot_state::of(slot, election) {
        SlotState::CutOff { why } => Some(why),
        SlotState::Nobody { why } => Some(why.to_string()),
        SlotState::Waiting { holder } => Some(slot_state::waits_in_words(&holder.id)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::admin::Facts;
    use crate::zookeeper::admin::view::Candidate;
    use crate::zookeeper::schema::lease::Lease;
    use crate::zookeeper::schema::member::Member;

    /// Held by `a` on db1, which says this of itself.
    fn election(phase: Option<&str>) -> ElectionView {
        let record = r#"{"v":1,"state":"held","lease_ms":15000,"holder":{"id":"a","host":"db1","pid":1}}"#;
        let lease = Some((Lease::read(record.as_bytes()).unwrap(), Facts::default()));
        let member = |phase: &str| {
            let (id, host, pid, role, phase) = ("a".into(), "db1".into(), 1, "leader".into(), phase.into());
            ("a".to_owned(), (Member { id, host, pid, role, phase, ..Member::default() }, Facts::default()))
        };
        let (slots, members) =
            (vec![SlotView { lease, ..SlotView::default() }], phase.map(member).into_iter().collect());
        ElectionView { slots, members, ..ElectionView::default() }
    }

    #[test]
    fn a_host_stops_only_if_it_says_so() {
        assert!(stops(&election(Some("stopping")), "db1") && stops(&election(Some("releasing")), "db1"));
        assert!(!stops(&election(Some("leading")), "db1"), "it has not heard of the order");
        assert!(!stops(&election(None), "db1"), "it is gone");
        let mut waited_for = election(Some("stopping"));
        let record =
            r#"{"v":1,"state":"held","lease_ms":15000,"waiting_on":5,"holder":{"id":"b","host":"db2","pid":2}}"#;
        waited_for.slots[0].lease = Some((Lease::read(record.as_bytes()).unwrap(), Facts::default()));
        assert!(stops(&waited_for, "db1") && runs_out(&waited_for, "db1").is_none(), "b waits for it");
        assert!(!stops(&waited_for, "db3"));
        let waits = Some("b is elected, and waits until the lease before its own is over".to_owned());
        waited_for.line.push(Candidate { id: "b".into(), ..Candidate::default() });
        assert!(!stops(&waited_for, "db2") && runs_out(&waited_for, "db2") == waits, "it has not heard of the drain");
        waited_for.line.clear();
        assert_eq!(
            runs_out(&waited_for, "db3").as_deref(),
            Some("b is gone, and the lease before it must run out"),
            "the record does not say whose lease that is"
        );
        let mut overdue = election(Some("stopping"));
        overdue.slots[0].overdue_since = Some(1);
        assert!(!stops(&overdue, "db1"), "these were its last words");
    }

    #[test]
    fn a_host_lets_a_job_end_if_it_has_heard_of_the_drain() {
        let mut job = election(Some("leading"));
        assert!(!lets_end(&job, "db1"), "it is no job");
        job.has_runs = true;
        assert!(!lets_end(&job, "db1"), "it has not heard of the drain");
        job.members.iter_mut().for_each(|(_, (member, _))| member.drained = true);
        assert!(lets_end(&job, "db1") && !lets_end(&job, "db2"));
    }

    /// Its session has ended, and the other hosts may vouch for it.
    #[test]
    fn of_a_host_that_is_gone_it_is_said_until_when_its_command_may_run() {
        let mut gone = election(None);
        assert_eq!(runs_out(&gone, "db1").as_deref(), Some("a is gone, and its lease must run out"));
        assert_eq!(runs_out(&election(Some("leading")), "db1"), None, "it is there");
        let (lease, written) = gone.slots[0].lease.as_mut().unwrap();
        (lease.vouch_ms, written.changed_at) = (Some(60_000), 1_795_226_400_000);
        let why = "a is cut off or dead; with --vouch its command may run until 2026-11-21 02:01:00 UTC";
        assert_eq!(runs_out(&gone, "db1").as_deref(), Some(why));
    }
}
