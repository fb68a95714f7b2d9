//! Writes terms into `<base>/history`: reads, changes, and writes conditional on the version read, so that no peer's
//! term is lost.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::zookeeper::client::connection::{Error, MultiError};
use crate::zookeeper::client::requests::ANY_VERSION;

use crate::zookeeper::client::error::{RequestError, Right, if_there_at};
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::schema::history::{HISTORY, History, KEPT, Term};

/// Terms that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct Unwritten(Mutex<Vec<Term>>);

impl Unwritten {
    /// Beyond the size of the history, the oldest is dropped.
    pub fn add(&self, term: Term) {
        let mut terms = self.terms();
        if terms.len() == KEPT {
            terms.remove(0);
        }
        terms.push(term);
    }

    pub fn is_empty(&self) -> bool {
        self.terms().is_empty()
    }

    /// All of them.
    pub fn all(&self) -> Vec<Term> {
        self.terms().clone()
    }

    /// Two writes may run at once at the end of a session; the second does not find the terms that the first has
    /// removed.
    fn cross_out(&self, written: &[Term]) {
        self.terms().retain(|term| !written.contains(term));
    }

    fn terms(&self) -> MutexGuard<'_, Vec<Term>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the terms that are not written yet; after a failure they stay in the list.
pub(crate) async fn put(contact: &Contact, unwritten: &Unwritten) -> Result<(), RequestError> {
    let terms = unwritten.terms().clone();
    if terms.is_empty() {
        return Ok(());
    }
    let path = format!("{}/{HISTORY}", contact.shared.paths.base);
    let (mut history, version) = match if_there_at(&path, contact.client.get_data(&path).await)? {
        // An unreadable history is replaced: it is only for display.
        Some((data, stat)) => (History::read(&data).unwrap_or_default(), Some(stat.version)),
        None => (History::default(), None),
    };
    for term in &terms {
        history.put(term);
    }
    let mut multi = contact.client.multi();
    // Not under a base that has lost its term.
    multi.check(&contact.shared.paths.term, ANY_VERSION);
    match version {
        Some(_) => multi.set(&path, &history.written(), version),
        None => multi.create(&path, &history.written(), &contact.shared.settings.acl.persistent()),
    }
    match multi.commit().await {
        Ok(_) => {
            unwritten.cross_out(&terms);
            Ok(())
        }
        Err(MultiError::OperationFailed { source: Error::BadVersion | Error::NodeExists, .. }) => {
            Err(RequestError::unknown("a peer wrote the history at the same time"))
        }
        Err(error) => Err(RequestError::of_multi(&error, &[]).without(Right::Write, &path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(token: i64) -> Term {
        Term { token, ..Term::default() }
    }

    #[test]
    fn what_was_written_twice_at_once_is_crossed_out_once() {
        let unwritten = Unwritten::default();
        unwritten.add(term(1));
        unwritten.add(term(2));
        let seen_by_both = unwritten.terms().clone();
        unwritten.cross_out(&seen_by_both);
        unwritten.add(term(3));
        unwritten.cross_out(&seen_by_both);
        assert_eq!(*unwritten.terms(), [term(3)]);
    }

    #[test]
    fn a_history_that_cannot_be_written_does_not_grow_without_end() {
        let unwritten = Unwritten::default();
        for token in 0..1000 {
            unwritten.add(term(token));
        }
        let terms = unwritten.terms().clone();
        assert_eq!((terms.len(), terms.last()), (KEPT, Some(&term(999))));
        assert_eq!(
            terms.first().map(|term| term.token),
            Some(1000 - i64::try_from(KEPT).unwrap()),
            "the oldest are dropped"
        );
    }
}
