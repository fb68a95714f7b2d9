//! Parse, and end. The supervisor is not wired yet.

use std::process::ExitCode;

use zk_leader_run::cli::{self, Stop, Surroundings};
use zk_leader_run::observe::log;
use zk_leader_run::{budget, exit};

fn main() -> ExitCode {
    let config = match cli::parse(std::env::args_os(), &Surroundings::of_this_process()) {
        Ok(config) => config,
        Err(stop) => return stop.print(),
    };
    if config.dry_run {
        return Stop::answer(budget::text(&config)).print();
    }
    log::start(config.log_format, config.log_level);
    for notice in &config.notices {
        tracing::warn!("{notice}");
    }
    tracing::error!("not wired yet");
    ExitCode::from(exit::Status::Software.code())
}
