//! What must be true, judged from outside with the knowledge that no host has: real time, and every tree.

use zk_leader_run::core::action::Action;
use zk_leader_run::core::event::{Candidacy, Event, Request};
use zk_leader_run::core::guard_messages::Order;
use zk_leader_run::core::settings::Guarantee;
use zk_leader_run::core::time::{Now, Timestamp};
use zk_leader_run::guard::policy::Input;

use crate::clock::Real;
use crate::host::{Host, Instance, Tree};
use crate::runs::Facts;

#[derive(Debug, Default)]
pub struct Oracle {
    /// The first thing that was wrong.
    pub violation: Option<String>,
    pub starts: u64,
    newest_token: i64,
    newest_instance: Option<usize>,
    pub facts: Facts,
}

impl Oracle {
    pub fn fail(&mut self, text: String) {
        self.violation.get_or_insert(text);
    }

    /// The promise: no other tree lives at this instant. Fencing: no earlier start had this token or a greater one.
    pub fn spawned(
        &mut self,
        instances: &[Instance],
        hosts: &[Host],
        newest: usize,
        tree: &Tree,
        now: Real,
        guarantee: Guarantee,
    ) {
        self.starts += 1;
        if instances[newest].has_tree() {
            self.fail(format!("I3: instance {newest} starts a second tree"));
        }
        if guarantee == Guarantee::AtLeastOne {
            return;
        }
        if let Some(other) = running_tree(instances, hosts, now) {
            self.fail(format!("two trees live: instance {newest} starts one while that of instance {other} lives"));
        }
        let again = tree.token == self.newest_token && self.newest_instance == Some(newest);
        if tree.token <= self.newest_token && !again {
            self.fail(format!("fencing: token {} is started after {}", tree.token, self.newest_token));
        }
        (self.newest_token, self.newest_instance) = (tree.token, Some(newest));
    }

    /// A step runs under the lease, as a command does.
    pub fn step_spawned(
        &mut self,
        instances: &[Instance],
        hosts: &[Host],
        newest: usize,
        now: Real,
        guarantee: Guarantee,
    ) {
        let other = running_tree(instances, hosts, now);
        let fits = |other: &usize| guarantee == Guarantee::AtMostOne || *other == newest;
        if let Some(other) = other.filter(fits) {
            self.fail(format!("instance {newest} runs a step while a tree of instance {other} lives"));
        }
    }

    /// I8: whoever frees the record knows that no tree lives, least of all its own.
    pub fn freed(&mut self, instances: &[Instance], hosts: &[Host], freeing: usize, now: Real, guarantee: Guarantee) {
        if instances[freeing].has_tree() || instances[freeing].steps.live() {
            self.fail(format!("I8: instance {freeing} frees the record while its own tree lives"));
        }
        if guarantee == Guarantee::AtLeastOne {
            return;
        }
        if let Some(other) = running_tree(instances, hosts, now) {
            self.fail(format!("I8: the record is freed while the tree of instance {other} lives"));
        }
    }

    /// I1: dead by `kill_at`; the two G that the lease sets aside are for the kernel's timer and for the kill itself.
    pub fn may_have_died(&mut self, instance: &Instance, at: Real, now: Timestamp) {
        let Some(tree) = instance.tree.filter(|tree| !tree.lives() && !tree.is_excused(at, now)) else { return };
        let slack = std::time::Duration::from_nanos(2 * tree.kill_latency);
        if now > tree.kill_at.after(2 * slack) {
            self.fail(format!(
                "I1: a tree of host {} outlived kill_at {:?} until {now:?}",
                instance.host, tree.kill_at
            ));
        }
    }

    /// The guard has read an order.
    pub fn sees_order(instance: &mut Instance, now: Timestamp, input: Input) {
        let (Input::Ordered(Order::Extend { run, deadlines }), Some(tree)) = (input, &mut instance.tree) else {
            return;
        };
        if tree.run == run && now < tree.kill_at {
            tree.kill_at = tree.kill_at.max(deadlines.kill_at);
        }
    }

    pub fn sees_action(
        &mut self,
        instances: &[Instance],
        instance: usize,
        now: Now,
        action: &Action,
        at_most_once: bool,
    ) {
        let this = &instances[instance];
        let lives = this.has_tree() || this.steps.live();
        match action {
            Action::Guard(Order::Start { deadlines, .. }) if now.lease >= deadlines.stop_at => {
                self.fail(format!("I2: instance {instance} starts without runway"));
            }
            // What it has heard just now, it has heard after the clock.
            Action::Guard(Order::Start { .. }) if this.was_barred && this.machine.ineligibilities().is_any() => {
                self.fail(format!(
                    "instance {instance} starts though it is barred: {:?}",
                    this.machine.ineligibilities()
                ));
            }
            Action::Guard(Order::Start { .. }) if lives => {
                self.fail(format!("I3: instance {instance} orders a second tree"));
            }
            // What survives SIGKILL is not waited for, once its lease is over.
            Action::Connect { .. } if this.tree.as_ref().is_some_and(|tree| now.lease > tree.kill_at) => {}
            // Its session is over, and the command lives on promises.
            Action::Connect { .. } if this.settings.vouch.is_some() && this.has_no_session() => {}
            Action::Connect { .. } if !this.has_tree() && this.steps.are_over(now.lease) => {}
            Action::Connect { .. } | Action::Release { .. } | Action::Exit(_) if lives && at_most_once => {
                self.fail(format!("I4: instance {instance} withdraws while its tree lives: {action:?}"));
            }
            Action::Release { .. } | Action::Exit(_) if lives => {
                self.fail(format!("I4: instance {instance} withdraws while its tree lives: {action:?}"));
            }
            // It says more than an observation, which is only read.
            Action::Look { .. } | Action::Enter { .. }
                if this.awaited.is_some_and(|(_, request)| request == Request::Observe) => {}
            _ if asks(action) == this.awaited.map(|(candidacy, _)| candidacy) && this.awaited.is_some() => {
                let awaited = this.awaited;
                self.fail(format!(
                    "two requests under way: instance {instance} waits for {awaited:?}, sends {action:?}"
                ));
            }
            _ => {}
        }
    }
}

fn asks(action: &Action) -> Option<Candidacy> {
    match *action {
        Action::Enter { candidacy }
        | Action::Look { candidacy }
        | Action::Observe { candidacy, .. }
        | Action::TakeOver { candidacy, .. }
        | Action::Renew { candidacy, .. }
        | Action::Mark { candidacy, .. }
        | Action::Release { candidacy, .. } => Some(candidacy),
        _ => None,
    }
}

/// A tree that executes; one on a suspended host does not, and one that has just overslept its kill is a stated limit.
fn running_tree(instances: &[Instance], hosts: &[Host], now: Real) -> Option<usize> {
    instances.iter().position(|instance| {
        let host = &hosts[instance.host];
        let clock = host.clock.now(now).lease;
        let runs = instance.tree.as_ref().is_some_and(|tree| tree.lives() && !tree.is_excused(now, clock));
        now >= host.suspended_until && (runs || instance.steps.run(clock))
    })
}

/// Whether the event answers what the machine waits for.
pub fn answers(event: &Event, (asked_in, awaited): (Candidacy, Request)) -> bool {
    let (candidacy, requests): (Candidacy, &[Request]) = match event {
        Event::Seen { candidacy, .. } => (*candidacy, &[Request::Enter, Request::Look]),
        Event::Observed { candidacy, .. } => (*candidacy, &[Request::Observe]),
        Event::TookOver { candidacy, .. } => (*candidacy, &[Request::TakeOver]),
        Event::Renewed { candidacy, .. } => (*candidacy, &[Request::Renew]),
        Event::Marked { candidacy, .. } => (*candidacy, &[Request::Mark]),
        Event::Released { candidacy } => (*candidacy, &[Request::Release]),
        Event::Denied { candidacy, request, .. } | Event::Unanswered { candidacy, request } => {
            (*candidacy, std::slice::from_ref(request))
        }
        _ => return false,
    };
    candidacy == asked_in && requests.contains(&awaited)
}
