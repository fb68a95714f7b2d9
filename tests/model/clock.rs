//! Time passes, on each host's clock by as much as the adversary likes between the slowest and the fastest.
//!
//! Never: an instant; only distances from now.

use crate::rules::Rules;
use crate::world::{HOSTS, Host, Role, World};

pub fn tick(rules: &Rules, world: &mut World, advances: [u8; HOSTS]) {
    for (host, advance) in world.hosts.iter_mut().zip(advances) {
        pass(rules, host, advance);
    }
}

fn pass(rules: &Rules, host: &mut Host, by: u8) {
    if let Some(known) = &mut host.known {
        known.age = (known.age + by).min(rules.wait(rules.longest()));
    }
    for sending in host.request.iter_mut().map(|request| &mut request.sending).chain(&mut host.sending) {
        sending.age = (sending.age + by).min(rules.usable(rules.longest()));
        sending.not_before = sending.not_before.saturating_sub(by);
    }
    if let Role::Holding(tenure) = &mut host.role {
        tenure.not_before = tenure.not_before.saturating_sub(by);
        tenure.kill_at = tenure.kill_at.map(|left| left.saturating_sub(by));
        // The guard kills; nothing else is ever in time by itself.
        tenure.tree = tenure.tree && tenure.kill_at != Some(0);
    }
}
