//! What becomes of an order that was given: it stands, whatever becomes of our session, and is followed over another one.
//!
//! Never: an order that is given a second time.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Patience, Progress};
use crate::commands::{CommandContext, CommandError, NOT_KNOWN, UNREACHABLE};
use crate::config::ctl::Asked;
use crate::zookeeper::admin::Tries;

/// The order that was given, and how to take it back: the end of a sentence.
pub(in crate::commands) type Standing = Rc<RefCell<Option<String>>>;

/// What one look has found.
pub(in crate::commands) enum Step<T> {
    Done(T),
    /// The answer if the time is over.
    NotYet(T),
}

/// In which session the order was seen last: a server of another one may not have heard of it yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::commands) struct Seen(Option<i64>);

impl Seen {
    /// Whether an order that stood is gone.
    pub fn is_gone(&mut self, stands: bool, session: i64) -> bool {
        if stands {
            self.0 = Some(session);
        }
        !stands && self.0 == Some(session)
    }
}

/// Looks again and again. A server that goes away is replaced by another one, as long as there is time.
pub(in crate::commands) async fn until<T>(
    context: &CommandContext<'_>,
    patience: &Patience,
    progress: &mut Progress,
    mut look: impl AsyncFnMut(&CommandContext<'_>, &mut Progress) -> Result<Step<T>, CommandError>,
) -> Result<T, CommandError> {
    let mut later: Option<CommandContext<'_>> = None;
    loop {
        match look(later.as_ref().unwrap_or(context), progress).await {
            Ok(Step::Done(answer)) => return Ok(answer),
            Ok(Step::NotYet(answer)) => {
                if !patience.wait().await {
                    return Ok(answer);
                }
            }
            Err(failure) if may_pass(&failure) => {
                progress
                    .tell(&format!("{}: another server is asked", failure.sentence.trim_end_matches("; try again")));
                later = Some(connected(context.asked, patience, failure).await?);
            }
            Err(failure) => return Err(failure),
        }
    }
}

async fn connected<'a>(
    asked: &'a Asked,
    patience: &Patience,
    mut failure: CommandError,
) -> Result<CommandContext<'a>, CommandError> {
    while patience.wait().await {
        match CommandContext::connect(asked, Tries::Twice).await {
            Ok(context) => return Ok(context),
            Err(error) if may_pass(&error) => failure = error,
            Err(error) => return Err(error),
        }
    }
    Err(failure)
}

/// Who waits for what becomes of an order that is gone meanwhile.
pub(in crate::commands) fn gone(what: &str, lasts: bool, remedy: &str) -> String {
    let how = if lasts { "lapsed, or was taken back by somebody," } else { "was taken back by somebody" };
    format!("the {what} {how} meanwhile; {remedy} tells who leads\n")
}

/// No answer came; a refusal, or an election that is not there, is one.
fn may_pass(failure: &CommandError) -> bool {
    failure.status == NOT_KNOWN && matches!(failure.word, UNREACHABLE | "not-known")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each server would refuse it alike.
    #[test]
    fn no_other_server_is_asked_after_a_refusal() {
        use crate::zookeeper::admin::AdminError;
        assert!(may_pass(&AdminError::Unknown(String::new()).into()));
        assert!(!may_pass(&AdminError::Refused(String::new()).into()));
        assert!(!may_pass(&AdminError::Forbidden(String::new()).into()));
    }

    #[test]
    fn an_order_is_gone_only_by_the_word_of_a_session_in_which_it_was_seen() {
        let mut seen = Seen::default();
        assert!(!seen.is_gone(false, 1) && !seen.is_gone(true, 1));
        assert!(!seen.is_gone(false, 2), "that server may be behind");
        assert!(!seen.is_gone(true, 2) && seen.is_gone(false, 2));
    }
}
