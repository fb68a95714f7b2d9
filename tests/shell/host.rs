//! One host: the loop of `supervisor::run` and the arms of its `Effects`, over the real `zookeeper` and the real machine.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep_until};
use zk_leader_run::clock;
use zk_leader_run::core::action::{Action, ExitReason};
use zk_leader_run::core::event::Event;
use zk_leader_run::core::machine::{Machine, Settings};
use zk_leader_run::core::operator_orders::OperatorOrders;
use zk_leader_run::core::order::Order;
use zk_leader_run::core::preemption::Preemption;
use zk_leader_run::core::time::Now;
use zk_leader_run::zookeeper::client::ensemble::Simulated;
use zk_leader_run::zookeeper::{self, Election};

use crate::guard::{Guard, Temper};
use crate::link::Life;
use crate::memory::rng::Rng;
use crate::oracle::{Instance, Oracle};
use crate::time;
use crate::wires::Wires;

const CLOSE_LIMIT: Duration = Duration::from_millis(500);
/// More turns than this at one instant are a busy loop.
const IMPATIENCE: u32 = 1_000;

/// What is done to a host from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blow {
    Sigterm,
    /// The supervisor dies; its guard does not.
    Crash,
    /// Nothing of it is left, and nobody is told.
    PowerLoss,
    /// The guard dies.
    GuardDies,
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Exit(ExitReason),
    Crashed,
}

/// What one process of a host is made of.
pub struct Plan {
    pub host: usize,
    pub instance: Instance,
    pub machine: Settings,
    pub ensemble: zookeeper::Settings,
    pub temper: Temper,
    /// How long after a request to stop it may live.
    pub stop_limit: Duration,
}

/// Runs one process to its end.
#[expect(clippy::too_many_lines, reason = "one loop, one arm for each that is heard")]
pub async fn run(plan: Plan, wires: &Arc<Wires>, oracle: &Arc<Oracle>, blows: &mut UnboundedReceiver<Blow>) -> End {
    let life = Life::new(wires, plan.host, plan.instance);
    let (sender, mut answers) = unbounded_channel();
    let mut settings = plan.ensemble.clone();
    settings.access.simulated = Some(Simulated(Arc::new(life.clone())));
    let rng = Rng::new(plan.instance, 0x4755);
    let guard = Guard::start(Arc::clone(oracle), plan.host, plan.instance, plan.temper, rng);
    let desk = Election::new(settings, sender);
    let mut orders = desk.orders();
    let machine = Machine::new(plan.machine, clock::now());
    let (docket, preemption) = (OperatorOrders::default(), Preemption::new(None));
    let mut stage = Stage {
        machine,
        desk,
        guard,
        is_guarded: true,
        ends_orphans: false,
        docket,
        preemption,
        wires: Arc::clone(wires),
        host: plan.host,
    };
    let (mut event, mut turns, mut turned_at) = (Event::Ticked, 0, Instant::now());
    loop {
        if let Some(reason) = stage.play(clock::now(), event) {
            wires.note(|| format!("host {} exits: {reason:?}", plan.host));
            stage.desk.close(CLOSE_LIMIT).await;
            oracle.ended(plan.instance);
            return End::Exit(reason);
        }
        (turns, turned_at) = if turned_at == Instant::now() { (turns + 1, turned_at) } else { (0, Instant::now()) };
        if turns > IMPATIENCE {
            oracle.fail(&format!("host {} turns for ever on {event:?}", plan.host));
            return std::future::pending().await;
        }
        let deadline = stage.deadline(clock::now());
        event = tokio::select! {
            biased;
            Some(blow) = blows.recv() => match blow {
                Blow::Sigterm => {
                    oracle.stop_requested(plan.instance, time::elapsed() + plan.stop_limit);
                    Event::StopRequested
                }
                Blow::GuardDies => {
                    stage.guard.kill();
                    Event::Ticked
                }
                Blow::Crash | Blow::PowerLoss => {
                    wires.note(|| format!("host {}: {blow:?}", plan.host));
                    if blow == Blow::PowerLoss {
                        stage.guard.kill();
                    }
                    life.end();
                    oracle.ended(plan.instance);
                    return End::Crashed;
                }
            },
            event = stage.guard_event() => event,
            Ok(()) = orders.changed() => {
                stage.docket.hear(clock::now().lease, *orders.borrow_and_update());
                Event::Ticked
            }
            Some(event) = answers.recv() => event,
            () = rest(deadline) => Event::Ticked,
        };
    }
}

async fn rest(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

struct Stage {
    machine: Machine,
    desk: Election,
    guard: Guard,
    is_guarded: bool,
    ends_orphans: bool,
    docket: OperatorOrders,
    preemption: Preemption,
    wires: Arc<Wires>,
    host: usize,
}

impl Stage {
    fn play(&mut self, now: Now, event: Event) -> Option<ExitReason> {
        let mut exit = self.turn(now, event);
        let token = self.machine.snapshot().held_term.map(|held| held.grant.token);
        for barred in self.docket.judge(now.lease, token).into_iter().flatten() {
            exit = exit.or(self.turn(now, barred));
        }
        if self.preemption.judge(now.lease, &self.machine.snapshot()) {
            self.desk.preempt();
        }
        exit
    }

    fn deadline(&self, now: Now) -> Option<Instant> {
        let (orders, preemption) = (self.docket.next_deadline(now.lease), self.preemption.next_deadline());
        let deadlines = [self.machine.next_deadline(now), orders, preemption];
        deadlines.into_iter().flatten().min().map(time::instant_of)
    }

    fn turn(&mut self, now: Now, event: Event) -> Option<ExitReason> {
        let actions = self.machine.handle(now, event);
        if event != Event::Ticked || !actions.is_empty() {
            self.wires.note(|| format!("host {}: {event:?} => {actions:?}", self.host));
        }
        let mut exit = None;
        for action in actions {
            exit = exit.or(self.carry_out(action));
        }
        exit
    }

    fn carry_out(&mut self, action: Action) -> Option<ExitReason> {
        let desk = &mut self.desk;
        match action {
            Action::Connect { session } => desk.connect(session),
            Action::Enter { candidacy } => desk.enter(candidacy),
            Action::Look { candidacy } => desk.look(candidacy),
            Action::Observe { candidacy, slot } => desk.observe(candidacy, slot),
            Action::TakeOver { candidacy, conditions, entry, longest } => {
                desk.take_over(candidacy, conditions, entry, longest);
            }
            Action::Renew { candidacy, conditions, entry } => desk.renew(candidacy, conditions, entry),
            Action::Mark { candidacy, conditions, entry, is_first } => {
                desk.mark(candidacy, conditions, entry, is_first);
            }
            Action::EndRun { status, ok } => desk.end_run(status, ok),
            Action::Release { candidacy, conditions, entry, keeps_candidate } => {
                desk.release(candidacy, conditions, entry, keeps_candidate);
            }
            Action::Fence { .. } | Action::EndFence | Action::Announce(_) => {}
            Action::RunStep { .. } | Action::ExtendStep { .. } | Action::StopStep { .. } | Action::SkipStep { .. } => {}
            Action::Guard(order) => {
                if let Order::Start { .. } = order {
                    desk.settle();
                }
                self.guard.order(order);
            }
            Action::EndGuard => drop(self.guard.kill()),
            Action::EndOrphans => self.ends_orphans = true,
            Action::Exit(reason) => return Some(reason),
        }
        None
    }

    async fn guard_event(&mut self) -> Event {
        if std::mem::take(&mut self.ends_orphans) {
            return Event::OrphansEnded;
        }
        if !self.is_guarded {
            return std::future::pending().await;
        }
        let report = self.guard.report().await;
        self.is_guarded = report.is_some();
        report.map_or(Event::GuardGone, Event::Guard)
    }
}
