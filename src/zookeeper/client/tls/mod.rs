//! Our certificates: read and checked at the start, and read again when their files change. Every new connection, of an
//! open session too, shows the present files. Files that cannot work do not replace good ones.

mod certificate;
mod files;
pub(crate) mod talk;
mod verifier;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use zookeeper_client::{TlsDynamicCerts, TlsOptions};

use files::{Read, Stamps};

pub use certificate::{Files, Flaw, Identity, Part};

/// The contents of the files when they were last good.
#[derive(Clone)]
pub struct Certificates {
    files: Files,
    /// The client library reads it for every connection.
    cell: TlsDynamicCerts,
    state: Arc<Mutex<State>>,
}

struct State {
    stamps: Stamps,
    config: Arc<ClientConfig>,
}

impl Certificates {
    /// Reads and checks them.
    ///
    /// # Errors
    ///
    /// The first file that cannot work.
    pub fn load(files: &Files) -> Result<Self, Flaw> {
        let stamps = files::stamps(files);
        let Read { certs, config } = files::read(files)?;
        let state = Arc::new(Mutex::new(State { stamps, config }));
        Ok(Self { files: files.clone(), cell: TlsDynamicCerts::new(certs), state })
    }

    /// Reads changed files again. If they cannot work, the last good contents stay.
    pub(crate) fn refresh(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = files::stamps(&self.files);
        if stamps == state.stamps {
            return;
        }
        state.stamps = stamps;
        match files::read(&self.files) {
            Ok(Read { certs, config }) => {
                self.cell.update(certs);
                state.config = config;
                tracing::info!("TLS certificates have changed, and were read again");
            }
            Err(Flaw { part, complaint, .. }) => {
                let path = self.files.path(part).map(|path| path.display().to_string()).unwrap_or_default();
                tracing::warn!("TLS certificates have changed, and cannot be used: {path} {complaint}");
            }
        }
    }

    pub(crate) fn options(&self) -> TlsOptions {
        let options = TlsOptions::new().with_certs(self.cell.clone());
        if self.files.any_name { verifier::ignore_names(options) } else { options }
    }

    fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.state.lock().unwrap_or_else(PoisonError::into_inner).config)
    }

    /// The present error in the files, if any.
    fn flaw(&self) -> Option<Flaw> {
        files::read(&self.files).err()
    }

    /// Whether a private key is in memory.
    pub fn holds_key(&self) -> bool {
        self.files.identity.is_some()
    }
}

impl Files {
    fn path(&self, part: Part) -> Option<&PathBuf> {
        match part {
            Part::Authority => Some(&self.ca),
            Part::Certificate => self.identity.as_ref().map(|identity| &identity.certificate),
            Part::Key => self.identity.as_ref().map(|identity| &identity.key),
        }
    }
}

impl PartialEq for Certificates {
    fn eq(&self, other: &Self) -> bool {
        self.files == other.files
    }
}

impl Eq for Certificates {}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

/// Whether a certificate can be for this host; the client library panics on any other.
pub fn can_be_certified(host: &str) -> bool {
    ServerName::try_from(host).is_ok()
}
