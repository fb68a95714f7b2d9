//! What operators do and see: orders, the upgrade, the documents' commands, HTTP, metrics, systemd, addresses.
//!
//! Never: a sleep in place of a condition; a guess from log lines where znodes or the diary can tell.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod addresses;
mod documents;
mod http;
mod load_balancer;
mod members;
mod operators;
mod prometheus;
mod quota;
mod switch_over;
mod systemd;
mod terminal;
mod upgrade;
mod vouching;

use support::standalone::{election, link, server};
use support::wait::{millis, secs};
