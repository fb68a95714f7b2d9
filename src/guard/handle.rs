//! The supervisor's end of the guard: forks it, sends orders without waiting, receives reports, and ends the tree if
//! the guard was killed. It waits only for its own children, because the supervisor may have others.

pub mod upgrade;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram as StdUnixDatagram;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::SigSet;
use nix::sys::socket::{MsgFlags, recv};
use nix::unistd::{ForkResult, Pid, pipe2};
use rustix::process::{PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixDatagram;
use tokio::sync::watch;

use super::Guard;
use super::briefing::{AuxiliaryCommand, encode_auxiliary};
use super::contain::{Containment, Process, known};
use super::lease_file::LeaseFile;
use super::poll_loop::{LONGEST_PAUSE, SHORTEST_PAUSE};
use super::prerequisites::{self, Lack};
use super::probe::{PROBE, Prober};
use super::processes::Processes;
use super::protocol::{REPORT_SIZE, decode_report, encode_order};
use super::releaser::Releaser;
use super::remedy_for;
use super::sentinel;
use super::sys;
use crate::core::guard_messages::{Order, Report};
use crate::core::settings::Contain;
use crate::guard::command::environment::Identity;
use crate::guard::command::launch::{Foreground, Launch};
use crate::guard::command::terminal::Terminal;
use crate::guard::processes::children::Children;

/// The settings that the guard is forked with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Our identity, for the command's environment.
    pub identity: Identity,
    pub stop_signal: i32,
    pub contain: Contain,
    pub foreground: bool,
    /// The arguments of the releaser: this executable, which the guard becomes after the supervisor died and the tree
    /// is empty. `None`: the lease is left to run out.
    pub releaser: Option<Vec<OsString>>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("--contain {name} is not possible here: {source}")]
    Containment { name: &'static str, source: io::Error },
    #[error("the command cannot be started: {0}")]
    Command(io::Error),
    #[error("no command can be supervised here: {0}")]
    Prerequisite(Lack),
    #[error("the guard process cannot be started: {0}{remedy}", remedy = remedy_for(.0))]
    Guard(#[from] io::Error),
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        Self::Guard(errno.into())
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Guard(errno.into())
    }
}

/// A guard, before the runtime exists.
#[derive(Debug)]
pub struct Spawned {
    processes: Processes,
    socket: OwnedFd,
    containment: Containment,
    lease_file: Option<Box<LeaseFile>>,
    /// Why there is no lease file for the command.
    lease_file_lack: Option<io::Error>,
    terminal: Option<Terminal>,
    /// Children that this process inherited (a shell replaced itself by us).
    born_with: Vec<Process>,
    /// An open descriptor that the guards which are forked beside this one must not have.
    withheld: Option<i32>,
}

/// Makes this process a subreaper and forks the guard. Call it first in `main`, while there is one thread.
///
/// # Errors
/// If `--contain` asks for a kind that is not possible here, or a system call fails.
pub fn fork(settings: Settings) -> Result<Spawned, Error> {
    fork_of_command(settings, &mut [])
}

fn fork_of_command(settings: Settings, earlier: &mut [Option<Spawned>]) -> Result<Spawned, Error> {
    prerequisites::check().map_err(Error::Prerequisite)?;
    // A write beyond `RLIMIT_FSIZE` fails instead of ending this process (`setrlimit(2)`): the log may be a file.
    sys::ignore(libc::SIGXFSZ);
    if settings.foreground {
        // Some terminals (`tostop` in `stty(1)`) stop a background process that writes.
        sys::ignore(libc::SIGTTOU);
    }
    let foreground = || settings.foreground.then(|| Foreground { terminal: Terminal::of_this_group() });
    let terminal = foreground().and_then(|foreground| foreground.terminal);
    let releaser =
        settings.releaser.map(|arguments| Releaser::new(arguments, settings.identity.clone())).transpose()?;
    let launch = Launch::new(settings.command, settings.identity, foreground()).map_err(Error::Command)?;
    fork_guard(
        Plan {
            launch,
            stop_signal: settings.stop_signal,
            contain: settings.contain,
            releaser,
            terminal,
            publishes_lease: true,
        },
        earlier,
    )
}

/// Forks the guard of an auxiliary command, in addition to the earlier guards. A subreaper contains its tree, whatever
/// `--contain` says: a health check in its own PID namespace would see no other process.
///
/// # Errors
/// As [`fork`].
pub fn fork_auxiliary(command: Vec<OsString>, earlier: &mut [Option<Spawned>]) -> Result<Spawned, Error> {
    let launch = Launch::auxiliary(command).map_err(Error::Command)?;
    let (stop_signal, contain) = (libc::SIGTERM, Contain::Subreaper);
    fork_guard(Plan { launch, stop_signal, contain, releaser: None, terminal: None, publishes_lease: false }, earlier)
}

struct Plan {
    launch: Launch,
    stop_signal: i32,
    contain: Contain,
    releaser: Option<Releaser>,
    terminal: Option<Terminal>,
    publishes_lease: bool,
}

fn fork_guard(plan: Plan, earlier: &mut [Option<Spawned>]) -> Result<Spawned, Error> {
    let Plan { launch, stop_signal, contain, releaser, terminal, publishes_lease } = plan;
    sys::default_sigchld();
    let born_with = known(&Children::of_this_thread()?.list()?)?;
    let supervisor = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    let (ours, theirs) = sys::socket_pair()?;
    let (told, tells) = pipe2(OFlag::O_CLOEXEC)?;
    let containment = choose(contain)?;
    let (lease_file, lease_file_lack) = match publishes_lease.then(|| LeaseFile::make(containment.hides_the_guard())) {
        Some(Err(error)) => (None, Some(error)),
        made => (made.and_then(Result::ok), None),
    };
    match fork_deaf(containment.adopts_orphans()) {
        Ok(ForkResult::Child) => {
            drop((ours, told));
            let socket = theirs;
            let guard = Guard { launch, stop_signal, containment, socket, supervisor, releaser, lease_file };
            forget(earlier);
            sentinel::run(guard, tells)
        }
        Ok(ForkResult::Parent { child }) => {
            drop(tells);
            let lease_file = lease_file.map(Box::new);
            let processes = Processes::told(child.as_raw(), &told).inspect_err(|_| containment.remove())?;
            let (socket, withheld) = (ours, None);
            Ok(Spawned { processes, socket, containment, lease_file, lease_file_lack, terminal, born_with, withheld })
        }
        Err(errno) => {
            containment.remove();
            Err(errno.into())
        }
    }
}

/// In the new process.
fn forget(earlier: &mut [Option<Spawned>]) {
    let withheld = earlier.iter().flatten().filter_map(|guard| guard.withheld);
    withheld.for_each(|number| drop(sys::take_descriptor(number)));
    // If this guard held another guard's socket open, that one could not be dismissed.
    earlier.fill_with(|| None);
}

/// The child starts with every signal blocked, because a signal before its setup would end it. In the parent those stay
/// blocked that were: the supervisor will read them.
fn fork_deaf(is_subreaper: bool) -> Result<ForkResult, Errno> {
    set_child_subreaper(is_subreaper)?;
    let mask = SigSet::thread_get_mask()?;
    sys::block_every_signal()?;
    let forked = sys::fork();
    if !matches!(forked, Ok(ForkResult::Child)) {
        mask.thread_set_mask()?;
    }
    forked
}

fn choose(contain: Contain) -> Result<Containment, Error> {
    let name = match contain {
        Contain::Auto => "auto",
        Contain::Subreaper => "subreaper",
        Contain::Cgroup => "cgroup",
        Contain::PidNamespace => "pid-namespace",
        Contain::ProcessGroup => "process-group",
    };
    Containment::choose(contain).map_err(|source| Error::Containment { name, source })
}

impl Spawned {
    pub fn pid(&self) -> i32 {
        self.processes.guard
    }

    /// The chosen containment, logged before any command runs.
    pub fn containment(&self) -> &Containment {
        &self.containment
    }

    /// Why the command gets no lease file, if it gets none.
    pub fn lease_file_lack(&self) -> Option<&io::Error> {
        self.lease_file_lack.as_ref()
    }

    /// # Errors
    /// Outside of a tokio runtime with I/O.
    pub fn into_handle(self) -> io::Result<Handle> {
        Ok(Handle {
            guards_end: watched(self.processes.guards_end()?)?,
            processes: self.processes,
            has_complained: false,
            // Tokio has no type for SOCK_SEQPACKET; for recv(2) it is a datagram socket that can end.
            socket: Arc::new(UnixDatagram::from_std(StdUnixDatagram::from(self.socket))?),
            probed: watch::Sender::new(()),
            containment: self.containment,
            lease_file: self.lease_file,
            terminal: self.terminal,
            born_with: self.born_with,
        })
    }
}

/// A guard in the runtime. Dropping it tells the guard that the supervisor is gone; the guard then kills the tree.
#[derive(Debug)]
pub struct Handle {
    processes: Processes,
    /// A pidfd: the guard's end is noticed even if another process still holds its end of the socket.
    guards_end: AsyncFd<OwnedFd>,
    /// The failure to list children was reported once.
    has_complained: bool,
    socket: Arc<UnixDatagram>,
    probed: watch::Sender<()>,
    containment: Containment,
    lease_file: Option<Box<LeaseFile>>,
    terminal: Option<Terminal>,
    born_with: Vec<Process>,
}

/// No process group has this id.
const NOBODY: Pid = Pid::from_raw(0);

impl Handle {
    /// The guard and the sentinel.
    pub fn pids(&self) -> [i32; 2] {
        self.processes.ids()
    }

    /// Sends an order, or fails; does not wait.
    ///
    /// # Errors
    /// `WouldBlock`: the guard does not read (stopped?); its deadline still holds. Any other error: the guard is gone.
    pub fn send(&self, order: &Order) -> io::Result<()> {
        Ok(sys::send_now(&self.socket, &encode_order(order)).map(drop)?)
    }

    /// Whether most of the socket's buffer is free: three quarters of it (`unix_writable` in the kernel).
    pub fn has_room(&self) -> bool {
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLOUT)];
        poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    /// Sends the order to run an auxiliary command, or fails; does not wait. Only for a guard of [`fork_auxiliary`].
    ///
    /// # Errors
    /// `InvalidInput`: the briefing is too long. Otherwise see [`Handle::send`].
    pub fn send_auxiliary(&self, command: &AuxiliaryCommand) -> io::Result<()> {
        let record = encode_auxiliary(command).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(sys::send_now(&self.socket, &record).map(drop)?)
    }

    /// Creates a prober, which checks that the guard answers.
    pub fn prober(&self) -> Prober {
        Prober::new(Arc::downgrade(&self.socket), self.probed.subscribe())
    }

    /// SIGKILL to the guard. [`Handle::recv`] then reports its end, and [`Handle::end_orphans`] ends its tree.
    pub fn kill(&self) {
        self.processes.kill_guard();
    }

    /// The next report; `None` when the guard is gone. Cancel-safe.
    pub async fn recv(&mut self) -> Option<Report> {
        loop {
            // One byte longer than a report: a longer record is invalid.
            let mut record = [0; REPORT_SIZE + 1];
            let length = next_record(&self.socket, &self.guards_end, &mut record).await?;
            let record = record.get(..length)?;
            if record == PROBE {
                self.probed.send_replace(());
            }
            if let Some(report) = decode_report(record) {
                return Some(report);
            }
        }
    }

    /// Ends a guard that has no tree, and waits for it and its parent.
    pub async fn dismiss(self) {
        let Self { socket, mut processes, .. } = self;
        drop(socket);
        let mut pauses = Pauses::default();
        while !processes.have_ended() {
            pauses.rest().await;
        }
    }

    /// After the guard's death: waits until the tree is empty. The sentinel ends it, or this process if the sentinel
    /// was killed as well. `spared` are children that the supervisor started itself. Waits for ever for a process that
    /// cannot be killed. `complain` is called once if the children cannot be listed yet.
    pub async fn end_orphans(&mut self, spared: &[Process], complain: impl FnOnce(io::Error)) {
        let spared = [&self.born_with, spared].concat();
        let mut complain = Some(complain).filter(|_| !self.has_complained);
        let mut pauses = Pauses::default();
        // A closed socket does not prove that the guard is dead.
        self.processes.kill_guard();
        loop {
            match self.processes.have_left_nothing(&self.containment, &spared) {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => {
                    self.has_complained = true;
                    if let Some(complain) = complain.take() {
                        complain(error);
                    }
                }
            }
            pauses.rest().await;
        }
        self.lease_file.iter().for_each(|file| {
            file.close();
            file.remove();
        });
        self.containment.remove();
        self.terminal.iter().for_each(|terminal| terminal.take_back_from(NOBODY));
    }
}

fn watched(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(deprecated, reason = "its successor is unsafe; an OwnedFd owns its descriptor and never changes it")]
    AsyncFd::with_interest(pidfd, Interest::READABLE)
}

/// The length of the next record; `None` after the last one of a guard that has closed the socket or ended. Cancel-safe.
async fn next_record(socket: &UnixDatagram, guards_end: &AsyncFd<OwnedFd>, record: &mut [u8]) -> Option<usize> {
    loop {
        let received = tokio::select! {
            biased;
            received = socket.recv(record) => received,
            // It has sent what it will ever send.
            _ = guards_end.readable() => recv(socket.as_raw_fd(), record, MsgFlags::MSG_DONTWAIT).map_err(io::Error::from),
        };
        match received {
            // Once, from a guard that ended before it read all orders; its reports come after it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            received => return received.ok().filter(|&length| length > 0),
        }
    }
}

/// Between passes over orphans that are slow to die. Each is twice as long as the last.
#[derive(Default)]
struct Pauses(Duration);

impl Pauses {
    async fn rest(&mut self) {
        self.0 = (self.0 * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        tokio::time::sleep(self.0).await;
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn pair() -> (UnixDatagram, OwnedFd) {
        let (ours, theirs) = sys::socket_pair().unwrap();
        (UnixDatagram::from_std(StdUnixDatagram::from(ours)).unwrap(), theirs)
    }

    fn end_of(child: &std::process::Child) -> AsyncFd<OwnedFd> {
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        watched(pidfd_open(pid, PidfdFlags::empty()).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn the_reports_of_a_guard_arrive_though_it_ended_before_it_read_all_orders() {
        let ((ours, theirs), mut guard) = (pair(), Command::new("cat").stdin(Stdio::piped()).spawn().unwrap());
        let end = end_of(&guard);
        ours.send(b"order").await.unwrap();
        assert_eq!(sys::send_now(&theirs, b"report"), Ok(6));
        drop(theirs);
        let mut record = [0; 10];
        assert_eq!(next_record(&ours, &end, &mut record).await, Some(6));
        assert_eq!(next_record(&ours, &end, &mut record).await, None);
        guard.kill().unwrap();
        guard.wait().unwrap();
    }

    #[tokio::test]
    async fn the_reports_of_a_dead_guard_arrive_before_its_end_though_its_socket_is_held_open() {
        let ((ours, theirs), mut guard) = (pair(), Command::new("true").spawn().unwrap());
        let end = end_of(&guard);
        drop(end.readable().await.unwrap());
        let mut record = [0; 10];
        for length in 5..7 {
            assert_eq!(sys::send_now(&theirs, &b"reports"[..length]), Ok(length));
        }
        assert_eq!(next_record(&ours, &end, &mut record).await, Some(5));
        assert_eq!(next_record(&ours, &end, &mut record).await, Some(6));
        assert_eq!(next_record(&ours, &end, &mut record).await, None);
        guard.wait().unwrap();
        drop(theirs);
    }
}
