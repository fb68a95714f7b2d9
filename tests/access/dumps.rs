//! What another process of the same user gets out of ours, by core dumps, a debugger and `/proc`: nothing while we hold a
//! secret. The command remains its user's, to be dumped and looked into as ever.
//!
//! Every attempt is made twice: where there is a secret, and, to see that it would succeed, where there is none.

use std::fs::{self, File, Permissions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::secrets::{NOBODY, everything, owner};
use super::tls::{Site, site, text};
use crate::support::subject::{children_of, copy_program, guards_of};
use crate::support::{Election, Proxy, Running, Subject, http, wait};

/// Long enough to be found nowhere by chance.
const PASSWORD: &str = "hunter2-but-longer";
const HELP: &str = "apt-get install gdb util-linux; and the kernel must be let make cores (sysctl kernel.core_pattern)";

/// Looks for all that may be read of a process: prints what could be, and leaves that in `loot`.
const LOOK: &str = r"
for file in environ maps auxv; do cat /proc/$1/$file >>loot 2>/dev/null && echo $file; done
(: </proc/$1/mem) 2>/dev/null && echo mem
ls /proc/$1/fd >/dev/null 2>&1 && echo fd
gcore -o taken $1 >/dev/null 2>&1; [ -s taken.$1 ] && cat taken.$1 >>loot && echo core
rm -f taken.$1
";
const ALL: &str = "environ maps auxv mem fd core";

/// Where `nobody` is at home.
pub(super) struct Home(TempDir);

impl Home {
    pub fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        chown(home.0.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        home
    }

    /// A copy that is his.
    fn copy(&self, from: &Path, mode: u32) -> String {
        let copy = self.0.path().join(from.file_name().unwrap());
        if copy.exists() {
            return copy.to_str().unwrap().to_owned();
        }
        copy_program(from, &copy);
        fs::set_permissions(&copy, Permissions::from_mode(mode)).unwrap();
        chown(&copy, Some(NOBODY), Some(NOBODY)).unwrap();
        copy.to_str().unwrap().to_owned()
    }

    /// A program that he runs here, and that may leave cores as large as they come.
    fn run(&self, program: &str) -> Command {
        let mut process = Command::new("prlimit");
        process.args(["--core=unlimited", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program]);
        process.current_dir(self.0.path());
        process
    }

    /// What he can look into of a process of his; and how often the password was found there.
    fn look_into(&self, pid: i32) -> (String, usize) {
        let loot = self.0.path().join("loot");
        let output = self.run("sh").args(["-c", LOOK, "sh", &pid.to_string()]).output().expect(HELP);
        let found = fs::read(&loot).map_or(0, |loot| count(&loot, PASSWORD.as_bytes()));
        fs::remove_file(loot).ok();
        (String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" "), found)
    }

    fn cores(&self) -> usize {
        let names = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().starts_with("core")).count()
    }

    /// Our program, started by him, over TLS with a key and with a password; or with neither, and the password in a variable
    /// that is none of ours.
    fn leader(&self, election: &Election, holds_secrets: bool, command: &str) -> Running {
        let plain = site().ensemble.connect_string();
        let servers = if holds_secrets { site().localhost() } else { plain };
        let host = election.host_at(&servers, "a").session_timeout("60s").option("--hook", "true");
        let host = if holds_secrets { self.trusted(host) } else { host.env("INNOCENT", PASSWORD) };
        self.start(&host.command(&["sh", "-c", command]))
    }

    fn trusted(&self, host: Subject) -> Subject {
        let (authority, ours) = (site().authority.certificate(), &site().ours);
        host.env("ZK_LEADER_RUN_AUTH", &format!("digest:bob:{PASSWORD}"))
            .option("--tls-ca", &self.copy(&authority, 0o644))
            .option("--tls-cert", &self.copy(&ours.certificate, 0o644))
            .option("--tls-key", &self.copy(&ours.key, 0o600))
    }

    pub fn start(&self, host: &Subject) -> Running {
        let wanted = host.to_process();
        let mut process = self.run(&self.copy(Path::new(wanted.get_program()), 0o755));
        process.args(wanted.get_args());
        for (name, value) in wanted.get_envs() {
            process.env(name, value.unwrap());
        }
        Subject::start(process)
    }
}

fn count(text: &[u8], word: &[u8]) -> usize {
    text.windows(word.len()).filter(|window| *window == word).count()
}

/// What a process can write of its memory, as root sees it.
fn memory(pid: i32) -> Vec<u8> {
    let mut memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut found = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let [from, to] = [from, to].map(|address| u64::from_str_radix(address, 16).unwrap());
        memory.seek(SeekFrom::Start(from)).unwrap();
        // What is not there yet ends it.
        memory.by_ref().take(to - from).read_to_end(&mut found).ok();
    }
    found
}

/// The number that makes the key of `site`, as it lies in memory (RFC 5915: behind version 1, as 32 octets).
fn private_number() -> Vec<u8> {
    let key =
        Command::new("openssl").args(["pkey", "-outform", "DER", "-in", text(&site().ours.key)]).output().unwrap();
    let start = [2, 1, 1, 4, 32];
    let at = key.stdout.windows(start.len()).position(|window| window == start).unwrap() + start.len();
    key.stdout[at..at + 32].to_vec()
}

/// A jump to nowhere: a fault of its own, which no handler and no mask holds off.
fn crash(pid: i32) {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", &pid.to_string(), "-ex", "set $pc = 0"]);
    gdb.stdin(Stdio::null()).output().expect(HELP);
}

/// The status of an ended process that nobody has reaped yet (the last of `proc_pid_stat(5)`).
fn status_of_zombie(pid: i32) -> i32 {
    let stat = wait::for_some("it has ended", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.contains(") Z ").then_some(stat)
    });
    stat.trim().rsplit(' ').next().unwrap().parse().unwrap()
}

const CORE_DUMPED: i32 = 0x80;
const RUNS: &str = "echo runs; exec sleep 1000";

fn until_it_runs(host: &Running) {
    wait::until("the command runs", || host.output().contains("runs"));
}

#[test]
fn nothing_is_got_out_of_a_process_of_ours_that_holds_a_secret() {
    for holds_secrets in [false, true] {
        let (home, election) = (Home::new(), site().election());
        let host = home.leader(&election, holds_secrets, RUNS);
        until_it_runs(&host);
        let guards = guards_of(host.pid());
        assert_eq!(guards.len(), 2, "of the command, and of the hook");
        for pid in [vec![host.pid()], children_of(host.pid()), guards.clone()].concat() {
            let typed = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
            assert_eq!(count(&typed, PASSWORD.as_bytes()), 0);
            let (seen, found) = home.look_into(pid);
            if holds_secrets {
                assert_eq!((seen.as_str(), found), ("", 0), "of {pid}");
            } else {
                assert!(seen == ALL && found > 0, "{HELP}: only {seen:?} of {pid}");
            }
        }
        let command = wait::for_some("the command is there", || children_of(guards[0]).first().copied());
        let (seen, found) = home.look_into(command);
        assert_eq!(seen, ALL, "the command is its user's");
        assert_eq!(found > 0, !holds_secrets, "a variable that is ours was passed on, or another one was not");
        if holds_secrets {
            let [ours, its] = [host.pid(), command].map(memory);
            for secret in [PASSWORD.as_bytes(), &private_number()] {
                assert!(count(&ours, secret) > 0, "there was nothing to find");
                assert_eq!(count(&its, secret), 0, "the command has it in its memory");
            }
        }
    }
}

#[test]
fn a_crash_of_ours_leaves_no_core_while_we_hold_a_secret() {
    for holds_secrets in [false, true] {
        let (home, election) = (Home::new(), site().election());
        let mut host = home.leader(&election, holds_secrets, RUNS);
        until_it_runs(&host);
        crash(host.pid());
        let status = host.status();
        assert_eq!(status.signal(), Some(Signal::SIGSEGV as i32), "{HELP}");
        assert_eq!(status.core_dumped(), !holds_secrets, "the supervisor's; {HELP}");

        let election = site().election();
        let host = home.leader(&election, holds_secrets, RUNS);
        until_it_runs(&host);
        let guard = host.guard_pid();
        // So that it is not reaped: not by the sentinel, nor by a sentinel that the supervisor continues.
        host.signal(Signal::SIGSTOP);
        kill(Pid::from_raw(host.sentinel_pid()), Signal::SIGSTOP).unwrap();
        crash(guard);
        let status = status_of_zombie(guard);
        assert_eq!(status & !CORE_DUMPED, Signal::SIGSEGV as i32, "{HELP}");
        // Without a secret, too, it leaves none here: it stands in `/`, where this user may not write.
        assert!(!holds_secrets || status & CORE_DUMPED == 0, "the guard's; {HELP}");
        assert!(!holds_secrets || home.cores() == 0);
    }
}

/// `RLIMIT_CORE` is inherited, and being dumped is not: we may use the second only.
#[test]
fn the_command_can_leave_a_core_though_we_hold_a_secret() {
    let (home, election) = (Home::new(), site().election());
    let host = home.leader(&election, true, "ulimit -c; sh -c 'kill -SEGV $$'; echo runs; exec sleep 1000");
    until_it_runs(&host);
    assert!(host.output().starts_with("unlimited\n"), "{}", host.output());
    // By the shell on standard error, which is read beside standard output.
    let is_dumped = wait::held_within(wait::LIMIT, || host.log().contains("(core dumped)"));
    assert!(is_dumped, "{HELP}: {}", host.log());
}

/// It is executed anew, and `execve(2)` lets everybody in again.
#[test]
fn the_releaser_and_the_operators_program_cannot_be_looked_into_either() {
    let (home, election) = (Home::new(), site().election());
    let link = Proxy::blind_to(site().secure.address());
    let servers = format!("tcp+tls://localhost:{}", link.address().port());
    let host = election.host_at(&servers, "a").session_timeout("60s").command(&["sh", "-c", RUNS]);
    let host = home.start(&home.trusted(host));
    until_it_runs(&host);
    let guard = host.guard_pid();
    link.stall();
    host.kill();
    let is_releaser =
        || fs::read(format!("/proc/{guard}/cmdline")).is_ok_and(|typed| typed.starts_with(b"zk-leader-run-releaser"));
    wait::until("the guard has become the releaser", is_releaser);
    wait::until("it has read its secrets", || owner(guard) == 0);
    assert_eq!(home.look_into(guard), (String::new(), 0));
    link.heal();
    host.until_logged("its lease was released");

    let mut process = home.run(&home.copy(Path::new(env!("CARGO_BIN_EXE_zk-leaderctl")), 0o755));
    process.args(["status", "--watch", &election.name, "--connect", &site().ensemble.connect_string()]);
    let ctl = Subject::start({
        process.env("ZK_LEADER_RUN_AUTH", format!("digest:bob:{PASSWORD}"));
        process
    });
    wait::until("it shows the election", || ctl.output().contains("nobody"));
    assert_eq!(home.look_into(ctl.pid()), (String::new(), 0));
}

/// In what is shown to operators, told to errands, or written to the ensemble; at the most talkative level.
#[test]
fn no_page_no_errand_and_no_record_knows_a_secret() {
    let (election, site): (_, &Site) = (site().election(), site());
    let told = |name: &str| election.diary.directory().join(name);
    let errand = |name: &str| format!("{{ echo BEGIN; env; cat /proc/self/cmdline; }} >>{}", told(name).display());
    let host = site
        .host(&election, "a")
        .served()
        .session_timeout("20s")
        .env("ZK_LEADER_RUN_AUTH", &format!("digest:bob:{PASSWORD}"));
    let host = host.option("--log-level", "trace").option("--log-format", "json");
    let host = host.option("--hook", &errand("hook")).option("--health-cmd", &errand("health"));
    let host = host.option("--health-interval", "1s").option("--eligible-cmd", &errand("eligible"));
    let host = host.command(&["sh", "-c", "env; echo runs; exec sleep 1000"]).spawn();
    until_it_runs(&host);
    let errands = || ["hook", "health", "eligible"].map(|name| fs::read_to_string(told(name)).unwrap_or_default());
    wait::until("every errand was run", || errands().iter().all(|text| text.contains("ZK_LEADER_ID")));
    let log = host.log();
    let said = log.split("HTTP is served at ").nth(1).unwrap().split(['"', ' ', ',']).next().unwrap().to_owned();
    let pages = ["/status", "/metrics", "/leader", "/standby", "/livez", "/readyz", "/"];
    let pages = pages.map(|page| http::get(said.parse().unwrap(), page).unwrap().body);
    assert!(pages[0].contains(&election.name) && pages[1].contains("zk_leader"));
    let ask = |words: &[&str]| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
        process.args(words).args(["--connect", &site.localhost(), "--tls-ca", text(&site.authority.certificate())]);
        process.args(["--tls-cert", text(&site.ours.certificate), "--tls-key", text(&site.ours.key)]);
        let output = process.env("ZK_LEADER_RUN_AUTH", format!("digest:bob:{PASSWORD}")).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let answers =
        [ask(&["status", &election.name]), ask(&["doctor", &election.name]), ask(&["history", &election.name])];
    host.kill();
    host.until_logged("its lease was released");
    let (log, records) = (host.log(), everything(&election.admin, "/zk-leader-run"));
    assert!(log.contains("Auth"), "trace shows what the client library sends");
    let key = fs::read_to_string(&site.ours.key).unwrap();
    let places = [&pages[..], &answers, &errands(), &[log, records, host.output()]].concat();
    for (place, secret) in places.iter().flat_map(|place| [(place, PASSWORD), (place, key.lines().nth(1).unwrap())]) {
        assert!(!place.contains(secret), "{secret} is in\n{place}");
    }
}
