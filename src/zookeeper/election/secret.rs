//! The secret of the hosts that vouch for one another, and which election it is of. Who asks for a promise makes the secret
//! before its first take-over, so that a base that has lost its term shows that a command may live on promises.
//!
//! Never: a secret in a message.

use crate::random;
use crate::zookeeper::client::connection::{Error, MultiError, Watcher};
use crate::zookeeper::client::error::{Part, PathAccess, RequestError, Right, if_there_at};
use crate::zookeeper::client::requests::ANY_VERSION;
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::schema::vouching::Secret;

/// There is a secret when this returns without an error, or the base is not whole, and no take-over will succeed.
///
/// # Errors
///
/// It cannot be read or made.
pub(crate) async fn ensure(contact: &Contact) -> Result<(), RequestError> {
    match contact.client.check_stat(&contact.shared.paths.vouch).await? {
        Some(_) => Ok(()),
        None => create(contact).await,
    }
}

/// Reads the secret of the base with this czxid, makes one if there is none, and watches it. `None`: it was just made, or
/// is being made.
pub(crate) async fn read(contact: &Contact, election: i64) -> Result<Option<Watcher>, RequestError> {
    let (shared, path) = (&contact.shared, &contact.shared.paths.vouch);
    let was_known = {
        let known = shared.neighbourhood();
        let known = known.borrow();
        known.election == Some(election) && known.secret.is_some()
    };
    let Some((data, stat, watcher)) = if_there_at(path, contact.client.get_and_watch_data(path).await)? else {
        if was_known {
            tracing::warn!(path, "The secret of the hosts that vouch for one another was deleted; it is made anew");
        }
        return create(contact).await.map(|()| None);
    };
    if let Some(secret) = Secret::read(&data) {
        shared.learn(|known| (known.election, known.secret) = (Some(election), Some(secret)));
        return Ok(Some(watcher));
    }
    tracing::warn!(path, "The secret of the hosts that vouch for one another could not be read; it is made anew");
    match contact.client.set_data(path, &random::bytes::<{ Secret::LENGTH }>(), Some(stat.version)).await {
        // Another host was faster.
        Ok(()) | Err(Error::BadVersion | Error::NoNode) => Ok(None),
        Err(error) => Err(RequestError::from(error).without(Right::Write, path)),
    }
}

/// Only under a base with a term: a base with children and without a record looks like one that has lost it.
async fn create(contact: &Contact) -> Result<(), RequestError> {
    let (paths, acl) = (&contact.shared.paths, &contact.shared.settings.acl);
    let mut multi = contact.client.multi();
    multi.check(&paths.term, ANY_VERSION);
    multi.create(&paths.vouch, &random::bytes::<{ Secret::LENGTH }>(), &acl.for_writers());
    match multi.commit().await {
        Ok(_) | Err(MultiError::OperationFailed { source: Error::NodeExists | Error::NoNode, .. }) => Ok(()),
        Err(error) => {
            let steps = [
                PathAccess(Part::Other, Right::Read, &paths.term),
                PathAccess(Part::Other, Right::Create, &paths.base),
            ];
            Err(RequestError::of_multi(&error, &steps))
        }
    }
}
