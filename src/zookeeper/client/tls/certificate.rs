//! Where certificates are, and what can be wrong with them; the same in a build without TLS.
//!
//! Never: a file that is opened.

use std::path::PathBuf;

/// Where they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Files {
    /// Whose signature on a server's certificate we trust.
    pub ca: PathBuf,
    /// Who we are, for servers that ask.
    pub identity: Option<Identity>,
    /// Whether a server may show a certificate that is not for its name.
    pub any_name: bool,
}

/// A certificate of ours, and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Which file something is wrong with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Authority,
    Certificate,
    Key,
}

/// What is wrong with it, as the end of a sentence that begins with the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    pub part: Part,
    pub complaint: String,
}
