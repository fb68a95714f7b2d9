//! What becomes of an order that was given: it stands, whatever becomes of our session, and is followed over another one.
//!
//! Never: an order that is given a second time, or that is held to stand because a server has changed.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::{Patience, Progress};
use crate::commands::{CommandContext, CommandError, NOT_KNOWN, UNREACHABLE, path_of};
use crate::config::ctl::Asked;
use crate::zookeeper::admin::Tries;

/// The order that was given, and how to take it back: the end of a sentence.
pub(in crate::commands) type Standing = Rc<RefCell<Option<String>>>;

/// Since when an order stands that is given now. By our own count: the clocks of the hosts may differ, and a host that hangs takes
/// no order back that has lapsed.
pub(in crate::commands) struct Given(Option<Patience>);

impl Given {
    pub fn now(lasts: Option<Duration>) -> Self {
        Self(lasts.map(Patience::new))
    }

    /// Whether it has not lapsed. It is written later, so it lasts a moment longer.
    pub fn lasts(&self) -> bool {
        self.0.as_ref().is_none_or(Patience::lasts)
    }
}

/// What one look has found.
pub(in crate::commands) enum Step<T> {
    Done(T),
    /// The answer if the time is over.
    NotYet(T),
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
                let sentence = failure.sentence.trim_end_matches("; try again");
                progress.tell(&format!("{sentence}: {} is asked", next_server(&context.asked.servers)));
                let connected = connected(context.asked, patience, failure).await?;
                later = Some(CommandContext { only_one: context.only_one.clone(), ..connected });
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn next_server(servers: &str) -> &'static str {
    if servers.contains(',') { "another server" } else { "the same server" }
}

async fn connected<'a>(
    asked: &'a Asked,
    patience: &Patience,
    mut failure: CommandError,
) -> Result<CommandContext<'a>, CommandError> {
    while patience.wait().await {
        match caught_up(asked).await {
            Ok(context) => return Ok(context),
            Err(error) if may_pass(&error) => failure = error,
            Err(error) => return Err(error),
        }
    }
    Err(failure)
}

/// A session whose server knows of the order that was given in an earlier one. So an order that it does not show is gone.
async fn caught_up(asked: &Asked) -> Result<CommandContext<'_>, CommandError> {
    let context = CommandContext::connect(asked, Tries::Twice).await?;
    context.client.catch_up(path_of(asked)).await?;
    Ok(context)
}

/// Who waits for what becomes of an order that is gone meanwhile.
pub(in crate::commands) fn gone(what: &str, lasts: bool, remedy: &str) -> String {
    let how = if lasts { "lapsed, or was taken back by somebody," } else { "was taken back by somebody" };
    format!("the {what} {how} meanwhile; {remedy} tells who leads")
}

/// No answer came; a refusal, or an election that is not there, is one.
pub(super) fn may_pass(failure: &CommandError) -> bool {
    failure.status == NOT_KNOWN && matches!(failure.word, UNREACHABLE | "not-known")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::admin::AdminError;

    #[test]
    fn another_server_is_asked_only_where_there_is_one() {
        assert_eq!(next_server("zk1:2181,zk2:2181"), "another server");
        assert_eq!(next_server("zk1:2181"), "the same server");
    }

    /// Each server would refuse it alike.
    #[test]
    fn no_other_server_is_asked_after_a_refusal() {
        assert!(may_pass(&AdminError::Unknown(String::new()).into()));
        assert!(!may_pass(&AdminError::Refused(String::new()).into()));
        assert!(!may_pass(&AdminError::Forbidden(String::new()).into()));
    }
}
