//! Logins by Kerberos: whether, and to which principal. MIT's library finds our own principal by its variables. Of a
//! keytab only owner and mode are read.

use super::secret_file;
use crate::config::error::ConfigError;
use crate::config::source::layers::Layers;
use crate::config::source::setting::{Origin, Setting};
use crate::zookeeper::client::kerberos::Principal;

/// The keytab of a client (`kerberos(7)`).
const KEYTAB: &str = "KRB5_CLIENT_KTNAME";

/// `None`: not wanted. Adds warnings to `notices`.
pub fn read(layers: &Layers, notices: &mut Vec<String>) -> Result<Option<Principal>, ConfigError> {
    let is_wanted = layers.flag("kerberos")?;
    let servers = layers.given("kerberos-server")?;
    let principal = servers.as_ref().map(principal).transpose()?;
    if !is_wanted {
        notices.extend(servers.map(|setting| format!("{} has no effect without --kerberos", setting.origin)));
        return Ok(None);
    }
    if !cfg!(feature = "kerberos") {
        let complaint = "this build cannot do Kerberos; build one with cargo build --release --features kerberos";
        return Err(ConfigError::configuration(layers.name_of("kerberos"), complaint));
    }
    notices.extend(keytab(layers)?);
    Ok(Some(principal.unwrap_or_else(|| Principal { service: Principal::USUAL_SERVICE.to_owned(), host: None })))
}

fn principal(setting: &Setting) -> Result<Principal, ConfigError> {
    let (service, host) = match setting.text.split_once('/') {
        Some((service, host)) => (service, Some(host)),
        None => (setting.text.as_str(), None),
    };
    let is_name =
        |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || "-._".contains(letter));
    if !is_name(service) || !host.is_none_or(is_name) {
        let complaint = "is not a principal; write SERVICE or SERVICE/HOST, without a realm, which krb5.conf says";
        return Err(setting.refused(complaint));
    }
    Ok(Principal { service: service.to_owned(), host: host.map(str::to_owned) })
}

/// Checks who may read the keytab. A name that is not a file, or has parts that only the library can expand, is not
/// checked. An unreadable keytab gives only a notice, because the library ignores it and tickets may be enough.
fn keytab(layers: &Layers) -> Result<Option<String>, ConfigError> {
    let Some(name) = layers.process_environment.variable(KEYTAB).and_then(|name| name.to_str()) else {
        return Ok(None);
    };
    let path = name.strip_prefix("FILE:").unwrap_or(name);
    if !path.starts_with('/') || path.contains("%{") {
        return Ok(None);
    }
    let setting = Setting { origin: Origin::Argument(KEYTAB), text: path.to_owned() };
    match secret_file::open(&setting) {
        Ok(_) => secret_file::judge(&setting),
        Err(error) => Ok(Some(error.sentence)),
    }
}
