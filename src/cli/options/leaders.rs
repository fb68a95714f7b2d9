//! How many may lead at once, and in which order.

use std::ffi::OsString;

use clap::Args;

/// See `config::leaders` for what the values mean.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Election")]
pub struct LeaderOptions {
    /// How many hosts may lead at once, 1 to 64
    ///
    /// Each leader has a slot of its own, numbered from 0, and its command finds the number in ZK_LEADER_SLOT. By the time a
    /// slot's next command starts, its last one is dead. It must be the same on every host, and stays the same for as long
    /// as the election's znodes exist. Not with --recipe single or --guarantee at-least-one.
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true)]
    pub leaders: Option<OsString>,

    /// The highest leads first, -999 to 999; or spread
    ///
    /// Among equals, the first to join leads first. A leader is not replaced because a higher one comes: it stays until it ends. Lower
    /// ones wait for as long as there are higher ones. spread: the rank of this host in this election, 1 to 999, from a hash of the
    /// election's path and the host name, so that the leaders of many elections spread over the hosts; the same on every host. Not
    /// with --recipe single.
    #[arg(long, value_name = "N", default_value = "0", allow_hyphen_values = true)]
    pub priority: Option<OsString>,

    /// Ask a leader of lower --priority to leave [default: never]
    ///
    /// Counted from when this host is next in line and sees that the leader's priority is lower. The leader stops its
    /// command as on SIGTERM, within its --stop-timeout, releases, and goes to the end of the queue. An equal is never asked
    /// to go. 0: at once. Not with --recipe single or several --leaders.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub preempt_after: Option<OsString>,
}
