//! Tells a definite "no" of the server from an unknown outcome, in one table.
//!
//! Never: an unknown outcome taken for a "no". A request that failed on our side of the wire may yet be applied.

use zookeeper_client::{Error, MultiWriteError};

use crate::core::event::Denial;

/// Why a request has no good answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// The server refused; nothing was written.
    Denied(Denial),
    /// Applied, not applied, or still to be applied.
    Unknown(String),
}

/// What one operation of a multi is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Candidate,
    Term,
    Record,
}

impl Fault {
    pub const CONFLICT: Self = Self::Denied(Denial::Conflict);
    pub const CANDIDATE_GONE: Self = Self::Denied(Denial::CandidateGone);

    pub fn unknown(why: &str) -> Self {
        Self::Unknown(why.to_owned())
    }

    /// For a multi whose operations are about `parts`, in this order.
    pub fn of_multi(error: &MultiWriteError, parts: &[Part]) -> Self {
        let (index, source) = match error {
            MultiWriteError::RequestFailed { source } => return Self::from(source),
            MultiWriteError::OperationFailed { index, source } => (index, source),
        };
        match (parts.get(*index), source) {
            (Some(Part::Candidate), Error::NoNode) => Self::CANDIDATE_GONE,
            (Some(Part::Term | Part::Record), Error::NoNode | Error::BadVersion) => Self::CONFLICT,
            _ => Self::from(source),
        }
    }
}

impl From<&Error> for Fault {
    /// For a single request: what a missing znode means, its sender knows.
    fn from(error: &Error) -> Self {
        match error {
            Error::NoAuth | Error::AuthFailed | Error::InvalidAcl => Self::Denied(Denial::Forbidden),
            other => Self::Unknown(other.to_string()),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [Part; 3] = [Part::Candidate, Part::Term, Part::Record];

    fn failed(index: usize, source: Error) -> Fault {
        Fault::of_multi(&MultiWriteError::OperationFailed { index, source }, &PARTS)
    }

    #[test]
    fn each_operation_of_a_multi_has_its_own_no() {
        assert_eq!(failed(0, Error::NoNode), Fault::CANDIDATE_GONE);
        for index in [1, 2] {
            assert_eq!(failed(index, Error::BadVersion), Fault::CONFLICT);
            assert_eq!(failed(index, Error::NoNode), Fault::CONFLICT);
        }
        assert_eq!(failed(2, Error::NoAuth), Fault::Denied(Denial::Forbidden));
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
            Error::UnexpectedErrorCode(-99),
        ];
        for source in unknown {
            let request = MultiWriteError::RequestFailed { source: source.clone() };
            assert!(matches!(Fault::of_multi(&request, &PARTS), Fault::Unknown(_)), "{source}");
            assert!(matches!(Fault::from(&source), Fault::Unknown(_)), "{source}");
            for index in 0..4 {
                assert!(matches!(failed(index, source.clone()), Fault::Unknown(_)), "{source} at {index}");
            }
        }
    }

    #[test]
    fn an_index_or_a_code_that_does_not_belong_there_is_unknown() {
        assert!(matches!(failed(0, Error::BadVersion), Fault::Unknown(_)));
        assert!(matches!(failed(3, Error::NoNode), Fault::Unknown(_)));
        let request = MultiWriteError::RequestFailed { source: Error::NoNode };
        assert!(matches!(Fault::of_multi(&request, &PARTS), Fault::Unknown(_)));
    }
}
