//! Replaces `tls` in a build without it: there are no certificates, and no value of [`Certificates`] exists.

mod certificate;

pub use certificate::{Files, Flaw, Identity, Part};

/// Has no values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Certificates {}

impl Certificates {
    /// # Errors
    /// Always.
    pub fn load(_files: &Files) -> Result<Self, Flaw> {
        let complaint = "is of no use: this build cannot do TLS".to_owned();
        Err(Flaw { part: Part::Authority, complaint, may_pass: false })
    }

    pub(crate) fn refresh(&self) {
        match *self {}
    }

    pub fn holds_key(&self) -> bool {
        match *self {}
    }
}

pub fn can_be_certified(_host: &str) -> bool {
    true
}

pub(crate) mod talk {
    use super::Certificates;

    #[expect(dead_code, reason = "as with TLS")]
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Trouble {
        Network(String),
        TooEarly(String),
        Refused(String),
    }

    #[expect(clippy::unused_async, reason = "as with TLS")]
    pub async fn ask(_host: &str, _port: u16, certificates: &Certificates, _word: &str) -> Result<String, Trouble> {
        match *certificates {}
    }
}
