//! Warns once if the znodes of an election are open to others than `--acl` says: existing znodes keep their ACL. Our
//! own member znode, which is always new, shows how the server expands `--acl`. No ACL is changed. The secret of `--vouch` is
//! not for those who may only read the rest.

use crate::zookeeper::client::acl::{self, Entry};
use crate::zookeeper::client::error::{RequestError, if_there};
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::schema::control::CONTROL;
use crate::zookeeper::schema::member::MEMBERS;
use crate::zookeeper::schema::vouching::VOUCH;

/// Compares each znode that matters for safety with our member znode, which must exist.
pub(crate) async fn report(contact: &Contact) -> Result<(), RequestError> {
    let shared = &contact.shared;
    if shared.settings.acl.is_open() || shared.ownership_reported() {
        return Ok(());
    }
    let base = &shared.paths.base;
    let own = contact.client.get_acl(&format!("{base}/{MEMBERS}/{}", shared.settings.id)).await?;
    let slots = shared.paths.slots().map(|slot| shared.paths.of(slot));
    let mut paths = vec![base.clone(), shared.paths.election.clone()];
    paths.extend(slots.flat_map(|of| [of.lease, of.term]));
    paths.extend([MEMBERS, CONTROL, VOUCH].map(|below| format!("{base}/{below}")));
    let secret = &shared.paths.vouch;
    for path in paths {
        let Some(found) = if_there(contact.client.get_acl(&path).await)? else { continue };
        compare(&path, &found, &own);
        if path == *secret {
            warn_of_readers(&path, &found);
        }
    }
    shared.report_ownership_no_more();
    Ok(())
}

fn compare(path: &str, found: &[Entry], own: &[Entry]) {
    if let [intruder, ..] = acl::intruders(found, own).as_slice() {
        tracing::warn!(path, %intruder, "Others than --acl says may change a znode; close it with zkCli.sh setAcl");
    }
}

/// They could forge promises, and so let two commands run.
fn warn_of_readers(path: &str, found: &[Entry]) {
    if let [reader, ..] = acl::mere_readers(found).as_slice() {
        tracing::warn!(
            path,
            %reader,
            "Others than the hosts may read the secret of the hosts that vouch for one another; delete it while the leader \
             reaches ZooKeeper, and the hosts make another one"
        );
    }
}
