//! Parse, and end. The supervisor is not wired yet.

use std::process::ExitCode;

use zk_leader_run::cli::{self, Stop, Stream, Surroundings};
use zk_leader_run::{budget, exit};

fn main() -> ExitCode {
    let config = match cli::parse(std::env::args_os(), &Surroundings::of_this_process()) {
        Ok(config) => config,
        Err(stop) => return stop.print(),
    };
    if config.dry_run {
        return Stop::answer(budget::text(&config)).print();
    }
    let text = "zk-leader-run: not wired yet\n".to_owned();
    Stop { text, stream: Stream::Stderr, status: exit::Status::Software.code() }.print()
}
