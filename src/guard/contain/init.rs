//! PID 1 of the namespace. It starts the command, reaps orphans, forwards signals, reports how the command ended, and
//! ends after the last process in the namespace. It does not outlive the guard. If it is killed, the kernel kills every
//! process in the namespace, and the guard can reap it only when none is left (`pid_namespaces(7)`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use nix::sys::socket::{MsgFlags, recv};
use nix::unistd::ForkResult;

use super::{PidNamespace, Process, children_of, known};
use crate::core::guard_messages::ChildStatus;
use crate::guard::command::launch::{self, ExecPipe, ExecResult};
use crate::guard::sys::{self, Child};

/// A message from the init to the guard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    Executed,
    NotExecuted(i32),
    /// The command was stopped by this signal.
    Stopped(i32),
    Ended(ChildStatus),
    /// No message will follow: the init has closed its end, or died.
    Last,
}

/// The guard's end: the init and the socket to it.
#[derive(Debug)]
pub struct Init {
    pub pid: i32,
    socket: OwnedFd,
}

/// Starts an init, which starts the command: `become_command` runs in the command's process. `tells_stops`: the init
/// reports when the command is stopped.
pub fn spawn(
    namespace: PidNamespace,
    tells_stops: bool,
    become_command: impl FnOnce() -> Errno,
) -> Result<Init, Errno> {
    let (ours, theirs) = sys::socket_pair()?;
    match namespace.fork()? {
        ForkResult::Parent { child } => Ok(Init { pid: child.as_raw(), socket: ours }),
        ForkResult::Child => {
            drop(ours);
            if let Err(errno) = run(namespace, &theirs, tells_stops, become_command) {
                tell(&theirs, Word::NotExecuted(errno as i32));
            }
            sys::exit(launch::NOT_EXECUTED)
        }
    }
}

impl Init {
    #[cfg(test)]
    pub fn of(pid: i32, socket: OwnedFd) -> Self {
        Self { pid, socket }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The command's id as seen from here: it is the first child of its init. The init's own id before the command is
    /// started, and after it is reaped.
    pub fn command(&self) -> i32 {
        *children_of(self.pid).first().unwrap_or(&self.pid)
    }

    /// The next message; `None` if there is none yet.
    pub fn word(&self) -> Option<Word> {
        let mut record = [0; WORD_SIZE];
        match recv(self.socket.as_raw_fd(), &mut record, MsgFlags::MSG_DONTWAIT) {
            Ok(WORD_SIZE) => Word::decode(record),
            Ok(_) => Some(Word::Last),
            // Once, from an init that ended before it read all of our signals; its messages come after it.
            Err(Errno::ECONNRESET) => self.word(),
            Err(_) => None,
        }
    }

    /// Its children: what is adopted in the namespace, and the command.
    ///
    /// # Errors
    /// If they cannot be looked for.
    pub fn children(&self) -> io::Result<Vec<Process>> {
        known(&[self.pid])?.first().map_or_else(|| Ok(Vec::new()), Process::children)
    }

    /// Makes the init send a signal to the command, or to all ([`to_all`]). As its parent, the init knows that the id is still the command's.
    pub fn pass_on(&self, signal: i32) -> Result<(), Errno> {
        sys::send_now(&self.socket, &signal.to_ne_bytes()).map(drop)
    }
}

/// This signal, to every other process in the namespace.
pub const fn to_all(signal: i32) -> i32 {
    -signal
}

/// Runs in the new namespace with every signal blocked. An init would ignore signals without a handler anyway.
fn run(
    namespace: PidNamespace,
    socket: &OwnedFd,
    tells_stops: bool,
    become_command: impl FnOnce() -> Errno,
) -> Result<(), Errno> {
    set_pdeathsig(Signal::SIGKILL)?;
    namespace.settle()?;
    let exec = ExecPipe::new()?;
    // The guard may have died before that call. getppid() is always 0 here, but the socket shows it (T11).
    exit_without_guard(socket);
    // Nothing that can fail comes between the fork and the loop: the command would be taken for one that never ran.
    let deaths = sys::deaths()?;
    let command = match sys::fork()? {
        ForkResult::Child => {
            let errno = become_command();
            exec.tell(errno);
            sys::exit(launch::NOT_EXECUTED)
        }
        ForkResult::Parent { child } => child.as_raw(),
    };
    let exec = exec.into_reader();
    sys::close_on_exec_now(&[socket.as_fd(), exec.as_fd(), deaths.as_fd()]);
    attend(command, tells_stops, (socket, &deaths), exec)
}

fn attend(
    command: i32,
    tells_stops: bool,
    (socket, deaths): (&OwnedFd, &SignalFd),
    exec: launch::ExecReader,
) -> Result<(), Errno> {
    let (mut exec, mut has_ended, mut has_more) = (Some(exec), false, false);
    let mut untold = Untold(Vec::with_capacity(2));
    loop {
        let exec_fd = exec.as_ref().map_or(deaths.as_fd(), AsFd::as_fd);
        let mut fds = [deaths.as_fd(), socket.as_fd(), exec_fd].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match poll(&mut fds, if has_more { PollTimeout::ZERO } else { untold.again_after() }) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        while let Ok(Some(_)) = deaths.read_signal() {}
        exit_without_guard(socket);
        pass_signals_on(Some(command).filter(|_| !has_ended), socket);
        if let Some(signal) = Some(command).filter(|_| tells_stops).and_then(sys::stopped_by) {
            tell(socket, Word::Stopped(signal));
        }
        if let Some(result) = exec.as_ref().and_then(launch::ExecReader::result) {
            exec = None;
            untold.0.push(match result {
                ExecResult::Executed => Word::Executed,
                ExecResult::Failed(errno) => Word::NotExecuted(errno),
            });
        }
        has_more = sys::reap_others(Some(command).filter(|_| !has_ended));
        if exec.is_none() && !has_ended {
            if let Ok(Some((_, status))) = sys::peek(Child::Pid(command)) {
                untold.0.push(Word::Ended(status));
                (has_ended, has_more) = (true, true);
            }
        }
        untold.tell(|word| sys::send_now(socket, word));
        if has_ended && untold.0.is_empty() && sys::peek(Child::Any) == Err(Errno::ECHILD) {
            sys::exit(0);
        }
    }
}

/// Ends this process, and with it the namespace, if the guard has closed its end or died.
fn exit_without_guard(socket: &OwnedFd) {
    let mut signal = [0; 4];
    if recv(socket.as_raw_fd(), &mut signal, MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT) == Ok(0) {
        sys::exit(launch::NOT_EXECUTED);
    }
}

/// A negative number goes to every other process (`kill(2)`), a positive one to the command, if it is not reaped yet.
fn pass_signals_on(command: Option<i32>, socket: &OwnedFd) {
    let mut record = [0; 4];
    while recv(socket.as_raw_fd(), &mut record, MsgFlags::MSG_DONTWAIT) == Ok(record.len()) {
        let signal = i32::from_ne_bytes(record);
        let whom = if signal < 0 { Some(-1) } else { command };
        // It may have ended.
        let _ = whom.map(|whom| sys::kill(whom, signal.saturating_abs()));
    }
}

/// What the guard has still to hear, in order. It would wait for ever for the end of a command that has ended.
struct Untold(Vec<Word>);

impl Untold {
    fn tell(&mut self, mut send: impl FnMut(&[u8]) -> Result<usize, Errno>) {
        // If the guard is dead, this process dies, too.
        while self.0.first().is_some_and(|word| !send(&word.encode()).is_err_and(sys::may_pass)) {
            self.0.remove(0);
        }
    }

    fn again_after(&self) -> PollTimeout {
        if self.0.is_empty() { PollTimeout::NONE } else { PollTimeout::from(100_u8) }
    }
}

fn tell(socket: &OwnedFd, word: Word) {
    let _ = sys::send_now(socket, &word.encode());
}

const WORD_SIZE: usize = 5;

impl Word {
    fn encode(self) -> [u8; WORD_SIZE] {
        let (kind, value) = match self {
            Self::Last => (0, 0),
            Self::Executed => (1, 0),
            Self::NotExecuted(errno) => (2, errno),
            Self::Ended(ChildStatus::Exited(code)) => (3, i32::from(code)),
            Self::Ended(ChildStatus::Signaled(signal)) => (4, i32::from(signal)),
            Self::Ended(ChildStatus::NotExecuted(errno)) => (5, errno),
            Self::Stopped(signal) => (6, signal),
        };
        let [a, b, c, d] = value.to_ne_bytes();
        [kind, a, b, c, d]
    }

    fn decode([kind, a, b, c, d]: [u8; WORD_SIZE]) -> Option<Self> {
        let value = i32::from_ne_bytes([a, b, c, d]);
        let byte = u8::try_from(value);
        Some(match kind {
            0 => Self::Last,
            1 => Self::Executed,
            2 => Self::NotExecuted(value),
            3 => Self::Ended(ChildStatus::Exited(byte.ok()?)),
            4 => Self::Ended(ChildStatus::Signaled(byte.ok()?)),
            5 => Self::Ended(ChildStatus::NotExecuted(value)),
            6 => Self::Stopped(value),
            _ => return None,
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// This process as an init, and a way to speak for it.
    pub fn pretend(pid: i32) -> (Init, impl Fn(Word)) {
        let (ours, theirs) = sys::socket_pair().unwrap();
        (Init { pid, socket: ours }, move |word| tell(&theirs, word))
    }

    /// The memory of its cgroup may be full for a moment.
    #[test]
    fn what_the_guard_could_not_be_told_is_told_again_in_order() {
        let words = [Word::Executed, Word::Ended(ChildStatus::Exited(0))];
        for failure in [Errno::ENOBUFS, Errno::ENOMEM, Errno::EAGAIN] {
            let (mut untold, mut failures, mut told) = (Untold(words.to_vec()), vec![failure], Vec::new());
            for is_whole in [false, true] {
                untold.tell(|word| {
                    failures.pop().map_or(Ok(()), Err)?;
                    told.push(Word::decode(word.try_into().unwrap()));
                    Ok(word.len())
                });
                assert_eq!(untold.again_after() == PollTimeout::NONE, is_whole, "{failure}");
            }
            assert_eq!(told, words.map(Some), "{failure}");
        }
        let mut untold = Untold(words.to_vec());
        untold.tell(|_| Err(Errno::EPIPE));
        assert!(untold.0.is_empty(), "nobody is there to hear it");
    }

    /// A stop is two signals. The command may end by the first one, and its init before it reads the second one.
    #[test]
    fn the_command_s_status_arrives_though_its_init_ended_before_it_read_all_signals() {
        let (init, tell) = pretend(0);
        init.pass_on(libc::SIGCONT).unwrap();
        let status = ChildStatus::Signaled(15);
        tell(Word::Ended(status));
        drop(tell);
        assert_eq!([init.word(), init.word(), init.word()], [Word::Ended(status), Word::Last, Word::Last].map(Some));
    }
}
