//! What was said and heard of late: whoever repeats an authentic datagram tells us nothing, and fills no queue. All of it is
//! bounded, and of one election.
//!
//! `core` judges again. An upgrade in place hands it over: an answer or a goodbye may be under way.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::dropped::Reason;
use crate::core::time::Sighting;
use crate::core::vouching::{Question, Reply};

/// An answer to an older question of ours than these is worth nothing.
const QUESTIONS: usize = 32;
/// So many hosts that we ask. At most four are named by one record.
const MEMBERS: usize = 32;
/// So many terms in which we were asked: those with the highest tokens.
const TERMS: usize = 8;
/// Who has asked nothing for so many leases is cut off from us, or needs us no more: it is not told that we are gone.
const LEASES: u32 = 2;

/// A member that we ask.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    member: u64,
    /// Token and number of each question that it has not answered yet.
    open: VecDeque<(i64, u64)>,
    is_gone: bool,
}

/// A term in which we are asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Term {
    token: i64,
    leader: u64,
    /// Of the newest question.
    seq: u64,
    lease: Duration,
    /// Where the newest question came from.
    from: SocketAddr,
    promised: Option<Promised>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Promised {
    at: Sighting,
    is_confirmed: bool,
}

/// A leader that is to be told that we are gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promisee {
    pub leader: u64,
    pub token: i64,
    /// Of the newest question.
    pub seq: u64,
    pub address: SocketAddr,
}

/// See the module page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    election: i64,
    asked: VecDeque<Asked>,
    terms: Vec<Term>,
}

impl Memory {
    /// Forgets what belongs to another election: there, tokens may begin anew.
    pub fn of(&mut self, election: i64) -> &mut Self {
        if self.election != election {
            *self = Self { election, ..Self::default() };
        }
        self
    }

    /// We ask.
    pub fn ask(&mut self, member: u64, question: &Question) {
        let known = self.asked.iter().position(|asked| asked.member == member);
        let known = known.and_then(|at| self.asked.remove(at));
        let mut asked = known.unwrap_or(Asked { member, open: VecDeque::new(), is_gone: false });
        if asked.open.len() == QUESTIONS {
            asked.open.pop_front();
        }
        asked.open.push_back((question.token, question.seq));
        if self.asked.len() == MEMBERS {
            self.asked.pop_front();
        }
        self.asked.push_back(asked);
    }

    /// A member answers us: once to each question.
    pub fn answered(&mut self, reply: &Reply) -> Result<(), Reason> {
        let asked = self.asked.iter_mut().find(|asked| asked.member == reply.member).ok_or(Reason::Unasked)?;
        let question = asked.open.iter().position(|question| *question == (reply.token, reply.seq));
        asked.open.remove(question.ok_or(Reason::Unasked)?);
        Ok(())
    }

    /// A member that we ask says that it is gone. Whether that is new; it is confirmed in any case.
    pub fn gone(&mut self, member: u64) -> Result<bool, Reason> {
        let asked = self.asked.iter_mut().find(|asked| asked.member == member).ok_or(Reason::Unasked)?;
        Ok(!std::mem::replace(&mut asked.is_gone, true))
    }

    /// A leader asks us, from this address.
    pub fn asks(&mut self, question: &Question, from: SocketAddr) -> Result<(), Reason> {
        let Question { leader, token, seq, lease } = *question;
        if let Some(term) = self.terms.iter_mut().find(|term| (term.token, term.leader) == (token, leader)) {
            if seq <= term.seq {
                return Err(Reason::Replay);
            }
            (term.seq, term.lease, term.from) = (seq, lease, from);
            return Ok(());
        }
        // What is forgotten is older than all that is remembered: so it cannot come back.
        if self.terms.len() == TERMS {
            let oldest = self.terms.iter().enumerate().min_by_key(|(_, term)| term.token);
            let (at, _) = oldest.filter(|(_, oldest)| oldest.token < token).ok_or(Reason::Replay)?;
            self.terms.swap_remove(at);
        }
        self.terms.push(Term { token, leader, seq, lease, from, promised: None });
        Ok(())
    }

    /// The ensemble has lost writes, so tokens have gone back: the next terms may all have lower ones than these. Whoever still
    /// leads in one of them asks again; `core` knows the numbers that were heard.
    pub fn forget_terms(&mut self) {
        self.terms.clear();
    }

    /// We answer. Where the newest question of the term came from.
    pub fn reply(&mut self, now: Sighting, reply: &Reply) -> Option<SocketAddr> {
        let is_of = |term: &&mut Term| (term.token, term.leader) == (reply.token, reply.leader);
        let term = self.terms.iter_mut().find(is_of).filter(|term| reply.seq <= term.seq)?;
        if reply.promises {
            term.promised = Some(Promised { at: now, is_confirmed: false });
        }
        Some(term.from)
    }

    /// Those to whom we promised something of late, and who have not confirmed that we are gone.
    pub fn promisees(&self, now: Sighting) -> Vec<Promisee> {
        let is_of_late = |term: &&Term| {
            let promised = term.promised.as_ref().filter(|promised| !promised.is_confirmed);
            promised.is_some_and(|promised| promised.at.until(now) < term.lease * LEASES)
        };
        let waiting = self.terms.iter().filter(is_of_late);
        waiting.map(|&Term { token, leader, seq, from, .. }| Promisee { leader, token, seq, address: from }).collect()
    }

    /// A leader confirms that we are gone.
    pub fn heard(&mut self, leader: u64, token: i64) -> Result<(), Reason> {
        let mut terms = self.terms.iter_mut().filter(|term| (term.token, term.leader) == (token, leader));
        let promised = terms.find_map(|term| term.promised.as_mut()).ok_or(Reason::Unasked)?;
        if std::mem::replace(&mut promised.is_confirmed, true) { Err(Reason::Replay) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
