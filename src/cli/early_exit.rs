//! A text that ends the program before it begins: help, the version, or an error.

use std::io::Write;
use std::process::ExitCode;

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

    /// Prints the text. A closed output is no failure.
    pub fn print(&self) -> ExitCode {
        let text = self.text.as_bytes();
        match self.stream {
            Stream::Stdout => std::io::stdout().write_all(text),
            Stream::Stderr => std::io::stderr().write_all(text),
        }
        .ok();
        ExitCode::from(self.status)
    }
}
