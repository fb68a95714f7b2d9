//! A machine on a stage: told events in words, and remembered for what it last asked.

use std::time::Duration;

use zk_leader_run::core::action::{Action, PhaseName};
use zk_leader_run::core::event::{Candidacy, SessionNumber};
use zk_leader_run::core::guard_messages::{Order, RunId};
use zk_leader_run::core::machine::{Machine, Settings};
use zk_leader_run::core::time::{Now, Sighting, Timestamp};

use crate::parse;

/// The ids and versions that the machine used last.
#[derive(Clone, Copy, Default, Debug)]
pub struct Memory {
    pub session: SessionNumber,
    pub candidacy: Candidacy,
    pub run: RunId,
    pub sending: u64,
    pub sent_at: Duration,
    pub version: i32,
    pub term: i32,
    pub token: i64,
}

#[derive(Clone, Debug)]
pub struct Supervisor {
    machine: Machine,
    memory: Memory,
}

impl Supervisor {
    pub fn new(settings: &Settings) -> Self {
        Self { machine: Machine::new(*settings, moment(Duration::ZERO)), memory: Memory::default() }
    }

    pub fn tell(&mut self, at: Duration, text: &str) -> Vec<Action> {
        let event = parse::event(text, &self.memory);
        let actions = self.machine.handle(moment(at), event);
        for action in &actions {
            self.remember(at, action);
        }
        actions
    }

    /// What the next program makes of this machine in an upgrade in place.
    pub fn upgraded(&self, at: Duration, settings: &Settings) -> Self {
        let state = self.machine.hand_over(moment(at), Timestamp::ZERO).expect("a quiet moment");
        let text = serde_json::to_string(&state).unwrap();
        let machine = Machine::take_up(settings, Duration::from_secs(4), serde_json::from_str(&text).unwrap());
        let mut machine = machine.expect("it fits");
        machine.resume_session(moment(at));
        Self { machine, memory: self.memory }
    }

    /// What the next program makes of what this machine leaves it when the process executes itself after a standstill.
    pub fn started_anew(&self, at: Duration, settings: &Settings) -> Self {
        let past = serde_json::to_string(&self.machine.past()).unwrap();
        let mut machine = Machine::new(*settings, moment(at));
        machine.recall(serde_json::from_str(&past).unwrap());
        machine.know_earlier(vec![parse::EARLIER]);
        Self { machine, memory: Memory::default() }
    }

    /// All that the machine remembers, as text.
    pub fn memory(&self) -> String {
        format!("{:?}", self.machine)
    }

    pub fn phase(&self) -> PhaseName {
        self.machine.phase()
    }

    /// Whether it says that it holds a term.
    pub fn holds_a_term(&self) -> bool {
        self.machine.snapshot().held_term.is_some()
    }

    /// Whether it says that this process is about to end.
    pub fn is_ending(&self) -> bool {
        self.machine.snapshot().is_ending
    }

    /// Whether a request to stop would be another one now, which does not wait.
    pub fn hastens_stop(&self) -> bool {
        self.machine.hastens_stop()
    }

    /// Whether an order keeps every host from running the command.
    pub fn is_disabled(&self) -> bool {
        self.machine.snapshot().disabled
    }

    pub fn next_deadline(&self, at: Duration) -> Option<Timestamp> {
        self.machine.next_deadline(moment(at))
    }

    fn remember(&mut self, at: Duration, action: &Action) {
        let memory = &mut self.memory;
        match *action {
            Action::Connect { session } => memory.session = session,
            Action::Enter { candidacy } => memory.candidacy = candidacy,
            Action::TakeOver { conditions, entry, .. } | Action::Renew { conditions, entry, .. } => {
                memory.sending = entry.nonce.sending;
                memory.sent_at = at;
                (memory.version, memory.term) = (conditions.record, conditions.term);
            }
            Action::Guard(Order::Start { run, grant, .. }) => (memory.run, memory.token) = (run, grant.token),
            Action::Fence { grant } | Action::RunStep { grant, .. } => memory.token = grant.token,
            _ => {}
        }
    }
}

/// Both clocks of this host start with the story and run alike.
fn moment(at: Duration) -> Now {
    Now { lease: Timestamp::ZERO.after(at), observer: Sighting::ZERO.after(at) }
}
