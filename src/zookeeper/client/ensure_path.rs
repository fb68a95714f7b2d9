//! Creates the ancestors of the base, the chroot among them, and an election directory elsewhere. Other elections can
//! use the ancestors too, and a refusal names the znode.

use crate::zookeeper::client::connection::{Connection, Error};

use crate::zookeeper::client::acl::Acl;
use crate::zookeeper::client::error::{RequestError, Right};

/// Creates the missing parts of a path that other elections may share. Warns if the chroot is among them.
pub(crate) async fn create_ancestors(
    client: &Connection,
    path: &str,
    chroot: &str,
    acl: &Acl,
) -> Result<(), RequestError> {
    let mut end = path.len();
    // Upwards to the first znode that exists, and down again. Usually all exist.
    while end > 0 {
        let (step, _) = path.split_at(end);
        let created = client.create(step, &[], &acl.ancestor()).await;
        if created.is_ok() && step == chroot {
            tracing::warn!(
                why = "chroot-created",
                "the chroot {chroot} did not exist and was created; if that is a typing mistake, other hosts use another \
                 chroot and elect a leader of their own: correct --connect of this host"
            );
        }
        let created = match created {
            // Creating below its parent is forbidden, whether it exists or not.
            Err(Error::NoAuth) if client.check_stat(step).await?.is_some() => Err(Error::NodeExists),
            created => created,
        };
        match created {
            Ok(_) | Err(Error::NodeExists) if end == path.len() => return Ok(()),
            Ok(_) | Err(Error::NodeExists) => end = next_step(path, end),
            Err(Error::NoNode) => end = parent(step).len(),
            Err(error) => return Err(RequestError::from(error).without(Right::Create, parent(step))),
        }
    }
    // Only the root is left.
    Ok(())
}

/// Creates our election directory and its ancestors.
pub(crate) async fn create_election(
    client: &Connection,
    path: &str,
    chroot: &str,
    acl: &Acl,
) -> Result<(), RequestError> {
    create_ancestors(client, parent(path), chroot, acl).await?;
    match client.create(path, &[], &acl.persistent()).await {
        Ok(_) | Err(Error::NodeExists) => Ok(()),
        Err(error) => Err(RequestError::from(error).without(Right::Create, parent(path))),
    }
}

/// The end of the next path element.
fn next_step(path: &str, end: usize) -> usize {
    let rest = path.get(end + 1..).unwrap_or_default();
    rest.find('/').map_or(path.len(), |length| end + 1 + length)
}

/// Empty for a child of the root.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_a_path_is_what_stands_before_its_last_part() {
        assert_eq!((parent("/a"), parent("/a/b"), parent("/a/b/c")), ("", "/a", "/a/b"));
    }

    #[test]
    fn a_path_is_walked_step_by_step() {
        let path = "/a/bc/d";
        assert_eq!([0, 2, 5, 7].map(|end| next_step(path, end)), [2, 5, 7, 7]);
    }
}
