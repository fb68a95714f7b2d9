//! Text as settings and events.

use std::collections::BTreeMap;
use std::time::Duration;

use zk_leader_run::core::event::{
    Denial, Event, Grounds, Ineligibility, LastRun, Nonce, Place, Record, Request, StepOutcome, View,
};
use zk_leader_run::core::guard_messages::{CandidateName, Cause, ChildStatus, Report, RunId, Slot};
use zk_leader_run::core::lease::Wishes;
use zk_leader_run::core::machine::Settings;
use zk_leader_run::core::restart::Rules;
use zk_leader_run::core::settings::{Guarantee, OnExit, OnLoss, OnPause, Preparations, Service, StepKind, StepLimits};
use zk_leader_run::core::time::Timestamp;
use zk_leader_run::core::vouching::{Question, Reply, Roster, Vouching, Word};

use crate::harness::Memory;

pub const INSTANCE: u64 = 7;
/// Of an earlier program of the process.
pub const EARLIER: u64 = 6;

/// `name key=value word …`
pub struct Phrase<'a> {
    pub name: &'a str,
    pub words: Vec<&'a str>,
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Phrase<'a> {
    pub fn new(text: &'a str) -> Self {
        let mut parts = text.split_whitespace();
        let name = parts.next().expect("a name");
        let (mut words, mut values) = (Vec::new(), BTreeMap::new());
        for part in parts {
            match part.split_once('=') {
                Some((key, value)) => {
                    values.insert(key, value);
                }
                None => words.push(part),
            }
        }
        Self { name, words, values }
    }

    fn value(&self, key: &str) -> Option<&'a str> {
        self.values.get(key).copied()
    }

    fn number<N: std::str::FromStr>(&self, key: &str) -> Option<N> {
        self.value(key).map(|text| text.parse().ok().unwrap_or_else(|| panic!("{key}={text} is not a number")))
    }

    fn duration(&self, key: &str) -> Option<Duration> {
        self.value(key).map(duration)
    }

    fn word(&self, index: usize) -> &'a str {
        self.words.get(index).unwrap_or_else(|| panic!("{} lacks a word", self.name))
    }
}

pub fn duration(text: &str) -> Duration {
    let seconds = text.strip_suffix('s').unwrap_or_else(|| panic!("{text} has no unit"));
    Duration::from_secs_f64(seconds.parse().unwrap_or_else(|_| panic!("{text} is no duration")))
}

pub fn settings(text: &str) -> Settings {
    let said = Phrase::new(text);
    let on_pause = match said.value("on-pause") {
        Some("freeze") => OnPause::Freeze,
        Some("signal") => OnPause::Signal { pause: 10, resume: Some(12) },
        _ => OnPause::Run,
    };
    Settings {
        wishes: Wishes {
            lease: said.duration("lease"),
            reserve: said.duration("reserve"),
            frozen_while_paused: on_pause == OnPause::Freeze,
            grace: said.duration("grace"),
            max_pause: said.duration("max-pause"),
            is_shared: said.words.contains(&"shared"),
        },
        guarantee: if said.value("max-pause").is_some() { Guarantee::AtLeastOne } else { Guarantee::AtMostOne },
        on_pause,
        on_exit: match said.value("on-exit") {
            Some("rejoin") => OnExit::Rejoin,
            Some("restart") => OnExit::Restart,
            _ => OnExit::Exit,
        },
        on_loss: if said.value("on-loss") == Some("exit") { OnLoss::Exit } else { OnLoss::Rejoin },
        wait: said.duration("wait"),
        connect_timeout: said.duration("connect-timeout"),
        stop_timeout: said.duration("stop-timeout").unwrap_or(Duration::from_secs(10)),
        service: service(&said),
        preparations: Preparations { fences: said.words.contains(&"fences"), marks: said.words.contains(&"marks") },
        steps: StepLimits { before_start: said.duration("before-start"), after_stop: said.duration("after-stop") },
        vouch: said.duration("vouch-limit"),
        instance: INSTANCE,
    }
}

fn service(said: &Phrase) -> Service {
    let usual = Service::default();
    Service {
        restart: Rules {
            most: said.number("max-restarts").or(usual.restart.most),
            min_interval: said.duration("min-start-interval").unwrap_or_default(),
            ..usual.restart
        },
        stand_back: said.duration("stand-back").unwrap_or(usual.stand_back),
        timeout: said.duration("timeout"),
        start_deadline: said.duration("start-deadline"),
        takeover_delay: said.duration("takeover-delay").unwrap_or_default(),
    }
}

/// The ids that are not said are those that the machine used last.
pub fn event(text: &str, memory: &Memory) -> Event {
    let said = Phrase::new(text);
    of_session(&said, memory)
        .or_else(|| of_vouching(&said))
        .or_else(|| of_election(&said, memory))
        .or_else(|| of_guard(&said, memory))
        .unwrap_or_else(|| panic!("unknown event: {text}"))
}

fn roster(text: &str) -> Roster {
    text.split('+').map(|instance| instance.parse::<u64>().unwrap()).collect()
}

/// Another leader is instance 9, whose term has token 50; ours has the one that is said.
fn of_vouching(said: &Phrase) -> Option<Event> {
    let (token, seq) = (said.number("token").unwrap_or(50), said.number("seq").unwrap_or(1));
    let lease = said.duration("lease").unwrap_or_default();
    let reply =
        |promises| Reply { member: said.number("by").unwrap_or_default(), leader: INSTANCE, token, seq, promises };
    Some(Event::Vouching(match said.name {
        "asked" => Word::Asked(Question { leader: 9, token, seq, lease }),
        "promised" => Word::Answered(reply(true)),
        "refused" => Word::Answered(reply(false)),
        "left" => Word::Left { instance: said.number("instance").unwrap_or_default() },
        "line-known" => Word::Line(roster(said.word(0))),
        _ => return None,
    }))
}

fn of_session(said: &Phrase, memory: &Memory) -> Option<Event> {
    let session = said.number("session").map_or(memory.session, zk_leader_run::core::event::SessionNumber);
    Some(match said.name {
        "ticked" => Event::Ticked,
        "clock-jumped" => Event::ClockJumped,
        "connected" => Event::Connected { session, negotiated: said.duration("t").unwrap_or(Duration::from_secs(4)) },
        "unreachable" => Event::Unreachable { session },
        "rejected" => Event::Rejected { session, grounds: Grounds::Credentials },
        "contact-lost" => Event::ContactLost { session },
        "contact-restored" => Event::ContactRestored { session },
        "session-over" => Event::SessionOver { session },
        "stop-requested" => Event::StopRequested,
        "hung-up" => Event::HungUp,
        "signal-received" => Event::SignalReceived { signal: said.word(0).parse().unwrap() },
        _ => return None,
    })
}

fn of_election(said: &Phrase, memory: &Memory) -> Option<Event> {
    let candidacy = said.number("candidacy").map_or(memory.candidacy, zk_leader_run::core::event::Candidacy);
    let sent_at = Timestamp::ZERO.after(said.duration("sent").unwrap_or(memory.sent_at));
    let version = said.number("version").unwrap_or(memory.version + 1);
    Some(match said.name {
        "seen" => {
            let term_version = said.number("term").unwrap_or(memory.term);
            let view = View {
                place: place(said.word(0)),
                candidate: CandidateName::EMPTY,
                session_id: 1,
                term_version,
                record: record(said, memory),
                outranks: false,
                is_revoked: said.words.contains(&"revoked"),
            };
            Event::Seen { candidacy, view }
        }
        "observed" => {
            let term_version = said.number("term").unwrap_or(memory.term);
            Event::Observed { candidacy, record: record(said, memory), term_version }
        }
        "glimpsed" => Event::Glimpsed { record: record(said, memory) },
        "line-changed" => Event::LineChanged { candidacy },
        "record-changed" => Event::RecordChanged { candidacy },
        "took-over" => {
            let nonce = Nonce { instance: INSTANCE, sending: said.number("nonce").unwrap_or(memory.sending) };
            let term = said.number("term").unwrap_or(memory.term + 1);
            let token = said.number("token").unwrap_or(100 + i64::from(version));
            Event::TookOver { candidacy, nonce, sent_at, version, token, term }
        }
        "renewed" => Event::Renewed { candidacy, sent_at, version },
        "marked" => Event::Marked { candidacy, is_fresh: said.words.first() == Some(&"fresh") },
        "released" => Event::Released { candidacy },
        "denied" => Event::Denied { candidacy, request: request(said.word(0)), denial: denial(said.word(1)) },
        "unanswered" => Event::Unanswered { candidacy, request: request(said.word(0)) },
        _ => return None,
    })
}

fn of_guard(said: &Phrase, memory: &Memory) -> Option<Event> {
    let run = said.number("run").map_or(memory.run, RunId);
    let report = match said.name {
        "taken" => Report::Taken { run },
        "started" => Report::Started { run, pid: 1 },
        "stopping" => Report::Stopping { run },
        "command-ended" => Report::CommandEnded { run, status: status(said.word(0)) },
        "tree-ended" => Report::TreeEnded { run, status: status(said.word(0)), cause: cause(said.word(1)) },
        "stuck" => Report::Stuck { run, survivors: 1 },
        "fenced" => {
            let token = said.number("token").unwrap_or(memory.token);
            return Some(Event::Fenced { token, is_fenced: said.word(0) == "well" });
        }
        "step-ended" => {
            let token = said.number("token").unwrap_or(memory.token);
            return Some(Event::StepEnded { step: step(said.word(0)), token, outcome: outcome(said.word(1)) });
        }
        "barred" | "unbarred" => {
            return Some(Event::Ineligible { reason: bar(said.word(0)), on: said.name == "barred" });
        }
        "id-taken" => return Some(Event::IdTaken),
        "guard-gone" => return Some(Event::GuardGone),
        "check-gone" => return Some(Event::CheckGone { stood_still: said.words.contains(&"stood-still") }),
        "orphans-ended" => return Some(Event::OrphansEnded),
        _ => return None,
    };
    Some(Event::Guard(report))
}

/// `free`, `ours` (or `nonce=2`), `earlier`, `other`, `unknown`.
fn record(said: &Phrase, memory: &Memory) -> Record {
    let owner = said.words.last().copied().unwrap_or_default();
    let version = said.number("record").unwrap_or(memory.version);
    let nonce = match owner {
        "ours" => Nonce { instance: INSTANCE, sending: said.number("nonce").unwrap_or(memory.sending) },
        "earlier" => Nonce { instance: EARLIER, sending: 1 },
        "unknown" => Nonce::UNKNOWN,
        _ => Nonce { instance: 8, sending: 1 },
    };
    Record {
        slot: Slot(said.number("slot").unwrap_or_default()),
        version,
        mzxid: said.number("mzxid").unwrap_or(100 + i64::from(version)),
        held: owner != "free" && said.value("state") != Some("free"),
        waiting_on: said.number("waiting-on").map(|mzxid| {
            let sending = said.number("waiting-for").unwrap_or_default();
            LastRun { mzxid, nonce: Nonce { instance: if sending > 0 { INSTANCE } else { 9 }, sending } }
        }),
        lease: said.duration("lease").unwrap_or(Duration::from_secs(4)),
        nonce,
        token: said.number("token").unwrap_or_default(),
        vouching: said
            .duration("vouch-limit")
            .map(|limit| Vouching { limit, roster: said.value("roster").map(roster).unwrap_or_default() }),
        agrees: said.value("agrees") != Some("no"),
    }
}

fn bar(word: &str) -> Ineligibility {
    match word {
        "unhealthy" => Ineligibility::Unhealthy,
        "ineligible" => Ineligibility::Ineligible,
        "disabled" => Ineligibility::Disabled,
        "handing-over" => Ineligibility::HandingOver,
        "drained" => Ineligibility::Drained,
        _ => panic!("unknown bar: {word}"),
    }
}

fn step(word: &str) -> StepKind {
    match word {
        "before-start" => StepKind::BeforeStart,
        "after-stop" => StepKind::AfterStop,
        _ => panic!("unknown step: {word}"),
    }
}

fn outcome(word: &str) -> StepOutcome {
    match word {
        "well" => StepOutcome::Succeeded,
        "badly" => StepOutcome::Failed,
        "guard-gone" => StepOutcome::GuardGone,
        _ => panic!("unknown outcome: {word}"),
    }
}

fn place(word: &str) -> Place {
    match word {
        "first" => Place::First,
        "next" => Place::Next,
        _ => Place::Behind(2),
    }
}

fn request(word: &str) -> Request {
    match word {
        "enter" => Request::Enter,
        "look" => Request::Look,
        "observe" => Request::Observe,
        "take-over" => Request::TakeOver,
        "renew" => Request::Renew,
        "mark" => Request::Mark,
        "release" => Request::Release,
        _ => panic!("unknown request: {word}"),
    }
}

fn denial(word: &str) -> Denial {
    match word {
        "conflict" => Denial::Conflict,
        "candidate-gone" => Denial::CandidateGone,
        "forbidden" => Denial::Forbidden(Grounds::Right),
        _ => panic!("unknown denial: {word}"),
    }
}

fn status(word: &str) -> ChildStatus {
    match word.split_once(':') {
        Some(("exited", code)) => ChildStatus::Exited(code.parse().unwrap()),
        Some(("signaled", signal)) => ChildStatus::Signaled(signal.parse().unwrap()),
        Some(("not-executed", errno)) => ChildStatus::NotExecuted(errno.parse().unwrap()),
        _ => panic!("unknown status: {word}"),
    }
}

fn cause(word: &str) -> Cause {
    match word {
        "its-own" => Cause::ItsOwn,
        "ordered" => Cause::Ordered,
        "deadline" => Cause::Deadline,
        "supervisor-gone" => Cause::SupervisorGone,
        _ => panic!("unknown cause: {word}"),
    }
}
