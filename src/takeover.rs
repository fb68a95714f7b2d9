//! The other side of an upgrade in place: a program that is asked whether it could take over, and one that does.

use std::fs::File;
use std::io::stdin;
use std::process::ExitCode;

use tokio::runtime::Builder;

use crate::config::{Config, Monitoring, fixed};
use crate::exit::Status;
use crate::guard::handle::Spawned;
use crate::guard::handle::upgrade::take_descriptor;
use crate::observe::log;
use crate::supervisor::auxiliary::{self, Guards};
use crate::supervisor::upgrade::YES;
use crate::supervisor::upgrade::document::Document;
use crate::wiring;

/// Tells the program that asks, in one line on standard output, whether this one could go on with the trial document on
/// standard input. Connects to no server, and changes nothing.
pub fn answer(config: &Config) -> ExitCode {
    wiring::keep_secrets(&config.access);
    match rehearse(config) {
        Ok(()) => print!("{YES}"),
        Err(why) => print!("{why}"),
    }
    ExitCode::SUCCESS
}

fn rehearse(config: &Config) -> Result<(), String> {
    let document = Document::read(stdin())?;
    document.check(&wiring::machine(config, wiring::instance()), &fixed::of(config))?;
    let silent = Config { monitoring: Monitoring { http: None, ..config.monitoring.clone() }, ..config.clone() };
    wiring::observers(&silent, false).map_err(|refusal| refusal.sentence)?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(document.election.rehearse()).map_err(|error| format!("the session cannot be resumed: {error}"))
}

/// Goes on where the program before this one, in the same process, has stopped. If that fails, this process ends, and the
/// guard ends the command.
pub fn take_over(
    config: &Config,
    descriptor: i32,
    lead: impl FnOnce(&Config, Guards, Option<Box<Document>>) -> ExitCode,
) -> ExitCode {
    wiring::keep_secrets(&config.access);
    wiring::keep_name();
    let taken = read(descriptor).and_then(|document| {
        document.check(&wiring::machine(config, wiring::instance()), &fixed::of(config))?;
        let command = Spawned::take_up(document.guard.clone()).map_err(|error| error.to_string())?;
        let guards =
            auxiliary::fork_beside(command, &wiring::auxiliary_commands(config)).map_err(|error| error.to_string())?;
        Ok((document, guards))
    });
    log::start(config.log_format, config.log_level, wiring::log_owner(config));
    match taken {
        Ok((document, guards)) => {
            tracing::info!("Upgraded from version {} to {}", document.program, env!("CARGO_PKG_VERSION"));
            lead(config, guards, Some(Box::new(document)))
        }
        Err(why) => {
            tracing::error!("The upgrade failed: {why}. The guard ends the command");
            ExitCode::from(Status::Software.code())
        }
    }
}

fn read(descriptor: i32) -> Result<Document, String> {
    let file = take_descriptor(descriptor).map_err(|error| format!("no document: {error}"))?;
    Document::read(File::from(file))
}
