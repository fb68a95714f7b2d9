//! Virtual time: that of tokio's paused clock, which goes on as soon as nobody has anything to do.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;
use zk_leader_run::{background, clock, random};

use crate::process;

thread_local! {
    static START: Cell<Option<Instant>> = const { Cell::new(None) };
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// Puts this thread's program into virtual time, until it is dropped.
pub struct Virtual(());

impl Virtual {
    pub fn begin() -> Self {
        START.set(Some(Instant::now()));
        clock::simulate(Some(process::reading));
        background::simulate(Some(process::inherit));
        DRAWN.set(0);
        random::simulate(Some(draw));
        Self(())
    }
}

impl Drop for Virtual {
    fn drop(&mut self) {
        clock::simulate(None);
        background::simulate(None);
        random::simulate(None);
    }
}

/// Different each time, in no order.
fn draw() -> u128 {
    DRAWN.set(DRAWN.get() + 1);
    u128::from(DRAWN.get().wrapping_mul(0x9E37_79B9_7F4A_7C15)) << 64 | u128::from(DRAWN.get())
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
