//! Our identity, and who else may change an election.
//!
//! Never: a hash of a password shown.

use std::time::Duration;

use super::super::CommandError;
use super::{Finding, advice, good, wrong};
use crate::config::ctl::Asked;
use crate::observe::words;
use crate::zookeeper::admin::view::ElectionView;
use crate::zookeeper::admin::{AdminClient, AdminError};
use crate::zookeeper::client::acl::{Entry, intruders, mere_readers};
use crate::zookeeper::client::kerberos::{self, Ourselves};

/// A client that may write to one of these, or to the candidates' directory, can end a term, block the election, or let two
/// commands run.
const DECISIVE: [&str; 6] = ["", "/lease", "/term", "/members", "/control", SECRET];

/// Who may read it can let two commands run, too.
const SECRET: &str = "/vouch";

/// A ticket with less time than this is too short for a service.
const SHORT: Duration = Duration::from_secs(3600);

/// Judges the ACLs of an election by that of its base.
pub(super) async fn findings(client: &AdminClient, election: &ElectionView) -> Result<Vec<Finding>, CommandError> {
    let (mut owners, mut open, mut differing) = (None, Vec::new(), Vec::new());
    let (secret, mut findings) = (format!("{}{SECRET}", election.base), Vec::new());
    for path in paths(election) {
        let acl = match client.acl(&path).await {
            Ok(Some(acl)) => acl,
            Ok(None) => continue,
            // As it should be for those who may only read.
            Err(AdminError::Forbidden(_)) if path == secret => continue,
            Err(failure) => return Err(failure.into()),
        };
        if path == secret {
            findings.extend(of_secret(&path, &acl));
        }
        let expected: &Vec<Entry> = owners.get_or_insert_with(|| acl.clone());
        if acl.iter().any(|entry| entry.is_anyone() && entry.rights().may_change_anything()) {
            open.push(path);
        } else if let [intruder, ..] = intruders(&acl, expected).as_slice() {
            differing.push(format!("{intruder} may change {path}, but not the election"));
        }
    }
    let remedy = "make it that of the others (setAcl)";
    findings.extend(differing.iter().map(|said| wrong("access", format!("{said}: {remedy}"))));
    if let [first, ..] = open.as_slice() {
        let others = match open.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let remedy = "--acl closes new elections, setAcl -R this one";
        findings.push(advice(
            "access",
            format!("everyone may change {first}{others}; where not all are trusted, {remedy}"),
        ));
    }
    if findings.is_empty() {
        findings.push(good("access", "only those whom the ACLs name may change the election"));
    }
    Ok(findings)
}

fn of_secret(path: &str, acl: &[Entry]) -> Option<Finding> {
    let reader = mere_readers(acl).into_iter().next()?;
    let text = format!("{reader} may read {path}, and so forge the promises of hosts and let two commands run");
    let remedy = "delete it while the leader reaches ZooKeeper, and the hosts make another one that only they can read";
    Some(wrong("access", format!("{text}: {remedy}")))
}

/// As whom Kerberos knows us: the session was opened by that.
pub(super) async fn login(asked: &Asked) -> Option<Finding> {
    asked.access.kerberos.as_ref()?;
    Some(match kerberos::ourselves(asked.limit).await {
        Ok(Ourselves { name, lifetime }) if lifetime < SHORT => {
            let remedy = "get a new one, or name a client's keytab in KRB5_CLIENT_KTNAME, which renews it";
            advice("login", format!("by Kerberos, as {name}; the ticket ends in {}: {remedy}", words::length(lifetime)))
        }
        Ok(Ourselves { name, lifetime }) => {
            good("login", format!("by Kerberos, as {name}; the ticket ends in {}", words::length(lifetime)))
        }
        Err(why) => wrong("login", format!("the Kerberos identity is not known: {why}; see klist")),
    })
}

/// The base first.
fn paths(election: &ElectionView) -> Vec<String> {
    let own = DECISIVE.iter().map(|below| format!("{}{below}", election.base));
    let mut paths: Vec<_> = own.chain([election.directory.clone()]).collect();
    for slot in &election.slots {
        let home = slot.term_path.trim_end_matches("/term");
        for path in [format!("{home}/lease"), slot.term_path.clone()] {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
}
