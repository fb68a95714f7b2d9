//! Receives signals: three of them stop this process, one asks for an upgrade, the others are forwarded to the command.
//! None of them ends this process while a tree lives.
//!
//! They are blocked and read from a `signalfd(2)`: those that were not read are still pending when the next program is
//! executed in this process (`execve(2)`), and none ends a program that cannot read them yet. Threads inherit the mask.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

use crate::observe::words;

/// They ask this process to end.
const STOPPING: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT];

/// They end a process that runs no command: so does a terminal that was closed.
pub fn ending() -> SigSet {
    STOPPING.into_iter().chain(has_terminal().then_some(Signal::SIGHUP)).collect()
}

/// Job control (TSTP, TTIN, TTOU) keeps its default: a stopped supervisor loses its lease, and the guard ends the
/// command. Real-time signals are forwarded, too, except [`upgrade`].
const FORWARDED: [Signal; 10] = [
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGWINCH,
    Signal::SIGCONT,
    Signal::SIGURG,
    Signal::SIGIO,
    Signal::SIGVTALRM,
    Signal::SIGPROF,
];

/// `SIGRTMIN+1`.
fn upgrade() -> i32 {
    libc::SIGRTMIN() + 1
}

/// The purpose of a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    Stop,
    /// The terminal was closed: for the command, or to stop where none runs.
    HangUp,
    /// Replace this program by the one that stands at its path now.
    Upgrade,
    /// For the command.
    Forward(i32),
}

/// Blocks the signals that [`SignalStream`] takes, so that they wait for it: as PID 1 of a container, this process would
/// lose them. No other signal is blocked afterwards, even if it was inherited as blocked.
pub fn hold_back() -> HeldBack {
    has_terminal();
    HeldBack { before: taken(ignored_at_start()).thread_swap_mask(SigmaskHow::SIG_SETMASK).ok() }
}

/// See [`hold_back`].
#[derive(Debug)]
pub struct HeldBack {
    before: Option<SigSet>,
}

impl HeldBack {
    /// No stream will take them: they do what they do to any program.
    pub fn let_go(self) {
        // It cannot fail (`sigprocmask(2)`).
        let _ = self.before.map(|before| before.thread_set_mask());
    }
}

/// What [`SignalStream::new`] takes.
fn taken(ignored: u64) -> SigSet {
    let is_taken = |signal: Signal| {
        let is_named = STOPPING.contains(&signal) || FORWARDED.contains(&signal);
        is_named && (signal == Signal::SIGTERM || !is_in(ignored, signal as i32))
    };
    // The real-time signals have no names.
    let mut taken = SigSet::all();
    Signal::iterator().filter(|signal| !is_taken(*signal)).for_each(|signal| taken.remove(signal));
    taken
}

/// `timeout(1)` signals its child, and then the group that its child is in. Who asks a second time waits longer.
const ECHO: Duration = Duration::from_millis(300);

/// The signals that were received.
pub struct SignalStream {
    /// Each with what the kernel tells of it.
    received: Pin<Box<dyn Stream<Item = (i32, Option<siginfo>)>>>,
    stopped_at: Option<Instant>,
    /// Without one, SIGHUP was sent by somebody who means the command: most programs read their configuration again.
    pub(super) had_terminal: bool,
}

impl SignalStream {
    /// Takes the signals that stop us or are forwarded, except those that were ignored when we were started
    /// (`nohup(1)`; `&` in a script ignores INT and QUIT). SIGTERM is always taken. No other signal is blocked
    /// afterwards, even if it was inherited as blocked. `had_terminal`: an earlier program of this process had one.
    ///
    /// # Errors
    /// If they cannot be taken.
    pub fn new(had_terminal: bool) -> io::Result<Self> {
        let ignored = ignored_at_start();
        let taken = taken(ignored);
        let signals = SignalFd::with_flags(&taken, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        taken.thread_set_mask()?;
        let signals = watched(signals)?;
        let signals = stream::unfold(signals, |signals| async { Some((read(&signals).await, signals)) });
        // A signal that is blocked is queued even if it is ignored.
        let is_wanted = move |signal: i32| signal == Signal::SIGTERM as i32 || !is_in(ignored, signal);
        let signals = signals.filter(move |info| std::future::ready(is_wanted(number(info))));
        let received = signals.map(|info| (number(&info), Some(info)));
        Ok(Self { received: Box::pin(received), stopped_at: None, had_terminal: had_terminal || has_terminal() })
    }

    /// Signals of another source, without a terminal.
    pub fn of(signals: impl Stream<Item = i32> + 'static) -> Self {
        let received = signals.map(|signal| (signal, None));
        Self { received: Box::pin(received), stopped_at: None, had_terminal: false }
    }

    /// The next signal. Several that ask to stop at once are one request. Cancel-safe.
    pub async fn next(&mut self) -> Received {
        loop {
            match self.received.next().await {
                Some((signal, info)) if STOPPING.iter().any(|stopping| *stopping as i32 == signal) => {
                    let now = Instant::now();
                    if self.stopped_at.is_none_or(|at| now.duration_since(at) >= ECHO) {
                        self.stopped_at = Some(now);
                        if let Some(info) = info {
                            let sender = sender(info.ssi_code, info.ssi_pid, info.ssi_uid);
                            tracing::info!("{} was received from {sender}", words::signal(signal));
                        }
                        return Received::Stop;
                    }
                }
                Some((signal, _)) if signal == upgrade() => return Received::Upgrade,
                Some((signal, _)) if self.had_terminal && signal == Signal::SIGHUP as i32 => return Received::HangUp,
                Some((signal, _)) => return Received::Forward(signal),
                None => std::future::pending().await,
            }
        }
    }

    /// Drops all signals up to the first that stops us; notes whether an upgrade was asked for.
    pub async fn until_stop(&mut self, upgrade: &mut bool) {
        loop {
            match self.next().await {
                Received::Stop => return,
                Received::Upgrade => *upgrade = true,
                Received::HangUp | Received::Forward(_) => {}
            }
        }
    }
}

/// Whether this process had a controlling terminal when this program held its signals back. Once that is closed, it has none
/// (`tty(4)`), and SIGHUP may wait to be read.
fn has_terminal() -> bool {
    static HAD: OnceLock<bool> = OnceLock::new();
    *HAD.get_or_init(|| {
        let tty = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open("/dev/tty");
        tty.is_ok()
    })
}

/// # Errors
/// Outside of a tokio runtime with I/O.
pub fn watched(signals: SignalFd) -> io::Result<AsyncFd<SignalFd>> {
    #[expect(deprecated, reason = "its successor is unsafe; a SignalFd owns its descriptor and never changes it")]
    AsyncFd::with_interest(signals, Interest::READABLE)
}

fn number(info: &siginfo) -> i32 {
    i32::try_from(info.ssi_signo).unwrap_or_default()
}

/// Who sent a signal, as far as the kernel tells (`sigaction(2)`, `pid_namespaces(7)`).
fn sender(code: i32, pid: u32, user: u32) -> String {
    match pid {
        _ if code == libc::SI_KERNEL => "the terminal".to_owned(),
        0 => "a process outside of this container".to_owned(),
        _ => {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let name = Some(name.trim()).filter(|name| !name.is_empty()).unwrap_or("gone");
            format!("process {pid} ({name}) of user {user}")
        }
    }
}

/// Takes one pending signal, and no more: the others stay pending. Cancel-safe.
pub async fn read(signals: &AsyncFd<SignalFd>) -> siginfo {
    loop {
        let Ok(mut ready) = signals.readable().await else { return std::future::pending().await };
        match ready.get_inner().read_signal() {
            Ok(Some(info)) => return info,
            Ok(None) | Err(_) => ready.clear_ready(),
        }
    }
}

/// Whether whoever started us wants this signal to be ignored, and nothing has changed that since.
pub fn is_ignored(signal: Signal) -> bool {
    is_in(ignored_at_start(), signal as i32)
}

/// The signals that are ignored; none if that cannot be read.
fn ignored_at_start() -> u64 {
    ignored_in(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// The `SigIgn` mask of `proc_pid_status(5)`.
fn ignored_in(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn is_in(mask: u64, signal: i32) -> bool {
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or(0) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn signals_that_ask_to_stop_at_once_are_one_request() {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        let numbers = stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
        let mut signals = SignalStream::of(numbers);
        let mut stops = Vec::new();
        for (pause, signal) in [(0, 15), (0, 15), (299, 2), (1, 15), (100, 3), (300, 3), (0, 10)] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            sender.send(signal).unwrap();
            if let Ok(received) = tokio::time::timeout(Duration::ZERO, signals.next()).await {
                stops.push((signal, received));
            }
        }
        assert_eq!(
            stops,
            [(15, Received::Stop), (15, Received::Stop), (3, Received::Stop), (10, Received::Forward(10))]
        );
    }

    #[test]
    fn who_sent_a_signal_is_told_as_the_kernel_knows_it() {
        assert_eq!(sender(libc::SI_KERNEL, 0, 0), "the terminal");
        assert_eq!(sender(libc::SI_USER, 0, 0), "a process outside of this container");
        assert_eq!(sender(libc::SI_USER, u32::MAX, 7), "process 4294967295 (gone) of user 7");
    }

    #[test]
    fn a_script_in_the_background_ignores_the_interrupt() {
        let is_ignored = |status: &str| is_in(ignored_in(status), Signal::SIGINT as i32);
        assert!(is_ignored("Name:\tx\nSigIgn:\t0000000000001006\n"));
        assert!(!is_ignored("Name:\tx\nSigIgn:\t0000000000001004\n") && !is_ignored(""));
    }
}
