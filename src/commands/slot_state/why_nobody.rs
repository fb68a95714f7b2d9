//! Why no host leads, in words and for programs.

use std::fmt;

use crate::zookeeper::schema::lease::Lease;

/// Why no host leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::commands) enum WhyNobody {
    Disabled {
        by: String,
    },
    /// The lease is free, and no host is in line: all are gone, or may not be elected.
    NoneInLine {
        members: usize,
        /// So many of them may not be elected, and say why.
        barred: usize,
    },
    /// The lease is free, and the first in line may take it.
    Free,
    RecordLost,
    /// This holder is gone.
    LeaseRunsOut {
        id: String,
        whose: Whose,
    },
    /// This holder is there and follows: it ended its term and could not release.
    GaveWay {
        id: String,
        whose: Whose,
        /// That lease has run out.
        is_over: bool,
    },
}

/// Which lease must run out under a holder that runs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::commands) enum Whose {
    Its,
    /// It waited, and never had one of its own.
    Before,
}

impl Whose {
    pub const fn of(lease: &Lease) -> Self {
        if lease.waiting_on.is_some() { Self::Before } else { Self::Its }
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Its => "its lease",
            Self::Before => "the lease before it",
        })
    }
}

impl WhyNobody {
    /// For programs: stable, to be matched on.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Disabled { .. } => "disabled",
            Self::NoneInLine { barred: 0, .. } => "no-contender",
            Self::NoneInLine { .. } => "none-eligible",
            Self::Free => "free",
            Self::RecordLost => "record-lost",
            Self::LeaseRunsOut { .. } => "lease-runs-out",
            Self::GaveWay { .. } => "gave-way",
        }
    }
}

impl fmt::Display for WhyNobody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled { by } => write!(f, "the lease is free, and {by} disabled the election"),
            Self::NoneInLine { members: 0, .. } => f.write_str("the lease is free, and no host takes part"),
            // As for a while after its last process was killed.
            Self::NoneInLine { barred: 0, .. } => f.write_str("the lease is free, and no host is in line"),
            Self::NoneInLine { .. } => f.write_str("the lease is free, and no host may be elected"),
            Self::Free => f.write_str("the lease is free"),
            Self::RecordLost => f.write_str("the record was lost, and its unknown holder's lease has run out"),
            Self::LeaseRunsOut { id, whose } => write!(f, "{id} is gone, and {whose} must run out"),
            Self::GaveWay { id, whose, is_over } => {
                let end = if *is_over { "has run out" } else { "must run out" };
                write!(f, "{id} gave way without releasing, and {whose} {end}")
            }
        }
    }
}
