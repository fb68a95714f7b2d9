//! What hosts that vouch for one another learn from `ZooKeeper`, so that they can talk without it.

use std::fmt;
use std::net::SocketAddr;

/// The name of the znode below the base that holds the secret.
pub const VOUCH: &str = "vouch";

/// The key of all messages of one election: `<base>/vouch`, for those entries of `--acl` that may write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; Self::LENGTH]);

impl Secret {
    pub const LENGTH: usize = 32;
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}

/// A process that can be asked directly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Neighbour {
    pub instance: u64,
    pub id: String,
    pub address: SocketAddr,
}

/// What is known, from the newest session on. It outlives the session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Neighbourhood {
    /// The czxid of the base, which tells this election from another of the same name.
    pub election: Option<i64>,
    /// `None`: not read yet, or there is none.
    pub secret: Option<Secret>,
    /// Of members in line and of rosters, each instance once.
    pub neighbours: Vec<Neighbour>,
}

impl Neighbourhood {
    pub fn of(&self, instance: u64) -> Option<&Neighbour> {
        self.neighbours.iter().find(|neighbour| neighbour.instance == instance)
    }
}
