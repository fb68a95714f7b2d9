//! A supervisor that decides nothing: forks the guard as its first act, then passes orders and reports through.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::ExitCode;

use tokio::net::UnixStream;
use zk_leader_run::core::settings::Contain;
use zk_leader_run::guard::command::environment::Identity;
use zk_leader_run::guard::handle::{self, Handle, Settings, Spawned};
use zk_leader_run::guard::protocol::{ORDER_SIZE, REPORT_SIZE, decode_order, encode_report};

/// Where the test listens. Its presence makes this executable a driver.
pub const SOCKET: &str = "GUARD_DRIVER_SOCKET";
pub const CONTAIN: &str = "GUARD_DRIVER_CONTAIN";
pub const FOREGROUND: &str = "GUARD_DRIVER_FOREGROUND";
/// Our memory is closed to other processes of our user, as with secrets in it.
pub const SECRETS: &str = "GUARD_DRIVER_SECRETS";
pub const RELEASER: &str = "GUARD_DRIVER_RELEASER";

/// What a driver tells the test: one byte for the kind, then a report or zeros.
pub const FRAME_SIZE: usize = 1 + REPORT_SIZE;
pub const REPORT: u8 = b'r';
pub const GUARD_GONE: u8 = b'g';
pub const COMPLAINED: u8 = b'c';
pub const ORPHANS_ENDED: u8 = b'o';

pub fn main(socket: &OsStr) -> ExitCode {
    if let Some(report) = std::env::var_os(RELEASER).filter(|_| std::env::args().any(|argument| argument == "release"))
    {
        std::fs::write(report, std::env::var("ZK_LEADER_TOKEN").unwrap()).unwrap();
        return ExitCode::SUCCESS;
    }
    if std::env::var_os(SECRETS).is_some() {
        nix::sys::prctl::set_dumpable(false).unwrap();
    }
    let settings = Settings {
        command: std::env::args_os().skip(1).collect(),
        identity: Identity { id: "driver:1".into(), path: "/zk-leader-run/test".into() },
        stop_signal: libc::SIGTERM,
        contain: contain(&std::env::var(CONTAIN).unwrap()),
        foreground: std::env::var_os(FOREGROUND).is_some(),
        releaser: std::env::var_os(RELEASER).map(|_| vec!["releaser".into(), "release".into()]),
    };
    let guard = handle::fork(settings).unwrap_or_else(|error| panic!("{error}"));
    let test = StdUnixStream::connect(socket).unwrap();
    test.set_nonblocking(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(pass_through(guard, test));
    ExitCode::SUCCESS
}

pub fn contain(name: &str) -> Contain {
    match name {
        "auto" => Contain::Auto,
        "subreaper" => Contain::Subreaper,
        "cgroup" => Contain::Cgroup,
        "pid_namespace" => Contain::PidNamespace,
        "process_group" => Contain::ProcessGroup,
        other => panic!("no containment is called {other}"),
    }
}

async fn pass_through(guard: Spawned, test: StdUnixStream) {
    let test = UnixStream::from_std(test).unwrap();
    let containment = guard.containment().to_string();
    tell(&test, &guard.pid().to_be_bytes()).await;
    tell(&test, &u32::try_from(containment.len()).unwrap().to_be_bytes()).await;
    tell(&test, containment.as_bytes()).await;
    let mut handle = guard.into_handle().unwrap();
    loop {
        tokio::select! {
            ready = test.readable() => {
                ready.unwrap();
                let mut record = [0; ORDER_SIZE];
                match test.try_read(&mut record) {
                    // The test writes each order by one call.
                    Ok(ORDER_SIZE) => drop(handle.send(&decode_order(&record).unwrap())),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    _ => break,
                }
            },
            report = handle.recv() => {
                let Some(report) = report else { return finish_the_guards_work(handle, &test).await };
                tell(&test, &frame(REPORT, encode_report(&report))).await;
            }
        }
    }
    handle.dismiss().await;
}

async fn finish_the_guards_work(mut handle: Handle, test: &UnixStream) {
    tell(test, &frame(GUARD_GONE, [0; REPORT_SIZE])).await;
    let complain = |_| drop(test.try_write(&frame(COMPLAINED, [0; REPORT_SIZE])));
    handle.end_orphans(&[], complain).await;
    tell(test, &frame(ORPHANS_ENDED, [0; REPORT_SIZE])).await;
    if std::env::var_os(FOREGROUND).is_some() {
        // The test types at our terminal, which would hang up.
        std::future::pending::<()>().await;
    }
}

/// A test that does not read has more room than it ever needs.
async fn tell(test: &UnixStream, bytes: &[u8]) {
    test.writable().await.unwrap();
    assert_eq!(test.try_write(bytes).unwrap(), bytes.len());
}

fn frame(kind: u8, report: [u8; REPORT_SIZE]) -> [u8; FRAME_SIZE] {
    let mut frame = [kind; FRAME_SIZE];
    frame[1..].copy_from_slice(&report);
    frame
}
