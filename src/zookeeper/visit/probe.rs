//! What a server says about itself to a four-letter word: its version and its role.
//!
//! Never: more than one bounded question; an answer that is trusted for anything but a report.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// No answer to `srvr` is anywhere near as long.
const LONGEST_ANSWER: u64 = 16 * 1024;

/// What one server said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// `3.8.0` and `leader`, `follower`, `observer`, `standalone` or `read-only`.
    Serves {
        version: String,
        role: String,
    },
    /// It is there, and keeps its mouth shut: the word is not in its `4lw.commands.whitelist`.
    NotAllowed,
    /// It is there, and does not serve: no quorum.
    NotServing,
    Unreachable(String),
}

/// Asks `srvr`.
pub async fn server(address: &str, limit: Duration) -> Said {
    match timeout(limit, ask(address)).await {
        Ok(Ok(answer)) => understood(&answer),
        Ok(Err(error)) => Said::Unreachable(error.to_string()),
        Err(_) => Said::Unreachable("no answer in time".to_owned()),
    }
}

async fn ask(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"srvr").await?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn understood(answer: &str) -> Said {
    let after = |name: &str| answer.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match (after("Zookeeper version:"), after("Mode:")) {
        (Some(version), Some(role)) => {
            let version = version.split(['-', ',']).next().unwrap_or(version);
            Said::Serves { version: version.to_owned(), role: role.to_owned() }
        }
        _ if answer.contains("not currently serving") => Said::NotServing,
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
        assert_eq!(understood(""), Said::NotAllowed);
        let alone = "This ZooKeeper instance is not currently serving requests\n";
        assert_eq!(understood(alone), Said::NotServing);
    }
}
