//! Options for credentials, the same for both programs. No option holds a secret, because every user can see the
//! command line.

use std::ffi::OsString;

use clap::{Args, ValueHint};

/// See `config::access` for what the values mean.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Access to ZooKeeper")]
pub struct AccessOptions {
    /// File of identities, like digest:USER:PASSWORD [default: none]
    ///
    /// A line for each identity: digest:USER:PASSWORD or sasl:USER:PASSWORD. digest: as by addauth in zkCli.sh, for
    /// ACLs of the scheme digest. sasl: a login by SASL DIGEST-MD5, for ACLs of the scheme sasl. The file is refused if
    /// everybody may read it. Without it, the variable ZK_LEADER_RUN_AUTH may hold such lines, or a systemd credential
    /// called zk-leader-run.auth (LoadCredential=). Read once, at the start.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub auth_file: Option<OsString>,

    /// Log in by Kerberos (SASL GSSAPI), in a build that can
    ///
    /// MIT's Kerberos library chooses the identity: from a ticket (kinit, KRB5CCNAME), or, for a service that runs for weeks,
    /// from a client keytab (KRB5_CLIENT_KTNAME). The ACLs' scheme is sasl. Packages are built without Kerberos: cargo build
    /// --features kerberos.
    #[arg(long, global = true)]
    pub kerberos: bool,

    /// The servers' principal [default: zookeeper/NAME-IN-CONNECT]
    ///
    /// SERVICE or SERVICE/HOST. If HOST is given, it is used for every server: give it if Kerberos does not know the servers
    /// by their names in --connect.
    #[arg(long, value_name = "NAME", global = true)]
    pub kerberos_server: Option<OsString>,

    /// Speak TLS with every server in --connect that does not say tcp://
    ///
    /// Without --tls, TLS is used only with servers that are written as tcp+tls://HOST:PORT. A server with TLS needs its
    /// secureClientPort in --connect.
    #[arg(long, global = true)]
    pub tls: bool,

    /// PEM file of the servers' certificate authorities [default: none]
    ///
    /// TLS needs it. A server's certificate must be for its name in --connect. The three files of TLS may be systemd
    /// credentials: zk-leader-run.tls-ca, .tls-cert, .tls-key. They are read again when they change, for the next connection.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub tls_ca: Option<OsString>,

    /// PEM file of our own certificate [default: none]
    ///
    /// For servers that demand one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub tls_cert: Option<OsString>,

    /// PEM file of its private key, not encrypted [default: none]
    ///
    /// It is refused if everybody may read it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub tls_key: Option<OsString>,

    /// Accept a server's certificate whatever name it is for
    ///
    /// It must still be signed by an authority in --tls-ca: every holder of such a certificate can then pass for a server.
    #[arg(long, global = true)]
    pub tls_any_name: bool,
}
