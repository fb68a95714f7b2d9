//! An operator at a shell.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::{documented, server};
use crate::support::pki::faketime;

/// What a command answered.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub output: String,
    pub error: String,
}

impl Said {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.output).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// `zk-leaderctl WORDS`, to the server of all tests.
pub fn ctl(words: &[&str]) -> Said {
    ctl_at(&server().connect_string(), words, &[])
}

/// The same with a choice of servers and variables.
pub fn ctl_at(servers: &str, words: &[&str], variables: &[(&str, &str)]) -> Said {
    let output = process(servers, words, variables).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let said = Said { code: output.status.code().unwrap(), output: text(output.stdout), error: text(output.stderr) };
    documented::check(words, &said.output);
    said
}

/// The variables of an operator's host whose clock is three hours fast. What measures lengths of time is left alone.
pub fn three_hours_fast() -> [(&'static str, String); 3] {
    [
        ("LD_PRELOAD", faketime().to_str().unwrap().to_owned()),
        ("FAKETIME", "+3h".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

pub fn process(servers: &str, words: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut process = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
    process.env_clear().env("ZK_LEADER_RUN_CONNECT", servers).envs(variables.iter().copied()).args(words);
    process
}
