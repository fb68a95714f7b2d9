//! The steps between `fork(2)` and `execve(2)`. The command must not outlive a guard that dies in between (T11).

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, execvpe, getpgrp, getpid, getppid, pipe2, read, setpgid, setsid, write};

use crate::core::guard_messages::Grant;
use crate::guard::briefing::Briefing;
use crate::guard::command::directory::Directory;
use crate::guard::command::environment::{self, Identity};
use crate::guard::command::streams;
use crate::guard::command::terminal::Terminal;
use crate::guard::sys;

/// The exit status of a process that could not become the command. It is not used; the errno says more.
pub const NOT_EXECUTED: i32 = 127;

/// The command and how to start it, any number of times.
#[derive(Debug)]
pub struct Launch {
    arguments: Vec<CString>,
    passed_on: Vec<CString>,
    identity: Identity,
    directory: Directory,
    pub foreground: Option<Foreground>,
    /// The process group of the supervisor.
    group: Pid,
    /// The path of the lease file.
    pub lease_file: Option<PathBuf>,
    /// For an auxiliary command: the briefing of its next run.
    briefing: Option<Briefing>,
}

/// `--foreground`: the command stays in our session.
#[derive(Debug)]
pub struct Foreground {
    pub terminal: Option<Terminal>,
}

/// The values that change from start to start.
#[derive(Debug)]
pub struct ProcessEnvironment {
    /// A cleaned copy of our environment, and the term's variables.
    environment: Vec<CString>,
    takes_terminal: bool,
    /// The standard input of an auxiliary command.
    stdin: Option<Vec<u8>>,
    /// In a session of its own, the kernel would not keep it from reading what is typed for another job.
    reads_nothing: bool,
}

impl Launch {
    /// # Errors
    /// Without a command, or with a NUL byte in it.
    pub fn new(command: Vec<OsString>, identity: Identity, foreground: Option<Foreground>) -> io::Result<Self> {
        if command.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no command"));
        }
        let arguments =
            command.into_iter().map(|argument| CString::new(argument.into_vec())).collect::<Result<_, _>>()?;
        Ok(Self {
            arguments,
            passed_on: environment::passed_on(std::env::vars_os()),
            identity,
            directory: Directory::default(),
            foreground,
            group: getpgrp(),
            lease_file: None,
            briefing: None,
        })
    }

    /// An auxiliary command. Each run gets a briefing.
    ///
    /// # Errors
    /// See [`Launch::new`].
    pub fn auxiliary(command: Vec<OsString>) -> io::Result<Self> {
        let nobody = Identity { id: String::new(), path: String::new() };
        Ok(Self { briefing: Some(Briefing::default()), ..Self::new(command, nobody, None)? })
    }

    /// Whose command this is; `None`: an auxiliary command.
    pub fn participant(&self) -> Option<&Identity> {
        self.briefing.is_none().then_some(&self.identity)
    }

    /// Sets the command's working directory.
    pub fn stand_in(&mut self, directory: Directory) {
        self.directory = directory;
    }

    /// Sets the next briefing. Returns `false` if this is not an auxiliary command.
    pub fn brief(&mut self, briefing: Briefing) -> bool {
        let takes = self.briefing.is_some();
        self.briefing = self.briefing.take().map(|_| briefing);
        takes
    }

    /// Call this before the fork: in a PID namespace our group has no number.
    pub fn process_environment(&self, grant: &Grant) -> ProcessEnvironment {
        if let Some(Briefing { variables, stdin }) = &self.briefing {
            let environment = environment::told(variables, &self.passed_on);
            let stdin = Some(stdin.clone());
            return ProcessEnvironment { environment, takes_terminal: false, stdin, reads_nothing: false };
        }
        let mut environment = environment::of_term(&self.identity, grant);
        environment.extend(self.lease_file.as_deref().and_then(environment::of_lease_file));
        environment.extend_from_slice(&self.passed_on);
        let terminal = self.foreground.as_ref().and_then(|foreground| foreground.terminal.as_ref());
        let takes_terminal = terminal.is_some_and(Terminal::is_at_hand);
        let reads_nothing = self.foreground.is_none() && streams::stdin_is_of_another_job(self.group);
        ProcessEnvironment { environment, takes_terminal, stdin: None, reads_nothing }
    }

    /// Turns the calling process into the command, looked up as by `execvp(3)`. Returns only on an error.
    pub fn become_command(&self, process_environment: &ProcessEnvironment) -> Errno {
        if let Err(errno) = self
            .directory
            .enter_for_the_command()
            .and_then(|()| self.leave_our_group(process_environment.takes_terminal))
        {
            return errno;
        }
        sys::default_every_signal();
        if let Err(errno) = SigSet::empty().thread_set_mask() {
            return errno;
        }
        if let Some(Err(errno)) = process_environment.stdin.as_deref().map(streams::redirect) {
            return errno;
        }
        if let Some(Err(errno)) = process_environment.reads_nothing.then(streams::read_nothing) {
            return errno;
        }
        let Some(program) = self.arguments.first() else { return Errno::ENOENT };
        match execvpe(program, &self.arguments, &process_environment.environment) {
            Err(errno) => errno,
        }
    }

    /// Creates a new session, or, in the foreground, a new group in our session.
    fn leave_our_group(&self, takes_terminal: bool) -> Result<(), Errno> {
        let Some(foreground) = &self.foreground else { return setsid().map(drop) };
        setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        if let Some(terminal) = foreground.terminal.as_ref().filter(|_| takes_terminal) {
            terminal.give_to(getpid());
        }
        Ok(())
    }
}

/// From now on the calling process is killed when the guard, its parent, dies; `ESRCH` if the guard has died already.
/// The kernel clears this when the process changes its credentials: `setpriv(1)`, `su(1)`, a set-user-ID program
/// (`PR_SET_PDEATHSIG(2const)`). So does a security module, when `execve(2)` changes the profile, domain
/// or label of the process. Then the guard and the sentinel kill it, if they have the permission.
pub fn die_with(guard: Pid) -> Result<(), Errno> {
    set_pdeathsig(Signal::SIGKILL)?;
    if getppid() == guard { Ok(()) } else { Err(Errno::ESRCH) }
}

/// A pipe that `execve(2)` closes: end of file reports success, an errno reports failure.
#[derive(Debug)]
pub struct ExecPipe {
    reader: ExecReader,
    writer: OwnedFd,
}

#[derive(Debug)]
pub struct ExecReader(OwnedFd);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExecResult {
    Executed,
    Failed(i32),
}

impl ExecPipe {
    pub fn new() -> Result<Self, Errno> {
        let (reader, writer) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        Ok(Self { reader: ExecReader(reader), writer })
    }

    /// In the new process.
    pub fn tell(&self, errno: Errno) {
        // If the guard is dead, this process dies, too.
        let _ = write(&self.writer, &(errno as i32).to_ne_bytes());
    }

    /// In the old process.
    pub fn into_reader(self) -> ExecReader {
        self.reader
    }
}

impl ExecReader {
    /// `None` until the new process has executed or failed.
    pub fn result(&self) -> Option<ExecResult> {
        let mut errno = [0; 4];
        match read(&self.0, &mut errno) {
            Err(_) => None,
            Ok(length) if length == errno.len() => Some(ExecResult::Failed(i32::from_ne_bytes(errno))),
            Ok(_) => Some(ExecResult::Executed),
        }
    }
}

impl AsFd for ExecReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T11: the guard died before the parent-death signal was set, and the process has another parent now.
    #[test]
    fn a_process_whose_guard_has_died_already_goes_no_further() {
        let not_our_parent = getpid();
        assert_eq!(die_with(not_our_parent), Err(Errno::ESRCH));
        set_pdeathsig(None).unwrap();
    }

    #[test]
    fn a_command_has_a_name_and_no_nul_byte() {
        let identity = || Identity { id: String::new(), path: String::new() };
        assert!(Launch::new(vec![], identity(), None).is_err());
        assert!(Launch::new(vec!["a\0b".into()], identity(), None).is_err());
        assert!(Launch::new(vec!["true".into()], identity(), None).is_ok());
    }
}
