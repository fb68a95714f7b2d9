//! The requests of an election, each answered with one event.

pub(crate) mod bootstrap;
pub(crate) mod fencing;
pub(crate) mod preempt;
pub(crate) mod read;
pub mod release_orphaned;
mod resume;
pub(crate) mod run_once;
pub(crate) mod sequential;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod single;
mod slots;
pub(crate) mod transactions;
pub(crate) mod watches;
