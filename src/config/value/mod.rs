//! The values of options, one module for each kind: from text to a validated value.

use std::str::FromStr;

pub mod acl;
pub mod duration;
pub mod ensemble;
pub mod executable;
pub mod signal;
pub mod znode;

/// A number of digits alone: without the sign that `parse` accepts.
pub fn digits<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}
