//! `lease`: how long the command may still act, from its lease file. No server is asked.
//!
//! Never: status 0 in doubt.

use std::time::Duration;

use serde_json::json;

use super::output::{Cell, Output, Tone};
use super::{Answer, CommandError, in_millis, millis};
use crate::clock;
use crate::config::ctl::LeaseQuestion;
use crate::config::error::quoted;
use crate::guard::lease_file::layout::{LeaseState, LeaseView};
use crate::guard::lease_file::reading;
use crate::observe::words;

const MAY_ACT: u8 = 0;
const MAY_NOT_ACT: u8 = 1;

pub(super) fn answer(question: &LeaseQuestion, output: Output) -> Result<Answer, CommandError> {
    let denied = |sentence| CommandError { sentence, status: MAY_NOT_ACT, word: "may-not-act" };
    let Some((file, own)) = &question.which else {
        let missing = "there is no lease file here: ZK_LEADER_LEASE and ZK_LEADER_TOKEN are not both set. In a command of \
                       zk-leader-run, its log says why; elsewhere, name the FILE";
        return Err(denied(missing.to_owned()));
    };
    let read = reading::read(file);
    let view = read.map_err(|error| denied(format!("the lease file cannot be read: {error}")))?;
    if let Some(own) = own.filter(|own| *own != view.token && view.state != LeaseState::Over) {
        let file = quoted(&file.to_string_lossy());
        return Err(denied(format!("{file} is about the term with token {}; ours ({own}) is over", view.token)));
    }
    let now = clock::now().lease;
    let left = in_millis(view.left(now));
    let time = Time { left, stop_in: in_millis(now.until(view.deadlines.stop_at)), at_least: question.at_least };
    let status = if time.may_act() { MAY_ACT } else { MAY_NOT_ACT };
    Ok(Answer { text: text(&view, &time, output), status })
}

struct Time {
    left: Duration,
    stop_in: Duration,
    /// `--at-least`.
    at_least: Duration,
}

impl Time {
    /// What is asked for, and not left.
    fn missing(&self) -> Duration {
        self.at_least.saturating_sub(self.left)
    }

    fn may_act(&self) -> bool {
        !self.left.is_zero() && self.missing().is_zero()
    }
}

fn text(view: &LeaseView, time: &Time, output: Output) -> String {
    let Time { left, stop_in, at_least } = *time;
    let (missing, may_act) = (time.missing(), time.may_act());
    let state = match view.state {
        _ if left.is_zero() => "over",
        LeaseState::Leading => "leading",
        LeaseState::Paused => "paused",
        LeaseState::Stopping => "stopping",
        LeaseState::Over => "over",
    };
    let LeaseView { token, term, .. } = *view;
    if output.format.is_object() {
        let (left, stop_in) = (millis(left), millis(stop_in));
        let answer = json!({
            "v": 1, "may_act": may_act, "state": state, "left_ms": left, "missing_ms": millis(missing),
            "stop_in_ms": stop_in, "token": token, "term": term
        });
        return output.object(&answer);
    }
    let tone = if may_act { Tone::Good } else { Tone::Bad };
    let mut facts = vec![("left", Cell::new(words::length(left), tone)), ("state", Cell::from(state))];
    if !left.is_zero() {
        let stop = if view.state == LeaseState::Stopping {
            "sent".to_owned()
        } else {
            format!("in {}", words::length(stop_in))
        };
        facts.extend([("stop signal", Cell::from(stop)), ("token", Cell::from(token.to_string()))]);
        facts.push(("term", Cell::from(term.to_string())));
    }
    if !missing.is_zero() {
        let text = format!("{} of the {} of --at-least", words::length(missing), words::length(at_least));
        facts.push(("missing", Cell::new(text, Tone::Bad)));
    }
    output.facts(&facts)
}
