//! Tells a definite refusal by the server from an unknown outcome, in one table. A request that failed on our side may
//! still be applied, so its outcome is unknown.

use crate::zookeeper::client::connection::{Error, MultiError};

use crate::core::event::{Denial, Grounds};

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RequestError {
    /// The server refused; nothing was written.
    #[error("a znode has changed or is gone")]
    Denied(Denial),
    /// The server refused because a right is missing; nothing was written.
    #[error(transparent)]
    Forbidden(Refusal),
    /// The server answered with an error of another kind, such as a quota that is used up. It is treated like an unknown
    /// outcome; only, the operator is told.
    #[error(transparent)]
    Refused(Complaint),
    /// Applied, not applied, or still to be applied.
    #[error("{0}")]
    Unknown(String),
}

/// The subject of one operation of a multi.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Candidate,
    Term,
    Record,
    /// Only a missing right is a definite refusal here.
    Other,
}

/// One operation of a multi: its subject, the right that it needs, and the znode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PathAccess<'a>(pub Part, pub Right, pub &'a str);

/// A right that `ZooKeeper` knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    Create,
    Read,
    Write,
    Delete,
    /// A new znode takes the ACL of this one, which must be seen as a whole.
    SeeAcl,
}

/// Why the server refused, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The missing right and the znode whose ACL must give it.
    #[error("we may not {what} {path}: its ACL does not give us right {letter}; {REMEDY}", what = .0.words().0,
        letter = .0.words().1, path = if .1.is_empty() { "/" } else { .1 })]
    Right(Right, String),
    #[error("an ACL does not give us a right that we need; {REMEDY}")]
    SomeRight,
    /// We have no identity that the ACL of a new znode names.
    #[error(
        "the server takes no znode with the ACL of --acl: creator needs credentials (--auth-file), and each scheme must \
         be enabled on the servers"
    )]
    Acl,
    #[error("the server refuses our credentials, or demands some; look at --auth-file")]
    Credentials,
    #[error(
        "the servers refuse our login by Kerberos; their logs say why (their keytab, their clock, or auth_to_local), and a new ticket \
         (kdestroy, kinit) may help"
    )]
    Login,
    /// A request that the server does not know.
    #[error(
        "the server does not know this request; it takes ZooKeeper 3.5 or newer (zk-leaderctl doctor tells the version \
         of each server)"
    )]
    TooOld,
}

/// What the server says of a request that it does not carry out, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}{}; {remedy}", if path.is_empty() { String::new() } else { format!(" at {path}") })]
pub struct Complaint {
    why: String,
    remedy: &'static str,
    /// Empty: not known.
    path: String,
}

const QUOTA: &str = "raise or delete the quota of that znode or of one above it (setquota, delquota)";
const SERVERS_LOG: &str = "the server's log may say why";

const REMEDY: &str = "give us credentials that have it (--auth-file), or let the znode's owner grant it (setAcl)";

impl Right {
    /// Its name, and its letter in an ACL.
    const fn words(self) -> (&'static str, char) {
        match self {
            Self::Create => ("create a child of", 'c'),
            Self::Read => ("read", 'r'),
            Self::Write => ("write", 'w'),
            Self::Delete => ("delete a child of", 'd'),
            Self::SeeAcl => ("create a znode with the ACL of", 'a'),
        }
    }
}

impl Refusal {
    /// Its category.
    pub const fn grounds(&self) -> Grounds {
        match self {
            Self::Right(..) | Self::SomeRight => Grounds::Right,
            Self::Acl => Grounds::Acl,
            Self::Credentials => Grounds::Credentials,
            Self::Login => Grounds::Ticket,
            Self::TooOld => Grounds::TooOld,
        }
    }
}

impl RequestError {
    pub const CONFLICT: Self = Self::Denied(Denial::Conflict);
    pub const CANDIDATE_GONE: Self = Self::Denied(Denial::CandidateGone);

    pub fn unknown(why: &str) -> Self {
        Self::Unknown(why.to_owned())
    }

    fn refused(error: &Error, remedy: &'static str) -> Self {
        Self::Refused(Complaint { why: error.to_string(), remedy, path: String::new() })
    }

    /// For a multi of these steps.
    pub(crate) fn of_multi(error: &MultiError, steps: &[PathAccess]) -> Self {
        let (index, source) = match error {
            MultiError::RequestFailed { source } => return Self::from(source),
            MultiError::OperationFailed { index, source } => (index, source),
        };
        match (steps.get(*index), source) {
            (Some(PathAccess(Part::Candidate, ..)), Error::NoNode) => Self::CANDIDATE_GONE,
            (Some(PathAccess(Part::Term | Part::Record, ..)), Error::NoNode | Error::BadVersion) => Self::CONFLICT,
            (Some(PathAccess(_, right, path)), _) => Self::from(source).without(*right, path),
            (None, _) => Self::from(source),
        }
    }

    /// Adds this right on this znode if a right is missing, and the znode to a complaint.
    pub fn without(self, right: Right, path: &str) -> Self {
        match self {
            Self::Refused(complaint) if complaint.path.is_empty() => {
                Self::Refused(Complaint { path: path.to_owned(), ..complaint })
            }
            Self::Forbidden(Refusal::SomeRight) => Self::Forbidden(Refusal::Right(right, path.to_owned())),
            other => other,
        }
    }
}

/// The outcome for a znode; `None`: it does not exist.
pub(crate) fn if_there<T>(outcome: Result<T, Error>) -> Result<Option<T>, RequestError> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The outcome of a read of this znode; `None`: it does not exist.
pub(crate) fn if_there_at<T>(path: &str, read: Result<T, Error>) -> Result<Option<T>, RequestError> {
    if_there(read).map_err(|error| error.without(Right::Read, path))
}

/// Why there is no session, for messages.
pub(crate) fn no_session(error: &Error) -> String {
    match error {
        Error::NoHosts => "no server opened a session".to_owned(),
        Error::Timeout => "no server answered in time".to_owned(),
        other => other.to_string(),
    }
}

const EPHEMERAL: &str = "another program holds that znode, or one above it, as an ephemeral one; choose another place";

impl From<&Error> for RequestError {
    /// For a single request. Its sender knows what a missing znode means.
    fn from(error: &Error) -> Self {
        match error {
            Error::NoAuth => Self::Forbidden(Refusal::SomeRight),
            Error::InvalidAcl => Self::Forbidden(Refusal::Acl),
            Error::AuthFailed => Self::Forbidden(Refusal::Credentials),
            Error::Unimplemented => Self::Forbidden(Refusal::TooOld),
            Error::QuotaExceeded => Self::refused(error, QUOTA),
            Error::UnexpectedErrorCode(_) => Self::refused(error, SERVERS_LOG),
            Error::NoChildrenForEphemerals => Self::refused(error, EPHEMERAL),
            other => Self::Unknown(other.to_string()),
        }
    }
}

impl From<Error> for RequestError {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [PathAccess; 3] = [
        PathAccess(Part::Candidate, Right::Read, "/c"),
        PathAccess(Part::Term, Right::Read, "/t"),
        PathAccess(Part::Record, Right::Write, "/r"),
    ];

    fn failed(index: usize, source: Error) -> RequestError {
        RequestError::of_multi(&MultiError::OperationFailed { index, source }, &STEPS)
    }

    #[test]
    fn each_operation_of_a_multi_has_its_own_no() {
        assert_eq!(failed(0, Error::NoNode), RequestError::CANDIDATE_GONE);
        for index in [1, 2] {
            assert_eq!(failed(index, Error::BadVersion), RequestError::CONFLICT);
            assert_eq!(failed(index, Error::NoNode), RequestError::CONFLICT);
        }
        let missing = Refusal::Right(Right::Write, "/r".to_owned());
        assert_eq!(failed(2, Error::NoAuth), RequestError::Forbidden(missing));
    }

    #[test]
    fn a_refusal_names_the_right_the_znode_and_the_remedy() {
        let said = |error: Error| match RequestError::from(error).without(Right::Create, "") {
            RequestError::Forbidden(refusal) => refusal.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(
            said(Error::NoAuth)
                .starts_with("we may not create a child of /: its ACL does not give us right c; give us credentials")
        );
        assert!(said(Error::InvalidAcl).contains("creator needs credentials"));
        assert!(said(Error::AuthFailed).contains("refuses our credentials"));
        assert!(said(Error::Unimplemented).contains("takes ZooKeeper 3.5 or newer"));
        let known = RequestError::from(Error::NoAuth).without(Right::Read, "/a");
        assert_eq!(known.clone().without(Right::Write, "/b"), known, "the first to know knows best");
    }

    #[test]
    fn only_a_definite_word_of_the_server_is_a_no() {
        let unknown = [
            Error::ConnectionLoss,
            Error::Timeout,
            Error::SessionExpired,
            Error::SessionMoved,
            Error::ClientClosed,
            Error::NoHosts,
            Error::RuntimeInconsistent,
            Error::Throttled,
            Error::UnexpectedError("?".into()),
        ];
        for source in unknown {
            let request = MultiError::RequestFailed { source: source.clone() };
            assert!(matches!(RequestError::of_multi(&request, &STEPS), RequestError::Unknown(_)), "{source}");
            assert!(matches!(RequestError::from(&source), RequestError::Unknown(_)), "{source}");
            for index in 0..4 {
                assert!(matches!(failed(index, source.clone()), RequestError::Unknown(_)), "{source} at {index}");
            }
        }
    }

    #[test]
    fn another_error_of_the_server_is_told_with_its_znode_and_the_remedy() {
        let quota = failed(2, Error::QuotaExceeded);
        assert!(matches!(quota, RequestError::Refused(_)), "{quota:?}");
        assert!(quota.to_string().starts_with("exceed path quota at /r; raise or delete the quota"), "{quota}");
        let other = RequestError::from(Error::UnexpectedErrorCode(-1));
        assert_eq!(other.to_string(), "unexpected error code: -1; the server's log may say why");
    }

    #[test]
    fn an_index_or_a_code_that_does_not_belong_there_is_unknown() {
        assert!(matches!(failed(0, Error::BadVersion), RequestError::Unknown(_)));
        assert!(matches!(failed(3, Error::NoNode), RequestError::Unknown(_)));
        let request = MultiError::RequestFailed { source: Error::NoNode };
        assert!(matches!(RequestError::of_multi(&request, &STEPS), RequestError::Unknown(_)));
    }
}
