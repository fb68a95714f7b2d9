//! What a host that still leads says of itself: that it is stopping its command, which may take as long as `--stop-timeout` there.
//!
//! Never: "cut off" of a host that has said that it stops.

use super::{held_by, listed};
use crate::commands::slot_state;
use crate::zookeeper::admin::view::{ElectionView, SlotView};

/// Whether it is stopping in each slot that it holds here. Without one, only who still stops has a command.
pub(super) fn stops(election: &ElectionView, host: &str) -> bool {
    let is_held = |slot: &&SlotView| slot.lease.as_ref().is_some_and(|(lease, _)| lease.is_held());
    held_by(election, host).filter(is_held).all(|slot| slot_state::stopping(slot, election).is_some())
}

/// Why it still leads these, of which it is stopping some.
pub(super) fn why_not_yet(led: &[String], stopping: &[String]) -> String {
    const UNHEARD: &str = "it may be cut off, or run an older version";
    let continues = format!("it is still stopping its command in {}, and continues", listed(stopping));
    match stopping {
        [] => UNHEARD.to_owned(),
        _ if stopping.len() == led.len() => continues,
        _ => format!("{continues}; elsewhere {UNHEARD}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::admin::Facts;
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
        let mut overdue = election(Some("stopping"));
        overdue.slots[0].overdue_since = Some(1);
        assert!(!stops(&overdue, "db1"), "these were its last words");
    }

    #[test]
    fn a_host_that_stops_is_not_said_to_be_cut_off() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let why = |led, stopping| why_not_yet(&names(led), &names(stopping));
        assert_eq!(why(&["a"], &[]), "it may be cut off, or run an older version");
        assert_eq!(why(&["a", "b"], &["a", "b"]), "it is still stopping its command in a, b, and continues");
        let some = "it is still stopping its command in b, and continues; elsewhere it may be cut off, or run an older version";
        assert_eq!(why(&["a", "b"], &["b"]), some);
        assert_eq!(why(&[], &[]), "it may be cut off, or run an older version", "a record cannot be read");
    }
}
