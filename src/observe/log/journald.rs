//! journald's native protocol (`systemd.io/JOURNAL_NATIVE_PROTOCOL`): one datagram per event, with its fields. A write
//! never blocks. If journald does not take an entry, it goes to standard error.

use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::OnceLock;

use crate::observe::console::Stderr;

const SOCKET: &str = "/run/systemd/journal/socket";
const MESSAGE: &str = "MESSAGE=";

/// Whether journald runs.
pub fn is_there() -> bool {
    Path::new(SOCKET).exists()
}

/// An event in journald's format. `message` and the values contain no line break.
pub(super) fn entry<'a>(priority: u8, message: &str, fields: impl Iterator<Item = (&'a str, String)>) -> String {
    let mut entry = format!("SYSLOG_IDENTIFIER=zk-leader-run\nPRIORITY={priority}\n{MESSAGE}{message}\n");
    for (name, value) in fields {
        entry.push_str("ZK_LEADER_");
        entry.extend(
            name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' }),
        );
        entry.push('=');
        entry.push_str(&value);
        entry.push('\n');
    }
    entry
}

/// Each entry is given whole.
pub(super) struct Journal;

impl Write for Journal {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        if !send(entry, Path::new(SOCKET)) {
            Stderr.write_all(&for_people(entry))?;
        }
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends the entry without waiting for room; returns whether it was sent.
fn send(entry: &[u8], to: &Path) -> bool {
    static SOCKET: OnceLock<Option<UnixDatagram>> = OnceLock::new();
    let socket = SOCKET.get_or_init(|| {
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_nonblocking(true).ok()?;
        Some(socket)
    });
    socket.as_ref().is_some_and(|socket| socket.send_to(entry, to).is_ok())
}

/// The message of an entry, as a line of text.
fn for_people(entry: &[u8]) -> Vec<u8> {
    let entry = String::from_utf8_lossy(entry);
    let message = entry.lines().find_map(|line| line.strip_prefix(MESSAGE)).unwrap_or_default();
    format!("zk-leader-run: {message}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_datagram_and_a_line_for_people_without_journald() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let journald = UnixDatagram::bind(&path).unwrap();
        let entry = entry(4, "paused token=7", [("lease_left", "9s".to_owned()), ("a.b", "c".to_owned())].into_iter());
        assert!(send(entry.as_bytes(), &path));
        let mut heard = [0; 512];
        let length = journald.recv(&mut heard).unwrap();
        assert_eq!(
            std::str::from_utf8(&heard[..length]).unwrap(),
            "SYSLOG_IDENTIFIER=zk-leader-run\nPRIORITY=4\nMESSAGE=paused token=7\nZK_LEADER_LEASE_LEFT=9s\nZK_LEADER_A_B=c\n"
        );
        drop(journald);
        assert!(!send(entry.as_bytes(), &path));
        assert_eq!(for_people(entry.as_bytes()), b"zk-leader-run: paused token=7\n");
    }

    #[test]
    fn a_journald_that_does_not_read_holds_nobody_up() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let _journald = UnixDatagram::bind(&path).unwrap();
        while send(b"MESSAGE=again\n", &path) {}
    }
}
