//! Virtual time: that of tokio's paused clock, which goes on as soon as nobody has anything to do.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;
use zk_leader_run::{background, clock};

use crate::process;

thread_local! {
    static START: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Puts this thread's program into virtual time, until it is dropped.
pub struct Virtual(());

impl Virtual {
    pub fn begin() -> Self {
        START.set(Some(Instant::now()));
        clock::simulate(Some(process::reading));
        background::simulate(Some(process::inherit));
        Self(())
    }
}

impl Drop for Virtual {
    fn drop(&mut self) {
        clock::simulate(None);
        background::simulate(None);
    }
}

/// Since the start.
pub fn elapsed() -> Duration {
    Instant::now() - start()
}

pub fn instant(at: Duration) -> Instant {
    start() + at
}

fn start() -> Instant {
    START.get().expect("time was started")
}
