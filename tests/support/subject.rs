//! Our program under test, one process for each "host", and the witness as its command.

use std::ffi::OsStr;
use std::io::{Read, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex, Once, OnceLock};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::diary::Diary;
use super::wait;

/// A `zk-leader-run` to be started.
pub struct Subject {
    /// Another one than ours: an earlier version.
    program: Option<String>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    command: Vec<String>,
}

impl Subject {
    /// A host called `id` that contends for the election `name` on `servers`, with T = 2 s.
    pub fn new(servers: &str, name: &str, id: &str) -> Self {
        let arguments = ["--connect", servers, "--name", name, "--id", id, "--log-level", "debug"];
        let arguments = arguments.map(String::from).to_vec();
        Self { program: None, arguments, environment: Vec::new(), command: Vec::new() }
            .option("--session-timeout", "2s")
    }

    /// Sets or replaces an option.
    pub fn option(mut self, option: &str, value: &str) -> Self {
        if let Some(at) = self.arguments.iter().position(|argument| argument == option) {
            value.clone_into(&mut self.arguments[at + 1]);
        } else {
            self.arguments.extend([option.to_owned(), value.to_owned()]);
        }
        self
    }

    /// Takes an option away, with its value.
    pub fn without(mut self, option: &str) -> Self {
        let at = self.arguments.iter().position(|argument| argument == option).unwrap();
        self.arguments.drain(at..at + 2);
        self
    }

    pub fn flag(mut self, flag: &str) -> Self {
        self.arguments.push(flag.to_owned());
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn command(mut self, command: &[&str]) -> Self {
        self.command = command.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// The witness, writing to `diary`.
    pub fn witness(self, diary: &Diary, options: &[&str]) -> Self {
        let (witness, path) = (example("witness"), diary.path());
        let words = [witness.to_str().unwrap(), path.to_str().unwrap()];
        self.command(&[&words, options].concat())
    }

    pub fn program(mut self, program: &str) -> Self {
        self.program = Some(program.to_owned());
        self
    }

    /// T, as it is asked for.
    pub fn session_timeout(self, timeout: &str) -> Self {
        self.option("--session-timeout", timeout)
    }

    /// Serves HTTP at any free port; the log tells which.
    pub fn served(self) -> Self {
        self.option("--http", "127.0.0.1:0")
    }

    /// The process that would be spawned, for a test that wants it elsewhere (on a terminal, inside another).
    pub fn to_process(&self) -> Command {
        heed_interrupts();
        let ours = env!("CARGO_BIN_EXE_zk-leader-run");
        let mut process = Command::new(self.program.as_deref().unwrap_or(ours));
        process.args(&self.arguments).arg("--").args(&self.command).envs(self.environment.clone());
        process
    }

    pub fn spawn(self) -> Running {
        let process = self.to_process();
        Self::start(process)
    }

    /// By another program, which ends in executing what stands behind its own words.
    pub fn spawn_inside(self, mut wrapper: Command) -> Running {
        let process = self.to_process();
        wrapper.arg(process.get_program()).args(process.get_args()).envs(self.environment);
        Self::start(wrapper)
    }

    /// In a session of its own, at the terminal of this name, as who ignores no SIGHUP (a test run may: `nohup(1)`).
    pub fn spawn_at(self, terminal: impl AsRef<OsStr>) -> Running {
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"exec setsid --ctty env --default-signal=HUP "$@" <"$0""#]).arg(terminal);
        self.spawn_inside(shell)
    }

    /// In a process group of its own, as a shell starts a job. Its parent is in the same session, so that job control works
    /// even where the test run's own group is an orphaned one (`setpgid(2)`): there SIGTSTP is thrown away.
    pub fn spawn_as_job(self) -> Running {
        let mut process = self.to_process();
        process.process_group(0);
        Self::start(process)
    }

    /// As the user `nobody`, from copies in `directory` of what may lie where he cannot go. Who is not root is an ordinary user
    /// already.
    pub fn spawn_as_ordinary_user(mut self, directory: &Path) -> Running {
        const NOBODY: u32 = 65534;
        std::fs::set_permissions(directory, PermissionsExt::from_mode(0o777)).unwrap();
        let copy = |program: &Path| {
            let copy = directory.join(program.file_name().unwrap());
            copy_program(program, &copy);
            copy.to_str().unwrap().to_owned()
        };
        self.command[0] = copy(Path::new(&self.command[0]));
        let ours = self.to_process();
        let mut process = Command::new(copy(Path::new(ours.get_program())));
        process.args(ours.get_args()).current_dir(directory);
        if nix::unistd::geteuid().is_root() {
            process.uid(NOBODY).gid(NOBODY);
        }
        Self::start(process)
    }

    /// Starts what runs our program: [`Subject::to_process`], or something around it.
    pub fn start(mut process: Command) -> Running {
        let mut child = process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        kill_at_our_end(child.id());
        let (log, output) = (child.stderr.take().unwrap(), child.stdout.take().unwrap());
        let pipes = [log.as_fd(), output.as_fd()].map(|pipe| pipe.try_clone_to_owned().unwrap());
        Running { child, log: collect(log), output: collect(output), pipes }
    }
}

/// Kills the processes that it was told of when its standard input closes, unless others have their numbers by now.
const WATCHDOG: &str = r#"set -- $(cat); while [ $# -gt 0 ]; do
    now=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20); [ "$now" != "$2" ] || kill -KILL "$1"; shift 2; done"#;

/// However this process ends: of one that is killed, nothing is dropped. Not by the parent-death signal, for which the thread that
/// starts a child is its parent (`PR_SET_PDEATHSIG(2const)`).
fn kill_at_our_end(pid: u32) {
    static TELL: LazyLock<Mutex<ChildStdin>> = LazyLock::new(|| {
        let mut watchdog = Command::new("sh");
        watchdog.args(["-c", WATCHDOG]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Mutex::new(watchdog.spawn().unwrap().stdin.take().unwrap())
    });
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let started_at = stat.rsplit(") ").next().unwrap().split(' ').nth(19).unwrap();
    writeln!(TELL.lock().unwrap(), "{pid} {started_at}").unwrap();
}

/// Tests that run in the background of a script ignore INT and QUIT, and so would whatever they start (`execve(2)`): but a
/// handler is not inherited.
fn heed_interrupts() {
    static HEEDED: Once = Once::new();
    HEEDED.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
        for signal in [Signal::SIGINT, Signal::SIGQUIT].map(|signal| signal as i32) {
            if (ignored >> (signal - 1)) & 1 == 1 {
                signal_hook::flag::register(signal, Arc::default()).unwrap();
            }
        }
    });
}

/// A running `zk-leader-run`; killed, with its guard's tree, when dropped.
pub struct Running {
    child: Child,
    log: Arc<Mutex<String>>,
    output: Arc<Mutex<String>>,
    /// Of the log and of the output.
    pipes: [OwnedFd; 2],
}

impl Running {
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// The guard of the command.
    pub fn guard_pid(&self) -> i32 {
        wait::for_some("the supervisor has a guard", || guards_of(self.pid()).first().copied())
    }

    /// The parent of that guard, and the supervisor's first child.
    pub fn sentinel_pid(&self) -> i32 {
        self.guard_pid();
        children_of(self.pid())[0]
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// SIGKILL to the supervisor alone.
    pub fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    pub fn signal_guard(&self, signal: Signal) {
        kill(Pid::from_raw(self.guard_pid()), signal).unwrap();
    }

    /// What it has logged so far (standard error).
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Without what is said only where the machine leaves it no time.
    pub fn log_without_standstills(&self) -> String {
        self.log().split_inclusive('\n').filter(|line| !line.contains("This process stood still")).collect()
    }

    /// What the command has printed so far.
    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    /// Waits until the log contains `text`.
    #[track_caller]
    pub fn until_logged(&self, text: &str) {
        let found = wait::held_within(wait::LIMIT, || self.log().contains(text));
        assert!(found, "never logged {text:?}:\n{}", self.log());
    }

    /// Waits until the log contains `text` so many times.
    #[track_caller]
    pub fn until_logged_times(&self, text: &str, times: usize) {
        let found = wait::held_within(wait::LIMIT, || self.log().matches(text).count() >= times);
        assert!(found, "not logged {times} times {text:?}:\n{}", self.log());
    }

    pub fn has_exited(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn status(&mut self) -> ExitStatus {
        let ended = wait::held_within(wait::LIMIT, || self.child.try_wait().unwrap().is_some());
        assert!(ended, "did not exit:\n{}", self.log());
        wait::until("its last words are read", || {
            is_read(&self.pipes[0], &self.log) && is_read(&self.pipes[1], &self.output)
        });
        self.child.wait().unwrap()
    }

    /// Waits for its exit code.
    #[track_caller]
    pub fn code(&mut self) -> i32 {
        let status = self.status();
        status.code().unwrap_or_else(|| panic!("ended by {status}:\n{}", self.log()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- log of {} ---\n{}", self.pid(), self.log());
        }
        for pid in [guards_of(self.pid()), children_of(self.pid()), vec![self.pid()]].concat() {
            kill(Pid::from_raw(pid), Signal::SIGCONT).ok();
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// An example binary, built by `cargo test` beside the tests.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name)
}

/// Copies a program that is to be executed. By cp(1): what we have open for writing ourselves, the processes inherit that other
/// tests start meanwhile, and then it cannot be executed (ETXTBSY, `execve(2)`).
pub fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success());
}

/// A new file in this directory: the same program but for the number of its version, wherever that stands. Copy it to execute it.
pub fn of_another_version(program: &Path, directory: &Path) -> PathBuf {
    // To look through a program takes seconds.
    static OTHER: OnceLock<(PathBuf, Vec<u8>)> = OnceLock::new();
    let (of, bytes) = OTHER.get_or_init(|| (program.to_owned(), with_another_version(program)));
    assert_eq!(of, program, "one program in a suite");
    let other = directory.join("other-version");
    std::fs::write(&other, bytes).unwrap();
    std::fs::set_permissions(&other, PermissionsExt::from_mode(0o755)).unwrap();
    other
}

fn with_another_version(program: &Path) -> Vec<u8> {
    let (mut bytes, version) = (std::fs::read(program).unwrap(), env!("CARGO_PKG_VERSION"));
    let found = Command::new("grep").args(["-obaF", version]).arg(program).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let places = found.lines().map(|line| line.split_once(':').unwrap().0.parse::<usize>().unwrap());
    let places: Vec<_> = places.map(|at| at + version.len() - 1).collect();
    assert!(!places.is_empty(), "the program does not know its version");
    for last in places {
        bytes[last] = if bytes[last] == b'9' { b'8' } else { b'9' };
    }
    bytes
}

/// The direct children of a process.
pub fn children_of(pid: i32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// The guards of a supervisor, in the order in which they were forked: each is the first child of a child of it.
pub fn guards_of(pid: i32) -> Vec<i32> {
    children_of(pid).into_iter().filter_map(|sentinel| children_of(sentinel).first().copied()).collect()
}

/// Of its memory, soft and hard, as `/proc` tells it.
pub fn memory_limit_of(pid: i32) -> String {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    limits.lines().find(|line| line.starts_with("Max data size")).unwrap().to_owned()
}

/// Whether a process lives; a zombie does not.
pub fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

/// What comes out of a pipe, line by line, from now on.
pub fn collect(pipe: impl Read + AsFd + Send + 'static) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&text);
    std::thread::spawn(move || read_all(pipe, &sink));
    text
}

/// Reads under the lock: who has it, and finds the pipe empty, knows all that was written.
fn read_all(mut pipe: impl Read + AsFd, sink: &Mutex<String>) {
    let (mut buffer, mut rest) = ([0; 8192], Vec::new());
    loop {
        poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE).ok();
        let mut sink = sink.lock().unwrap();
        let length = pipe.read(&mut buffer).unwrap_or_default();
        rest.extend_from_slice(&buffer[..length]);
        if length == 0 && !rest.is_empty() {
            rest.push(b'\n');
        }
        let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        sink.push_str(&String::from_utf8_lossy(&rest[..whole]));
        rest.drain(..whole);
        if length == 0 {
            return;
        }
    }
}

/// Whether nothing that was written is still to be read. Others, as a releaser, may hold the pipe open.
fn is_read(pipe: &OwnedFd, text: &Mutex<String>) -> bool {
    let _text = text.lock().unwrap();
    let mut readable = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    poll(&mut readable, PollTimeout::ZERO).unwrap();
    !readable[0].revents().is_some_and(|events| events.contains(PollFlags::POLLIN))
}
