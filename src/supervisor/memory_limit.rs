//! Limits the memory of this process, so that a flood of data, or a reply that announces gigabytes, ends this process
//! and not the host. The guard then ends the command, as whenever the supervisor dies. The command is not limited: its
//! guard was forked before. Only the soft limit is changed.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Ten times the memory for a queue of a thousand candidates.
const MOST_MEMORY: u64 = 64 * 1024 * 1024;

/// Sets the limit. If that is forbidden, the process runs without.
pub(super) fn insert() {
    let limited = getrlimit(Resource::RLIMIT_DATA)
        .and_then(|(soft, hard)| setrlimit(Resource::RLIMIT_DATA, soft.min(MOST_MEMORY), hard));
    if let Err(error) = limited {
        tracing::warn!(%error, "Cannot limit the memory of this process");
    }
}
