//! Names and contents of our znodes: pure functions from text and JSON to values, and back.

pub(crate) mod candidate_name;
pub mod control;
pub mod history;
pub mod json;
pub mod lease;
pub mod member;
pub mod once;
pub(crate) mod paths;
pub(crate) mod queue;
pub mod recipe;
pub(crate) mod run_marker;
pub mod settings;
pub mod vouching;
