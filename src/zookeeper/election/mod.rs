//! The requests of an election, each answered with one event.

pub(crate) mod bootstrap;
pub(crate) mod fencing;
pub(crate) mod preempt;
pub(crate) mod read;
pub(crate) mod recipe;
pub(crate) mod refusals;
pub mod release_orphaned;
pub(crate) mod run_once;
pub(crate) mod secret;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod transactions;
