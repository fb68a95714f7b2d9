//! Monitoring: HTTP and systemd. Opens no socket.

use crate::config::error::ConfigError;
use crate::config::source::layers::Layers;
use crate::observe::http::Address;
use crate::observe::systemd::ReadyOn;

const READY_ON: [(&str, ReadyOn); 2] = [("contending", ReadyOn::Contending), ("leading", ReadyOn::Leading)];

/// The HTTP address and what systemd is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Monitoring {
    pub http: Option<Address>,
    pub ready_on: ReadyOn,
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
    Ok(Monitoring { http: http.transpose()?, ready_on })
}
