//! `--watch`: an answer drawn again and again, through outages too. On a terminal the whole, elsewhere what is new.
//!
//! It ends by SIGINT, as any program does that has nothing to put in order: status 130 in a shell.
//!
//! Never: an old answer that looks like a new one.

use std::io::{IsTerminal as _, Write as _, stdout};
use std::time::Duration;

use rustix::termios::tcgetwinsize;
use tokio::time::sleep;

use super::output::{Output, moment};
use super::{Answer, CommandContext, CommandError, output_for};
use crate::config::ctl::Asked;
use crate::observe::words::printable;

const PAUSE: Duration = Duration::from_secs(1);

/// To the left upper corner; what was there is written over, line by line, so that nothing flickers.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";
const EVERYTHING: &str = "\x1b[2J";
/// Longer lines are cut off at the margin, while this is drawn.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

/// What is watched.
pub(super) trait View {
    type Seen;

    /// The verb of the command line.
    const VERB: &'static str;

    async fn look(&self, context: &CommandContext<'_>) -> Result<Self::Seen, CommandError>;

    /// The whole, for a terminal.
    fn screen(&self, seen: &Self::Seen, output: &Output) -> String;

    /// What has changed since the last look, or all; empty: nothing.
    fn news(&mut self, last: Option<&Self::Seen>, seen: &Self::Seen, output: &Output) -> String;
}

/// What was written last.
struct Shown<S> {
    seen: Option<S>,
    complaint: Option<CommandError>,
    drawn: bool,
}

/// Until it is interrupted, its reader is gone, or it was a mistake from the beginning.
pub(super) async fn for_ever<V: View>(asked: &Asked, mut view: V) -> Result<Answer, CommandError> {
    let mut shown = Shown { seen: None, complaint: None, drawn: false };
    let mut context = None;
    loop {
        let present = match context.take() {
            Some(context) => Ok(context),
            None => CommandContext::connect(asked).await,
        };
        let (seen, kept) = match present {
            Ok(present) => (view.look(&present).await, Some(present)),
            Err(error) => (Err(error), None),
        };
        // Only an outage passes; every other error ends the watch.
        if let Some(error) = seen.as_ref().err().filter(|error| error.status != super::NOT_KNOWN) {
            return Err(error.clone());
        }
        // After a failure the session may be gone: a new one, next time.
        context = kept.filter(|_| seen.is_ok());
        if !show(asked, &mut view, seen, &mut shown) {
            return Ok(Answer { text: String::new(), status: 0 });
        }
        sleep(PAUSE).await;
    }
}

/// `false`: the reader is gone.
fn show<V: View>(asked: &Asked, view: &mut V, seen: Result<V::Seen, CommandError>, shown: &mut Shown<V::Seen>) -> bool {
    let output = output_for(asked.format);
    let on_screen = asked.format.is_table() && stdout().is_terminal();
    let text = match &seen {
        _ if on_screen => drawn(view, &seen, shown, &output),
        Ok(seen) => view.news(shown.seen.as_ref(), seen, &output),
        Err(error) if shown.complaint.as_ref() == Some(error) => String::new(),
        Err(error) if asked.format.is_object() => output.one_object(&error.object()),
        Err(error) => format!("{}\n", printable(&error.sentence)),
    };
    shown.drawn = true;
    // An outage shows the last answer on a screen, and says so. Elsewhere all is said again after it.
    match seen {
        Ok(seen) => (shown.seen, shown.complaint) = (Some(seen), None),
        Err(error) => {
            shown.seen = shown.seen.take().filter(|_| on_screen);
            shown.complaint = Some(error);
        }
    }
    let mut output = stdout();
    text.is_empty() || output.write_all(text.as_bytes()).and_then(|()| output.flush()).is_ok()
}

fn drawn<V: View>(view: &V, seen: &Result<V::Seen, CommandError>, shown: &Shown<V::Seen>, output: &Output) -> String {
    let now = moment(output.now);
    let head = format!("zk-leaderctl {}, every second, Ctrl-C ends it        {now}\n\n", V::VERB);
    let body = match (seen, &shown.seen) {
        (Ok(seen), _) => view.screen(seen, output),
        (Err(error), None) => format!("{}\n", printable(&error.sentence)),
        (Err(error), Some(last)) => {
            let last = view.screen(last, &Output { coloured: false, ..*output });
            format!("{}\n\nwhat was seen last:\n\n{last}", printable(&error.sentence))
        }
    };
    let text = head + &body;
    let (lines, rows) = (text.lines().count(), rows());
    let fit = if lines > rows { rows.saturating_sub(1) } else { lines };
    let more = (lines > fit).then(|| format!("and {} lines more, for which this terminal is too small", lines - fit));
    let lines = text.lines().take(fit).chain(more.as_deref());
    let lines: String = lines.flat_map(|line| [line, REST_OF_LINE, "\r\n"]).collect();
    let first = if shown.drawn { "" } else { EVERYTHING };
    format!("{first}{HOME}{NO_WRAP}{lines}{REST_OF_SCREEN}{WRAP}")
}

/// Of the terminal, less the one where the cursor stands in the end.
fn rows() -> usize {
    let size = tcgetwinsize(stdout()).ok().filter(|size| size.ws_row > 1);
    size.map_or(usize::MAX, |size| usize::from(size.ws_row) - 1)
}
