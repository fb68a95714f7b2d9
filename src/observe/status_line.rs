//! One line at the foot of the terminal that is drawn again and again: log lines scroll by above it, and it is gone before
//! anybody else writes.
//!
//! Never: anything where standard error is no terminal, or not ours at the moment; a write that may block; a line that wraps.

use std::io::{IsTerminal, stderr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::unistd::{getpgrp, tcgetpgrp};
use rustix::termios::tcgetwinsize;

use super::line::printable;
use super::stderr::try_write;

/// To the first column, and clear from there (ECMA-48 `EL`).
const CLEAR: &str = "\r\x1b[K";
const WIDTH: usize = 80;

/// What is on the screen; empty: nothing.
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
        if try_write(&stderr(), format!("{CLEAR}{text}").as_bytes()) {
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
    if !text.is_empty() && try_write(&stderr(), text.as_bytes()) {
        *shown = text;
    }
}

fn clear(shown: &mut MutexGuard<'_, String>) -> String {
    if !shown.is_empty() {
        try_write(&stderr(), CLEAR.as_bytes());
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

/// As much as fits. What is not ASCII may be two columns wide, and counts as two.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_wraps_even_if_its_letters_are_wide() {
        assert_eq!(cut("0123456789", 10), "0123456789");
        assert_eq!(cut("0123456789a", 10), "0123456...");
        assert_eq!(cut("日本日本", 8), "日本日本");
        assert_eq!(cut("日本日本日", 8), "日本...");
        assert_eq!(cut("0123456789", 2), "...", "a terminal of two columns has other problems");
    }
}
