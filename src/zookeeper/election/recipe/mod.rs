//! How a candidate enters the queue and reads it, for each kind of candidate.

pub(crate) mod sequential;
pub(crate) mod single;
