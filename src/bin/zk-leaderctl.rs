//! Parse the command line, query the ensemble, print.

use std::process::ExitCode;

use zk_leader_run::cli::pages;
use zk_leader_run::config::ctl;
use zk_leader_run::config::source::process_environment::ProcessEnvironment;
use zk_leader_run::{commands, wiring};

fn main() -> ExitCode {
    if let Some(page) = pages::CTL.asked_for(std::env::args_os().skip(1)) {
        return page.print();
    }
    match ctl::load(std::env::args_os(), &ProcessEnvironment::of_this_process()) {
        Ok(asked) => {
            wiring::keep_secrets(&asked.access);
            commands::run(&asked)
        }
        Err(stop) => stop.print(),
    }
}
