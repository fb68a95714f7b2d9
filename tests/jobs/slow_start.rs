//! A command whose `execve(2)` takes its time: a scanner that looks at the file first, or a file server that does not answer.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{election, link};
use crate::support::subject::{children_of, collect, copy_program, example, is_alive};
use crate::support::{Election, diary, wait};

const HELP: &str = "this test holds a file lease: apt-get install perl";

/// A write lease on a file (`fcntl(2)`, `F_SETLEASE`): whoever opens the file, and be it to execute it, waits until it is dropped.
struct Held(Child);

impl Held {
    fn on(program: &Path) -> Self {
        let script = r#"
            use Fcntl; $| = 1; $SIG{IO} = "IGNORE";
            open(my $file, "<", $ARGV[0]) or die;
            # A process that another test has just forked may have the file open for an instant.
            select(undef, undef, undef, 0.01) until fcntl($file, 1024, F_WRLCK);
            print "held\n"; <STDIN>;
        "#;
        let mut perl = Command::new("perl");
        perl.args(["-e", script]).arg(program).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut held = Self(perl.spawn().expect(HELP));
        let said = collect(held.0.stdout.take().unwrap());
        wait::until("the file is held", || said.lock().unwrap().contains("held"));
        held
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A witness that nobody else executes.
fn witness_of(election: &Election) -> PathBuf {
    let copy = election.diary.directory().join("witness");
    copy_program(&example("witness"), &copy);
    copy
}

#[test]
fn a_command_that_takes_longer_than_a_lease_to_be_executed_is_started_all_the_same_and_its_run_is_not_lost() {
    let election = election();
    let witness = witness_of(&election);
    let held = Held::on(&witness);
    let command = [witness.to_str().unwrap(), election.diary.path().to_str().unwrap()].map(str::to_owned);
    let host = election.host("a").session_timeout("6s").command(&command.each_ref().map(String::as_str));
    let mut host = host.option("--slot", "today").spawn();
    wait::until("the record is there", || election.admin.exists(&election.path("term")));
    let (first, taken_at) = (election.record_version(), diary::now());
    wait::until("it was renewed for longer than a lease", || {
        diary::now() > taken_at + super::secs(8) && election.record_version() > first + 8
    });
    assert!(!host.has_exited() && is_alive(host.guard_pid()), "{}", host.log());
    assert!(election.diary.starts().is_empty());
    drop(held);
    election.diary.until_started(1);
    host.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
    assert_eq!((election.diary.starts().len(), election.state().as_str()), (1, "free"));
}

#[test]
fn a_lease_that_runs_out_while_the_command_is_being_executed_ends_it() {
    let election = election();
    let witness = witness_of(&election);
    let held = Held::on(&witness);
    let link = link();
    let command = [witness.to_str().unwrap(), election.diary.path().to_str().unwrap()].map(str::to_owned);
    let host = election.host_behind(&link, "a").command(&command.each_ref().map(String::as_str)).spawn();
    host.until_logged("following -> leading");
    let child = wait::for_some("it is being executed", || children_of(host.guard_pid()).into_iter().next());
    link.stall();
    let _next = election.steady_host("b").spawn();
    assert_eq!(election.diary.until_started(1).id, "b");
    assert!(!is_alive(child), "it would run as soon as it can");
    drop(held);
    election.diary.until_alive();
    assert!(election.diary.starts().iter().all(|start| start.id == "b"));
    election.diary.assert_no_overlap();
}
