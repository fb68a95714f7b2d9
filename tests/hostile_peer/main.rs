//! What answers at the other end need not be `ZooKeeper`, what comes from it need not be what was sent: the supervisor takes
//! no harm, starts nothing without a lease, keeps nothing running beyond one, and can be stopped.
//!
//! `HOSTILE_RUNS=n` repeats the random ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod impostors;
mod spoilt_orders;
mod spoilt_replies;

use support::standalone::{election, server};
