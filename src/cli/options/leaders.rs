//! How many may lead at once, and in which order.

use std::ffi::OsString;

use clap::Args;

/// See `config::leaders` for what the values mean.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Election")]
pub struct LeaderOptions {
    /// How many hosts may lead at once, 1 to 64
    ///
    /// Each leader has its own slot, whose number, from 0, is in ZK_LEADER_SLOT. A slot's next command starts when its
    /// last one is dead. It must be the same on every host, and stays the same for as long as the election's znodes
    /// exist. Only with --recipe sequential; not with --guarantee at-least-one.
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true)]
    pub leaders: Option<OsString>,

    /// The highest leads first, -999 to 999; or spread
    ///
    /// Among equals, the first to join leads first. No leader is replaced because a higher one comes. Lower ones wait
    /// for as long as there are higher ones. spread: a rank from 1 to 999, a hash of the election's path and the host
    /// name. With spread on every host, the leaders of many elections spread over the hosts. Only with --recipe
    /// sequential.
    #[arg(long, value_name = "N", default_value = "0", allow_hyphen_values = true)]
    pub priority: Option<OsString>,

    /// Ask a leader of lower --priority to leave [default: never]
    ///
    /// The time begins when this host is next in line and sees a leader of lower priority. That leader stops its
    /// command as on SIGTERM, releases, and goes to the end of the queue. An equal is never asked. 0: at once. A host
    /// that has resigned (--max-restarts, --before-start, --fence-cmd) asks when --restart-window is over, and none
    /// before --min-start-interval is. Not with --recipe single or several --leaders.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub preempt_after: Option<OsString>,
}
