//! The operator orders in force, and the ineligibility that they cause.
//!
//! Each order states its remaining time by `ZooKeeper`'s clock, which our clock counts down from our first sight of it;
//! a host's time of day does not matter. An order can only stop or delay. It ends with its time, and concerns only the
//! term that it names.
//!
//! Never: an election without a leader because hosts make room for a target that is gone, or for a term that is over.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::{Event, Ineligibility};
use super::time::Timestamp;

/// What `<base>/control` and the znode of a drain of our host order. The ids distinguish orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Orders {
    pub disabled: Option<Disabled>,
    pub handover: Option<Handover>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
    /// The token of the term that the next in line, which has a higher priority, asks to end.
    pub asked_for: Option<i64>,
    /// Of the handover to another, once it was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prospect: Option<Prospect>,
}

/// What may have become of a handover to another meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Prospect {
    /// Its id.
    pub of: u64,
    /// The token of the newest term.
    pub newest: i64,
    /// Its target is there, and may be elected.
    pub has_target: bool,
}

/// Until those who make room come back: before, the target lines up again, in another session.
const FOR_GOOD: Duration = Duration::from_secs(3);

/// The command is disabled on every host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Disabled {
    pub id: u64,
    /// `None`: until it is withdrawn.
    pub lasts: Option<Duration>,
}

/// Our host is drained: it leads nothing if another host can.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Drain {
    pub id: u64,
    /// `None`: until it is withdrawn.
    pub lasts: Option<Duration>,
    /// Another host could take over: an eligible member there that is not drained.
    pub has_others: bool,
    /// Obeyed even if no other host could take over.
    pub force: bool,
}

/// The leader of one term is to stop and go to the end of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Handover {
    pub id: u64,
    pub lasts: Duration,
    /// The token of the term that is to end.
    pub token: i64,
    pub target: Target,
    /// `true`: the leader stops now. `false`: the others make room first.
    pub stop: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Target {
    /// The next in line.
    Anyone,
    Us,
    /// Another participant, which must stand before us.
    Another,
}

/// See the module page.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct OperatorOrders {
    orders: Orders,
    disabled_until: Option<Timestamp>,
    handover_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drained_until: Option<Timestamp>,
    /// The handover for which we stay in line, whatever comes: it ended our own term, and we come back right behind its
    /// target; or we have made room for it, and that was in vain.
    #[serde(rename = "ours")]
    done_with: Option<u64>,
    /// The handover that has lost its point, and when we saw that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pointless: Option<(u64, Timestamp)>,
    /// The handover that has ended our own term, and when we held that last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<(u64, Timestamp)>,
    disabled: bool,
    handing_over: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    drained: bool,
    /// A run of ours is under way that no other host would repeat.
    #[serde(skip)]
    runs_once: bool,
    #[serde(skip)]
    judged_at: Timestamp,
}

impl OperatorOrders {
    /// Stores the present orders.
    pub fn hear(&mut self, now: Timestamp, orders: Orders) {
        let Orders { disabled, handover, drain, .. } = self.orders;
        let order = |order: Disabled| (order.id, order.lasts);
        let until = self.disabled_until;
        self.disabled_until = end(now, until, disabled.map(order), orders.disabled.map(order));
        let order = |order: Handover| (order.id, Some(order.lasts));
        let until = self.handover_until;
        self.handover_until = end(now, until, handover.map(order), orders.handover.map(order));
        let order = |order: Drain| (order.id, order.lasts);
        let until = self.drained_until;
        self.drained_until = end(now, until, drain.map(order), orders.drain.map(order));
        self.orders = orders;
        let pointless = orders.handover.filter(|order| orders.prospect.is_some_and(|seen| seen.lacks_a_point(*order)));
        let since = |id: u64| self.pointless.filter(|(known, _)| *known == id).map_or(now, |(_, since)| since);
        self.pointless = pointless.map(|order| (order.id, since(order.id)));
    }

    /// Whether a run is under way that no other host would repeat. A drain lets it end, as an election that no other host
    /// could lead.
    pub fn note_run(&mut self, runs_once: bool) {
        self.runs_once = runs_once;
    }

    /// What has changed for us, who hold the term with this token, or no term.
    pub fn judge(&mut self, now: Timestamp, token: Option<i64>) -> [Option<Event>; 3] {
        self.judged_at = now;
        if let Some((id, _)) = self.pointless.filter(|(_, since)| now >= since.after(FOR_GOOD)) {
            self.done_with = Some(id);
        }
        let disabled = self.orders.disabled.is_some() && !is_over(self.disabled_until, now);
        let drain = self.orders.drain.filter(|_| !is_over(self.drained_until, now));
        let drained = drain.is_some_and(|order| order.force || order.has_others && !self.runs_once);
        let handover = self.orders.handover.filter(|_| !is_over(self.handover_until, now));
        let is_asked = token.is_some() && token == self.orders.asked_for;
        let handing_over = handover.is_some_and(|order| self.gives_way(now, order, token)) || is_asked;
        let changed = |was: &mut bool, on, reason| {
            let changed = std::mem::replace(was, on) != on;
            changed.then_some(Event::Ineligible { reason, on })
        };
        [
            changed(&mut self.disabled, disabled, Ineligibility::Disabled),
            changed(&mut self.handing_over, handing_over, Ineligibility::HandingOver),
            changed(&mut self.drained, drained, Ineligibility::Drained),
        ]
    }

    /// When to judge again. It may have come since.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let in_vain = self.pointless.map(|(_, since)| since.after(FOR_GOOD));
        let lines_up = self.left.map(|(_, since)| since.after(FOR_GOOD));
        let ends = [self.disabled_until, self.handover_until, self.drained_until, in_vain, lines_up];
        let ends = ends.into_iter().flatten();
        ends.filter(|end| *end > self.judged_at).min()
    }

    fn gives_way(&mut self, now: Timestamp, order: Handover, token: Option<i64>) -> bool {
        match token {
            Some(token) if token == order.token => {
                if order.stop {
                    self.done_with = Some(order.id);
                    self.left = Some((order.id, now));
                }
                order.stop
            }
            // A later term: the order is done, or came too late.
            Some(_) => false,
            None if self.done_with == Some(order.id) => self.lets_another_begin(now, order),
            None => order.target == Target::Another,
        }
    }

    /// Whoever has handed over lines up when the next term has begun: with a higher priority it would be before its successor. If none
    /// begins, it is next.
    fn lets_another_begin(&self, now: Timestamp, order: Handover) -> bool {
        let has_begun = self.orders.prospect.is_some_and(|seen| seen.of == order.id && seen.newest > order.token);
        let left = self.left.filter(|(id, _)| *id == order.id);
        left.is_some_and(|(_, since)| !has_begun && now < since.after(FOR_GOOD))
    }
}

impl Prospect {
    fn lacks_a_point(self, order: Handover) -> bool {
        self.of == order.id && (self.newest > order.token || !self.has_target)
    }
}

/// When the present order ends. Of one that was heard before, the earlier end counts: while the time of the ensemble is not known, an
/// order is given all of its time.
fn end(now: Timestamp, until: Option<Timestamp>, before: Option<Order>, present: Option<Order>) -> Option<Timestamp> {
    let known = until.filter(|_| before.map(|(id, _)| id) == present.map(|(id, _)| id));
    let lasts = present.and_then(|(_, lasts)| lasts);
    known.into_iter().chain(lasts.map(|lasts| now.after(lasts))).min()
}

/// Its number, and how long it lasts.
type Order = (u64, Option<Duration>);

fn is_over(until: Option<Timestamp>, now: Timestamp) -> bool {
    until.is_some_and(|until| now >= until)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const TOKEN: i64 = 7;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO.after(Duration::from_secs(seconds))
    }

    fn disabled(id: u64, lasts: Option<Duration>) -> Orders {
        Orders { disabled: Some(Disabled { id, lasts }), ..Orders::default() }
    }

    fn handover(target: Target, stop: bool) -> Orders {
        let order = Handover { id: 1, lasts: HOUR, token: TOKEN, target, stop };
        Orders { handover: Some(order), ..Orders::default() }
    }

    fn ineligible(reason: Ineligibility, on: bool) -> Event {
        Event::Ineligible { reason, on }
    }

    fn docket(orders: Orders) -> OperatorOrders {
        let mut docket = OperatorOrders::default();
        docket.hear(at(0), orders);
        docket
    }

    #[test]
    fn disabled_bars_everyone_until_it_is_taken_back() {
        for token in [None, Some(TOKEN)] {
            let mut docket = docket(disabled(1, None));
            assert_eq!(docket.judge(at(1), token), [Some(ineligible(Ineligibility::Disabled, true)), None, None]);
            assert_eq!(docket.judge(at(1_000_000), token), [None; 3], "said once");
            docket.hear(at(1_000_001), Orders::default());
            assert_eq!(
                docket.judge(at(1_000_001), token),
                [Some(ineligible(Ineligibility::Disabled, false)), None, None]
            );
        }
    }

    #[test]
    fn an_order_ends_so_long_after_it_was_first_seen_and_not_after_the_znode_was_written_again() {
        let mut docket = docket(disabled(1, Some(HOUR)));
        assert_eq!(docket.judge(at(0), None)[0], Some(ineligible(Ineligibility::Disabled, true)));
        assert_eq!(docket.next_deadline(), Some(at(3600)));
        docket.hear(at(3000), Orders { handover: handover(Target::Us, false).handover, ..disabled(1, Some(HOUR)) });
        assert_eq!(docket.judge(at(3599), None), [None; 3]);
        assert_eq!(docket.judge(at(3600), None)[0], Some(ineligible(Ineligibility::Disabled, false)));
        docket.hear(at(4000), disabled(2, Some(HOUR)));
        assert_eq!(docket.judge(at(4000), None)[0], Some(ineligible(Ineligibility::Disabled, true)), "another order");
    }

    /// At first, the time of the ensemble was not known.
    #[test]
    fn an_order_that_is_heard_again_with_less_time_ends_earlier() {
        let rest = Some(Duration::from_secs(60));
        let mut docket = docket(disabled(1, Some(HOUR)));
        docket.hear(at(1), disabled(1, rest));
        assert_eq!(docket.next_deadline(), Some(at(61)));
        docket.hear(at(2), disabled(1, Some(HOUR)));
        assert_eq!(docket.next_deadline(), Some(at(61)), "unknown again");
        docket.hear(at(3), drain(1, Some(HOUR), true, false));
        docket.hear(at(4), drain(1, rest, true, false));
        assert_eq!(docket.next_deadline(), Some(at(64)));
        docket.hear(at(5), handover(Target::Us, false));
        let order =
            handover(Target::Us, true).handover.map(|order| Handover { lasts: Duration::from_secs(60), ..order });
        docket.hear(at(6), Orders { handover: order, ..Orders::default() });
        assert_eq!(docket.next_deadline(), Some(at(66)));
    }

    #[test]
    fn the_leader_of_that_very_term_gives_way_when_it_is_told_to_stop_and_comes_back() {
        let mut docket = docket(handover(Target::Another, false));
        assert_eq!(docket.judge(at(1), Some(TOKEN)), [None; 3], "the others make room first");
        docket.hear(at(2), handover(Target::Another, true));
        assert_eq!(docket.judge(at(2), Some(TOKEN)), [None, Some(ineligible(Ineligibility::HandingOver, true)), None]);
        assert_eq!(docket.judge(at(4), None), [None; 3], "the target leads first");
        assert_eq!(docket.next_deadline(), Some(at(5)));
        assert_eq!(docket.judge(at(5), None)[1], Some(ineligible(Ineligibility::HandingOver, false)), "it does not");
        assert_eq!(docket.judge(at(6), Some(TOKEN + 1)), [None; 3], "the order is not for a later term");
    }

    /// With a higher priority it would be before its successor, whose read may take longer than its own candidate.
    #[test]
    fn who_has_handed_over_lines_up_when_the_next_term_has_begun() {
        for target in [Target::Anyone, Target::Another] {
            let mut docket = docket(handover(target, true));
            assert!(docket.judge(at(2), Some(TOKEN))[1].is_some());
            assert_eq!(docket.judge(at(2), None), [None; 3]);
            let prospect = Some(Prospect { of: 1, newest: TOKEN + 1, has_target: true });
            docket.hear(at(2), Orders { prospect, ..handover(target, true) });
            assert_eq!(docket.judge(at(2), None)[1], Some(ineligible(Ineligibility::HandingOver, false)));
        }
    }

    #[test]
    fn the_others_stand_back_for_a_target_and_for_nobody_else() {
        for (target, stands_back) in [(Target::Anyone, false), (Target::Us, false), (Target::Another, true)] {
            for stop in [false, true] {
                let mut docket = docket(handover(target, stop));
                assert_eq!(docket.judge(at(1), None)[1].is_some(), stands_back);
                docket.hear(at(2), Orders::default());
                assert_eq!(docket.judge(at(2), None)[1].is_some(), stands_back, "and come back");
            }
        }
    }

    /// With what is seen of it.
    fn seen(newest: i64, has_target: bool) -> Orders {
        let prospect = Some(Prospect { of: 1, newest, has_target });
        Orders { prospect, ..handover(Target::Another, false) }
    }

    #[test]
    fn who_makes_room_comes_back_once_and_for_all_when_the_target_is_gone_or_a_later_term_has_begun() {
        for gone in [seen(TOKEN, false), seen(TOKEN + 1, true)] {
            let mut docket = docket(seen(TOKEN, true));
            assert!(docket.judge(at(1), None)[1].is_some());
            assert_eq!(docket.judge(at(1000), None), [None; 3], "the target is there");
            docket.hear(at(1000), gone);
            assert_eq!(docket.next_deadline(), Some(at(1003)));
            docket.hear(at(1002), gone);
            assert_eq!(docket.judge(at(1002), None), [None; 3], "the target may come back");
            let is_back = [None, Some(ineligible(Ineligibility::HandingOver, false)), None];
            assert_eq!(docket.judge(at(1003), None), is_back, "the order would last for an hour");
            docket.hear(at(1004), seen(TOKEN, true));
            assert_eq!(docket.judge(at(1004), None), [None; 3], "the target comes back: nobody leaves the line again");
            let another = handover(Target::Another, false).handover.map(|order| Handover { id: 2, ..order });
            docket.hear(at(1005), Orders { handover: another, ..gone });
            assert!(docket.judge(at(1005), None)[1].is_some(), "another order");
        }
    }

    #[test]
    fn who_makes_room_stays_out_of_line_while_the_target_is_away_for_a_moment() {
        let mut docket = docket(seen(TOKEN, true));
        assert!(docket.judge(at(0), None)[1].is_some());
        for second in (1..100).step_by(3) {
            docket.hear(at(second), seen(TOKEN, false));
            assert_eq!(docket.judge(at(second), None), [None; 3]);
            docket.hear(at(second + 2), seen(TOKEN, true));
            assert_eq!(docket.judge(at(second + 2), None), [None; 3]);
        }
    }

    /// It was told so while the target was there.
    #[test]
    fn a_leader_that_is_told_to_stop_does_so_though_the_target_is_gone() {
        let order = Orders { handover: handover(Target::Another, true).handover, ..seen(TOKEN, false) };
        let mut docket = docket(order);
        assert_eq!(docket.judge(at(9), Some(TOKEN))[1], Some(ineligible(Ineligibility::HandingOver, true)));
    }

    #[test]
    fn a_leader_who_is_asked_for_his_term_gives_way_and_nobody_else() {
        for (token, gives_way) in
            [(Some(TOKEN), true), (Some(TOKEN + 1), false), (Some(TOKEN - 1), false), (None, false)]
        {
            let mut docket = docket(Orders { asked_for: Some(TOKEN), ..Orders::default() });
            assert_eq!(docket.judge(at(1), token)[1].is_some(), gives_way, "{token:?}");
        }
        let mut docket = docket(Orders { asked_for: Some(TOKEN), ..Orders::default() });
        assert_eq!(docket.judge(at(1), Some(TOKEN))[1], Some(ineligible(Ineligibility::HandingOver, true)));
        assert_eq!(
            docket.judge(at(2), None)[1],
            Some(ineligible(Ineligibility::HandingOver, false)),
            "back to the end of the line"
        );
    }

    #[test]
    fn a_handover_that_is_out_of_time_bars_nobody() {
        let mut docket = docket(handover(Target::Another, true));
        assert!(docket.judge(at(0), None)[1].is_some());
        assert_eq!(docket.judge(at(3600), None)[1], Some(ineligible(Ineligibility::HandingOver, false)));
        assert_eq!(docket.judge(at(3601), Some(TOKEN)), [None; 3]);
    }

    fn drain(id: u64, lasts: Option<Duration>, has_others: bool, force: bool) -> Orders {
        Orders { drain: Some(Drain { id, lasts, has_others, force }), ..Orders::default() }
    }

    #[test]
    fn a_drain_lets_a_run_end_that_no_other_host_would_repeat_unless_it_is_forced() {
        let drained = |on| Some(ineligible(Ineligibility::Drained, on));
        let mut docket = docket(drain(1, None, true, false));
        docket.note_run(true);
        assert_eq!(docket.judge(at(1), Some(TOKEN)), [None; 3]);
        docket.note_run(false);
        assert_eq!(docket.judge(at(2), Some(TOKEN))[2], drained(true));
        docket.note_run(true);
        docket.hear(at(3), drain(1, None, true, true));
        assert_eq!(docket.judge(at(3), Some(TOKEN)), [None; 3], "it is drained still");
    }

    #[test]
    fn a_drained_host_gives_way_to_others_and_stays_if_there_are_none() {
        let drained = |on| Some(ineligible(Ineligibility::Drained, on));
        for token in [None, Some(TOKEN)] {
            let mut docket = docket(drain(1, None, false, false));
            assert_eq!(docket.judge(at(1), token)[2], None, "nobody else is there");
            docket.hear(at(2), drain(1, None, true, false));
            assert_eq!(docket.judge(at(2), token)[2], drained(true));
            docket.hear(at(3), drain(1, None, false, false));
            assert_eq!(docket.judge(at(3), token)[2], drained(false), "the others have left");
            docket.hear(at(4), drain(2, None, false, true));
            assert_eq!(docket.judge(at(4), token)[2], drained(true), "forced");
            docket.hear(at(5), Orders::default());
            assert_eq!(docket.judge(at(5), token)[2], drained(false));
        }
    }

    #[test]
    fn a_drain_ends_with_its_time_though_the_others_come_and_go() {
        let mut docket = docket(drain(1, Some(HOUR), true, false));
        assert!(docket.judge(at(0), None)[2].is_some());
        docket.hear(at(3000), drain(1, Some(HOUR), true, false));
        assert_eq!(docket.next_deadline(), Some(at(3600)));
        assert_eq!(docket.judge(at(3600), None)[2], Some(ineligible(Ineligibility::Drained, false)));
        docket.hear(at(4000), drain(2, Some(HOUR), true, false));
        assert_eq!(docket.judge(at(4000), None)[2], Some(ineligible(Ineligibility::Drained, true)), "another order");
    }
}
