//! The environment variable of each option.

/// What every variable of ours begins with.
pub const ENVIRONMENT_PREFIX: &str = "ZK_LEADER_RUN_";

/// The environment twin of an option: `ZK_LEADER_RUN_SESSION_TIMEOUT` for `session-timeout`.
pub fn environment_variable(option: &str) -> String {
    format!("{ENVIRONMENT_PREFIX}{}", option.to_ascii_uppercase().replace('-', "_"))
}
