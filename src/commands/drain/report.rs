//! What `drain` says of the host: what it still leads, and what to do.

use std::time::Duration;

use super::Drained;
use super::fleet::Fleet;
use crate::observe::words;
use crate::zookeeper::schema::control::remedy;

pub(super) fn nobody_of_that_name(order: &Drained<'_>, fleet: &Fleet) -> String {
    let (host, hosts) = (order.host, who_takes_part(fleet));
    let remedy = remedy::about_host("undrain", host, order.root);
    if fleet.closed.is_empty() {
        return format!(
            "No host called {host} takes part now ({hosts}). The drain is stored for that name and stops nothing now; {remedy} removes it"
        );
    }
    format!(
        "No host called {host} takes part in the elections that we may read ({hosts}); whether it takes part in {} is not known. The \
         drain is stored for that name: if it is mistyped, {remedy} removes it",
        listed(&fleet.closed)
    )
}

fn who_takes_part(fleet: &Fleet) -> String {
    let hosts: Vec<_> = fleet.hosts.iter().cloned().collect();
    if hosts.is_empty() { "nobody takes part".to_owned() } else { format!("these take part: {}", listed(&hosts)) }
}

/// Where it may lead, for all that is known, and nobody has named it.
fn doubt(host: &str, fleet: &Fleet) -> Option<String> {
    let sentence = || format!("no host called {host} takes part ({}): is the name right?", who_takes_part(fleet));
    (!fleet.has_it()).then(sentence)
}

/// What nobody waits for, if there is anything to say. What we may not read was told.
pub(super) fn not_waited_for(order: &Drained<'_>, fleet: &Fleet) -> Option<String> {
    let waits_for = || Some(waits_for(order.host, fleet)).filter(|may_lead| !may_lead.is_empty());
    match fleet.shared {
        0 if fleet.may_have_it() => {
            let parts: Vec<_> = waits_for().into_iter().chain(doubt(order.host, fleet)).collect();
            (!parts.is_empty()).then(|| parts.join("; "))
        }
        0 => Some(nobody_of_that_name(order, fleet)),
        _ => (!fleet.alone.is_empty()).then(|| stays_in(order, &fleet.alone)),
    }
}

pub(super) fn waits_for(host: &str, fleet: &Fleet) -> String {
    let perhaps: Vec<_> = fleet.perhaps.iter().map(|(name, why)| format!("{name} ({why})")).collect();
    may_lead_or_stays(host, fleet, &perhaps)
}

/// `perhaps`: nobody knows whether it leads these.
fn may_lead_or_stays(host: &str, fleet: &Fleet, perhaps: &[String]) -> String {
    let stays = part(&fleet.stays, |names| format!("; it stays leader of {names}, which no other host could lead"));
    may_lead(host, fleet, perhaps) + &stays.unwrap_or_default()
}

fn may_lead(host: &str, fleet: &Fleet, perhaps: &[String]) -> String {
    let is_now = !fleet.led.is_empty();
    let led = part(&fleet.led, |names| format!("{host} still leads {names}"));
    let who = if is_now { "it" } else { host };
    let next = part(&fleet.next, |names| format!("{who} will lead {names} next: no other host can"));
    let who = if is_now || next.is_some() { "it".to_owned() } else { format!("{host} is drained; it") };
    let unknown = part(&fleet.unknown, |names| {
        format!(
            "{who} may lead {names}, whose lease record is missing or cannot be read (zk-leaderctl doctor says why)"
        )
    });
    let who = if unknown.is_some() { "it".to_owned() } else { who };
    let perhaps = part(perhaps, |names| format!("{who} may lead {names}"));
    [led, next, unknown, perhaps].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// No wait opens them.
pub(super) fn closed(host: &str, fleet: &Fleet) -> String {
    let remedy = "give us credentials that may (--auth-file), or look there";
    format!("{host} may lead {}, which we may not read; {remedy}", listed(&fleet.closed))
}

pub(super) fn unfinished(order: &Drained<'_>, fleet: &Fleet, limit: Duration) -> String {
    // Why that is not known of these was told.
    let perhaps: Vec<_> = fleet.perhaps.iter().map(|(name, _)| name.clone()).collect();
    let what = may_lead_or_stays(order.host, fleet, &perhaps);
    let what = format!("{what} ({} have passed)", words::length(limit));
    let longer = (!perhaps.is_empty()).then(|| "a longer --timeout may tell".to_owned());
    let is_led = !fleet.led.is_empty() || !fleet.unknown.is_empty();
    let why = is_led.then(|| why_not_yet(fleet, &order.drain.forced(order.host, order.root)));
    let is_alone = !fleet.next.is_empty() || !fleet.stays.is_empty();
    let remedy = is_alone.then(|| remedy_for_the_only_one(order));
    [Some(what), longer, why, remedy, doubt(order.host, fleet)].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Of elections that no other host could lead.
pub(super) fn stays_in(order: &Drained<'_>, names: &[String]) -> String {
    let remedy = remedy_for_the_only_one(order);
    format!("{} still leads {}, which no other host could lead; {remedy}", order.host, listed(names))
}

fn remedy_for_the_only_one(order: &Drained<'_>) -> String {
    format!("start one elsewhere, or {} stops it", order.drain.forced(order.host, order.root))
}

/// What is said of these, if there are any.
fn part(names: &[String], said: impl FnOnce(String) -> String) -> Option<String> {
    (!names.is_empty()).then(|| said(listed(names)))
}

/// At most ten by name.
pub(super) fn listed(names: &[String]) -> String {
    const MOST: usize = 10;
    let first = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{first} and {} more", names.len() - MOST) } else { first }
}

/// Why it still leads these, of which it is stopping some.
fn why_not_yet(fleet: &Fleet, forced: &str) -> String {
    const UNHEARD: &str = "it may be cut off, or run an older version";
    let Fleet { led, stopping, lets_end, runs_out, .. } = fleet;
    let continues = part(stopping, |names| format!("it is still stopping its command in {names}, and continues"));
    let told = stopping.len() + lets_end.len() + runs_out.len();
    let runs_out = part(runs_out, |whys| whys);
    let lets_end = part(lets_end, |names| {
        let why = "a job that no other host would repeat";
        format!("it has heard of it and lets the run end in {names} ({why}); {forced} ends it")
    });
    let unheard = match told {
        0 => Some(UNHEARD.to_owned()),
        _ if told < led.len() => Some(format!("elsewhere {UNHEARD}")),
        _ => None,
    };
    [continues, lets_end, runs_out, unheard].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_election_whose_record_cannot_be_read_is_said_to_be_led_perhaps() {
        let fleet = |led: &[&str]| Fleet {
            led: led.iter().map(ToString::to_string).collect(),
            unknown: vec!["x".to_owned()],
            ..Fleet::default()
        };
        let unknown = "it may lead x, whose lease record is missing or cannot be read (zk-leaderctl doctor says why)";
        assert_eq!(waits_for("db1", &fleet(&[])), format!("db1 is drained; {unknown}"));
        assert_eq!(waits_for("db1", &fleet(&["a"])), format!("db1 still leads a; {unknown}"));
    }

    /// A host that has only ever followed, say.
    #[test]
    fn a_host_of_which_nobody_knows_whether_it_leads_is_not_said_to_lead() {
        let perhaps = vec![("x".to_owned(), "W".to_owned())];
        assert_eq!(waits_for("db1", &Fleet { perhaps, ..Fleet::default() }), "db1 is drained; it may lead x (W)");
    }

    #[test]
    fn elections_that_we_may_not_read_are_named_with_what_to_do() {
        let fleet = Fleet { closed: vec!["a".to_owned(), "b".to_owned()], ..Fleet::default() };
        let said =
            "db1 may lead a, b, which we may not read; give us credentials that may (--auth-file), or look there";
        assert_eq!(closed("db1", &fleet), said);
    }

    #[test]
    fn what_stays_is_told_beside_what_is_waited_for() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let fleet = |led, stays| Fleet { led: names(led), stays: names(stays), ..Fleet::default() };
        assert_eq!(waits_for("db1", &fleet(&["a", "b"], &[])), "db1 still leads a, b");
        let one_left = waits_for("db1", &fleet(&["b"], &["a"]));
        assert_eq!(one_left, "db1 still leads b; it stays leader of a, which no other host could lead");
    }

    #[test]
    fn ten_are_listed_by_name_and_the_others_are_counted() {
        let names: Vec<_> = (1..=12).map(|number| number.to_string()).collect();
        assert_eq!(listed(&names[..2]), "1, 2");
        assert_eq!(listed(&names[..10]), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10");
        assert_eq!(listed(&names), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more");
    }

    #[test]
    fn a_host_that_stops_is_not_said_to_be_cut_off() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let why =
            |led, stopping| why_not_yet(&Fleet { led: names(led), stopping: names(stopping), ..Fleet::default() }, "");
        assert_eq!(why(&["a"], &[]), "it may be cut off, or run an older version");
        assert_eq!(why(&["a", "b"], &["a", "b"]), "it is still stopping its command in a, b, and continues");
        let some = "it is still stopping its command in b, and continues; elsewhere it may be cut off, or run an older version";
        assert_eq!(why(&["a", "b"], &["b"]), some);
        assert_eq!(why(&[], &[]), "it may be cut off, or run an older version", "a record cannot be read");
    }

    #[test]
    fn a_host_that_lets_a_job_end_is_not_said_to_be_cut_off() {
        let why = |led: &[&str]| {
            let led = led.iter().map(ToString::to_string).collect();
            why_not_yet(&Fleet { led, lets_end: vec!["a".to_owned()], ..Fleet::default() }, "F")
        };
        let sentence =
            "it has heard of it and lets the run end in a (a job that no other host would repeat); F ends it";
        assert_eq!(why(&["a"]), sentence);
        let elsewhere = "elsewhere it may be cut off, or run an older version";
        assert_eq!(why(&["a", "b"]), format!("{sentence}; {elsewhere}"));
    }

    #[test]
    fn why_a_lease_must_run_out_is_all_that_is_said() {
        let fleet = Fleet { led: vec!["x".into()], runs_out: vec!["in x, a is gone".to_owned()], ..Fleet::default() };
        assert_eq!(why_not_yet(&fleet, ""), "in x, a is gone", "it may be cut off: that is known");
    }
}
