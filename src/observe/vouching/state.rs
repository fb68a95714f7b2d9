//! Vouching as it stands, for programs.

use serde_json::{Value, json};

use super::{lacks_since, words};
use crate::core::action::PhaseName;
use crate::core::machine::Vouchees;
use crate::core::time::{Now, Timestamp};
use crate::core::vouching::Needed;
use crate::observe::status::Status;
use crate::observe::words::seconds;
use crate::zookeeper::schema::vouching::Neighbourhood;

/// What `/status` says; `None`: without `--vouch`. Lengths are in seconds.
pub fn state(status: &Status, names: &Neighbourhood, now: Now) -> Option<Value> {
    let vouched = status.snapshot.vouching?;
    let on_promises = status.snapshot.phase == PhaseName::Vouched;
    Some(json!({
        "limit_seconds": vouched.limit.as_secs_f64(),
        "promised_seconds_left": seconds(now.observer.until(vouched.promised_until)),
        "leads": vouched.leads.map(|leads| json!({
            "ready": leads.is_ready(now.lease),
            "on_promises_for_seconds": on_promises.then(|| age(leads.written_at, now)),
            "limit_seconds_left": seconds(now.lease.until(leads.limit_at)),
            "needed": leads.needed().map(|host| needed(host, &leads, names, now)).collect::<Vec<_>>(),
        })),
    }))
}

fn needed(host: Needed, leads: &Vouchees, names: &Neighbourhood, now: Now) -> Value {
    json!({
        "instance": format!("{:016x}", host.instance),
        "id": words::id(names, host.instance),
        "address": names.of(host.instance).map(|host| host.address.to_string()),
        "ready": host.promised_at.is_some_and(|at| now.lease < at.after(leads.recent)),
        "promised_seconds_ago": host.promised_at.map(|at| age(at, now)),
        "silent_for_seconds": host.silent_since.map(|at| age(at, now)),
    })
}

/// How old the oldest promise is of those that are needed, in seconds; of a host that has promised nothing, since when it was
/// asked. `None`: nobody is needed.
pub fn oldest_promise(leads: &Vouchees, now: Now) -> Option<f64> {
    let oldest = leads.needed().map(|host| lacks_since(host).unwrap_or(now.lease)).min();
    oldest.map(|at| age(at, now))
}

fn age(at: Timestamp, now: Now) -> f64 {
    seconds(at.until(now.lease))
}
