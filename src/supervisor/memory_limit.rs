//! Limits the memory of this process, so that a flood of data, or a reply that announces gigabytes, ends this process
//! and not the host. The guard then ends the command, as whenever the supervisor dies. The command is not limited: its
//! guard was forked before. Only the soft limit is changed.

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// Ten times the memory for a queue of a thousand candidates.
const MOST_MEMORY: u64 = 64 * 1024 * 1024;

/// It is lifted before another program is executed in this process, which forks guards again.
#[derive(Clone, Debug)]
pub(super) struct MemoryLimit {
    /// The soft limit before.
    earlier: Option<rlim_t>,
}

impl MemoryLimit {
    /// Sets the limit. If that is forbidden, the process runs without.
    pub fn insert() -> Self {
        let limit = Self { earlier: getrlimit(Resource::RLIMIT_DATA).map(|(soft, _)| soft).ok() };
        limit.impose();
        limit
    }

    /// Sets the limit, again.
    pub fn impose(&self) {
        self.set(|soft| soft.min(MOST_MEMORY));
    }

    /// Sets the earlier limit again.
    pub fn lift(&self) {
        self.set(|soft| soft);
    }

    fn set(&self, limit: impl FnOnce(rlim_t) -> rlim_t) {
        let Some(earlier) = self.earlier else { return };
        let set = getrlimit(Resource::RLIMIT_DATA);
        let set = set.and_then(|(_, hard)| setrlimit(Resource::RLIMIT_DATA, limit(earlier), hard));
        if let Err(error) = set {
            tracing::warn!(%error, "Cannot limit the memory of this process");
        }
    }
}
