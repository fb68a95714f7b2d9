//! The loop that drives the machine, carries out its actions and tells the observers. It does not decide and does not
//! block; its only clock is [`crate::clock`].

pub mod auxiliary;
mod command_guard;
mod effects;
pub mod guard_interface;
mod memory_limit;
mod reporter;
pub mod signals;
pub mod standstill;
pub mod upgrade;
mod zombies;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use nix::sys::signal::Signal;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

use crate::background::{self, or_never};
use crate::clock::{self, SuspendWatch};
use crate::core::action::{Action, ExitReason, PhaseName};
use crate::core::event::Event;
use crate::core::machine::{Machine, RELEASE_LIMIT, Settings};
use crate::core::operator_orders::{OperatorOrders, Orders};
use crate::core::preemption::Preemption;
use crate::core::settings::OnPause;
use crate::core::time::Now;
use crate::guard::probe::Prober;
use crate::observe::console;
use crate::observe::http::{self, Identity, Listener};
use crate::observe::log::OutageSettings;
use crate::observe::status_publisher::StatusPublisher;
use crate::observe::systemd;
use crate::observe::vouching;
use crate::observe::waiting::{self, Manner};
use crate::observe::words;
use crate::vouching::{Direct, Dropped, Network};
use crate::zookeeper::schema::once::Once;
use crate::zookeeper::{self, Election};

use auxiliary::{AuxiliaryCommands, Guards};
use command_guard::CommandGuard;
use effects::Effects;
use guard_interface::Guard;
use memory_limit::MemoryLimit;
use reporter::Reporter;
use signals::Received;
pub use signals::{SignalStream, hold_back};
use standstill::Memory;
use upgrade::{Plan, Upgrade, exchange};

/// How long closing the session may take at the end; then it is left to expiry.
const CLOSE_LIMIT: Duration = Duration::from_millis(500);

/// How long those to whom we promised something may take to confirm that we are gone.
const GONE_LIMIT: Duration = Duration::from_millis(300);

/// The observers of the election.
#[derive(Debug)]
pub struct Observers {
    pub identity: Identity,
    /// How people are informed while we wait.
    pub manner: Manner,
    /// `--http`, already bound.
    pub http: Option<Listener>,
    pub systemd: Option<systemd::Settings>,
}

/// The parts beside the machine, the ensemble and the command's guard.
#[derive(Debug)]
pub struct SupervisorConfig {
    pub observers: Observers,
    pub auxiliary: auxiliary::Settings,
    /// `--preempt-after`.
    pub preempt_after: Option<Duration>,
    /// How other hosts reach this one; `None`: without `--vouch`.
    pub network: Option<Arc<dyn Network>>,
    /// `None`: this process cannot be upgraded.
    pub upgrade: Option<Plan>,
    /// Of this process before its last standstill.
    pub memory: Memory,
}

/// Runs the election until the process has to end. If that is to execute its program anew, the program needs the memory.
///
/// Boxed, as what other crates call: an `async fn` is compiled anew in each of them.
///
/// # Errors
/// If signals cannot be caught, or a socket cannot be registered.
pub fn run(
    settings: Settings,
    ensemble: zookeeper::Settings,
    guards: Guards,
    mut config: SupervisorConfig,
) -> LocalBoxFuture<'static, io::Result<(ExitReason, Memory)>> {
    Box::pin(async move {
        let limit = MemoryLimit::insert();
        let had_terminal = config.memory.had_terminal || config.upgrade.as_ref().is_some_and(|plan| plan.had_terminal);
        let signals = SignalStream::new(had_terminal)?;
        if let Some(plan) = &mut config.upgrade {
            (plan.limit, plan.had_terminal) = (Some(limit.clone()), signals.had_terminal);
        }
        let guards = guards.into_handles()?;
        zombies::adopt(guards.pids())?;
        let end = supervise(settings, ensemble, guards, signals, config).await;
        limit.lift();
        end
    })
}

/// The part of [`run`] that changes nothing process-wide.
///
/// # Errors
/// If a socket cannot be registered.
pub fn supervise(
    settings: Settings,
    ensemble: zookeeper::Settings,
    guards: Guards<Guard>,
    mut signals: SignalStream,
    config: SupervisorConfig,
) -> LocalBoxFuture<'static, io::Result<(ExitReason, Memory)>> {
    Box::pin(async move {
        let mut supervisor = Box::pin(Supervisor::new(&settings, ensemble, guards, config)).await?;
        let reason = supervisor.run(&mut signals).await;
        Ok(Box::pin(supervisor.close(&mut signals, reason)).await)
    })
}

fn outage(settings: &Settings, direct: Option<&Direct>) -> OutageSettings {
    OutageSettings { vouches: direct.is_some(), freezes: settings.on_pause == OnPause::Freeze }
}

/// Drives the machine, carries out its actions and tells the observers.
struct Supervisor {
    machine: Machine,
    effects: Effects,
    /// Answers of `effects.election`.
    answers: UnboundedReceiver<Event>,
    new_orders: watch::Receiver<Orders>,
    orders: OperatorOrders,
    /// A job that no other host repeats.
    runs_once: bool,
    preemption: Preemption,
    publisher: StatusPublisher,
    reporter: Reporter,
    /// Do not wait for the last hooks.
    stop_again: bool,
    upgrade: Option<Upgrade>,
}

impl Supervisor {
    async fn new(
        settings: &Settings,
        ensemble: zookeeper::Settings,
        guards: Guards<Guard>,
        config: SupervisorConfig,
    ) -> io::Result<Self> {
        let (sender, answers) = unbounded_channel();
        let (upgrade, before) = config.upgrade.map(Plan::split).unzip();
        let before = before.flatten();
        let telling = sender.clone();
        let is_asked = config.memory.upgrade;
        let runs_once = ensemble.once.as_ref().is_some_and(Once::is_at_most_once);
        let (machine, election) =
            Box::pin(exchange::begin(settings, ensemble, sender, before.as_deref(), config.memory)).await?;
        let said = before.as_ref().and_then(|before| before.said.clone()).unwrap_or_default();
        let direct = config
            .network
            .map(|network| Direct::new(network, (machine.instance(), said), election.neighbourhood(), telling));
        let publisher = StatusPublisher::new(clock::now(), machine.snapshot(), &config.observers.identity);
        let (auxiliary, guards) = AuxiliaryCommands::new(config.auxiliary, guards, &publisher.metrics())?;
        let guard = CommandGuard::new(guards, auxiliary.guards())?;
        let dropped = direct.as_ref().map(Direct::dropped);
        start_observers(config.observers, &publisher, &election, (guard.prober(), dropped))?;
        let mut supervisor = Self {
            machine,
            answers,
            new_orders: election.orders(),
            effects: Effects { election, outage: outage(settings, direct.as_ref()), direct, guard, auxiliary },
            orders: OperatorOrders::default(),
            runs_once,
            preemption: Preemption::new(config.preempt_after),
            publisher,
            reporter: Reporter::default(),
            stop_again: false,
            upgrade,
        };
        match before {
            Some(before) => supervisor.resume(clock::now(), *before),
            None if is_asked => drop(supervisor.begin_upgrade()),
            None => {}
        }
        Ok(supervisor)
    }

    /// The loop. Returns the reason to exit.
    async fn run(&mut self, signals: &mut SignalStream) -> ExitReason {
        let mut suspend = SuspendWatch::new();
        let mut events: Vec<Event> = self.effects.auxiliary.opening().chain([Event::Ticked]).collect();
        loop {
            let now = clock::now();
            if suspend.jumped() {
                events.insert(0, Event::ClockJumped);
            }
            if let Some(reason) = events.drain(..).find_map(|event| self.handle(now, event)) {
                return reason;
            }
            self.advance_upgrade(now);
            let slept = clock::now();
            let until_deadline = self.until_deadline(slept);
            events.push(tokio::select! {
                biased;
                received = signals.next() => self.heed(received),
                event = self.effects.guard.next() => event,
                // Before ZooKeeper's answers, so that known orders are applied before a take-over.
                Ok(()) = self.new_orders.changed() => self.store_orders(),
                Some(event) = self.answers.recv() => event,
                event = self.effects.auxiliary.next() => event,
                // On `CLOCK_MONOTONIC`, which may be slewed against the lease's clock by a tenth. Waking early is harmless,
                // because the machine is asked again; deadlines that must not be late are kept by the guard.
                () = or_never(until_deadline.map(tokio::time::sleep)) => Event::Ticked,
                () = self.publisher.liveness().asked() => Event::Ticked,
                () = or_never(self.upgrade.as_mut().map(Upgrade::next)) => Event::Ticked,
            });
            if let Some(deadline) = until_deadline {
                standstill::report(slept, deadline, &self.machine.snapshot());
            }
        }
    }

    fn heed(&mut self, received: Received) -> Event {
        match received {
            Received::Stop => Event::StopRequested,
            Received::Upgrade => self.begin_upgrade(),
            // Where the guard could take no order any more, it would be killed.
            Received::HangUp | Received::Forward(_)
                if self.machine.snapshot().run.is_some() && !self.effects.guard.has_room() =>
            {
                tracing::debug!(?received, "The signal is dropped: the guard has not read those before it");
                Event::Ticked
            }
            Received::HangUp => Event::HungUp,
            Received::Forward(signal) => {
                self.report_unforwarded(signal);
                Event::SignalReceived { signal }
            }
        }
    }

    /// Who sent one of these is told that nobody heard it. The others come from the kernel or a terminal.
    fn report_unforwarded(&self, signal: i32) {
        let is_sent = [Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2].iter().any(|sent| *sent as i32 == signal);
        if is_sent && self.machine.snapshot().run.is_none() {
            let signal = words::signal(signal);
            tracing::info!("{signal} is for the command, which does not run here now: nothing is done");
        }
    }

    /// Handles an event, and what it means for operator orders and preemption. Returns the reason to exit, if any.
    #[must_use]
    fn handle(&mut self, now: Now, event: Event) -> Option<ExitReason> {
        // A start that is due in this turn must not come before an order that was just stored.
        let mut exit = if event == Event::Ticked { self.obey(now) } else { None };
        exit = exit.or(self.drive(now, event));
        exit = exit.or(self.obey(now));
        if self.preemption.judge(now.lease, &self.machine.snapshot()) {
            self.effects.election.preempt();
        }
        exit
    }

    /// Tells the machine what the operator's orders mean for it now.
    #[must_use]
    fn obey(&mut self, now: Now) -> Option<ExitReason> {
        let snapshot = self.machine.snapshot();
        self.orders.note_run(self.runs_once && snapshot.run.is_some());
        let token = snapshot.held_term.map(|held| held.grant.token);
        let mut exit = None;
        for barred in self.orders.judge(now.lease, token).into_iter().flatten() {
            exit = exit.or(self.drive(now, barred));
        }
        exit
    }

    /// `None`: there is no deadline.
    fn until_deadline(&self, now: Now) -> Option<Duration> {
        let (orders, preemption) = (self.orders.next_deadline(), self.preemption.next_deadline());
        let deadlines = [self.machine.next_deadline(now), orders, preemption];
        deadlines.into_iter().flatten().min().map(|deadline| now.lease.until(deadline))
    }

    /// The next event applies them.
    fn store_orders(&mut self) -> Event {
        self.orders.hear(clock::now().lease, *self.new_orders.borrow_and_update());
        Event::Ticked
    }

    /// Gives the machine one event and carries out its actions.
    #[must_use]
    fn drive(&mut self, now: Now, event: Event) -> Option<ExitReason> {
        if event == Event::StopRequested {
            self.say_stop();
        }
        // Who moves to another address loses its connection.
        if matches!(event, Event::Connected { .. } | Event::ContactRestored { .. }) {
            self.effects.direct.iter().for_each(Direct::check);
        }
        let actions = self.machine.handle(now, event);
        self.publisher.publish(now, &event, &actions, self.machine.snapshot());
        if !waiting::waits(self.machine.phase()) {
            console::hide();
        }
        self.effects.auxiliary.on_event(now.lease, &event);
        let exit = self.effects.carry_out_all(&actions);
        self.effects.auxiliary.run_next_hook(now.lease);
        self.report(now, &event, &actions);
        exit
    }

    /// Says what a request to stop does that changes no phase.
    fn say_stop(&mut self) {
        if self.machine.hastens_stop() {
            tracing::warn!(why = "stop-again", "Stop requested again: killing all that still runs");
            self.stop_again = true;
            return;
        }
        match self.machine.phase() {
            PhaseName::Stopping => tracing::info!(
                why = "stop-requested",
                "Stop requested while a stop is under way: this process ends after it; a second signal kills what still runs"
            ),
            PhaseName::Releasing => tracing::info!(
                why = "stop-requested",
                "Stop requested: this process waits no longer than {} for ZooKeeper to free the lease",
                words::length(RELEASE_LIMIT)
            ),
            _ => {}
        }
    }

    /// Publishes what has changed about us in `ZooKeeper`.
    fn report(&mut self, now: Now, event: &Event, actions: &[Action]) {
        let (snapshot, ineligibilities) = (self.machine.snapshot(), self.machine.ineligibilities());
        let news = self.reporter.update((now, clock::time_of_day()), event, &snapshot, ineligibilities, actions);
        news.status.into_iter().for_each(|status| self.effects.election.describe(status));
        news.terms.into_iter().for_each(|term| self.effects.election.write_down(term));
    }

    /// The record is already free, or left to run out. Only our own exit waits for the last hooks. Another stop request
    /// cuts them short and cancels a restart of this program. A restarted program makes the upgrade that this one was asked for.
    async fn close(self, signals: &mut SignalStream, reason: ExitReason) -> (ExitReason, Memory) {
        let machine = self.machine.past();
        let Effects { mut election, direct, guard, mut auxiliary, .. } = self.effects;
        let address = direct.as_ref().map(|direct| direct.address().ip());
        let leave = async {
            if let Some(direct) = direct {
                direct.leave(GONE_LIMIT).await;
            }
            if !election.close(CLOSE_LIMIT).await {
                tracing::debug!("Closing the session was not confirmed; it is left to expiry");
            }
            guard.dismiss(CLOSE_LIMIT).await;
        };
        let mut upgrade = self.upgrade.as_ref().is_some_and(Upgrade::is_under_way);
        let stop = async {
            if !self.stop_again {
                signals.until_stop(&mut upgrade).await;
            }
        };
        let last_hooks = async {
            tokio::select! {
                biased;
                () = auxiliary.finish() => false,
                never = self.publisher.outlast_loop() => match never {},
                () = stop => {
                    tracing::info!("Stop requested: skipping the remaining hooks");
                    true
                }
            }
        };
        let ((), asked_to_stop) = tokio::join!(leave, last_hooks);
        auxiliary.dismiss(CLOSE_LIMIT).await;
        let reason = match reason {
            ExitReason::StoodStill if asked_to_stop => ExitReason::StopRequested(None),
            reason => reason,
        };
        upgrade::overtaken(upgrade, reason);
        let (election, had_terminal) = (election.past(), signals.had_terminal);
        (reason, Memory { election, machine, upgrade, had_terminal, address, file: None })
    }
}

fn start_observers(
    observers: Observers,
    publisher: &StatusPublisher,
    election: &Election,
    (prober, dropped): (Option<Prober>, Option<Arc<Dropped>>),
) -> io::Result<()> {
    let Observers { identity, manner, http, systemd } = observers;
    background::spawn(waiting::report_waits(manner, publisher.feed(), election.surveyor()));
    background::spawn(vouching::report(publisher.feed(), election.neighbourhood()));
    if let Some((settings, prober)) = systemd.zip(prober) {
        background::spawn(systemd::tell(settings, publisher.feed(), prober));
    }
    match http {
        Some(listener) => {
            let (feed, metrics, drain) = (publisher.feed(), publisher.metrics(), election.drain());
            let neighbourhood = election.neighbourhood();
            http::serve(listener, http::HttpState { identity, feed, metrics, drain, neighbourhood, dropped })
        }
        None => Ok(()),
    }
}
