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
mod documented;
mod drain;
mod failures;
mod fencing;
mod fleet;
mod handovers;
mod interruptions;
mod members;
mod night;
mod operator;
mod orders;
mod queue;
mod screens;
mod several_operators;
mod watching;

use support::standalone::{election, link, server};
