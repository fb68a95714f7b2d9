//! Logins by Kerberos: whether, and to whom. Who we are, MIT's library finds out by its own variables.
//!
//! Never: a keytab that is opened here; only whose it is.

use super::secret_file;
use crate::config::error::Refusal;
use crate::config::source::layers::Layers;
use crate::config::source::setting::{Given, Origin};
use crate::zookeeper::client::kerberos::Principal;

/// Names the keys of a client (`kerberos(7)`).
const KEYTAB: &str = "KRB5_CLIENT_KTNAME";

/// `None`: nobody asked for it. `notices` gets what is worth one.
pub fn read(layers: &Layers, notices: &mut Vec<String>) -> Result<Option<Principal>, Refusal> {
    let is_wanted = layers.flag("kerberos")?;
    let servers = layers.given("kerberos-server")?;
    let principal = servers.as_ref().map(principal).transpose()?;
    if !is_wanted {
        notices.extend(servers.map(|given| format!("{} has no effect without --kerberos", given.origin)));
        return Ok(None);
    }
    if !cfg!(feature = "kerberos") {
        let complaint = "this build cannot do Kerberos; build one with cargo build --release --features kerberos";
        return Err(Refusal::configuration(layers.name_of("kerberos"), complaint));
    }
    notices.extend(keytab(layers)?);
    Ok(Some(principal.unwrap_or_else(|| Principal { service: Principal::USUAL_SERVICE.to_owned(), host: None })))
}

fn principal(given: &Given) -> Result<Principal, Refusal> {
    let (service, host) = match given.text.split_once('/') {
        Some((service, host)) => (service, Some(host)),
        None => (given.text.as_str(), None),
    };
    let is_name =
        |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || "-._".contains(letter));
    if !is_name(service) || !host.is_none_or(is_name) {
        let complaint = "is not a principal; write SERVICE or SERVICE/HOST, without a realm, which krb5.conf says";
        return Err(given.refused(complaint));
    }
    Ok(Principal { service: service.to_owned(), host: host.map(str::to_owned) })
}

/// Whose the keys are. What is no file, or has parts that only the library can fill in, is its matter. Keys that cannot be read
/// it passes over in silence, and tickets may do without them.
fn keytab(layers: &Layers) -> Result<Option<String>, Refusal> {
    let Some(name) = layers.surroundings.variable(KEYTAB).and_then(|name| name.to_str()) else { return Ok(None) };
    let path = name.strip_prefix("FILE:").unwrap_or(name);
    if !path.starts_with('/') || path.contains("%{") {
        return Ok(None);
    }
    let given = Given { origin: Origin::Argument(KEYTAB), text: path.to_owned() };
    match secret_file::open(&given) {
        Ok(_) => secret_file::judge(&given),
        Err(refusal) => Ok(Some(refusal.sentence)),
    }
}
