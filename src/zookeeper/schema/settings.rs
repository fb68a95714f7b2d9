//! What the layer must know of the configuration; everything in it was validated before.
//!
//! Never: a default; those are the business of `config`.

use std::time::Duration;

use crate::core::lease::lease_for;
use crate::core::settings::{Guarantee, Recipe};
use crate::zookeeper::client::acl::Acl;
use crate::zookeeper::client::connect::Access;
use crate::zookeeper::schema::candidate_name::Names;
use crate::zookeeper::schema::once::Once;

/// Where the ensemble is, where our znodes are, and who we are.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `host:port,…`, without a chroot.
    pub servers: String,
    /// Empty, or an absolute path; put in front of `base` and `election`. Created like any ancestor.
    pub chroot: String,
    pub access: Access,
    /// T as it will be requested.
    pub session_timeout: Duration,
    /// `--lease`; `None`: as long as the session timeout.
    pub lease: Option<Duration>,
    /// `/zk-leader-run/<name>`.
    pub base: String,
    /// Where the candidates are; by default `<base>/election`.
    pub election: String,
    /// What every znode that we create says of who may use it.
    pub acl: Acl,
    /// Contenders of other libraries stand there, too: `--election-path`.
    pub is_shared: bool,
    pub recipe: Recipe,
    pub guarantee: Guarantee,
    /// How many may lead at once, from 1 on.
    pub leaders: u16,
    /// Higher ones lead first among those who wait.
    pub priority: i16,
    pub id: String,
    pub host: String,
    pub pid: u32,
    /// Drawn at random when the process starts; never zero.
    pub instance: u64,
    /// `None`: the command runs whenever we lead.
    pub once: Option<Once>,
}

impl Settings {
    /// How candidates are called and ordered.
    pub(crate) fn names(&self) -> Names {
        Names { recipe: self.recipe, is_shared: self.is_shared }
    }

    /// L, for the session timeout that was negotiated.
    pub fn own_lease(&self, negotiated: Duration) -> Duration {
        lease_for(negotiated, self.lease, self.is_shared)
    }
}
