//! A text that ends the program before it begins: help, the version, or an error.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::exit::Status;

/// A text that ends the program before it begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EarlyExit {
    pub text: String,
    pub stream: Stream,
    pub status: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl EarlyExit {
    /// The answer to a question such as `--help`.
    pub fn answer(text: impl Into<String>) -> Self {
        let text: String = text.into().lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
        Self { text, stream: Stream::Stdout, status: 0 }
    }

    /// Prints the text. A reader that is gone is no failure; an answer that cannot be written is one.
    pub fn print(&self) -> ExitCode {
        let text = self.text.as_bytes();
        let written = match self.stream {
            Stream::Stdout => written_to(std::io::stdout(), text),
            Stream::Stderr => written_to(std::io::stderr(), text),
        };
        if let Err(error) = written.or_else(unless_reader_is_gone) {
            // Where this cannot be written either, the status says it.
            let text = format!("{}: {}\n", program(), unwritten(&error));
            written_to(std::io::stderr(), text.as_bytes()).ok();
            return ExitCode::from(if self.status == 0 { Status::InputOutput.code() } else { self.status });
        }
        ExitCode::from(self.status)
    }
}

fn written_to(mut output: impl Write, text: &[u8]) -> io::Result<()> {
    output.write_all(text)?;
    output.flush()
}

/// `Ok` where the reader has read enough.
pub fn unless_reader_is_gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

/// As it was called.
fn program() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    Path::new(&called).file_name().unwrap_or(&called).to_string_lossy().escape_debug().to_string()
}

/// What is said of it.
pub fn unwritten(error: &io::Error) -> String {
    format!("the answer could not be written to standard output: {error}")
}
