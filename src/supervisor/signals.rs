//! Turns signals into events: three of them stop this process, the others are forwarded to the command. None of them
//! ends this process while a tree lives.

use std::io;
use std::pin::Pin;

use futures_util::{Stream, StreamExt};
use signal_hook::consts as sig;
use signal_hook_tokio::Signals;

use crate::core::event::Event;

const STOPPING: [i32; 3] = [sig::SIGTERM, sig::SIGINT, sig::SIGQUIT];

/// Job control (TSTP, TTIN, TTOU) keeps its default: a stopped supervisor loses its lease, and the guard ends the
/// command.
const FORWARDED: [i32; 10] = [
    sig::SIGHUP,
    sig::SIGUSR1,
    sig::SIGUSR2,
    sig::SIGALRM,
    sig::SIGWINCH,
    sig::SIGCONT,
    sig::SIGURG,
    sig::SIGIO,
    sig::SIGVTALRM,
    sig::SIGPROF,
];

/// The numbers of the signals that were received.
pub struct SignalStream(Pin<Box<dyn Stream<Item = i32>>>);

impl SignalStream {
    /// Catches the signals that stop us or are forwarded, except those that were ignored when we were started
    /// (`nohup(1)`; `&` in a script ignores INT and QUIT). SIGTERM is always caught.
    pub fn new() -> io::Result<Self> {
        let ignored = ignored_at_start();
        let realtime = libc::SIGRTMIN()..=libc::SIGRTMAX();
        let signals = STOPPING.into_iter().chain(FORWARDED).chain(realtime);
        Signals::new(signals.filter(|&signal| signal == sig::SIGTERM || !is_in(ignored, signal))).map(Self::of)
    }

    /// Signals of another source.
    pub fn of(signals: impl Stream<Item = i32> + 'static) -> Self {
        Self(Box::pin(signals))
    }

    /// The next signal. Cancel-safe.
    pub async fn next(&mut self) -> Event {
        match self.0.next().await {
            Some(signal) if STOPPING.contains(&signal) => Event::StopRequested,
            Some(signal) => Event::SignalReceived { signal },
            None => std::future::pending().await,
        }
    }
}

/// The `SigIgn` mask of `proc_pid_status(5)`; empty if it cannot be read.
fn ignored_at_start() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn is_in(mask: u64, signal: i32) -> bool {
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or(0) & 1 == 1)
}
