//! `--watch`: an answer drawn again and again, through outages too. On a terminal the whole, elsewhere what is new.
//!
//! It ends by SIGINT, as any program does that has nothing to put in order: status 130 in a shell.
//!
//! Never: an old answer that looks like a new one.

use std::cell::OnceCell;
use std::io::{self, IsTerminal as _, Write as _, stdout};
use std::os::fd::AsFd as _;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::termios::tcgetwinsize;
use tokio::time::sleep;

use super::output::{Output, moment};
use super::{Answer, CommandContext, CommandError, output_for};
use crate::cli::{unless_reader_is_gone, unwritten};
use crate::config::ctl::Asked;
use crate::exit::Status;
use crate::observe::words::printable;
use crate::zookeeper::admin::Tries;

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

    /// On a screen that is too small, the end is worth more than the beginning.
    const NEWEST_LAST: bool = false;

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
    let (mut context, mut only_one) = (None, OnceCell::new());
    loop {
        let present = match context.take() {
            Some(context) => Ok(context),
            None => CommandContext::connect(asked, Tries::Twice).await,
        };
        let (seen, kept) = match present {
            Ok(present) => {
                let present = CommandContext { only_one, ..present };
                let seen = view.look(&present).await;
                only_one = present.only_one.clone();
                (seen, Some(present))
            }
            Err(error) => (Err(error), None),
        };
        // Only an outage passes; every other error ends the watch.
        if let Some(error) = seen.as_ref().err().filter(|error| error.status != super::NOT_KNOWN) {
            return Err(error.clone());
        }
        // After a failure the session may be gone: a new one, next time.
        context = kept.filter(|_| seen.is_ok());
        if let Err(error) = show(asked, &mut view, seen, &mut shown).or_else(unless_reader_is_gone) {
            let sentence = unwritten(&error);
            return Err(CommandError { sentence, status: Status::InputOutput.code(), word: "not-written" });
        }
        sleep(PAUSE).await;
        if reader_is_gone() {
            return Ok(Answer { text: String::new(), status: 0 });
        }
    }
}

/// Nothing is written while nothing changes: a reader that has gone meanwhile is asked for.
fn reader_is_gone() -> bool {
    let output = stdout();
    let mut asked = [PollFd::new(output.as_fd(), PollFlags::empty())];
    let is_told = poll(&mut asked, PollTimeout::ZERO).is_ok_and(|found| found > 0);
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP;
    is_told && asked[0].revents().is_some_and(|events| events.intersects(gone))
}

fn show<V: View>(
    asked: &Asked,
    view: &mut V,
    seen: Result<V::Seen, CommandError>,
    shown: &mut Shown<V::Seen>,
) -> io::Result<()> {
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
    output.write_all(text.as_bytes()).and_then(|()| output.flush())
}

fn drawn<V: View>(view: &V, seen: &Result<V::Seen, CommandError>, shown: &Shown<V::Seen>, output: &Output) -> String {
    let (rows, columns) = size();
    let now = moment(output.now);
    let head = format!("zk-leaderctl {}, every second, Ctrl-C ends it        {now}\n\n", V::VERB);
    let complaint = |error: &CommandError| wrapped(&printable(&error.sentence), columns);
    let (head, body) = match (seen, &shown.seen) {
        (Ok(seen), _) => (head, view.screen(seen, output)),
        (Err(error), None) => (head, complaint(error)),
        (Err(error), Some(last)) => {
            let last = view.screen(last, &Output { coloured: false, ..*output });
            (format!("{head}{}\n\nwhat was seen last:\n\n", complaint(error)), last)
        }
    };
    let lines: String =
        fitted(&head, &body, rows, V::NEWEST_LAST).iter().flat_map(|line| [line, REST_OF_LINE, "\r\n"]).collect();
    let first = if shown.drawn { "" } else { EVERYTHING };
    format!("{first}{HOME}{NO_WRAP}{lines}{REST_OF_SCREEN}{WRAP}")
}

/// The lines that so many rows can show; of a table with the newest last: its headings, and the end.
fn fitted(head: &str, body: &str, rows: usize, is_newest_last: bool) -> Vec<String> {
    let lines: Vec<_> = head.lines().chain(body.lines()).map(str::to_owned).collect();
    if lines.len() <= rows {
        return lines;
    }
    let fit = rows.saturating_sub(1);
    let (count, headings) = (lines.len() - fit, head.lines().count() + 1);
    let small = "for which this terminal is too small";
    let (before, kept) = if is_newest_last && headings < fit { ("before these", headings) } else { ("more", fit) };
    let more = format!("and {count} lines {before}, {small}");
    let newest = lines.iter().skip(kept + count).cloned();
    lines.iter().take(kept).cloned().chain([more]).chain(newest).collect()
}

/// Broken at blanks, so that nothing of it is cut off.
fn wrapped(text: &str, columns: usize) -> String {
    let (mut all, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 {
            let is_full = width + 1 + length > columns;
            all.push(if is_full { '\n' } else { ' ' });
            width = if is_full { 0 } else { width + 1 };
        }
        all.push_str(word);
        width += length;
    }
    all
}

/// Of the terminal: the rows, less the one where the cursor stands in the end, and the columns.
fn size() -> (usize, usize) {
    let size = tcgetwinsize(stdout()).ok().filter(|size| size.ws_row > 1 && size.ws_col > 0);
    size.map_or((usize::MAX, usize::MAX), |size| (usize::from(size.ws_row) - 1, usize::from(size.ws_col)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_screen_shows_the_newest_of_a_history_and_the_first_of_a_list() {
        let body = "TERM\n1\n2\n3\n4\n5\n";
        let shown = |rows, newest| fitted("head\n\n", body, rows, newest).join("|");
        assert_eq!(shown(8, true), "head||TERM|1|2|3|4|5");
        let small = "for which this terminal is too small";
        assert_eq!(shown(7, true), format!("head||TERM|and 2 lines before these, {small}|3|4|5"));
        assert_eq!(shown(5, true), format!("head||TERM|and 4 lines before these, {small}|5"));
        assert_eq!(shown(7, false), format!("head||TERM|1|2|3|and 2 lines more, {small}"));
        assert_eq!(shown(4, true), format!("head||TERM|and 5 lines more, {small}"));
    }

    #[test]
    fn a_sentence_is_broken_at_blanks() {
        assert_eq!(wrapped("a bb ccc dd", 6), "a bb\nccc dd");
        assert_eq!(wrapped("abcdefgh i", 4), "abcdefgh\ni");
        assert_eq!(wrapped("a b", usize::MAX), "a b");
    }
}
