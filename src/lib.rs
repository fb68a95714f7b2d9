//! zk-leader-run.
pub mod clock;
pub mod core;
pub mod guard;
