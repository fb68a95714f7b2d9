//! The principals of the servers and of ourselves; also in a build without Kerberos. `krb5.conf` says which realm a
//! host is in.

use std::fmt;
use std::time::Duration;

/// Stands for the host name in `--connect`.
const AS_CONNECTED: &str = "HOST";

/// `SERVICE/HOST`, as the key distribution centre knows the servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal {
    pub service: String,
    /// `None`: each server's name in `--connect`.
    pub host: Option<String>,
}

impl Principal {
    /// The default of `ZooKeeper`'s own client.
    pub const USUAL_SERVICE: &str = "zookeeper";

    /// The part after the slash, for a server that `--connect` calls `host`.
    pub fn host_or<'a>(&'a self, host: &'a str) -> &'a str {
        self.host.as_deref().unwrap_or(host)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.service, self.host_or(AS_CONNECTED))
    }
}

/// Why a login fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complaint {
    /// The problem and the remedy.
    pub text: String,
    /// Whether it stays until somebody changes the configuration.
    pub is_final: bool,
}

/// The principal that we log in as.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ourselves {
    /// `user@REALM`.
    pub name: String,
    /// How long the ticket is still valid.
    pub lifetime: Duration,
}
