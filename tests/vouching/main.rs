//! The direct network of hosts that vouch for one another, over real sockets: what strangers send counts for nothing, and what
//! hosts say arrives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

mod cost;
mod goodbyes;
mod host;
mod questions;
mod sockets;
mod strangers;
