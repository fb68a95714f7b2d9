//! The loop that feeds the machine and carries out its actions. It does not decide and does not block; its only clock
//! is [`crate::clock`].

pub mod auxiliary;
mod effects;
mod memory_limit;
mod reporter;
mod signals;
mod zombies;

use std::time::Duration;

use tokio::sync::mpsc;

use crate::clock::{self, SuspendWatch};
use crate::core::action::ExitReason;
use crate::core::event::Event;
use crate::core::machine::{Machine, Settings};
use crate::core::operator_orders::{OperatorOrders, Orders};
use crate::core::preemption::Preemption;
use crate::core::time::Now;
use crate::guard::handle::Handle;
use crate::observe::console;
use crate::observe::http::{self, Identity, Listener};
use crate::observe::status_publisher::StatusPublisher;
use crate::observe::systemd;
use crate::observe::waiting::{self, Manner};
use crate::zookeeper::{self, Election};

use auxiliary::{AuxiliaryCommands, Guards};
use effects::Effects;
use reporter::Reporter;
use signals::SignalStream;

/// How long closing the session may take at the end; then it is left to expiry.
const CLOSE_LIMIT: Duration = Duration::from_millis(500);

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
    pub onlookers: Observers,
    pub errands: auxiliary::Settings,
    /// `--preempt-after`.
    pub preempt_after: Option<Duration>,
}

/// Runs the election loop until the process has to end.
///
/// # Errors
/// If signals cannot be caught, or a socket cannot be registered.
pub async fn run(
    settings: Settings,
    ensemble: zookeeper::Settings,
    guards: Guards,
    company: SupervisorConfig,
) -> std::io::Result<ExitReason> {
    memory_limit::insert();
    let mut signals = SignalStream::new()?;
    let ((sender, mut answers), mut suspend) = (mpsc::unbounded_channel(), SuspendWatch::new());
    let machine = Machine::new(settings, clock::now());
    let publisher = StatusPublisher::new(clock::now(), machine.snapshot(), &company.onlookers.identity);
    let election = Election::new(ensemble, sender);
    let (errands, guard) = AuxiliaryCommands::new(company.errands, guards, &publisher.metrics())?;
    invite(company.onlookers, &publisher, &election, &guard)?;
    let mut orders = election.orders();
    let effects = Effects::new(election, guard, errands.guards());
    let (operator_orders, preemption) = (OperatorOrders::default(), Preemption::new(company.preempt_after));
    let (reporter, stop_again) = (Reporter::default(), false);
    let mut stage =
        Supervisor { machine, publisher, effects, errands, operator_orders, preemption, reporter, stop_again };
    let mut events: Vec<Event> = stage.errands.opening().chain([Event::Ticked]).collect();
    loop {
        let now = clock::now();
        if suspend.jumped() {
            events.insert(0, Event::ClockJumped);
        }
        if let Some(reason) = events.drain(..).find_map(|event| stage.play(now, event)) {
            return Ok(stage.close(&mut signals, reason).await);
        }
        let until_deadline = stage.until_deadline(clock::now());
        events.push(tokio::select! {
            biased;
            event = signals.next() => event,
            event = stage.effects.guard_event() => event,
            // Before ZooKeeper's answers, so that known orders are applied before a take-over.
            Ok(()) = orders.changed() => stage.hear(*orders.borrow_and_update()),
            Some(event) = answers.recv() => event,
            event = stage.errands.next() => event,
            () = rest(until_deadline) => Event::Ticked,
            () = stage.publisher.liveness().asked() => Event::Ticked,
        });
    }
}

/// The machine and the parts that take part in each of its turns.
struct Supervisor {
    machine: Machine,
    publisher: StatusPublisher,
    effects: Effects,
    errands: AuxiliaryCommands,
    operator_orders: OperatorOrders,
    preemption: Preemption,
    reporter: Reporter,
    /// Do not wait for the last hooks.
    stop_again: bool,
}

impl Supervisor {
    /// Handles one event; orders to the guard are carried out before anything else. Returns the reason to exit, if any.
    #[must_use]
    fn play(&mut self, now: Now, event: Event) -> Option<ExitReason> {
        let mut exit = self.turn(now, event);
        let token = self.machine.snapshot().held_term.map(|held| held.grant.token);
        for barred in self.operator_orders.judge(now.lease, token).into_iter().flatten() {
            exit = exit.or(self.turn(now, barred));
        }
        if self.preemption.judge(now.lease, &self.machine.snapshot()) {
            self.effects.election().preempt();
        }
        exit
    }

    /// `None`: there is no deadline.
    fn until_deadline(&self, now: Now) -> Option<Duration> {
        let (orders, preemption) = (self.operator_orders.next_deadline(now.lease), self.preemption.next_deadline());
        let deadlines = [self.machine.next_deadline(now), orders, preemption];
        deadlines.into_iter().flatten().min().map(|deadline| now.lease.until(deadline))
    }

    /// Stores the operator orders; the next turn applies them.
    fn hear(&mut self, orders: Orders) -> Event {
        self.operator_orders.hear(clock::now().lease, orders);
        Event::Ticked
    }

    #[must_use]
    fn turn(&mut self, now: Now, event: Event) -> Option<ExitReason> {
        if event == Event::StopRequested && self.machine.snapshot().is_ending {
            tracing::warn!("Stop requested again: killing all remaining processes");
            self.stop_again = true;
        }
        let actions = self.publisher.watch(&mut self.machine, now, event);
        if !waiting::waits(self.machine.phase()) {
            console::hide();
        }
        let exit = self.effects.carry_out_all(&actions);
        self.errands.note(now.lease, &event, &actions, || self.effects.election().unfenced());
        let (snapshot, ineligibilities) = (self.machine.snapshot(), self.machine.ineligibilities());
        let news = self.reporter.turn((now, clock::time_of_day()), &event, &snapshot, ineligibilities, &actions);
        news.account.into_iter().for_each(|account| self.effects.election().describe(account));
        news.terms.into_iter().for_each(|term| self.effects.election().write_down(term));
        exit
    }

    /// The record is already free, or left to run out. Only our own exit waits for the last hooks. Another stop request
    /// cuts them short and cancels a restart of this program.
    async fn close(mut self, signals: &mut SignalStream, reason: ExitReason) -> ExitReason {
        let stop_again = self.stop_again;
        let stop = async { while !stop_again && signals.next().await != Event::StopRequested {} };
        let last_hooks = async {
            tokio::select! {
                () = self.errands.finish() => false,
                () = stop => {
                    tracing::info!("Stop requested again: skipping the remaining hooks");
                    true
                }
            }
        };
        let ((), asked_to_stop) = tokio::join!(self.effects.close(CLOSE_LIMIT), last_hooks);
        self.errands.dismiss(CLOSE_LIMIT).await;
        match reason {
            ExitReason::StoodStill if asked_to_stop => ExitReason::StopRequested(None),
            reason => reason,
        }
    }
}

fn invite(
    onlookers: Observers,
    publisher: &StatusPublisher,
    election: &Election,
    guard: &Handle,
) -> std::io::Result<()> {
    let Observers { identity, manner, http, systemd } = onlookers;
    tokio::spawn(waiting::report_waits(manner, publisher.feed(), election.surveyor()));
    if let Some(settings) = systemd {
        tokio::spawn(systemd::tell(settings, publisher.feed(), guard.prober()));
    }
    match http {
        Some(listener) => {
            http::serve(listener, http::HttpState { identity, feed: publisher.feed(), metrics: publisher.metrics() })
        }
        None => Ok(()),
    }
}

/// Sleeps on `CLOCK_MONOTONIC`, which may be slewed against the lease's clock by a tenth. Waking early is harmless,
/// because the machine is asked again; deadlines that must not be late are kept by the guard.
async fn rest(length: Option<Duration>) {
    match length {
        Some(length) => tokio::time::sleep(length).await,
        None => std::future::pending().await,
    }
}
