//! The real machines are led at random, and the model follows: every step that the code takes must be one that the model may
//! take, and what comes of it the same, so that neither can change without the other.
//!
//! The model is followed as a set of worlds: where the code's step could be several of the model's, all are kept, and those
//! that do not fit what is seen afterwards are dropped. None is left: the code does what the model does not know.
//!
//! Time goes in windows of one unit of the model. The code's margins (ρ, 2G) are shorter than a window: it kills earlier in it
//! than the model, and starts later.

use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use zk_leader_run::core::action::{Action, Conditions, Entry, PhaseName, Transition};
use zk_leader_run::core::event::{Candidacy, Denial, Event, Nonce, Place, Record as Read, Request, View};
use zk_leader_run::core::guard_messages::{CandidateName, Cause, ChildStatus, Order, Report, RunId, Slot};
use zk_leader_run::core::lease::Wishes;
use zk_leader_run::core::machine::{Machine, Settings};
use zk_leader_run::core::settings::{Guarantee, OnExit, OnLoss, OnPause, Preparations, Service};
use zk_leader_run::core::time::{Now, Sighting, Timestamp};

use crate::moves::{Move, after, moves};
use crate::rules::Rules;
use crate::world::{Role, Sort, State, World};

const UNIT: Duration = Duration::from_secs(4);
/// Waits that end in a window are over at this point of it, and no lease that was written there lasts beyond the beginning of
/// another window.
const LATE: Duration = Duration::from_millis(150);
/// A step of a window takes so long.
const STEP: Duration = Duration::from_micros(10);
const CLOCKS_BEGIN: Duration = Duration::from_secs(1_000);

/// A write on its way.
#[derive(Clone, Copy, Debug)]
struct WriteSent {
    sort: Sort,
    candidacy: Candidacy,
    conditions: Conditions,
    entry: Entry,
    since: Timestamp,
}

#[derive(Clone, Copy, Debug)]
enum Pending {
    /// An observation is no look.
    Read {
        candidacy: Candidacy,
        request: Request,
    },
    Write {
        sent: WriteSent,
        outcome: Option<Result<(), Denial>>,
        version: i32,
    },
}

struct Side {
    machine: Machine,
    pending: Option<Pending>,
    tree: Option<(RunId, Timestamp)>,
    /// It ended, and nobody was told yet.
    ended: Option<(RunId, Cause)>,
    /// The versions that it has seen, by the last run under them.
    seen: HashSet<i64>,
    /// The newest version that its session knows: no server shows it an older one.
    newest: i64,
    candidacy: Candidacy,
}

/// The record and the term as `ZooKeeper` keeps them.
#[derive(Clone, Copy, Debug)]
struct Stored {
    record: Read,
    term: i32,
}

struct Walk {
    rules: Rules,
    worlds: HashSet<World>,
    sides: Vec<Side>,
    stored: Stored,
    former: Option<Stored>,
    late: Vec<WriteSent>,
    zxid: i64,
    now: Duration,
    window: u32,
    chance: u64,
    story: Vec<String>,
    taken: HashSet<Discriminant<Move>>,
}

fn settings(host: usize) -> Settings {
    Settings {
        wishes: Wishes::NONE,
        guarantee: Guarantee::AtMostOne,
        on_pause: OnPause::Run,
        on_exit: OnExit::Rejoin,
        on_loss: OnLoss::Rejoin,
        wait: None,
        connect_timeout: None,
        stop_timeout: UNIT / 4,
        service: Service::default(),
        preparations: Preparations::default(),
        steps: zk_leader_run::core::settings::StepLimits::default(),
        instance: host as u64 + 1,
    }
}

impl Walk {
    fn new(rules: Rules, seed: u64) -> Self {
        let now = CLOCKS_BEGIN;
        let at = moment(now);
        let side = |host| Side {
            machine: Machine::new(settings(host), at),
            pending: None,
            tree: None,
            ended: None,
            seen: HashSet::new(),
            newest: 0,
            candidacy: Candidacy::default(),
        };
        let record = Read {
            slot: Slot(0),
            version: 0,
            mzxid: 1,
            held: false,
            waiting_on: None,
            lease: UNIT,
            nonce: Nonce::UNKNOWN,
            agrees: true,
        };
        let mut walk = Self {
            rules,
            worlds: HashSet::from([World::new()]),
            sides: rules.hosts().map(side).collect(),
            stored: Stored { record, term: 0 },
            former: None,
            late: Vec::new(),
            zxid: 1,
            now,
            window: 0,
            chance: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            story: Vec::new(),
            taken: HashSet::new(),
        };
        for host in rules.hosts() {
            walk.tell(host, Event::Ticked, &[&[]]);
        }
        walk
    }

    fn below(&mut self, limit: usize) -> usize {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        usize::try_from(self.chance >> 33).unwrap() % limit
    }

    fn clock(&self) -> Now {
        moment(self.now)
    }

    /// How long a lease of this host is.
    fn lease(&self, host: usize) -> Duration {
        UNIT * u32::from(self.rules.leases[host])
    }

    /// The model takes one of these sequences of steps, in each of its worlds.
    fn follow(&mut self, what: &str, ways: &[&[Move]]) {
        let mut next = HashSet::new();
        let mut possible = Vec::new();
        for world in &self.worlds {
            for way in ways {
                let mut world = world.clone();
                let goes = way.iter().all(|step| {
                    possible.clear();
                    moves(&self.rules, &world, &mut possible);
                    let is_possible = possible.contains(step);
                    world = if is_possible { after(&self.rules, &world, *step) } else { world.clone() };
                    is_possible
                });
                if goes {
                    self.taken.extend(way.iter().map(discriminant));
                    next.insert(world);
                }
            }
        }
        self.replace(what, next);
    }

    fn keep(&mut self, what: &str, fits: impl Fn(&World) -> bool) {
        let kept = self.worlds.iter().filter(|world| fits(world)).cloned().collect();
        self.replace(what, kept);
    }

    fn replace(&mut self, what: &str, worlds: HashSet<World>) {
        self.story.push(format!("{:?} {what}: {} worlds", self.now.saturating_sub(CLOCKS_BEGIN), worlds.len()));
        if worlds.is_empty() {
            let before: Vec<String> = self.worlds.iter().map(|world| format!("{world:#?}")).collect();
            let story = &self.story[self.story.len().saturating_sub(200)..];
            panic!("the code does what the model does not know: {what}\n{}\n{}", story.join("\n"), before.join("\n"));
        }
        self.worlds = worlds;
    }

    /// What can be seen of the code fits the model.
    fn compare(&mut self) {
        let record = self.stored.record;
        let state = match (record.held, record.waiting_on) {
            (false, _) => State::Free,
            (true, Some(_)) => State::Waiting,
            (true, None) => State::Held,
        };
        self.keep(&format!("the record is {state:?}, {:?}", record.lease), |world| {
            world.record.is_some_and(|modelled| {
                modelled.state == state && (state == State::Free || UNIT * u32::from(modelled.lease) == record.lease)
            })
        });
        for host in 0..self.sides.len() {
            let lives = self.sides[host].tree.is_some();
            self.keep(&format!("{host} tree {lives}"), |world| world.is_live(host) == lives);
            self.compare_tenure(host);
        }
    }

    /// The code's lease ends in the window before the model's does.
    fn compare_tenure(&mut self, host: usize) {
        let (now, margin) = (self.clock().lease, self.lease(host) / 100 + Duration::from_millis(200) + LATE + LATE);
        let held = self.sides[host].machine.snapshot().held_term;
        let Some(deadlines) = held.and_then(|held| held.deadlines) else { return };
        let left = now.until(deadlines.kill_at);
        if now >= deadlines.kill_at || self.sides[host].machine.phase() == PhaseName::Releasing {
            return;
        }
        self.keep(&format!("{host} has a lease for {left:?}"), |world| {
            let modelled = world.tenure(host).and_then(|tenure| tenure.kill_at).unwrap_or_default();
            let modelled = UNIT * u32::from(modelled);
            left <= modelled && modelled <= left + margin
        });
    }

    /// Tells a machine, while the model goes one of these ways, and carries out what the machine says.
    fn tell(&mut self, host: usize, event: Event, ways: &[&[Move]]) {
        let before = self.sides[host].machine.phase();
        self.follow(&format!("{host} {event:?}"), ways);
        let reads = matches!(event, Event::Seen { .. } | Event::Observed { .. });
        let now = self.clock();
        let actions = self.sides[host].machine.handle(now, event);
        let phase = self.sides[host].machine.phase();
        self.story.push(format!("   {before:?} -> {phase:?} {actions:?}"));
        for action in actions {
            if let Action::Announce(Transition { from, to, .. }) = action {
                self.role(host, from, to);
                if reads && to == PhaseName::Following {
                    self.follow("its tenure was over before it read", ways);
                }
            }
            self.perform(host, action);
        }
        self.compare();
    }

    /// A tenure that ends, and what is remembered of it.
    fn role(&mut self, host: usize, before: PhaseName, phase: PhaseName) {
        use PhaseName::{Following, Leading, Paused, Preparing, Releasing, Stopping, Waiting};
        let holds = |phase| matches!(phase, Waiting | Preparing | Leading | Paused | Stopping);
        let remembered = [false, true].map(|remembers| Move::Leave { host, remembers });
        let [forgets, remembers] = remembered.map(|leave| [leave]);
        let releases = [false, true].map(|remembers| [Move::BeginRelease(host), Move::Leave { host, remembers }]);
        match (before, phase) {
            (before, Following) if holds(before) => {
                let ways: [&[Move]; 4] = [&[Move::Lose(host)], &releases[0], &releases[1], &[]];
                self.follow("its tenure is over", &ways);
                self.keep("it follows", |world| matches!(world.hosts[host].role, Role::Following));
            }
            (before, Releasing) if holds(before) => self.follow("it releases", &[&[Move::BeginRelease(host)], &[]]),
            (Releasing, Following) => {
                self.follow("it has released", &[&forgets, &remembers, &[]]);
                self.keep("it follows", |world| matches!(world.hosts[host].role, Role::Following));
            }
            _ => {}
        }
    }

    fn perform(&mut self, host: usize, action: Action) {
        match action {
            Action::Connect { session } => {
                let connected = Event::Connected { session, negotiated: self.lease(host) };
                self.tell(host, connected, &[&[]]);
            }
            Action::Enter { candidacy } => self.ask(host, Pending::Read { candidacy, request: Request::Enter }),
            Action::Look { candidacy } => self.ask(host, Pending::Read { candidacy, request: Request::Look }),
            Action::Observe { candidacy, .. } => {
                self.ask(host, Pending::Read { candidacy, request: Request::Observe });
            }
            Action::TakeOver { candidacy, conditions, entry, .. } => {
                self.send(host, Sort::TakeOver, (candidacy, conditions, entry), Move::TakeOver(host));
            }
            Action::Renew { candidacy, conditions, entry } => {
                self.send(host, Sort::Renewal, (candidacy, conditions, entry), Move::Renew(host));
            }
            Action::Release { candidacy, conditions, entry, .. } => {
                self.send(host, Sort::Release, (candidacy, conditions, entry), Move::SendRelease(host));
            }
            Action::Guard(order) => self.ordered(host, order),
            Action::Exit(reason) => panic!("{host} exits: {reason:?}\n{}", self.story.join("\n")),
            _ => {}
        }
    }

    /// Nobody waits any more for what was asked before.
    fn ask(&mut self, host: usize, pending: Pending) {
        if let Some(Pending::Write { sent, outcome, .. }) = self.sides[host].pending {
            self.abandon(sent, outcome.is_some());
            self.follow("it asks something else", &[&[Move::GiveUp(host)], &[]]);
        }
        let (Pending::Read { candidacy, .. } | Pending::Write { sent: WriteSent { candidacy, .. }, .. }) = pending;
        self.sides[host].candidacy = candidacy;
        self.sides[host].pending = Some(pending);
    }

    fn abandon(&mut self, sent: WriteSent, is_served: bool) {
        if !is_served && self.late.len() < self.rules.late_writes {
            self.late.push(sent);
        }
    }

    fn commits(&self, sent: &WriteSent) -> bool {
        (sent.conditions.record, sent.conditions.term) == (self.stored.record.version, self.stored.term)
    }

    /// A write that can never be applied is no step of the model.
    fn send(
        &mut self,
        host: usize,
        sort: Sort,
        (candidacy, conditions, entry): (Candidacy, Conditions, Entry),
        step: Move,
    ) {
        let sent = WriteSent { sort, candidacy, conditions, entry, since: self.clock().lease };
        self.ask(host, Pending::Write { sent, outcome: None, version: 0 });
        if !self.commits(&sent) {
            return;
        }
        self.follow(&format!("{host} sends {sort:?} {entry:?}"), &[&[step]]);
        if sort == Sort::Release {
            return;
        }
        let state = if entry.waiting_on.is_some() { State::Waiting } else { State::Held };
        self.keep("what it writes", |world| {
            world.hosts[host].request.is_some_and(|request| {
                let puts = request.write.puts;
                (puts.state, UNIT * u32::from(puts.lease)) == (state, entry.lease)
            })
        });
    }

    fn ordered(&mut self, host: usize, order: Order) {
        match order {
            Order::Start { run, deadlines, .. } => {
                self.sides[host].tree = Some((run, deadlines.kill_at));
                self.follow(&format!("{host} starts"), &[&[Move::Start(host)]]);
                self.tell(host, Event::Guard(Report::Taken { run }), &[&[]]);
            }
            Order::Extend { run, deadlines } => {
                if let Some((alive, kill_at)) = &mut self.sides[host].tree {
                    if *alive == run {
                        *kill_at = deadlines.kill_at.max(*kill_at);
                    }
                }
            }
            Order::Kill { .. } => self.tree_ends(host, Cause::Ordered),
            _ => {}
        }
    }

    fn tree_ends(&mut self, host: usize, cause: Cause) {
        if let Some((run, _)) = self.sides[host].tree.take() {
            self.sides[host].ended = Some((run, cause));
            self.follow(&format!("{host}'s tree ends"), &[&[Move::End(host)]]);
        }
    }

    /// The ensemble applies a write, if it commits.
    fn apply(&mut self, sent: &WriteSent) -> Result<i32, Denial> {
        if !self.commits(sent) {
            return Err(Denial::Conflict);
        }
        self.former = Some(self.stored);
        self.zxid += 1;
        let Entry { nonce, lease, waiting_on, .. } = sent.entry;
        let version = self.stored.record.version + 1;
        let held = sent.sort != Sort::Release;
        let waiting_on = waiting_on.filter(|_| held);
        self.stored.record = Read { version, mzxid: self.zxid, held, waiting_on, lease, nonce, ..self.stored.record };
        self.stored.term += i32::from(sent.sort == Sort::TakeOver);
        Ok(version)
    }

    fn serve(&mut self, host: usize) {
        let Some(Pending::Write { sent, outcome: None, .. }) = self.sides[host].pending else { return };
        let commits = self.commits(&sent);
        let applied = self.apply(&sent);
        self.sides[host].newest = self.stored.record.mzxid;
        if commits {
            let late = [0, 1, 2, 3].map(|late| [Move::ApplyLate { late, round: false }]);
            let late = late.iter().map(<[Move; 1]>::as_slice);
            // A host that releases has given up its renewal, as the model has it, and waits for the answer all the same.
            let asked = [Move::Apply { host, round: false }];
            let ways: Vec<&[Move]> = late.chain([asked.as_slice()]).collect();
            self.follow("it is applied", &ways);
        }
        let (outcome, version) = (Some(applied.map(|_| ())), applied.unwrap_or_default());
        self.sides[host].pending = Some(Pending::Write { sent, outcome, version });
        self.compare();
    }

    fn serve_late(&mut self, index: usize) {
        let sent = self.late.remove(index);
        if self.apply(&sent).is_ok() {
            let late = [0, 1, 2, 3].map(|late| [Move::ApplyLate { late, round: false }]);
            let late: Vec<&[Move]> = late.iter().map(<[Move; 1]>::as_slice).collect();
            self.follow(&format!("late {sent:?}"), &late);
        }
        self.compare();
    }

    fn answer(&mut self, host: usize) {
        let Some(Pending::Write { sent, outcome: Some(outcome), version }) = self.sides[host].pending else { return };
        self.sides[host].pending = None;
        let WriteSent { candidacy, sort, since: sent_at, entry, .. } = sent;
        let request = match sort {
            Sort::TakeOver => Request::TakeOver,
            Sort::Renewal => Request::Renew,
            Sort::Release | Sort::Creation => Request::Release,
        };
        let event = match (sort, outcome) {
            (_, Err(denial)) => Event::Denied { candidacy, request, denial },
            (Sort::TakeOver, Ok(())) => {
                let term = sent.conditions.term + 1;
                let token = self.zxid;
                Event::TookOver { candidacy, nonce: entry.nonce, sent_at, version, token, term }
            }
            (Sort::Renewal, Ok(())) => Event::Renewed { candidacy, sent_at, version },
            (Sort::Release | Sort::Creation, Ok(())) => Event::Released { candidacy },
        };
        match (sort, outcome) {
            (Sort::Release | Sort::Creation, _) => self.tell(host, event, &[&[]]),
            // The renewal of a term that is over.
            (Sort::Renewal, Ok(()))
                if matches!(self.sides[host].machine.phase(), PhaseName::Releasing | PhaseName::Following) =>
            {
                self.tell(host, event, &[&[Move::Answer(host)], &[Move::Adopt(host)], &[]]);
            }
            (_, Ok(())) => self.tell(host, event, &[&[Move::Answer(host)]]),
            (_, Err(_)) => self.tell(host, event, &[&[Move::GiveUp(host)], &[]]),
        }
    }

    fn give_up(&mut self, host: usize) {
        let Some(pending) = self.sides[host].pending.take() else { return };
        let (candidacy, request, ways): (_, _, &[&[Move]]) = match pending {
            Pending::Read { candidacy, request } => (candidacy, request, &[&[]]),
            Pending::Write { sent, outcome, .. } => {
                self.abandon(sent, outcome.is_some());
                match sent.sort {
                    Sort::TakeOver => (sent.candidacy, Request::TakeOver, &[&[Move::GiveUp(host)], &[]]),
                    Sort::Renewal => (sent.candidacy, Request::Renew, &[&[Move::GiveUp(host)], &[]]),
                    Sort::Release | Sort::Creation => (sent.candidacy, Request::Release, &[&[]]),
                }
            }
        };
        self.tell(host, Event::Unanswered { candidacy, request }, ways);
    }

    /// Answers a read: with the present version, or the one before. Who may be first, is.
    fn look(&mut self, host: usize, is_late: bool, lags: bool, is_first: bool) {
        let Some(Pending::Read { candidacy, request }) = self.sides[host].pending else { return };
        let follows = self.sides[host].machine.phase() == PhaseName::Following;
        let newest = self.sides[host].newest;
        let former = self.former.filter(|former| lags && follows && former.record.mzxid >= newest);
        let Stored { record, term } = former.unwrap_or(self.stored);
        let run = record.last_run_under();
        let is_known = self.sides[host].seen.contains(&run) || !record.held;
        // A wait that is counted from late in a window would end later in one than the model's.
        if is_late && !is_known {
            return;
        }
        self.sides[host].seen.insert(run);
        self.sides[host].newest = newest.max(record.mzxid);
        self.sides[host].pending = None;
        let may_be_first = !follows || is_first && (is_late || !record.held);
        let ways: [&[Move]; 3] = if former.is_some() {
            [&[Move::LookBack(host)], &[Move::AdoptFormer(host)], &[]]
        } else {
            [&[Move::Look(host)], &[Move::Adopt(host)], &[]]
        };
        let place = if may_be_first { Place::First } else { Place::Next };
        let view = View {
            place,
            candidate: CandidateName::EMPTY,
            session_id: 1,
            term_version: term,
            record,
            outranks: false,
            is_revoked: false,
        };
        let event = match request {
            Request::Observe => Event::Observed { candidacy, record, term_version: term },
            _ => Event::Seen { candidacy, view },
        };
        self.tell(host, event, &ways);
    }

    fn report_end(&mut self, host: usize) {
        if let Some((run, cause)) = self.sides[host].ended.take() {
            let status = ChildStatus::Signaled(9);
            self.tell(host, Event::Guard(Report::TreeEnded { run, status, cause }), &[&[]]);
        }
    }

    /// The next window: time passes, and the guards kill.
    fn tick(&mut self) {
        self.window += 1;
        self.now = CLOCKS_BEGIN + UNIT * self.window;
        let now = self.clock().lease;
        let mut advances = [0; 3];
        self.rules.hosts().for_each(|host| advances[host] = 1);
        for host in 0..self.sides.len() {
            if self.sides[host].tree.is_some_and(|(_, kill_at)| now >= kill_at) {
                let run = self.sides[host].tree.take().map(|(run, _)| (run, Cause::Deadline));
                self.sides[host].ended = run;
            }
        }
        self.follow("time passes", &[&[Move::Tick(advances)]]);
        self.compare();
    }

    fn happens(&mut self, is_late: bool) {
        self.now += STEP;
        let host = self.below(self.sides.len());
        let candidacy = self.sides[host].candidacy;
        match self.below(20) {
            0..=4 => {
                let (lags, is_first) = (self.below(4) == 0, self.below(3) > 0);
                self.look(host, is_late, lags, is_first);
            }
            5..=8 => self.serve(host),
            9..=12 => self.answer(host),
            13 => self.give_up(host),
            14 if !self.late.is_empty() => {
                let index = self.below(self.late.len());
                self.serve_late(index);
            }
            15 => self.tell(host, Event::RecordChanged { candidacy }, &[&[]]),
            16 => self.tell(host, Event::LineChanged { candidacy }, &[&[]]),
            17 if self.below(4) == 0 => self.tree_ends(host, Cause::ItsOwn),
            17 | 18 => self.report_end(host),
            _ => self.tell(host, Event::Ticked, &[&[]]),
        }
    }

    fn goes(&mut self, windows: u32) {
        for _ in 0..windows {
            for _ in 0..self.below(25) {
                self.happens(false);
            }
            self.now = CLOCKS_BEGIN + UNIT * self.window + LATE;
            for _ in 0..self.below(25) {
                self.happens(true);
            }
            // Whoever survives SIGKILL is another story.
            (0..self.sides.len()).for_each(|host| self.report_end(host));
            self.tick();
            (0..self.sides.len()).for_each(|host| self.report_end(host));
        }
    }
}

fn moment(at: Duration) -> Now {
    Now { lease: Timestamp::ZERO.after(at), observer: Sighting::ZERO.after(at) }
}

#[test]
fn every_step_of_the_code_is_one_of_the_model() {
    let mut taken = HashSet::new();
    for leases in [[1, 1, 0], [1, 2, 0], [2, 1, 0], [3, 2, 0], [1, 2, 3]] {
        let rules = Rules::new(leases).proposed().without_releaser().with_late_writes(4).with_watchful_holders();
        for seed in 1..=12 {
            let mut walk = Walk::new(rules, seed);
            walk.goes(25);
            taken.extend(walk.taken);
        }
    }
    let host = 0;
    let kinds = [
        Move::Tick([1; 3]),
        Move::Look(host),
        Move::LookBack(host),
        Move::TakeOver(host),
        Move::Renew(host),
        Move::Apply { host, round: false },
        Move::ApplyLate { late: 0, round: false },
        Move::Answer(host),
        Move::GiveUp(host),
        Move::Adopt(host),
        Move::AdoptFormer(host),
        Move::Start(host),
        Move::End(host),
        Move::BeginRelease(host),
        Move::SendRelease(host),
        Move::Leave { host, remembers: true },
        Move::Lose(host),
    ];
    let not_taken: Vec<_> = kinds.iter().filter(|kind| !taken.contains(&discriminant(*kind))).collect();
    assert!(not_taken.is_empty(), "the code never does {not_taken:?}");
}
