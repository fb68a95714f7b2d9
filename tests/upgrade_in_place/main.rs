//! An upgrade that the command does not notice, with real servers: `SIGRTMIN+1` executes the program anew that stands at
//! the supervisor's path. Pid, session, candidate, token and the command's processes stay the same.
//!
//! Two binaries take turns: copies of this build, each a file of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod exchange;
mod faults;
mod guard;
mod layout;
mod package;
mod refusals;
mod vouched;

use support::standalone::{election, link};
