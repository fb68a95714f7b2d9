//! Every option with its help, declared here only. The fields are never read: `config` asks for a value by the option's
//! name and checks it.
#![allow(rustdoc::invalid_html_tags, rustdoc::broken_intra_doc_links, reason = "these comments are the text of --help")]

mod access;
mod acl;
mod auxiliary;
mod configuration;
mod leaders;
mod monitoring;
mod run_once;
mod service;
mod vouching;

use std::ffi::OsString;

use clap::{ArgAction, Parser, ValueHint};

pub use self::access::AccessOptions;
use self::configuration::ConfigurationOptions;
use self::configuration::LOG;
use acl::AclOptions;
use auxiliary::{FenceOptions, HealthOptions, HookOptions, StepOptions};
use leaders::LeaderOptions;
use monitoring::MonitoringOptions;
use run_once::RunOptions;
use service::ServiceOptions;
use vouching::VouchOptions;

/// Runs a command on exactly one host: the one that is leader in Apache ZooKeeper.
///
/// Start it on every host of a cluster. One of them is elected and runs the command; the others wait for their turn. By
/// the time another host starts the command, this host's command and every process it started are dead: across network
/// partitions, server crashes, hangs and suspends, even if the command ignores SIGTERM or leaves daemons behind.
///
/// The right to run is a lease in ZooKeeper that the leader renews. A guard process kills the whole process tree before
/// the lease runs out, whatever happens to this program; the next leader starts the command only after the lease was
/// released or has run out.
///
/// The command is run without a shell. It begins at the first word that is not an option, or after `--`. Every word after
/// that is an argument of the command, even if it looks like an option.
#[derive(Parser, Clone, Debug, Default)]
#[command(
    name = "zk-leader-run",
    bin_name = "zk-leader-run",
    version,
    override_usage = "zk-leader-run [OPTIONS] [--] COMMAND [ARGS]...",
    args_override_self = true,
    disable_help_flag = true,
    disable_version_flag = true,
    max_term_width = 100
)]
pub struct Options {
    /// Servers, as host:port,.../chroot
    ///
    /// The port is 2181 if left out; an IPv6 address stands in brackets: [2001:db8::1]:2181. The chroot, if any, stands
    /// once after the last server; it is created if it does not exist.
    #[arg(short = 'z', long, value_name = "HOSTS", default_value = "127.0.0.1:2181", help_heading = ELECTION)]
    pub connect: Option<OsString>,

    /// Election to take part in [default: the command's file name]
    ///
    /// Hosts with the same name take turns. An interpreter (sh, python3, java, env and so on) has no default: name the job.
    #[arg(long, value_name = "NAME", help_heading = ELECTION)]
    pub name: Option<OsString>,

    /// Znode of the election [default: /zk-leader-run/<NAME>]
    ///
    /// A path within the chroot, such as /jobs/nightly. It must be the same on every host.
    #[arg(long, value_name = "PATH", help_heading = ELECTION)]
    pub path: Option<OsString>,

    /// Id of this participant [default: <hostname>:<pid>]
    ///
    /// Any text without '/'. No two live participants may have the same one: the later one notices it after
    /// a little more than two session timeouts, and ends with status 64 unless its command runs by then.
    #[arg(long, value_name = "ID", help_heading = ELECTION)]
    pub id: Option<OsString>,

    /// How candidates line up: sequential, curator-lock, kazoo, java-les or single
    ///
    /// sequential, or curator-latch: a queue, in which a departure wakes only the next; candidates are named as those
    /// of Curator's LeaderLatch. curator-lock, kazoo, java-les: a queue with the names of Curator's LeaderSelector and
    /// InterProcessMutex, of kazoo's Election and Lock, of ZooKeeper's LeaderElectionSupport. single: everyone tries to
    /// create the same znode. It must be the same on every host.
    #[arg(long, value_name = "RECIPE", default_value = "sequential", help_heading = ELECTION)]
    pub recipe: Option<OsString>,

    /// Election shared with other libraries [default: none]
    ///
    /// A path within the chroot, for candidates that are named and ordered as --recipe says. Everything else stays
    /// under --path. Best effort: the others do not wait until our command is dead. So it is stopped after at most half
    /// of a session timeout without contact, unless --guarantee is at-least-one. Not with --leaders, --priority or
    /// --recipe single.
    #[arg(long, value_name = "PATH", help_heading = ELECTION)]
    pub election_path: Option<OsString>,

    #[command(flatten)]
    pub leaders: LeaderOptions,

    /// How long to wait; 0: only if free now [default: for ever]
    ///
    /// Not elected in time: exit status 75, or --conflict-exit-code. Except for 0, the wait lasts at least one
    /// renewal interval, an eighth of the lease (5s at most). Where --connect-timeout is not given, it also limits how long the
    /// first connection is tried, which is at least one session timeout.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = ELECTION)]
    pub wait: Option<OsString>,

    /// Exit status when not elected within --wait
    ///
    /// Elected, but --before-start or --fence-cmd failed, and no time left to try again: 75 all the same.
    #[arg(long, value_name = "STATUS", default_value = "75", allow_hyphen_values = true, help_heading = ELECTION)]
    pub conflict_exit_code: Option<OsString>,

    /// How long to try to connect [default: for ever, or see --wait]
    ///
    /// Not reached in time: exit status 69. It counts only until the first connection.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = ELECTION)]
    pub connect_timeout: Option<OsString>,

    #[command(flatten)]
    pub access: AccessOptions,

    #[command(flatten)]
    pub acl: AclOptions,

    /// ZooKeeper session timeout to ask for
    ///
    /// After a crash of the leader's host, another host takes over after about this long. The ensemble may grant
    /// another one, usually 2 to 20 of its ticks; all other times are computed from that.
    #[arg(long, value_name = "DURATION", default_value = "15s", allow_hyphen_values = true, help_heading = LEASE)]
    pub session_timeout: Option<OsString>,

    /// Length of the lease, at most 2m [default: the session timeout]
    ///
    /// One renewal entitles the leader to run for this long.
    ///
    /// It is never longer than the session timeout. A longer lease rides out longer outages, and makes the next leader
    /// wait longer after a crash.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = LEASE)]
    pub lease: Option<OsString>,

    /// Time kept for the stop signal [default: a quarter of the lease]
    ///
    /// If no renewal succeeds, the command is sent the stop signal this long before SIGKILL. 0: no stop signal then.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = LEASE)]
    pub stop_reserve: Option<OsString>,

    /// at-most-one or at-least-one command
    ///
    /// at-most-one: no two commands ever run at once; in an outage that outlasts the lease none does. at-least-one: the
    /// command runs on through an outage until there is evidence of another leader, or for --max-pause; two may run at
    /// once. It must be the same on every host.
    #[arg(long, value_name = "GUARANTEE", default_value = "at-most-one", help_heading = LEASE)]
    pub guarantee: Option<OsString>,

    /// Longest run without contact [default: 10 of the session timeouts that were asked for]
    ///
    /// With --guarantee at-least-one: how long the command runs on without contact.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = LEASE)]
    pub max_pause: Option<OsString>,

    /// Longest loss of contact; 0: stop at once [default: all the lease allows]
    ///
    /// If contact is lost for longer, the command is stopped.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = CONTACT)]
    pub grace: Option<OsString>,

    /// What the command does: run, freeze or get a SIGNAL
    ///
    /// While contact is lost.
    ///
    /// run: it keeps running. freeze: its whole tree is frozen, and thawed on return; no time is then kept for the stop
    /// signal. SIGNAL: it is sent this signal.
    #[arg(long, value_name = "WHAT", default_value = "run", allow_hyphen_values = true, help_heading = CONTACT)]
    pub on_pause: Option<OsString>,

    /// Signal to send when contact is back, after --on-pause SIGNAL
    #[arg(long, value_name = "SIGNAL", allow_hyphen_values = true, help_heading = CONTACT)]
    pub on_resume: Option<OsString>,

    #[command(flatten)]
    pub vouching: VouchOptions,

    /// auto, subreaper, cgroup or pid-namespace
    ///
    /// How the process tree is held together.
    ///
    /// auto: a cgroup where we may make one, else subreaper. subreaper: every orphan becomes a child of the guard.
    /// cgroup: a cgroup v2 of our own. pid-namespace: the command sees other process ids, and nothing can escape; needs
    /// root or user namespaces. Which it is, /status and zk-leaderctl status -o json tell.
    #[arg(long, value_name = "HOW", default_value = "auto", help_heading = COMMAND)]
    pub contain: Option<OsString>,

    /// Give the command the terminal: its input and Ctrl-C
    #[arg(long, help_heading = COMMAND)]
    pub foreground: bool,

    /// Signal that asks the command to end
    ///
    /// By name, with or without SIG, or by number.
    #[arg(long, value_name = "SIGNAL", default_value = "TERM", allow_hyphen_values = true, help_heading = COMMAND)]
    pub stop_signal: Option<OsString>,

    /// Time between the stop signal and SIGKILL
    ///
    /// The longest time that the command has to end when zk-leader-run is asked to stop.
    ///
    /// The lease goes on being renewed meanwhile. 0: SIGKILL at once.
    #[arg(long, value_name = "DURATION", default_value = "10s", allow_hyphen_values = true, help_heading = COMMAND)]
    pub stop_timeout: Option<OsString>,

    /// After the command's end: exit, rejoin or restart
    ///
    /// It is for a command that ends by itself.
    ///
    /// exit: leave the election and exit with the command's status. rejoin: give the leadership to the next in line, go to
    /// the end of the queue, and run the command again when elected again. restart: stay leader and start the command
    /// again; --restart and the options after it say when.
    #[arg(long, value_name = "WHAT", default_value = "exit", help_heading = COMMAND)]
    pub on_exit: Option<OsString>,

    /// When leadership is lost: rejoin or exit (status 76)
    #[arg(long, value_name = "WHAT", default_value = "rejoin", help_heading = COMMAND)]
    pub on_loss: Option<OsString>,

    #[command(flatten)]
    pub service: ServiceOptions,

    #[command(flatten)]
    pub health: HealthOptions,

    #[command(flatten)]
    pub fencing: FenceOptions,

    #[command(flatten)]
    pub steps: StepOptions,

    #[command(flatten)]
    pub hooks: HookOptions,

    #[command(flatten)]
    pub monitoring: MonitoringOptions,

    #[command(flatten)]
    pub runs: RunOptions,

    /// human or json on standard error, or journald
    ///
    /// journald: straight to systemd's journal, with PRIORITY and ZK_LEADER_TOKEN, _FROM, _TO, _WHY and so on as
    /// fields: journalctl ZK_LEADER_TOKEN=... finds a term on every host. Without a journal at the start: status 78; if
    /// it goes later, lines go to standard error.
    #[arg(long, value_name = "FORMAT", default_value = "human", help_heading = LOG)]
    pub log_format: Option<OsString>,

    /// How much to log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info", help_heading = LOG)]
    pub log_level: Option<OsString>,

    #[command(flatten)]
    pub configuration: ConfigurationOptions,

    /// Print what would be done, with every timing, and touch nothing
    #[arg(long, help_heading = LOG)]
    pub dry_run: bool,

    /// Print this help; -h is short, --help tells more
    #[arg(short = 'h', long, action = ArgAction::Help, help_heading = LOG)]
    help: Option<bool>,

    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = LOG)]
    version: Option<bool>,

    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, hide = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

const ELECTION: &str = "Election";
const LEASE: &str = "Lease";
const CONTACT: &str = "While contact with ZooKeeper is lost";
const COMMAND: &str = "Command";
