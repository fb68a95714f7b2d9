//! `--to`: before the leader stops, the others make room for the target.
//!
//! Never: room while another one stands between the two, or after another term has begun.

use std::time::Duration;

use super::order::gone_meanwhile;
use super::successor::disabled;
use super::{Leader, No};
use crate::commands::orders::following::{self, Step};
use crate::commands::orders::{Patience, Progress};
use crate::commands::{CommandContext, CommandError};
use crate::zookeeper::admin::view::ElectionView;
use crate::zookeeper::schema::control::Handover;

/// The others make room within this, or the order is taken back.
const ROOM: Duration = Duration::from_secs(15);

/// The room before a target at one look.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Room {
    /// Only the leader stands before it.
    Made,
    /// This one still stands before it.
    NotYet {
        id: String,
    },
    Never {
        why: String,
    },
    /// Who leads is not known for now.
    Unknown(No),
}

fn room(election: &ElectionView, leader: &Leader, to: &str) -> Room {
    let old = &leader.holder.id;
    if let Some(why) = disabled(election) {
        return Room::Never { why: format!("nobody takes over: meanwhile {why}") };
    }
    match super::leader(election) {
        Ok(present) if present.token == leader.token => {}
        Err(no @ No::Unknown { .. }) => return Room::Unknown(no),
        _ => return Room::Never { why: format!("{old} does not lead any more") },
    }
    let Some(place) = election.line.iter().position(|candidate| candidate.id == to) else {
        return Room::Never { why: format!("{to} has left the line; {old} leads on") };
    };
    let mut before = election.line.iter().take(place).map(|candidate| &candidate.id);
    before.find(|id| **id != leader.holder.id).map_or(Room::Made, |id| Room::NotYet { id: id.clone() })
}

/// Until only the leader stands before the target, or why that does not come.
pub(super) async fn make_room(
    context: &CommandContext<'_>,
    leader: &Leader,
    (order, to): (&Handover, &str),
    within: Duration,
    progress: &mut Progress,
) -> Result<Result<(), No>, CommandError> {
    let patience = Patience::new(within.min(ROOM));
    following::until(context, &patience, progress, async |context, _| {
        let election = context.election().await?;
        // It lapses when our time is over.
        if let Some(why) = gone_meanwhile(&election, order).filter(|_| patience.lasts()) {
            return Ok(Step::Done(Err(No::Known(why))));
        }
        Ok(match room(&election, leader, to) {
            Room::Made => Step::Done(Ok(())),
            Room::Never { why } => Step::Done(Err(No::Known(why))),
            Room::Unknown(no) => Step::NotYet(Err(no)),
            Room::NotYet { id } => Step::NotYet(Err(No::Known(format!(
                "{id} does not make room for {to}; it may be cut off, or run an older version; {} leads on",
                leader.holder.id
            )))),
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::super::tests::election;
    use super::*;
    use crate::zookeeper::schema::control::Disabled;
    use crate::zookeeper::schema::lease::Holder;

    #[test]
    fn there_is_room_when_only_the_leader_of_that_term_stands_before_the_target() {
        let holder = Holder { id: "a".into(), ..Holder::default() };
        let of = |token, line: &[&str]| room(&election(token, line), &Leader { holder: holder.clone(), token: 7 }, "c");
        assert_eq!(of(7, &["a", "c", "b"]), Room::Made);
        assert_eq!(of(7, &["a", "b", "c"]), Room::NotYet { id: "b".into() });
        assert!(matches!(of(7, &["a", "b"]), Room::Never { why } if why.contains("left the line")));
        let later = of(8, &["a", "c", "b"]);
        assert!(
            matches!(later, Room::Never { why } if why.contains("does not lead any more")),
            "a leads, in a later term"
        );
        let mut disabled = election(7, &["a", "c"]);
        disabled.orders.disabled = Some(Disabled { by: "anna".into(), ..Disabled::default() });
        let room = room(&disabled, &Leader { holder, token: 7 }, "c");
        assert!(matches!(room, Room::Never { why } if why.contains("the election is disabled (by anna: ")));
    }
}
