//! Auxiliary commands that SIGKILL cannot end, beside a guard that is only thought of.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use tokio::time::{Instant, timeout};

use super::*;
use crate::clock;
use crate::core::event::{Ineligibility, StepOutcome};
use crate::core::guard_messages::{Cause, ChildStatus, Grant, Order, RunId};
use crate::core::time::{Now, Sighting};
use crate::guard::briefing::AuxiliaryCommand as Ordered;
use crate::supervisor::guard_interface::Simulated;

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);
/// The guard reports survivors this long after SIGKILL, and again as often.
const STUCK_EVERY: Duration = Duration::from_secs(5);

thread_local! {
    static START: Instant = Instant::now();
}

fn now() -> Now {
    let passed = START.with(Instant::elapsed);
    Now { lease: Timestamp::ZERO.after(passed), observer: Sighting::ZERO.after(passed) }
}

/// Each of its runs hangs in the kernel.
#[derive(Debug, Default)]
struct Hanging {
    /// With the time of the next report of survivors.
    run: Cell<Option<(RunId, Timestamp)>>,
    is_taken: Cell<bool>,
    runs: Rc<Cell<u32>>,
    /// The kernel lets go of the processes at last.
    lets_go: Rc<Cell<bool>>,
    /// The guard dies as soon as no run is active.
    dies_idle: bool,
}

impl Simulated for Hanging {
    fn send(&self, _: &Order) -> io::Result<()> {
        Ok(())
    }
    fn send_auxiliary(&self, command: &Ordered) -> io::Result<()> {
        self.run.set(Some((command.run, command.deadlines.kill_at.after(STUCK_EVERY))));
        self.is_taken.set(false);
        self.runs.set(self.runs.get() + 1);
        Ok(())
    }
    fn recv(&mut self) -> LocalBoxFuture<'_, Option<Report>> {
        Box::pin(async {
            let Some((run, stuck_at)) = self.run.get() else {
                return if self.dies_idle { None } else { std::future::pending().await };
            };
            if !self.is_taken.replace(true) {
                return Some(Report::Taken { run });
            }
            tokio::time::sleep(clock::now().lease.until(stuck_at)).await;
            if self.lets_go.get() {
                self.run.set(None);
                let status = ChildStatus::Signaled(9);
                return Some(Report::TreeEnded { run, status, cause: Cause::Deadline });
            }
            self.run.set(Some((run, stuck_at.after(STUCK_EVERY))));
            Some(Report::Stuck { run, survivors: 1 })
        })
    }
    fn end_orphans(&mut self) -> LocalBoxFuture<'_, ()> {
        let waits = !self.dies_idle;
        Box::pin(async move {
            if waits {
                std::future::pending::<()>().await;
            }
        })
    }
    fn dismiss(self: Box<Self>) -> LocalBoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// The number of its runs, and what makes the kernel let go.
fn runner() -> (Runner, Rc<Cell<u32>>, Rc<Cell<bool>>) {
    let guard = Hanging::default();
    let (runs, lets_go) = (Rc::clone(&guard.runs), Rc::clone(&guard.lets_go));
    (runner_of(guard), runs, lets_go)
}

fn runner_of(guard: Hanging) -> Runner {
    clock::simulate(Some(now));
    let guard = Guard::Simulated(Box::new(guard));
    let identity = Identity { id: String::new(), path: String::new() };
    Runner::new("--test", guard, TIMEOUT, identity, &[], &Arc::new(Metrics::new("", "")))
}

/// After SIGKILL and the first report of survivors; `None` if it takes longer.
async fn soon<T>(wait: impl Future<Output = T>) -> Option<T> {
    timeout(TIMEOUT + STUCK_EVERY + SECOND, wait).await.ok()
}

fn unfenced() -> Vec<PendingFence> {
    vec![PendingFence::default()]
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_sigkill_cannot_end_has_failed_and_the_next_one_fails_until_it_is_gone() {
    let (runner, runs, lets_go) = runner();
    let mut fence = Fence::new(runner);
    let grant = |token| Grant { token, ..Grant::default() };
    for token in [1, 2] {
        fence.begin(grant(token), unfenced());
        assert_eq!(soon(fence.verdict()).await, Some(Event::Fenced { token, is_fenced: false }));
        assert!(!fence.is_idle());
    }
    assert_eq!(runs.get(), 1);
    lets_go.set(true);
    assert_eq!(soon(fence.verdict()).await, None);
    assert!(fence.is_idle());
    fence.begin(grant(3), unfenced());
    assert_eq!(soon(fence.verdict()).await, Some(Event::Fenced { token: 3, is_fenced: false }));
    assert_eq!(runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_health_check_that_sigkill_cannot_end_has_failed_and_so_has_each_that_cannot_be_run_beside_it() {
    let (runner, runs, lets_go) = runner();
    let settings = HealthSettings { interval: SECOND, failures: 3, grace: Duration::ZERO };
    let mut health = HealthWatch::new(runner, settings);
    health.resume(clock::now().lease, None);
    let unhealthy = Event::Ineligible { reason: Ineligibility::Unhealthy, on: true };
    assert_eq!(timeout(TIMEOUT + STUCK_EVERY + 3 * SECOND, health.verdict()).await.ok(), Some(unhealthy));
    assert_eq!(runs.get(), 1);
    lets_go.set(true);
    assert_eq!(soon(health.verdict()).await, None);
    assert_eq!(runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn our_exit_does_not_wait_for_a_hook_that_sigkill_cannot_end() {
    let (runner, ..) = runner();
    let mut hooks = Hooks::new(runner);
    assert_eq!(timeout(TIMEOUT + 2 * SECOND, hooks.finish()).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn the_next_hook_runs_when_the_one_that_sigkill_could_not_end_is_gone() {
    let (runner, runs, lets_go) = runner();
    let mut hooks = Hooks::new(runner);
    hooks.run_next(clock::now().lease);
    assert_eq!(soon(hooks.run_all()).await, None);
    hooks.fenced();
    hooks.run_next(clock::now().lease);
    assert_eq!((runs.get(), hooks.is_idle()), (1, false));
    lets_go.set(true);
    assert_eq!(soon(hooks.run_all()).await, None);
    assert_eq!(runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_next_question_waits_until_the_one_that_sigkill_could_not_end_is_gone() {
    let (runner, runs, lets_go) = runner();
    let mut eligibility = Eligibility::new(runner, SECOND);
    assert_eq!(soon(eligibility.verdict()).await, None);
    assert_eq!(runs.get(), 1);
    lets_go.set(true);
    assert_eq!(soon(eligibility.verdict()).await, None);
    assert_eq!(runs.get(), 2);
}

/// It is refused by a command that was killed at its timeout.
#[tokio::test(start_paused = true)]
async fn a_host_that_was_refused_is_asked_again_after_the_pause() {
    let (runner, runs, lets_go) = runner();
    lets_go.set(true);
    let mut eligibility = Eligibility::new(runner, SECOND);
    let refused_after = TIMEOUT + STUCK_EVERY;
    for (length, asked) in [(refused_after + SECOND / 2, 1), (SECOND, 2)] {
        assert!(timeout(length, eligibility.verdict()).await.is_err());
        assert_eq!(runs.get(), asked);
    }
}

/// A process whose guard died because all stood still starts itself anew; one whose guard was killed ends, and says so.
#[tokio::test(start_paused = true)]
async fn a_guard_that_dies_idle_after_the_deadline_of_its_last_run_has_not_stood_still() {
    let mut runner = runner_of(Hanging { lets_go: Rc::new(Cell::new(true)), dies_idle: true, ..Hanging::default() });
    let kill_at = clock::now().lease.after(TIMEOUT);
    assert!(runner.start(clock::now().lease, Timestamp::NEVER, runner.briefing(None, [])));
    assert_eq!(soon(runner.ended()).await, Some(Some(runner::Outcome::TimedOut)));
    assert!(clock::now().lease > kill_at && runner.is_idle());
    assert_eq!(soon(runner.ended()).await, Some(Some(runner::Outcome::GuardGone)));
    assert_eq!(runner.gone(), Event::CheckGone { stood_still: false });
}

/// The lease of a step's term is freed when the step has ended.
#[tokio::test(start_paused = true)]
async fn a_step_that_sigkill_cannot_end_has_not_ended() {
    let (runner, _, lets_go) = runner();
    let mut step = Step::new(StepKind::AfterStop, runner);
    let kill_at = clock::now().lease.after(TIMEOUT);
    step.begin(&Grant { token: 7, ..Grant::default() }, Why::TreeEmpty, Deadlines { stop_at: kill_at, kill_at });
    assert_eq!(soon(step.ended()).await, None);
    assert_eq!(soon(step.ended()).await, None);
    lets_go.set(true);
    let failed = Event::StepEnded { step: StepKind::AfterStop, token: 7, outcome: StepOutcome::Failed };
    assert_eq!(soon(step.ended()).await, Some(failed));
}

#[tokio::test(start_paused = true)]
async fn who_needs_no_fence_any_more_fences_none_of_the_others() {
    let (runner, runs, lets_go) = runner();
    lets_go.set(true);
    let mut fence = Fence::new(runner);
    fence.begin(Grant { token: 7, ..Grant::default() }, [unfenced(), unfenced()].concat());
    assert!(timeout(SECOND, fence.verdict()).await.is_err());
    fence.end();
    assert_eq!((soon(fence.verdict()).await, runs.get()), (None, 1));
}

/// What the lease leaves for a step is no round number.
#[test]
fn a_time_limit_is_told_in_whole_milliseconds() {
    let told = runner::complaint(runner::Outcome::TimedOut, Duration::from_nanos(470_534_211));
    assert_eq!(told.as_deref(), Some("it took longer than 470ms and was killed"));
}

#[test]
fn a_check_is_told_the_term_of_the_last_start() {
    let mut commands = AuxiliaryCommands::default();
    for token in [1, 2] {
        commands.command_starts(Grant { token, ..Grant::default() });
    }
    assert_eq!(commands.grant.map(|grant| grant.token), Some(2));
}
