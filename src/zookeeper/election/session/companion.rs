//! Work that goes along with the sessions of this process and is no part of the election: it runs while there is a
//! connection. Also gives access to the newest session.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::zookeeper::election::session::contact::Contact;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts the work for each connection, and remembers the newest.
pub(crate) struct Companion {
    work: Box<dyn Fn(Weak<Contact>) -> Work + Send + Sync>,
    newest: Mutex<Weak<Contact>>,
}

impl Companion {
    pub fn new<F>(work: impl Fn(Weak<Contact>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self { work: Box::new(move |contact| Box::pin(work(contact))), newest: Mutex::default() }
    }

    /// A session was opened or resumed. The work is dropped with the connection.
    pub fn join(&self, contact: &Arc<Contact>) -> Work {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(contact);
        (self.work)(Arc::downgrade(contact))
    }

    /// The newest session, if it seems connected. The caller must not keep it for long.
    pub fn newest(&self) -> Option<Arc<Contact>> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        newest.filter(|contact| contact.seems_connected())
    }
}

impl fmt::Debug for Companion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Companion")
    }
}
