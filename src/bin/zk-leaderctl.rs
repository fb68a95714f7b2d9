//! Parse the command line, query the ensemble, print.

use std::ffi::OsString;
use std::process::ExitCode;

use zk_leader_run::cli::{EarlyExit, Stream, completion, pages};
use zk_leader_run::config::ctl;
use zk_leader_run::config::source::process_environment::ProcessEnvironment;
use zk_leader_run::{commands, wiring};

fn main() -> ExitCode {
    let typed: Vec<_> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(words) = completion::asked_for(&typed) {
        complete(words);
        return ExitCode::SUCCESS;
    }
    if let Some(page) = pages::CTL.asked_for(std::env::args_os().skip(1)) {
        return page.print();
    }
    match ctl::load(std::env::args_os(), &ProcessEnvironment::of_this_process()) {
        Ok(mut asked) => {
            asked.notices.extend(wiring::keep_secrets(&asked.access));
            commands::run(&asked)
        }
        Err(stop) => stop.print(),
    }
}

/// What the scripts in `packaging/completions` ask, at each press of the key.
fn complete(words: &[String]) {
    let Some(completion) = completion::of(words) else { return };
    let question = completion.question.iter().map(OsString::from);
    let Ok(asked) = ctl::load(question, &ProcessEnvironment::of_this_process()) else { return };
    // A completion has no place for a notice.
    drop(wiring::keep_secrets(&asked.access));
    let asked = ctl::Asked { limit: commands::completion::LIMIT, ..asked };
    EarlyExit { text: commands::completion::values(&completion, &asked), stream: Stream::Stdout, status: 0 }.print();
}
