//! Asks servers for their version and role with a four-letter word: one bounded question to each. The answer is only used
//! in reports.

use std::io;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};

use crate::zookeeper::client::address::Address;
use crate::zookeeper::client::connect::Access;
use crate::zookeeper::client::resolve::{NO_ANSWER, UNKNOWN_NAME};
use crate::zookeeper::client::tls::talk::{self, Trouble};

/// An answer to `srvr` is never near as long.
const LONGEST_ANSWER: u64 = 16 * 1024;

/// The answer of one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// `3.8.0` and `leader`, `follower`, `observer`, `standalone` or `read-only`.
    Serves {
        version: String,
        role: String,
    },
    /// It answers, but the word is not in its `4lw.commands.whitelist`.
    NotAllowed,
    /// It answers, but has no quorum.
    NotServing,
    /// It closed the connection without an answer.
    Mute,
    /// It took the connection, and has not answered in time.
    Silent,
    /// It answers, but not as `ZooKeeper` does.
    Stranger,
    Unreachable(String),
    /// Over TLS: it stays until somebody changes the configuration.
    Refused(String),
}

/// Asks `srvr` of all of them at the same time, over TLS if the connect string says so. Their answers, in this order.
pub async fn all(servers: &[&str], access: &Access, limit: Duration) -> Vec<Said> {
    join_all(servers.iter().map(|address| server(address, access, limit))).await
}

async fn server(server: &str, access: &Access, limit: Duration) -> Said {
    let address = Address::of(server);
    if let Some(why) = unresolved(address.host, limit).await {
        return Said::Unreachable(why);
    }
    match access.tls.as_ref().filter(|_| address.is_tls) {
        None => plain(address, limit).await,
        Some(certificates) => match timeout(limit, talk::ask(address.host, address.port, certificates, WORD)).await {
            Ok(Ok(answer)) => understood(&answer),
            Ok(Err(Trouble::Network(why))) => Said::Unreachable(why),
            Ok(Err(Trouble::TooEarly(why) | Trouble::Refused(why))) => Said::Refused(why),
            Err(_) => Said::Unreachable(LATE.to_owned()),
        },
    }
}

const WORD: &str = "srvr";
const LATE: &str = "no answer in time";

/// Asks `srvr` in plain text.
pub(crate) async fn plain(address: Address<'_>, limit: Duration) -> Said {
    let (by, mut heard) = (Instant::now() + limit, Vec::new());
    let stream = match timeout_at(by, TcpStream::connect((address.host, address.port))).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Said::Unreachable(reason(&error)),
        Err(_) => return Said::Unreachable(LATE.to_owned()),
    };
    let end = timeout_at(by, converse(stream, WORD.as_bytes(), &mut heard)).await;
    match (end, understood(&String::from_utf8_lossy(&heard))) {
        // Who speaks first, or resets the connection because of what we have sent.
        (_, Said::Stranger) => Said::Stranger,
        (Ok(Ok(())), said) => said,
        (Ok(Err(error)), _) => Said::Unreachable(reason(&error)),
        (Err(_), _) => Said::Silent,
    }
}

/// What is to be said of a port where something else answers.
pub(crate) const STRANGER: &str = "it does not answer as ZooKeeper does; correct its port in --connect (2181 is usual, 8080 is that of the AdminServer)";

/// Why this name stands for no address.
pub(crate) async fn unresolved(host: &str, limit: Duration) -> Option<String> {
    match timeout(limit, lookup_host((host, 0))).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(format!("{UNKNOWN_NAME} ({error})")),
        Err(_) => Some(NO_ANSWER.to_owned()),
    }
}

/// Without the number of the system error.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
        _ => error.to_string(),
    }
}

/// Whether it answers the beginning of a TLS handshake with a TLS record (RFC 8446, section 5.1).
pub(crate) async fn speaks_tls(address: Address<'_>, limit: Duration) -> bool {
    const ALERT: u8 = 21;
    const HANDSHAKE: u8 = 22;
    /// The head of an invalid `ClientHello`: the rest is zero, including its list of cipher suites.
    const HELLO: [u8; 11] = [HANDSHAKE, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3];
    let hello = [&HELLO[..], &[0; 39]].concat();
    let mut answer = Vec::new();
    let exchange = async {
        let stream = TcpStream::connect((address.host, address.port)).await?;
        converse(stream, &hello, &mut answer).await
    };
    matches!(timeout(limit, exchange).await, Ok(Ok(()))) && matches!(answer.first(), Some(&(ALERT | HANDSHAKE)))
}

/// What was heard stays if the connection fails or time runs out.
async fn converse(mut stream: TcpStream, question: &[u8], heard: &mut Vec<u8>) -> io::Result<()> {
    stream.write_all(question).await?;
    let mut stream = stream.take(LONGEST_ANSWER);
    while stream.read_buf(heard).await? > 0 {}
    Ok(())
}

pub(crate) fn understood(answer: &str) -> Said {
    let after = |name: &str| answer.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match (after("Zookeeper version:"), after("Mode:")) {
        (Some(version), Some(role)) => {
            let version = version.split(['-', ',']).next().unwrap_or(version);
            Said::Serves { version: version.to_owned(), role: role.to_owned() }
        }
        _ if answer.contains("not currently serving") => Said::NotServing,
        _ if answer.is_empty() => Said::Mute,
        (None, _) if !answer.contains("is not executed because") => Said::Stranger,
        _ => Said::NotAllowed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_speaks_says_its_version_and_role() {
        let answer =
            "Zookeeper version: 3.8.0-1, built on 2022-02-25 08:49 UTC\nLatency min/avg/max: 0/0/0\nMode: standalone\n";
        assert_eq!(understood(answer), Said::Serves { version: "3.8.0".into(), role: "standalone".into() });
    }

    #[test]
    fn a_server_that_may_not_speak_is_told_from_one_without_a_quorum() {
        let silent = "srvr is not executed because it is not in the whitelist.\n";
        assert_eq!(understood(silent), Said::NotAllowed);
        assert_eq!(understood("HTTP/1.1 400 Illegal character CNTL=0x0\r\n"), Said::Stranger);
        assert_eq!(understood(""), Said::Mute);
        let alone = "This ZooKeeper instance is not currently serving requests\n";
        assert_eq!(understood(alone), Said::NotServing);
    }
}
