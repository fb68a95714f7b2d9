//! One supervisor with its guard under test, and what can be seen of its tree from outside.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Resource, Rlimit, Signal};
use rustix::process::{pidfd_getfd, pidfd_open, pidfd_send_signal, prlimit, setpriority_process};
use tempfile::TempDir;
use zk_leader_run::clock;
use zk_leader_run::core::guard_messages::{
    CandidateName, Cause, ChildStatus, Deadlines, Grant, Order, Report, RunId, Slot, Takeover,
};
use zk_leader_run::core::settings::Contain;
use zk_leader_run::core::time::Timestamp;
use zk_leader_run::guard::processes::children::parent_of;
use zk_leader_run::guard::protocol::{decode_report, encode_order};

use crate::driver;

/// Every wait of these tests ends after this, as a failure.
pub const AT_MOST: Duration = Duration::from_secs(30);
/// What is to happen at a time happens at most so much later: nominal are milliseconds, and the rest is for a busy machine.
pub const IN_TIME: Duration = Duration::from_secs(10);
/// A lease that does not end while a test runs.
pub const LONG: Duration = Duration::from_secs(600);
/// A lease that does, with all the slack that a guard can have: on a busy machine it may wake up late.
pub const SHORT: Duration = Duration::from_secs(4);

const NOBODY: u32 = 65_534;

pub const KINDS: [Contain; 3] = [Contain::Subreaper, Contain::Cgroup, Contain::PidNamespace];

pub fn name(contain: Contain) -> &'static str {
    match contain {
        Contain::Auto => "auto",
        Contain::Subreaper => "subreaper",
        Contain::Cgroup => "cgroup",
        Contain::PidNamespace => "pid_namespace",
        Contain::ProcessGroup => "process_group",
    }
}

pub const GRANT: Grant = Grant {
    token: 4_294_967_299,
    term: 5,
    session: 0x0100_0000_0000_0001,
    takeover: Takeover::Unclean,
    slot: Slot(1),
    candidate: CandidateName::EMPTY,
};

/// A process that was seen once, and that nobody can be mistaken for.
#[derive(Debug)]
pub struct Process {
    pub pid: i32,
    pidfd: OwnedFd,
}

impl Process {
    pub fn of(pid: i32) -> Self {
        let pidfd = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
        Self { pid, pidfd }
    }

    pub fn pidfd(&self) -> OwnedFd {
        self.pidfd.try_clone().unwrap()
    }

    /// Its name, and its arguments as `ps(1)` shows them.
    pub fn names(&self) -> (String, String) {
        let read = |file| std::fs::read_to_string(format!("/proc/{}/{file}", self.pid)).unwrap();
        (read("comm").trim().to_owned(), read("cmdline").trim_end_matches('\0').to_owned())
    }

    /// `SigBlk` of `proc_pid_status(5)`.
    pub fn blocked_signals(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        // One that has ended needs no signal.
        pidfd_send_signal(&self.pidfd, signal).ok();
    }

    /// Its memory that is no part of a file, in KiB (`proc_pid_smaps(5)`).
    pub fn anonymous_memory(&self) -> u64 {
        let smaps = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid)).unwrap();
        let length = smaps.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
        length.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// How many files it may have open from now on.
    pub fn limit_descriptors(&self, most: u64) {
        let limit = Rlimit { current: Some(most), maximum: Some(4096) };
        prlimit(Pid::from_raw(self.pid), Resource::Nofile, limit).unwrap();
    }

    /// Copies of all its sockets.
    pub fn steal_sockets(&self) -> Vec<OwnedFd> {
        let listing = std::fs::read_dir(format!("/proc/{}/fd", self.pid)).unwrap().flatten();
        let sockets = listing.filter(|entry| {
            std::fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
        });
        let numbers = sockets.map(|entry| entry.file_name().to_str().unwrap().parse().unwrap());
        numbers.map(|fd| pidfd_getfd(&self.pidfd, fd, PidfdGetfdFlags::empty()).unwrap()).collect()
    }

    pub fn is_alive(&self) -> bool {
        let mut ended = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
        poll(&mut ended, PollTimeout::ZERO).unwrap() == 0
    }
}

/// What the driver says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    Report(Report),
    GuardGone,
    /// What the guard left could not be looked for yet.
    Complained,
    OrphansEnded,
}

/// See the module.
pub struct Subject {
    pub driver: Child,
    pub driver_process: Process,
    pub guard: Process,
    pub containment: String,
    stream: UnixStream,
    lines: Receiver<String>,
    stdin: Option<ChildStdin>,
    alive: File,
    pub dir: TempDir,
    run: RunId,
}

/// How a [`Subject`] is to be started.
pub struct Setting {
    pub command: Command,
    pub dir: TempDir,
}

impl Setting {
    /// The command finds a FIFO in `$ALIVE`: whoever holds it open for writing counts as its tree.
    pub fn new(contain: Contain, arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        mkfifo(&dir.path().join("alive"), Mode::S_IRWXU).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(arguments)
            .env(driver::SOCKET, dir.path().join("driver"))
            .env(driver::CONTAIN, name(contain))
            .env("ALIVE", dir.path().join("alive"))
            .env("DIR", dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        Self { command, dir }
    }

    /// As a user without rights, if we have any.
    pub fn of_an_ordinary_user(mut self) -> Self {
        if nix::unistd::geteuid().is_root() {
            let everyone = std::fs::Permissions::from_mode(0o777);
            std::fs::set_permissions(self.dir.path(), everyone.clone()).unwrap();
            std::fs::set_permissions(self.dir.path().join("alive"), everyone).unwrap();
            // The way to our own executable may be closed to others; this one is not.
            let mut command = Command::new("/proc/self/exe");
            command.args(self.command.get_args()).uid(NOBODY).gid(NOBODY).env("PATH", "/usr/bin:/bin");
            for (name, value) in self.command.get_envs() {
                command.env(name, value.unwrap());
            }
            self.command = command;
            self.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        }
        self
    }

    pub fn run(mut self) -> Subject {
        let listener = listen(self.dir.path());
        let mut driver = self.command.spawn().unwrap();
        let stdout = driver.stdout.take().unwrap();
        let stdin = driver.stdin.take();
        Subject::meet(self.dir, &listener, driver, stdin, stdout)
    }

    /// In a session of its own on this terminal.
    pub fn run_on(self, terminal: &OwnedFd, screen: File) -> Subject {
        let listener = listen(self.dir.path());
        let mut setsid = Command::new("setsid");
        // A job in the background of a script, as a test run may be one, is born with SIGINT ignored.
        setsid.args(["--ctty", "env", "--default-signal"]);
        setsid.arg(self.command.get_program()).args(self.command.get_args());
        for (name, value) in self.command.get_envs() {
            setsid.env(name, value.unwrap());
        }
        let fd = || Stdio::from(terminal.try_clone().unwrap());
        let driver = setsid.stdin(fd()).stdout(fd()).stderr(fd()).spawn().unwrap();
        drop(setsid);
        Subject::meet(self.dir, &listener, driver, None, screen)
    }
}

pub fn listen(dir: &Path) -> UnixListener {
    let listener = UnixListener::bind(dir.join("driver")).unwrap();
    std::fs::set_permissions(dir.join("driver"), std::fs::Permissions::from_mode(0o777)).unwrap();
    listener
}

impl Subject {
    /// A shell script under a guard.
    pub fn script(contain: Contain, script: &str) -> Self {
        Setting::new(contain, &["sh", "-c", script]).run()
    }

    fn meet(
        dir: TempDir,
        listener: &UnixListener,
        mut driver: Child,
        stdin: Option<ChildStdin>,
        stdout: impl Read + Send + 'static,
    ) -> Self {
        let mut alive = OpenOptions::new();
        let alive = alive.read(true).custom_flags(libc::O_NONBLOCK).open(dir.path().join("alive")).unwrap();
        let mut stream = accept(listener, &mut driver);
        let (guard, containment) = hello(&mut stream);
        Self {
            driver_process: Process::of(i32::try_from(driver.id()).unwrap()),
            driver,
            guard,
            containment,
            stream,
            lines: lines_of(stdout),
            stdin,
            alive,
            dir,
            run: RunId(0),
        }
    }

    pub fn order(&mut self, order: Order) {
        self.stream.write_all(&encode_order(&order)).unwrap();
    }

    /// Starts the command under a lease of this length, a quarter of which is for the stop signal.
    pub fn start(&mut self, lease: Duration) -> RunId {
        self.start_under(deadlines(lease))
    }

    pub fn start_under(&mut self, deadlines: Deadlines) -> RunId {
        let run = RunId(self.run.0 + 1);
        self.run = run;
        self.order(Order::Start { run, deadlines, grant: GRANT });
        run
    }

    /// Starts the command and waits until it says that it is ready.
    pub fn start_ready(&mut self, lease: Duration) -> RunId {
        let run = self.start(lease);
        self.says("ready");
        self.hurry_guard();
        run
    }

    /// The same, under a short lease: its deadlines.
    pub fn start_short(&mut self) -> Deadlines {
        let lease = deadlines(SHORT);
        self.start_under(lease);
        self.says("ready");
        self.hurry_guard();
        lease
    }

    /// The guard goes before all others until it starts the next command: one that a busy machine keeps waiting at a deadline
    /// is taken for stopped, and killed by the kernel's timer. Only root can see to that.
    pub fn hurry_guard(&self) {
        setpriority_process(Pid::from_raw(self.guard.pid), -20).ok();
    }

    pub fn writes(&mut self, line: &str) {
        self.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub fn news(&mut self) -> News {
        let mut frame = [0; driver::FRAME_SIZE];
        self.stream.read_exact(&mut frame).expect("the driver says something");
        match frame[0] {
            driver::REPORT => News::Report(decode_report(&frame[1..]).unwrap()),
            driver::GUARD_GONE => News::GuardGone,
            driver::COMPLAINED => News::Complained,
            driver::ORPHANS_ENDED => News::OrphansEnded,
            other => panic!("no news is called {other}"),
        }
    }

    /// Waits until the command is executed: its id.
    pub fn started(&mut self) -> i32 {
        let mut news = self.news();
        if matches!(news, News::Report(Report::Taken { .. })) {
            news = self.news();
        }
        match news {
            News::Report(Report::Started { pid, .. }) => pid,
            other => panic!("{other:?} instead of the start"),
        }
    }

    /// What is reported until the tree ended, and how it did.
    pub fn ends(&mut self) -> (Vec<Report>, ChildStatus, Cause) {
        let mut reports = Vec::new();
        loop {
            match self.news() {
                News::Report(Report::TreeEnded { run, status, cause }) if run == self.run => {
                    return (reports, status, cause);
                }
                News::Report(report) => reports.push(report),
                other => panic!("{other:?} instead of the end of the tree, after {reports:?}"),
            }
        }
    }

    /// The same, which is due at this time.
    pub fn ends_at(&mut self, due: Timestamp) -> (Vec<Report>, ChildStatus, Cause) {
        let end = self.ends();
        is_in_time(due);
        end
    }

    /// Its tree is to be killed, and ends in time.
    pub fn is_killed(&mut self) -> (Vec<Report>, ChildStatus, Cause) {
        let killed_at = now();
        self.order(Order::Kill { run: self.run });
        self.ends_at(killed_at)
    }

    pub fn line(&self) -> String {
        self.lines.recv_timeout(AT_MOST).expect("the command says something")
    }

    /// Whether the command says anything within this time.
    pub fn hears_within(&self, length: Duration) -> bool {
        self.lines.recv_timeout(length).is_ok()
    }

    /// The guard's parent.
    pub fn sentinel(&self) -> Process {
        Process::of(parent_of(self.guard.pid).unwrap())
    }

    /// The present run.
    pub fn run(&self) -> RunId {
        self.run
    }

    pub fn says(&self, expected: &str) {
        assert_eq!(self.line(), expected);
    }

    /// Whether any process has `$ALIVE` open. A FIFO without writers is at its end (`fifo(7)`).
    pub fn tree_lives(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.alive.read(&mut buffer) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return true,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The end of the tree is due at this time.
    pub fn tree_is_gone_at(&mut self, due: Timestamp) {
        until("the tree is gone", || !self.tree_lives());
        is_in_time(due);
    }
}

/// The guard ends what lives when its driver is gone, also after a failure; then it ends itself.
impl Drop for Subject {
    fn drop(&mut self) {
        self.driver.kill().ok();
        self.driver.wait().ok();
        self.guard.signal(Signal::CONT);
        let give_up_at = now().after(AT_MOST);
        while self.guard.is_alive() && now() < give_up_at {
            pause(Duration::from_millis(1));
        }
        if self.guard.is_alive() {
            self.guard.signal(Signal::KILL);
            assert!(std::thread::panicking(), "the guard outlives its supervisor");
        }
    }
}

fn accept(listener: &UnixListener, driver: &mut Child) -> UnixStream {
    listener.set_nonblocking(true).unwrap();
    let mut stream = None;
    until("the driver connects", || {
        assert_eq!(driver.try_wait().unwrap(), None, "no guard; see the driver's panic above");
        stream = listener.accept().ok();
        stream.is_some()
    });
    let (stream, _) = stream.unwrap();
    stream.set_nonblocking(false).unwrap();
    stream
}

fn hello(stream: &mut UnixStream) -> (Process, String) {
    stream.set_read_timeout(Some(AT_MOST)).unwrap();
    let mut word = [0; 4];
    stream.read_exact(&mut word).unwrap();
    let guard = Process::of(i32::from_be_bytes(word));
    stream.read_exact(&mut word).unwrap();
    let mut text = vec![0; usize::try_from(u32::from_be_bytes(word)).unwrap()];
    stream.read_exact(&mut text).unwrap();
    (guard, String::from_utf8(text).unwrap())
}

fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The letter of `proc_pid_stat(5)`; `None` if there is no such process.
pub fn state_of(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

pub fn now() -> Timestamp {
    clock::now().lease
}

pub fn deadlines(lease: Duration) -> Deadlines {
    let kill_at = now().after(lease);
    Deadlines { stop_at: kill_at.before(lease / 4), kill_at }
}

#[expect(clippy::disallowed_methods, reason = "between two looks; no outcome rests on its length")]
pub fn pause(length: Duration) {
    std::thread::sleep(length);
}

/// What was due at that time has just happened.
#[track_caller]
pub fn is_in_time(due: Timestamp) {
    let late = due.until(now());
    assert!(late < IN_TIME, "{late:?} late");
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up_at = now().after(AT_MOST);
    while !holds() {
        assert!(now() < give_up_at, "waited in vain: {what}");
        pause(Duration::from_millis(1));
    }
}
