//! How others may watch: HTTP.

use std::ffi::OsString;

use clap::Args;

/// See `config::watching` for what the values mean.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Watching")]
pub struct Watching {
    /// Serve health, status and metrics over HTTP at this address [default: nowhere]
    ///
    /// An IP address or localhost with a port, such as 127.0.0.1:8080 or [::]:8080, or unix:/run/job.sock. /leader: 200
    /// only while the lease is valid and the command runs, else 503. /standby, /livez, /readyz: 200 or 503. /status: JSON.
    /// /metrics: Prometheus. Whoever can connect can read all of it, and change nothing.
    #[arg(long, value_name = "ADDR")]
    pub http: Option<OsString>,
}
