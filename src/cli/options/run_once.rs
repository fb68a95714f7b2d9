//! Options of jobs that run once, whichever host runs them.

use std::ffi::OsString;

use clap::Args;

const RUNS: &str = "Once on all hosts";

/// The unit of a run, and when it counts.
#[derive(Args, Clone, Debug, Default)]
pub struct RunOptions {
    /// Run at most once for this key, whichever host runs it
    ///
    /// Before the command starts, a marker of this key is written; every other call with the same key, on whatever host
    /// and however late, is a duplicate: it runs nothing, and exits with 0. At most once: a run that fails or is
    /// interrupted is not repeated, and is reported when the next one starts; for at least once, see --retry-failed.
    /// Make the key from the scheduled time, alike on all hosts: --slot "$(date +%F)" for a daily job (in a crontab, %
    /// is written \%). If leadership is lost after the start, the exit status is 76.
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, help_heading = RUNS)]
    pub slot: Option<OsString>,

    /// Run at most once in this length of time, whichever host runs it
    ///
    /// For jobs without a key: a call is a duplicate (see --slot) if a run started after the call joined the election,
    /// or less than half of PERIOD before that. Both times are by ZooKeeper's clock. Set PERIOD to the time between two
    /// scheduled runs; the calls of all hosts for one run must come within half of it. At most once, unless
    /// --retry-failed. Neither --slot nor --once-per goes with several --leaders or --guarantee at-least-one, nor --once-per
    /// with --recipe single.
    #[arg(long, value_name = "PERIOD", allow_hyphen_values = true, help_heading = RUNS)]
    pub once_per: Option<OsString>,

    /// Repeat a run that failed or was interrupted
    ///
    /// Such a run does not count: at least once, instead of at most once.
    ///
    /// With --slot or --once-per. A call that waits for leadership, or comes later, then runs the command again, never
    /// two at a time, until it has once ended with status 0. The command must be safe to run twice.
    #[arg(long, help_heading = RUNS)]
    pub retry_failed: bool,

    /// With --slot: how many markers to keep
    ///
    /// When a slot starts, the oldest markers beyond these are deleted. A slot whose marker is gone would run again:
    /// keep more markers than calls can still wait or come late.
    #[arg(long, value_name = "COUNT", default_value = "100", allow_hyphen_values = true, help_heading = RUNS)]
    pub keep_slots: Option<OsString>,
}
