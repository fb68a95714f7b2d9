//! `zk-leaderctl` as an operator types it, against real servers and running hosts.
//!
//! Never: a sleep in place of a condition.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod access;
mod asking;
mod doctor;
mod failures;
mod fencing;
mod operator;
mod orders;
mod screens;

use std::sync::OnceLock;

use support::{Election, Ensemble, Proxy};

/// The standalone server of all tests.
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
