//! Standard error, written to only while it takes a line at once: a log that nobody reads never holds up the supervisor.
//!
//! Never: a write that may block; a panic because the reader is gone.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tracing_subscriber::fmt::MakeWriter;

use super::status_line;

/// A pipe that polls as writable takes this much without blocking (`pipe(7)`, `PIPE_BUF`).
const AT_ONCE: usize = 4096;

/// Lines that were not written since the last one that was.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Makes the writers of log lines; each is given one whole line.
pub struct Stderr;

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        status_line::beside(|| write_at_once(&io::stderr(), line, &LOST));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_at_once(stream: &(impl AsFd + ?Sized), line: &[u8], lost: &AtomicU64) {
    let missing = lost.load(Ordering::Relaxed);
    if missing > 0
        && !try_write(stream, format!("zk-leader-run: {missing} log lines were lost, nobody read them\n").as_bytes())
    {
        lost.fetch_add(1, Ordering::Relaxed);
        return;
    }
    lost.fetch_sub(missing, Ordering::Relaxed);
    if !line.chunks(AT_ONCE).all(|part| try_write(stream, part)) {
        lost.fetch_add(1, Ordering::Relaxed);
    }
}

pub(super) fn try_write(stream: &(impl AsFd + ?Sized), bytes: &[u8]) -> bool {
    let mut polled = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
    let ready = poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
    ready && nix::unistd::write(stream, bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use nix::unistd::pipe;

    use super::*;

    #[test]
    fn a_full_pipe_costs_lines_but_never_blocks_and_the_loss_is_told() {
        let (reader, writer) = pipe().unwrap();
        let mut reader = File::from(reader);
        let (filled, outcome) = mpsc::channel();
        thread::spawn(move || {
            let lost = AtomicU64::new(0);
            while lost.load(Ordering::Relaxed) < 3 {
                write_at_once(&writer, &[b'x'; 1000], &lost);
            }
            filled.send((writer, lost)).unwrap();
        });
        let (writer, lost) = outcome.recv_timeout(Duration::from_secs(30)).expect("a write blocked");
        let mut buffer = vec![0; 1 << 20];
        assert!(reader.read(&mut buffer).unwrap() >= AT_ONCE);
        write_at_once(&writer, b"after\n", &lost);
        drop(writer);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("zk-leader-run: 3 log lines were lost, nobody read them\nafter\n"), "{rest}");
        assert_eq!(lost.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_reader_that_is_gone_is_no_reason_to_fail() {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let lost = AtomicU64::new(0);
        write_at_once(&writer, b"nobody hears this\n", &lost);
        assert_eq!(lost.load(Ordering::Relaxed), 1);
    }
}
