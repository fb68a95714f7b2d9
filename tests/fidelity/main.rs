//! The ensemble in memory (`tests/memory`) against real servers: the same requests, the same answers, the same events in
//! the same order. Where they differ, the memory is wrong.
//!
//! `FIDELITY_SEED=n cargo test --test fidelity random` replays one random script; `FIDELITY_SCRIPTS=n` sets how many are run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "tests"
)]

#[path = "../memory/mod.rs"]
mod memory;
#[path = "../support/mod.rs"]
mod support;

mod compare;
mod faults;
mod jute;
mod lab;
mod links;
mod random;
mod requests;
mod rules;
mod script;
mod several;
mod wire;
