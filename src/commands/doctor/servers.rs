//! Checks the servers of `--connect`, one by one and all together: whether each serves, and whether they are one ensemble.
//!
//! Never: "good" of servers by which two hosts could be elected.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;

use super::{Finding, advice, good, wrong};
use crate::config::ctl::Asked;
use crate::zookeeper::client::address::Address;
use crate::zookeeper::client::diagnose;
use crate::zookeeper::client::four_letter::{self, Said};

/// Asks every server for its version and role.
pub(super) async fn findings(asked: &Asked) -> Vec<Finding> {
    let addresses: Vec<_> = asked.servers.split(',').collect();
    let answers = four_letter::all(&addresses, &asked.access, asked.limit).await;
    let refusals = diagnose::refusals(&addresses, &asked.access).await;
    let mut all = Vec::new();
    for ((address, said), refusal) in addresses.into_iter().zip(answers).zip(refusals) {
        all.push((address, explained(said, refusal), places(address).await));
    }
    judged(&all)
}

/// Of a server that did not answer as expected, what every other command says: whether it refuses us, as with TLS at a port without.
fn explained(said: Said, refusal: Option<String>) -> Said {
    match (said, refusal) {
        (Said::Mute | Said::Silent | Said::Unreachable(_), Some(why)) => Said::Refused(why),
        (said, _) => said,
    }
}

/// Where a server is, sorted. Empty: not known.
async fn places(address: &str) -> Vec<SocketAddr> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let Address { host, port, .. } = Address::of(address);
    let found = timeout(PATIENCE, lookup_host((host, port))).await;
    let mut places: Vec<_> = found.ok().and_then(Result::ok).map(Iterator::collect).unwrap_or_default();
    places.sort_unstable();
    places
}

fn judged(answers: &[(&str, Said, Vec<SocketAddr>)]) -> Vec<Finding> {
    let mut findings: Vec<_> = answers.iter().map(|(address, said, _)| of_one(address, said)).collect();
    let serving: Vec<_> = answers.iter().filter_map(|(address, said, _)| serves(address, said)).collect();
    let mut versions: Vec<_> = serving.iter().map(|server| server.version).collect();
    versions.sort_unstable();
    versions.dedup();
    if versions.len() > 1 {
        findings.push(advice("server", format!("versions differ: {}; finish the upgrade", versions.join(", "))));
    }
    // One server may have several names.
    let (mut known, mut distinct) = (Vec::<&Vec<_>>::new(), Vec::new());
    for (address, said, places) in answers {
        if !known.iter().any(|other| is_one_server(other, places)) {
            known.push(places);
            distinct.extend(serves(address, said));
        }
    }
    findings.extend(several_ensembles(&distinct));
    if answers.len() == 1 && serving.len() == 1 {
        findings.push(advice("server", "--connect names only one server: if it fails, nobody leads; name all of them"));
    }
    findings
}

/// Whether two names are of one server. Who has an address of each family may be named by one of them alone. A name with several of
/// one family may be that of a whole ensemble: it is no other server's.
fn is_one_server(one: &[SocketAddr], other: &[SocketAddr]) -> bool {
    let is_single = |places: &[SocketAddr]| {
        let of_four = places.iter().filter(|place| place.is_ipv4()).count();
        of_four <= 1 && places.len() - of_four <= 1
    };
    let has_shared = one.iter().any(|place| other.contains(place));
    has_shared && (one == other || is_single(one) && is_single(other))
}

fn of_one(address: &str, said: &Said) -> Finding {
    match said {
        Said::Serves { role, .. } if role == READ_ONLY => {
            let text = "is read-only: it is cut off from the ensemble, and nobody can lead by it";
            wrong("server", format!("{address} {text}; see its log and network"))
        }
        Said::Serves { version, role } => {
            good("server", format!("{address} is {}, version {version}", role_in_words(role)))
        }
        Said::Stranger => wrong("server", format!("{address}: {}", four_letter::STRANGER)),
        Said::Mute => wrong("server", format!("{address} hangs up without an answer; see its log, and {PORT}")),
        Said::Silent => wrong(
            "server",
            format!("{address} takes the connection, and gives no answer in time; see its log, and {PORT}"),
        ),
        Said::NotAllowed => {
            let remedy = "its version and role are not known: srvr is not in 4lw.commands.whitelist";
            advice("server", format!("{address} is there; {remedy}"))
        }
        Said::NotServing => wrong("server", format!("{address} does not serve: has it lost its quorum? See its log")),
        Said::Refused(why) => wrong("server", format!("{address} was not reached ({why})")),
        Said::Unreachable(why) => {
            wrong("server", format!("{address} was not reached ({why}); start it, or take it out of --connect"))
        }
    }
}

const PORT: &str = "whether its port is right (2181 is usual, 8080 is that of the AdminServer)";

/// A server by which a host may be elected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Serving<'a> {
    address: &'a str,
    version: &'a str,
    role: &'a str,
}

fn serves<'a>(address: &'a str, said: &'a Said) -> Option<Serving<'a>> {
    match said {
        Said::Serves { version, role } if role != READ_ONLY => Some(Serving { address, version, role }),
        _ => None,
    }
}

/// A host leads by whichever it reaches: two may lead.
fn several_ensembles(serving: &[Serving<'_>]) -> Option<Finding> {
    let of_role = |role: &str| -> Vec<_> {
        serving.iter().filter(|server| server.role == role).map(|server| server.address).collect()
    };
    let (alone, leading) = (of_role("standalone"), of_role("leader"));
    let said = match (alone.as_slice(), leading.as_slice()) {
        ([first, ..], _) if serving.len() > 1 => {
            format!("a host that reaches {first} alone elects by itself; take it out of --connect on every host")
        }
        (_, [_, _, ..]) => format!(
            "each of {} leads one, and so hosts elect one leader in each; leave the servers of one in --connect, on every host",
            leading.join(", ")
        ),
        _ => return None,
    };
    Some(wrong("server", format!("these servers are not one ensemble: {said}")))
}

/// Without a quorum: it answers reads.
const READ_ONLY: &str = "read-only";

/// With its article.
fn role_in_words(role: &str) -> String {
    match role {
        "standalone" => "a standalone server".to_owned(),
        role if role.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {role}"),
        role => format!("a {role}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Grade;
    use super::*;

    fn all(roles: &[(&str, &str)]) -> Vec<Finding> {
        let serves = |role: &str| Said::Serves { version: "3.8.0".into(), role: role.into() };
        judged(&roles.iter().map(|(address, role)| (*address, serves(role), Vec::new())).collect::<Vec<_>>())
    }

    fn wrongs(roles: &[(&str, &str)]) -> Vec<String> {
        all(roles).into_iter().filter(|finding| finding.grade == Grade::Wrong).map(|finding| finding.said).collect()
    }

    #[test]
    fn a_server_is_an_observer_a_follower_or_a_standalone_server() {
        let said = ["observer", "follower", "leader", "standalone"].map(role_in_words);
        assert_eq!(said, ["an observer", "a follower", "a leader", "a standalone server"]);
    }

    #[test]
    fn servers_of_two_ensembles_are_wrong() {
        let one = [("a:1", "follower"), ("b:1", "leader"), ("c:1", "observer")];
        assert!(wrongs(&one).is_empty() && wrongs(&[("d:1", "standalone")]).is_empty());
        let alone = "these servers are not one ensemble: a host that reaches d:1 alone elects by itself; take it out of \
                     --connect on every host";
        assert_eq!(wrongs(&[&one[..], &[("d:1", "standalone")]].concat()), [alone]);
        let two = wrongs(&[&one[..], &[("e:1", "leader")]].concat());
        assert!(two.len() == 1 && two[0].contains("each of b:1, e:1 leads one"), "{two:?}");
    }

    #[test]
    fn one_server_with_two_names_is_one_server() {
        let named = |name: &'static str, places: &[&str]| {
            let said = Said::Serves { version: "3.8.0".into(), role: "standalone".into() };
            (name, said, places.iter().map(|place| place.parse().unwrap()).collect::<Vec<_>>())
        };
        let is_wrong = |places: &[&str], other: &[&str]| {
            let findings = judged(&[named("a:1", places), named("b:1", other)]);
            findings.iter().any(|finding| finding.grade == Grade::Wrong)
        };
        let (four, six) = ("10.0.0.1:1", "[fd00::1]:1");
        assert!(!is_wrong(&[four], &[four]) && is_wrong(&[four], &["10.0.0.2:1"]));
        assert!(!is_wrong(&[four, six], &[four]) && !is_wrong(&[six], &[four, six]), "a name for both families");
        assert!(is_wrong(&[four, "10.0.0.2:1"], &["10.0.0.2:1"]), "a name of two servers");
        assert!(is_wrong(&[], &[]), "not known");
    }

    #[test]
    fn a_read_only_server_is_wrong_and_does_not_serve() {
        let said = all(&[("a:1", "read-only")]);
        let text =
            "a:1 is read-only: it is cut off from the ensemble, and nobody can lead by it; see its log and network";
        assert_eq!(said, [wrong("server", text)], "nothing is said of a single server");
        assert!(wrongs(&[("a:1", "read-only"), ("d:1", "standalone")]) == [text]);
    }

    #[test]
    fn who_refuses_us_is_neither_to_be_started_nor_to_be_left_out() {
        let said = |said| judged(&[("a:1", said, Vec::new())]).remove(0).said;
        let expired = "its certificate has expired; renew it".to_owned();
        assert_eq!(said(Said::Refused(expired.clone())), format!("a:1 was not reached ({expired})"));
        assert!(
            said(Said::Unreachable("connection refused".into())).ends_with("; start it, or take it out of --connect")
        );
    }
}
