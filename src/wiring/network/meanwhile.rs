//! What goes on while this host has no address yet: a signal to stop is heeded, HTTP is answered, and systemd's watchdog is fed. Nobody
//! contends, and the supervisor's loop, which does all of it later, has not begun.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::clock;
use crate::config::Config;
use crate::core::machine::{Machine, Settings};
use crate::core::time::Timestamp;
use crate::observe::http::{HttpState, Identity, Listener, serve};
use crate::observe::status_publisher::StatusPublisher;
use crate::supervisor::{Observers, signals};
use crate::wiring;
use crate::zookeeper::schema::vouching::Neighbourhood;

/// See the module page.
#[derive(Debug)]
pub struct Meanwhile<'a> {
    pub config: &'a Config,
    observers: &'a Observers,
    /// From the first failure on.
    http: Option<EarlyHttp>,
    /// When the watchdog was fed last.
    signed_at: Option<Timestamp>,
}

impl<'a> Meanwhile<'a> {
    pub fn new(config: &'a Config, observers: &'a Observers) -> Self {
        Self { config, observers, http: None, signed_at: None }
    }

    /// There is something to wait for. Whatever fails, nobody is answered until we contend.
    pub fn begin(&mut self) {
        let Observers { identity, http, .. } = self.observers;
        if let (Some(listener), None) = (http, &self.http) {
            let machine = wiring::machine(self.config, wiring::instance());
            let begun = EarlyHttp::begin(listener, identity, &machine);
            self.http = begun.inspect_err(|error| tracing::debug!(%error, "HTTP is not served yet")).ok();
        }
    }

    /// Whether a signal to stop comes within this time. It was held back since the start, and stays pending.
    pub fn asked_to_stop(&mut self, within: Duration) -> bool {
        let until = clock::now().lease.after(within);
        loop {
            let (left, due_in) = (clock::now().lease.until(until), self.feed_watchdog());
            if self.stop_comes(left.min(due_in)) {
                return true;
            }
            if left <= due_in {
                return false;
            }
        }
    }

    /// If it is time. A process that was ready before a standstill would be killed otherwise. Returns when the next one is due.
    fn feed_watchdog(&mut self) -> Duration {
        let watchdog = self.observers.systemd.as_ref().and_then(|systemd| Some((systemd, systemd.sign_every()?)));
        let Some((systemd, every)) = watchdog else { return Duration::MAX };
        let now = clock::now().lease;
        let last = *self.signed_at.filter(|at| at.until(now) < every).get_or_insert_with(|| {
            systemd.give_sign();
            now
        });
        self.signed_at = Some(last);
        now.until(last.after(every))
    }

    fn stop_comes(&self, within: Duration) -> bool {
        // Whatever fails, the next look comes: only the wait before it is shorter.
        let Ok(signals) = SignalFd::with_flags(&signals::ending(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        else {
            return false;
        };
        if let Some(http) = &self.http {
            return http.answer_for(within, signals);
        }
        let mut watched = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        poll(&mut watched, PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX)).is_ok_and(|ready| ready > 0)
    }
}

/// Answers as long as it is told to; ends when it is dropped.
#[derive(Debug)]
struct EarlyHttp {
    runtime: Runtime,
    publisher: StatusPublisher,
}

impl EarlyHttp {
    /// # Errors
    /// If there is no room for a descriptor.
    fn begin(listener: &Listener, identity: &Identity, machine: &Settings) -> io::Result<Self> {
        let now = clock::now();
        let publisher = StatusPublisher::new(now, Machine::new(*machine, now).snapshot(), identity);
        let state = HttpState {
            identity: identity.clone(),
            feed: publisher.feed(),
            metrics: publisher.metrics(),
            drain: watch::channel(None).1,
            neighbourhood: watch::channel(Neighbourhood::default()).1,
            dropped: None,
        };
        let runtime = Builder::new_current_thread().enable_all().build()?;
        {
            let _inside = runtime.enter();
            serve(listener.try_clone()?, state)?;
        }
        Ok(Self { runtime, publisher })
    }

    /// Answers for so long. `true`: one of these signals came before; it stays pending.
    fn answer_for(&self, limit: Duration, signals: SignalFd) -> bool {
        self.runtime.block_on(async {
            let Ok(signals) = signals::watched(signals) else { return false };
            tokio::select! {
                biased;
                came = signals.readable() => came.is_ok(),
                never = self.publisher.outlast_loop() => match never {},
                () = sleep(limit) => false,
            }
        })
    }
}
