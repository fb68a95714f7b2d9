//! What Kerberos calls the servers, and us; the same in a build without it.
//!
//! Never: a realm; which realm a host is in, `krb5.conf` says.

use std::fmt;
use std::time::Duration;

/// Where a name in `--connect` stands for the host.
const AS_CONNECTED: &str = "HOST";

/// `SERVICE/HOST`, as the key distribution centre knows the servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal {
    pub service: String,
    /// `None`: each server's name in `--connect`.
    pub host: Option<String>,
}

impl Principal {
    /// What `ZooKeeper`'s own client takes for granted.
    pub const USUAL_SERVICE: &str = "zookeeper";

    /// The part behind the slash for a server that `--connect` calls `host`.
    pub fn host_or<'a>(&'a self, host: &'a str) -> &'a str {
        self.host.as_deref().unwrap_or(host)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.service, self.host_or(AS_CONNECTED))
    }
}

/// Why nobody can log in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complaint {
    /// What is wrong, and the remedy.
    pub text: String,
    /// Whether it stays wrong until somebody changes something.
    pub is_final: bool,
}

/// As whom we log in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ourselves {
    /// `user@REALM`.
    pub name: String,
    /// For how long the ticket still counts.
    pub lifetime: Duration,
}
