//! `token-check`: whether a fencing token is still the newest, by a quorum's word.
//!
//! Never: status 0 on the word of one server.

use serde_json::json;

use super::{Answer, CommandContext, CommandError};
use crate::zookeeper::admin::Facts;
use crate::zookeeper::admin::view::SlotView;

const NEWEST: u8 = 0;
const NOT_NEWEST: u8 = 1;

/// The term may change between our reading and the quorum's word; then we read again.
const TRIES: usize = 5;

/// A token compared with the newest tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// It is that of this term, which has this version.
    Newest { term_path: String, version: i32 },
    /// There is a newer one.
    Older { newest: i64 },
    /// It is newer than all that this server knows.
    Unseen { newest: i64 },
}

pub(super) async fn answer(context: &CommandContext<'_>, token: i64) -> Result<Answer, CommandError> {
    let (is_newest, newest) = check(context, token).await?;
    let text = match (context.output.format.is_object(), is_newest) {
        (true, _) => context.output.object(&json!({ "v": 1, "token": token, "newest": newest, "valid": is_newest })),
        (_, true) => format!("{token} is the newest token\n"),
        (_, false) if newest == 0 => format!("{token} is not the newest token: none was given yet\n"),
        (_, false) if newest > token => format!("{token} is not the newest token: that is {newest}\n"),
        (_, false) => format!("{token} was never given: the newest token is {newest}\n"),
    };
    Ok(Answer { text, status: if is_newest { NEWEST } else { NOT_NEWEST } })
}

async fn check(context: &CommandContext<'_>, token: i64) -> Result<(bool, i64), CommandError> {
    let mut unseen = None;
    for _ in 0..TRIES {
        let (base, slots) = context.slots().await?;
        match find(&slots, token) {
            Found::Newest { term_path, version } => {
                if context.client.has_version(&term_path, version).await? {
                    return Ok((true, token));
                }
                unseen = None;
            }
            Found::Older { newest } => return Ok((false, newest)),
            Found::Unseen { newest } => unseen = (newest > 0 || is_without_token(&slots)).then_some(newest),
        }
        context.client.catch_up(&base).await?;
    }
    let too_fast = || CommandError::not_known("the terms change faster than they can be read; try again");
    unseen.map(|newest| (false, newest)).ok_or_else(too_fast)
}

/// Whether all terms can be read, and none has begun.
fn is_without_token(slots: &[SlotView]) -> bool {
    !slots.is_empty() && slots.iter().all(|slot| slot.term.is_some_and(|term| term.version == 0))
}

/// With several slots, each has a newest token of its own.
pub(super) fn find(slots: &[SlotView], token: i64) -> Found {
    let terms = || slots.iter().filter_map(|slot| Some((slot, slot.term?)));
    if let Some((slot, Facts { version, .. })) = terms().find(|(_, term)| term.mzxid == token && term.version > 0) {
        return Found::Newest { term_path: slot.term_path.clone(), version };
    }
    let newest = terms().filter(|(_, term)| term.version > 0).map(|(_, term)| term.mzxid).max().unwrap_or(0);
    if newest > token { Found::Older { newest } } else { Found::Unseen { newest } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(mzxid: i64, version: i32) -> SlotView {
        SlotView { term: Some(Facts { version, mzxid, ..Facts::default() }), ..SlotView::default() }
    }

    #[test]
    fn a_token_is_the_newest_an_older_one_or_one_that_was_not_seen() {
        assert!(matches!(find(&[slot(7, 1)], 7), Found::Newest { version: 1, .. }));
        assert!(matches!(find(&[slot(9, 1), slot(7, 3)], 7), Found::Newest { version: 3, .. }));
        assert_eq!(find(&[slot(7, 1)], 6), Found::Older { newest: 7 });
        assert_eq!(find(&[slot(7, 1)], 8), Found::Unseen { newest: 7 });
        assert_eq!(find(&[slot(7, 0)], 7), Found::Unseen { newest: 0 }, "nobody was given the base's own mzxid");
    }
}
