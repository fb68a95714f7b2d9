//! One request of a machine, from the sending to exactly one answer.

use std::time::Duration;

use zk_leader_run::core::action::Action;
use zk_leader_run::core::event::{Candidacy, Denial, Event, Nonce, Place, Record, Request, View};
use zk_leader_run::core::guard_messages::{CandidateName, Slot};
use zk_leader_run::core::settings::Recipe;

use crate::clock::{MILLI, Real, SECOND};
use crate::ensemble::{Candidate, State, StoredRecord, Watched, place_of};
use crate::host::{Call, Fate};
use crate::script::Mark;
use crate::world::{Occurrence, World};

/// What a session that was never opened is called.
const NO_SESSION: usize = usize::MAX;

impl World {
    /// How long a message of this host takes.
    pub fn latency(&mut self, host: usize) -> Real {
        let now = self.now;
        let host = &mut self.hosts[host];
        let slow = now < host.weather.slow_until;
        let longest = if slow { host.weather.slowest } else { 3 * MILLI };
        host.rng.between(MILLI / 5, longest.max(MILLI))
    }

    pub fn timeout_of(&self, instance: usize) -> Duration {
        self.script.hosts[self.instances[instance].host].session_timeout
    }

    pub fn send(&mut self, instance: usize, candidacy: Candidacy, request: Request, action: Action) {
        let sent_at = self.clock_of(instance).lease;
        let timeout = self.timeout_of(instance).as_nanos() as Real;
        let this = &mut self.instances[instance];
        this.awaited = Some((candidacy, request));
        let host = this.host;
        let client = this.client.filter(|client| !client.told_over);
        let session = client.and_then(|client| client.key).unwrap_or(NO_SESSION);
        let fate = self.draw_fate(host);
        let call = self.calls.len();
        self.calls.push(Call {
            instance,
            session,
            candidacy,
            request,
            action,
            sent_at,
            fate,
            step: 0,
            line: None,
            term_version: 0,
            answered: false,
        });
        let given_up_after = self.hosts[host].rng.between(timeout / 5, timeout);
        if session != NO_SESSION {
            let late = if fate == Fate::Late { self.hosts[host].rng.below(3 * timeout) } else { 0 };
            let at = self.now + self.latency(host) + late;
            self.push(at, Occurrence::Serves { call });
        }
        self.push(self.now + given_up_after, Occurrence::TimesOut { call });
    }

    fn draw_fate(&mut self, host: usize) -> Fate {
        let host = &mut self.hosts[host];
        if self.now >= host.weather.lossy_until {
            return Fate::Answered;
        }
        host.rng.pick(&[Fate::Answered, Fate::Answered, Fate::RequestLost, Fate::ReplyLost, Fate::Late])
    }

    /// The request, or its next part, reaches the ensemble.
    pub fn serve(&mut self, call: usize) {
        let Call { instance, session, fate, .. } = self.calls[call];
        let host = self.instances[instance].host;
        if fate == Fate::RequestLost {
            return;
        }
        if self.is_cut(host) && fate != Fate::Late {
            // Dropped, or queued in the client and sent when the contact is back.
            if self.hosts[host].rng.chance(50) {
                let at = self.hosts[host].weather.cut_until + self.latency(host);
                self.push(at, Occurrence::Serves { call });
            }
            return;
        }
        if !self.ensemble.sessions[session].alive {
            return self.session_refused(instance, session);
        }
        let newest = self.ensemble.sessions[session].served.max(call);
        self.ensemble.sessions[session].served = newest;
        if self.calls[call].request == Request::Enter && newest > call {
            return;
        }
        let step = self.calls[call].step;
        self.calls[call].step += 1;
        match (self.calls[call].action, step) {
            (Action::Enter { candidacy } | Action::Look { candidacy }, 0..=2) => self.look(call, candidacy, step),
            (Action::Observe { candidacy, .. }, _) => self.observe(call, candidacy),
            _ => self.write(call),
        }
    }

    fn next_part(&mut self, call: usize) {
        let host = self.instances[self.calls[call].instance].host;
        let slow = self.now < self.hosts[host].weather.slow_until;
        let delay = if slow { self.latency(host) } else { self.hosts[host].rng.below(MILLI / 10) };
        self.push(self.now + delay, Occurrence::Serves { call });
    }

    fn visible(&mut self, call: usize) -> State {
        let Call { instance, session, .. } = self.calls[call];
        let host = &mut self.hosts[self.instances[instance].host];
        let lag = if self.now < host.weather.lag_until { host.rng.below(8) as usize } else { 0 };
        self.ensemble.seen_by(session, lag)
    }

    /// The line, then the term, then the record: three reads, and others write between them.
    fn look(&mut self, call: usize, candidacy: Candidacy, step: u8) {
        let Call { session, request, .. } = self.calls[call];
        match step {
            0 => {
                let seated_before = self.ensemble.recipe == Recipe::Sequential && request == Request::Look;
                if !seated_before {
                    let priority = self.instances[self.calls[call].instance].priority;
                    self.ensemble.enter(session, candidacy.0, priority);
                }
                if request == Request::Enter {
                    self.ensemble.bootstrap(self.own_lease(self.calls[call].instance));
                }
                self.look_at_line(call, candidacy);
            }
            1 => {
                self.calls[call].term_version = self.visible(call).term.map_or(0, |term| term.version);
                self.next_part(call);
            }
            _ => self.look_at_record(call, candidacy),
        }
    }

    fn look_at_line(&mut self, call: usize, candidacy: Candidacy) {
        let session = self.calls[call].session;
        let state = self.visible(call);
        let mine = |candidate: &&Candidate| (candidate.owner, candidate.candidacy) == (session, candidacy.0);
        if let Some(own) = state.candidates.iter().find(mine) {
            self.ensemble.watch(session, candidacy.0, Watched::Candidate(own.sequence), &state);
            self.calls[call].line = Some(state.candidates);
            self.next_part(call);
        } else if self.ensemble.was_seated(session, candidacy.0) {
            self.deny(call, Denial::CandidateGone);
        } else if let (Recipe::Single, Some(seated)) = (self.ensemble.recipe, state.candidates.first()) {
            self.ensemble.watch(session, candidacy.0, Watched::Candidate(seated.sequence), &state);
            self.next_part(call);
        } else {
            self.deny(call, Denial::CandidateGone);
        }
    }

    fn look_at_record(&mut self, call: usize, candidacy: Candidacy) {
        let Call { instance, session, term_version, .. } = self.calls[call];
        let mut state = self.visible(call);
        if state.record.is_none() {
            self.ensemble.bootstrap(self.own_lease(instance));
            state = self.ensemble.seen_by(session, 0);
        }
        let Some(stored) = state.record else { return self.deny(call, Denial::Conflict) };
        let candidates = self.calls[call].line.take();
        let line = candidates.map(|candidates| self.ensemble.in_line(&candidates, Some(stored)));
        let place = match line.as_deref().and_then(|line| place_of(line, session, candidacy.0)) {
            Some((place, watched)) => {
                self.ensemble.watch_line(session, candidacy.0, watched);
                place
            }
            None => Place::Next,
        };
        let is_first_lower = line.as_deref().and_then(|line| Some(line.first()?.priority < line.get(1)?.priority));
        let is_held = stored.held && stored.candidate.is_some() && !self.ensemble.is_shared;
        if !matches!(place, Place::Behind(_)) {
            self.ensemble.watch(session, candidacy.0, Watched::Record, &state);
        }
        let view = View {
            place,
            candidate: CandidateName::EMPTY,
            session_id: session as i64,
            term_version,
            record: read(stored),
            outranks: place == Place::Next && is_held && is_first_lower == Some(true),
            is_revoked: false,
        };
        self.answer(call, Event::Seen { candidacy, view });
    }

    fn observe(&mut self, call: usize, candidacy: Candidacy) {
        let session = self.calls[call].session;
        let state = self.visible(call);
        match state.record {
            Some(stored) => {
                self.ensemble.watch(session, candidacy.0, Watched::Record, &state);
                let term_version = state.term.map_or(0, |term| term.version);
                self.answer(call, Event::Observed { candidacy, record: read(stored), term_version });
            }
            None => self.deny(call, Denial::Conflict),
        }
    }

    fn write(&mut self, call: usize) {
        let Call { instance, session, candidacy, action, sent_at, .. } = self.calls[call];
        let outcome = match action {
            Action::TakeOver { conditions, entry, longest, .. } => self
                .ensemble
                .take_over(session, candidacy.0, conditions, entry, (longest, self.instances[instance].settings.vouch))
                .map(|(version, token, term)| Event::TookOver {
                    candidacy,
                    nonce: entry.nonce,
                    sent_at,
                    version,
                    token,
                    term,
                }),
            Action::Renew { conditions, entry, .. } => self
                .ensemble
                .renew(session, candidacy.0, conditions, entry, None)
                .map(|version| Event::Renewed { candidacy, sent_at, version }),
            Action::Mark { conditions, entry, is_first, .. } => self
                .mark_run((instance, session, candidacy.0), conditions, entry, is_first)
                .map(|is_fresh| Event::Marked { candidacy, is_fresh }),
            Action::Release { conditions, entry, keeps_candidate, .. } => {
                self.complete_run(instance, conditions, entry);
                self.ensemble
                    .release(session, candidacy.0, conditions, entry, keeps_candidate)
                    .map(|()| Event::Released { candidacy })
            }
            _ => return,
        };
        match outcome {
            Ok(event) => {
                self.applied(instance, &action);
                self.answer(call, event);
            }
            Err(denial) => self.deny(call, denial),
        }
    }

    fn applied(&mut self, instance: usize, action: &Action) {
        match action {
            Action::TakeOver { .. } => self.mark(Mark::TakeOverApplied),
            Action::Release { .. } => {
                self.oracle.freed(&self.instances, &self.hosts, instance, self.now, self.script.guarantee);
                self.mark(Mark::ReleaseApplied);
            }
            _ => {}
        }
        self.note(|| format!("ensemble: applied for instance {instance}: {action:?}"));
    }

    fn deny(&mut self, call: usize, denial: Denial) {
        let Call { candidacy, request, .. } = self.calls[call];
        self.answer(call, Event::Denied { candidacy, request, denial });
    }

    fn answer(&mut self, call: usize, event: Event) {
        let host = self.instances[self.calls[call].instance].host;
        if self.calls[call].fate == Fate::Answered {
            let at = self.now + self.latency(host);
            self.push(at, Occurrence::Replies { call, event });
        }
    }

    pub fn reply_arrived(&mut self, call: usize, event: Event) {
        let host = self.instances[self.calls[call].instance].host;
        if !self.is_cut(host) && !self.calls[call].answered {
            self.calls[call].answered = true;
            self.tell_line(self.calls[call].instance);
            self.told(self.calls[call].instance, event);
        }
    }

    /// What was read with the new connection, before or after all that is told meanwhile.
    pub fn glimpses(&mut self, instance: usize) {
        let (delay, may_be_lost) = (self.rng(instance).below(SECOND), self.rng(instance).chance(30));
        if let Some(record) = self.ensemble.state().record.filter(|_| !may_be_lost) {
            self.tell(instance, Event::Glimpsed { record: read(record) }, delay);
        }
    }

    pub fn timed_out(&mut self, call: usize) {
        let Call { instance, candidacy, request, answered, .. } = self.calls[call];
        if !answered {
            self.calls[call].answered = true;
            self.tell(instance, Event::Unanswered { candidacy, request }, 0);
        }
    }

    pub fn own_lease(&self, instance: usize) -> Duration {
        let timeout = self.timeout_of(instance);
        self.instances[instance].settings.wishes.lease.map_or(timeout, |lease| lease.min(timeout))
    }
}

fn read(stored: StoredRecord) -> Record {
    let StoredRecord { version, mzxid, held, waiting_on, lease, nonce, token, vouching, .. } = stored;
    Record { slot: Slot(0), version, mzxid, held, waiting_on, lease, nonce, token, vouching, agrees: true }
}

pub fn is_of(nonce: Nonce, instance: usize) -> bool {
    nonce.instance == instance as u64 + 1
}
