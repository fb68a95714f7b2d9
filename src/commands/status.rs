//! `status`: who leads, since when, who is next, and why the others are not eligible.
//!
//! Never: status 0 where nobody leads.

use std::time::Duration;

use serde_json::{Value, json};

use super::orders::replacing::Present;
use super::output::{Cell, Output, Tone, moment, with};
use super::slot_state::contenders::{self, Contender};
use super::slot_state::{self, SlotState, WhyNobody, last_run};
use super::watch::View;
use super::{Answer, CommandContext, CommandError, NOT_KNOWN};
use crate::config::ctl::OutputFormat;
use crate::observe::words;
use crate::zookeeper::admin::Facts;
use crate::zookeeper::admin::view::{DrainView, ElectionView, SlotView, Unreadable};
use crate::zookeeper::client::ensure_path::parent;
use crate::zookeeper::schema::control::{Disabled, Handover, remedy};
use crate::zookeeper::schema::lease::{Holder, Lease};
use crate::zookeeper::schema::member::Member;

const LED: u8 = 0;
const NOBODY: u8 = 1;

pub(super) async fn answer(context: &CommandContext<'_>) -> Result<Answer, CommandError> {
    let election = context.election().await?;
    Ok(of(&election, &context.output))
}

/// `--watch`.
pub(super) struct Watch;

impl View for Watch {
    type Seen = ElectionView;

    const VERB: &'static str = "status";

    async fn look(&self, context: &CommandContext<'_>) -> Result<ElectionView, CommandError> {
        context.election().await
    }

    fn screen(&self, seen: &ElectionView, output: &Output) -> String {
        of(seen, output).text
    }

    fn news(&mut self, last: Option<&ElectionView>, seen: &ElectionView, output: &Output) -> String {
        // Both at the same time of day: an age that grows is no news.
        let shown = |view: &ElectionView| of(&without_renewals(view), output).text;
        match output.format {
            _ if last.is_some_and(|last| last == seen || shown(last) == shown(seen)) => String::new(),
            OutputFormat::Json | OutputFormat::Yaml => {
                let states = states(seen);
                output.one_object(&object(seen, &states, status_of(&states)))
            }
            OutputFormat::Table | OutputFormat::Wide | OutputFormat::Plain => of(seen, output).text,
        }
    }
}

/// A lease that is renewed is the same lease.
fn without_renewals(view: &ElectionView) -> ElectionView {
    let mut view = view.clone();
    for (_, written) in
        view.slots.iter_mut().filter_map(|slot| slot.lease.as_mut()).filter(|(lease, _)| lease.is_held())
    {
        *written = Facts::default();
    }
    view
}

/// The answer for one look at an election.
fn of(election: &ElectionView, output: &Output) -> Answer {
    let seen = states(election);
    let status = status_of(&seen);
    let text = match output.format {
        OutputFormat::Json | OutputFormat::Yaml => output.object(&object(election, &seen, status)),
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Plain => people(election, &seen, output),
    };
    Answer { text, status }
}

fn states(election: &ElectionView) -> Vec<SlotState> {
    election.slots.iter().map(|slot| slot_state::of(slot, election)).collect()
}

fn status_of(states: &[SlotState]) -> u8 {
    match () {
        () if states.iter().any(|state| matches!(state, SlotState::Led { .. } | SlotState::Foreign { .. })) => LED,
        () if states.iter().any(SlotState::is_unknown) => NOT_KNOWN,
        () => NOBODY,
    }
}

fn people(election: &ElectionView, states: &[SlotState], output: &Output) -> String {
    let mut facts = vec![("election", Cell::new(&election.base, Tone::Strong))];
    for (slot, state) in election.slots.iter().zip(states) {
        if let Some(name) = &slot.name {
            facts.push(("slot", Cell::from(name)));
        }
        facts.extend(said(slot, state, election, output));
    }
    facts.extend(last_run::fact(election, output));
    facts.extend(ordered(election, output));
    for Unreadable { path, why, .. } in &election.unreadable {
        facts.push(("unreadable", Cell::new(format!("{path}: {why}"), Tone::Bad)));
    }
    let contenders = contenders::contenders(election);
    if contenders.is_empty() {
        facts.push(("in line", Cell::from("nobody")));
        return output.facts(&facts);
    }
    let mut text = output.facts(&facts);
    if output.format.is_table() {
        text.push('\n');
    }
    let rows: Vec<_> = contenders.iter().map(|contender| row(contender, output)).collect();
    let more = if output.format == OutputFormat::Wide { WIDE } else { &[] };
    text + &output.table(&[&["#", "ID", "HOST", "PID", "PHASE", "SINCE", "ELIGIBLE"], more].concat(), &rows)
}

/// The columns that `-o wide` adds.
const WIDE: &[&str] = &["VERSION", "SESSION", "CONTAIN", "PROTECTION", "META"];

fn said(slot: &SlotView, state: &SlotState, election: &ElectionView, output: &Output) -> Vec<(&'static str, Cell)> {
    let mut facts = Vec::new();
    let since = slot.term.map_or(0, |term| term.changed_at);
    facts.push(("leader", leader(slot, state, election, output)));
    if matches!(state, SlotState::Led { .. } | SlotState::Waiting { .. }) {
        facts.push(("since", Cell::from(format!("{} ({} ago)", moment(since), output.age(since)))));
    }
    if let Some(term) = slot.term {
        let (count, token) = (term.version, term.mzxid);
        let text = if count == 0 { "none yet".to_owned() } else { format!("{count}, token {token}") };
        facts.push(("term", Cell::from(text)));
    }
    if let Some((lease, written)) = &slot.lease {
        let length = words::length(Duration::from_millis(lease.lease_ms));
        let kind = [lease.guarantee.as_deref(), lease.recipe.as_deref()].into_iter().flatten().collect::<Vec<_>>();
        let renewed = format!("renewed {} ({} ago)", moment(written.changed_at), output.age(written.changed_at));
        let text = if lease.is_held() {
            format!("held for {length}, {renewed}; {}", kind.join(", "))
        } else {
            format!("free since {}; {}", moment(written.changed_at), kind.join(", "))
        };
        facts.push(("lease", Cell::from(text)));
        let may_run = matches!(state, SlotState::Led { .. } | SlotState::CutOff { .. });
        facts.extend(vouched(lease).filter(|_| may_run));
    }
    facts
}

/// Whether the command runs on without `ZooKeeper`. Whether the hosts answer, only the leader knows. A record that was lost does
/// not say who was asked.
fn vouched(lease: &Lease) -> Option<(&'static str, Cell)> {
    lease.known_holder()?;
    let limit = words::length(Duration::from_millis(lease.vouch_ms?));
    let asked: Vec<_> = lease.roster.iter().map(|host| format!("{} ({})", host.id, host.address)).collect();
    let by =
        if asked.is_empty() { "nobody, as no other host with --vouch is in line".to_owned() } else { asked.join(", ") };
    Some(("vouched for", Cell::from(format!("by {by}; in an outage for up to {limit}"))))
}

fn leader(slot: &SlotView, state: &SlotState, election: &ElectionView, output: &Output) -> Cell {
    match state {
        SlotState::Led { holder, phase } => {
            let tone = if phase == "leading" { Tone::Good } else { Tone::Warning };
            let phase = if phase == "leading" { String::new() } else { format!(", {phase}") };
            let who = format!("{} (pid {} on {}){phase}", holder.id, holder.pid, holder.host);
            Cell::new(who, tone)
        }
        SlotState::Foreign { id } => {
            let who = format!("{id}, a contender of another library, by its place in {}", election.directory);
            Cell::new(who, Tone::Good)
        }
        SlotState::Waiting { holder } => Cell::new(slot_state::waits_in_words(&holder.id), Tone::Warning),
        SlotState::Overdue { holder, since } => Cell::new(overdue(slot, holder, &output.age(*since)), Tone::Bad),
        SlotState::Nobody { why } => Cell::new(format!("nobody: {why}"), Tone::Bad),
        SlotState::CutOff { why } => Cell::new(format!("not known: {why}"), Tone::Bad),
        SlotState::Unknown => Cell::new("unknown: the lease record cannot be read", Tone::Bad),
    }
}

/// Under at-least-one the command may outlive its lease.
fn overdue(slot: &SlotView, holder: &Holder, age: &str) -> String {
    let is_dead = slot.lease.as_ref().is_some_and(|(lease, _)| lease.dies_in_time());
    let command = if is_dead { "not leading" } else { "its command may still run" };
    format!(
        "nobody: the lease of {0} is overdue by {age}, {command}; {0} is cut off, hung or gone: see its log",
        holder.id
    )
}

fn ordered(election: &ElectionView, output: &Output) -> Vec<(&'static str, Cell)> {
    let mut facts = Vec::new();
    let is_there = election.members().next().is_some();
    let over = election.lapsed.disabled.as_ref().map(|order| (order, lapsed(is_there)));
    if let Some((order, lapsed)) = election.orders.disabled.as_ref().map(|order| (order, "")).or(over) {
        let age = output.age(order.since.unwrap_or_default());
        let (end, remedy) = (order.end(), remedy::about_election("enable", &election.base));
        let (by, reason) = (output.part(&order.by), output.quoted_part(&order.reason));
        let text = format!("by {by} {age} ago, {end}{lapsed}: {reason}; {remedy} ends it");
        facts.push(("disabled", Cell::new(text, Tone::Warning)));
    }
    for view in &election.drains {
        let host = &view.host;
        if election.members().any(|member| member.host == *host) {
            let is_alone = !view.drain.force && !election.members().any(|member| member.can_replace(host));
            let stays = if is_alone { "; no other host could lead, so it stays" } else { "" };
            let text = drained_in_words(view, (parent(&election.base), stays), output);
            facts.push(("drained", Cell::new(text, Tone::Warning)));
        }
    }
    // For any other term than the present one it is void.
    let present = |token: i64| election.slots.iter().any(|slot| slot.term.is_some_and(|term| term.mzxid == token));
    if let Some(order) = election.orders.handover.as_ref().filter(|order| present(order.token)) {
        let (to, age) =
            (order.to.as_deref().unwrap_or("the next in line"), output.age(order.since.unwrap_or_default()));
        let text = format!("to {to}, ordered by {} {age} ago", order.by);
        facts.push(("handover", Cell::new(text, Tone::Warning)));
    }
    facts
}

/// Of an order whose time is over by our clock alone, and that nobody has deleted. A host that is there does so at once.
pub(super) const fn lapsed(is_somebody_there: bool) -> &'static str {
    if is_somebody_there {
        " (lapsed by the clock of this host, which may be fast: no host has deleted the order)"
    } else {
        " (lapsed by the clock of this host)"
    }
}

fn row(contender: &Contender, output: &Output) -> Vec<Cell> {
    let place = contender.place.map_or_else(|| "-".to_owned(), |place| place.to_string());
    // Some libraries give their candidates no id.
    let nameless = contender.candidate.as_ref().filter(|_| contender.id.is_empty());
    let id = nameless.map_or(&contender.id, |candidate| &candidate.name);
    let mut cells = vec![Cell::from(place), Cell::new(id, if contender.leads { Tone::Good } else { Tone::Plain })];
    match &contender.member {
        Some(member) => {
            let phase = Cell::from(contender.phase().unwrap_or("?"));
            cells.extend([Cell::from(&member.host), Cell::from(member.pid.to_string()), phase]);
            cells.push(Cell::from(output.age(member.since)));
        }
        None => cells.extend(["?", "?", "?", "?"].map(Cell::from)),
    }
    cells.push(match contender {
        Contender { leads: true, why_not, .. } if why_not.is_empty() => Cell::new("leads", Tone::Good),
        Contender { why_not, .. } if why_not.is_empty() => Cell::from("yes"),
        Contender { why_not, .. } => Cell::new(format!("no: {}", why_not.join(", ")), Tone::Warning),
    });
    if output.format == OutputFormat::Wide {
        cells.extend(more(contender));
    }
    cells
}

fn more(contender: &Contender) -> Vec<Cell> {
    let Some(member) = &contender.member else { return WIDE.iter().map(|_| Cell::from("?")).collect() };
    let session = words::length(Duration::from_millis(member.session_ms));
    let meta: Vec<_> = member.about.meta.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let texts =
        [member.version.clone(), session, member.about.contain.clone(), member.protection.clone(), meta.join(" ")];
    texts.into_iter().map(|text| Cell::from(if text.is_empty() { "-".to_owned() } else { text })).collect()
}

fn object(election: &ElectionView, seen: &[SlotState], status: u8) -> Value {
    let state = match status {
        LED => "led",
        NOBODY => "nobody",
        _ => "unknown",
    };
    let slots: Vec<_> = election.slots.iter().zip(seen).map(|(slot, state)| slot_json(slot, state)).collect();
    let line: Vec<_> = contenders::contenders(election).iter().map(contender_json).collect();
    let unreadable: Vec<_> =
        election.unreadable.iter().map(|znode| json!({ "path": znode.path, "complaint": znode.why })).collect();
    json!({
        "v": 1,
        "election": election.base,
        "state": state,
        "slots": slots,
        "last_run": last_run::as_json(election),
        "contenders": line,
        "disabled": election.orders.disabled.as_ref().map(disabled_json),
        "handover": election.orders.handover.as_ref().map(handover_json),
        // Over by our clock alone, and not deleted.
        "lapsed": {
            "disabled": election.lapsed.disabled.as_ref().map(disabled_json),
            "handover": election.lapsed.handover.as_ref().map(handover_json),
        },
        "drains": election.drains.iter().filter(|drain| drain.is_in_force).map(drain_json).collect::<Vec<_>>(),
        "unreadable": unreadable,
    })
}

fn disabled_json(order: &Disabled) -> Value {
    with(with(json!(order), "for_ms", json!(order.for_ms)), "until", json!(order.ends_at()))
}

/// Who drains a host below this root, since and until when, why, how far it is obeyed, and what ends it.
pub(super) fn drained_in_words(view: &DrainView, (root, obeyed): (&str, &str), output: &Output) -> String {
    let DrainView { host, drain, written_at, is_in_force } = view;
    let (age, end, lapsed) =
        (output.age(*written_at), drain.end(*written_at), if *is_in_force { "" } else { lapsed(true) });
    let (by, reason) = (output.part(&drain.by), output.quoted_part(&drain.reason));
    let remedy = remedy::about_host("undrain", host, root);
    format!("{host} by {by} {age} ago, {end}{lapsed}: {reason}{obeyed}; {remedy} ends it")
}

fn handover_json(order: &Handover) -> Value {
    with(with(json!(order), "to", json!(order.to)), "until", json!(order.ends_at()))
}

/// Who drains which host, and why and until when.
pub(super) fn drain_json(DrainView { host, drain, written_at, .. }: &DrainView) -> Value {
    with(Present::drain(drain, *written_at).json(), "host", json!(host))
}

/// Why nobody leads, or why that is not known; and the word of it for programs.
fn why(lease: Option<&Lease>, state: &SlotState) -> (Option<String>, Option<&'static str>) {
    let is_lost = lease.is_some_and(|lease| lease.known_holder().is_none());
    match state {
        SlotState::CutOff { why } if is_lost => (Some(why.clone()), Some(WhyNobody::RecordLost.word())),
        SlotState::CutOff { why } => (Some(why.clone()), Some("cut-off")),
        SlotState::Nobody { why } => (Some(why.to_string()), Some(why.word())),
        _ => (None, None),
    }
}

/// For programs, in a word.
pub(super) fn reason(slot: &SlotView, state: &SlotState) -> Option<&'static str> {
    why(slot.lease.as_ref().map(|(lease, _)| lease), state).1
}

fn slot_json(slot: &SlotView, state: &SlotState) -> Value {
    let (word, leader) = match state {
        SlotState::Foreign { .. } => ("foreign", None),
        SlotState::Led { holder, phase } => ("led", Some((holder, phase.as_str()))),
        SlotState::Waiting { holder } => ("waiting", Some((holder, "waiting"))),
        SlotState::Overdue { .. } => ("overdue", None),
        SlotState::Nobody { .. } => ("nobody", None),
        SlotState::CutOff { .. } | SlotState::Unknown => ("unknown", None),
    };
    let lease = slot.lease.as_ref();
    let (why, reason) = why(lease.map(|(lease, _)| lease), state);
    json!({
        "slot": slot.name,
        "state": word,
        "why": why,
        "reason": reason,
        "leader": match state {
            SlotState::Foreign { id } => Some(json!({ "id": id, "host": null, "pid": null, "phase": "foreign" })),
            _ => leader.map(|(holder, phase)| json!({
                "id": holder.id, "host": holder.host, "pid": holder.pid, "phase": phase,
            })),
        },
        "since": leader.and(slot.term).map(|term| term.changed_at),
        "token": slot.term.filter(|term| term.version > 0).map(|term| term.mzxid),
        "term": slot.term.map(|term| term.version),
        "overdue_since": slot.overdue_since,
        "lease": lease.map(|(lease, written)| json!({
            "state": lease.state,
            "lease_ms": lease.lease_ms,
            "renewed": written.changed_at,
            "version": written.version,
            "guarantee": lease.guarantee,
            "recipe": lease.recipe,
            "leaders": lease.leaders,
            "vouch_ms": lease.vouch_ms,
            "roster": lease.roster,
        })),
    })
}

fn contender_json(contender: &Contender) -> Value {
    let member = contender.member.as_ref();
    // An earlier build says nothing of it.
    let said = |what: fn(&Member) -> &String| member.map(what).filter(|text| !text.is_empty());
    json!({
        "place": contender.place,
        "id": contender.id,
        "candidate": contender.candidate.as_ref().map(|candidate| &candidate.name),
        "leads": contender.leads,
        "eligible": contender.why_not.is_empty(),
        "why_not": contender.why_not,
        "host": member.map(|member| &member.host),
        "pid": member.map(|member| member.pid),
        "phase": contender.phase(),
        "since": member.map(|member| member.since),
        "version": member.map(|member| &member.version),
        "contain": said(|member| &member.about.contain),
        "protection": said(|member| &member.protection),
        "meta": member.map(|member| &member.about.meta),
        "vouch": said(|member| &member.vouch),
        "drained": member.is_some_and(|member| member.drained),
    })
}
