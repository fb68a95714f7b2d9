//! Options of the auxiliary commands.

use std::ffi::OsString;

use clap::Args;

const HOOKS: &str = "Hooks";

/// What tells others of our part in the election.
#[derive(Args, Clone, Debug, Default)]
pub struct HookOptions {
    /// Shell command to run at every change of our part in the election
    ///
    /// It finds what happened in ZK_LEADER_EVENT: standby, elected, fenced, started, paused, resumed, stopping, lost or
    /// released; why, in ZK_LEADER_WHY; and the term in the variables that the command gets. It is run by /bin/sh -c,
    /// one event after the other. Nothing waits for it: not the command, no deadline, no release. What it prints goes to
    /// standard error; what it leaves running in the background is ended with it. If hooks come faster than they are
    /// done, the oldest of more than 32 are left out, and ZK_LEADER_MISSED tells the next one how many. The last ones,
    /// after the release, delay our exit by at most one --hook-timeout.
    #[arg(long, value_name = "SHELL", allow_hyphen_values = true, help_heading = HOOKS)]
    pub hook: Option<OsString>,

    /// How long one hook may take; then its whole tree is killed
    #[arg(long, value_name = "DURATION", default_value = "10s", allow_hyphen_values = true, help_heading = HOOKS)]
    pub hook_timeout: Option<OsString>,
}
