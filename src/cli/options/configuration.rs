//! Options for the configuration file.

use std::ffi::OsString;

use clap::{Args, ValueHint};

pub const LOG: &str = "Log, trial and help";

#[derive(Args, Clone, Debug, Default)]
pub struct ConfigurationOptions {
    /// TOML file [default: /etc/zk-leader-run/config.toml, if it exists]
    ///
    /// Each option is a key: session-timeout = "15s". Settings of one election stand below [election.NAME]. An option wins
    /// over its variable, the variable over the file. It is read once, at the start. /dev/null: no file. It is refused if
    /// everybody may write it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = LOG)]
    pub config: Option<OsString>,

    /// Print every setting and where it came from, and touch nothing
    ///
    /// The answer is a TOML file. It shows values as they were given; --dry-run tells whether they can work.
    #[arg(long, help_heading = LOG)]
    pub print_config: bool,
}
