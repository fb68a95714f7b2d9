//! How we prove to the servers who we are: identities from a secret file, a variable or a systemd credential.
//!
//! Never: a secret in a complaint; a secret from the command line.

mod identities;
mod secret_file;

use super::given::{Given, Origin};
use super::refusal::Refusal;
use crate::cli::{AccessOptions, Layers};
use crate::zookeeper::Access;

/// Holds what a line of `--auth-file` says, for who has secrets in variables anyway. Not an option: those can be seen by all.
pub const SECRET_VARIABLE: &str = "ZK_LEADER_RUN_AUTH";

/// Names of systemd credentials (`LoadCredential=` in `systemd.exec(5)`), each the default of an option.
pub const CREDENTIALS: [(&str, &str); 1] = [("auth-file", "zk-leader-run.auth")];

/// What was found, and what is worth a notice.
pub struct Found {
    pub access: Access,
    pub notices: Vec<String>,
}

/// Reads every secret, once.
///
/// # Errors
/// The first that cannot be read, is open to others, or makes no sense.
pub fn read(typed: &AccessOptions, layers: &Layers) -> Result<Found, Refusal> {
    let file = layers.given("auth-file", typed.auth_file.as_ref())?;
    let variable = layers.surroundings.variable(SECRET_VARIABLE).filter(|value| !value.is_empty());
    let (access, notice) = match (file, variable) {
        (None, None) => (Access::default(), None),
        (Some(file), Some(_)) if matches!(file.origin, Origin::Environment(_)) => {
            return Err(file.refused(format_args!("goes not with {SECRET_VARIABLE}; unset one of them")));
        }
        (Some(Given { origin: Origin::File(..) | Origin::Credential(_), .. }) | None, Some(secret)) => {
            let not_text = || Refusal::usage(SECRET_VARIABLE, "is not UTF-8 text; write it in UTF-8");
            (identities::read(SECRET_VARIABLE, secret.to_str().ok_or_else(not_text)?)?, None)
        }
        (Some(file), _) => {
            let found = secret_file::read(&file)?;
            (identities::read(&file.text, &found.text)?, found.notice)
        }
    };
    Ok(Found { access, notices: notice.into_iter().collect() })
}
