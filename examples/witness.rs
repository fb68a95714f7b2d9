//! The tests' command: writes a diary that proves who ran when, and says so when two ran at once.
//!
//! `witness DIARY [OPTION...]`. It takes the lock `DIARY.lock` without waiting, keeps it until its last descendant is gone (the
//! descriptor is inherited), and appends lines `BOOTTIME-ns EVENT pid=N token=N id=ID`: `start`, `alive` (every 5 ms),
//! `signal=N`, `end`, and `OVERLAP` if the lock was taken. The line of a start ends with what it was told of its term:
//! `TERM TAKEOVER CANDIDATE SESSION`; that of an `alive` with `until=BOOTTIME-ns`, if the lease file says yes. Options:
//!
//! * `ignore-term`: SIGTERM is noted and ignored
//! * `linger=MS`: so long from SIGTERM to the end
//! * `exit-after=MS`, `status=N`: ends by itself
//! * `daemonise`: leaves a daemon (`setsid`, double fork, ignores SIGTERM) that stamps `alive` too; `orphan`: is that daemon

#[path = "lease/main.rs"]
#[allow(dead_code, reason = "its main function, and other ways to open a file")]
mod lease;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::{Command, ExitCode};
use std::time::Duration;

use lease::Lease;
use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, fcntl};
use nix::time::{ClockId, clock_gettime};
use signal_hook::consts as sig;
use signal_hook::iterator::Signals;

const STEP: Duration = Duration::from_millis(5);

struct Diary {
    file: File,
    tail: String,
    lease: Option<Lease>,
}

impl Diary {
    fn open(path: &str) -> io::Result<Self> {
        let value = |name| std::env::var(name).unwrap_or_default();
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let tail =
            format!("pid={} token={} id={}", std::process::id(), value("ZK_LEADER_TOKEN"), value("ZK_LEADER_ID"));
        Ok(Self { file, tail, lease: Lease::of_this_command().ok() })
    }

    fn note(&mut self, event: &str) -> io::Result<()> {
        let tail = self.tail.clone();
        self.note_with(now()?, event, &tail)
    }

    fn note_with(&mut self, now: Duration, event: &str, tail: &str) -> io::Result<()> {
        // Begins with a newline: what a killed writer has left half written must not spoil this line.
        self.file.write_all(format!("\n{} {event} {tail}\n", now.as_nanos()).as_bytes())
    }

    fn note_life(&mut self) -> io::Result<()> {
        // In this order a pause between the two makes the lease shorter.
        let now = now()?;
        let left = self.lease.as_ref().map(Lease::left).filter(|left| !left.is_zero());
        let until = left.map(|left| format!(" until={}", (now + left).as_nanos())).unwrap_or_default();
        let tail = format!("{}{until}", self.tail);
        self.note_with(now, "alive", &tail)
    }

    /// The start, with what we were told of our term.
    fn note_start(&mut self) -> io::Result<()> {
        let value = |name| std::env::var(name).unwrap_or_else(|_| "-".to_owned());
        let told = ["ZK_LEADER_TERM", "ZK_LEADER_TAKEOVER", "ZK_LEADER_CANDIDATE", "ZK_LEADER_SESSION"].map(value);
        let tail = format!("{} {}", self.tail, told.join(" "));
        self.note_with(now()?, "start", &tail)
    }
}

fn main() -> io::Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or_else(|| io::Error::other("usage: witness DIARY [OPTION...]"))?;
    let options: Vec<String> = arguments.collect();
    let has = |name: &str| options.iter().any(|option| option == name);
    let number = |name: &str| {
        options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok())
    };

    let mut signals = Signals::new([sig::SIGTERM, sig::SIGINT, sig::SIGHUP, sig::SIGUSR1, sig::SIGUSR2, sig::SIGQUIT])?;
    let mut diary = Diary::open(&path)?;
    let orphan = has("orphan");
    if !orphan {
        take_lock(&path, &mut diary)?;
    }
    if orphan { diary.note("orphan") } else { diary.note_start() }?;
    if has("daemonise") {
        Command::new("setsid")
            .arg("-f")
            .arg(std::env::current_exe()?)
            .args([&path, "orphan", "ignore-term"])
            .status()?;
    }

    // By the clock: on a busy machine a pause takes longer than it should.
    let in_millis = |millis| Ok::<_, io::Error>(now()? + Duration::from_millis(millis));
    let mut ends_at = number("exit-after").map(in_millis).transpose()?;
    loop {
        for signal in signals.pending() {
            diary.note(&format!("signal={signal}"))?;
            if matches!(signal, sig::SIGTERM | sig::SIGINT) && !has("ignore-term") {
                ends_at = Some(in_millis(number("linger").unwrap_or(0))?);
            }
        }
        let left = ends_at.map(|at| now().map(|now| at.saturating_sub(now))).transpose()?;
        if left.is_some_and(|left| left.is_zero()) {
            diary.note("end")?;
            return Ok(ExitCode::from(u8::try_from(number("status").unwrap_or(0)).unwrap_or(255)));
        }
        diary.note_life()?;
        pass(STEP.min(left.unwrap_or(STEP)));
    }
}

/// An inherited descriptor keeps the lock for every descendant; it is never unlocked, only closed by the kernel.
fn take_lock(path: &str, diary: &mut Diary) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(format!("{path}.lock"))?;
    let Ok(lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else { return diary.note("OVERLAP") };
    fcntl(lock.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
    std::mem::forget(lock);
    Ok(())
}

fn now() -> io::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_BOOTTIME)?.into())
}

#[expect(clippy::disallowed_methods, reason = "it only passes time")]
fn pass(length: Duration) {
    std::thread::sleep(length);
}
