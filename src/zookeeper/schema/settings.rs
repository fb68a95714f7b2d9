//! The validated settings that this folder needs. Defaults are set in `config`.

use std::net::SocketAddr;
use std::time::Duration;

use crate::core::lease::lease_for;
use crate::core::settings::{Guarantee, Recipe};
use crate::zookeeper::client::acl::Acl;
use crate::zookeeper::client::connect::Access;
use crate::zookeeper::schema::candidate_name::Names;
use crate::zookeeper::schema::member::About;
use crate::zookeeper::schema::once::Once;

/// The ensemble, our znodes and our identity.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `host:port,…`, without a chroot.
    pub servers: String,
    /// Empty, or an absolute path in front of `base` and `election`. Created like any ancestor.
    pub chroot: String,
    pub access: Access,
    /// T as requested.
    pub session_timeout: Duration,
    /// `--lease`; `None`: as long as the session timeout.
    pub lease: Option<Duration>,
    /// `/zk-leader-run/<name>`.
    pub base: String,
    /// The directory of the candidates; by default `<base>/election`.
    pub election: String,
    /// The ACL of every znode that we create.
    pub acl: Acl,
    /// Other libraries use the election directory too: `--election-path`.
    pub is_shared: bool,
    pub recipe: Recipe,
    pub guarantee: Guarantee,
    /// `--max-pause`; `None` under at-most-one.
    pub max_pause: Option<Duration>,
    /// How many may lead at once, from 1 on.
    pub leaders: u16,
    /// Among waiting candidates, higher ones lead first.
    pub priority: i16,
    pub id: String,
    pub host: String,
    pub pid: u32,
    /// Names the PID namespace of `pid` in this boot of the kernel. Empty: not known.
    pub pid_namespace: String,
    /// Drawn at random when the process starts; never zero.
    pub instance: u64,
    /// `None`: without `--vouch`.
    pub vouch: Option<Vouch>,
    /// `None`: the command runs whenever we lead.
    pub once: Option<Once>,
    /// For display.
    pub about: About,
}

/// `--vouch`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vouch {
    /// Where other hosts can ask this one for a promise.
    pub address: SocketAddr,
    /// F, `--vouch-limit`: the same as the machine's.
    pub limit: Duration,
}

impl Settings {
    /// How candidates are named and ordered.
    pub(crate) fn names(&self) -> Names {
        Names { recipe: self.recipe, is_shared: self.is_shared }
    }

    /// L, for the negotiated session timeout.
    pub fn own_lease(&self, negotiated: Duration) -> Duration {
        lease_for(negotiated, self.lease, self.is_shared)
    }
}
