//! What must hold in every state that can be reached.
//!
//! Never: what was; a state must tell by itself whether it is safe.

use super::rules::Rules;
use super::world::World;
use crate::properties::Property;

pub const ALL: [Property<Rules>; 3] = [
    Property { name: "never two live trees", holds: never_two_live_trees },
    Property { name: "a free record means no live tree", holds: a_free_record_means_no_live_tree },
    Property { name: "who may start a tree finds no other alive", holds: no_start_beside_a_live_tree },
];

/// The promise.
fn never_two_live_trees(rules: &Rules, world: &World) -> bool {
    rules.hosts().filter(|&host| world.is_live(host)).count() < 2
}

fn a_free_record_means_no_live_tree(rules: &Rules, world: &World) -> bool {
    let free = world.record.is_some_and(|record| record.free);
    !free || !rules.hosts().any(|host| world.is_live(host))
}

fn no_start_beside_a_live_tree(rules: &Rules, world: &World) -> bool {
    let may_start = |host: usize| world.tenure(host).is_some_and(|tenure| tenure.kill_at > 0);
    !rules.hosts().any(|live| world.is_live(live) && rules.hosts().any(|other| other != live && may_start(other)))
}
