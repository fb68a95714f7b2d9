//! The ACL option.

use std::ffi::OsString;

use clap::Args;

/// See `config::value::acl` for what the values mean.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Access to ZooKeeper")]
pub struct AclOptions {
    /// ACL of new znodes: open, creator or digest:USER:HASH
    ///
    /// open: everyone may do everything, and so forge a record or end a term. creator: only sessions with our own
    /// identities, which every host must share. Several entries are separated by commas: creator, digest:USER:HASH,
    /// digest:USER:HASH:RIGHTS, sasl:USER, sasl:USER:RIGHTS, world:anyone:RIGHTS, where RIGHTS are letters of cdrwa (all if
    /// left out). creator,world:anyone:r lets everyone look. Znodes that exist keep the ACL that they have.
    #[arg(long, value_name = "ACL", default_value = "open")]
    pub acl: Option<OsString>,
}
