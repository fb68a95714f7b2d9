//! Who leads, and when: elections, failovers and the lease, whatever happens to hosts, links and servers. The program itself, as a
//! user runs it, against real servers: one process for each host, the witness as the command.
//!
//! A test's doc comment says which known trap of such programs it covers (T1 to T54).
//! `CHAOS_RUNS=200 cargo test --test election chaos` repeats the failovers.
//!
//! Never: a sleep in place of a condition; a guess from log lines where znodes or the diary can tell.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod election;
mod election_path;
mod ensemble_faults;
mod failover;
mod guarantees;
mod idle;
mod interop;
mod leaders;
mod lost_answers;
mod lost_sessions;
mod outages;
mod partition;
mod priority;
mod read_only;
mod recipes;
mod release;
mod releaser;
mod standstill;
mod successive_waits;
mod suspend;
mod waiting;

use support::election::LEASE;
use support::standalone::{election, link, server};
use support::wait::{millis, secs};
