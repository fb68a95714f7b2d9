//! A `ZooKeeper` ensemble in memory: a deterministic state machine that is told the time and a seed, and knows neither
//! sockets nor threads. `tests/fidelity` holds it against real servers.
//!
//! ```ignore
//! let mut ensemble = Ensemble::new(Settings::of(3), seed);
//! let connection = ensemble.connect(0, &Hello::new(10_000), now);  // a connect request arrives at server 0
//! ensemble.submit(connection, 1, Request::Ping, now);              // a request with the client's xid 1 arrives
//! for output in ensemble.advance(now) { … }                        // what the servers have sent by now
//! ensemble.next();                                                 // when something happens without further input
//! ```
//!
//! The caller decides what delays and loses requests and replies between clients and servers. Between the servers this is
//! decided here: `Settings::hop`, and `kill`, `cut`, `pause`, `lag`.
//!
//! Never: containers, TTL znodes, persistent watches, quotas, observers, read-only servers, reconfiguration.
#![allow(dead_code, reason = "each suite uses its own part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "milliseconds, counters and lengths are small"
)]

pub mod acl;
pub mod clients;
pub mod digest;
pub mod ensemble;
pub mod expiry;
pub mod leading;
pub mod mail;
pub mod network;
pub mod prepare;
pub mod protocol;
pub mod reading;
#[path = "../simulation/rng.rs"]
pub mod rng;
pub mod server;
pub mod settings;
pub mod state;
pub mod tree;
pub mod voting;
pub mod watches;

pub use ensemble::{Ensemble, Role};
pub use protocol::*;
pub use settings::{Hello, Settings, Time, Version};
