//! The `ZooKeeper` layer against real servers: what it creates, what it promises when replies are lost, and what it says
//! when the server says no.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod bootstrap;
mod chroot;
mod host;
mod line;
mod lossy;
mod orders;
mod releaser;
mod retries;
mod runs;
mod second_looks;
mod sessions;
mod single;
mod slots;
mod vouching;
mod watches;
mod writes;
