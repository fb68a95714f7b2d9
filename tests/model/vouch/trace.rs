//! A counterexample as it can be read: one line for each step, with what the record says and what each host holds then.
//!
//! Never: a judgement.

use std::fmt::Write as _;

use super::moves::Move;
use super::rules::Rules;
use super::world::{Holder, Host, Record, Role, Roster, Sort, World, Write};

const NAMES: [&str; 3] = ["A", "B", "C"];

/// The steps with the real time at which each is taken, in steps of the model's clock.
pub fn trace(rules: &Rules, way: &[(Move, World)]) -> String {
    let mut text = String::new();
    let mut time = 0;
    let mut before = World::new(rules.deletions);
    for (step, after) in way {
        time += usize::from(matches!(step, Move::Tick(_)));
        let hosts: Vec<_> =
            rules.hosts().map(|host| format!("{} {}", NAMES[host], state_of(&after.hosts[host]))).collect();
        let (step, record) = (sentence(rules, &before, *step), record(after.record));
        writeln!(text, "{time:>3}  {step:<52} | {record:<28} | {}", hosts.join(" | ")).ok();
        before = after.clone();
    }
    text
}

fn sentence(rules: &Rules, before: &World, step: Move) -> String {
    let on = |host: usize, text: &str| format!("{} {text}", NAMES[host]);
    let again = |round: bool| if round { ", and its number comes round again" } else { "" };
    match step {
        Move::Tick(advances) if rules.drift => {
            let clocks: Vec<_> = rules.hosts().map(|host| format!("{} +{}", NAMES[host], advances[host])).collect();
            format!("time passes: {}", clocks.join(", "))
        }
        Move::Tick(_) => "time passes".to_owned(),
        Move::Look(host) => on(host, "reads the record"),
        Move::LookBack(host) => on(host, "reads the version before, from a server that lags behind"),
        Move::TakeOver { host, roster } => on(host, &format!("sends a take-over, roster {}", names(roster))),
        Move::Renew { host, roster } => on(host, &format!("sends a renewal, roster {}", names(roster))),
        Move::Apply { host, round } => {
            let write = before.hosts[host].request.map(|request| request.write);
            format!("{} of {} is applied{}", sort(write), NAMES[host], again(round))
        }
        Move::ApplyLate { late, round } => format!("late, {} is applied{}", sort(before.late[late]), again(round)),
        Move::Answer(host) => on(host, "hears that it was applied"),
        Move::GiveUp(host) => on(host, "waits for the answer no longer"),
        Move::Adopt(host) => on(host, "finds its own nonce in the record"),
        Move::AdoptFormer(host) => on(host, "finds its own nonce in the version before"),
        Move::Ask(host) => on(host, "asks whom it needs"),
        Move::Promise { leader, host, age } => on(host, &format!("promises to {} (asked {age} ago)", NAMES[leader])),
        Move::Hear { leader, host, age } => on(leader, &format!("hears {} say yes (asked {age} ago)", NAMES[host])),
        Move::Leave(host) => on(host, "leaves, and says so"),
        Move::HearGone { leader, gone } => on(leader, &format!("hears that {} is gone", names(gone))),
        Move::Start(host) => on(host, "STARTS its tree"),
        Move::End(host) => on(host, "ends its tree"),
        Move::Release(host) => on(host, "sends a release"),
        Move::Lose(host) => on(host, "gives its tenure up"),
        Move::Restart(host) => on(host, "is restarted: a new instance"),
        Move::Delete => "an operator deletes the record".to_owned(),
        Move::Recreate(host) => on(host, "finds no record, and sends its creation"),
        Move::Presume(host) => on(host, "needs nobody, and takes that for a lease"),
    }
}

fn names(roster: Roster) -> String {
    let hosts = (0..NAMES.len()).filter(|&host| roster.has(host)).map(|host| NAMES[host]);
    let dead = roster.includes(Roster::DEAD).then_some("a dead one");
    let gone = roster.includes(Roster::GONE).then_some("one that has left");
    let all: Vec<_> = hosts.chain(dead).chain(gone).collect();
    if all.is_empty() { "–".to_owned() } else { all.join("+") }
}

fn sort(write: Option<Write>) -> &'static str {
    match write.map(|write| write.sort) {
        None => "nothing",
        Some(Sort::TakeOver) => "the take-over",
        Some(Sort::Renewal) => "the renewal",
        Some(Sort::Release) => "a release",
        Some(Sort::Creation) => "a creation",
    }
}

fn record(record: Option<Record>) -> String {
    let Some(Record { free, holder, limit, roster, .. }) = record else { return "no record".to_owned() };
    let whose = match holder {
        Holder::Nobody => "?",
        Holder::Host(host) => NAMES[usize::from(host)],
    };
    if free { "free".to_owned() } else { format!("{whose}, limit {limit}, roster {}", names(roster)) }
}

fn state_of(host: &Host) -> String {
    let promised = if host.promised > 0 { format!(", promised {}", host.promised) } else { String::new() };
    let role = match host.role {
        Role::Following if host.left => "has left".to_owned(),
        Role::Following => host.known.map_or("follows".to_owned(), |known| format!("follows (seen {} ago)", known.age)),
        Role::Leading(tenure) => {
            let tree = if tenure.tree { " TREE" } else { "" };
            format!("leads ({} left, needs {}){tree}", tenure.kill_at, names(tenure.needed))
        }
    };
    role + &promised
}
