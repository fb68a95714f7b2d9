//! The command line from outside: what is refused and how, what help and the reference say, which layer of settings wins.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

mod answers;
mod completions;
mod documents;
mod file;
#[path = "../support/golden.rs"]
mod golden;
mod log_words;
mod man;
mod meaning;
mod reference_pages;
mod refusals;
mod signals;
mod suite;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use golden::golden;
use zk_leader_run::cli::{self, EarlyExit, Stream, reference};
use zk_leader_run::config::source::process_environment::ProcessEnvironment;
use zk_leader_run::config::{Config, Vouch, ctl, load};
use zk_leader_run::core::settings::{Contain, Guarantee, OnExit, OnLoss, OnPause, Recipe};
use zk_leader_run::exit::Status;

/// What the user typed, and what must be said about it.
struct Mistake {
    typed: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
    status: i32,
    /// Option or variable, value, remedy: in this order.
    said: [&'static str; 3],
}

const fn typed(typed: &'static [&'static str], status: i32, said: [&'static str; 3]) -> Mistake {
    Mistake { typed, variables: &[], status, said }
}

const fn variable(variables: &'static [(&'static str, &'static str)], status: i32, said: [&'static str; 3]) -> Mistake {
    Mistake { typed: &["true"], variables, status, said }
}

fn run(typed: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zk-leader-run"));
    command.env_clear().env("PATH", "/usr/bin:/bin").envs(variables.iter().copied());
    command.args(typed).stdin(Stdio::null()).output().unwrap()
}

fn parse(typed: &[&str], variables: &[(&str, &str)]) -> Result<Config, EarlyExit> {
    let path = [("PATH", "/usr/bin:/bin")];
    let process_environment = ProcessEnvironment {
        variables: path.iter().chain(variables).map(|(name, value)| (name.into(), value.into())).collect(),
        host: "host".into(),
        pid: 4711,
        ..ProcessEnvironment::default()
    };
    let arguments = ["zk-leader-run"].iter().chain(typed).map(OsString::from);
    load::load(arguments, &process_environment)
}

fn refused(typed: &[&str], variables: &[(&str, &str)]) -> EarlyExit {
    parse(typed, variables).expect_err("it was accepted")
}

/// Runs the real program against a server that must never be connected to.
fn each_is_refused(mistakes: &[Mistake]) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let address = server.local_addr().unwrap().to_string();
    for Mistake { typed, variables, status, said } in mistakes {
        // What is not refused ends all the same.
        let reachable = [("ZK_LEADER_RUN_CONNECT", address.as_str()), ("ZK_LEADER_RUN_CONNECT_TIMEOUT", "10s")];
        let variables: Vec<_> = reachable.iter().chain(*variables).copied().collect();
        let output = run(typed, &variables);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(*status), "{typed:?}: {error}");
        assert_eq!(output.stdout, b"", "{typed:?}");
        assert_eq!(error.lines().count(), 1, "{typed:?}: {error}");
        let mut rest = error.strip_prefix("zk-leader-run: ").unwrap();
        for part in said {
            let found = rest.find(part).unwrap_or_else(|| panic!("{typed:?}: no {part:?} at its place in: {error}"));
            rest = &rest[found + part.len()..];
        }
        assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "{typed:?} was connected");
    }
}
