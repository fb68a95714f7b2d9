//! Tells people that the command of another host may live by the promises of this one.
//!
//! Never: a line for each promise; one for a moment without contact.

use std::time::Duration;

use super::words::Line;
use crate::core::event::Place;
use crate::core::time::{Sighting, milliseconds};
use crate::observe::status::Status;

/// What was told, and of whom.
#[derive(Debug, Default)]
pub(super) struct Standby {
    /// A leader whose record was seen, and how long its command may live on promises.
    limit: Option<(u64, Duration)>,
    /// Since when the leader that has our promise cannot be heard through `ZooKeeper`, and the record that was seen last before.
    unheard_since: Option<(Sighting, i64)>,
    /// Since when we are in contact again.
    back_since: Option<Sighting>,
    /// Of which leader it was told.
    told: Option<u64>,
}

impl Standby {
    /// The line that is due after this turn of the loop, which was about this time of day (milliseconds since 1970). A promise that is
    /// this young was given after the leader fell silent.
    pub fn news(&mut self, status: &Status, time_of_day: i64) -> Option<Line> {
        let (snapshot, now) = (&status.snapshot, status.turned.observer);
        let vouching = snapshot.vouching?;
        // What is known of the record may be older than the leader that asks.
        let (leader, lease) = vouching.promised_to?;
        let record = snapshot.view.map(|view| view.record).filter(|record| record.held);
        let of_leader = record.filter(|record| record.nonce.instance == leader);
        let seen = of_leader.map(|record| (leader, record.vouching.map_or(Duration::ZERO, |vouching| vouching.limit)));
        self.limit = seen.or(self.limit.filter(|(of, _)| *of == leader));
        let long = lease + lease / 2;
        let is_unheard = snapshot.held_term.is_none() && self.is_unheard(status, long);
        // A leader that is back before we are asks at once, so without a promise this begins anew.
        let begins = self.unheard_since.unwrap_or((now, record.map_or(0, |record| record.mzxid)));
        self.unheard_since = (is_unheard && now < vouching.promised_until).then_some(begins);
        let is_recent = |since: Sighting| vouching.promised_until >= since.after(long);
        let is_lived_by = self.unheard_since.is_some_and(|(since, _)| self.told.is_some() || is_recent(since));
        match (self.told, self.unheard_since) {
            (None, Some((since, _))) if is_lived_by => {
                self.told = Some(leader);
                // Its last write was before that, as far as is known.
                let limit = self.limit.map_or(vouching.limit, |(_, limit)| limit);
                let until = time_of_day.saturating_add(milliseconds(now.until(since.after(limit))));
                Some(Line::HoldsBack { leader, is_away: !status.in_contact(), until })
            }
            (Some(leader), _) if !is_lived_by => {
                self.told = None;
                Some(Line::HeldBack { leader })
            }
            _ => None,
        }
    }

    /// Whether the leader cannot be heard through `ZooKeeper`: we are cut off, or it is. A leader that was silent with us may be cut off
    /// still: it is back when its record has changed, or its candidate has outlived its session.
    fn is_unheard(&mut self, status: &Status, long: Duration) -> bool {
        let (view, now) = (status.snapshot.view, status.turned.observer);
        // First behind a record that is held: the candidate of its holder is gone.
        let is_gone = view.is_some_and(|view| view.record.held && view.place == Place::First);
        if !status.in_contact() || is_gone {
            self.back_since = None;
            return true;
        }
        let has_changed = |seen: i64| view.is_some_and(|view| !view.record.held || view.record.mzxid > seen);
        let is_back = self.told.is_none() || self.unheard_since.is_none_or(|(_, seen)| has_changed(seen));
        let since = *self.back_since.get_or_insert(now);
        !is_back && now < since.after(long)
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
        let (limit, promised_to) = (seconds(600), Some((1, seconds(15))));
        status.snapshot.vouching = Some(Vouched { limit, promised_until, promised_to, leads: None });
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
        assert_eq!(news(301, 316, true), None, "it may be cut off still");
        assert_eq!(news(323, 338, true), None);
        assert_eq!(news(324, 339, true), Some(Line::HeldBack { leader }), "its session would be over by now");
        assert_eq!(news(325, 340, true), None, "once");
        assert_eq!(news(400, 410, false), None, "it was asked in vain, or not any more");
        assert_eq!(news(409, 424, false), holds_back(400 + 600 - 409));
        assert_eq!(news(424, 424, false), Some(Line::HeldBack { leader }));
        assert_eq!(news(425, 424, false), None, "that promise is over");
        assert_eq!(news(500, 515, false), None, "the leader is back, and we are not yet");
    }

    #[test]
    fn a_leader_whose_record_changes_is_back() {
        let mut told = Standby::default();
        let mut news = |second, until, in_contact, version| {
            let mut status = standby(second, until, in_contact, Place::Next);
            status.snapshot.view.iter_mut().for_each(|view| view.record.mzxid = version);
            told.news(&status, 1_000)
        };
        assert_eq!(news(100, 115, false, 7), None);
        assert!(matches!(news(108, 123, false, 7), Some(Line::HoldsBack { .. })));
        assert_eq!(news(109, 124, true, 7), None);
        assert_eq!(news(110, 125, true, 8), Some(Line::HeldBack { leader: 1 }));
    }

    /// Two terms ago another one led, and nobody has looked since then; or the record was seen while it was free.
    #[test]
    fn who_is_told_to_live_by_our_promise_is_who_asked_for_it() {
        for held in [true, false] {
            let mut told = Standby::default();
            let mut news = |second, until| {
                let mut status = standby(second, until, false, Place::Behind(1));
                status.snapshot.view.iter_mut().for_each(|view| view.record.held = held);
                status.snapshot.vouching.iter_mut().for_each(|it| it.promised_to = Some((2, seconds(15))));
                told.news(&status, 1_000)
            };
            assert_eq!(news(100, 115), None);
            let told = Some(Line::HoldsBack { leader: 2, is_away: true, until: 1_000 + 1_000 * (600 - 8) });
            assert_eq!(news(108, 123), told);
        }
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
