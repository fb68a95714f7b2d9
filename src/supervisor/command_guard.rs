//! The command's guard: takes the machine's orders, and reports as events of the machine. A guard that does not take an
//! order is killed.

use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::clock;
use crate::core::event::Event;
use crate::core::guard_messages::{ChildStatus, Order, Report, RunId};
use crate::core::time::Timestamp;
use crate::guard::contain::{Process, known};
use crate::guard::handle::upgrade::HandedOver;
use crate::guard::probe::{Prober, state_of};
use crate::observe::words;
use crate::supervisor::guard_interface::Guard;

pub(super) struct CommandGuard {
    guard: Guard,
    /// After an upgrade: a guard of this program, which takes the place of the one before it.
    next: Option<Guard>,
    state: State,
    /// For the next guard, while it waits for that place.
    orders: Vec<Order>,
    /// Orders that found no memory, and that are sent before the next one.
    late: Vec<Order>,
    /// The next guard, and the guards of auxiliary commands, which are not orphans of the command.
    spared: Vec<Process>,
    stuck_reports: StuckReports,
    /// When to tell that a dead guard's processes survive SIGKILL, while they are waited for.
    survivors_reported_at: Option<Instant>,
    /// Until when the present run may take to stop, once it was told to.
    stop_by: Option<Timestamp>,
}

/// How often survivors of SIGKILL were reported of this tree; the guard does it every five seconds, the first time sooner.
#[derive(Default)]
struct StuckReports(u32);

/// `signal(7)`
const SIGKILL: u8 = 9;

/// Once a minute.
const STUCK_REPORTS_PER_LINE: u32 = 12;

impl StuckReports {
    /// Whether the log tells of this report: of each tree the first one, and then one in a minute.
    fn is_told(&mut self, report: Report) -> bool {
        let before = self.0;
        match report {
            Report::Stuck { .. } => self.0 = before.wrapping_add(1),
            Report::Taken { .. } | Report::TreeEnded { .. } => self.0 = 0,
            Report::Started { .. } | Report::Stopping { .. } | Report::CommandEnded { .. } => {}
        }
        matches!(report, Report::Stuck { .. }) && before % STUCK_REPORTS_PER_LINE == 0
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Alive,
    /// It was killed, and its end is still to be reported.
    Killed,
    /// It has no tree any more, and is being ended; then `next` takes its place.
    Replaced,
    Gone,
    /// The guard is gone, and the processes that it left are being killed.
    EndingOrphans,
}

impl CommandGuard {
    /// `guards`: the present one, and after an upgrade the next one. `spared`: those of auxiliary commands.
    ///
    /// # Errors
    /// If these processes cannot be looked at.
    pub fn new((guard, next): (Guard, Option<Guard>), spared: &[i32]) -> io::Result<Self> {
        let of_next = next.as_ref().map(Guard::pids).unwrap_or_default();
        let spared = known(&[spared, &of_next].concat())?;
        Ok(Self {
            guard,
            next,
            state: State::Alive,
            orders: Vec::new(),
            late: Vec::new(),
            spared,
            stuck_reports: StuckReports::default(),
            survivors_reported_at: None,
            stop_by: None,
        })
    }

    /// Does not wait.
    pub fn send(&mut self, order: &Order) {
        tracing::debug!(?order, "Ordered");
        match *order {
            Order::Start { .. } => {
                self.stop_by = None;
                self.replace();
            }
            // A later one can only bring it closer.
            Order::Stop { by, .. } => self.stop_by = Some(self.stop_by.unwrap_or(by).min(by)),
            Order::Kill { .. } => self.stop_by = Some(Timestamp::NEVER),
            _ => {}
        }
        self.pass_on(order);
    }

    fn send_or_keep(&mut self, order: &Order) {
        // The death of a guard is reported by its handle.
        match self.guard.send(order).or_else(unless_gone) {
            Err(error) if finds_no_memory(&error) && may_be_late(order) => {
                tracing::warn!(%error, ?order, "The guard could not be told for now");
                let is_of_use = !matches!(order, Order::Extend { .. }) && self.late.len() < LATE;
                self.late.extend(is_of_use.then_some(*order));
            }
            Err(error) => self.kill(&format!("took no order ({error})")),
            Ok(()) => {}
        }
    }

    fn pass_on(&mut self, order: &Order) {
        match self.state {
            State::Alive => {
                for earlier in std::mem::take(&mut self.late) {
                    self.send_or_keep(&earlier);
                }
                self.send_or_keep(order);
            }
            State::Replaced => self.orders.push(*order),
            State::Killed | State::Gone | State::EndingOrphans => {}
        }
    }

    /// Whether another signal for the command leaves room for orders.
    pub fn has_room(&self) -> bool {
        self.state != State::Alive || self.guard.has_room()
    }

    /// If there is a guard of this program beside one of the program before, it takes that one's place, which has no tree.
    /// The earlier guard is killed: dismissed, it could free the lease of this term. [`CommandGuard::next`] waits until
    /// nothing of it is left; only then the next guard gets an order.
    pub fn replace(&mut self) {
        let Some(next) = self.next.as_mut().filter(|_| self.state == State::Alive) else { return };
        if next.hand_over().is_some() {
            self.state = State::Replaced;
        } else {
            tracing::warn!("The guard of the new program has ended, and the earlier one stays");
            self.next = None;
        }
    }

    /// Probes the guard that takes orders.
    pub fn prober(&self) -> Option<Prober> {
        let next = self.next.as_ref().and_then(Guard::prober);
        self.guard.prober().map(|prober| prober.followed_by(next))
    }

    /// The guard, for the next program of this process, and the descriptors that must stay open. `None`: it has ended.
    pub fn hand_over(&mut self) -> Option<(HandedOver, Vec<BorrowedFd<'_>>)> {
        if self.state == State::Alive { self.guard.hand_over() } else { None }
    }

    /// The guard's end is reported as usual.
    pub fn kill(&mut self, why: &str) {
        let present = self.next.as_ref().filter(|_| self.state == State::Replaced).unwrap_or(&self.guard);
        let pid = present.pids().first().copied();
        tracing::error!(pid, state = pid.and_then(state_of), "The guard {why} and was killed");
        present.kill();
        self.orders.clear();
        if self.state == State::Alive {
            self.state = State::Killed;
        }
    }

    /// After the guard's death; [`CommandGuard::next`] reports when the last orphan is gone.
    pub fn end_orphans(&mut self) {
        self.state = State::EndingOrphans;
        self.stuck_reports = StuckReports::default();
    }

    /// The next report of the guard, or the end of its orphans. Cancel-safe.
    pub async fn next(&mut self) -> Event {
        match self.state {
            State::Gone => std::future::pending().await,
            State::EndingOrphans => {
                if !self.leaves_nothing().await {
                    return Event::Guard(SURVIVORS);
                }
                self.state = State::Gone;
                Event::OrphansEnded
            }
            State::Replaced => {
                while !self.leaves_nothing().await {}
                self.state = State::Alive;
                if let Some(next) = self.next.take() {
                    let (pid, version) = (next.pids().first().copied(), env!("CARGO_PKG_VERSION"));
                    tracing::info!(pid, "The next command's guard is of version {version}");
                    self.guard = next;
                }
                for order in std::mem::take(&mut self.orders) {
                    self.pass_on(&order);
                }
                Event::Ticked
            }
            State::Alive | State::Killed => {
                if let Some(report) = self.guard.recv().await {
                    self.log(report);
                    Event::Guard(report)
                } else {
                    self.state = State::Gone;
                    Event::GuardGone
                }
            }
        }
    }

    /// Ends the guard, and what is left of its tree. `false`, as often as a guard reports it: something survives SIGKILL. Cancel-safe.
    async fn leaves_nothing(&mut self) -> bool {
        let complain = |error| {
            tracing::error!(%error, "Cannot list the processes that the guard left; retrying before the lease is released");
        };
        let report_at = *self.survivors_reported_at.get_or_insert_with(|| Instant::now() + STUCK_FOR);
        tokio::select! {
            () = self.guard.end_orphans(&self.spared, complain) => {
                self.survivors_reported_at = None;
                return true;
            }
            () = sleep_until(report_at) => {}
        }
        self.survivors_reported_at = Some(Instant::now() + STUCK_FOR);
        if self.stuck_reports.is_told(SURVIVORS) {
            log_survivors();
        }
        false
    }

    fn log(&mut self, report: Report) {
        let is_told = self.stuck_reports.is_told(report);
        match report {
            Report::Taken { .. } => tracing::debug!("Guard takes the order to start"),
            Report::Started { pid, .. } => tracing::info!(pid, "Command started"),
            Report::CommandEnded { status, .. } => log_ending(status, self.stop_by, clock::now().lease),
            Report::Stopping { .. } => tracing::debug!("Guard sent the stop signal by itself"),
            Report::Stuck { survivors, .. } if is_told => log_stuck(survivors),
            Report::Stuck { survivors, .. } => tracing::debug!(survivors, "Processes survive SIGKILL"),
            Report::TreeEnded { cause, .. } => tracing::debug!(?cause, "Tree ended"),
        }
    }

    /// Ends the guard, and the next one; waits at most for `limit`.
    pub async fn dismiss(self, limit: Duration) {
        let dismissed = async {
            self.guard.dismiss().await;
            if let Some(next) = self.next {
                next.dismiss().await;
            }
        };
        let dismissed = tokio::time::timeout(limit, dismissed).await;
        tracing::debug!(in_time = dismissed.is_ok(), "Guard was dismissed");
    }
}

fn unless_gone(error: io::Error) -> io::Result<()> {
    match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Ok(()),
        _ => Err(error),
    }
}

/// The buffers of sockets count as memory of our cgroup, which may be full for a moment.
fn finds_no_memory(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM))
}

/// So many orders are kept.
const LATE: usize = 16;

/// Whether no command runs longer for want of this order: the next renewal makes an earlier one good, and the others are sent before it.
fn may_be_late(order: &Order) -> bool {
    match order {
        Order::Extend { .. } | Order::Pause { .. } | Order::Resume { .. } | Order::Signal { .. } => true,
        Order::Start { .. }
        | Order::Stop { .. }
        | Order::Kill { .. }
        | Order::Freeze { .. }
        | Order::Thaw { .. }
        | Order::Retire { .. } => false,
    }
}

/// `stop_by`: if it was told to stop, until when.
fn log_ending(status: ChildStatus, stop_by: Option<Timestamp>, now: Timestamp) {
    let fate = words::fate(status);
    match (status, stop_by) {
        (ChildStatus::Signaled(SIGKILL), Some(by)) if by <= now => {
            tracing::warn!("The command {fate}: it still ran when its time to stop was over");
        }
        (ChildStatus::Exited(0), _) | (ChildStatus::Exited(_) | ChildStatus::Signaled(_), Some(_)) => {
            tracing::info!("The command {fate}");
        }
        _ => tracing::warn!("The command {fate}"),
    }
}

/// How long the guard's death, and that of what it left, may take; and from one report about what is left to the next.
const STUCK_FOR: Duration = Duration::from_secs(5);

/// Of what a guard has left: the number of its last run, and of the processes, died with it.
const SURVIVORS: Report = Report::Stuck { run: RunId(0), survivors: 0 };

fn log_survivors() {
    tracing::error!(
        why = "stuck",
        "Processes that a killed guard left survive SIGKILL (in uninterruptible sleep, of another user, or held by a debugger?), so the lease \
         is not released; when it has run out, another host starts the command, and these may still write: end them as root, or fence this \
         host"
    );
}

fn log_stuck(survivors: u32) {
    tracing::error!(
        survivors,
        why = "stuck",
        "Processes of the command survive SIGKILL (in uninterruptible sleep, of another user, or held by a debugger?), so the lease is not \
         released; when it has run out, another host starts the command, and these may still write: end them as root, or fence this host"
    );
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    use futures_util::future::LocalBoxFuture;

    use super::*;
    use crate::core::guard_messages::{Cause, Deadlines, Grant};
    use crate::supervisor::guard_interface::Simulated;

    /// It takes no order, and its end is slow to come. How often it was killed.
    #[derive(Debug)]
    struct Deaf(Rc<Cell<u32>>);

    impl Simulated for Deaf {
        fn send(&self, _: &Order) -> io::Result<()> {
            Err(ErrorKind::WouldBlock.into())
        }
        fn kill(&self) {
            self.0.set(self.0.get() + 1);
        }
        fn recv(&mut self) -> LocalBoxFuture<'_, Option<Report>> {
            Box::pin(std::future::ready(None))
        }
    }

    #[tokio::test]
    async fn a_guard_that_takes_no_order_is_killed_once_and_its_end_is_reported() {
        let kills = Rc::default();
        let guard = Guard::Simulated(Box::new(Deaf(Rc::clone(&kills))));
        let mut guard = CommandGuard::new((guard, None), &[]).unwrap();
        for _ in 0..3 {
            guard.send(&Order::Kill { run: RunId(1) });
        }
        assert_eq!((guard.next().await, kills.get()), (Event::GuardGone, 1));
    }

    #[test]
    fn of_each_tree_that_survives_sigkill_the_first_report_is_told_and_then_one_in_a_minute() {
        let run = RunId(1);
        let ended = Report::TreeEnded { run, status: ChildStatus::Signaled(9), cause: Cause::Ordered };
        let mut reports = StuckReports::default();
        for begun_or_ended in [Report::Taken { run }, Report::Taken { run }, ended] {
            assert!(!reports.is_told(begun_or_ended));
            let told: Vec<_> = (0..14).filter(|_| reports.is_told(Report::Stuck { run, survivors: 1 })).collect();
            assert_eq!(told, [0, 12], "after {begun_or_ended:?}");
        }
    }

    /// It has died, and SIGKILL does not end what it left.
    #[derive(Debug)]
    struct Outlived;

    impl Simulated for Outlived {
        fn send(&self, _: &Order) -> io::Result<()> {
            Err(ErrorKind::BrokenPipe.into())
        }
        fn recv(&mut self) -> LocalBoxFuture<'_, Option<Report>> {
            Box::pin(std::future::ready(None))
        }
        fn end_orphans(&mut self) -> LocalBoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_dead_guard_leaves_and_sigkill_does_not_end_is_reported_as_often_as_by_a_guard() {
        let mut guard = CommandGuard::new((Guard::Simulated(Box::new(Outlived)), None), &[]).unwrap();
        assert_eq!(guard.next().await, Event::GuardGone);
        guard.end_orphans();
        let began = Instant::now();
        for reports in 1..=3 {
            // The loop turns for other events, too.
            assert!(tokio::time::timeout(STUCK_FOR / 2, guard.next()).await.is_err());
            let told = tokio::time::timeout(10 * STUCK_FOR, guard.next()).await.expect("it is told");
            assert_eq!((told, began.elapsed()), (Event::Guard(SURVIVORS), reports * STUCK_FOR));
        }
    }

    #[tokio::test]
    async fn the_time_to_stop_of_one_run_says_nothing_of_the_next() {
        let guard = Guard::Simulated(Box::new(Deaf(Rc::default())));
        let mut guard = CommandGuard::new((guard, None), &[]).unwrap();
        let (run, stop_at, kill_at) = (RunId(2), Timestamp::ZERO, Timestamp::ZERO);
        guard.send(&Order::Stop { run: RunId(1), by: Timestamp::ZERO });
        let deadlines = Deadlines { stop_at, kill_at };
        guard.send(&Order::Start { run, deadlines, grant: Grant::default() });
        assert_eq!(guard.stop_by, None);
    }

    /// Its buffers find no memory at first. What it was told.
    #[derive(Debug)]
    struct Full(Rc<Cell<u32>>, Rc<RefCell<Vec<Order>>>);

    impl Simulated for Full {
        fn send(&self, order: &Order) -> io::Result<()> {
            if let Some(left) = self.0.get().checked_sub(1) {
                self.0.set(left);
                return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
            }
            self.1.borrow_mut().push(*order);
            Ok(())
        }
        fn kill(&self) {
            self.1.borrow_mut().clear();
        }
    }

    /// A command that was paused must hear that it may go on; a renewal comes soon.
    #[test]
    fn an_order_that_finds_no_memory_is_sent_before_the_next_one_unless_a_command_would_run_longer_without_it() {
        let run = RunId(1);
        let deadlines = Deadlines { stop_at: Timestamp::NEVER, kill_at: Timestamp::NEVER };
        let (extend, resume) = (Order::Extend { run, deadlines }, Order::Resume { run });
        let signal = Order::Signal { run, signal: libc::SIGUSR2 };
        let after_loss_of = |orders: &[Order]| {
            let told = Rc::new(RefCell::new(Vec::new()));
            let full = Cell::new(u32::try_from(orders.len()).unwrap());
            let guard = Guard::Simulated(Box::new(Full(Rc::new(full), Rc::clone(&told))));
            let mut guard = CommandGuard::new((guard, None), &[]).unwrap();
            for order in orders {
                guard.send(order);
            }
            guard.send(&extend);
            told.take()
        };
        assert_eq!(after_loss_of(&[resume]), [resume, extend]);
        assert_eq!(after_loss_of(&[signal]), [signal, extend]);
        assert_eq!(after_loss_of(&[extend]), [extend], "it makes the first one good");
        for lethal in [Order::Kill { run }, Order::Stop { run, by: Timestamp::ZERO }, Order::Thaw { run }] {
            assert_eq!(after_loss_of(&[lethal]), [], "its guard is killed");
        }
    }
}
