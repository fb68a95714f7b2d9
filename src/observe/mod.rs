//! Readers of what happened: they tell people and programs, and change nothing.
//!
//! Never: a decision.

pub mod http;
pub mod journal;
pub mod line;
pub mod log;
pub mod lookout;
pub mod metrics;
pub mod pulse;
pub mod status;
pub mod status_line;
mod stderr;
pub mod systemd;
pub mod waiting;
pub mod words;
