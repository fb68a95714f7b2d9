//! `status`: who leads, since when, who is next, and why the others are not eligible.
//!
//! Never: status 0 where nobody leads.

use std::time::Duration;

use serde_json::{Value, json};

use super::paper::{Cell, Paper, Tone, moment};
use super::verdict::{self, Contender, Verdict};
use super::{Answer, Desk, Excuse, NOT_KNOWN};
use crate::config::ctl::Format;
use crate::observe::words;
use crate::zookeeper::admin::view::{Election, Office};

const LED: u8 = 0;
const NOBODY: u8 = 1;

pub(super) async fn answer(desk: &Desk<'_>) -> Result<Answer, Excuse> {
    let election = desk.election().await?;
    Ok(of(&election, &desk.paper))
}

/// What one look at an election says.
pub(super) fn of(election: &Election, paper: &Paper) -> Answer {
    let verdicts = verdicts(election);
    let status = status_of(&verdicts);
    let text = match paper.format {
        Format::Json => json(election, &verdicts, status),
        Format::Table | Format::Plain => people(election, &verdicts, paper),
    };
    Answer { text, status }
}

fn verdicts(election: &Election) -> Vec<Verdict> {
    election.offices.iter().map(|office| verdict::of(office, election)).collect()
}

fn status_of(verdicts: &[Verdict]) -> u8 {
    match () {
        () if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Led { .. } | Verdict::Foreign { .. })) => LED,
        () if verdicts.contains(&Verdict::Unknown) => NOT_KNOWN,
        () => NOBODY,
    }
}

fn people(election: &Election, verdicts: &[Verdict], paper: &Paper) -> String {
    let mut facts = vec![("election", Cell::new(&election.base, Tone::Strong))];
    for (office, verdict) in election.offices.iter().zip(verdicts) {
        if let Some(slot) = &office.slot {
            facts.push(("slot", Cell::from(slot)));
        }
        facts.extend(said(office, verdict, election, paper));
    }
    facts.extend(ordered(election, paper));
    for (path, complaint) in &election.unreadable {
        facts.push(("unreadable", Cell::new(format!("{path}: {complaint}"), Tone::Bad)));
    }
    let contenders = verdict::contenders(election);
    let mut text = paper.facts(&facts);
    if contenders.is_empty() {
        return text + &paper.facts(&[("in line", Cell::from("nobody"))]);
    }
    if paper.format == Format::Table {
        text.push('\n');
    }
    let rows: Vec<_> = contenders.iter().map(|contender| row(contender, paper)).collect();
    text + &paper.table(&["#", "ID", "HOST", "PID", "PHASE", "SINCE", "ELIGIBLE"], &rows)
}

fn said(office: &Office, verdict: &Verdict, election: &Election, paper: &Paper) -> Vec<(&'static str, Cell)> {
    let mut facts = Vec::new();
    let since = office.term.map_or(0, |term| term.changed_at);
    facts.push(match verdict {
        Verdict::Led { holder, phase } => {
            let tone = if phase == "leading" { Tone::Good } else { Tone::Warning };
            let phase = if phase == "leading" { String::new() } else { format!(", {phase}") };
            let who = format!("{} (pid {} on {}){phase}", holder.id, holder.pid, holder.host);
            ("leader", Cell::new(who, tone))
        }
        Verdict::Foreign { id } => {
            let who = format!("{id}, a contender of another library, by its place in {}", election.directory);
            ("leader", Cell::new(who, Tone::Good))
        }
        Verdict::Waiting { holder } => {
            let who = format!("{} is elected, and waits until the lease before its own is over", holder.id);
            ("leader", Cell::new(who, Tone::Warning))
        }
        Verdict::Nobody { why } => ("leader", Cell::new(format!("nobody: {why}"), Tone::Bad)),
        Verdict::Unknown => ("leader", Cell::new("unknown: the lease record cannot be read", Tone::Bad)),
    });
    if matches!(verdict, Verdict::Led { .. } | Verdict::Waiting { .. }) {
        facts.push(("since", Cell::from(format!("{} ({} ago)", moment(since), paper.age(since)))));
    }
    if let Some(term) = office.term {
        let (count, token) = (term.version, term.mzxid);
        let text = if count == 0 { "none yet".to_owned() } else { format!("{count}, token {token}") };
        facts.push(("term", Cell::from(text)));
    }
    if let Some((lease, written)) = &office.lease {
        let length = words::length(Duration::from_millis(lease.lease_ms));
        let kind = [lease.guarantee.as_deref(), lease.recipe.as_deref()].into_iter().flatten().collect::<Vec<_>>();
        let renewed = format!("renewed {} ({} ago)", moment(written.changed_at), paper.age(written.changed_at));
        let text = if lease.is_held() {
            format!("held for {length}, {renewed}; {}", kind.join(", "))
        } else {
            format!("free since {}; {}", moment(written.changed_at), kind.join(", "))
        };
        facts.push(("lease", Cell::from(text)));
    }
    facts
}

fn ordered(election: &Election, paper: &Paper) -> Vec<(&'static str, Cell)> {
    let mut facts = Vec::new();
    let given = election.orders_written.map(|facts| facts.changed_at).unwrap_or_default();
    if let Some(order) = &election.orders.disabled {
        let length = order.lasts().map_or_else(String::new, |length| format!(" for {}", words::length(length)));
        let text = format!("by {}{length}, {} ago: {}", order.by, paper.age(given), order.reason);
        facts.push(("disabled", Cell::new(text, Tone::Warning)));
    }
    // For any other term than the present one it is void.
    let present =
        |token: i64| election.offices.iter().any(|office| office.term.is_some_and(|term| term.mzxid == token));
    if let Some(order) = election.orders.handover.as_ref().filter(|order| present(order.token)) {
        let to = order.to.as_deref().unwrap_or("whoever is next");
        let text = format!("to {to}, ordered by {} {} ago", order.by, paper.age(given));
        facts.push(("handover", Cell::new(text, Tone::Warning)));
    }
    facts
}

fn row(contender: &Contender, paper: &Paper) -> Vec<Cell> {
    let place = contender.place.map_or_else(|| "-".to_owned(), |place| place.to_string());
    // Some libraries give their candidates no id.
    let nameless = contender.candidate.as_ref().filter(|_| contender.id.is_empty());
    let id = nameless.map_or(&contender.id, |candidate| &candidate.name);
    let mut cells = vec![Cell::from(place), Cell::new(id, if contender.leads { Tone::Good } else { Tone::Plain })];
    match &contender.member {
        Some(member) => {
            let phase = verdict::phase(member, contender.leads);
            cells.extend([Cell::from(&member.host), Cell::from(member.pid.to_string()), Cell::from(phase)]);
            cells.push(Cell::from(paper.age(member.since)));
        }
        None => cells.extend(["?", "?", "?", "?"].map(Cell::from)),
    }
    cells.push(match contender {
        Contender { leads: true, why_not, .. } if why_not.is_empty() => Cell::new("leads", Tone::Good),
        Contender { why_not, .. } if why_not.is_empty() => Cell::from("yes"),
        Contender { why_not, .. } => Cell::new(format!("no: {}", why_not.join(", ")), Tone::Warning),
    });
    cells
}

fn json(election: &Election, verdicts: &[Verdict], status: u8) -> String {
    format!("{:#}\n", object(election, verdicts, status))
}

/// On one line.
pub(super) fn json_line(election: &Election) -> String {
    let verdicts = verdicts(election);
    format!("{}\n", object(election, &verdicts, status_of(&verdicts)))
}

fn object(election: &Election, verdicts: &[Verdict], status: u8) -> Value {
    let state = match status {
        LED => "led",
        NOBODY => "nobody",
        _ => "unknown",
    };
    let offices: Vec<_> =
        election.offices.iter().zip(verdicts).map(|(office, verdict)| office_json(office, verdict)).collect();
    let line: Vec<_> = verdict::contenders(election).iter().map(contender_json).collect();
    let unreadable: Vec<_> =
        election.unreadable.iter().map(|(path, why)| json!({ "path": path, "complaint": why })).collect();
    json!({
        "v": 1,
        "election": election.base,
        "state": state,
        "offices": offices,
        "contenders": line,
        "disabled": election.orders.disabled,
        "handover": election.orders.handover,
        "unreadable": unreadable,
    })
}

fn office_json(office: &Office, verdict: &Verdict) -> Value {
    let (state, leader, why) = match verdict {
        Verdict::Foreign { .. } => ("foreign", None, None),
        Verdict::Led { holder, phase } => ("led", Some((holder, phase.as_str())), None),
        Verdict::Waiting { holder } => ("waiting", Some((holder, "waiting")), None),
        Verdict::Nobody { why } => ("nobody", None, Some(why)),
        Verdict::Unknown => ("unknown", None, None),
    };
    let lease = office.lease.as_ref();
    json!({
        "slot": office.slot,
        "state": state,
        "why": why,
        "leader": match verdict {
            Verdict::Foreign { id } => Some(json!({ "id": id, "host": null, "pid": null, "phase": "foreign" })),
            _ => leader.map(|(holder, phase)| json!({
                "id": holder.id, "host": holder.host, "pid": holder.pid, "phase": phase,
            })),
        },
        "since": leader.and(office.term).map(|term| term.changed_at),
        "token": office.term.filter(|term| term.version > 0).map(|term| term.mzxid),
        "term": office.term.map(|term| term.version),
        "lease": lease.map(|(lease, written)| json!({
            "state": lease.state,
            "lease_ms": lease.lease_ms,
            "renewed": written.changed_at,
            "version": written.version,
            "guarantee": lease.guarantee,
            "recipe": lease.recipe,
            "leaders": lease.leaders,
        })),
    })
}

fn contender_json(contender: &Contender) -> Value {
    let member = contender.member.as_ref();
    json!({
        "place": contender.place,
        "id": contender.id,
        "candidate": contender.candidate.as_ref().map(|candidate| &candidate.name),
        "leads": contender.leads,
        "eligible": contender.why_not.is_empty(),
        "why_not": contender.why_not,
        "host": member.map(|member| &member.host),
        "pid": member.map(|member| member.pid),
        "phase": member.map(|member| &member.phase),
        "since": member.map(|member| member.since),
        "version": member.map(|member| &member.version),
        "health": member.and_then(|member| member.health.as_ref()),
    })
}
