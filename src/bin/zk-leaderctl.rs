//! Parse the command line, query the ensemble, print.

use std::process::ExitCode;

use zk_leader_run::config::ctl;
use zk_leader_run::config::source::process_environment::ProcessEnvironment;
use zk_leader_run::{commands, wiring};

fn main() -> ExitCode {
    match ctl::load(std::env::args_os(), &ProcessEnvironment::of_this_process()) {
        Ok(asked) => {
            wiring::keep_secrets(&asked.access);
            commands::run(&asked)
        }
        Err(stop) => stop.print(),
    }
}
