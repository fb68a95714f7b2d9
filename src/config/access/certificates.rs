//! The three files of TLS: which are given, whether they fit each other, and which option is wrong. A key that
//! everybody may read is refused.

use std::path::PathBuf;

use super::secret_file;
use crate::config::error::{ConfigError, quoted};
use crate::config::source::layers::Layers;
use crate::config::source::setting::Setting;
use crate::exit::Status;
use crate::zookeeper::client::tls::{Certificates, Files, Flaw, Identity, Part};

/// The options as given.
struct Options {
    ca: Setting,
    identity: Option<(Setting, Setting)>,
    any_name: bool,
}

/// `None`: no server speaks TLS. Adds warnings to `notices`.
pub fn read(layers: &Layers, uses_tls: bool, notices: &mut Vec<String>) -> Result<Option<Certificates>, ConfigError> {
    let ca = layers.given("tls-ca")?;
    let certificate = layers.given("tls-cert")?;
    let key = layers.given("tls-key")?;
    let any_name = layers.flag("tls-any-name")?;
    if !uses_tls {
        for setting in [&ca, &certificate, &key].into_iter().flatten() {
            secret_file::open(setting)?;
            let remedy = "no server in --connect speaks TLS; write tcp+tls:// there, or add --tls";
            notices.push(format!("{} has no effect: {remedy}", setting.origin));
        }
        return Ok(None);
    }
    let missing =
        |option: &str, why: &str| ConfigError::usage(format_args!("--{option}"), format_args!("is missing: {why}"));
    let Some(ca) = ca else {
        let why =
            "TLS needs the authorities that sign the servers' certificates; write --tls-ca and a PEM file of them";
        return Err(missing("tls-ca", why));
    };
    let identity = match (certificate, key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (Some(_), None) => return Err(missing("tls-key", "it is the private key of the certificate in --tls-cert")),
        (None, Some(_)) => return Err(missing("tls-cert", "it is the certificate for the key in --tls-key")),
    };
    if let Some((_, key)) = &identity {
        notices.extend(secret_file::judge(key)?);
    }
    if any_name {
        notices.push(
            "--tls-any-name: the names of servers are not checked; every certificate that --tls-ca signed is accepted"
                .into(),
        );
    }
    let options = Options { ca, identity, any_name };
    Certificates::load(&options.files()).map(Some).map_err(|flaw| options.error_of(flaw))
}

impl Options {
    fn files(&self) -> Files {
        let path = |setting: &Setting| PathBuf::from(&setting.text);
        let identity = self.identity.as_ref();
        let identity = identity.map(|(certificate, key)| Identity { certificate: path(certificate), key: path(key) });
        Files { ca: path(&self.ca), identity, any_name: self.any_name }
    }

    fn error_of(&self, Flaw { part, complaint, may_pass }: Flaw) -> ConfigError {
        let setting = match (part, &self.identity) {
            (Part::Certificate, Some((certificate, _))) => certificate,
            (Part::Key, Some((_, key))) => key,
            _ => &self.ca,
        };
        let status = if may_pass { Status::Unavailable } else { Status::Configuration };
        ConfigError::new(status, &setting.origin, format_args!("{} {complaint}", quoted(&setting.text)))
    }
}
