//! Writes terms into `<base>/history`: read, changed and written on condition of the version that was read.
//!
//! Never: a term lost to a peer who writes at the same time; an attempt that holds up anything else.

use std::sync::PoisonError;

use zookeeper_client::{Error, MultiWriteError};

use super::fault::{Fault, Right};
use super::history::{HISTORY, History};
use super::session::Contact;

/// Any version will do.
const ANY_VERSION: i32 = -1;

/// Writes what is to be written down, if there is any; on a failure it stays to be written.
pub(super) async fn put(contact: &Contact) -> Result<(), Fault> {
    let board = &contact.office.board;
    let terms = board.terms.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if terms.is_empty() {
        return Ok(());
    }
    let path = format!("{}/{HISTORY}", contact.office.paths.base);
    let (mut history, version) = match contact.client.get_data(&path).await {
        // What cannot be read is replaced: it is only for people.
        Ok((data, stat)) => (History::read(&data).unwrap_or_default(), Some(stat.version)),
        Err(Error::NoNode) => (History::default(), None),
        Err(error) => return Err(Fault::from(error).without(Right::Read, &path)),
    };
    for term in &terms {
        history.put(term);
    }
    let mut multi = contact.client.new_multi_writer();
    // Never under a base that has lost its term.
    multi.add_check_version(&contact.office.paths.term, ANY_VERSION)?;
    match version {
        Some(_) => multi.add_set_data(&path, &history.written(), version)?,
        None => multi.add_create(&path, &history.written(), &contact.office.settings.acl.persistent())?,
    }
    match multi.commit().await {
        Ok(_) => {
            board.terms.lock().unwrap_or_else(PoisonError::into_inner).drain(..terms.len());
            Ok(())
        }
        Err(MultiWriteError::OperationFailed { source: Error::BadVersion | Error::NodeExists, .. }) => {
            Err(Fault::unknown("a peer wrote the history at the same time"))
        }
        Err(error) => Err(Fault::of_multi(&error, &[]).without(Right::Write, &path)),
    }
}
