//! The command and all its descendants: started, signalled, killed and reaped until none is left.
//!
//! The command stays unreaped until everything else is gone, so that its id goes on naming it and its group (T38).
//!
//! Never: a wait. Whatever takes time is asked about again.

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::unistd::{ForkResult, Pid, getpid};

use super::briefing::Briefing;
use super::children::Children;
use super::contain::init::{self, Init, Word};
use super::contain::{Containment, children_of};
use super::launch::{self, ExecPipe, ExecReader, ExecResult, Launch, Surroundings};
use super::policy::{CommandSignal, Input};
use super::sweep;
use super::sys::{self, Child};
use crate::core::order::{ChildStatus, Grant};

/// One pass after another while each reaps something; then the loop looks at its clock again.
const PASSES: usize = 16;

/// Reaped between two looks at the clock.
const ORPHANS_AT_ONCE: usize = 256;

/// See the module.
#[derive(Debug)]
pub struct Tree {
    launch: Launch,
    stop_signal: i32,
    containment: Containment,
    children: Children,
    command: Option<Command>,
    is_killing: bool,
    is_frozen: bool,
}

/// The process that was started: the command, or the init of its namespace.
#[derive(Debug)]
struct Command {
    pid: i32,
    link: Link,
    is_init: bool,
    has_ended: bool,
}

/// What is heard from it beside its death.
#[derive(Debug)]
enum Link {
    /// On its way to `execve(2)`.
    Executing(ExecReader),
    Init(Init),
    /// Nothing more will be heard.
    Closed,
}

impl Tree {
    pub fn new(launch: Launch, stop_signal: i32, containment: Containment, children: Children) -> Self {
        Self { launch, stop_signal, containment, children, command: None, is_killing: false, is_frozen: false }
    }

    /// What the next run is told, if this is the tree of an errand; else nothing happens.
    pub fn brief(&mut self, briefing: Briefing) -> bool {
        self.launch.brief(briefing)
    }

    pub fn spawn(&mut self, grant: &Grant) -> Result<(), Errno> {
        self.containment.make_ready().map_err(|error| errno_of(&error))?;
        let surroundings = self.launch.surroundings(grant);
        let command = match self.containment {
            Containment::PidNamespace(namespace) => {
                let continues_stopped = self.launch.foreground.is_some();
                let init = init::spawn(namespace, continues_stopped, || self.launch.become_command(&surroundings))?;
                Command { pid: init.pid, link: Link::Init(init), is_init: true, has_ended: false }
            }
            _ => self.fork_command(&surroundings)?,
        };
        self.command = Some(command);
        (self.is_killing, self.is_frozen) = (false, false);
        Ok(())
    }

    fn fork_command(&self, surroundings: &Surroundings) -> Result<Command, Errno> {
        let guard = getpid();
        let exec = ExecPipe::new()?;
        match self.containment.fork()? {
            ForkResult::Parent { child } => {
                let link = Link::Executing(exec.into_reader());
                Ok(Command { pid: child.as_raw(), link, is_init: false, has_ended: false })
            }
            ForkResult::Child => {
                let joined =
                    launch::die_with(guard).and_then(|()| self.containment.join().map_err(|error| errno_of(&error)));
                exec.tell(joined.map_or_else(|errno| errno, |()| self.launch.become_command(surroundings)));
                sys::exit(launch::NOT_EXECUTED)
            }
        }
    }

    /// To be polled for reading: something is to be heard from the command.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.command.as_ref()?.link {
            Link::Executing(exec) => Some(exec.as_fd()),
            Link::Init(init) => Some(init.fd()),
            Link::Closed => None,
        }
    }

    /// What has happened since the last call; `None` when that was all.
    pub fn news(&mut self) -> Option<Input> {
        let news = self.words().or_else(|| self.death());
        if matches!(news, Some(Input::CommandEnded(_))) {
            self.take_terminal_back();
        }
        news
    }

    fn words(&mut self) -> Option<Input> {
        let command = self.command.as_mut()?;
        match &command.link {
            Link::Closed => None,
            Link::Executing(exec) => {
                let result = exec.result()?;
                command.link = Link::Closed;
                Some(match result {
                    ExecResult::Executed => Input::Executed { pid: command.pid },
                    ExecResult::Failed(errno) => Input::NotExecuted { errno },
                })
            }
            Link::Init(init) => match init.word()? {
                // The command is the first child of its init; its id is wanted as it is seen from here.
                Word::Executed => Some(Input::Executed { pid: *children_of(init.pid).first().unwrap_or(&init.pid) }),
                Word::NotExecuted(errno) => Some(Input::NotExecuted { errno }),
                Word::Ended(status) => {
                    command.has_ended = true;
                    Some(Input::CommandEnded(status))
                }
                Word::Last => {
                    command.link = Link::Closed;
                    None
                }
            },
        }
    }

    /// Looks at the command first: while it lives, whatever else has died is an orphan that was given to us.
    fn death(&mut self) -> Option<Input> {
        let command = self.command.as_ref().filter(|command| !command.has_ended)?;
        let pid = command.pid;
        let Ok(Some((_, status))) = sys::peek(Child::Pid(pid)) else {
            self.continue_if_stopped(pid);
            reap_orphans(pid);
            return None;
        };
        // What it said before it died comes before its death.
        if let Some(news) = self.words() {
            return Some(news);
        }
        let command = self.command.as_mut()?;
        command.has_ended = true;
        Some(Input::CommandEnded(if command.is_init { KILLED } else { status }))
    }

    /// A command in the foreground that Ctrl-Z has stopped would hold the lease for nothing.
    fn continue_if_stopped(&self, pid: i32) {
        if self.launch.foreground.is_some() && !self.is_frozen && sys::was_stopped(pid) {
            let _ = sys::kill(-pid, libc::SIGCONT);
        }
    }

    fn take_terminal_back(&self) {
        let terminal = self.launch.foreground.as_ref().and_then(|foreground| foreground.terminal.as_ref());
        if let Some(terminal) = terminal {
            terminal.take_back_from(Pid::from_raw(self.command.as_ref().map_or(0, |command| command.pid)));
        }
    }

    /// To the command only. It is our unreaped child, so the id is its own.
    pub fn signal(&self, signal: CommandSignal) {
        let number = match signal {
            CommandSignal::Stop => self.stop_signal,
            CommandSignal::Forwarded(number) => number,
        };
        match self.command.as_ref().map(|command| (&command.link, command.pid)) {
            // A signal that cannot be sent any more is for a command that has ended.
            Some((Link::Init(init), _)) => drop(init.pass_on(number)),
            Some((_, pid)) => drop(sys::kill(pid, number)),
            None => {}
        }
    }

    pub fn freeze(&mut self) {
        self.is_frozen = true;
        // Best effort by its nature: kill_at holds regardless.
        let _ = self.containment.freeze(&self.children);
    }

    pub fn thaw(&mut self) {
        self.is_frozen = false;
        let _ = self.containment.thaw(&self.children);
    }

    /// The first blow. [`Tree::sweep`] is to follow until the tree is empty.
    pub fn kill(&mut self) {
        self.is_killing = true;
        self.strike();
    }

    pub fn is_killing(&self) -> bool {
        self.is_killing
    }

    /// Kills whatever is there by now, and reaps it.
    pub fn sweep(&mut self) -> Input {
        let mut survivors = 0;
        for _ in 0..PASSES {
            let pass = self.strike();
            survivors = pass.found - pass.reaped;
            if pass.found == 0 {
                self.reap_command();
            }
            if pass.reaped == 0 {
                break;
            }
        }
        if self.command.is_none() && sweep::has_none() && self.containment.is_empty() {
            self.is_killing = false;
            self.take_terminal_back();
            return Input::TreeEmpty;
        }
        Input::Surviving { survivors: survivors + u32::from(self.command.is_some()) }
    }

    fn strike(&self) -> sweep::Pass {
        let command = self.command.as_ref().map(|command| command.pid);
        command.inspect(|&pid| sweep::kill(pid));
        self.containment.kill();
        sweep::pass(&self.children, command, &[])
    }

    /// Once its end was told, and everything else is gone.
    fn reap_command(&mut self) {
        let ended = self.command.as_ref().filter(|command| command.has_ended);
        if ended.is_some_and(|command| matches!(sys::reap(command.pid), Ok(Some(_)))) {
            self.command = None;
        }
    }

    /// When no tree will follow.
    pub fn remove(&self) {
        self.containment.remove();
    }
}

/// An init that could not tell how its command ended was killed, and the command with it.
const KILLED: ChildStatus = ChildStatus::Signaled(9);

/// Some of them: however fast they die, the loop looks at its clock again. The rest has died, and can wait.
fn reap_orphans(command: i32) {
    for _ in 0..ORPHANS_AT_ONCE {
        let Ok(Some((pid, _))) = sys::peek(Child::Any) else { return };
        // It has died just now, and is news for the next look.
        if pid == command {
            return;
        }
        let _ = sys::reap(pid);
    }
}

pub fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
