//! The environment variable of each option.

/// The prefix of all our variables.
pub const ENVIRONMENT_PREFIX: &str = "ZK_LEADER_RUN_";

/// The environment variable of an option: `ZK_LEADER_RUN_SESSION_TIMEOUT` for `session-timeout`.
pub fn environment_variable(option: &str) -> String {
    format!("{ENVIRONMENT_PREFIX}{}", option.to_ascii_uppercase().replace('-', "_"))
}
