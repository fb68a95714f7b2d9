//! Replaces a machine, where it may be handed over, by the copy that the next program would read.

use zk_leader_run::core::machine::{Machine, Settings};
use zk_leader_run::core::time::{Now, Timestamp};

/// T / 5 is the connection timeout.
const CONNECTION_TIMEOUTS: u32 = 5;

/// In about one of `one_of` quiet moments. Panics if the copy differs.
pub fn replace(machine: &mut Machine, settings: &Settings, now: Now, one_of: u64) -> bool {
    if (now.lease.as_nanos() >> 20) % one_of != 0 {
        return false;
    }
    let Ok(state) = machine.hand_over(now, Timestamp::ZERO) else { return false };
    let negotiated = machine.snapshot().timing.unwrap().connection_timeout * CONNECTION_TIMEOUTS;
    let text = serde_json::to_string(&state).unwrap();
    let copy = Machine::take_up(settings, negotiated, serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!(format!("{copy:?}"), format!("{machine:?}"), "the copy differs");
    *machine = copy;
    true
}
