//! Our credentials: identities from a secret file, a variable or a systemd credential, and the files of TLS. No secret
//! comes from the command line or appears in an error.

mod certificates;
mod identities;
mod kerberos;
mod secret_file;

use crate::config::error::ConfigError;
use crate::config::source::layers::Layers;
use crate::config::source::process_environment::SECRET_VARIABLE;
use crate::config::source::setting::{Origin, Setting};
use crate::zookeeper::client::connect::Access;

/// The credentials, and notices.
pub struct Credentials {
    pub access: Access,
    /// The identities came through a pipe: no other process can read them again.
    pub read_once: bool,
    pub notices: Vec<String>,
}

/// Reads every secret, once. `uses_tls`: whether any server speaks TLS.
///
/// # Errors
///
/// The first that cannot be read, is open to others, or is malformed.
pub fn read(layers: &Layers, uses_tls: bool) -> Result<Credentials, ConfigError> {
    let mut notices = Vec::new();
    let tls = certificates::read(layers, uses_tls, &mut notices)?;
    let (access, read_once) = identities(layers, &mut notices)?;
    let kerberos = kerberos::read(layers, &mut notices)?;
    if kerberos.is_some() && access.sasl.is_some() {
        let complaint =
            "cannot be combined with a SASL identity (sasl:USER:PASSWORD); a session can log in by SASL only once";
        return Err(ConfigError::usage(layers.name_of("kerberos"), complaint));
    }
    Ok(Credentials { access: Access { kerberos, tls, ..access }, read_once, notices })
}

/// The identities, and whether they can be read only once.
fn identities(layers: &Layers, notices: &mut Vec<String>) -> Result<(Access, bool), ConfigError> {
    let file = layers.given("auth-file")?;
    let variable = layers.process_environment.variable(SECRET_VARIABLE).filter(|value| !value.is_empty());
    match (file, variable) {
        (None, None) => Ok((Access::default(), false)),
        (Some(file), Some(_)) if matches!(file.origin, Origin::Environment(_)) => {
            Err(file.refused_unseen(format_args!("cannot be combined with {SECRET_VARIABLE}; unset one of them")))
        }
        (Some(Setting { origin: Origin::File(..) | Origin::Credential(_), .. }) | None, Some(secret)) => {
            let not_text = || ConfigError::usage(SECRET_VARIABLE, "is not UTF-8 text; write it in UTF-8");
            Ok((identities::read(SECRET_VARIABLE, secret.to_str().ok_or_else(not_text)?)?, false))
        }
        (Some(file), _) if ["digest:", "sasl:"].iter().any(|scheme| file.text.starts_with(scheme)) => {
            let remedy = "write it into a file that only this user may read, and name that file here";
            Err(file.refused_unseen(format_args!("is an identity and no file; {remedy}")))
        }
        (Some(file), _) => {
            let found = secret_file::read(&file)?;
            notices.extend(found.notice);
            Ok((identities::read(&file.text, &found.text)?, !found.is_file))
        }
    }
}
