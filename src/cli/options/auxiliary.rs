//! Options of the auxiliary commands.

use std::ffi::OsString;

use clap::Args;

const HEALTH: &str = "Health";
const FENCING: &str = "Fencing";
const HOOKS: &str = "Hooks";
const STEPS: &str = "Steps around the command";

/// Options of the hook.
#[derive(Args, Clone, Debug, Default)]
pub struct HookOptions {
    /// Shell command to run at every change of our role
    ///
    /// ZK_LEADER_EVENT tells it what happened: standby, elected, fenced, started, vouched, paused, resumed, stopping, lost or
    /// released. ZK_LEADER_WHY tells why; the variables of the command tell the term. It is run by /bin/sh -c, one
    /// event after the other. The command, the deadlines and the release never wait for a hook. What it prints goes to
    /// standard error; what it leaves running in the background is ended with it. At most 32 events wait for their
    /// hook: if there are more, the oldest are dropped, and ZK_LEADER_MISSED tells the next hook how many. At the end,
    /// zk-leader-run waits for the last hooks for one --hook-timeout at most.
    #[arg(long, value_name = "SHELL", allow_hyphen_values = true, help_heading = HOOKS)]
    pub hook: Option<OsString>,

    /// Longest hook; then it is killed
    #[arg(long, value_name = "DURATION", default_value = "10s", allow_hyphen_values = true, help_heading = HOOKS)]
    pub hook_timeout: Option<OsString>,
}

/// Options that decide whether this host may lead.
#[derive(Args, Clone, Debug, Default)]
pub struct HealthOptions {
    /// Shell command; exit status 0: this host may lead
    ///
    /// It is run by /bin/sh -c, at once and then every --health-interval. Until it has succeeded, and after
    /// --health-failures failures in a row, this host does not stand in line; a leader stops its command, hands over
    /// and comes back when the health command succeeds again. ZK_LEADER_ROLE tells it leader (the command runs here) or
    /// standby; on a leader it also gets the variables of the command. What it prints goes to standard error; what it
    /// leaves running in the background is ended with it.
    #[arg(long, value_name = "SHELL", allow_hyphen_values = true, help_heading = HEALTH)]
    pub health_cmd: Option<OsString>,

    /// Pause between two health checks
    ///
    /// From the end of one to the start of the next.
    #[arg(long, value_name = "DURATION", default_value = "10s", allow_hyphen_values = true, help_heading = HEALTH)]
    pub health_interval: Option<OsString>,

    /// Longest health check; then it fails
    #[arg(long, value_name = "DURATION", default_value = "5s", allow_hyphen_values = true, help_heading = HEALTH)]
    pub health_timeout: Option<OsString>,

    /// Failures in a row that make a host unhealthy
    #[arg(long, value_name = "COUNT", default_value = "3", allow_hyphen_values = true, help_heading = HEALTH)]
    pub health_failures: Option<OsString>,

    /// Time after a start in which no failure counts
    #[arg(long, value_name = "DURATION", default_value = "0", allow_hyphen_values = true, help_heading = HEALTH)]
    pub health_grace: Option<OsString>,

    /// Shell command; exit status 0: this host may contend
    ///
    /// It is asked before this host stands in line for the first time, and again after each --stand-back until it agrees;
    /// then never again. It is run like the health command.
    #[arg(long, value_name = "SHELL", allow_hyphen_values = true, help_heading = HEALTH)]
    pub eligible_cmd: Option<OsString>,

    /// Longest eligibility command; then it refuses
    #[arg(long, value_name = "DURATION", default_value = "10s", allow_hyphen_values = true, help_heading = HEALTH)]
    pub eligible_timeout: Option<OsString>,
}

/// Options of fencing.
#[derive(Args, Clone, Debug, Default)]
pub struct FenceOptions {
    /// Shell command that fences a leader that did not release
    ///
    /// It is run by /bin/sh -c before the command, once for each leader that was not fenced yet, with
    /// ZK_LEADER_PREVIOUS_ID, _HOST, _PID and _TOKEN, the same as JSON on standard input, and the variables of our own
    /// term. If it fails or takes too long, the command is not started: this host hands over, stands back for
    /// --stand-back and tries again, and the next leader has to fence that leader, too. So it may be run more than once
    /// for one leader. The next leader also has to fence this host, which did not release: a host is fenced, too, whose
    /// fence command failed or that was stopped while it ran. A host without --fence-cmd leads without fencing.
    #[arg(long, value_name = "SHELL", allow_hyphen_values = true, help_heading = FENCING)]
    pub fence_cmd: Option<OsString>,

    /// Longest fence command; then it fails
    #[arg(long, value_name = "DURATION", default_value = "30s", allow_hyphen_values = true, help_heading = FENCING)]
    pub fence_timeout: Option<OsString>,
}

/// Options of the steps around the command.
#[derive(Args, Clone, Debug, Default)]
pub struct StepOptions {
    /// Shell command to run before the command is first started
    ///
    /// It is run by /bin/sh -c each time that this host becomes the leader: after the wait for the previous leader's
    /// lease, after --fence-cmd and the run marker, before the command; not before a restart. It gets the variables of
    /// the command, and the reason in ZK_LEADER_WHY. If it fails or takes too long, the command is not started: this
    /// host hands over, stands back for --stand-back and tries again. What it leaves running in the background is ended
    /// with it, and what it prints goes to standard error. The last leader may have ended without its --after-stop:
    /// --before-start must be able to take over what it left.
    #[arg(long, value_name = "SHELL", allow_hyphen_values = true, help_heading = STEPS)]
    pub before_start: Option<OsString>,

    /// Longest --before-start; then it fails
    ///
    /// Its whole tree is killed then, and in any case before the lease ends.
    #[arg(long, value_name = "DURATION", default_value = "30s", allow_hyphen_values = true, help_heading = STEPS)]
    pub before_start_timeout: Option<OsString>,

    /// Shell command to run when the command's tree is dead
    ///
    /// It is run like --before-start, once at the end of each term in which --before-start or the command was started:
    /// before the lease is released, so before another host starts anything. ZK_LEADER_WHY tells why the term ends. Its
    /// status changes nothing. If the lease has ended first, or this program was killed, it is not run.
    #[arg(long, value_name = "SHELL", allow_hyphen_values = true, help_heading = STEPS)]
    pub after_stop: Option<OsString>,

    /// Longest --after-stop; then it is killed
    ///
    /// Its whole tree is killed then, and in any case before the lease ends. The release waits for it.
    #[arg(long, value_name = "DURATION", default_value = "10s", allow_hyphen_values = true, help_heading = STEPS)]
    pub after_stop_timeout: Option<OsString>,
}
