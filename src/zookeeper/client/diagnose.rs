//! Asks each server in a connection of its own why it refused us: the client library only says that no server accepted.
//! The result is for messages, and for the decision not to try for ever.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::core::event::Grounds;
use crate::zookeeper::client::address::Address;
use crate::zookeeper::client::connect::{Access, room_for};
use crate::zookeeper::client::four_letter::{self, Said};
use crate::zookeeper::client::kerberos::{self, Complaint};
use crate::zookeeper::client::resolve::unresolved;
use crate::zookeeper::client::tls::talk::{self, Trouble};

/// A server that is silent for this long does not answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The problem, and whether it stays until somebody changes the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnosis {
    pub text: String,
    pub is_final: bool,
    /// Those of the first server that refuses us.
    pub grounds: Grounds,
}

/// The state of one server.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Opinion {
    /// It answers: the problem is elsewhere.
    Fine,
    /// No connection, for this reason.
    Away(String),
    /// It accepts no client for now, or we do not accept it for now.
    Stuck(String),
    Refuses(Grounds, String),
}

/// Asks every server at once. `None`: all of them answer.
pub async fn of(servers: &str, access: &Access) -> Option<Diagnosis> {
    if access.simulated.is_some() {
        return None;
    }
    let opinions = join_all(servers.split(',').map(|server| judge(server, access))).await;
    sum_up(servers.split(',').zip(opinions))
}

/// For each of these servers, why it refuses our connection until somebody changes the configuration.
pub async fn refusals(servers: &[&str], access: &Access) -> Vec<Option<String>> {
    let refusal = |opinion| match opinion {
        Opinion::Refuses(_, why) => Some(why),
        Opinion::Fine | Opinion::Away(_) | Opinion::Stuck(_) => None,
    };
    join_all(servers.iter().map(|server| opinion(server, access))).await.into_iter().map(refusal).collect()
}

/// Final if a server refuses us and none may accept us later. A server that is away may come back and refuse us as the
/// others do.
fn sum_up<'a>(opinions: impl Iterator<Item = (&'a str, Opinion)>) -> Option<Diagnosis> {
    let mut diagnosis = Diagnosis { text: String::new(), is_final: true, grounds: Grounds::Tls };
    let mut refused = None;
    for (server, opinion) in opinions {
        diagnosis.is_final &= !matches!(opinion, Opinion::Fine | Opinion::Stuck(_));
        let why = match &opinion {
            Opinion::Fine => continue,
            Opinion::Away(why) | Opinion::Stuck(why) => why,
            Opinion::Refuses(grounds, why) => {
                diagnosis.grounds = *refused.get_or_insert(*grounds);
                why
            }
        };
        let between = if diagnosis.text.is_empty() { "" } else { "; " };
        diagnosis.text.extend([between, server, ": ", why.as_str()]);
    }
    diagnosis.is_final &= refused.is_some();
    (!diagnosis.text.is_empty()).then_some(diagnosis)
}

/// A server that answers may still not know our identity.
async fn judge(server: &str, access: &Access) -> Opinion {
    let opinion = opinion(server, access).await;
    let Some(principal) = access.kerberos.as_ref().filter(|_| opinion == Opinion::Fine) else { return opinion };
    match kerberos::complaint(principal, Address::of(server).host, PATIENCE).await {
        Some(Complaint { text, is_final: true }) => Opinion::Refuses(Grounds::Ticket, text),
        Some(Complaint { text, is_final: false }) => Opinion::Stuck(text),
        None => Opinion::Fine,
    }
}

async fn opinion(server: &str, access: &Access) -> Opinion {
    let address = Address::of(server);
    let opinion = match room_for(server) {
        Ok(()) => ask(address, access).await,
        Err(error) => Opinion::Stuck(error.to_string()),
    };
    tracing::debug!(server, ?opinion, "Server was asked why");
    opinion
}

async fn ask(address: Address<'_>, access: &Access) -> Opinion {
    if let Some(why) = unresolved(address, PATIENCE).await {
        return Opinion::Away(why);
    }
    match (&access.tls, address.is_tls) {
        (Some(certificates), true) => {
            match timeout(PATIENCE, talk::ask(address.host, address.port, certificates, "srvr")).await {
                Ok(Ok(answer)) => of_answer(four_letter::understood(&answer)),
                Ok(Err(Trouble::TooEarly(why))) => Opinion::Stuck(why),
                Ok(Err(Trouble::Refused(why))) => Opinion::Refuses(Grounds::Tls, why),
                Ok(Err(Trouble::Network(why))) => without_tls(address, why).await,
                Err(_) => Opinion::Away("no answer".to_owned()),
            }
        }
        (_, true) => Opinion::Refuses(Grounds::Tls, "it speaks TLS, and there is no --tls-ca".to_owned()),
        (_, false) => match four_letter::plain(address, PATIENCE).await {
            // A server that expects a TLS record waits for more than four letters.
            Said::Mute | Said::Silent | Said::Unreachable(_) if four_letter::speaks_tls(address, PATIENCE).await => {
                Opinion::Refuses(
                    Grounds::Tls,
                    format!("it speaks TLS on that port; write tcp+tls://{address}, or its other port"),
                )
            }
            Said::Mute => Opinion::Away("it hangs up".to_owned()),
            Said::Silent => Opinion::Away(
                "it takes the connection, and gives no answer in time: it hangs, is too far away, or is no ZooKeeper server"
                    .to_owned(),
            ),
            answered => of_answer(answered),
        },
    }
}

/// Over whatever connection.
fn of_answer(said: Said) -> Opinion {
    match said {
        Said::Stranger => Opinion::Away(four_letter::STRANGER.to_owned()),
        Said::Unreachable(why) | Said::Refused(why) => Opinion::Away(why),
        Said::Serves { role, .. } if role == "read-only" => {
            Opinion::Stuck("it is read-only: it has no quorum, and nobody can lead by it".to_owned())
        }
        Said::NotServing => Opinion::Stuck("it has no quorum".to_owned()),
        Said::Serves { .. } | Said::NotAllowed | Said::Mute | Said::Silent => Opinion::Fine,
    }
}

/// What speaks no TLS at the port of a server that is to speak it, and why that fails.
async fn without_tls(address: Address<'_>, why: String) -> Opinion {
    match four_letter::plain(address, PATIENCE).await {
        Said::Serves { .. } | Said::NotAllowed | Said::NotServing => Opinion::Refuses(
            Grounds::Tls,
            format!("it does not speak TLS on that port; write its secureClientPort, or {address} to do without TLS"),
        ),
        Said::Stranger => Opinion::Away(four_letter::STRANGER.to_owned()),
        Said::Mute | Said::Silent | Said::Unreachable(_) | Said::Refused(_) => Opinion::Away(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_contradicts_is_final() {
        let refuses = || Opinion::Refuses(Grounds::Tls, "it demands a certificate".into());
        let sum = |opinions: [Opinion; 2]| sum_up(["a", "b"].into_iter().zip(opinions));
        let diagnosis = |text: &str, is_final| Some(Diagnosis { text: text.into(), is_final, grounds: Grounds::Tls });
        let away = || Opinion::Away("connection refused".into());
        assert_eq!(sum([Opinion::Fine, Opinion::Fine]), None);
        assert_eq!(sum([away(), Opinion::Fine]), diagnosis("a: connection refused", false));
        assert_eq!(sum([away(), away()]), diagnosis("a: connection refused; b: connection refused", false));
        assert_eq!(sum([away(), refuses()]), diagnosis("a: connection refused; b: it demands a certificate", true));
        assert_eq!(sum([refuses(), Opinion::Stuck("it has no quorum".into())]).map(|said| said.is_final), Some(false));
        assert_eq!(sum([refuses(), Opinion::Fine]), diagnosis("a: it demands a certificate", false));
        assert_eq!(
            sum([refuses(), refuses()]),
            diagnosis("a: it demands a certificate; b: it demands a certificate", true)
        );
    }
}
