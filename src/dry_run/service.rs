//! Restarts and time limits in words. Only limits that are set have a row.

use std::time::Duration;

use crate::config::error::quoted;
use crate::core::restart::{RestartOn, Rules};
use crate::core::settings::{OnExit, Service};
use crate::observe::words::length;
use crate::zookeeper::schema::once::{Once, Per};

pub(super) type Rows = Vec<(&'static str, String)>;

/// The effect of `--on-exit restart`.
pub(super) fn restarts(rules: &Rules) -> String {
    let when = match rules.on {
        RestartOn::Failure => "go on leading, and start it again unless its status is 0",
        RestartOn::Always => "go on leading, and start it again",
    };
    let unwanted: Vec<_> = rules.no_restart.iter().map(|status| status.to_string()).collect();
    let unless = match (rules.on, unwanted.is_empty()) {
        (_, true) => String::new(),
        (RestartOn::Failure, false) => format!(", {}", unwanted.join(", ")),
        (RestartOn::Always, false) => format!(" unless its status is {}", unwanted.join(", ")),
    };
    format!("{when}{unless}")
}

pub(super) fn rows(service: &Service, on_exit: OnExit) -> Rows {
    let rules = &service.restart;
    let stand_back = length(service.stand_back);
    let mut rows = Vec::new();
    if on_exit == OnExit::Restart {
        let delays = format!("{} doubling to {}", length(rules.delay), length(rules.longest_delay));
        rows.push(("pause before a restart", delays));
        let window = length(rules.window);
        rows.push((
            "crash loop",
            match rules.most {
                None => "no limit on restarts".to_owned(),
                Some(0) => format!("after a failure resign, and stand back for {stand_back}"),
                Some(most) => {
                    format!("at most {most} restarts in {window}; then resign, and stand back for {stand_back}")
                }
            },
        ));
    }
    if !rules.min_interval.is_zero() {
        rows.push(("between two starts", format!("at least {}", length(rules.min_interval))));
    }
    let limit = |limit: Option<Duration>, then: &str| limit.map(|limit| format!("{}, then {then}", length(limit)));
    let timeout = limit(service.timeout, if on_exit == OnExit::Exit { "stopped, with status 124" } else { "stopped" });
    rows.extend(timeout.map(|text| ("time limit of a run", text)));
    let deadline = limit(service.start_deadline, "skip the run, with status 0");
    rows.extend(deadline.map(|text| ("start deadline", text)));
    rows
}

/// How often the command runs, for `--dry-run`.
pub(super) fn runs(once: Option<&Once>) -> String {
    let per = match once.map(|once| &once.per) {
        None => return "whenever this host leads".to_owned(),
        Some(Per::Slot(key)) => format!("for slot {}", quoted(key)),
        Some(Per::Period(period)) => {
            let (period, half) = (length(*period), length(*period / 2));
            format!("per {period}: not if a run started later than {half} before this call joined")
        }
    };
    if once.is_some_and(|once| once.retry_failed) {
        format!("at least once {per}; one that failed or was interrupted does not count")
    } else {
        format!("at most once {per}; one that failed or was interrupted is not repeated")
    }
}
