//! How a candidate enters the line and looks at it, for each kind of candidate.

pub(crate) mod sequential;
pub(crate) mod single;
