//! zk-leader-run.
pub mod budget;
pub mod cli;
pub mod clock;
pub mod config;
pub mod core;
pub mod exit;
pub mod observe;
