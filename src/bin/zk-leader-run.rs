//! Parse the command line, fork the guards, build the runtime, supervise, exit.

use std::ffi::OsString;
use std::io;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tracing::Level;
use zk_leader_run::cli::{EarlyExit, Stream, pages};
use zk_leader_run::config::{Config, FileRead, load, timing};
use zk_leader_run::core;
use zk_leader_run::core::action::ExitReason;
use zk_leader_run::exit::{self, Status};
use zk_leader_run::observe::log;
use zk_leader_run::supervisor::auxiliary::{self, Guards};
use zk_leader_run::supervisor::signals::HeldBack;
use zk_leader_run::supervisor::standstill::Memory;
use zk_leader_run::supervisor::upgrade::Plan;
use zk_leader_run::supervisor::upgrade::document::Document;
use zk_leader_run::supervisor::{Observers, SupervisorConfig};
use zk_leader_run::vouching::{Network, Socket};
use zk_leader_run::wiring::{Hindrance, Start};
use zk_leader_run::zookeeper::election::release_orphaned::{self, Orphaned, Outcome};
use zk_leader_run::{after_upgrade, dry_run, supervisor, wiring, zookeeper};

/// What panicked was logged.
fn main() -> ExitCode {
    catch_unwind(run).unwrap_or_else(|_| ExitCode::from(Status::Software.code()))
}

fn run() -> ExitCode {
    if let Some(page) = pages::RUN.asked_for(std::env::args_os().skip(1)) {
        return page.print();
    }
    let held = supervisor::hold_back();
    let (start, arguments) = wiring::start();
    let mut memory = match start {
        Start::Rejoins(descriptor) => match Memory::read(descriptor) {
            Ok(memory) => memory,
            Err(error) => return forgot(&error).print(),
        },
        Start::Usual | Start::Asked | Start::TakesOver(_) => Memory::default(),
    };
    let mut config = match settings(&start, arguments, &mut memory) {
        Ok(config) => config,
        Err(stop) => {
            held.let_go();
            let stream = if matches!(start, Start::Asked) { Stream::Stdout } else { stop.stream };
            return EarlyExit { stream, ..stop }.print();
        }
    };
    config.notices.extend(wiring::keep_secrets(&config.access));
    match start {
        Start::Usual | Start::Rejoins(_) => begin(&config, held, memory),
        Start::Asked => {
            held.let_go();
            after_upgrade::answer(&config)
        }
        Start::TakesOver(document) => after_upgrade::take_over(&config, document, |config, guards, before| {
            lead(config, guards, before, Memory::default())
        }),
    }
}

/// The configuration file is read once in the life of a process, and again at an upgrade.
fn settings(start: &Start, arguments: Vec<OsString>, memory: &mut Memory) -> Result<Config, EarlyExit> {
    let environment = wiring::process_environment(start);
    if !matches!(start, Start::Rejoins(_)) {
        return load::load(arguments, &environment);
    }
    let file = memory.file.take().map(|(path, options)| FileRead { path, options });
    load::load_again(arguments, &environment, file)
}

/// A program that takes over no command.
fn begin(config: &Config, held: HeldBack, memory: Memory) -> ExitCode {
    wiring::keep_name();
    if config.dry_run {
        held.let_go();
        return EarlyExit::answer(dry_run::text(config)).print();
    }
    if let Some(orphaned) = wiring::orphaned() {
        held.let_go();
        return release(config, &orphaned);
    }
    // Fork while there is only one thread.
    let guards = auxiliary::fork(wiring::guard(config), &wiring::auxiliary_commands(config));
    log::start(config.log_format, config.log_level, wiring::log_owner(config));
    match guards {
        Ok(guards) => lead(config, guards, None, memory),
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::from(Status::of_guard(&error).code())
        }
    }
}

/// After a standstill.
fn forgot(error: &io::Error) -> EarlyExit {
    let text = format!("zk-leader-run: what this process knew before it stood still cannot be read: {error}\n");
    EarlyExit { text, stream: Stream::Stderr, status: Status::Software.code() }
}

fn lead(config: &Config, guards: Guards, before: Option<Box<Document>>, memory: Memory) -> ExitCode {
    let about = wiring::about(config, guards.command.containment());
    let observers = match wiring::observers(config, about, before.is_some() || wiring::has_rejoined()) {
        Ok(observers) => observers,
        Err(refusal) => return EarlyExit::from(refusal).print(),
    };
    let network = match wiring::network(config, &observers, before.as_deref(), memory.address) {
        Ok(network) => network,
        Err(Hindrance::Refused(refusal)) => return EarlyExit::from(refusal).print(),
        Err(Hindrance::Ended(reason)) => return end_early(config, &reason),
    };
    tell_settings(config, &guards);
    let upgrade = Plan::new(wiring::upgrade(config), before);
    let path = upgrade.path();
    match supervise(config, guards, (observers, network), (upgrade, memory)) {
        Ok((ExitReason::StoodStill, _)) if config.secrets_read_once => {
            // It would wait for somebody who writes them into the pipe once more.
            tracing::error!(
                "The program cannot restart itself: its identities are in no file that can be read again; start it anew"
            );
            ExitCode::from(Status::Software.code())
        }
        Ok((ExitReason::StoodStill, memory)) => {
            tracing::warn!("{}", exit::sentence(&ExitReason::StoodStill));
            tracing::error!("The program cannot restart itself: {}", wiring::start_anew(config, &path, memory));
            ExitCode::from(Status::Software.code())
        }
        Ok((reason, _)) => end(config, &reason),
        Err(error) => {
            tracing::error!("The supervisor could not be started: {error}");
            ExitCode::from(Status::Software.code())
        }
    }
}

/// No change of phase tells it.
fn end_early(config: &Config, reason: &ExitReason) -> ExitCode {
    if *reason == ExitReason::Unreachable {
        tracing::error!("{}", exit::sentence(reason));
    } else {
        tracing::info!("{}", exit::sentence(reason));
    }
    end(config, reason)
}

fn end(config: &Config, reason: &ExitReason) -> ExitCode {
    if let ExitReason::BadTiming(error) = reason {
        tracing::error!("{}; {}", exit::sentence(reason), timing::remedy(&config.wishes, error));
    } else if exit::wants_a_remedy(reason) {
        tracing::error!("{}", exit::sentence(reason));
    } else if exit::is_worth_a_warning(reason, config.exit_choices(), config.wait) && !tracing::enabled!(Level::INFO) {
        // Else the line of the last change of phase has told it.
        tracing::warn!("{}", exit::sentence(reason));
    } else {
        tracing::debug!("{}", exit::sentence(reason));
    }
    ExitCode::from(exit::status(reason, config.exit_choices()))
}

/// What is as everybody expects is at debug.
fn tell_settings(config: &Config, guards: &Guards) {
    for notice in &config.notices {
        tracing::warn!("{notice}");
    }
    if let Some(file) = &config.file {
        tracing::info!(path = file.path, settings = file.options.len(), "Configuration file was read");
    }
    let containment = guards.command.containment();
    if containment.is_second_best() {
        tracing::info!("Containment: {containment}");
    } else {
        tracing::debug!("Containment: {containment}");
    }
    if let Some(lack) = guards.command.lease_file_lack() {
        tracing::info!("The command gets no lease file: {lack}");
    }
}

fn supervise(
    config: &Config,
    guards: Guards,
    (observers, network): (Observers, Option<Arc<Socket>>),
    (upgrade, memory): (Plan, Memory),
) -> io::Result<(ExitReason, Memory)> {
    let instance = wiring::instance();
    let about = observers.identity.about.clone();
    let ensemble = zookeeper::Settings { about, ..wiring::ensemble(config, instance, network.as_deref()) };
    // Nobody could ask us, and the records of our terms would promise what nobody knows of.
    let machine = core::machine::Settings {
        vouch: config.vouch.zip(network.as_ref()).map(|(vouch, _)| vouch.limit),
        ..wiring::machine(config, instance)
    };
    let preempt_after = config.leaders.preempt_after;
    let auxiliary = wiring::auxiliary_commands(config);
    let network = network.map(|socket| -> Arc<dyn Network> { socket });
    let supervisor = SupervisorConfig { observers, auxiliary, preempt_after, network, upgrade: Some(upgrade), memory };
    let runtime = runtime()?;
    let end = runtime.block_on(async { supervisor::run(machine, ensemble, guards, supervisor).await });
    // Do not wait for a name resolution: getaddrinfo(3) cannot be cancelled.
    runtime.shutdown_background();
    end
}

/// The releaser: what the guard becomes after the supervisor was killed.
fn release(config: &Config, orphaned: &Orphaned) -> ExitCode {
    log::start(config.log_format, config.log_level, wiring::log_owner(config));
    let ensemble = wiring::ensemble(config, wiring::instance(), None);
    let outcome = runtime().map_err(|error| error.to_string()).and_then(|runtime| {
        let outcome = runtime.block_on(release_orphaned::free_record(ensemble, orphaned));
        runtime.shutdown_background();
        outcome.map_err(|error| error.to_string())
    });
    match outcome {
        Ok(Outcome::Freed) => {
            tracing::warn!(token = orphaned.token, "The supervisor was killed; its lease was released");
        }
        Ok(Outcome::NotOurs) => tracing::info!(token = orphaned.token, "The killed supervisor's lease is over already"),
        Err(error) => {
            tracing::warn!(token = orphaned.token, error, "The killed supervisor's lease is left to run out");
            return ExitCode::from(Status::Unavailable.code());
        }
    }
    ExitCode::SUCCESS
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
