//! The loop that feeds the machine and carries out what it decides. It holds no decision of its own.
//!
//! Never: a blocking call; a decision; a clock other than [`crate::clock`].

mod effects;
mod fuse;
mod signals;

use std::time::Duration;

use tokio::sync::mpsc;

use crate::clock::{self, SuspendWatch};
use crate::core::action::ExitReason;
use crate::core::event::Event;
use crate::core::machine::{Machine, Settings};
use crate::core::time::Now;
use crate::guard::handle::Handle;
use crate::observe::http::{self, Identity, Listener};
use crate::observe::lookout::Lookout;
use crate::zookeeper::{self, Desk};

use effects::Effects;
use signals::SignalStream;

/// How long closing the session may take at the end; then it is left to expiry.
const CLOSE_LIMIT: Duration = Duration::from_millis(500);

/// Those who look on from outside.
#[derive(Debug)]
pub struct Onlookers {
    pub identity: Identity,
    /// `--http`, bound already.
    pub http: Option<Listener>,
}

/// Contends, leads, follows, until something ends the process.
///
/// # Errors
/// When signals cannot be caught.
pub async fn run(
    settings: Settings,
    ensemble: zookeeper::Settings,
    guard: Handle,
    onlookers: Onlookers,
) -> std::io::Result<ExitReason> {
    fuse::insert();
    let mut signals = SignalStream::new()?;
    let (sender, mut answers) = mpsc::unbounded_channel();
    let mut suspend = SuspendWatch::new();
    let mut machine = Machine::new(settings, clock::now());
    let mut lookout = Lookout::new(clock::now(), machine.snapshot());
    invite(onlookers, &lookout)?;
    let mut effects = Effects::new(Desk::new(ensemble, sender), guard);
    let mut event = Event::Ticked;
    loop {
        let now = clock::now();
        if suspend.jumped() {
            effects.carry_out_all(lookout.watch(&mut machine, now, Event::ClockJumped));
        }
        if let Some(reason) = effects.carry_out_all(lookout.watch(&mut machine, now, event)) {
            effects.close(CLOSE_LIMIT).await;
            return Ok(reason);
        }
        event = tokio::select! {
            biased;
            event = signals.next() => event,
            event = effects.guard_event() => event,
            Some(event) = answers.recv() => event,
            () = until_deadline(&machine, clock::now()) => Event::Ticked,
            () = lookout.pulse().asked() => Event::Ticked,
        };
    }
}

fn invite(onlookers: Onlookers, lookout: &Lookout) -> std::io::Result<()> {
    let Onlookers { identity, http } = onlookers;
    match http {
        Some(listener) => http::serve(listener, http::Desk { identity, feed: lookout.feed() }),
        None => Ok(()),
    }
}

/// Sleeps on `CLOCK_MONOTONIC`, which may be slewed against the lease's clock by a tenth: waking early is harmless (the
/// machine is asked again), and what may not be late is the guard's.
async fn until_deadline(machine: &Machine, now: Now) {
    match machine.next_deadline(now) {
        Some(deadline) => tokio::time::sleep(now.lease.until(deadline)).await,
        None => std::future::pending().await,
    }
}
