//! A counterexample as it can be read: one line for each step, with what the record says and what each host holds then.
//!
//! Never: a judgement.

use std::fmt::Write as _;

use crate::moves::Move;
use crate::rules::Rules;
use crate::world::{Host, Nonce, Record, Role, Sort, State, World, Write};

const NAMES: [&str; 3] = ["A", "B", "C"];

/// The steps with the real time at which each is taken, in steps of the model's clock.
pub fn trace(rules: &Rules, way: &[(Move, World)]) -> String {
    let mut text = String::new();
    let mut time = 0;
    let mut before = World::new();
    for (step, after) in way {
        time += usize::from(matches!(step, Move::Tick(_)));
        let hosts: Vec<_> =
            rules.hosts().map(|host| format!("{} {}", NAMES[host], state_of(&after.hosts[host]))).collect();
        writeln!(
            text,
            "{time:>3}  {:<58} | {:<24} | {}",
            sentence(rules, &before, *step),
            record(after.record),
            hosts.join(" | ")
        )
        .ok();
        before = after.clone();
    }
    text
}

fn sentence(rules: &Rules, before: &World, step: Move) -> String {
    let on = |host: usize, text: &str| format!("{} {text}", NAMES[host]);
    let round = |round: bool| if round { ", and its number comes round again" } else { "" };
    match step {
        Move::Tick(advances) if rules.drift => {
            let clocks: Vec<_> = rules.hosts().map(|host| format!("{} +{}", NAMES[host], advances[host])).collect();
            format!("time passes: {}", clocks.join(", "))
        }
        Move::Tick(_) => "time passes".to_owned(),
        Move::Look(host) => on(host, "reads the record"),
        Move::LookBack(host) => on(host, "reads the version before, from a server that lags behind"),
        Move::ReadTerm(host) => on(host, "reads the term, after the record"),
        Move::TakeOver(host) => on(host, "sends a take-over"),
        Move::Renew(host) => on(host, "sends a renewal"),
        Move::Apply { host, round: again } => {
            format!(
                "{} of {} is applied{}",
                sort(before.hosts[host].request.map(|it| it.write)),
                NAMES[host],
                round(again)
            )
        }
        Move::ApplyLate { late, round: again } => {
            format!("late, {} is applied{}", sort(before.late.get(late).copied()), round(again))
        }
        Move::Answer(host) => on(host, "hears that it was applied"),
        Move::GiveUp(host) => on(host, "waits for the answer no longer"),
        Move::Adopt(host) => on(host, "finds its own nonce in the record, and adopts it"),
        Move::AdoptFormer(host) => on(host, "finds its own nonce in the version before, and adopts it"),
        Move::Start(host) => on(host, "STARTS its tree"),
        Move::End(host) => on(host, "ends its tree"),
        Move::BeginRelease(host) => on(host, "is to release"),
        Move::SendRelease(host) => on(host, "sends the release"),
        Move::Leave { host, remembers: true } => on(host, "goes back into the line, its record as good as free"),
        Move::Leave { host, remembers: false } => on(host, "goes back into the line"),
        Move::Lose(host) => on(host, "gives its tenure up"),
        Move::Crash(host) => on(host, "is killed, tree and all, and leaves a releaser"),
        Move::Delete => "an operator deletes the record".to_owned(),
        Move::Recreate(host) => on(host, "finds no record, and sends its creation"),
    }
}

fn sort(write: Option<Write>) -> String {
    let Some(write) = write else { return "nothing".to_owned() };
    match write.sort {
        Sort::TakeOver => "the take-over".to_owned(),
        Sort::Renewal => "the renewal".to_owned(),
        Sort::Release => "a release".to_owned(),
        Sort::Creation => "a creation".to_owned(),
    }
}

fn record(record: Option<Record>) -> String {
    let Some(Record { state, nonce, lease, .. }) = record else { return "no record".to_owned() };
    let whose = match nonce {
        Nonce::Stranger => "?".to_owned(),
        Nonce::Of(host) => NAMES[usize::from(host)].to_owned(),
        Nonce::FinishedOf(host) => format!("{} (finished)", NAMES[usize::from(host)]),
    };
    match state {
        State::Free => "free".to_owned(),
        State::Held => format!("held by {whose}, lease {lease}"),
        State::Waiting => format!("{whose} waits, lease {lease}"),
    }
}

fn state_of(host: &Host) -> String {
    match host.role {
        Role::Following => host.known.map_or("follows".to_owned(), |known| format!("follows (seen {} ago)", known.age)),
        Role::Releasing(_) => "releases".to_owned(),
        Role::Holding(tenure) => {
            let kill_at = tenure.kill_at.map_or("no lease yet".to_owned(), |left| format!("lease {left}"));
            let wait = if tenure.not_before > 0 { format!(", wait {}", tenure.not_before) } else { String::new() };
            format!("holds ({kill_at}{wait}){}", if tenure.tree { " TREE" } else { "" })
        }
    }
}
