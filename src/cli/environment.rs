//! The environment variable of each option.

/// What every variable of ours begins with.
pub const TWINS: &str = "ZK_LEADER_RUN_";

/// The environment twin of an option: `ZK_LEADER_RUN_SESSION_TIMEOUT` for `session-timeout`.
pub fn twin(option: &str) -> String {
    format!("{TWINS}{}", option.to_ascii_uppercase().replace('-', "_"))
}
