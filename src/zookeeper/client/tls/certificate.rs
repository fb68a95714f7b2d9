//! Paths of certificates, and errors about them; also in a build without TLS. Opens no file.

use std::path::PathBuf;

/// The paths, and how to check a server's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Files {
    /// The authorities whose signature on a server's certificate we trust.
    pub ca: PathBuf,
    /// Our own certificate, for servers that demand one.
    pub identity: Option<Identity>,
    /// Whether a server's certificate may be for another name.
    pub any_name: bool,
}

/// Our certificate and its private key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The file that is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Authority,
    Certificate,
    Key,
}

/// The error, as the end of a sentence that begins with the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    pub part: Part,
    pub complaint: String,
    /// Only the dates are wrong: the certificate is about to be renewed, or the clock to be set.
    pub may_pass: bool,
}
