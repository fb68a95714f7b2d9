//! One contender: a desk, and the events that it sends.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;
use zk_leader_run::core::action::{Conditions, Entry};
use zk_leader_run::core::event::{Candidacy, Denial, Event, Nonce, Record, Request, SessionNumber, View};
use zk_leader_run::core::guard_messages::Slot;
use zk_leader_run::core::settings::{Guarantee, Recipe};
use zk_leader_run::core::vouching::Vouching;
use zk_leader_run::zookeeper::client::acl::Acl;
use zk_leader_run::zookeeper::client::connect::Access;
use zk_leader_run::zookeeper::schema::member::About;
use zk_leader_run::zookeeper::{Election, Settings};

use crate::support::wait;

/// Long enough that nothing expires by accident on a busy machine.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(30);
pub const BASE: &str = "/zk-leader-run/job";
pub const ELECTION: &str = "/zk-leader-run/job/election";
pub const LEASE: &str = "/zk-leader-run/job/lease";
pub const TERM: &str = "/zk-leader-run/job/term";

/// The one candidacy of most tests.
pub const FIRST: Candidacy = Candidacy(1);

/// The settings of the host with this number, on `host:port,…/chroot`.
pub fn settings(connect: &str, instance: u64) -> Settings {
    let (servers, chroot) = connect.split_at(connect.find('/').unwrap_or(connect.len()));
    Settings {
        servers: servers.to_owned(),
        chroot: chroot.to_owned(),
        access: Access::default(),
        session_timeout: SESSION_TIMEOUT,
        lease: None,
        base: BASE.to_owned(),
        election: ELECTION.to_owned(),
        acl: Acl::open(),
        is_shared: false,
        recipe: Recipe::Sequential,
        guarantee: Guarantee::AtMostOne,
        max_pause: None,
        leaders: 1,
        priority: 0,
        id: format!("host{instance}:1"),
        host: format!("host{instance}"),
        pid: 1,
        pid_namespace: String::new(),
        instance,
        vouch: None,
        once: None,
        about: About::default(),
    }
}

/// Why there was no good answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum No {
    Denied(Denial),
    Unanswered,
}

pub struct Host {
    pub election: Election,
    events: UnboundedReceiver<Event>,
    /// Read already, while an answer was awaited.
    hints: VecDeque<Event>,
    instance: u64,
    /// What its writes say of vouching.
    pub vouching: Option<Vouching>,
}

impl Host {
    pub fn new(settings: Settings) -> Self {
        let (sender, events) = unbounded_channel();
        let instance = settings.instance;
        Self { election: Election::new(settings, sender), events, hints: VecDeque::new(), instance, vouching: None }
    }

    /// With session 1.
    pub async fn connected(settings: Settings) -> Self {
        let mut host = Self::new(settings);
        host.connect(1).await;
        host
    }

    /// Connected and in line, with the view.
    pub async fn entered(settings: Settings) -> (Self, View) {
        let mut host = Self::connected(settings).await;
        let view = host.enter(FIRST).await.unwrap();
        (host, view)
    }

    /// In line, and holder of the record.
    pub async fn leading(settings: Settings) -> (Self, View, Conditions) {
        let (mut host, view) = Self::entered(settings).await;
        let (conditions, _) = host.take_over(&view, 1).await.unwrap();
        (host, view, conditions)
    }

    pub async fn connect(&mut self, session: u32) {
        self.election.connect(SessionNumber(session));
        let connected = |event| match event {
            Event::Connected { session: number, .. } if number == SessionNumber(session) => Some(()),
            Event::Unreachable { .. } | Event::Rejected { .. } => panic!("not connected: {event:?}"),
            _ => None,
        };
        self.hint(connected).await;
    }

    pub async fn enter(&mut self, candidacy: Candidacy) -> Result<View, No> {
        self.election.enter(candidacy);
        self.view(candidacy, Request::Enter).await
    }

    pub async fn look(&mut self, candidacy: Candidacy) -> Result<View, No> {
        self.election.look(candidacy);
        self.view(candidacy, Request::Look).await
    }

    pub async fn observe(&mut self) -> Result<Record, No> {
        self.observe_slot(Slot(0)).await
    }

    pub async fn observe_slot(&mut self, slot: Slot) -> Result<Record, No> {
        self.election.observe(FIRST, slot);
        let answer = self.answer(FIRST, Request::Observe).await?;
        let Event::Observed { record, .. } = answer else { panic!("not an answer: {answer:?}") };
        Ok(record)
    }

    /// Takes over what was seen; the new conditions and the token.
    pub async fn take_over(&mut self, view: &View, sending: u64) -> Result<(Conditions, i64), No> {
        let conditions = Conditions { slot: view.record.slot, record: view.record.version, term: view.term_version };
        self.take_over_on(conditions, sending).await
    }

    pub async fn take_over_on(&mut self, conditions: Conditions, sending: u64) -> Result<(Conditions, i64), No> {
        self.election.take_over(FIRST, conditions, self.entry(sending), SESSION_TIMEOUT);
        let answer = self.answer(FIRST, Request::TakeOver).await?;
        let Event::TookOver { nonce, version, token, term, .. } = answer else { panic!("not an answer: {answer:?}") };
        assert_eq!(nonce, self.nonce(sending));
        Ok((Conditions { record: version, term, ..conditions }, token))
    }

    /// Renews; the new conditions.
    pub async fn renew(&mut self, conditions: Conditions) -> Result<Conditions, No> {
        self.renew_as(FIRST, conditions).await
    }

    pub async fn renew_as(&mut self, candidacy: Candidacy, conditions: Conditions) -> Result<Conditions, No> {
        self.election.renew(candidacy, conditions, self.entry(1));
        let answer = self.answer(candidacy, Request::Renew).await?;
        let Event::Renewed { version, .. } = answer else { panic!("not an answer: {answer:?}") };
        Ok(Conditions { record: version, ..conditions })
    }

    pub async fn release(&mut self, conditions: Conditions) -> Result<(), No> {
        self.release_as(FIRST, conditions).await
    }

    pub async fn release_as(&mut self, candidacy: Candidacy, conditions: Conditions) -> Result<(), No> {
        self.election.release(candidacy, conditions, self.entry(1), false);
        let answer = self.answer(candidacy, Request::Release).await?;
        assert_eq!(answer, Event::Released { candidacy });
        Ok(())
    }

    pub fn nonce(&self, sending: u64) -> Nonce {
        Nonce { instance: self.instance, sending }
    }

    pub fn entry(&self, sending: u64) -> Entry {
        Entry {
            nonce: self.nonce(sending),
            token: None,
            lease: SESSION_TIMEOUT,
            waiting_on: None,
            vouching: self.vouching,
        }
    }

    /// The next answer to a request, in whichever way it was answered.
    pub async fn answer(&mut self, candidacy: Candidacy, request: Request) -> Result<Event, No> {
        loop {
            match self.next().await {
                Event::Denied { candidacy: of, request: to, denial } if of == candidacy && to == request => {
                    return Err(No::Denied(denial));
                }
                Event::Unanswered { candidacy: of, request: to } if of == candidacy && to == request => {
                    return Err(No::Unanswered);
                }
                hint if is_hint(&hint) => self.hints.push_back(hint),
                answer => return Ok(answer),
            }
        }
    }

    /// Waits for an event that `pick` takes; the others are dropped.
    pub async fn hint<T>(&mut self, pick: impl Fn(Event) -> Option<T>) -> T {
        loop {
            let event = match self.hints.pop_front() {
                Some(event) => event,
                None => self.next().await,
            };
            if let Some(picked) = pick(event) {
                return picked;
            }
        }
    }

    pub async fn wait_for(&mut self, awaited: Event) {
        self.hint(|event| (event == awaited).then_some(())).await;
    }

    /// All hints so far, after `quiet` has passed without another one.
    pub async fn hints_within(&mut self, quiet: Duration) -> Vec<Event> {
        while let Ok(event) = timeout(quiet, self.events.recv()).await {
            self.hints.push_back(event.expect("the desk lives"));
        }
        self.hints.drain(..).collect()
    }

    async fn view(&mut self, candidacy: Candidacy, request: Request) -> Result<View, No> {
        let answer = self.answer(candidacy, request).await?;
        let Event::Seen { candidacy: of, view } = answer else { panic!("not an answer: {answer:?}") };
        assert_eq!(of, candidacy);
        Ok(view)
    }

    async fn next(&mut self) -> Event {
        let event = timeout(wait::LIMIT, self.events.recv()).await;
        event.expect("an event comes").expect("the desk lives")
    }
}

fn is_hint(event: &Event) -> bool {
    matches!(
        event,
        Event::ContactLost { .. }
            | Event::ContactRestored { .. }
            | Event::SessionOver { .. }
            | Event::Glimpsed { .. }
            | Event::LineChanged { .. }
            | Event::RecordChanged { .. }
            | Event::Vouching(_)
    )
}
