//! Readers of what happened: they tell people and programs, and change nothing.
//!
//! Never: a decision.

pub mod console;
pub mod http;
pub mod liveness;
pub mod log;
pub mod metrics;
pub mod status;
pub mod status_publisher;
pub mod systemd;
pub mod vouching;
pub mod waiting;
pub mod words;
