//! The values of options, one module for each kind: from text to a validated value.

pub mod acl;
pub mod duration;
pub mod ensemble;
pub mod executable;
pub mod signal;
pub mod znode;
