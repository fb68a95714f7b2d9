//! The command and its tree: how it is started, held together, told, asked after and ended; services, cron jobs, hooks.
//!
//! Never: a sleep in place of a condition; a guess from log lines where znodes or the diary can tell.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod containment;
mod cron;
mod crontab;
mod exits;
mod fence;
mod health;
mod hooks;
mod pauses;
mod services;
mod shutdown;
mod signals;
mod slow_start;
mod surroundings;

use support::election::LEASE;
use support::standalone::{election, link};
use support::wait::{millis, secs};
