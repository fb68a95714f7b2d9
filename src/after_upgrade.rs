//! The other side of an upgrade in place: a program that is asked whether it could take over, and one that does.

use std::fs::File;
use std::io::stdin;
use std::os::fd::IntoRawFd;
use std::process::ExitCode;

use tokio::runtime::Builder;

use crate::config::{Config, Monitoring, fixed};
use crate::core::machine::Misfit;
use crate::exit::Status;
use crate::guard::handle::Spawned;
use crate::guard::handle::upgrade::take_descriptor;
use crate::observe::{log, words};
use crate::supervisor::auxiliary::{self, Guards};
use crate::supervisor::upgrade::YES;
use crate::supervisor::upgrade::document::{Document, Unfit};
use crate::wiring;
use crate::zookeeper::schema::member::About;
use crate::zookeeper::upgrade::rehearse_login;

/// Tells the program that asks, in one line on standard output, whether this one could go on with the trial document on
/// standard input. Connects to no server, and changes nothing.
pub fn answer(config: &Config) -> ExitCode {
    match rehearse(config) {
        Ok(()) => print!("{YES}"),
        Err(why) => print!("{why}"),
    }
    ExitCode::SUCCESS
}

fn rehearse(config: &Config) -> Result<(), String> {
    let document = Document::read(stdin())?;
    check(&document, config)?;
    let silent = Config { monitoring: Monitoring { http: None, ..config.monitoring.clone() }, ..config.clone() };
    wiring::observers(&silent, About::default(), false).map_err(|refusal| refusal.sentence)?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let resumed = document.election.rehearse().await;
        resumed.map_err(|error| format!("the session cannot be resumed: {error}"))?;
        rehearse_login(&config.servers, &config.access).await
    })
}

fn check(document: &Document, config: &Config) -> Result<(), String> {
    if let (Some(file), None) = (&document.file, &config.file) {
        return Err(format!("the configuration file {file} is not there any more; put it back, or restart"));
    }
    let checked = document.check(&wiring::machine(config, wiring::instance()), &fixed::of(config));
    checked.map_err(|unfit| sentence(&unfit))
}

fn sentence(unfit: &Unfit) -> String {
    match unfit {
        Unfit::Changed(options) => format!("{options} has changed; a restart applies it"),
        Unfit::State(Misfit::Version(version)) => format!("the state is of version {version}"),
        Unfit::State(Misfit::Timing(error)) => format!("the timings do not fit the session: {}", words::misfit(error)),
        Unfit::State(Misfit::Lease(lease)) => {
            format!("the lease in force lasts {}, and would get another length", words::length(*lease))
        }
        Unfit::State(Misfit::Incomplete) => "the state is not complete".to_owned(),
    }
}

/// Goes on where the program before this one, in the same process, has stopped. If that fails, this process ends, and the
/// guard ends the command.
pub fn take_over(
    config: &Config,
    descriptor: i32,
    lead: impl FnOnce(&Config, Guards, Option<Box<Document>>) -> ExitCode,
) -> ExitCode {
    let mut lost = None;
    wiring::keep_name();
    let taken = read(descriptor).and_then(|mut document| {
        check(&document, config)?;
        let socket = document.socket.map(take_descriptor).transpose().map_err(|error| error.to_string());
        let socket = socket.unwrap_or_else(|error| {
            lost = Some(error);
            None
        });
        document.socket = socket.map(IntoRawFd::into_raw_fd);
        let command = Spawned::take_up(document.guard.clone()).map_err(|error| error.to_string())?;
        // Whoever held it open would keep the port from the process that is started after a killed one.
        let command = command.withholding(document.socket);
        let guards = auxiliary::fork_beside(command, wiring::guard(config), &wiring::auxiliary_commands(config));
        Ok((document, guards.map_err(|error| error.to_string())?))
    });
    log::start(config.log_format, config.log_level, wiring::log_owner(config));
    if let Some(error) = lost {
        wiring::tell_lost_socket(error);
    }
    match taken {
        Ok((document, (guards, lack))) => {
            tracing::info!("Upgraded from version {} to {}", document.program, env!("CARGO_PKG_VERSION"));
            if let Some(lack) = lack {
                tracing::warn!("The command keeps its guard of version {}: {lack}", document.program);
            }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::lease::TimingError;

    #[test]
    fn a_refusal_is_a_sentence() {
        let (grace, longest) = (Duration::from_secs(9), Duration::from_secs(7));
        let timing = Unfit::State(Misfit::Timing(TimingError::GraceTooLong { grace, longest }));
        let words = "the timings do not fit the session: a grace of 9s is longer than the lease allows, 7s";
        assert_eq!(sentence(&timing), words);
        let lease = Unfit::State(Misfit::Lease(Duration::from_secs(3)));
        assert_eq!(sentence(&lease), "the lease in force lasts 3s, and would get another length");
    }
}
