//! zk-leader-run.
pub mod core;
