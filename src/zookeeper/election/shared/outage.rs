//! The bookkeeping of an outage: since when no server has a session of ours, and what was told of it.
//!
//! Never: a line about an outage that is over.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use super::Shared;
use crate::clock;
use crate::zookeeper::client::diagnose::{self, Diagnosis};
use crate::zookeeper::client::outage::Outage;

impl Shared {
    /// Asks the servers why no session could be opened, and logs it, unless there is one by now: at once, after 10 s, then every
    /// minute, and when the reason changes.
    pub async fn diagnose(&self, error: String) -> Option<Diagnosis> {
        let diagnosis = diagnose::of(&self.settings.servers, &self.settings.access).await;
        let text = match &diagnosis {
            Some(diagnosis) => diagnosis.text.clone(),
            None => format!("{}: {error}", self.settings.servers),
        };
        let is_final = diagnosis.as_ref().is_some_and(|diagnosis| diagnosis.is_final);
        self.report_outage(text, is_final);
        diagnosis
    }

    /// Why there is no session; the answer may come when there is one again.
    pub fn report_outage(&self, why: String, is_final: bool) {
        if let Some(outage) = self.lock_outage().as_mut() {
            outage.report(clock::now().lease, why, is_final);
        }
    }

    /// Whether there was ever a session.
    pub fn was_reached(&self) -> bool {
        self.was_reached.load(Ordering::Relaxed)
    }

    /// Contact was lost, or a server was not reached.
    pub fn begin_outage(&self) {
        self.lock_outage().get_or_insert_with(|| Outage::begin(clock::now().lease));
    }

    /// The next failure is logged again.
    pub fn reached(&self) {
        self.was_reached.store(true, Ordering::Relaxed);
        *self.lock_outage() = None;
    }

    fn lock_outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
