//! Standard error: log lines, and below them one status line at the foot of the terminal that is drawn again and again and is
//! gone before anybody else writes. A log that nobody reads never holds up the supervisor.
//!
//! Never: a write that may block; a panic because the reader is gone; a status line that wraps, or where standard error is
//! no terminal or not ours at the moment.

use std::fs::File;
use std::io::{self, IsTerminal, Write, stderr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, send};
use nix::unistd::{getpgrp, tcgetpgrp, write};
use rustix::fs::{FileType, fstat};
use rustix::termios::tcgetwinsize;

use super::words::printable;

/// To the first column, and clear from there (ECMA-48 `EL`).
const CLEAR: &str = "\r\x1b[K";
const WIDTH: usize = 80;

/// The status line on the screen; empty: none.
static SHOWN: Mutex<String> = Mutex::new(String::new());

/// Whether there is a terminal that obeys.
pub fn has_terminal() -> bool {
    stderr().is_terminal() && std::env::var_os("TERM").is_some_and(|terminal| terminal != "dumb")
}

/// Shows `text`, cut to the width of the terminal. A job in the background shows nothing: the prompt is the shell's.
pub fn show(text: &str) {
    let mut shown = lock();
    if tcgetpgrp(stderr()) == Ok(getpgrp()) {
        let text = cut(&printable(text), width());
        if try_write(&standard_error(), format!("{CLEAR}{text}").as_bytes()) {
            *shown = text;
        }
    } else {
        shown.clear();
    }
}

/// Takes it away.
pub fn hide() {
    clear(&mut lock());
}

/// Takes it away for what `write` writes, and puts it back.
pub fn beside(write: impl FnOnce()) {
    let mut shown = lock();
    let text = clear(&mut shown);
    write();
    if !text.is_empty() && try_write(&standard_error(), text.as_bytes()) {
        *shown = text;
    }
}

fn clear(shown: &mut MutexGuard<'_, String>) -> String {
    if !shown.is_empty() {
        try_write(&standard_error(), CLEAR.as_bytes());
    }
    std::mem::take(shown)
}

fn lock() -> MutexGuard<'static, String> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One column is left free: a cursor in the last one wraps on some terminals.
fn width() -> usize {
    let columns = tcgetwinsize(stderr()).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { WIDTH } else { columns }.saturating_sub(1)
}

/// Cuts to the width. A letter that is not ASCII counts as two columns.
fn cut(text: &str, width: usize) -> String {
    let columns = |letter: char| if letter.is_ascii() { 1 } else { 2 };
    if text.chars().map(columns).sum::<usize>() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(3);
    let fitting = text.chars().take_while(|letter| {
        let fits = columns(*letter) <= left;
        left = left.saturating_sub(columns(*letter));
        fits
    });
    fitting.collect::<String>() + "..."
}

/// A terminal that polls as writable may take less than a line, and block for the rest; the command may fill a pipe after the
/// poll. Their writers are given a description of their own, which does not block. The one that we have is the command's, too, and
/// stays as it is.
fn standard_error() -> BorrowedFd<'static> {
    static OURS: OnceLock<Result<File, io::Stderr>> = OnceLock::new();
    match OURS.get_or_init(|| unblocked(&stderr()).ok_or_else(stderr)) {
        Ok(terminal) => terminal.as_fd(),
        Err(shared) => shared.as_fd(),
    }
}

/// `None` if it is neither a terminal nor a pipe, or if this user may not open it.
fn unblocked(stream: &(impl AsRawFd + AsFd + IsTerminal)) -> Option<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let is_pipe = || fstat(stream).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    let may_block = stream.is_terminal() || is_pipe();
    let path = may_block.then(|| format!("/proc/self/fd/{}", stream.as_raw_fd()))?;
    File::options().write(true).custom_flags(flags).open(path).ok()
}

/// A pipe that polls as writable takes this much without blocking (`pipe(7)`, `PIPE_BUF`).
const AT_ONCE: usize = 4096;

/// Lines that were not written since the last one that was.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Writes log lines; each is given whole.
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        beside(|| write_at_once(&standard_error(), line, &LOST));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_at_once(stream: &(impl AsFd + ?Sized), line: &[u8], lost: &AtomicU64) {
    let missing = lost.load(Ordering::Relaxed);
    // The last line may have been cut.
    if missing > 0 && !try_write(stream, format!("\n{}\n", lines_lost(missing)).as_bytes()) {
        lost.fetch_add(1, Ordering::Relaxed);
        return;
    }
    lost.fetch_sub(missing, Ordering::Relaxed);
    if !line.chunks(AT_ONCE).all(|part| try_write(stream, part)) {
        lost.fetch_add(1, Ordering::Relaxed);
    }
}

fn lines_lost(missing: u64) -> String {
    let lines = if missing == 1 { "1 log line was" } else { &format!("{missing} log lines were") };
    let why = "standard error took no more: its reader was slow or stopped, or its disk was full";
    format!("zk-leader-run: {lines} lost, because {why}")
}

fn try_write(stream: &(impl AsFd + ?Sized), bytes: &[u8]) -> bool {
    let mut polled = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
    let ready = poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
    ready && write_once(stream.as_fd(), bytes) == Ok(bytes.len())
}

/// A socket, such as that of systemd's journal, is the command's too, and is never waited for, though it polled as writable.
fn write_once(stream: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    match send(stream.as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL) {
        Err(Errno::ENOTSOCK) => write(stream, bytes),
        sent => sent,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use nix::pty::openpty;
    use nix::sys::socket::setsockopt;
    use nix::sys::socket::sockopt::SndBuf;
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
        assert!(rest.ends_with(&format!("\n{}\nafter\n", lines_lost(3))), "{rest}");
        assert!(lines_lost(1).starts_with("zk-leader-run: 1 log line was lost, because standard error took no more: "));
        assert_eq!(lost.load(Ordering::Relaxed), 0);
    }

    /// As of a container whose log nobody fetches.
    #[test]
    fn a_terminal_that_nobody_reads_costs_lines_but_never_blocks() {
        let terminal = openpty(None, None).unwrap();
        let (filled, outcome) = mpsc::channel();
        let ours = unblocked(&File::from(terminal.slave)).unwrap();
        thread::spawn(move || {
            let lost = AtomicU64::new(0);
            while lost.load(Ordering::Relaxed) < 3 {
                write_at_once(&ours, &[b'x'; 142], &lost);
            }
            filled.send(()).unwrap();
        });
        outcome.recv_timeout(Duration::from_secs(30)).expect("a write blocked");
    }

    /// systemd's journal reads from one. It has room for a little, and not for a whole line.
    #[test]
    fn a_socket_that_nobody_reads_costs_lines_but_never_blocks() {
        let (_reader, writer) = UnixStream::pair().unwrap();
        setsockopt(&writer, SndBuf, &1).unwrap();
        write(&writer, b"x").unwrap();
        let (filled, outcome) = mpsc::channel();
        thread::spawn(move || {
            let lost = AtomicU64::new(0);
            while lost.load(Ordering::Relaxed) < 3 {
                write_at_once(&writer, &[b'x'; AT_ONCE], &lost);
            }
            filled.send(()).unwrap();
        });
        outcome.recv_timeout(Duration::from_secs(30)).expect("a write blocked");
    }

    /// The command may have filled it since it was polled.
    #[test]
    fn a_full_pipe_that_was_polled_before_refuses_a_line_and_does_not_block() {
        let (_reader, writer) = pipe().unwrap();
        let (filled, outcome) = mpsc::channel();
        let ours = unblocked(&writer).unwrap();
        thread::spawn(move || {
            while write(&ours, &[b'x'; 1000]).is_ok() {}
            filled.send(()).unwrap();
        });
        outcome.recv_timeout(Duration::from_secs(30)).expect("a write blocked");
    }

    #[test]
    fn a_reader_that_is_gone_is_no_reason_to_fail() {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let lost = AtomicU64::new(0);
        write_at_once(&writer, b"nobody hears this\n", &lost);
        assert_eq!(lost.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_line_never_wraps_even_if_its_letters_are_wide() {
        assert_eq!(cut("0123456789", 10), "0123456789");
        assert_eq!(cut("0123456789a", 10), "0123456...");
        assert_eq!(cut("日本日本", 8), "日本日本");
        assert_eq!(cut("日本日本日", 8), "日本...");
        assert_eq!(cut("0123456789", 2), "...", "a terminal of two columns has other problems");
    }
}
