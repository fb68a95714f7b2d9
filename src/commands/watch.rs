//! `status --watch`: the answer of `status`, drawn again and again, through outages too.
//!
//! Never: an old answer that looks like a new one.

use std::io::{IsTerminal as _, Write as _, stdout};
use std::time::Duration;

use tokio::time::sleep;

use super::output::moment;
use super::{Answer, CommandContext, CommandError, output_for, status};
use crate::clock;
use crate::config::ctl::{Asked, OutputFormat};
use crate::zookeeper::admin::view::ElectionView;

const PAUSE: Duration = Duration::from_secs(1);

/// To the left upper corner; what was there is written over, line by line, so that nothing flickers.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";
const EVERYTHING: &str = "\x1b[2J";

/// The last screen.
#[derive(Default)]
struct Shown {
    election: Option<ElectionView>,
    said: String,
    drawn: bool,
}

/// Until it is interrupted, its reader is gone, or it was a mistake from the beginning.
pub(super) async fn for_ever(asked: &Asked) -> Result<Answer, CommandError> {
    let mut shown = Shown::default();
    let mut context = None;
    loop {
        let present = match context.take() {
            Some(context) => Ok(context),
            None => CommandContext::connect(asked).await,
        };
        let (seen, kept) = match present {
            Ok(present) => (present.election().await, Some(present)),
            Err(error) => (Err(error), None),
        };
        // Only an outage passes; every other error ends the watch.
        if let Some(error) = seen.as_ref().err().filter(|error| error.status != super::NOT_KNOWN) {
            return Err(error.clone());
        }
        // After a failure the session may be gone: a new one, next time.
        context = kept.filter(|_| seen.is_ok());
        if !show(asked, seen, &mut shown) {
            return Ok(Answer { text: String::new(), status: 0 });
        }
        sleep(PAUSE).await;
    }
}

/// `false`: the reader is gone.
fn show(asked: &Asked, seen: Result<ElectionView, CommandError>, shown: &mut Shown) -> bool {
    let output = output_for(asked.format);
    let text = match (asked.format, &seen) {
        (OutputFormat::Json, Ok(election)) => status::json_line(election),
        (_, Ok(election)) => status::of(election, &output).text,
        (_, Err(error)) => format!("{}\n", error.sentence),
    };
    let on_screen = asked.format == OutputFormat::Table && stdout().is_terminal();
    let said = if on_screen {
        let before = if shown.drawn { HOME.to_owned() } else { format!("{EVERYTHING}{HOME}") };
        format!("{before}{}{REST_OF_SCREEN}", lines(&text, shown.election.as_ref(), &seen))
    } else if seen.as_ref().ok() == shown.election.as_ref() && seen.is_ok() || seen.is_err() && text == shown.said {
        return true;
    } else {
        text.clone()
    };
    (shown.drawn, shown.said) = (true, text);
    // An outage shows the last answer, and says so.
    if let Ok(election) = seen {
        shown.election = Some(election);
    } else if !on_screen {
        shown.election = None;
    }
    let mut output = stdout();
    output.write_all(said.as_bytes()).and_then(|()| output.flush()).is_ok()
}

fn lines(text: &str, last: Option<&ElectionView>, seen: &Result<ElectionView, CommandError>) -> String {
    let now = moment(clock::time_of_day());
    let head = format!("zk-leaderctl status, every second, Ctrl-C ends it        {now}\n\n");
    let below = match (seen, last) {
        (Err(_), Some(last)) => {
            let output =
                super::output::Output { format: OutputFormat::Table, coloured: false, now: clock::time_of_day() };
            format!("\nwhat was seen last:\n\n{}", status::of(last, &output).text)
        }
        _ => String::new(),
    };
    format!("{head}{text}{below}").lines().flat_map(|line| [line, REST_OF_LINE, "\r\n"]).collect()
}
