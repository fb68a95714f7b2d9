//! The answer to each path, from a status and the present moment alone.
//!
//! Never: an answer that was prepared before it was asked for.

use serde_json::{Value, json};

use crate::core::action::PhaseName;
use crate::core::time::Now;
use crate::observe::metrics::{self, Metrics};
use crate::observe::status::{Role, Status};
use crate::observe::vouching;
use crate::observe::words::{self, seconds};
use crate::zookeeper::publish::DrainNotice;
use crate::zookeeper::schema::member::About;
use crate::zookeeper::schema::vouching::Neighbourhood;

/// The identity of this process.
#[derive(Clone, Debug)]
pub struct Identity {
    pub name: String,
    pub id: String,
    /// The base path of the election, the chroot included.
    pub path: String,
    pub host: String,
    pub pid: u32,
    pub about: About,
}

impl Identity {
    /// The label of metrics: a default id (host:pid) changes with each restart and would begin a new series, so it is the host.
    pub fn participant(&self) -> &str {
        let host = self.id.strip_suffix(&format!(":{}", self.pid)).filter(|host| *host == self.host);
        host.unwrap_or(&self.id)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    pub code: u16,
    pub kind: &'static str,
    pub body: String,
}

pub const TEXT: &str = "text/plain; charset=utf-8";
pub const JSON: &str = "application/json";

const UNAVAILABLE: u16 = 503;

pub const INDEX: &str = "\
/leader   200 while the lease is valid and the command runs, else 503
/standby  200 while in line for leadership and connected, else 503
/livez    200 while the supervisor's loop turns, else 503
/readyz   200 while connected and contending, else 503
/status   everything, as JSON
/metrics  for Prometheus
";

impl Answer {
    pub fn text(code: u16, line: impl Into<String>) -> Self {
        Self { code, kind: TEXT, body: line.into() }
    }

    fn yes_or_no(yes: bool, line: String) -> Self {
        Self::text(if yes { 200 } else { UNAVAILABLE }, line)
    }

    /// The loop did not turn when it was asked to.
    pub fn hung(status: &Status, now: Now) -> Self {
        let age = words::length(status.turned.lease.until(now.lease));
        Self::text(UNAVAILABLE, format!("the supervisor's loop has not turned for {age}\n"))
    }
}

pub fn leader(status: &Status, now: Now) -> Answer {
    let token = status.snapshot.held_term.map(|held| held.grant.token);
    match (status.role(now), token) {
        (Role::Leader, Some(token)) => {
            let left = words::length(status.time_left(now));
            Answer::text(200, format!("leader: token {token}, for {left} more unless renewed\n"))
        }
        (_, Some(token)) if is_about_to_start(status) => {
            Answer::text(UNAVAILABLE, format!("not yet: elected (token {token}), but the command does not run yet\n"))
        }
        _ => Answer::text(UNAVAILABLE, format!("not the leader: {}\n", status.sentence())),
    }
}

/// Before its first run, or between two.
fn is_about_to_start(status: &Status) -> bool {
    let is_elected = matches!(status.snapshot.phase, PhaseName::Preparing | PhaseName::Leading);
    is_elected && status.in_contact() && status.command.is_none()
}

pub fn standby(status: &Status, now: Now) -> Answer {
    let line = match status.role(now) {
        Role::Standby => format!("standby: {}\n", status.sentence()),
        Role::Leader => "not a standby: the leader\n".to_owned(),
        Role::Neither => format!("not a standby: {}\n", status.sentence()),
    };
    Answer::yes_or_no(status.role(now) == Role::Standby, line)
}

pub fn ready(status: &Status, now: Now) -> Answer {
    let ready = status.is_ready(now);
    Answer::yes_or_no(ready, format!("{}: {}\n", if ready { "ready" } else { "not ready" }, status.sentence()))
}

pub fn alive() -> Answer {
    Answer::text(200, "alive: the supervisor's loop turns\n")
}

pub fn metrics(metrics: &Metrics, status: &Status, now: Now) -> Answer {
    Answer { code: 200, kind: metrics::KIND, body: metrics.text(status, now) }
}

pub fn status(
    identity: &Identity,
    status: &Status,
    (drain, names): (Option<&DrainNotice>, &Neighbourhood),
    now: Now,
) -> Answer {
    let Status { snapshot, .. } = status;
    let role = match status.role(now) {
        Role::Leader => "leader",
        Role::Standby => "standby",
        Role::Neither => "none",
    };
    let session = snapshot.view.map(|view| format!("{:#x}", view.session_id));
    let everything = json!({
        "v": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "name": identity.name, "id": identity.id, "path": identity.path, "host": identity.host, "pid": identity.pid,
        "contain": identity.about.contain,
        "protection": status.protection(),
        "meta": identity.about.meta,
        "role": role,
        "phase": words::phase(snapshot.phase),
        "why": status.why.map(words::reason_code),
        "barred": snapshot.barred.map(words::reason_code),
        "drained": drain.map(|notice| drained(notice, snapshot.run.is_some())),
        "seconds_in_phase": seconds(status.since.until(now.lease)),
        "connected": status.in_contact(),
        "ready": status.is_ready(now),
        "others_before": status.others_before(),
        "session": session,
        "lease_seconds": snapshot.timing.map(|timing| seconds(timing.lease)),
        "candidate": snapshot.view.map(|view| view.candidate.as_str().to_owned()),
        "term": snapshot.held_term.map(|held| json!({
            "token": held.grant.token,
            "number": held.grant.term,
            "lease_seconds_left": seconds(status.lease_left(now)),
            "seconds_until_stop": seconds(status.time_left(now)),
        })),
        "vouching": vouching::state(status, names, now),
        "command": status.command.map(|pid| json!({ "pid": pid, "frozen": snapshot.frozen })),
        "loop_age_seconds": seconds(status.turned.lease.until(now.lease)),
    });
    let body = serde_json::to_string_pretty(&everything).unwrap_or_default();
    Answer { code: 200, kind: JSON, body: words::printable_json(&body) + "\n" }
}

fn drained(notice: &DrainNotice, is_at_work: bool) -> Value {
    json!({
        "by": notice.drain.by,
        "reason": notice.drain.reason,
        "since": notice.written_at,
        "until": notice.drain.ends_at(notice.written_at),
        "obeyed": notice.is_obeyed(is_at_work),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::core::machine::{Vouched, Vouchees};
    use crate::core::time::Sighting;
    use crate::core::vouching::Needed;
    use crate::observe::status::tests::{at, leading};
    use crate::zookeeper::schema::control::drain::Drain;

    fn identity(id: &str) -> Identity {
        Identity {
            name: "job".into(),
            id: id.into(),
            path: "/job".into(),
            host: "h1".into(),
            pid: 4711,
            about: About::default(),
        }
    }

    /// The names of all fields.
    fn fields(value: &Value, prefix: &str, found: &mut BTreeSet<String>) {
        for (key, value) in value.as_object().into_iter().flatten() {
            let name = if value.is_array() { format!("{prefix}{key}[]") } else { format!("{prefix}{key}") };
            fields(value.get(0).unwrap_or(value), &format!("{name}."), found);
            found.insert(name);
        }
    }

    #[test]
    fn every_field_of_the_status_is_in_its_document_and_no_other() {
        let now = at(Duration::from_secs(100));
        let needed = Needed { instance: 2, promised_at: Some(now.lease), silent_since: Some(now.lease) };
        let needed = std::array::from_fn(|index| (index == 0).then_some(needed));
        let leads = Vouchees { needed, written_at: now.lease, limit_at: now.lease, recent: Duration::ZERO };
        let mut example = leading(now, now.lease);
        example.snapshot.vouching = Some(Vouched {
            limit: Duration::ZERO,
            promised_until: Sighting::ZERO,
            promised_to: None,
            leads: Some(leads),
        });
        let drain = DrainNotice { drain: Drain::default(), written_at: 0, has_others: true, runs_once: false };
        let said = status(&identity("a"), &example, (Some(&drain), &Neighbourhood::default()), now);
        let mut shown = BTreeSet::new();
        fields(&serde_json::from_str(&said.body).unwrap(), "", &mut shown);
        let page = include_str!("../../../docs/status.md");
        let cells = page.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
        let told: BTreeSet<_> =
            cells.flat_map(|cell| cell.split(',')).map(|name| name.trim().trim_matches('`').to_owned()).collect();
        assert_eq!(told, shown);
    }

    #[test]
    fn an_id_that_nobody_chose_is_the_host_to_metrics() {
        assert_eq!(identity("h1:4711").participant(), "h1");
        for chosen in ["a", "h1", "h2:4711", "h1:4712"] {
            assert_eq!(identity(chosen).participant(), chosen);
        }
    }
}
