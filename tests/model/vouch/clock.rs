//! Time passes, on each host's clock by as much as the adversary likes between the slowest and the fastest.
//!
//! Never: an instant; only distances from now.

use super::datagrams::grow_older;
use super::rules::Rules;
use super::world::{Host, Role, World};
use crate::world::HOSTS;

pub fn tick(rules: &Rules, world: &mut World, advances: [u8; HOSTS]) {
    for (host, advance) in advances.into_iter().enumerate() {
        pass(rules, &mut world.hosts[host], host, advance);
    }
}

fn pass(rules: &Rules, this: &mut Host, host: usize, by: u8) {
    if let Some(known) = &mut this.known {
        known.age = (known.age + by).min(rules.oldest());
    }
    this.promised = this.promised.saturating_sub(by);
    for sending in this.request.iter_mut().map(|request| &mut request.sending).chain(&mut this.sending) {
        sending.age = (sending.age + by).min(rules.usable(rules.limits[host]));
        sending.not_before = sending.not_before.saturating_sub(by);
    }
    if let Role::Leading(tenure) = &mut this.role {
        tenure.kill_at = tenure.kill_at.saturating_sub(by);
        tenure.acked = (tenure.acked + by).min(rules.usable(rules.limits[host]));
        tenure.not_before = tenure.not_before.saturating_sub(by);
        grow_older(rules, tenure, by);
        // The guard kills; nothing else is ever in time by itself.
        tenure.tree = tenure.tree && tenure.kill_at > 0;
    }
}
