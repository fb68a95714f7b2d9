//! Virtual time: that of tokio's paused clock, which goes on as soon as nobody has anything to do.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;
use zk_leader_run::clock;
use zk_leader_run::core::time::{Now, Sighting, Timestamp};

thread_local! {
    static START: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// What the hosts' clocks show at the start.
const OFFSET: Duration = Duration::from_secs(1_000);

/// Puts this thread's program into virtual time, until it is dropped.
pub struct Virtual(());

impl Virtual {
    pub fn begin() -> Self {
        START.set(Some(Instant::now()));
        clock::simulate(Some(reading));
        Self(())
    }
}

impl Drop for Virtual {
    fn drop(&mut self) {
        clock::simulate(None);
    }
}

/// Since the start.
pub fn elapsed() -> Duration {
    Instant::now() - start()
}

pub fn instant(at: Duration) -> Instant {
    start() + at
}

/// When the hosts' clocks show this; a century from now at the latest.
pub fn instant_of(at: Timestamp) -> Instant {
    let left = clock::now().lease.until(at);
    Instant::now() + left.min(Duration::from_secs(3_000_000_000))
}

fn start() -> Instant {
    START.get().expect("time was started")
}

fn reading() -> Now {
    let nanos = u64::try_from((OFFSET + elapsed()).as_nanos()).expect("centuries");
    Now { lease: Timestamp::from_nanos(nanos), observer: Sighting::from_nanos(nanos) }
}
