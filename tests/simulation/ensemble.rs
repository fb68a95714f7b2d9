//! What `ZooKeeper` promises, and no more: linearizable writes, ephemeral candidates, one-shot watches, and reads that
//! may come from any state since the session's last one.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::Duration;

use zk_leader_run::core::action::{Conditions, Entry};
use zk_leader_run::core::event::{Denial, LastRun, Nonce, Place};
use zk_leader_run::core::settings::Recipe;
use zk_leader_run::core::vouching::{Roster, Vouching};

use crate::runs::Marker;

/// How many states back a server may lag.
const HISTORY: usize = 12;

pub type SessionKey = usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    pub owner: SessionKey,
    pub candidacy: u32,
    pub priority: i16,
    pub sequence: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Term {
    pub version: i32,
    pub mzxid: i64,
    pub lease: Duration,
    /// `--vouch-limit` of its leader.
    pub limit: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredRecord {
    pub version: i32,
    pub mzxid: i64,
    pub held: bool,
    pub waiting_on: Option<LastRun>,
    pub lease: Duration,
    pub nonce: Nonce,
    pub token: i64,
    pub vouching: Option<Vouching>,
    /// Whose it is, if it is held and says so.
    pub candidate: Option<(SessionKey, u32)>,
}

impl StoredRecord {
    fn new(state: &State, version: i32, held: bool, entry: Entry) -> Self {
        let Entry { nonce, lease, waiting_on, token, vouching } = entry;
        let of_a_take_over = if held && nonce != Nonce::UNKNOWN { state.zxid } else { 0 };
        let token = token.unwrap_or(of_a_take_over);
        Self { version, mzxid: state.zxid, held, waiting_on, lease, nonce, token, vouching, candidate: None }
    }

    fn of_nobody(state: &State, held: bool, lease: Duration) -> Self {
        let limit = state.term.filter(|_| held).and_then(|term| term.limit);
        let vouching = limit.map(|limit| Vouching { limit, roster: Roster::EMPTY });
        Self::new(state, 0, held, Entry { nonce: Nonce::UNKNOWN, token: None, lease, waiting_on: None, vouching })
    }
}

#[derive(Clone, Debug)]
pub struct State {
    pub zxid: i64,
    pub candidates: Vec<Candidate>,
    pub next_sequence: u64,
    pub term: Option<Term>,
    pub record: Option<StoredRecord>,
    pub runs: Vec<Marker>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watched {
    Candidate(u64),
    Record,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    session: SessionKey,
    candidacy: u32,
    what: Watched,
}

/// A watch that fired.
#[derive(Clone, Copy, Debug)]
pub struct Fired {
    pub session: SessionKey,
    pub candidacy: u32,
    pub what: Watched,
}

#[derive(Clone, Debug)]
pub struct Session {
    pub alive: bool,
    pub timeout: Duration,
    pub instance: usize,
    /// Grows with every contact; an expiry that was due before is void.
    pub epoch: u32,
    /// The newest request that was served: a creation never overtakes it (requests of one session stay in order).
    pub served: usize,
    /// The newest candidacy that has had its candidate; in it, none is created again.
    seated: u32,
    seen: i64,
}

#[derive(Debug)]
pub struct Ensemble {
    pub recipe: Recipe,
    /// Beside other libraries nobody but the sequence says who is first.
    pub is_shared: bool,
    pub sessions: Vec<Session>,
    states: VecDeque<State>,
    watches: Vec<Watch>,
    fired: Vec<Fired>,
}

impl Ensemble {
    pub fn new(recipe: Recipe, is_shared: bool) -> Self {
        let first =
            State { zxid: 1, candidates: Vec::new(), next_sequence: 0, term: None, record: None, runs: Vec::new() };
        let states = VecDeque::from([first]);
        Self { recipe, is_shared, sessions: Vec::new(), states, watches: Vec::new(), fired: Vec::new() }
    }

    pub fn state(&self) -> &State {
        self.states.back().unwrap()
    }

    /// A state that the session may be shown: `lag` writes old, but never older than what it has seen.
    pub fn seen_by(&mut self, session: SessionKey, lag: usize) -> State {
        let seen = self.sessions[session].seen;
        let oldest = self.states.len() - 1 - lag.min(self.states.len() - 1);
        let state = self.states.iter().skip(oldest).find(|state| state.zxid >= seen).unwrap().clone();
        self.sessions[session].seen = state.zxid;
        state
    }

    /// The watches that have fired since the last call.
    pub fn take_fired(&mut self) -> Vec<Fired> {
        std::mem::take(&mut self.fired)
    }

    pub fn open_session(&mut self, instance: usize, timeout: Duration) -> SessionKey {
        self.sessions.push(Session {
            alive: true,
            timeout,
            instance,
            epoch: 0,
            served: 0,
            seated: 0,
            seen: self.state().zxid,
        });
        self.sessions.len() - 1
    }

    pub fn end_session(&mut self, session: SessionKey) {
        self.sessions[session].alive = false;
        self.watches.retain(|watch| watch.session != session);
        if self.state().candidates.iter().any(|candidate| candidate.owner == session) {
            self.commit(|state| state.candidates.retain(|candidate| candidate.owner != session));
        }
    }

    /// Creates what is missing: a new base costs no wait, a lost record costs the longest one known.
    pub fn bootstrap(&mut self, lease: Duration) {
        let (term, record) = (self.state().term, self.state().record);
        if let Some(term) = term.filter(|_| record.is_none()) {
            self.commit(|state| {
                state.record = Some(StoredRecord::of_nobody(state, true, lease.max(term.lease)));
            });
        } else if record.is_none() {
            self.commit(|state| {
                state.term = Some(Term { version: 0, mzxid: state.zxid, lease, limit: None });
                state.record = Some(StoredRecord::of_nobody(state, false, lease));
            });
        }
    }

    /// Finds the candidate of this candidacy, or creates it; in the single recipe only if the seat is empty.
    pub fn enter(&mut self, session: SessionKey, candidacy: u32, priority: i16) {
        let taken = self.recipe == Recipe::Single && !self.state().candidates.is_empty();
        let seated = self.sessions[session].seated >= candidacy;
        if self.own_candidate(session, candidacy).is_none() && !taken && !seated {
            self.sessions[session].seated = candidacy;
            self.commit(|state| {
                let sequence = state.next_sequence;
                state.next_sequence += 1;
                state.candidates.push(Candidate { owner: session, candidacy, priority, sequence });
            });
        }
        self.caught_up(session);
    }

    /// Had its candidate once.
    pub fn was_seated(&self, session: SessionKey, candidacy: u32) -> bool {
        self.sessions[session].seated >= candidacy
    }

    fn own_candidate(&self, session: SessionKey, candidacy: u32) -> Option<Candidate> {
        let mine = |candidate: &&Candidate| candidate.owner == session && candidate.candidacy == candidacy;
        self.state().candidates.iter().find(mine).copied()
    }

    /// The server has applied everything up to its answer to a write of this session.
    fn caught_up(&mut self, session: SessionKey) {
        self.sessions[session].seen = self.state().zxid;
    }

    pub fn watch(&mut self, session: SessionKey, candidacy: u32, what: Watched, as_of: &State) {
        let watch = Watch { session, candidacy, what };
        if differs(as_of, self.state(), what) {
            self.fired.push(Fired { session, candidacy, what });
        } else if !self.watches.iter().any(|old| (old.session, old.candidacy, old.what) == (session, candidacy, what)) {
            self.watches.push(watch);
        }
    }

    /// Of those who stood in the line as it was read: whoever is gone by now, is told of.
    pub fn watch_line(&mut self, session: SessionKey, candidacy: u32, before: &[Candidate]) {
        let as_read = State { candidates: before.to_vec(), ..self.state().clone() };
        for candidate in before {
            self.watch(session, candidacy, Watched::Candidate(candidate.sequence), &as_read);
        }
    }

    /// Those who stand, as our own code orders them: the holder first, then the higher priority, then who came earlier.
    pub fn in_line(&self, candidates: &[Candidate], record: Option<StoredRecord>) -> Vec<Candidate> {
        let holder = record.filter(|record| record.held && !self.is_shared).and_then(|record| record.candidate);
        let is_seated = |one: &Candidate| holder == Some((one.owner, one.candidacy));
        let mut line = candidates.to_vec();
        line.sort_by_key(|one| (!is_seated(one), Reverse(one.priority), one.sequence));
        line
    }

    /// The token of the term whose holder has a lower priority than the next in line, if that is this session's candidate.
    pub fn outranked_by(&self, session: SessionKey, state: &State) -> Option<i64> {
        let line = self.in_line(&state.candidates, state.record);
        let (holder, next) = (line.first()?, line.get(1)?);
        let is_holder = state.record?.held && state.record?.candidate == Some((holder.owner, holder.candidacy));
        let outranks = is_holder && next.owner == session && holder.priority < next.priority && !self.is_shared;
        state.term.filter(|_| outranks).map(|term| term.mzxid)
    }

    /// `check` of the candidate in a multi: in the single recipe the name is everyone's.
    fn has_candidate(&self, session: SessionKey, candidacy: u32) -> bool {
        match self.recipe {
            Recipe::Single => !self.state().candidates.is_empty(),
            _ => self.own_candidate(session, candidacy).is_some(),
        }
    }

    fn meets(&self, conditions: Conditions) -> bool {
        self.state().term.is_some_and(|term| term.version == conditions.term)
            && self.state().record.is_some_and(|record| record.version == conditions.record)
    }

    pub fn take_over(
        &mut self,
        session: SessionKey,
        candidacy: u32,
        conditions: Conditions,
        entry: Entry,
        longest: (Duration, Option<Duration>),
    ) -> Result<(i32, i64, i32), Denial> {
        self.renew(session, candidacy, conditions, entry, Some(longest))?;
        let (record, term) = (self.state().record.unwrap(), self.state().term.unwrap());
        Ok((record.version, term.mzxid, term.version))
    }

    pub fn renew(
        &mut self,
        session: SessionKey,
        candidacy: u32,
        conditions: Conditions,
        entry: Entry,
        new_term: Option<(Duration, Option<Duration>)>,
    ) -> Result<i32, Denial> {
        self.caught_up(session);
        if !self.has_candidate(session, candidacy) {
            return Err(Denial::CandidateGone);
        }
        if !self.meets(conditions) {
            return Err(Denial::Conflict);
        }
        self.commit(|state| {
            let version = conditions.record + 1;
            let candidate = Some((session, candidacy));
            state.record = Some(StoredRecord { candidate, ..StoredRecord::new(state, version, true, entry) });
            if let Some((lease, limit)) = new_term {
                state.term = Some(Term { version: conditions.term + 1, mzxid: state.zxid, lease, limit });
            }
        });
        self.caught_up(session);
        Ok(conditions.record + 1)
    }

    /// A write elsewhere, on condition of the candidate and the term.
    pub fn check(&mut self, session: SessionKey, candidacy: u32, conditions: Conditions) -> Result<(), Denial> {
        self.caught_up(session);
        if !self.has_candidate(session, candidacy) {
            return Err(Denial::CandidateGone);
        }
        let term = self.state().term.is_some_and(|term| term.version == conditions.term);
        if term { Ok(()) } else { Err(Denial::Conflict) }
    }

    /// Takes the marker of a run back.
    pub fn withdraw_run(&mut self, slot: u64) {
        self.commit(|state| state.runs.retain(|other| other.slot != slot));
    }

    /// Writes the marker of a run.
    pub fn set_run(&mut self, marker: Marker) {
        self.commit(|state| {
            state.runs.retain(|other| other.slot != marker.slot);
            state.runs.push(marker);
        });
    }

    /// Frees the record, and deletes the candidate if it is there and not to be kept.
    pub fn release(
        &mut self,
        session: SessionKey,
        candidacy: u32,
        conditions: Conditions,
        entry: Entry,
        keeps_candidate: bool,
    ) -> Result<(), Denial> {
        self.caught_up(session);
        if !self.meets(conditions) {
            let own = |record: &StoredRecord| !record.held && record.nonce == entry.nonce;
            // Our own lost reply.
            return if self.state().record.as_ref().is_some_and(own) { Ok(()) } else { Err(Denial::Conflict) };
        }
        let single = self.recipe == Recipe::Single;
        self.commit(|state| {
            state.record = Some(StoredRecord::new(state, conditions.record + 1, false, entry));
            state.candidates.retain(|candidate| {
                let named = single || candidate.candidacy == candidacy;
                keeps_candidate || candidate.owner != session || !named
            });
        });
        self.caught_up(session);
        Ok(())
    }

    /// By an operator.
    pub fn delete_candidates(&mut self, doomed: impl Fn(&Candidate) -> bool) {
        self.commit(|state| state.candidates.retain(|candidate| !doomed(candidate)));
    }

    /// By an operator.
    pub fn delete_record(&mut self) {
        self.commit(|state| state.record = None);
    }

    fn commit(&mut self, change: impl FnOnce(&mut State)) {
        let mut next = self.state().clone();
        next.zxid += 1;
        change(&mut next);
        let before = self.state();
        let (gone, kept) = self.watches.iter().partition(|watch: &&Watch| differs(before, &next, watch.what));
        let gone: Vec<Watch> = gone;
        self.watches = kept;
        self.fired.extend(gone.into_iter().map(|Watch { session, candidacy, what }| Fired {
            session,
            candidacy,
            what,
        }));
        self.states.push_back(next);
        if self.states.len() > HISTORY {
            self.states.pop_front();
        }
    }
}

/// In the line, the foremost first; and whose departure matters. `None` if the candidate does not stand there.
pub fn place_of(line: &[Candidate], session: SessionKey, candidacy: u32) -> Option<(Place, &[Candidate])> {
    let mine = |candidate: &Candidate| candidate.owner == session && candidate.candidacy == candidacy;
    let index = line.iter().position(mine)?;
    let place = match index {
        0 => Place::First,
        1 => Place::Next,
        _ => Place::Behind(index as u32),
    };
    Some((place, &line[index.saturating_sub(2)..=index]))
}

fn differs(before: &State, after: &State, what: Watched) -> bool {
    match what {
        Watched::Candidate(sequence) => {
            let stands = |state: &State| state.candidates.iter().any(|candidate| candidate.sequence == sequence);
            stands(before) != stands(after)
        }
        Watched::Record => before.record.map(|record| record.mzxid) != after.record.map(|record| record.mzxid),
    }
}
