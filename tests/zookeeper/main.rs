//! The program itself, as a user runs it, against real servers: one process for each host, the witness as the command.
//!
//! Each test says in its doc comment which known trap of such programs it covers (T1 to T54). Tests that break no server share
//! one; each has an election of its own. `CHAOS_RUNS=200 cargo test --test zookeeper chaos` repeats the failovers.
//!
//! Never: a sleep in place of a condition; a guess from log lines where znodes or the diary can tell.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod acl;
mod addresses;
mod checklist;
mod closing;
mod container;
mod containment;
#[cfg(all(feature = "tls", feature = "sasl-digest"))]
mod credential_rotation;
#[cfg(feature = "tls")]
mod credentials;
mod cron;
mod crontab;
mod documents;
#[cfg(feature = "tls")]
mod dumps;
#[cfg(all(feature = "tls", feature = "sasl-digest"))]
mod eavesdropping;
mod election;
mod election_path;
mod ensemble_faults;
mod exits;
mod failover;
mod fence;
mod guarantees;
mod health;
mod hooks;
mod http;
mod idle;
mod interop;
mod leaders;
mod load_balancer;
mod lost_answers;
mod members;
mod operators;
mod outages;
mod packages;
mod partition;
mod pauses;
mod priority;
mod prometheus;
mod read_only;
mod recipes;
mod refusals;
mod release;
mod releaser;
#[cfg(feature = "sasl-digest")]
mod sasl;
mod secrets;
mod services;
mod shutdown;
mod signals;
mod slow_start;
mod standstill;
mod successive_waits;
mod switch_over;
mod systemd;
mod terminal;
#[cfg(feature = "tls")]
mod tls;
mod unauthorized_access;
mod units;
mod upgrade;
mod waiting;

use std::sync::OnceLock;
use std::time::Duration;

use support::{Election, Ensemble, Proxy};

/// The standalone server of all tests that break none.
fn server() -> &'static Ensemble {
    static SERVER: OnceLock<Ensemble> = OnceLock::new();
    SERVER.get_or_init(Ensemble::single)
}

/// An election on it.
fn election() -> Election {
    Election::on(&server().connect_string())
}

/// A link to it that can be broken.
fn link() -> Proxy {
    Proxy::to(server().server(0).address())
}

/// No command lives longer than this after the last renewal of a host with the usual session timeout.
const LEASE: Duration = secs(3);

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}
