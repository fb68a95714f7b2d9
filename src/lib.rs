//! zk-leader-run.
pub mod clock;
pub mod core;
