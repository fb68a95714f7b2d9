//! What must hold in every state that can be reached.
//!
//! Never: what was; a state must tell by itself whether it is safe.

use crate::check::Model;
use crate::rules::Rules;
use crate::world::{State, Tenure, Version, World};

/// Something that must hold in every state.
pub struct Property<M: Model = Rules> {
    pub name: &'static str,
    pub holds: fn(&M, &M::World) -> bool,
}

pub const ALL: [Property; 3] = [
    Property { name: "never two live trees", holds: never_two_live_trees },
    Property { name: "a free record means no live tree", holds: a_free_record_means_no_live_tree },
    Property { name: "no start before the last kill", holds: no_start_before_the_last_kill },
];

/// The promise.
pub fn never_two_live_trees(rules: &Rules, world: &World) -> bool {
    rules.hosts().filter(|&host| world.is_live(host)).count() < 2
}

pub fn a_free_record_means_no_live_tree(rules: &Rules, world: &World) -> bool {
    let free = world.record.is_some_and(|record| record.state == State::Free);
    !free || !rules.hosts().any(|host| world.is_live(host))
}

/// `kill_at` of a live tree comes, on the slowest clock, no later than the start of any other, on the fastest.
/// Compared exactly: kills and starts need not fall on the steps of the model's time.
pub fn no_start_before_the_last_kill(rules: &Rules, world: &World) -> bool {
    let [slow, fast] = rules.rates().map(u16::from);
    let pairs = rules.hosts().flat_map(|live| rules.hosts().map(move |other| (live, other)));
    let tenures = pairs.filter(|(live, other)| live != other && world.is_live(*live));
    let mut tenures = tenures.filter_map(|(live, other)| Some((world.tenure(live)?, (other, world.tenure(other)?))));
    tenures.all(|(live, (host, other))| {
        let kill_at = u16::from(live.kill_at.unwrap_or_default()) * fast;
        !may_start(rules, world, host, other) || kill_at <= u16::from(other.not_before) * slow
    })
}

/// Whether this tenure may yet start a tree: there is lease left after the wait, or more may still come.
fn may_start(rules: &Rules, world: &World, host: usize, tenure: Tenure) -> bool {
    let runway = tenure.kill_at.is_some_and(|kill_at| kill_at > tenure.not_before);
    let ours = |record: Version, term| record == Version::Present && term;
    let renewable = tenure.kill_at != Some(0) && ours(tenure.condition.record, tenure.condition.term);
    let asked = world.hosts[host].request.is_some_and(|request| {
        let gives = rules.usable(rules.leases[host]).saturating_sub(request.sending.age);
        let condition = request.write.condition;
        if request.applied { gives > tenure.not_before } else { ours(condition.record, condition.term) }
    });
    runway || renewable || asked && tenure.kill_at != Some(0)
}
