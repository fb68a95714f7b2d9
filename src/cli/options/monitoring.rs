//! Monitoring options: HTTP, systemd.

use std::ffi::OsString;

use clap::{ArgAction, Args};

/// See `config::monitoring` for what the values mean.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Monitoring")]
pub struct MonitoringOptions {
    /// Address of HTTP for health, status and metrics [default: nowhere]
    ///
    /// An IP address or localhost with a port, such as 127.0.0.1:8080 or [::]:8080, or unix:/run/job.sock. /leader: 200
    /// only while the lease is valid and the command runs, else 503. /standby, /livez, /readyz: 200 or 503. /status: JSON.
    /// /metrics: Prometheus. Everyone who can connect can read all of it, but change nothing.
    #[arg(long, value_name = "ADDR")]
    pub http: Option<OsString>,

    /// Shown to those who look for the service [default: nothing]
    ///
    /// For example address=10.0.0.7:8080, where the service can be reached. Repeat the option for more; in the variable
    /// and in the file, separate them by blanks. A value has no blanks. zk-leaderctl status -o json and /status show
    /// them for each participant.
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append)]
    pub meta: Option<Vec<OsString>>,

    /// When we are ready for systemd: contending or leading
    ///
    /// For units of Type=notify. contending: when we are in line for leadership, so that a standby is a unit that runs.
    /// leading: when the command runs. systemd is also told every change, how long a stop may take, and with WatchdogSec=
    /// that both of our processes live. The command's own notifications do not reach it.
    #[arg(long, value_name = "WHEN", default_value = "contending")]
    pub ready_on: Option<OsString>,
}
