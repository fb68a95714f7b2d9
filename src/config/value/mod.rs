//! The values of options, one module for each kind: from text to something that is known to be valid.

pub mod acl;
pub mod duration;
pub mod ensemble;
pub mod executable;
pub mod signal;
pub mod znode;
