//! The command and all its descendants: started, signalled, killed and reaped. No function here waits.
//!
//! The command stays unreaped until every other process is gone, so that its id continues to name it and its group
//! (T38).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::unistd::{ForkResult, Pid, getpid};

use super::briefing::Briefing;
use super::contain::init::{self, Init, Word};
use super::contain::rest::Rest;
use super::contain::{Containment, Look, Walk};
use super::policy::{CommandSignal, Input};
use super::sys::{self, Child, errno_of};
use crate::core::guard_messages::{ChildStatus, Grant};
use crate::guard::command::launch::{self, ExecPipe, ExecReader, ExecResult, Launch, ProcessEnvironment};
use crate::guard::command::terminal::{self, Terminal};
use crate::guard::processes::children::Children;
use crate::guard::processes::sweep;

/// The maximum number of passes, repeated while each reaps something; then the loop checks its clock again.
const PASSES: usize = 16;

/// See the module page.
#[derive(Debug)]
pub struct Tree {
    launch: Launch,
    stop_signal: i32,
    containment: Containment,
    children: Children,
    command: Option<Command>,
    is_killing: bool,
    rest: Rest,
    /// The tree was frozen, or stopped by a forwarded signal.
    is_frozen: bool,
    /// The freeze or thaw that has not reached every process yet.
    half_done: Option<(Step, Walk)>,
    /// Of this turn: except to kill them, it looks at processes for a limited time.
    look: Look,
    /// Signals of a stop for which the init of the namespace had no room: it stood still, and others filled its socket.
    unsent: Vec<i32>,
}

type Step = fn(&Containment, &mut Walk, &Children, &Look) -> io::Result<()>;

/// The process that was started: the command, or the init of its namespace.
#[derive(Debug)]
struct Command {
    pid: i32,
    /// The command's group, as seen from here; until it is known, the id of the process that was started.
    group: i32,
    link: Link,
    is_init: bool,
    has_ended: bool,
}

/// The source of the command's messages, besides its death.
#[derive(Debug)]
enum Link {
    /// The command is on its way to `execve(2)`.
    Executing(ExecReader),
    Init(Init),
    /// No message will follow.
    Closed,
}

impl Command {
    fn init(&self) -> Option<&Init> {
        match &self.link {
            Link::Init(init) => Some(init),
            Link::Executing(_) | Link::Closed => None,
        }
    }
}

impl Tree {
    pub fn new(launch: Launch, stop_signal: i32, containment: Containment, children: Children) -> Self {
        Self {
            launch,
            stop_signal,
            containment,
            children,
            command: None,
            is_killing: false,
            rest: Rest::Ignored,
            is_frozen: false,
            half_done: None,
            look: Look::begin(),
            unsent: Vec::new(),
        }
    }

    /// Begin it anew in each turn.
    pub fn look(&mut self) -> &mut Look {
        &mut self.look
    }

    pub fn stop_signal(&self) -> i32 {
        self.stop_signal
    }

    /// Sets the next briefing. Returns `false` if this is not the tree of an auxiliary command.
    pub fn brief(&mut self, briefing: Briefing) -> bool {
        self.launch.brief(briefing)
    }

    pub fn spawn(&mut self, grant: &Grant) -> Result<(), Errno> {
        self.containment.make_ready().map_err(errno_of)?;
        let process_environment = self.launch.process_environment(grant);
        let command = match self.containment {
            Containment::PidNamespace(namespace) => {
                let tells_stops = self.launch.foreground.is_some();
                let init = init::spawn(namespace, tells_stops, || self.launch.become_command(&process_environment))?;
                Command { pid: init.pid, group: init.pid, link: Link::Init(init), is_init: true, has_ended: false }
            }
            _ => self.fork_command(&process_environment)?,
        };
        self.rehearse(command.pid);
        self.command = Some(command);
        (self.is_frozen, self.is_killing) = (false, false);
        self.give_up_signals();
        Ok(())
    }

    /// After each fork, which makes our pages common again.
    fn rehearse(&self, command: i32) {
        sweep::rehearse(&self.children, Some(command));
        let _ = self.containment.is_empty();
    }

    fn fork_command(&self, process_environment: &ProcessEnvironment) -> Result<Command, Errno> {
        let guard = getpid();
        let exec = ExecPipe::new()?;
        match self.containment.fork()? {
            ForkResult::Parent { child } => {
                let (pid, link) = (child.as_raw(), Link::Executing(exec.into_reader()));
                Ok(Command { pid, group: pid, link, is_init: false, has_ended: false })
            }
            ForkResult::Child => {
                let joined = launch::die_with(guard).and_then(|()| self.containment.join().map_err(errno_of));
                exec.tell(joined.map_or_else(|errno| errno, |()| self.launch.become_command(process_environment)));
                sys::exit(launch::NOT_EXECUTED)
            }
        }
    }

    /// A descriptor to poll for reading: the command's messages.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.command.as_ref()?.link {
            Link::Executing(exec) => Some(exec.as_fd()),
            Link::Init(init) => Some(init.fd()),
            Link::Closed => None,
        }
    }

    /// The next input since the last call; `None` if there is none.
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
                Word::Executed => {
                    command.group = init.command();
                    Some(Input::Executed { pid: command.group })
                }
                // A slow init may tell this before it tells that the command was executed.
                Word::Stopped(signal) => {
                    command.group = init.command();
                    self.command_stopped(signal);
                    self.words()
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

    /// Checks the command first: while it lives, any other dead child is an orphan.
    fn death(&mut self) -> Option<Input> {
        let command = self.command.as_ref().filter(|command| !command.has_ended)?;
        let pid = command.pid;
        let Ok(Some((_, status))) = sys::peek(Child::Pid(pid)) else {
            // The init reports on a command in a namespace.
            let has_terminal = self.launch.foreground.is_some() && !command.is_init;
            if let Some(signal) = Some(pid).filter(|_| has_terminal).and_then(sys::stopped_by) {
                self.command_stopped(signal);
            }
            // The rest is dead and can wait.
            self.look.cut_if(sys::reap_others(Some(pid)));
            return None;
        };
        // A message sent before the death comes first.
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

    /// The foreground command was stopped, and not by our order.
    fn command_stopped(&self, signal: i32) {
        let goes_on = !self.is_frozen
            && match self.terminal() {
                Some(terminal) => terminal.outlives_stop(signal, self.group()),
                // There is no shell that could continue it.
                None => !terminal::is_of_background(signal),
            };
        if goes_on {
            let _ = sys::kill(-self.group().as_raw(), libc::SIGCONT);
        }
    }

    /// A shell's `fg` gives the terminal to our job, and no signal to a job that runs.
    fn keep_terminal(&self) {
        let runs = self.command.as_ref().is_some_and(|command| !command.has_ended) && !self.is_frozen;
        let _ = self.terminal().filter(|_| runs).map(|terminal| terminal.hand_over(self.group()));
    }

    fn take_terminal_back(&self) {
        if let Some(terminal) = self.terminal() {
            terminal.take_back_from(self.group());
        }
    }

    /// Sends a signal to the command only; but SIGCONT to a foreground job goes to its whole group, as from a shell.
    /// The command is the unreaped child of this process or of its init, so the id is valid.
    pub fn signal(&mut self, signal: CommandSignal) {
        match signal {
            CommandSignal::Stop if self.init().is_some() => self.send_to_init(self.stop_signals()),
            CommandSignal::Stop => self.stop_signals().iter().for_each(|&number| self.send(number)),
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
            // If a signal cannot be sent, the command has ended, or stands still before many others.
            Some((Link::Init(init), _)) => drop(init.pass_on(number)),
            Some((_, pid)) => drop(sys::kill(pid, number)),
            None => {}
        }
    }

    fn send_to_init(&mut self, signals: [i32; 2]) {
        self.unsent.extend(signals);
        self.go_on();
    }

    /// The command has ended: sends the stop signal to the processes that it left behind. Call [`Tree::look_for_rest`]
    /// next.
    pub fn stop_rest(&mut self) {
        self.rest = Rest::stopped();
    }

    /// The command has ended: leaves these processes alone. Call [`Tree::look_for_rest`] next.
    pub fn keep_rest(&mut self) {
        self.rest = Rest::Kept;
    }

    fn init(&self) -> Option<&Init> {
        self.command.as_ref()?.init()
    }

    /// A stopped process does not handle other signals (`signal(7)`).
    fn stop_signals(&self) -> [i32; 2] {
        [self.stop_signal, libc::SIGCONT]
    }

    /// Whether the processes left behind have time to end.
    pub fn waits_for_rest(&self) -> bool {
        !matches!(self.rest, Rest::Ignored)
    }

    /// Whether only the kernel's confirmation is missing, which SIGCHLD does not announce.
    pub fn is_all_but_gone(&self) -> bool {
        self.waits_for_rest() && self.command.is_none()
    }

    /// Whether a look, a freeze or a thaw has not reached every process yet.
    pub fn is_behind(&self) -> bool {
        self.look.was_cut() || self.half_done.is_some() || self.rest.is_partial()
    }

    /// Reaps ended processes, the command last. In a stop, tells those that nobody has told. One that cannot be told is killed when
    /// the time is over.
    pub fn look_for_rest(&mut self) -> Option<Input> {
        let kept = self.command.as_ref().map(|command| command.pid);
        let mut rest = self.children.list().unwrap_or_default();
        self.look.cut_if(sweep::reap_some(&mut rest, kept));
        if rest.is_empty() {
            self.reap_command();
        }
        self.tell_rest(&rest);
        (self.command.is_none() && self.is_empty()).then(|| self.emptied())
    }

    fn tell_rest(&mut self, rest: &[i32]) {
        let (init, signals) = (self.command.as_ref().and_then(Command::init), self.stop_signals());
        let Rest::Stopped(stopped) = &mut self.rest else { return };
        if stopped.tell(&self.children, rest, init, signals, &self.look) {
            self.send_to_init(signals.map(init::to_all));
        }
    }

    pub fn freeze(&mut self) {
        self.is_frozen = true;
        self.begin(Containment::freeze);
    }

    pub fn thaw(&mut self) {
        self.is_frozen = false;
        self.begin(Containment::thaw);
    }

    fn begin(&mut self, step: Step) {
        self.half_done = Some((step, Walk::default()));
        self.go_on();
    }

    /// Goes on with a freeze or thaw that could not reach every process, for lack of time, descriptors or memory, and sends what
    /// could not be sent. `kill_at` holds regardless.
    pub fn go_on(&mut self) {
        let (containment, children, look) = (&self.containment, &self.children, &self.look);
        self.half_done.take_if(|(step, walk)| step(containment, walk, children, look).is_ok());
        let may_pass = |signal: &i32| self.init().is_some_and(|init| init.pass_on(*signal).is_err_and(sys::may_pass));
        let sent = self.unsent.iter().position(may_pass).unwrap_or(self.unsent.len());
        self.unsent.drain(..sent);
        self.keep_terminal();
    }

    /// Whatever a stop, a freeze or a thaw has still to send.
    fn give_up_signals(&mut self) {
        (self.rest, self.half_done) = (Rest::Ignored, None);
        self.unsent.clear();
    }

    /// Starts the kill. Call [`Tree::sweep`] until the tree is empty.
    pub fn kill(&mut self) {
        self.is_killing = true;
        self.give_up_signals();
        self.strike();
    }

    pub fn is_killing(&self) -> bool {
        self.is_killing
    }

    /// Kills and reaps the processes that are there now.
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
        Input::Surviving { survivors: survivors + u32::from(self.command.as_ref().is_some_and(|it| !it.has_ended)) }
    }

    fn is_empty(&self) -> bool {
        sweep::has_none() && self.containment.is_empty()
    }

    fn emptied(&mut self) -> Input {
        self.is_killing = false;
        self.give_up_signals();
        self.take_terminal_back();
        Input::TreeEmpty
    }

    fn strike(&self) -> sweep::Pass {
        let command = self.command.as_ref().map(|command| command.pid);
        command.inspect(|&pid| sweep::kill(pid));
        self.containment.kill();
        sweep::pass(&self.children, command, &[])
    }

    /// After its end was reported, and when every other process is gone.
    fn reap_command(&mut self) {
        let ended = self.command.as_ref().filter(|command| command.has_ended);
        if ended.is_some_and(|command| matches!(sys::reap(command.pid), Ok(Some(_)))) {
            self.command = None;
        }
    }

    /// Call this when no tree will follow.
    pub fn remove(&self) {
        self.containment.remove();
    }
}

/// An init that could not report the command's status was killed, and the command with it.
const KILLED: ChildStatus = ChildStatus::Signaled(9);

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process;
    use std::time::Duration;

    use super::*;
    use crate::core::time::Timestamp;
    use crate::guard::command::environment::Identity;
    use crate::guard::command::launch::Foreground;
    use crate::guard::contain::init::tests::pretend;

    /// A tree without a command, which would be in the foreground, but has no terminal.
    fn tree() -> Tree {
        let identity = Identity { id: String::new(), path: String::new() };
        let launch = Launch::new(vec!["true".into()], identity, Some(Foreground { terminal: None })).unwrap();
        let containment = Containment::Subreaper { why: String::new() };
        Tree::new(launch, libc::SIGTERM, containment, Children::OfProcess)
    }

    fn state_of(pid: i32) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "between two looks; no outcome rests on its length")]
    fn until(mut holds: impl FnMut() -> bool) {
        let looks = (0..30_000).take_while(|_| !holds()).inspect(|_| std::thread::sleep(Duration::from_millis(1)));
        assert_ne!(looks.count(), 30_000);
    }

    /// Seen on a loaded machine: the command ran, and Ctrl-Z stopped it, before its init had told that it was executed.
    #[test]
    fn a_command_goes_on_though_its_init_tells_that_it_was_stopped_before_it_tells_that_it_was_executed() {
        // A shell with job control starts each job in a group of its own.
        let mut shell = process::Command::new("bash");
        shell.args(["-c", "set -m; sleep 1000 & kill -STOP $!; read -r line"]);
        let mut shell = shell.stdin(process::Stdio::piped()).process_group(0).spawn().unwrap();
        let pid = i32::try_from(shell.id()).unwrap();
        let (init, tell) = pretend(pid);
        until(|| init.command() != pid && state_of(init.command()) == 'T');
        let command = init.command();
        let mut tree = tree();
        tree.command = Some(Command { pid, group: pid, link: Link::Init(init), is_init: true, has_ended: false });
        tell(Word::Stopped(libc::SIGTSTP));
        assert!(tree.words().is_none());
        until(|| state_of(command) != 'T');
        tell(Word::Executed);
        assert!(matches!(tree.words(), Some(Input::Executed { pid }) if pid == command));
        sys::kill(command, libc::SIGKILL).unwrap();
        shell.kill().unwrap();
        shell.wait().unwrap();
    }

    #[test]
    fn another_look_follows_until_all_are_told() {
        let children = Children::OfThread(std::fs::File::open("/proc/thread-self/children").unwrap());
        let mut tree = Tree { children, ..tree() };
        tree.stop_rest();
        assert!(tree.is_behind(), "nobody was told");
        until(|| {
            *tree.look() = Look::begin();
            tree.look_for_rest();
            !tree.is_behind()
        });
    }

    /// Each turn begins when a deadline has come.
    #[test]
    fn a_freeze_that_was_cut_goes_on_in_the_next_turn() {
        let mut sleep = process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(sleep.id()).unwrap();
        let children = Children::OfThread(std::fs::File::open("/proc/thread-self/children").unwrap());
        let mut tree = Tree { children, ..tree() };
        tree.look().end_at(Some(Timestamp::ZERO));
        tree.freeze();
        assert!(tree.look().was_cut() && tree.is_behind(), "it has taken longer than it may");
        let turns = (0..100).take_while(|_| {
            *tree.look() = Look::begin();
            tree.look().end_at(Some(Timestamp::ZERO));
            tree.go_on();
            tree.is_behind()
        });
        let turns = turns.count();
        until(|| state_of(pid) == 'T' || turns == 100);
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        assert_ne!(turns, 100, "it begins anew in each turn");
    }

    /// As many as are reaped at once, and no death comes after them.
    #[test]
    fn the_dead_that_one_turn_leaves_are_reaped_in_the_next_one() {
        if !sys::tests::is_alone("guard::tree::tests::the_dead_that_one_turn_leaves_are_reaped_in_the_next_one") {
            return;
        }
        let mut sleep = process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(sleep.id()).unwrap();
        sys::tests::leave_dead(sys::REAPED_AT_ONCE + 1);
        let mut tree = tree();
        tree.command = Some(Command { pid, group: pid, link: Link::Closed, is_init: false, has_ended: false });
        let mut turn = || {
            *tree.look() = Look::begin();
            assert_eq!(tree.news(), None);
            tree.look().was_cut() && tree.is_behind()
        };
        let follows = [turn(), turn()];
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        assert_eq!(follows, [true, false], "whether another turn follows at once");
    }

    /// Ctrl-Z twice, and the command ends before the guard has looked.
    #[test]
    fn the_command_s_status_is_known_though_its_init_told_of_stops_before_and_is_dead() {
        let mut dead = process::Command::new("true").process_group(0).spawn().unwrap();
        let pid = i32::try_from(dead.id()).unwrap();
        until(|| state_of(pid) == 'Z');
        let (init, tell) = pretend(pid);
        let mut tree = tree();
        tree.command = Some(Command { pid, group: pid, link: Link::Init(init), is_init: true, has_ended: false });
        let status = ChildStatus::Exited(3);
        [Word::Stopped(libc::SIGTSTP), Word::Stopped(libc::SIGTSTP), Word::Ended(status)].into_iter().for_each(tell);
        assert_eq!(tree.news(), Some(Input::CommandEnded(status)));
        dead.wait().unwrap();
    }
}
