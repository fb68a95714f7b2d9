//! A host: one supervisor at a time with its guard and its tree, in a namespace of its own; started again after its end.
//!
//! Never: a signal to a process outside of the host's namespace.

use std::borrow::Cow;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::dice::Dice;
use super::lab::Node;
use super::settings::{Election, HostDraw};
use super::upgrade::{self, Programs, Upgrade};
use crate::support::diary::now;
use crate::support::subject::{guards_of, is_alive};
use crate::support::wait;

/// How every supervisor is started.
#[derive(Clone, Debug)]
pub struct Setup {
    pub programs: Programs,
    /// Where each host has a program of its own.
    pub installed: PathBuf,
    pub witness: PathBuf,
    pub diary: PathBuf,
    pub logs: PathBuf,
    pub session_timeout: Duration,
    pub priority: i16,
    pub election: Election,
    pub base: String,
}

impl Setup {
    pub fn of(&self, host: &HostDraw) -> Self {
        Self { session_timeout: host.session_timeout, priority: host.priority, ..self.clone() }
    }

    /// Of the commands in one slot.
    pub fn diary(&self, slot: usize) -> PathBuf {
        PathBuf::from(format!("{}.{slot}", self.diary.display()))
    }
}

/// An upgrade that is not done by then is refused: it waits for contact as long as a lease lasts, and for an answer for 5 s.
const PATIENCE: Duration = Duration::from_secs(12);

/// Calls within so long are for one job.
const JOB: Duration = Duration::from_secs(4);

#[derive(Debug)]
pub struct Host {
    pub node: Node,
    connect: String,
    setup: Setup,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    dice: Dice,
    runs: u32,
    current: Option<Run>,
    start_at: Option<Duration>,
    stopped: bool,
    journal: Vec<Life>,
}

#[derive(Debug)]
struct Run {
    child: Child,
    guard: Option<i32>,
    shape: Shape,
}

/// One process life of a supervisor.
#[derive(Clone, Debug)]
pub struct Life {
    pub host: String,
    pub began: Duration,
    pub ended: Option<Duration>,
    pub shape: String,
    pub status: String,
}

/// What varies from one start to the next.
#[derive(Clone, Debug)]
pub struct Shape {
    witness: Vec<String>,
    contain: &'static str,
    on_pause: &'static str,
}

impl Shape {
    /// Without a PID namespace a daemon outlives supervisor, guard and sentinel, if all are stopped together: a stated limit.
    pub fn needs_one_keeper(&self) -> bool {
        self.contain != "pid-namespace" && self.leaves_a_daemon()
    }

    fn leaves_a_daemon(&self) -> bool {
        self.witness.iter().any(|option| option == "daemonise")
    }

    fn calm() -> Self {
        Self { witness: Vec::new(), contain: "subreaper", on_pause: "run" }
    }

    /// `ends`: a job has to, or none but the first would ever run.
    fn throw(dice: &mut Dice, ends: bool) -> Self {
        let ending = match dice.below(8) {
            _ if ends => Some(format!("exit-after={}", 500 + dice.below(3000))),
            0..=2 => None,
            3 | 4 => Some("ignore-term".to_owned()),
            5 | 6 => Some(format!("linger={}", 300 + dice.below(1700))),
            _ => Some(format!("exit-after={}", 500 + dice.below(5000))),
        };
        let daemon = dice.percent(40).then(|| "daemonise".to_owned());
        let contain = dice.pick(&["subreaper", "cgroup", "pid-namespace"]).unwrap();
        let on_pause = if dice.percent(20) { "freeze" } else { "run" };
        Self { witness: ending.into_iter().chain(daemon).collect(), contain, on_pause }
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let witness = if self.witness.is_empty() { "plain".to_owned() } else { self.witness.join("+") };
        write!(f, "{witness}, {}, {}", self.contain, self.on_pause)
    }
}

impl Host {
    pub fn new(node: Node, connect: String, setup: Setup, dice: Dice) -> Self {
        setup.programs.install(&setup.installed.join(&node.name));
        let state =
            State { dice, runs: 0, current: None, start_at: Some(Duration::ZERO), stopped: false, journal: Vec::new() };
        Self { node, connect, setup, state: Mutex::new(state) }
    }

    /// How long its leases last.
    pub fn lease(&self) -> Duration {
        self.setup.session_timeout
    }

    /// Notices an end, and starts the supervisor again when it is time.
    pub fn attend(&self) {
        let mut state = self.state.lock().unwrap();
        state.notice_end();
        // After an upgrade, the next command has another one.
        let lacks_guard = |run: &&mut Run| run.guard.is_none_or(|guard| !is_alive(guard));
        if let Some(run) = state.current.as_mut().filter(lacks_guard) {
            run.guard = guards_of(run.pid()).into_iter().find(|&child| self.is_subject(child));
        }
        if state.current.is_none() && state.start_at.is_some_and(|at| now() >= at) {
            self.start(&mut state);
        }
    }

    /// No further start.
    pub fn retire(&self) {
        self.state.lock().unwrap().start_at = None;
        self.signal_supervisor(Signal::SIGTERM);
    }

    /// The power fails, for good: no further start, and nothing of it is left.
    pub fn kill_for_good(&self) {
        self.state.lock().unwrap().start_at = None;
        // Stopped before: a guard that outlives its supervisor, or the other way round, frees the record.
        self.stop_everything();
        for pid in self.node.processes() {
            self.signal(Some(pid), Signal::SIGKILL);
        }
        self.state.lock().unwrap().stopped = false;
    }

    /// After [`Self::retire`] or [`Self::kill_for_good`].
    pub fn comes_back(&self) {
        self.state.lock().unwrap().start_at = Some(now());
    }

    pub fn is_retired(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.current.is_none() && state.start_at.is_none()
    }

    /// The supervisor runs, and nothing of it is stopped.
    pub fn is_up(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.current.is_some() && !state.stopped
    }

    pub fn shape(&self) -> Option<Shape> {
        self.state.lock().unwrap().current.as_ref().map(|run| run.shape.clone())
    }

    pub fn signal_supervisor(&self, signal: Signal) {
        let supervisor = self.state.lock().unwrap().current.as_ref().map(Run::pid);
        self.signal(supervisor, signal);
    }

    pub fn signal_guard(&self, signal: Signal) {
        let guard = self.state.lock().unwrap().current.as_ref().and_then(|run| run.guard);
        self.signal(guard.filter(|&guard| self.is_subject(guard)), signal);
    }

    /// Installs another program and asks the supervisor to execute it: who was asked, and the program.
    pub fn ask_for_upgrade(&self) -> Option<(i32, PathBuf)> {
        let supervisor = self.state.lock().unwrap().current.as_ref().map(Run::pid)?;
        let program = self.setup.programs.upgrade(supervisor, &self.program())?;
        Some((supervisor, program.to_owned()))
    }

    /// The same, and waits until it is done, or will not be.
    pub fn upgrade(&self, at_holder: bool) -> Option<Upgrade> {
        let asked = now();
        let (supervisor, program) = self.ask_for_upgrade()?;
        let is_over = || upgrade::executes(supervisor, &program) || !self.is_up() || !is_alive(supervisor);
        wait::held_within(PATIENCE, is_over);
        let done = upgrade::executes(supervisor, &program).then(now);
        Some(Upgrade { at_holder, asked, done })
    }

    /// SIGSTOP to everything in here, however it is related.
    pub fn stop_everything(&self) {
        self.state.lock().unwrap().stopped = true;
        // Twice: what was being forked in the first round is there in the second.
        for _ in 0..2 {
            for pid in self.node.processes() {
                self.signal(Some(pid), Signal::SIGSTOP);
            }
        }
    }

    /// As in a paused virtual machine; `false` where the kernel has no v1 freezer.
    pub fn freeze(&self) -> bool {
        let Some(freezer) = self.node.freezer() else { return false };
        self.state.lock().unwrap().stopped = true;
        fs::write(freezer, "FROZEN").unwrap();
        true
    }

    /// Whatever was stopped runs again.
    pub fn heal(&self) {
        if !std::mem::take(&mut self.state.lock().unwrap().stopped) {
            return;
        }
        if let Some(freezer) = self.node.freezer() {
            fs::write(freezer, "THAWED").unwrap();
        }
        for pid in self.node.processes() {
            self.signal(Some(pid), Signal::SIGCONT);
        }
    }

    /// The servers that the supervisor is connected to.
    pub fn servers_in_touch(&self) -> Vec<std::net::Ipv4Addr> {
        let Some(pid) = self.state.lock().unwrap().current.as_ref().map(Run::pid) else { return Vec::new() };
        let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
        table.lines().skip(1).filter_map(established_server).collect()
    }

    /// Processes of the tree whose supervisor and guard are both gone.
    pub fn orphans(&self) -> Vec<i32> {
        let processes: Vec<i32> = self.node.processes().into_iter().filter(|&pid| is_alive(pid)).collect();
        let (keepers, others): (Vec<i32>, Vec<i32>) = processes.into_iter().partition(|&pid| self.is_subject(pid));
        let kept: Vec<String> = keepers.into_iter().filter_map(run_of).collect();
        let is_kept = |pid: i32| run_of(pid).is_none_or(|run| kept.contains(&run));
        others.into_iter().filter(|&pid| !is_kept(pid)).collect()
    }

    pub fn journal(&self) -> Vec<Life> {
        self.state.lock().unwrap().journal.clone()
    }

    fn start(&self, state: &mut State) {
        state.runs += 1;
        let election = &self.setup.election;
        let mut shape =
            if election.is_calm { Shape::calm() } else { Shape::throw(&mut state.dice, election.runs_once) };
        // So that most hosts can be struck by every fault.
        if shape.needs_one_keeper() && state.dice.percent(60) {
            shape.contain = "pid-namespace";
        }
        let mut command = self.node.command(&self.program());
        self.arguments(&mut command, &shape);
        let log =
            File::options().create(true).append(true).open(self.setup.logs.join(format!("{}.log", self.node.name)));
        let child = command
            .env("CHAOS_RUN", format!("{}.{}", self.node.name, state.runs))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.unwrap())
            .spawn()
            .unwrap();
        state.journal.push(Life {
            host: self.node.name.clone(),
            began: now(),
            ended: None,
            shape: shape.to_string(),
            status: String::new(),
        });
        state.current = Some(Run { child, guard: None, shape });
    }

    fn arguments(&self, command: &mut Command, shape: &Shape) {
        let Setup { election, .. } = &self.setup;
        let setup = &self.setup;
        command
            .args(["--connect", &self.connect, "--path", &setup.base, "--id", &self.node.name])
            .args(["--session-timeout", &format!("{}ms", setup.session_timeout.as_millis())])
            .args(["--recipe", election.recipe, "--contain", shape.contain, "--on-pause", shape.on_pause])
            .args(["--leaders", &election.leaders.to_string(), "--stop-timeout", "1s", "--log-level", "debug"]);
        if setup.priority != 0 {
            command.args(["--priority", &setup.priority.to_string()]);
        }
        if let Some(limit) = election.vouch {
            command.args(["--vouch", "--vouch-limit", &format!("{}ms", limit.as_millis())]);
        }
        if election.preempts {
            command.args(["--preempt-after", "1s"]);
        }
        let key = election.runs_once.then(|| (now().as_millis() / JOB.as_millis()).to_string());
        match &key {
            Some(key) => command.args(["--slot", key]),
            None => command.args(["--on-exit", "rejoin"]),
        };
        let noted = "[ -z \"$1\" ] || echo $1 $ZK_LEADER_TOKEN >>$2.jobs";
        let script =
            format!("{noted}; diary=$2.$ZK_LEADER_SLOT; shift 2; witness=$1; shift; exec $witness $diary \"$@\"");
        let key = key.unwrap_or_default();
        command
            .args(["--", "sh", "-c", &script, "sh", &key])
            .arg(&setup.diary)
            .arg(&setup.witness)
            .args(&shape.witness);
    }

    fn is_subject(&self, pid: i32) -> bool {
        self.setup.programs.are_executed_by(pid)
    }

    fn program(&self) -> PathBuf {
        self.setup.installed.join(&self.node.name)
    }

    fn signal(&self, pid: Option<i32>, signal: Signal) {
        let Some(pid) = pid else { return };
        if signal == Signal::SIGSTOP {
            self.state.lock().unwrap().stopped = true;
        }
        // It may have ended meanwhile.
        kill(Pid::from_raw(pid), signal).ok();
    }
}

impl State {
    fn notice_end(&mut self) {
        let Some(run) = &mut self.current else { return };
        let Some(status) = run.child.try_wait().unwrap() else { return };
        self.current = None;
        let life = self.journal.last_mut().unwrap();
        (life.ended, life.status) = (Some(now()), status.to_string());
        let rest = self.dice.between(Duration::from_millis(300), Duration::from_millis(1500));
        self.start_at = self.start_at.map(|_| now() + rest);
    }
}

impl Run {
    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }
}

/// The run that a process belongs to, from its environment.
fn run_of(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let variables = environment.split(|&byte| byte == 0);
    variables.map(String::from_utf8_lossy).find(|variable| variable.starts_with("CHAOS_RUN=")).map(Cow::into_owned)
}

/// A remote address of `/proc/net/tcp` (`proc_net_tcp(5)`): hexadecimal, in the byte order of the machine.
fn established_server(line: &str) -> Option<std::net::Ipv4Addr> {
    let mut words = line.split_whitespace().skip(2);
    let (address, port) = words.next()?.split_once(':')?;
    let established = words.next()? == "01" && u16::from_str_radix(port, 16).ok()? == super::network::CLIENT_PORT;
    let address = u32::from_str_radix(address, 16).ok()?;
    established.then(|| std::net::Ipv4Addr::from(address.to_ne_bytes()))
}
