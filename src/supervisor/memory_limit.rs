//! Bounds the memory of this process: whoever floods us, or announces gigabytes, ends us and not the host. The guard then
//! ends the command, as whenever we die.
//!
//! Never: a limit for the command; its guard was forked before, and whatever we start has the limit of before as its hard one.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Ten times what a line of a thousand candidates takes.
const MOST_MEMORY: u64 = 64 * 1024 * 1024;

/// Sets the limit. Where that is forbidden we go on without.
pub(super) fn insert() {
    let limited = getrlimit(Resource::RLIMIT_DATA)
        .and_then(|(soft, hard)| setrlimit(Resource::RLIMIT_DATA, soft.min(MOST_MEMORY), hard));
    if let Err(error) = limited {
        tracing::warn!(%error, "Memory could not be limited");
    }
}
