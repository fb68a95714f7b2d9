//! How a command ended arrives, however it ended and however fast.

use zk_leader_run::core::guard_messages::{Cause, ChildStatus};
use zk_leader_run::core::settings::Contain;

use crate::subject::{LONG, Setting, Subject};

/// Also shows that the command reads our stdin.
pub fn every_exit_code_and_every_deadly_signal_arrives(contain: Contain) {
    let mut subject = Subject::script(contain, r#"read how; eval "$how""#);
    for code in 0..=255 {
        subject.start(LONG);
        subject.writes(&format!("exit {code}"));
        let (_, status, cause) = subject.ends();
        assert_eq!((status, cause), (ChildStatus::Exited(code), Cause::ItsOwn));
    }
    let harmless = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
    let stopping = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    let reserved = [32, 33];
    for signal in 1..=libc::SIGRTMAX() {
        if harmless.contains(&signal) || stopping.contains(&signal) || reserved.contains(&signal) {
            continue;
        }
        subject.start(LONG);
        // Without a core file.
        subject.writes(&format!("ulimit -c 0; kill -{signal} $$"));
        let (_, status, cause) = subject.ends();
        assert_eq!((status, cause), (ChildStatus::Signaled(u8::try_from(signal).unwrap()), Cause::ItsOwn));
    }
}

/// T29
pub fn ten_thousand_short_commands_lose_no_status() {
    let commands: [(&[&str], u8); 3] = [(&["true"], 0), (&["false"], 1), (&["sh", "-c", "exit 37"], 37)];
    for (command, code) in commands {
        let mut subject = Setting::new(Contain::Subreaper, command).run();
        for run in 0..10_000 {
            subject.start(LONG);
            let (_, status, cause) = subject.ends();
            assert_eq!((status, cause), (ChildStatus::Exited(code), Cause::ItsOwn), "{command:?} {run}");
        }
    }
}
