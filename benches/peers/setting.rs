//! Where and how often it is measured, and with which session timeouts.

use std::path::PathBuf;
use std::time::Duration;

use crate::servers::Servers;

/// Nobody expires while others are measured.
pub const LONG: Duration = Duration::from_secs(60);
/// Expiry is what is measured: the shortest that a server with a tick of 2 s grants.
pub const SHORT: Duration = Duration::from_secs(4);
/// Our default.
pub const IDLE_SESSION: Duration = Duration::from_secs(15);
/// Few pings.
pub const CROWD_SESSION: Duration = Duration::from_secs(120);
/// From "in line" to "watches are armed, and all is calm".
pub const CALM: Duration = Duration::from_millis(150);

pub struct Setting {
    pub servers: Servers,
    /// Of the diaries and the command.
    pub directory: PathBuf,
    pub rounds: usize,
    pub largest_crowd: usize,
}

/// A number from the environment.
pub fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Whether `ONLY` asks for it.
pub fn is_wanted(scenario: &str) -> bool {
    let wanted = std::env::var("ONLY").unwrap_or_default();
    wanted.is_empty() || wanted.split(',').any(|only| only == scenario)
}
