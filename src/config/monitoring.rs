//! Monitoring: HTTP and systemd. Opens no socket.

use std::collections::BTreeMap;

use crate::config::error::{ConfigError, quoted};
use crate::config::source::layers::Layers;
use crate::config::source::setting::Setting;
use crate::observe::http::Address;
use crate::observe::systemd::ReadyOn;

const READY_ON: [(&str, ReadyOn); 2] = [("contending", ReadyOn::Contending), ("leading", ReadyOn::Leading)];

/// The HTTP address and what systemd is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Monitoring {
    pub http: Option<Address>,
    pub ready_on: ReadyOn,
    /// For display to whoever looks for the service.
    pub meta: BTreeMap<String, String>,
}

pub(super) fn read(layers: &Layers) -> Result<Monitoring, ConfigError> {
    let http = layers.given("http")?.map(|setting| {
        Address::parse(&setting.text).ok_or_else(|| {
            setting.refused(
                "is not an address to listen at; write 127.0.0.1:8080, [::1]:8080, localhost:8080, or unix: and an \
                 absolute path (0.0.0.0:8080 is every address of this host)",
            )
        })
    });
    let ready_on = layers.required("ready-on")?.one_of(&READY_ON)?;
    let meta = layers.given("meta")?.map(|setting| pairs(&setting)).transpose()?;
    Ok(Monitoring { http: http.transpose()?, ready_on, meta: meta.unwrap_or_default() })
}

/// `KEY=VALUE`, several with blanks between them. Each change of our member znode writes all of them.
fn pairs(setting: &Setting) -> Result<BTreeMap<String, String>, ConfigError> {
    const LONGEST: usize = 1024;
    let mut pairs = BTreeMap::new();
    for pair in setting.text.split_whitespace() {
        let is_key = |key: &str| {
            !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-.".contains(letter))
        };
        let found = pair.split_once('=').filter(|(key, value)| is_key(key) && !value.chars().any(char::is_control));
        let Some((key, value)) = found else {
            return Err(setting.refused(
                "is not KEY=VALUE; write address=10.0.0.7:8080, for instance: a key of letters, digits, '_', '-' and '.', \
                 and a value without blanks",
            ));
        };
        if pairs.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(setting.refused(format_args!("has two values for {}; leave one of them out", quoted(key))));
        }
    }
    match setting.text.len() {
        0..=LONGEST => Ok(pairs),
        _ => Err(setting.refused(format_args!("is longer than {LONGEST} bytes; leave something out"))),
    }
}
