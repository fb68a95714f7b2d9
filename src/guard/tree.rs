//! The command and all its descendants: started, signalled, killed and reaped until none is left.
//!
//! The command stays unreaped until everything else is gone, so that its id goes on naming it and its group (T38).
//!
//! Never: a wait. Whatever takes time is asked about again.

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::unistd::{ForkResult, Pid, getpid};

use super::briefing::Briefing;
use super::contain::init::{self, Init, Word};
use super::contain::{Containment, children_of, tell_all};
use super::policy::{CommandSignal, Input};
use super::sys::{self, Child, errno_of};
use crate::core::order::{ChildStatus, Grant};
use crate::guard::command::launch::{self, ExecPipe, ExecReader, ExecResult, Launch, Surroundings};
use crate::guard::command::terminal::{self, Terminal};
use crate::guard::processes::children::Children;
use crate::guard::processes::sweep;

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
    /// The command has ended, and what it left behind is given time to end, too.
    stops_rest: bool,
    /// It stands still by order: frozen, or stopped by a signal that was passed on.
    is_frozen: bool,
}

/// The process that was started: the command, or the init of its namespace.
#[derive(Debug)]
struct Command {
    pid: i32,
    /// The group of the command, as it is seen from here; as long as it is not known, the process that was started.
    group: i32,
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
        let (command, is_killing, stops_rest, is_frozen) = (None, false, false, false);
        Self { launch, stop_signal, containment, children, command, is_killing, stops_rest, is_frozen }
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
                let tells_stops = self.launch.foreground.is_some();
                let init = init::spawn(namespace, tells_stops, || self.launch.become_command(&surroundings))?;
                Command { pid: init.pid, group: init.pid, link: Link::Init(init), is_init: true, has_ended: false }
            }
            _ => self.fork_command(&surroundings)?,
        };
        self.command = Some(command);
        (self.is_killing, self.stops_rest, self.is_frozen) = (false, false, false);
        Ok(())
    }

    fn fork_command(&self, surroundings: &Surroundings) -> Result<Command, Errno> {
        let guard = getpid();
        let exec = ExecPipe::new()?;
        match self.containment.fork()? {
            ForkResult::Parent { child } => {
                let (pid, link) = (child.as_raw(), Link::Executing(exec.into_reader()));
                Ok(Command { pid, group: pid, link, is_init: false, has_ended: false })
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
                Word::Executed => {
                    command.group = *children_of(init.pid).first().unwrap_or(&init.pid);
                    Some(Input::Executed { pid: command.group })
                }
                Word::Stopped(signal) => {
                    self.command_stopped(signal);
                    None
                }
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
            // Of the command in a namespace its init tells.
            let has_terminal = self.launch.foreground.is_some() && !command.is_init;
            if let Some(signal) = Some(pid).filter(|_| has_terminal).and_then(sys::stopped_by) {
                self.command_stopped(signal);
            }
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

    fn terminal(&self) -> Option<&Terminal> {
        self.launch.foreground.as_ref()?.terminal.as_ref()
    }

    fn group(&self) -> Pid {
        Pid::from_raw(self.command.as_ref().map_or(0, |command| command.group))
    }

    /// A command in the foreground was stopped, and not by our order.
    fn command_stopped(&self, signal: i32) {
        let goes_on = !self.is_frozen
            && match self.terminal() {
                Some(terminal) => terminal.outlives_stop(signal, self.group()),
                // Nobody could continue it.
                None => !terminal::is_of_background(signal),
            };
        if goes_on {
            let _ = sys::kill(-self.group().as_raw(), libc::SIGCONT);
        }
    }

    fn take_terminal_back(&self) {
        if let Some(terminal) = self.terminal() {
            terminal.take_back_from(self.group());
        }
    }

    /// To the command only; but what continues a job in the foreground continues its whole group, as a shell does. The
    /// command is our unreaped child, or its init's, so the id is its own.
    pub fn signal(&mut self, signal: CommandSignal) {
        match signal {
            // A process that stands still hears nothing else (`signal(7)`).
            CommandSignal::Stop => [self.stop_signal, libc::SIGCONT].iter().for_each(|&number| self.send(number)),
            CommandSignal::Forwarded(number @ (libc::SIGSTOP | libc::SIGTSTP)) => {
                self.is_frozen = true;
                self.send(number);
            }
            CommandSignal::Forwarded(libc::SIGCONT) if self.launch.foreground.is_some() => {
                self.is_frozen = false;
                if let Some(terminal) = self.terminal() {
                    terminal.hand_over(self.group());
                }
                if self.command.as_ref().is_some_and(|command| !command.has_ended) {
                    let _ = sys::kill(-self.group().as_raw(), libc::SIGCONT);
                }
            }
            CommandSignal::Forwarded(number) => self.send(number),
        }
    }

    fn send(&self, number: i32) {
        match self.command.as_ref().map(|command| (&command.link, command.pid)) {
            // A signal that cannot be sent any more is for a command that has ended.
            Some((Link::Init(init), _)) => drop(init.pass_on(number)),
            Some((_, pid)) => drop(sys::kill(pid, number)),
            None => {}
        }
    }

    /// The command has ended: the stop signal to all that it left behind. [`Tree::look_for_rest`] is to follow.
    pub fn stop_rest(&mut self) {
        self.stops_rest = true;
        let signals = [self.stop_signal, libc::SIGCONT];
        // Whoever cannot be told is killed when the time is over.
        match self.command.as_ref().map(|command| &command.link) {
            Some(Link::Init(init)) => {
                let _ = signals.map(|number| init.pass_on_to_all(number));
            }
            _ => drop(tell_all(&self.children, signals)),
        }
    }

    /// What is left has been told to end.
    pub fn is_stopping_rest(&self) -> bool {
        self.stops_rest
    }

    /// Only the kernel's word for it is missing, of which no SIGCHLD tells.
    pub fn is_all_but_gone(&self) -> bool {
        self.stops_rest && self.command.is_none()
    }

    /// Reaps what has ended, the command last.
    pub fn look_for_rest(&mut self) -> Option<Input> {
        let kept = self.command.as_ref().map(|command| command.pid);
        let listed = self.children.list().unwrap_or_default();
        let lives = |pid: &&i32| Some(**pid) != kept && !matches!(sys::reap(**pid), Ok(Some(_)));
        if listed.iter().filter(lives).count() == 0 {
            self.reap_command();
        }
        (self.command.is_none() && self.is_empty()).then(|| self.emptied())
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
        (self.is_killing, self.stops_rest) = (true, false);
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
        if self.command.is_none() && self.is_empty() {
            return self.emptied();
        }
        Input::Surviving { survivors: survivors + u32::from(self.command.is_some()) }
    }

    fn is_empty(&self) -> bool {
        sweep::has_none() && self.containment.is_empty()
    }

    fn emptied(&mut self) -> Input {
        (self.is_killing, self.stops_rest) = (false, false);
        self.take_terminal_back();
        Input::TreeEmpty
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
