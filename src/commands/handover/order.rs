//! The order of a handover: given, begun when there is room, and taken back.
//!
//! Never: an order of another operator begun or taken back; one of ours that is waited for when it is gone.

use std::cell::Cell;
use std::time::Duration;

use crate::commands::orders::following::{self, Step, gone};
use crate::commands::orders::{Patience, Progress, change};
use crate::commands::{CommandContext, CommandError};
use crate::observe::words;
use crate::zookeeper::admin::view::ElectionView;
use crate::zookeeper::schema::control::{Handover, Orders, remedy};

/// Whoever gave one for the same term before is told that it is replaced, and so are we.
pub(super) async fn give(
    context: &CommandContext<'_>,
    election: &ElectionView,
    (old, order): (&str, &Handover),
    within: Duration,
) -> Result<(), CommandError> {
    let standing = |is_certain: bool| match &order.to {
        Some(to) => stands_without_us(if is_certain { "make" } else { "may make" }, &election.base, old, to, within),
        None => stands(if is_certain { "stands" } else { "may stand" }, &election.base, within),
    };
    let (may_stand, mut replaced) = (standing(false), None);
    let given = change(context, election, Some(&may_stand), |orders| {
        // One that has lapsed is deleted at once by the leader.
        replaced = orders.handover.replace(order.clone()).filter(|present| present.token == order.token);
    })
    .await;
    if let Err(failure) = given {
        return Err(unanswered(context, (old, order), &may_stand, failure).await);
    }
    context.stands(standing(true));
    if let Some(replaced) = replaced {
        Progress::new(context.output.format).tell(&format!("this replaces {}", replaced.ordered()));
    }
    Ok(())
}

/// Nobody tells the leader to stop once there is room, so the order is taken back if it stands. One that is not found may come yet.
async fn unanswered(
    context: &CommandContext<'_>,
    (old, order): (&str, &Handover),
    may_stand: &str,
    failure: CommandError,
) -> CommandError {
    let Some(why) = failure.sentence.strip_suffix(may_stand).filter(|_| !order.stop) else { return failure };
    context.stands(may_stand);
    let is_taken_back = take_back(context, order).await;
    context.standing.take();
    if !matches!(is_taken_back, Ok(true)) {
        return failure;
    }
    CommandError { sentence: format!("{why}the order was taken back, and {old} leads on"), ..failure }
}

/// There is room: the leader is told to stop. `false`: the order is gone.
pub(super) async fn begun(
    context: &CommandContext<'_>,
    order: &Handover,
    patience: &Patience,
    progress: &mut Progress,
) -> Result<bool, CommandError> {
    let is_ours = Cell::new(false);
    changed(context, patience, progress, |orders| is_ours.set(begin(orders, order))).await?;
    Ok(is_ours.get())
}

/// Another operator's order stays. Whether ours was there. A server that hangs takes one limit, and the next one has another.
pub(super) async fn take_back(context: &CommandContext<'_>, order: &Handover) -> Result<bool, CommandError> {
    let (patience, mut progress) = (Patience::new(context.asked.limit * 2), Progress::new(context.output.format));
    let was_there = Cell::new(false);
    changed(context, &patience, &mut progress, |orders| was_there.set(withdraw(orders, order) || was_there.get()))
        .await?;
    Ok(was_there.get())
}

/// Changes the orders over whatever session there is: done twice, it is the same.
async fn changed(
    context: &CommandContext<'_>,
    patience: &Patience,
    progress: &mut Progress,
    what: impl Fn(&mut Orders),
) -> Result<(), CommandError> {
    following::until(context, patience, progress, async |context, _| {
        let election = context.election().await?;
        change(context, &election, None, &what).await.map(Step::Done)
    })
    .await
}

fn withdraw(orders: &mut Orders, ours: &Handover) -> bool {
    orders.handover.take_if(|present| present.order == ours.order).is_some()
}

/// Another operator's order waits for its own room.
fn begin(orders: &mut Orders, ours: &Handover) -> bool {
    let present = orders.handover.as_mut().filter(|present| present.order == ours.order);
    present.map(|present| present.stop = true).is_some()
}

/// Who took the place of our order, or that it is gone; `None`: it stands.
pub(super) fn gone_meanwhile(election: &ElectionView, order: &Handover) -> Option<String> {
    let status = remedy::about_election("status", &election.base);
    match election.orders.handover.as_ref().or(election.lapsed.handover.as_ref()) {
        Some(present) if present.order == order.order => None,
        Some(other) => {
            Some(format!("meanwhile, {} took the place of this one; {status} tells who leads", other.ordered()))
        }
        None => Some(gone("handover", true, &status)),
    }
}

/// If the waiting ends now: the leader was told to stop.
pub(super) fn stands(how: &str, base: &str, within: Duration) -> String {
    let (length, status) = (words::length(within), remedy::about_election("status", base));
    format!("the handover {how}, and lapses {length} after it was given; {status} tells what becomes of it")
}

/// If the waiting ends now: nobody tells the leader to stop when there is room.
fn stands_without_us(make: &str, base: &str, old: &str, to: &str, within: Duration) -> String {
    let (length, again) = (words::length(within), remedy::about_election("handover", base));
    format!(
        "{old} was not told to stop, and leads on; the others {make} room for {to} until {length} after the order was given; \
         {again} --to {} gives it again",
        remedy::word(to)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_of_another_operator_is_neither_begun_nor_taken_back() {
        let (ours, other) = (Handover { order: "1".into(), ..Handover::default() }, "2".to_owned());
        let mut orders = Orders { handover: Some(ours.clone()), ..Orders::default() };
        assert!(begin(&mut orders, &ours) && orders.handover.as_ref().is_some_and(|present| present.stop));
        assert!(withdraw(&mut orders, &ours) && orders.handover.is_none() && !begin(&mut orders, &ours));
        for stop in [false, true] {
            let order = other.clone();
            let theirs =
                Orders { handover: Some(Handover { order, stop, ..Handover::default() }), ..Orders::default() };
            let mut orders = theirs.clone();
            assert!(!begin(&mut orders, &ours));
            assert!(!withdraw(&mut orders, &ours));
            assert_eq!(orders, theirs);
        }
    }

    #[test]
    fn an_order_that_has_lapsed_is_ours_until_somebody_deletes_it() {
        let ours = Handover { order: "1".into(), ..Handover::default() };
        let orders = Orders { handover: Some(ours.clone()), ..Orders::default() };
        let mut election = ElectionView { base: "/zk-leader-run/e".into(), lapsed: orders, ..ElectionView::default() };
        assert_eq!(gone_meanwhile(&election, &ours), None);
        election.lapsed = Orders::default();
        let said =
            "the handover lapsed, or was taken back by somebody, meanwhile; zk-leaderctl status e tells who leads";
        assert_eq!(gone_meanwhile(&election, &ours).as_deref(), Some(said));
        let (order, by, to, since) =
            ("2".to_owned(), "anna@adm".to_owned(), Some("d".to_owned()), Some(1_795_226_400_000));
        election.orders.handover = Some(Handover { order, by, to, since, for_ms: 60_000, ..Handover::default() });
        let said = "meanwhile, the order of anna@adm until 2026-11-21 02:01:00 UTC to hand over to d took the place of this one; \
                    zk-leaderctl status e tells who leads";
        assert_eq!(gone_meanwhile(&election, &ours).as_deref(), Some(said));
    }
}
