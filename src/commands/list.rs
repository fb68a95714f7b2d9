//! `list`: every election below a root, one line each.

mod watch;

use serde_json::{Value, json};

use super::output::{Cell, Output, Tone};
use super::overdue;
use super::slot_state::{self, SlotState, WhyNobody, last_run};
use super::status::{drain_json, drained_in_words};
use super::{Answer, CommandContext, CommandError, path_of};
use crate::config::ctl::OutputFormat;
use crate::zookeeper::admin::Facts;
use crate::zookeeper::admin::fleet::{self, All, Below};
use crate::zookeeper::admin::view::{self, DrainView, ElectionView, SlotView};
use crate::zookeeper::schema::lease::Holder;
pub(super) use watch::Watch;

/// All elections below a root, by name.
pub(super) struct Fleet {
    root: String,
    in_chroot: String,
    elections: Vec<(String, ElectionView)>,
    /// Those that we may not read.
    closed: Vec<String>,
    /// Those in force.
    drains: Vec<DrainView>,
}

pub(super) async fn answer(context: &CommandContext<'_>) -> Result<Answer, CommandError> {
    let fleet = look(context).await?;
    Ok(Answer { text: whole(&fleet, &context.output), status: 0 })
}

async fn look(context: &CommandContext<'_>) -> Result<Fleet, CommandError> {
    let root = path_of(context.asked);
    let Below { names, mut closed, .. } = context.below(root).await?;
    let All { mut elections, closed: too } = fleet::all(&context.client, root, names).await?;
    closed.extend(too);
    overdue::mark(context, elections.iter_mut().map(|(_, election)| election)).await?;
    let mut drains = view::drains(&context.client, root, &mut Vec::new()).await?;
    drains.retain(|drain| drain.is_in_force);
    Ok(Fleet { root: root.to_owned(), in_chroot: context.in_chroot(), elections, closed, drains })
}

fn whole(fleet: &Fleet, output: &Output) -> String {
    let Fleet { root, in_chroot, elections, closed, drains } = fleet;
    match output.format {
        OutputFormat::Json | OutputFormat::Yaml => {
            let closed = closed.iter().map(|name| closed_json(root, name));
            let list = elections.iter().map(|(name, election)| as_json(name, election, output.now)).chain(closed);
            let (list, drains) = (list.collect::<Vec<_>>(), drains.iter().map(drain_json).collect::<Vec<_>>());
            output.object(&json!({ "v": 1, "root": root, "elections": list, "drains": drains }))
        }
        OutputFormat::Table | OutputFormat::Wide if elections.is_empty() && closed.is_empty() => {
            format!("no elections below {root}{in_chroot}\n")
        }
        format => {
            let columns = if format == OutputFormat::Wide { WIDE } else { USUAL };
            let rows = elections.iter().map(|(name, election)| row(name, election, columns, output));
            let rows: Vec<_> = rows.chain(closed.iter().map(|name| closed_row(name, columns))).collect();
            output.table(columns, &rows) + &drained(fleet, output)
        }
    }
}

/// One line for each host that is drained; a row of plain is an election.
fn drained(Fleet { root, drains, .. }: &Fleet, output: &Output) -> String {
    if drains.is_empty() || output.format == OutputFormat::Plain {
        return String::new();
    }
    let said = |view: &DrainView| drained_in_words(view, (root, ""), output);
    let facts: Vec<_> = drains.iter().map(|view| ("drained", Cell::new(said(view), Tone::Warning))).collect();
    format!("\n{}", output.facts(&facts))
}

const USUAL: &[&str] = &["NAME", "LEADER", "SINCE", "TERM", "TOKEN", "IN LINE", "STATE"];
const WIDE: &[&str] = &["NAME", "LEADER", "HOST", "SINCE", "LEASE", "CHANGED", "TERM", "TOKEN", "IN LINE", "STATE"];

/// The state of an election that this client may not read.
const NO_PERMISSION: &str = "no permission";

/// The state of an election where a contender may lead, but none does.
const NOBODY: &str = "nobody leads";

/// The state of an election that a contender of another library leads, by its place in line.
const FOREIGN: &str = "foreign";

fn closed_json(root: &str, name: &str) -> Value {
    json!({ "name": name, "path": format!("{root}/{name}"), "state": NO_PERMISSION })
}

fn closed_row(name: &str, columns: &[&str]) -> Vec<Cell> {
    let cell = |column: &&str| match *column {
        "NAME" => Cell::new(name, Tone::Strong),
        "STATE" => Cell::new(NO_PERMISSION, Tone::Warning),
        _ => Cell::from("?"),
    };
    columns.iter().map(cell).collect()
}

/// The ids of those who lead, also of a contender of another library, whose host is not known.
fn leading(election: &ElectionView) -> Vec<String> {
    leaders(election).into_iter().map(|holder| holder.id).chain(slot_state::foreign(election)).collect()
}

/// Who leads of ours; with several slots, all of them.
fn leaders(election: &ElectionView) -> Vec<Holder> {
    election.slots.iter().filter_map(|slot| slot_state::leader(slot, election)).collect()
}

fn state(election: &ElectionView) -> (&'static str, Tone) {
    let states: Vec<_> = election.slots.iter().map(|slot| slot_state::of(slot, election)).collect();
    let is = |wanted: fn(&SlotState) -> bool| states.iter().any(wanted);
    match () {
        () if election.orders.disabled.is_some() => ("disabled", Tone::Warning),
        () if is(SlotState::is_unknown) => ("unknown", Tone::Bad),
        () if is(|state| matches!(state, SlotState::Led { .. })) => ("led", Tone::Good),
        () if is(|state| matches!(state, SlotState::Foreign { .. })) => (FOREIGN, Tone::Good),
        () if is(|state| matches!(state, SlotState::Overdue { .. })) => ("lease overdue", Tone::Bad),
        () if is(|state| matches!(state, SlotState::Waiting { .. })) => ("waiting", Tone::Warning),
        () if states.iter().all(is_deserted) && election.has_runs => (NOBODY, last_run::tone(election)),
        () => (NOBODY, Tone::Bad),
    }
}

/// No host takes part: so it is between two runs of a job.
fn is_deserted(state: &SlotState) -> bool {
    matches!(state, SlotState::Nobody { why: WhyNobody::NoneInLine { members: 0, .. } })
}

fn row(name: &str, election: &ElectionView, columns: &[&str], output: &Output) -> Vec<Cell> {
    let (state, tone) = state(election);
    let newest = newest_term(election);
    let leaders = leaders(election);
    let of_all = |what: fn(&Holder) -> &str| {
        let all: Vec<_> = leaders.iter().map(what).collect();
        if all.is_empty() { "-".to_owned() } else { all.join(", ") }
    };
    let cell = |column: &&str| match *column {
        "NAME" => Cell::new(name, Tone::Strong),
        "LEADER" => Cell::from(slot_state::foreign(election).unwrap_or_else(|| of_all(|holder| &holder.id))),
        "HOST" => Cell::from(of_all(|holder| &holder.host)),
        "SINCE" if leaders.is_empty() => Cell::from("-"),
        "SINCE" => Cell::from(output.age(newest.changed_at)),
        "LEASE" => Cell::from(lease_left(election, output.now).map_or_else(|| "-".to_owned(), seconds)),
        "CHANGED" => Cell::from(output.age(changed_at(election))),
        "TERM" => Cell::from(newest.version.to_string()),
        "TOKEN" => Cell::from(if newest.version == 0 { "-".to_owned() } else { newest.mzxid.to_string() }),
        "IN LINE" => Cell::from(election.line.len().to_string()),
        _ => Cell::new(explained(state, election, output), tone),
    };
    columns.iter().map(cell).collect()
}

/// Why nobody leads, where that is the state.
fn why(election: &ElectionView) -> Option<WhyNobody> {
    let is_state = state(election).0 == NOBODY;
    let why = |slot| if let SlotState::Nobody { why } = slot_state::of(slot, election) { Some(why) } else { None };
    election.slots.iter().filter(|_| is_state).find_map(why)
}

/// For people, with the reason why nobody leads or, between two runs of a job, with the end of the last one.
fn explained(state: &str, election: &ElectionView, output: &Output) -> String {
    if output.format == OutputFormat::Plain {
        return state.to_owned();
    }
    match (why(election), last_run::in_short(election, output)) {
        (Some(WhyNobody::NoneInLine { members: 0, .. }), Some(run)) => format!("{state}; {run}"),
        (Some(why), _) => format!("{state}: {why}"),
        (None, _) => state.to_owned(),
    }
}

fn newest_term(election: &ElectionView) -> Facts {
    let terms = election.slots.iter().filter_map(|slot| slot.term);
    terms.max_by_key(|term| term.mzxid).unwrap_or_default()
}

/// When a host began to lead, released its lease, or lost it, or when an order was given; by `ZooKeeper`'s clock.
fn changed_at(election: &ElectionView) -> i64 {
    let of_slot = |slot: &SlotView| {
        let released = slot.lease.as_ref().filter(|(lease, _)| !lease.is_held()).map(|(_, written)| written.changed_at);
        slot.term.map(|term| term.changed_at).max(released).max(slot.overdue_since)
    };
    let ordered = election.orders_written.map(|written| written.changed_at);
    election.slots.iter().map(of_slot).max().flatten().max(ordered).unwrap_or_default()
}

/// Milliseconds of the shortest lease that a leader has, from `ZooKeeper`'s clock and ours: about.
fn lease_left(election: &ElectionView, now: i64) -> Option<i64> {
    let of_slot = |slot: &SlotView| {
        slot_state::leader(slot, election)?;
        let (lease, written) = slot.lease.as_ref()?;
        let whole = i64::try_from(lease.lease_ms).unwrap_or(i64::MAX);
        Some(written.changed_at.saturating_add(whole).saturating_sub(now).clamp(0, whole))
    };
    election.slots.iter().filter_map(of_slot).min()
}

fn seconds(millis: i64) -> String {
    format!("{}.{}s", millis / 1000, millis % 1000 / 100)
}

fn as_json(name: &str, election: &ElectionView, now: i64) -> Value {
    let (newest, leaders) = (newest_term(election), leaders(election));
    json!({
        "name": name,
        "path": election.base,
        "leaders": leading(election),
        "hosts": leaders.iter().map(|holder| &holder.host).collect::<Vec<_>>(),
        "since": (!leaders.is_empty()).then_some(newest.changed_at),
        "changed": changed_at(election),
        "lease_left_ms": lease_left(election, now),
        "term": newest.version,
        "token": (newest.version > 0).then_some(newest.mzxid),
        "in_line": election.line.len(),
        "state": state(election).0,
        "reason": why(election).map(|why| why.word()),
        "last_run": last_run::as_json(election),
    })
}
