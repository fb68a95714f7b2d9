//! Tells people that the command of another host may live by the promises of this one.
//!
//! Never: a line for each promise; one for a moment without contact.

use std::time::Duration;

use super::words::Line;
use crate::core::event::{Place, View};
use crate::core::time::{Sighting, milliseconds};
use crate::observe::status::Status;

/// What was told, and of whom.
#[derive(Debug, Default)]
pub(super) struct Standby {
    /// The leader that was seen last, its lease, and how long its command may live on promises.
    leader: Option<(u64, Duration, Duration)>,
    /// Since when that leader cannot be heard through `ZooKeeper`, but has a promise.
    unheard_since: Option<Sighting>,
    is_told: bool,
}

impl Standby {
    /// The line that is due after this turn of the loop, which was about this time of day (milliseconds since 1970). A promise that is
    /// this young was given after the leader fell silent.
    pub fn news(&mut self, status: &Status, time_of_day: i64) -> Option<Line> {
        let (snapshot, now) = (&status.snapshot, status.turned.observer);
        let view = snapshot.view.filter(|view| view.record.held);
        let seen = view.map(|View { record, .. }| {
            (record.nonce.instance, record.lease, record.vouching.map_or(Duration::ZERO, |vouching| vouching.limit))
        });
        self.leader = seen.or(self.leader);
        let (leader, lease, limit) = self.leader?;
        let promised_until = snapshot.vouching?.promised_until;
        // First behind a record that is held: the candidate of its holder is gone.
        let is_gone = view.is_some_and(|view| view.place == Place::First);
        let is_unheard = snapshot.held_term.is_none() && (!status.in_contact() || is_gone);
        // A leader that is back before we are asks at once, so without a promise this begins anew.
        let begins = self.unheard_since.unwrap_or(now);
        self.unheard_since = (is_unheard && now < promised_until).then_some(begins);
        let is_recent = |since: Sighting| promised_until >= since.after(lease + lease / 2);
        let is_lived_by = self.unheard_since.is_some_and(|since| self.is_told || is_recent(since));
        let was_told = std::mem::replace(&mut self.is_told, is_lived_by);
        match (was_told, is_lived_by) {
            (false, true) => {
                // Its last write was before that, as far as is known.
                let left = self.unheard_since.map_or(Duration::ZERO, |since| now.until(since.after(limit)));
                let until = time_of_day.saturating_add(milliseconds(left));
                Some(Line::HoldsBack { leader, is_away: !status.in_contact(), until })
            }
            (true, false) => Some(Line::HeldBack { leader }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::action::PhaseName;
    use crate::core::machine::Vouched;
    use crate::core::time::Now;
    use crate::core::vouching::{Roster, Vouching};
    use crate::observe::status::tests::{at, leading};

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// At this second, this one has promised until then; the lease is 15 s.
    fn standby(second: u64, promised_until: u64, in_contact: bool, place: Place) -> Status {
        let now: Now = at(seconds(second));
        let mut status = leading(now, now.lease);
        (status.snapshot.phase, status.snapshot.held_term, status.command) = (PhaseName::Following, None, None);
        let promised_until = Sighting::ZERO.after(seconds(promised_until));
        status.snapshot.vouching = Some(Vouched { limit: seconds(600), promised_until, leads: None });
        if let Some(view) = &mut status.snapshot.view {
            view.place = place;
            view.record.vouching = Some(Vouching { limit: seconds(600), roster: Roster::default() });
        }
        status.silent_since = (!in_contact).then_some(now.lease);
        status
    }

    #[test]
    fn that_a_command_lives_by_our_promise_is_told_once_and_so_is_the_end() {
        let (mut told, leader) = (Standby::default(), 1);
        let mut news = |second, until, in_contact| told.news(&standby(second, until, in_contact, Place::Next), 1_000);
        assert_eq!(news(100, 115, true), None, "it promises all the time");
        assert_eq!(news(101, 116, false), None, "it may be a moment");
        assert_eq!(news(108, 123, false), None);
        // It was heard last at second 101, at most, and now it is second 109.
        let holds_back = |left: i64| Some(Line::HoldsBack { leader, is_away: true, until: 1_000 + 1_000 * left });
        assert_eq!(news(109, 124, false), holds_back(101 + 600 - 109));
        assert_eq!(news(300, 315, false), None, "once");
        assert_eq!(news(301, 315, true), Some(Line::HeldBack { leader }));
        assert_eq!(news(302, 315, true), None, "once");
        assert_eq!(news(400, 410, false), None, "it was asked in vain, or not any more");
        assert_eq!(news(409, 424, false), holds_back(400 + 600 - 409));
        assert_eq!(news(424, 424, false), Some(Line::HeldBack { leader }));
        assert_eq!(news(425, 424, false), None, "that promise is over");
        assert_eq!(news(500, 515, false), None, "the leader is back, and we are not yet");
    }

    #[test]
    fn a_leader_that_alone_is_cut_off_is_told_as_such() {
        let mut told = Standby::default();
        let mut news = |second, until| told.news(&standby(second, until, true, Place::First), 1_000);
        assert_eq!(news(100, 115), None, "it may have crashed");
        assert_eq!(
            news(108, 123),
            Some(Line::HoldsBack { leader: 1, is_away: false, until: 1_000 + 1_000 * (600 - 8) })
        );
    }

    #[test]
    fn who_leads_promises_nothing_that_counts() {
        let mut told = Standby::default();
        let now = at(seconds(100));
        let mut leads = Status { silent_since: Some(now.lease), ..leading(now, now.lease) };
        leads.snapshot.vouching = standby(100, 200, false, Place::First).snapshot.vouching;
        assert_eq!(told.news(&leads, 0), None);
        leads.turned = at(seconds(150));
        assert_eq!(told.news(&leads, 0), None);
    }
}
