//! Options of a leader that lives through an outage of the ensemble.

use std::ffi::OsString;

use clap::Args;

const VOUCHING: &str = "While ZooKeeper is away";

/// See `config::lease::vouching` for what the values mean.
#[derive(Args, Clone, Debug, Default)]
pub struct VouchOptions {
    /// Run on in an outage of ZooKeeper if the other hosts agree
    ///
    /// Without it, an outage of the whole ensemble stops the command after one lease. With it, the leader asks every host
    /// that could take over, directly by UDP, to hold back for one more lease, again and again; the command runs on while
    /// all of them promise, for --vouch-limit at most. There are still never two commands. If one of these hosts crashes or
    /// cannot be reached during the outage, the command is stopped after one lease, as without the option. Give it to every
    /// host. Not with --guarantee at-least-one, --election-path, --recipe single or several --leaders.
    #[arg(long, help_heading = VOUCHING)]
    pub vouch: bool,

    /// Where other hosts ask this one [default: towards ZooKeeper]
    ///
    /// An IP address of this host, such as 10.0.0.7, 10.0.0.7:4711 or [2001:db8::7]:4711, for UDP. Without a port: any
    /// free one. Without the option: the address that leads to the first server of --connect that gives one of use to
    /// other hosts, and any port. Every host must reach it from every other one.
    #[arg(long, value_name = "ADDRESS[:PORT]", help_heading = VOUCHING)]
    pub vouch_address: Option<OsString>,

    /// Longest run without ZooKeeper, 2 leases to 24h
    ///
    /// It counts from the last renewal that was acknowledged. A host that the leader did not know waits for this long
    /// before it takes over, and so does everybody if the leader and all that it has asked die at once.
    #[arg(long, value_name = "DURATION", default_value = "10m", allow_hyphen_values = true, help_heading = VOUCHING)]
    pub vouch_limit: Option<OsString>,
}
