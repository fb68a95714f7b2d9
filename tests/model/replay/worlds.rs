//! The worlds of the model that fit what the code does, and what can be seen of it.

use std::collections::HashSet;
use std::mem::discriminant;
use std::time::Duration;

use zk_leader_run::core::action::{Action, PhaseName, Transition};
use zk_leader_run::core::event::Event;

use super::{CLOCKS_BEGIN, LATE, UNIT, Walk};
use crate::moves::{Move, after, moves};
use crate::world::{Role, State, World};

impl Walk {
    /// The model takes one of these sequences of steps, in each of its worlds.
    pub(super) fn follow(&mut self, what: &str, ways: &[&[Move]]) {
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

    pub(super) fn keep(&mut self, what: &str, fits: impl Fn(&World) -> bool) {
        let kept = self.worlds.iter().filter(|world| fits(world)).cloned().collect();
        self.replace(what, kept);
    }

    pub(super) fn replace(&mut self, what: &str, worlds: HashSet<World>) {
        self.story.push(format!("{:?} {what}: {} worlds", self.now.saturating_sub(CLOCKS_BEGIN), worlds.len()));
        if worlds.is_empty() {
            let before: Vec<String> = self.worlds.iter().map(|world| format!("{world:#?}")).collect();
            let story = &self.story[self.story.len().saturating_sub(200)..];
            panic!("the code does what the model does not know: {what}\n{}\n{}", story.join("\n"), before.join("\n"));
        }
        self.worlds = worlds;
    }

    /// What can be seen of the code fits the model.
    pub(super) fn compare(&mut self) {
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
    pub(super) fn compare_tenure(&mut self, host: usize) {
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
    pub(super) fn tell(&mut self, host: usize, event: Event, ways: &[&[Move]]) {
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
    pub(super) fn role(&mut self, host: usize, before: PhaseName, phase: PhaseName) {
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
}
