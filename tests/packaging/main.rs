//! What is shipped: packages, units, container images, and the checklist of a release.
//!
//! Never: a sleep in place of a condition; a guess from log lines where znodes or the diary can tell.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod checklist;
mod container;
mod packages;
mod units;

use support::standalone::{election, link, server};
