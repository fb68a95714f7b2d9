//! The parts of the supervisor that an upgrade hands over, and those that go on after one.

use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::document::{Document, VERSION};
use super::{Need, Upgrade};
use crate::clock;
use crate::core::event::Event;
use crate::core::machine::{Machine, NotNow, Settings};
use crate::core::time::{Now, Timestamp};
use crate::supervisor::Supervisor;
use crate::supervisor::reporter::Reporter;
use crate::supervisor::standstill::Memory;
use crate::vouching::Direct;
use crate::zookeeper::client::session_key::SessionKey;
use crate::zookeeper::{self, Election};

/// Without a session there is no lease to wait for.
const PATIENCE: Duration = Duration::from_secs(15);

impl Supervisor {
    /// Begins an upgrade. It waits for quiet moments as long as a lease may last.
    pub(in crate::supervisor) fn begin_upgrade(&mut self) -> Event {
        let timing = self.machine.snapshot().timing;
        let lease = timing.map_or(PATIENCE, |timing| timing.lease);
        self.upgrade.iter_mut().for_each(|upgrade| upgrade.begin(lease, timing.is_some()));
        self.publisher.upgrade_requested(clock::monotonic());
        self.publisher.upgrading(self.upgrade.as_ref().is_some_and(Upgrade::is_under_way));
        Event::Ticked
    }

    /// Makes the next step of an upgrade that is under way, if the moment is quiet. Does not return from the last one.
    pub(in crate::supervisor) fn advance_upgrade(&mut self, now: Now) {
        let Some(mut upgrade) = self.upgrade.take() else { return };
        match upgrade.need() {
            None => {}
            Some(Need::Key) => match self.effects.election.key() {
                Some(key) => upgrade.fetch(key),
                None => upgrade.not_now(now.lease, &NotNow::NoContact.to_string()),
            },
            Some(Need::Document(key, _)) if self.effects.election.has_another_session(&key) => upgrade.begin_anew(),
            Some(Need::Document(key, since)) => {
                if let Err(obstacle) = self.hand_over(&mut upgrade, now, &key, since) {
                    upgrade.not_now(now.lease, &obstacle);
                }
            }
        }
        self.publisher.upgrading(upgrade.is_under_way());
        self.upgrade = Some(upgrade);
    }

    /// # Errors
    /// What stands against it now.
    fn hand_over(&mut self, upgrade: &mut Upgrade, now: Now, key: &SessionKey, since: Timestamp) -> Result<(), String> {
        let machine = self.machine.hand_over(now, since);
        if machine.as_ref().is_err_and(|obstacle| *obstacle == NotNow::Stale) && upgrade.wants_renewal() {
            self.machine.renew_soon(now);
        }
        let machine = machine.map_err(|obstacle| obstacle.to_string())?;
        if !self.effects.auxiliary.is_idle() {
            return Err("a hook or a check runs".to_owned());
        }
        // What was heard and not handled would be lost.
        if !self.answers.is_empty() {
            return Err("what a server or another host has just said is not handled yet".to_owned());
        }
        let election = self.effects.election.hand_over(key)?;
        let (guard, mut descriptors) = self.effects.guard.hand_over().ok_or("the guard has ended")?;
        let socket = self.effects.direct.as_ref().and_then(Direct::descriptor);
        descriptors.extend(socket);
        let (path, fixed, file) = upgrade.constants();
        let document = Document {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            path,
            fixed,
            file,
            machine,
            election,
            guard,
            socket: socket.map(|socket| socket.as_raw_fd()),
            said: self.effects.direct.as_ref().map(Direct::hand_over),
            orders: self.orders,
            reporter: self.reporter.hand_over(),
            why: self.publisher.why(),
            since: Some(self.publisher.since()),
            command: self.publisher.command(),
            has_led: self.publisher.has_led(),
            had_terminal: upgrade.had_terminal,
        };
        upgrade.go_on(&document, &descriptors);
        Ok(())
    }

    /// Goes on where the program before has stopped: nothing is announced again.
    pub(in crate::supervisor) fn resume(&mut self, now: Now, before: Document) {
        let snapshot = self.machine.snapshot();
        self.effects.auxiliary.resume(now.lease, snapshot.held_term.map(|held| held.grant));
        if snapshot.held_term.is_none() {
            self.effects.guard.replace();
        }
        let by_time_of_day = || now.lease.before(before.reporter.age(clock::time_of_day()));
        let since = before.since.unwrap_or_else(by_time_of_day);
        self.publisher.resume((since, before.why), before.command, before.has_led, clock::monotonic());
        self.reporter = Reporter::take_up(before.reporter, &snapshot);
        self.orders = before.orders;
        self.store_orders();
    }
}

/// The machine and the election: those of the program before, or new ones with what this process remembers.
///
/// # Errors
/// If what was handed over does not fit.
pub async fn begin(
    settings: &Settings,
    ensemble: zookeeper::Settings,
    sender: UnboundedSender<Event>,
    before: Option<&Document>,
    memory: Memory,
) -> io::Result<(Machine, Election)> {
    let now = clock::now();
    let Some(before) = before else {
        let (mut machine, election) = (Machine::new(*settings, now), Election::new(ensemble, sender));
        machine.recall(memory.machine);
        election.recall(memory.election);
        machine.know_earlier(election.instances());
        return Ok((machine, election));
    };
    let machine = Machine::take_up(settings, before.election.negotiated(), before.machine.clone());
    // It was checked.
    let mut machine = machine.map_err(|misfit| io::Error::other(format!("{misfit:?}")))?;
    machine.resume_session(now);
    let ensemble = zookeeper::Settings { instance: machine.instance(), ..ensemble };
    let election = Election::take_up(ensemble, sender, before.election.clone()).await?;
    machine.know_earlier(election.instances());
    Ok((machine, election))
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::zookeeper::testing::settings;

    /// Else it waits for `--vouch-limit` behind its own record.
    #[tokio::test]
    async fn after_a_standstill_the_machine_knows_the_earlier_programs_of_its_process() {
        let election = from_value(json!({ "instances": [6, 5], "joined_ms": null, "unwritten": [] })).unwrap();
        let memory = Memory { election, ..Memory::default() };
        let (machine, sender) = (Settings::default(), unbounded_channel().0);
        let begun = Box::pin(begin(&machine, settings(), sender, None, memory)).await;
        let told = format!("{:?}", begun.unwrap().0);
        assert!(told.contains(", 6, 5]"), "{told}");
    }
}
