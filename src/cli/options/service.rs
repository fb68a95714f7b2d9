//! Options of services, and time limits of jobs.

use std::ffi::OsString;

use clap::Args;

const SERVICE: &str = "Services: restarts while we lead";
const TIME: &str = "Limits on time";

/// What follows when the command ends by itself while we lead.
#[derive(Args, Clone, Debug, Default)]
pub struct ServiceOptions {
    /// Restart on-failure or always
    ///
    /// With --on-exit restart.
    /// on-failure: status 0 is the end, and we exit with 0; everything else (another status, a signal, --timeout) is a
    /// failure. always: after status 0, too. A command that cannot be executed (126, 127) is never started again,
    /// unless the reason may pass (too many processes or open files, no memory or space, an input/output error, a program
    /// that is just being written, a working directory that was removed): that is a failure. Each start in one term has
    /// the same token.
    #[arg(long, value_name = "WHEN", default_value = "on-failure", help_heading = SERVICE)]
    pub restart: Option<OsString>,

    /// First pause; each failure doubles it
    ///
    /// The lease is kept meanwhile, so no other host starts the command. After status 0 the pause is always this long.
    #[arg(long, value_name = "DURATION", default_value = "1s", allow_hyphen_values = true, help_heading = SERVICE)]
    pub restart_delay: Option<OsString>,

    /// The longest pause before a restart
    ///
    /// After a run that lasted at least this long, the pause is --restart-delay again.
    #[arg(long, value_name = "DURATION", default_value = "1m", allow_hyphen_values = true, help_heading = SERVICE)]
    pub restart_max_delay: Option<OsString>,

    /// Restarts within --restart-window, or unlimited
    ///
    /// After up to this many failures within --restart-window, the command is restarted on this host.
    ///
    /// After one more failure, this host resigns, so that a crash loop moves on to another host, and stays out of the
    /// queue for --stand-back. 0: resign at the first failure. If this host leads again within the window, one more
    /// failure is enough to resign again.
    #[arg(long, value_name = "COUNT", default_value = "5", allow_hyphen_values = true, help_heading = SERVICE)]
    pub max_restarts: Option<OsString>,

    /// For how long a failure counts
    #[arg(long, value_name = "DURATION", default_value = "10m", allow_hyphen_values = true, help_heading = SERVICE)]
    pub restart_window: Option<OsString>,

    /// How long to stay out of the queue after we resigned
    #[arg(long, value_name = "DURATION", default_value = "1m", allow_hyphen_values = true, help_heading = SERVICE)]
    pub stand_back: Option<OsString>,

    /// Exit statuses that end it for good, like 2,78
    ///
    /// After one of these we release, and exit with it; the next host in line starts the command.
    ///
    /// A signal counts as 128 and its number, --timeout as 124.
    #[arg(long, value_name = "STATUSES", allow_hyphen_values = true, help_heading = SERVICE)]
    pub no_restart_status: Option<OsString>,

    /// Least time between two starts; 0: none
    ///
    /// From one start of the command on this host to the next.
    ///
    /// It counts across terms, with --on-exit rejoin too.
    #[arg(long, value_name = "DURATION", default_value = "0", allow_hyphen_values = true, help_heading = SERVICE)]
    pub min_start_interval: Option<OsString>,

    /// Longest run; then stop, status 124 [default: for ever]
    ///
    /// It is sent the stop signal, and killed after --stop-timeout; the lease is renewed meanwhile. With --on-exit
    /// restart, each run has this time, and a longer one counts as a failure; with rejoin, the next in line leads.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = TIME)]
    pub timeout: Option<OsString>,

    /// Skip a run not started by then: exit 0 [default: never]
    ///
    /// For cron. The time counts from our own start, suspended time included. If the command was not started by then, we
    /// leave the election, with one line in the log and status 0. (--wait does the same with status 75.) If the ensemble was not reached at all, the status is 69.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = TIME)]
    pub start_deadline: Option<OsString>,

    /// Extra wait for a leader that did not release
    ///
    /// 0: wait only until the last leader's lease is over.
    ///
    /// Use it if requests that a crashed leader has sent may still run elsewhere, on a database, for example. After a clean
    /// release there is no wait. Not with --guarantee at-least-one, which does not wait.
    #[arg(long, value_name = "DURATION", default_value = "0", allow_hyphen_values = true, help_heading = TIME)]
    pub takeover_delay: Option<OsString>,
}
