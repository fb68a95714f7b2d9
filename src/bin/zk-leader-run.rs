//! Parse, fork the guard, build the runtime, supervise, exit; nothing else.

use std::process::ExitCode;

use zk_leader_run::cli::{self, Stop, Surroundings};
use zk_leader_run::config::Config;
use zk_leader_run::core::action::ExitReason;
use zk_leader_run::guard::handle::{self, Spawned};
use zk_leader_run::observe::log;
use zk_leader_run::{budget, exit, supervisor, wiring};

fn main() -> ExitCode {
    let config = match cli::parse(std::env::args_os(), &Surroundings::of_this_process()) {
        Ok(config) => config,
        Err(stop) => return stop.print(),
    };
    if config.dry_run {
        return Stop::answer(budget::text(&config)).print();
    }
    // Before there is a second thread.
    let guard = handle::fork(wiring::guard(&config));
    log::start(config.log_format, config.log_level);
    let reason = guard.map_err(|error| {
        tracing::error!("{error}");
        exit::Status::of_guard(&error)
    });
    match reason.and_then(|guard| run(&config, guard)) {
        Ok(reason) => {
            tracing::debug!("{}", exit::sentence(&reason));
            ExitCode::from(exit::status(&reason, config.exit_choices()))
        }
        Err(status) => ExitCode::from(status.code()),
    }
}

fn run(config: &Config, guard: Spawned) -> Result<ExitReason, exit::Status> {
    for notice in &config.notices {
        tracing::warn!("{notice}");
    }
    tracing::info!("Containment: {}", guard.containment());
    let instance = wiring::instance();
    let (machine, ensemble) = (wiring::machine(config, instance), wiring::ensemble(config, instance));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime
        .and_then(|runtime| runtime.block_on(async { supervisor::run(machine, ensemble, guard.into_handle()?).await }))
        .map_err(|error| {
            tracing::error!("The supervisor could not be started: {error}");
            exit::Status::Software
        })
}
