//! `zk-leaderctl` as an operator types it, against real servers and running hosts.
//!
//! Never: a sleep in place of a condition.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod access;
mod asking;
mod at_a_time;
mod completion;
mod doctor;
mod failures;
mod fencing;
mod fleet;
mod interruptions;
mod members;
mod night;
mod operator;
mod orders;
mod screens;
mod watching;

use support::standalone::{election, link, server};
