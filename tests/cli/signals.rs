//! A signal that comes before the program takes signals.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

/// How it ends after a SIGTERM that came while it was reading its configuration file.
fn ends_after_an_early_sigterm(arguments: &[&str]) -> ExitStatus {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.toml");
    mkfifo(&config, Mode::S_IRWXU).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_zk-leader-run"));
    program.arg("--config").arg(&config).args(["--connect", "127.0.0.1:1"]).args(arguments).args(["--", "true"]);
    let mut program = program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Opened once the program has opened it, too.
    let mut file = File::options().write(true).open(&config).unwrap();
    kill(Pid::from_raw(i32::try_from(program.id()).unwrap()), Signal::SIGTERM).unwrap();
    file.write_all(b"# nothing\n").unwrap();
    drop(file);
    program.wait().unwrap()
}

/// As PID 1 of a container, it would not get a signal that nobody takes yet.
#[test]
fn a_stop_signal_is_obeyed_though_it_came_before_signals_are_taken() {
    let status = ends_after_an_early_sigterm(&[]);
    assert_eq!((status.code(), status.signal()), (Some(0), None));
}

#[test]
fn a_program_that_takes_no_signals_dies_by_them() {
    for option in ["--dry-run", "--print-config", "--wait=nonsense"] {
        assert_eq!(ends_after_an_early_sigterm(&[option]).signal(), Some(15), "{option}");
    }
}
