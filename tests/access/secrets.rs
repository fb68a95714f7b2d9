//! Identities of the scheme `digest` at a server that demands one; and that a secret is seen nowhere but where it belongs.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use nix::sys::signal::Signal;
use tempfile::TempDir;
use zookeeper_client::Client;

use super::secs;
use crate::support::election::STEADY;
use crate::support::ensemble::Build;
use crate::support::subject::{children_of, copy_program, is_alive};
use crate::support::{Admin, Election, Ensemble, Proxy, Subject, wait};

const IDENTITY: &str = "digest:bob:hunter2";

/// A server that closes every session without a `digest` identity.
fn strict() -> &'static Ensemble {
    static SERVER: OnceLock<Ensemble> = OnceLock::new();
    SERVER.get_or_init(|| {
        let java = ["-Dzookeeper.enforce.auth.enabled=true", "-Dzookeeper.enforce.auth.schemes=digest"];
        Ensemble::built(1, &Build { java: java.map(String::from).to_vec(), ..Build::default() })
    })
}

fn election() -> Election {
    let servers = strict().connect_string();
    let connector = Client::connector().with_session_timeout(secs(30)).with_auth("digest", b"admin:admin");
    Election::seen_by(Admin::through(connector, &servers), &servers)
}

/// A file in a directory of its own, for as long as that.
struct Secret {
    path: PathBuf,
    _directory: TempDir,
}

impl Secret {
    fn of(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("zk-leader-run.auth");
        fs::write(&path, text).unwrap();
        let secret = Self { path, _directory: directory };
        secret.open_to(0o600);
        secret
    }

    fn open_to(&self, mode: u32) {
        fs::set_permissions(&self.path, Permissions::from_mode(mode)).unwrap();
    }

    fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap()
    }
}

fn ctl(words: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
    process.env("ZK_LEADER_RUN_CONNECT", strict().connect_string()).envs(variables.iter().copied()).args(words);
    process.output().unwrap()
}

#[test]
fn with_an_identity_an_election_works_and_fails_over_at_a_server_that_demands_one() {
    let (election, secret) = (election(), Secret::of(IDENTITY));
    let host = |id: &str| election.host(id).session_timeout("20s").option("--auth-file", secret.path());
    let first = host("a").spawn();
    election.diary.until_started(1);
    let mut second = host("b").env("ZK_LEADER_RUN_LOG_LEVEL", "trace").spawn();
    election.until_candidates(2);
    let guard = first.guard_pid();
    first.kill();
    let start = election.diary.until_started(2);
    assert_eq!(start.told[1], "clean", "the releaser has the identity, too");
    wait::until("the releaser is done", || !is_alive(guard));
    let said = ctl(&["status", &election.name, "--auth-file", secret.path()], &[]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    second.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(second.code(), 0);
    assert_eq!(election.state(), "free");
    election.diary.assert_no_overlap();
}

/// The releaser would wait for ever for somebody who writes into it, and no signal but SIGKILL ends a releaser.
#[test]
fn identities_from_a_pipe_are_read_once_and_nobody_waits_for_them_again() {
    let (election, directory) = (election(), tempfile::tempdir().unwrap());
    let pipe = directory.path().join("identities");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let host = election.host("a").option("--auth-file", pipe.to_str().unwrap()).spawn();
    fs::write(&pipe, IDENTITY).unwrap();
    election.diary.until_started(1);
    host.until_logged("--auth-file is no file that can be read again");
    let guard = host.guard_pid();
    host.kill();
    wait::until("the guard has ended", || !is_alive(guard));
    assert_eq!(election.state(), "held");
}

/// It would wait as long for itself, with all signals blocked.
#[test]
fn who_has_identities_from_a_pipe_does_not_restart_itself_after_a_standstill() {
    let (election, directory) = (election(), tempfile::tempdir().unwrap());
    let pipe = directory.path().join("identities");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut host = election.host("a").option("--auth-file", pipe.to_str().unwrap()).spawn();
    fs::write(&pipe, IDENTITY).unwrap();
    election.diary.until_started(1);
    let guard = host.guard_pid();
    host.signal(Signal::SIGSTOP);
    host.signal_guard(Signal::SIGSTOP);
    wait::until("the guard was killed by the kernel", || !is_alive(guard));
    host.signal(Signal::SIGCONT);
    assert_eq!(host.code(), 70, "{}", host.log());
    assert!(host.log().contains("its identities are in no file that can be read again"), "{}", host.log());
}

/// The library shows what it was given ahead of everything else, so that it may restore the contact by itself.
#[test]
fn with_identities_a_lost_connection_is_restored_and_the_session_kept() {
    let election = election();
    let link = Proxy::to(strict().server(0).address());
    let host = election.host_behind(&link, "a").session_timeout(STEADY);
    let host = host.env("ZK_LEADER_RUN_AUTH", "digest:bob:hunter2\ndigest:carl:other").spawn();
    election.diary.until_started(1);
    let session = election.admin.stat(&election.first()).unwrap().ephemeral_owner;
    for cut in 1..=3 {
        link.reset();
        host.until_logged_times("paused -> leading", cut);
        election.until_renewed(1);
        assert_eq!(election.admin.stat(&election.first()).unwrap().ephemeral_owner, session, "{}", host.log());
    }
    assert_eq!(election.diary.starts().len(), 1, "{}", host.log());
}

#[test]
fn without_an_identity_a_server_that_demands_one_ends_us_with_77() {
    let election = election();
    let mut host = election.host("a").spawn();
    assert_eq!(host.code(), 77, "{}", host.log());
    assert!(host.log().contains("ZooKeeper refuses the credentials, or requires some"), "{}", host.log());
    let said = ctl(&["list"], &[]);
    let error = String::from_utf8_lossy(&said.stderr);
    assert!(error.contains("refuses our credentials"), "{error}");
}

#[test]
fn an_identity_comes_from_a_variable_or_a_systemd_credential_too() {
    let secret = Secret::of(IDENTITY);
    let election = election();
    let directory = secret.directory().to_str().unwrap();
    for (name, value) in [
        ("ZK_LEADER_RUN_AUTH", IDENTITY),
        ("ZK_LEADER_RUN_AUTH_FILE", secret.path()),
        ("CREDENTIALS_DIRECTORY", directory),
    ] {
        let mut host = election.steady_host("a").env(name, value).command(&["true"]).spawn();
        assert_eq!(host.code(), 0, "{name}: {}", host.log());
        let said = ctl(&["list"], &[(name, value)]);
        assert!(said.status.success(), "{name}: {said:?}");
    }
}

#[test]
fn a_secret_that_others_may_read_is_refused_before_anything_is_connected() {
    let (election, secret) = (election(), Secret::of(IDENTITY));
    for (mode, code) in [(0o644, 78), (0o602, 78), (0o440, 0), (0o400, 0)] {
        secret.open_to(mode);
        let mut host = election.steady_host("a").option("--auth-file", secret.path()).command(&["true"]).spawn();
        assert_eq!(host.code(), code, "{mode:o}: {}", host.log());
        if code != 0 {
            assert!(host.log().contains("everybody can read or write; chmod o-rw"), "{}", host.log());
        }
    }
    let mut host = election.host("a").option("--auth-file", "/nowhere/at/all").command(&["true"]).spawn();
    assert_eq!(host.code(), 78);
    assert!(host.log().contains("--auth-file: '/nowhere/at/all' cannot be read: No such file"), "{}", host.log());
}

/// In none of the places where others look: the process table, the settings, the log, the election.
#[test]
fn a_secret_is_seen_nowhere() {
    let (election, secret) = (election(), Secret::of(IDENTITY));
    let with = |host: Subject| {
        let host = host.option("--log-level", "trace").env("ZK_LEADER_RUN_AUTH", IDENTITY);
        host.option("--auth-file", secret.path())
    };
    let host = with(election.steady_host("a").command(&["sh", "-c", "env; sleep 1000"])).spawn();
    wait::until("the command runs", || host.output().contains("ZK_LEADER_TOKEN"));
    for pid in [host.pid(), host.guard_pid()] {
        let typed = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&typed).contains("hunter2"));
    }
    assert!(!host.output().contains("hunter2"), "the command has it in its environment");
    host.kill();
    wait::until("the lease is released", || host.log().contains("its lease was released"));
    assert!(host.log().contains("Auth"), "trace shows what the client library sends:\n{}", host.log());
    assert!(!host.log().contains("hunter2"), "{}", host.log());
    let mut settings = with(election.host("a").command(&["true"])).flag("--print-config").spawn();
    assert_eq!(settings.code(), 0);
    let settings = settings.output();
    assert!(settings.contains(secret.path()) && !settings.contains("hunter2"), "{settings}");
    assert!(!everything(&election.admin, "/zk-leader-run").contains("hunter2"));
}

/// The data of a znode and of all below it.
pub(super) fn everything(admin: &Admin, path: &str) -> String {
    let own = admin.find(path).map(|(data, _)| data).unwrap_or_default();
    let children = admin.children(path);
    children.iter().fold(own, |text, child| text + &everything(admin, &format!("{path}/{child}")))
}

/// An ordinary user, who may look into his processes (`proc(5)`: the files there are root's if the process may not be dumped).
pub(super) const NOBODY: u32 = 65534;

/// Who may read the memory and the variables of a process, besides root.
pub(super) fn owner(pid: i32) -> u32 {
    fs::metadata(format!("/proc/{pid}/environ")).unwrap().uid()
}

#[test]
fn whoever_holds_a_secret_cannot_be_dumped_and_the_command_can() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join("zk-leader-run");
    copy_program(Path::new(env!("CARGO_BIN_EXE_zk-leader-run")), &program);
    let (election, servers) = (election(), super::server().connect_string());
    for containment in ["subreaper", "pid-namespace"] {
        for identity in ["", IDENTITY] {
            let host = election.host_at(&servers, "a").session_timeout(STEADY).command(&[
                "sh",
                "-c",
                "ulimit -c; exec sleep 1000",
            ]);
            let host =
                host.option("--contain", containment).option("--name", &format!("{containment}{}", identity.len()));
            let wanted = host.to_process();
            let mut process = Command::new(&program);
            process.args(wanted.get_args()).env("ZK_LEADER_RUN_AUTH", identity).uid(NOBODY).gid(NOBODY);
            let host = Subject::start(process);
            wait::until("the command runs", || !host.output().is_empty());
            let command = wait::for_some("the command's process", || find(host.guard_pid()));
            let ours = if identity.is_empty() { NOBODY } else { 0 };
            assert_eq!((owner(host.pid()), owner(host.guard_pid())), (ours, ours), "{containment} {identity}");
            assert_eq!(owner(command), NOBODY, "{containment} {identity}: the command is anybody's");
        }
    }
}

/// The `sleep` below a process.
fn find(pid: i32) -> Option<i32> {
    let is_sleep = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    children_of(pid).into_iter().find_map(|child| Some(child).filter(is_sleep).or_else(|| find(child)))
}
