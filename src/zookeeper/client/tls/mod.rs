//! Our certificates: read and checked at the start, and read again when their files change. Every new connection, of an
//! open session too, shows the present files. Files that cannot work do not replace good ones; they are read again and again,
//! because their dates, or the file system, may come right by themselves.
//!
//! Never: a wait for a file system that hangs. A thread of its own reads, and we go on with what was good.

mod certificate;
mod files;
pub(crate) mod talk;
mod verifier;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

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
    /// Another reading waits for this one to end.
    is_being_read: Arc<AtomicBool>,
}

struct State {
    /// Of the files that were good.
    stamps: Stamps,
    config: Arc<ClientConfig>,
    /// What was said of those that cannot be used.
    told: Option<(Stamps, Flaw)>,
}

/// For somebody whose lease must be renewed meanwhile. A local file takes a few milliseconds.
const PATIENCE: Duration = Duration::from_millis(200);

impl Certificates {
    /// Reads and checks them.
    ///
    /// # Errors
    ///
    /// The first file that cannot work.
    pub fn load(files: &Files) -> Result<Self, Flaw> {
        let stamps = files::stamps(files);
        let Read { certs, config } = files::read(files)?;
        let state = Arc::new(Mutex::new(State { stamps, config, told: None }));
        let (files, cell) = (files.clone(), TlsDynamicCerts::new(certs));
        Ok(Self { files, cell, state, is_being_read: Arc::default() })
    }

    /// Reads changed files again. If they cannot work, the last good contents stay.
    pub(crate) fn refresh(&self) {
        self.in_time(Self::read_what_has_changed);
    }

    fn read_what_has_changed(&self) {
        let stamps = files::stamps(&self.files);
        if stamps == self.state().stamps {
            return;
        }
        let read = files::read(&self.files);
        let mut state = self.state();
        match read {
            Ok(Read { certs, config }) => {
                self.cell.update(certs);
                *state = State { stamps, config, told: None };
                tracing::info!("TLS certificates have changed, and were read again");
            }
            Err(flaw) => {
                let flawed = Some((stamps, flaw.clone()));
                if std::mem::replace(&mut state.told, flawed.clone()) != flawed {
                    let path = self.files.path(flaw.part).map(|path| path.display().to_string()).unwrap_or_default();
                    let complaint = flaw.complaint;
                    tracing::warn!(
                        "TLS certificates have changed, and cannot be used: {path} {complaint}. Those read before stay in use, and \
                         the files are read again"
                    );
                }
            }
        }
    }

    /// What a thread of its own finds out; `None`: not in time, or an earlier one has not ended.
    fn in_time<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> T + Send + 'static) -> Option<T> {
        if self.is_being_read.swap(true, Ordering::AcqRel) {
            return None;
        }
        let (own, (found, finding)) = (self.clone(), channel());
        let read = move || {
            let outcome = work(&own);
            own.is_being_read.store(false, Ordering::Release);
            found.send(outcome).ok();
        };
        thread::Builder::new().spawn(read).ok();
        let outcome = finding.recv_timeout(PATIENCE);
        match outcome {
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => tracing::warn!(
                "The files of TLS cannot be read in time: does their file system hang? Those read before are used"
            ),
            // There is no such thread, or it has panicked.
            Err(RecvTimeoutError::Disconnected) => self.is_being_read.store(false, Ordering::Release),
        }
        outcome.ok()
    }

    pub(crate) fn options(&self) -> TlsOptions {
        let options = TlsOptions::new().with_certs(self.cell.clone());
        if self.files.any_name { verifier::ignore_names(options) } else { options }
    }

    fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.state().config)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present error in the files, if any is found.
    fn flaw(&self) -> Option<Flaw> {
        self.in_time(|own| files::read(&own.files).err()).flatten()
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
