//! What the command line and the environment mean: plain, validated values. Whoever holds a [`Config`] holds one that
//! can work.
//!
//! Never: a check that is made again later; a type of the command-line parser.

pub mod access;
pub mod auxiliary;
mod build;
pub mod ctl;
mod election_path;
pub mod error;
mod leaders;
mod monitoring;
pub mod run_once;
mod service;
pub mod source;
mod timing;
mod value;

use std::ffi::OsString;
use std::time::Duration;

use tracing::level_filters::LevelFilter;

pub use self::build::read;
pub use self::leaders::Crowd;
pub use self::monitoring::Watching;
pub use self::value::znode::ZnodePath;
use crate::core::lease::{Timing, Wishes};
use crate::core::settings::{Contain, Guarantee, OnExit, OnLoss, OnPause, Recipe, Service};
use crate::exit::Choices;
use crate::observe::log::Format;
use crate::zookeeper::client::acl::Acl;
use crate::zookeeper::client::connect::Access;
use crate::zookeeper::schema::once::Once;

/// Everything that the rest of the program needs to know of its user's wishes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// `h1:2181,[::1]:2181`: every server with its port, without a chroot.
    pub servers: String,
    pub chroot: Option<ZnodePath>,
    pub access: Access,
    pub name: String,
    /// Within the chroot.
    pub base: ZnodePath,
    /// Where the candidates are, within the chroot: below the base, unless `--election-path` says otherwise.
    pub election: ZnodePath,
    pub id: String,
    /// Of every znode that we create.
    pub acl: Acl,
    pub recipe: Recipe,
    pub crowd: Crowd,
    /// How long to contend; `None`: for ever, zero: only if the lease is free now.
    pub wait: Option<Duration>,
    /// The status of not being elected.
    pub conflict_exit_code: u8,
    /// `None`: for ever.
    pub connect_timeout: Option<Duration>,

    /// T, as it will be requested.
    pub session_timeout: Duration,
    pub wishes: Wishes,
    /// The margins, if the ensemble grants that T. Once it has granted another, only `Timing::new` of that one counts.
    pub requested_timing: Timing,
    pub guarantee: Guarantee,
    pub on_pause: OnPause,

    pub contain: Contain,
    pub foreground: bool,
    pub stop_signal: i32,
    /// How long a requested stop may take until SIGKILL; zero: SIGKILL at once.
    pub stop_timeout: Duration,
    pub on_exit: OnExit,
    pub on_loss: OnLoss,
    pub service: Service,
    /// `None`: the command runs whenever we lead.
    pub once: Option<Once>,
    /// Never empty.
    pub command: Vec<OsString>,

    pub watching: Watching,
    pub errands: auxiliary::Errands,

    pub log_format: Format,
    pub log_level: LevelFilter,
    pub dry_run: bool,
    /// The configuration file that was read, if any.
    pub file: Option<FileRead>,
    /// What is no mistake, but worth a warning in the log.
    pub notices: Vec<String>,
}

/// A configuration file that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRead {
    pub path: String,
    /// Those of its settings that count, as options: for a process that must not depend on what the file says later.
    pub options: Vec<OsString>,
}

impl Config {
    /// What the exit status depends on.
    pub fn exit_choices(&self) -> Choices {
        Choices { not_elected: self.conflict_exit_code, stop_signal: self.stop_signal }
    }
}
