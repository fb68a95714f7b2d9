//! Upgrades that are refused: nothing happens but one line that says why.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use nix::sys::signal::Signal;

use crate::election;
use crate::package::{Package, REFUSED, UPGRADED, ask, processes};
use crate::support::election::STEADY;
use crate::support::{Election, Running, Subject, wait};

/// Asks, and waits for the refusal with these words.
#[track_caller]
fn refused(election: &Election, host: &Running, because: &str) {
    let before = (processes(host), election.term().mzxid);
    ask(host);
    host.until_logged(REFUSED);
    let log = host.log();
    let line = log.lines().find(|line| line.contains(REFUSED)).unwrap();
    assert!(line.contains(because), "{line}");
    assert!(!log.contains(UPGRADED), "{log}");
    election.diary.until_alive();
    assert_eq!((processes(host), election.term().mzxid), before);
    assert_eq!(election.diary.starts().len(), 1);
}

fn file(election: &Election) -> std::path::PathBuf {
    election.diary.directory().join("config.toml")
}

/// A leader whose settings are in a file.
fn leader(election: &Election, package: &Package, settings: &str) -> Running {
    std::fs::write(file(election), settings).unwrap();
    let running = package.on(configured(election)).spawn();
    election.diary.until_started(1);
    running
}

/// A configuration file that is read only as often as the test writes it.
pub struct Pipe(std::path::PathBuf, String);

impl Pipe {
    pub fn new(election: &Election) -> Self {
        Self::with_settings(election, NAMED)
    }

    pub fn with_settings(election: &Election, settings: &str) -> Self {
        let settings = settings.replace("<path>", &format!("/zk-leader-run/{}", election.name));
        nix::unistd::mkfifo(&file(election), nix::sys::stat::Mode::S_IRWXU).unwrap();
        Self(file(election), settings)
    }

    /// Waits for a reader.
    pub fn write(&self) {
        let open = || OpenOptions::new().write(true).custom_flags(nix::libc::O_NONBLOCK).open(&self.0).ok();
        wait::for_some("somebody reads the configuration", open).write_all(self.1.as_bytes()).unwrap();
    }
}

pub fn leader_with_pipe(election: &Election, package: &Package, pipe: &Pipe) -> Running {
    let running = package.on(configured(election)).spawn();
    pipe.write();
    election.diary.until_started(1);
    running
}

fn configured(election: &Election) -> Subject {
    let host = Subject::new(election.servers(), &election.name, "a").without("--name").without("--session-timeout");
    host.option("--config", file(election).to_str().unwrap()).witness(&election.diary, &[])
}

/// `<path>` stands for the election's.
fn refused_with(before: &str, after: &str, because: &str) {
    let (election, package) = (election(), Package::new());
    let path = format!("/zk-leader-run/{}", election.name);
    let (before, after) = (before.replace("<path>", &path), after.replace("<path>", &path));
    let host = leader(&election, &package, &before);
    std::fs::write(file(&election), after).unwrap();
    package.install();
    refused(&election, &host, because);
    // And with the settings of before it succeeds.
    std::fs::write(file(&election), before).unwrap();
    package.upgrade(&host);
    election.diary.until_alive();
    assert_eq!(election.diary.starts().len(), 1);
}

/// No lease runs out here, however long a program is waited for.
const NAMED: &str = "path = \"<path>\"\nname = \"x\"\nsession-timeout = \"20s\"\n";

/// The same with another T.
pub fn of_session_timeout(timeout: &str) -> String {
    NAMED.replace(STEADY, timeout)
}

/// As of a shell's `<(…)`: what was in it is gone, and the defaults of all settings are no upgrade.
#[test]
fn a_configuration_that_came_through_a_pipe_is_refused_as_it_can_be_read_once_only() {
    let (election, package) = (election(), Package::new());
    std::fs::write(file(&election), "stop-timeout = \"3s\"\n").unwrap();
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", r#"exec 9< <(cat "$0"); exec "$@""#]).arg(file(&election));
    let host = election.steady_host("a").option("--config", "/dev/fd/9").witness(&election.diary, &[]);
    let host = package.on(host).spawn_inside(shell);
    election.diary.until_started(1);
    package.install();
    refused(&election, &host, "this pipe gives nothing");
}

#[test]
fn another_path_is_refused_by_name() {
    refused_with(NAMED, &NAMED.replace("<path>", "<path>-2"), "--path has changed");
}

#[test]
fn another_lease_is_refused_by_name() {
    refused_with(NAMED, &format!("{NAMED}lease = \"19s\"\n"), "--lease has changed");
}

#[test]
fn another_recipe_is_refused_by_name() {
    refused_with(NAMED, &format!("{NAMED}recipe = \"curator-lock\"\n"), "--recipe has changed");
}

#[test]
fn a_setting_that_cannot_work_is_refused_with_its_complaint() {
    refused_with(NAMED, &format!("{NAMED}grace = \"soon\"\n"), "grace");
}

/// A leader of the usual kind, and the program that is installed afterwards.
fn refused_program(change: impl FnOnce(&Package), because: &str) {
    let (election, package) = (election(), Package::new());
    let host = package.on(election.steady_host("a")).spawn();
    election.diary.until_started(1);
    change(&package);
    refused(&election, &host, because);
    package.upgrade(&host);
}

#[test]
fn a_missing_program_is_refused() {
    refused_program(Package::remove, "No such file");
}

#[test]
fn a_program_that_is_none_is_refused() {
    refused_program(|package| package.install_other(b"not a program"), "cannot be started");
}

#[test]
fn another_program_is_refused() {
    let other = std::fs::read("/bin/false").unwrap();
    refused_program(move |package| package.install_other(&other), "does not say that it can take over");
}

/// The next program knows nothing of it, and would end it.
#[test]
fn while_a_hook_runs_it_is_refused() {
    let (election, package) = (election(), Package::new());
    let (host, goes_on) = with_a_hook(&election, &package);
    refused(&election, &host, "a hook or a check runs");
    std::fs::write(goes_on, "").unwrap();
    package.upgrade(&host);
}

/// A new program stands ready, and the hook of the first start ends when this file is there.
fn with_a_hook(election: &Election, package: &Package) -> (Running, std::path::PathBuf) {
    let [begun, goes_on] = ["begun", "goes-on"].map(|name| election.diary.directory().join(name));
    let hook = format!("touch {}; until test -e {}; do sleep 0.05; done", begun.display(), goes_on.display());
    let host = package.on(election.host("a").session_timeout("6s").option("--hook", &hook)).spawn();
    election.diary.until_started(1);
    wait::until("the hook runs", || begun.exists());
    package.install();
    (host, goes_on)
}

#[test]
fn a_stop_that_comes_before_the_quiet_moment_ends_it_and_says_so() {
    let (election, package) = (election(), Package::new());
    let (mut host, goes_on) = with_a_hook(&election, &package);
    ask(&host);
    host.signal(Signal::SIGTERM);
    std::fs::write(goes_on, "").unwrap();
    assert_eq!(host.code(), 0, "{}", host.log());
    assert!(host.log().contains("Not upgraded: this process ends first"), "untold: {}", host.log());
}

/// It waits for ever for somebody who writes its configuration.
#[test]
fn a_program_that_hangs_is_refused_and_killed() {
    let (election, package) = (election(), Package::new());
    // Renewed meanwhile: the command would be killed after 3.5 s, before that answer is due.
    let settings = of_session_timeout("6s").replace("<path>", &format!("/zk-leader-run/{}", election.name));
    let host = leader(&election, &package, &settings);
    std::fs::remove_file(file(&election)).unwrap();
    nix::unistd::mkfifo(&file(&election), nix::sys::stat::Mode::S_IRWXU).unwrap();
    package.install();
    refused(&election, &host, "no answer within 5s");
    wait::until("it is gone", || crate::support::subject::children_of(host.pid()).len() == 1);
}

#[test]
fn without_contact_it_is_refused() {
    let election = election();
    let link = crate::link();
    let package = Package::new();
    let host = package.on(election.host_behind(&link, "a").session_timeout("10s")).spawn();
    election.diary.until_started(1);
    link.stall();
    host.until_logged("leading -> paused");
    ask(&host);
    host.until_logged(REFUSED);
    assert!(host.log().contains("contact"), "{}", host.log());
    link.heal();
    election.diary.until_alive();
}
