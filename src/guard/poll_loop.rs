//! The guard's only thread. It sleeps until an order, a death or a deadline, and then checks the clock first. While a
//! tree lives every sleep is bounded; without a tree there are no wake-ups.
//!
//! If the guard takes no step in time, a kernel timer kills it, and the parent-death signal kills the command. The
//! timer is armed before any step is carried out, and again in every turn.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use nix::sys::socket::{MsgFlags, recv};
use nix::sys::time::TimeSpec;
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::sys::timerfd::{self, TimerFd, TimerFlags};

use rustix::process::{getpriority_process, setpriority_process};

use super::briefing::{AUXILIARY_LONGEST, AuxiliaryCommand, decode_auxiliary};
use super::contain::Look;
use super::lease_file::LeaseFile;
use super::outbox::Outbox;
use super::policy::{GuardAction, Input, Policy};
use super::probe::PROBE;
use super::protocol::decode_order;
use super::sys::{self, send_now};
use super::tree::Tree;
use crate::clock::{self, SuspendWatch};
use crate::core::guard_messages::{Grant, Order};

/// While it kills, or has not reached every process, the guard looks again after this, twice this, and so on: SIGCHLD does not
/// report every death.
pub const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
pub const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Processes that are to end may take all processor time. Without the privilege it stays as it is.
pub const URGENT: i32 = -20;

/// See the module page.
pub struct PollLoop {
    policy: Policy,
    tree: Tree,
    lease_file: Option<LeaseFile>,
    socket: OwnedFd,
    supervisor: OwnedFd,
    /// One order plus one byte: a longer record is invalid.
    record: Vec<u8>,
    outbox: Outbox,
    deaths: SignalFd,
    alarm: TimerFd,
    kernel_timer: Timer,
    usual_priority: i32,
    suspend: SuspendWatch,
    pause: Duration,
    /// The supervisor is gone; its descriptors would be ready for ever.
    is_alone: bool,
    guard_exit: Option<GuardExit>,
}

/// How the guard ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuardExit {
    /// The term whose record the releaser may free, because the supervisor died.
    pub release: Option<Grant>,
}

impl PollLoop {
    /// `supervisor` is a pidfd: its death is noticed even if another process still holds its end of the socket.
    pub fn new(tree: Tree, lease_file: Option<LeaseFile>, socket: OwnedFd, supervisor: OwnedFd) -> Result<Self, Errno> {
        Ok(Self {
            policy: Policy::new(tree.stop_signal()),
            tree,
            lease_file,
            socket,
            supervisor,
            record: vec![0; AUXILIARY_LONGEST + 1],
            outbox: Outbox::new(),
            deaths: sys::deaths()?,
            alarm: TimerFd::new(timerfd::ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?,
            kernel_timer: sys::lethal_timer()?,
            usual_priority: getpriority_process(None).unwrap_or(0),
            suspend: SuspendWatch::new(),
            pause: SHORTEST_PAUSE,
            is_alone: false,
            guard_exit: None,
        })
    }

    /// # Errors
    /// If the guard cannot sleep, check its inputs or arm its timer. It must end; then the tree is killed from outside.
    pub fn run(mut self) -> Result<GuardExit, Errno> {
        loop {
            let ready = self.sleep()?;
            self.turn(ready)?;
            if let Some(guard_exit) = self.guard_exit {
                self.leave(guard_exit);
                return Ok(guard_exit);
            }
        }
    }

    /// Where a releaser follows, the sentinel removes the cgroup after it. systemd looks through our cgroups when the
    /// supervisor has died; if one is removed meanwhile (ENODEV), systemd sends SIGKILL at once, also to the releaser.
    fn leave(&self, guard_exit: GuardExit) {
        if guard_exit.release.is_none() {
            self.tree.remove();
        }
        self.lease_file.iter().for_each(LeaseFile::remove);
    }

    /// The clock first, then deaths, then one order: a process that ended by itself did not end by a later order.
    fn turn(&mut self, ready: Ready) -> Result<(), Errno> {
        *self.tree.look() = Look::begin();
        let look = if self.suspend.jumped() { Input::ClockJumped } else { Input::Ticked };
        self.step(look)?;
        if ready.supervisor_gone {
            self.heed_retirement()?;
            self.supervisor_gone()?;
        }
        while let Ok(Some(_)) = self.deaths.read_signal() {}
        while let Some(news) = self.tree.news() {
            self.step(news)?;
        }
        if ready.order {
            self.take_order()?;
        }
        self.tree.go_on();
        if self.looks_again() {
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        if self.tree.is_killing() {
            let outcome = self.tree.sweep();
            self.step(outcome)?;
        } else if self.tree.waits_for_rest() {
            if let Some(outcome) = self.tree.look_for_rest() {
                self.step(outcome)?;
            }
        }
        self.send_reports();
        Ok(())
    }

    fn step(&mut self, input: Input) -> Result<(), Errno> {
        let now = clock::now().lease;
        let steps = self.policy.handle(now, input);
        arm(&mut self.kernel_timer, self.policy.lethal_in(now))?;
        self.tree.look().end_at(self.policy.next_deadline());
        // Before the steps: the command finds a lease from its first instruction on, and none once it is being killed.
        self.lease_file.iter_mut().for_each(|file| file.publish(self.policy.lease()));
        for step in steps {
            self.carry_out(step)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, step: GuardAction) -> Result<(), Errno> {
        match step {
            GuardAction::Spawn(grant) => {
                // The command inherits it.
                let _ = setpriority_process(None, self.usual_priority);
                if let Err(errno) = self.tree.spawn(&grant) {
                    self.step(Input::NotSpawned { errno: errno as i32 })?;
                }
            }
            GuardAction::Signal(signal) => self.tree.signal(signal),
            GuardAction::StopRest => {
                self.pause = SHORTEST_PAUSE;
                let _ = setpriority_process(None, URGENT);
                self.tree.stop_rest();
            }
            GuardAction::KeepRest => {
                self.pause = SHORTEST_PAUSE;
                self.tree.keep_rest();
            }
            GuardAction::KillTree => {
                self.pause = SHORTEST_PAUSE;
                let _ = setpriority_process(None, URGENT);
                self.tree.kill();
            }
            GuardAction::Freeze => {
                self.pause = SHORTEST_PAUSE;
                self.tree.freeze();
            }
            GuardAction::Thaw => {
                self.pause = SHORTEST_PAUSE;
                self.tree.thaw();
            }
            GuardAction::Report(report) => self.outbox.queue(report),
            GuardAction::Quit { release } => self.guard_exit = Some(GuardExit { release }),
        }
        Ok(())
    }

    fn take_order(&mut self) -> Result<(), Errno> {
        let length = match self.receive() {
            Ok(0) => return self.supervisor_gone(),
            Ok(length) => length,
            Err(_) => return Ok(()),
        };
        let record = self.record.get(..length).unwrap_or_default();
        if record == PROBE {
            // Best effort: if the socket is full, the answer is dropped.
            let _ = send_now(&self.socket, &PROBE);
            return Ok(());
        }
        if let Some(order) = decode_order(record) {
            return self.step(Input::Ordered(order));
        }
        let Some(AuxiliaryCommand { run, deadlines, briefing }) = decode_auxiliary(record) else { return Ok(()) };
        if !self.tree.brief(briefing) {
            return Ok(());
        }
        self.step(Input::Ordered(Order::Start { run, deadlines, grant: Grant::default() }))
    }

    /// What the supervisor ordered before it died is void but for this: it may have retired us, for a step that runs under the
    /// lease (I8).
    fn heed_retirement(&mut self) -> Result<(), Errno> {
        while let Ok(length @ 1..) = self.receive() {
            if let Some(order @ Order::Retire { .. }) = decode_order(self.record.get(..length).unwrap_or_default()) {
                self.step(Input::Ordered(order))?;
            }
        }
        Ok(())
    }

    /// The length of the next record from the supervisor; 0 after the last one.
    fn receive(&mut self) -> Result<usize, Errno> {
        let mut receive = || recv(self.socket.as_raw_fd(), &mut self.record, MsgFlags::MSG_DONTWAIT);
        match receive() {
            // Once, from a supervisor that ended before it read all reports; its orders come after it.
            Err(Errno::ECONNRESET) => receive(),
            received => received,
        }
    }

    fn supervisor_gone(&mut self) -> Result<(), Errno> {
        self.is_alone = true;
        self.step(Input::SupervisorGone)
    }

    fn send_reports(&mut self) {
        if self.is_alone {
            self.outbox.clear();
        }
        self.outbox.send(|report| send_now(&self.socket, report));
    }

    /// Whether it looks at the tree again though nothing happens.
    fn looks_again(&self) -> bool {
        self.tree.is_killing() || self.tree.is_all_but_gone() || self.tree.is_behind()
    }

    fn sleep(&mut self) -> Result<Ready, Errno> {
        let mut pause = self.policy.sleep(clock::now().lease);
        if self.looks_again() {
            let again = if self.tree.look().was_cut() { SHORTEST_PAUSE } else { self.pause };
            pause = Some(pause.map_or(again, |pause| pause.min(again)));
        }
        pause = pause.into_iter().chain(self.outbox.again_after()).min();
        match pause {
            // Zero would disarm it (`timerfd_settime(2)`).
            Some(pause) => self.alarm.set(after(pause), TimerSetTimeFlags::empty())?,
            None => self.alarm.unset()?,
        }
        let mut fds = self.watched().map(|(fd, events)| PollFd::new(fd, events));
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Ready::default()),
            Err(errno) => return Err(errno),
        }
        let [socket, supervisor, ..] = fds.map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
        let order = socket.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR);
        Ok(Ready { order: order && !self.is_alone, supervisor_gone: !supervisor.is_empty() && !self.is_alone })
    }

    /// Missing descriptors are replaced by one that is watched anyway.
    fn watched(&self) -> [(BorrowedFd<'_>, PollFlags); 5] {
        let deaths = self.deaths.as_fd();
        let (socket, supervisor) =
            if self.is_alone { (deaths, deaths) } else { (self.socket.as_fd(), self.supervisor.as_fd()) };
        let room = if self.outbox.waits_for_room() { PollFlags::POLLOUT } else { PollFlags::empty() };
        [
            (socket, PollFlags::POLLIN | room),
            (supervisor, PollFlags::POLLIN),
            (deaths, PollFlags::POLLIN),
            (self.alarm.as_fd(), PollFlags::POLLIN),
            (self.tree.fd().unwrap_or(deaths), PollFlags::POLLIN),
        ]
    }
}

#[derive(Clone, Copy, Default)]
struct Ready {
    order: bool,
    supervisor_gone: bool,
}

fn arm(timer: &mut Timer, lethal_in: Option<Duration>) -> Result<(), Errno> {
    let expiration = lethal_in.map_or_else(|| Expiration::OneShot(TimeSpec::new(0, 0)), after);
    timer.set(expiration, TimerSetTimeFlags::empty())
}

/// A timer that is set to zero is disarmed.
fn after(pause: Duration) -> Expiration {
    Expiration::OneShot(TimeSpec::from_duration(pause.max(Duration::from_nanos(1))))
}

#[cfg(test)]
mod tests {
    use rustix::process::{PidfdFlags, getpid, pidfd_open};

    use super::*;
    use crate::core::guard_messages::{Deadlines, RunId};
    use crate::guard::command::environment::Identity;
    use crate::guard::command::launch::Launch;
    use crate::guard::contain::Containment;
    use crate::guard::processes::children::Children;
    use crate::guard::protocol::encode_order;

    /// A guard whose tree is gone. Its supervisor has retired it, and died before it read a report.
    fn retired() -> PollLoop {
        let (ours, theirs) = sys::socket_pair().unwrap();
        let identity = Identity { id: String::new(), path: String::new() };
        let launch = Launch::new(vec!["true".into()], identity, None).unwrap();
        let containment = Containment::Subreaper { why: String::new() };
        let tree = Tree::new(launch, libc::SIGTERM, containment, Children::OfProcess);
        let supervisor = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        let mut guard = PollLoop::new(tree, None, theirs, supervisor).unwrap();
        let (now, run) = (clock::now().lease, RunId(1));
        let until = now.after(Duration::from_secs(60));
        let deadlines = Deadlines { stop_at: until, kill_at: until };
        guard.policy.handle(now, Input::Ordered(Order::Start { run, deadlines, grant: Grant::default() }));
        guard.policy.handle(now, Input::NotSpawned { errno: 11 });
        send_now(&ours, &encode_order(&Order::Retire { run })).unwrap();
        send_now(&guard.socket, b"report").unwrap();
        guard
    }

    const NOTHING_TO_RELEASE: Option<GuardExit> = Some(GuardExit { release: None });

    /// The last one may be over, and with each further turn it would allow one step.
    #[test]
    fn each_turn_has_a_look_of_its_own() {
        let mut guard = retired();
        guard.tree.look().cut_if(true);
        guard.turn(Ready { order: false, supervisor_gone: false }).unwrap();
        assert!(!guard.tree.look().was_cut());
    }

    #[test]
    fn a_guard_is_retired_though_its_supervisor_died_before_it_read_all_reports() {
        let mut guard = retired();
        guard.turn(Ready { order: false, supervisor_gone: true }).unwrap();
        assert_eq!(guard.guard_exit, NOTHING_TO_RELEASE);
    }

    #[test]
    fn a_guard_is_retired_though_its_supervisor_closed_its_end_before_it_read_all_reports() {
        let mut guard = retired();
        guard.take_order().unwrap();
        assert_eq!(guard.guard_exit, None);
        guard.take_order().unwrap();
        assert_eq!(guard.guard_exit, NOTHING_TO_RELEASE);
    }
}
