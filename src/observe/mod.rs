//! Readers of what happened: they tell people and programs, and change nothing.
//!
//! Never: a decision.

pub mod line;
pub mod log;
mod stderr;
pub mod words;
