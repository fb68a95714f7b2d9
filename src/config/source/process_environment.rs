//! The environment of this process: variables, host name, systemd credentials. Read once.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Holds a line of `--auth-file`, for deployments with secrets in variables. Not an option: every user can see those.
pub const SECRET_VARIABLE: &str = "ZK_LEADER_RUN_AUTH";

/// Names of systemd credentials (`LoadCredential=` in `systemd.exec(5)`), each the default of an option.
pub const CREDENTIALS: [(&str, &str); 4] = [
    ("auth-file", "zk-leader-run.auth"),
    ("tls-ca", "zk-leader-run.tls-ca"),
    ("tls-cert", "zk-leader-run.tls-cert"),
    ("tls-key", "zk-leader-run.tls-key"),
];

#[derive(Clone, Debug, Default)]
pub struct ProcessEnvironment {
    pub variables: Vec<(OsString, OsString)>,
    pub host: String,
    pub pid: u32,
    /// The default configuration file, read if it exists and no other one is named; empty: none.
    pub usual_file: PathBuf,
    /// Options whose default is a systemd credential, each with the path of the credential.
    pub credentials: Vec<(&'static str, OsString)>,
}

const USUAL_FILE: &str = "/etc/zk-leader-run/config.toml";

impl ProcessEnvironment {
    pub fn of_this_process() -> Self {
        Self {
            variables: env::vars_os().collect(),
            host: nix::unistd::gethostname().unwrap_or_else(|_| "localhost".into()).to_string_lossy().into_owned(),
            pid: std::process::id(),
            usual_file: USUAL_FILE.into(),
            credentials: credentials(),
        }
    }

    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }
}

/// The systemd credentials that exist (`systemd.exec(5)`). If the directory cannot be read, they count as existing, so
/// that reading them reports the error.
fn credentials() -> Vec<(&'static str, OsString)> {
    let Some(directory) = env::var_os("CREDENTIALS_DIRECTORY").filter(|directory| !directory.is_empty()) else {
        return Vec::new();
    };
    let paths = CREDENTIALS.map(|(option, name)| (option, PathBuf::from(&directory).join(name)));
    let found = paths.into_iter().filter(|(_, path)| path.try_exists().unwrap_or(true));
    found.map(|(option, path)| (option, path.into_os_string())).collect()
}
