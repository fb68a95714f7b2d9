//! How we prove to the servers who we are: the same for both programs.
//!
//! Never: an option that holds a secret; everybody can see those.

use std::ffi::OsString;

use clap::{Args, ValueHint};

/// See `config::access` for what the values mean.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Access to ZooKeeper")]
pub struct AccessOptions {
    /// File of identities, a line for each: digest:USER:PASSWORD or sasl:USER:PASSWORD [default: none]
    ///
    /// digest: as zkCli.sh's addauth; ACLs of the scheme digest are for these. sasl: a login by SASL DIGEST-MD5; the ACLs'
    /// scheme is sasl. The file is refused if everybody may read it. Without it, the variable ZK_LEADER_RUN_AUTH may hold
    /// such lines, or a systemd credential called zk-leader-run.auth (LoadCredential=). Read once, at the start.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub auth_file: Option<OsString>,
}
