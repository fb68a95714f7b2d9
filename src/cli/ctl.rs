//! The command line of `zk-leaderctl`: every option and subcommand with its help. Values are checked in `config`.
#![allow(rustdoc::invalid_html_tags, rustdoc::broken_intra_doc_links, reason = "these comments are the text of --help")]

use std::ffi::OsString;

use clap::{Arg, ArgAction, Args, CommandFactory, Parser, Subcommand};

use super::options::AccessOptions;

pub const PROGRAM: &str = "zk-leaderctl";

/// Shows and controls the elections of zk-leader-run.
///
/// It is safe on an election that is running: status, list, history, token-check, lease and doctor write no znode.
///
/// It speaks to the same ensemble as zk-leader-run, with the same --connect, variables
/// (ZK_LEADER_RUN_CONNECT and so on) and configuration file. Without a name, the only election below /zk-leader-run is
/// meant, if we may read all that is there.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "zk-leaderctl",
    bin_name = "zk-leaderctl",
    version,
    args_override_self = true,
    disable_help_flag = true,
    disable_version_flag = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct CtlOptions {
    #[command(flatten)]
    pub common: Common,

    #[command(subcommand)]
    pub command: Verb,
}

/// Options of every subcommand.
#[derive(Args, Clone, Debug, Default)]
pub struct Common {
    /// Servers, as host:port,.../chroot
    #[arg(short = 'z', long, value_name = "HOSTS", default_value = "127.0.0.1:2181", global = true, help_heading = COMMON)]
    pub connect: Option<OsString>,

    #[command(flatten)]
    pub access: AccessOptions,

    /// Znode of the election [default: /zk-leader-run/<NAME>]
    #[arg(long, value_name = "PATH", global = true, help_heading = COMMON)]
    pub path: Option<OsString>,

    /// Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]
    #[arg(long, value_name = "FILE", global = true, help_heading = COMMON)]
    pub config: Option<OsString>,

    /// How long to try to reach the ensemble, and to wait for each of its answers
    ///
    /// Only this option counts: connect-timeout in the configuration file and ZK_LEADER_RUN_CONNECT_TIMEOUT are for zk-leader-run
    /// alone.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5s",
        global = true,
        allow_hyphen_values = true,
        help_heading = COMMON
    )]
    pub connect_timeout: Option<OsString>,

    /// How the answer is written: table, wide, json, yaml or plain
    ///
    /// table: for people. wide: with more columns. json, yaml: one object, for programs. plain: one line for each row, its cells separated by tabs,
    /// without headings or colours.
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "table", global = true, help_heading = COMMON)]
    pub output: Option<OsString>,

    /// The same as --output json
    #[arg(long, global = true, help_heading = COMMON)]
    pub json: bool,

    /// Print this help; -h is short, --help tells more
    #[arg(short = 'h', long, action = ArgAction::Help, global = true, help_heading = COMMON)]
    help: Option<bool>,

    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = COMMON)]
    version: Option<bool>,
}

const COMMON: &str = "Common options";

/// The subcommands.
#[derive(Subcommand, Clone, Debug)]
pub enum Verb {
    /// Show who leads, since when, who is next, and who may not be elected and why
    ///
    /// Exit status: 0 a host leads, 1 no host leads, 2 not known (the ensemble could not be asked, or there is no such
    /// election).
    Status {
        #[command(flatten)]
        which: Which,
        /// Go on looking, and show what has changed, until Ctrl-C (status 130)
        ///
        /// On a terminal the screen is redrawn every second. Elsewhere the whole answer is written again each time that
        /// something else than an age or a renewal has changed; with --json, each on one line.
        #[arg(short = 'w', long)]
        watch: bool,
    },
    /// List all elections below /zk-leader-run, or below --path
    ///
    /// Only --path on the command line counts: a path in the configuration file or in ZK_LEADER_RUN_PATH is that of one
    /// election.
    List {
        /// Go on looking, elections in trouble first and finished jobs last, until Ctrl-C (status 130)
        ///
        /// On a terminal the screen is redrawn every second, with the rest of each lease and the last change. Elsewhere there is a line
        /// for each election, then one for each that has changed; with json, an object on each line.
        #[arg(short = 'w', long)]
        watch: bool,
    },
    /// Show the last terms: who led, from when to when, and how it ended
    ///
    /// Of a job of --slot or --once-per, terms that ran nothing because the run was done are shown with -o wide, plain, json or yaml only.
    History {
        #[command(flatten)]
        which: Which,
        /// Go on looking until Ctrl-C (status 130)
        ///
        /// On a terminal the screen is redrawn every second. Elsewhere each term has a line when it has begun, and again when it
        /// has ended; with json, an object on each line.
        #[arg(short = 'w', long)]
        watch: bool,
        /// Only the last N terms [default: all that are kept, 50]
        #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true)]
        lines: Option<OsString>,
    },
    /// Let another host lead: the leader stops its command, releases, and goes to the end of the queue
    ///
    /// The command gets as long as it does on SIGTERM to zk-leader-run (--stop-timeout there), with the lease renewed
    /// meanwhile. It is refused if no host could take over, with the reason of each. Exit status: 0 done (without
    /// --wait: the leader has begun to stop), 1 refused or not done, with the reason, 2 not known.
    Handover {
        #[command(flatten)]
        which: Which,
        /// Id or host of the next leader [default: the next in line]
        ///
        /// A host name is enough if only one participant is on that host. The others make room first, and stand at the
        /// end of the queue afterwards. If the next leader does not take over, the old one is next. With --to, handover
        /// always waits.
        #[arg(long, value_name = "ID")]
        to: Option<OsString>,
        /// Wait until the next leader runs the command
        #[arg(long)]
        wait: bool,
        /// How long it may take; the order ends with it
        #[arg(long, value_name = "DURATION", default_value = "1m", allow_hyphen_values = true)]
        timeout: Option<OsString>,
    },
    /// Disable the election: no host runs the command until enable; the queue is kept
    Disable {
        #[command(flatten)]
        which: Which,
        /// The reason, shown by status
        #[arg(long, value_name = "TEXT", default_value = "maintenance")]
        reason: Option<OsString>,
        /// For how long, by ZooKeeper's clock [default: until enable]
        #[arg(long = "for", value_name = "DURATION", allow_hyphen_values = true)]
        lasts: Option<OsString>,
        /// Wait until no command runs: exit status 1 if one still does after --timeout
        #[arg(long)]
        wait: bool,
        /// How long to wait
        #[arg(long, value_name = "DURATION", default_value = "2m", allow_hyphen_values = true)]
        timeout: Option<OsString>,
    },
    /// Enable the election again
    Enable {
        #[command(flatten)]
        which: Which,
        /// Wait until a host runs the command: exit status 1 if none does after --timeout, 2 if that is not known
        #[arg(long)]
        wait: bool,
        /// How long to wait
        #[arg(long, value_name = "DURATION", default_value = "2m", allow_hyphen_values = true)]
        timeout: Option<OsString>,
    },
    /// Let other hosts lead: the leaders of one host hand over, and its standbys are not elected, in all elections
    ///
    /// For a reboot: drain, wait, reboot, undrain. All elections below --root are drained; an election that no other
    /// host could lead is left as it is, and named. Exit status: 0 done (with --wait: the host leads none of them any
    /// more, and is not about to), 1 it still leads some, 2 not known, as where it may lead one that we may not read. With
    /// --wait, a name that no host has which takes part now is 2, too: for a host where nothing runs just now, leave --wait out.
    Drain {
        /// Name of the host, as hostname(1) prints it there
        #[arg(value_name = "HOST")]
        host: OsString,
        #[command(flatten)]
        root: Root,
        /// The reason, shown by status and list
        #[arg(long, value_name = "TEXT", default_value = "maintenance")]
        reason: Option<OsString>,
        /// For how long, by ZooKeeper's clock [default: until undrain]
        #[arg(long = "for", value_name = "DURATION", allow_hyphen_values = true)]
        lasts: Option<OsString>,
        /// Stop the command also where no other host could lead
        #[arg(long)]
        force: bool,
        /// Wait until the host leads no election that another host could lead
        #[arg(long)]
        wait: bool,
        /// How long to wait
        #[arg(long, value_name = "DURATION", default_value = "2m", allow_hyphen_values = true)]
        timeout: Option<OsString>,
    },
    /// End the drain of a host: it may be elected again
    Undrain {
        /// Name of the host
        #[arg(value_name = "HOST")]
        host: OsString,
        #[command(flatten)]
        root: Root,
    },
    /// Tell whether a fencing token is still the newest
    ///
    /// A quorum of the ensemble is asked, so that the answer cannot come from a server that is behind. Exit status: 0 it
    /// is the newest, 1 it is not, 2 not known.
    TokenCheck {
        /// The token: ZK_LEADER_TOKEN in the environment of the command
        #[arg(value_name = "TOKEN", allow_hyphen_values = true)]
        token: OsString,
        #[command(flatten)]
        which: Which,
    },
    /// Write a znode of yours, if a fencing token is still the newest at that very moment
    ///
    /// Both happen in one transaction, so a leader that was deposed cannot write any more. The command itself need not
    /// give token and election: they are in its environment. Exit status: 0 written, 1 not written because the token is
    /// not the newest, 2 not known.
    Put {
        /// Write only under the newest token; there is no other way to write
        #[arg(long)]
        fenced: bool,
        /// The fencing token [default: ZK_LEADER_TOKEN]
        #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
        token: Option<OsString>,
        /// Name of the election [default: the one of ZK_LEADER_PATH, or the only one]
        #[arg(long, value_name = "NAME")]
        name: Option<OsString>,
        /// Create the znode if it does not exist; its parent must
        #[arg(long)]
        create: bool,
        /// The znode to write, within the chroot
        #[arg(value_name = "ZNODE")]
        znode: OsString,
        /// What to write; '-' or nothing: standard input
        #[arg(value_name = "VALUE", allow_hyphen_values = true)]
        value: Option<OsString>,
    },
    /// Tell how long the command may still act, from its lease file; asks no server
    ///
    /// For the command itself: where it runs, ZK_LEADER_LEASE names the file. The answer holds for this moment and this
    /// host; in doubt it is no. Ask again before each step. Connection options are not used. Exit status: 0 it may act,
    /// for as long as printed, 1 it may not, or the file cannot be read.
    Lease {
        /// The lease file [default: ZK_LEADER_LEASE, of the term ZK_LEADER_TOKEN]
        #[arg(value_name = "FILE")]
        file: Option<OsString>,
        /// How long the next step takes: status 0 only if so much is left
        #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
        at_least: Option<OsString>,
    },
    /// Look for what is wrong, or could be better, with the ensemble and an election
    ///
    /// Exit status: 0 nothing is wrong, 1 something is, 2 the ensemble could not be asked, or has no such election.
    Doctor {
        #[command(flatten)]
        which: Which,
    },
}

/// The election that is meant.
#[derive(Args, Clone, Debug, Default)]
pub struct Which {
    /// Name of the election [default: the only one]
    #[arg(value_name = "NAME")]
    pub name: Option<OsString>,
}

/// The elections that are meant: all below one znode.
#[derive(Args, Clone, Debug, Default)]
pub struct Root {
    /// The parent of the elections
    #[arg(long, value_name = "PATH", default_value = "/zk-leader-run")]
    pub root: Option<OsString>,
}

const AFTER_HELP: &str = "\
Exit status 77: ZooKeeper refuses it, by an ACL or because of the credentials, or TLS or the login
by Kerberos does not come about; status and token-check end with 2 (not known) then.

`zk-leaderctl COMMAND --help` tells more about one command. `zk-leaderctl man` prints the manual
page, `zk-leaderctl completions SHELL` what bash, fish or zsh needs to complete options, and names,
hosts and ids from the ensemble.";

const AFTER_HELP_OF_VERB: &str = "\
The common options (--connect, --path, --output, --json, --auth-file, --tls and others) may stand
here, too; `zk-leaderctl --help` tells about them.";

/// The command line's grammar with its help.
pub fn command() -> clap::Command {
    CtlOptions::command().after_help(AFTER_HELP)
}

/// Whose `--help` tells more about a mistake: the program's, or that of the first word that is a subcommand.
pub fn program_of(arguments: &[OsString]) -> String {
    let grammar = command();
    let verb = arguments.iter().skip(1).find_map(|word| grammar.find_subcommand(word));
    verb.map_or_else(|| PROGRAM.to_owned(), |verb| format!("{PROGRAM} {}", verb.get_name()))
}

/// The same for people who ask: the help of a subcommand is about its own options.
pub fn with_own_help() -> clap::Command {
    let command = command();
    let is_common = |argument: &&Arg| argument.is_global_set() && !matches!(argument.get_action(), ArgAction::Help);
    let common: Vec<_> =
        command.get_arguments().filter(is_common).map(|argument| argument.clone().hide(true)).collect();
    command.mut_subcommands(|verb| verb.args(&common).after_help(AFTER_HELP_OF_VERB))
}

/// Each subcommand with what it does, a line for each, after a line break.
pub fn verbs() -> String {
    let mut lines = String::new();
    for verb in command().get_subcommands() {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        lines.extend(["\n  ", verb.get_name(), &" ".repeat(12_usize.saturating_sub(verb.get_name().len())), &about]);
    }
    lines
}
