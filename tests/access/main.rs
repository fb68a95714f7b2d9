//! Who may do what: identities, ACLs, TLS and SASL, secrets, and what a stranger sees or does.
//!
//! Never: a sleep in place of a condition; a guess from log lines where znodes or the diary can tell.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod acl;
mod closing;
#[cfg(all(feature = "tls", feature = "sasl-digest"))]
mod credential_rotation;
#[cfg(feature = "tls")]
mod credentials;
#[cfg(feature = "tls")]
mod dumps;
#[cfg(all(feature = "tls", feature = "sasl-digest"))]
mod eavesdropping;
#[path = "../upgrade_in_place/package.rs"]
#[allow(dead_code, reason = "another suite uses more of it")]
mod package;
mod refusals;
#[cfg(feature = "sasl-digest")]
mod sasl;
mod secrets;
#[cfg(feature = "tls")]
mod slow_handshake;
#[cfg(feature = "tls")]
mod tls;
mod unauthorized_access;
#[cfg(all(feature = "tls", feature = "sasl-digest"))]
mod upgrades;

use support::election::LEASE;
use support::standalone::{election, link, server};
use support::wait::secs;
