//! Ctrl-C and Ctrl-Z on a terminal, with and without `--foreground`.

use std::fs::File;
use std::io::Write;

use nix::pty::openpty;
use rustix::process::Signal;
use zk_leader_run::core::guard_messages::{ChildStatus, Order};
use zk_leader_run::core::settings::Contain;

use crate::driver;
use crate::subject::{LONG, News, Setting, Subject, now, until};

const COUNTS_INTERRUPTS: &str = r#"
    exec 9>"$ALIVE"
    trap "echo interrupted" INT
    echo ready
    while :; do read -r line && echo "read $line"; done
"#;

const READS: &str = r#"exec 9>"$ALIVE"; echo ready; while read -r line; do echo "read $line"; done"#;

/// A driver whose controlling terminal is a new one, as the only job of its session.
struct OnTerminal {
    subject: Subject,
    keyboard: File,
}

fn on_terminal(contain: Contain, script: &str, foreground: bool) -> OnTerminal {
    let terminal = openpty(None, None).unwrap();
    let mut setting = Setting::new(contain, &["sh", "-c", script]);
    if foreground {
        setting.command.env(driver::FOREGROUND, "");
    }
    let screen = File::from(terminal.master);
    let keyboard = screen.try_clone().unwrap();
    let subject = setting.run_on(&terminal.slave, screen);
    OnTerminal { subject, keyboard }
}

impl OnTerminal {
    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// The terminal shows what is typed, too.
    fn shows(&self, expected: &str) {
        until(expected, || self.subject.line().trim_end().ends_with(expected));
    }
}

/// T13
pub fn ctrl_c_reaches_a_command_in_the_foreground_exactly_once(contain: Contain) {
    let mut on = on_terminal(contain, COUNTS_INTERRUPTS, true);
    let run = on.subject.start(LONG);
    on.shows("ready");
    on.types("\x03");
    on.shows("interrupted");
    // It can read the terminal, and was interrupted once: the next thing it says is what it read.
    on.types("a line\n");
    let mut said = String::new();
    until("it reads", || {
        said = on.subject.line();
        !said.contains("a line") || said.contains("read a line")
    });
    assert!(!said.contains("interrupted"));
    assert!(on.subject.driver_process.is_alive(), "Ctrl-C was the command's");
    on.subject.order(Order::Kill { run });
    assert_eq!(on.subject.ends().1, ChildStatus::Signaled(9));
    // The terminal is the supervisor's again: now Ctrl-C is for it.
    on.types("\x03");
    until("the supervisor is interrupted", || !on.subject.driver_process.is_alive());
}

/// A stopped command would hold the lease for nothing.
pub fn a_command_in_the_foreground_is_not_stopped_by_ctrl_z(contain: Contain) {
    let mut on = on_terminal(contain, READS, true);
    let run = on.subject.start(LONG);
    on.shows("ready");
    on.types("\x1a");
    on.types("a line\n");
    on.shows("read a line");
    on.subject.order(Order::Stop { run, by: now().after(LONG) });
    assert_eq!(on.subject.ends().1, ChildStatus::Signaled(15));
}

/// An outage froze the tree until it was killed, and the host leads again: its command would hold the lease for nothing.
pub fn ctrl_z_does_not_stop_the_command_that_follows_a_frozen_one(contain: Contain) {
    let mut on = on_terminal(contain, READS, true);
    let run = on.subject.start(LONG);
    on.shows("ready");
    on.subject.order(Order::Freeze { run });
    on.subject.order(Order::Kill { run });
    on.subject.ends();
    on.subject.start(LONG);
    on.shows("ready");
    on.types("\x1a");
    on.types("a line\n");
    on.shows("read a line");
}

/// Else a script that called us would read nothing any more, and Ctrl-C would not end it.
pub fn the_terminal_is_the_supervisors_again_when_its_guard_was_killed(contain: Contain) {
    let mut on = on_terminal(contain, COUNTS_INTERRUPTS, true);
    on.subject.start(LONG);
    on.shows("ready");
    on.subject.guard.signal(Signal::KILL);
    until("what it left is ended", || on.subject.news() == News::OrphansEnded);
    on.types("\x03");
    until("the supervisor is interrupted", || !on.subject.driver_process.is_alive());
}

pub fn ctrl_c_does_not_reach_a_command_with_a_session_of_its_own() {
    let mut on = on_terminal(
        Contain::Subreaper,
        r#"exec 9>"$ALIVE"; trap "echo interrupted" INT; echo ready; sleep 1000 & wait"#,
        false,
    );
    on.subject.start(LONG);
    on.shows("ready");
    let typed_at = now();
    on.types("\x03");
    until("the supervisor is interrupted", || !on.subject.driver_process.is_alive());
    on.subject.tree_is_gone_at(typed_at);
    until("the guard is gone", || !on.subject.guard.is_alive());
}
