//! `list`: every election below a root, one line each.

use serde_json::json;

use super::output::{Cell, Output, Tone};
use super::overdue;
use super::slot_state::{self, SlotState};
use super::status::drain_json;
use super::{Answer, CommandContext, CommandError};
use crate::config::ctl::{OutputFormat, Selector};
use crate::zookeeper::admin::AdminError;
use crate::zookeeper::admin::view::{self, Below, DrainView, ElectionView};

pub(super) async fn answer(context: &CommandContext<'_>) -> Result<Answer, CommandError> {
    let (Selector::Base(root) | Selector::OnlyOneBelow(root)) = &context.asked.selector;
    let mut elections = Vec::new();
    let Some(Below { names, mut closed }) = view::elections(&context.client, root.as_str()).await? else {
        let chroot = context.in_chroot();
        return Err(CommandError::not_known(format!("{root}{chroot} does not exist; is it another path or ensemble?")));
    };
    for name in names {
        match view::election(&context.client, &format!("{root}/{name}")).await {
            Ok(Some(election)) => elections.push((name, election)),
            // It was deleted between two reads.
            Ok(None) => {}
            Err(AdminError::Forbidden(_)) => closed.push(name),
            Err(failure) => return Err(failure.into()),
        }
    }
    overdue::mark(context, elections.iter_mut().map(|(_, election)| election)).await?;
    let mut drains = view::drains(&context.client, root.as_str(), &mut Vec::new()).await?;
    drains.retain(|drain| drain.is_in_force);
    let text = match context.output.format {
        OutputFormat::Json => {
            let closed = closed.iter().map(|name| closed_json(root.as_str(), name));
            let list: Vec<_> = elections.iter().map(|(name, election)| as_json(name, election)).chain(closed).collect();
            format!(
                "{:#}\n",
                json!({ "v": 1, "root": root.as_str(), "elections": list, "drains": drains.iter().map(drain_json).collect::<Vec<_>>() })
            )
        }
        OutputFormat::Table if elections.is_empty() && closed.is_empty() => {
            format!("no elections below {root}{}\n", context.in_chroot())
        }
        OutputFormat::Table | OutputFormat::Plain => {
            let closed = closed.iter().map(|name| closed_row(name));
            let rows: Vec<_> =
                elections.iter().map(|(name, election)| row(name, election, context)).chain(closed).collect();
            let table = context.output.table(&["NAME", "LEADER", "SINCE", "TERM", "TOKEN", "IN LINE", "STATE"], &rows);
            table + &drained(&drains, &context.output)
        }
    };
    Ok(Answer { text, status: 0 })
}

fn closed_json(root: &str, name: &str) -> serde_json::Value {
    json!({ "name": name, "path": format!("{root}/{name}"), "state": NO_PERMISSION })
}

/// One line for each host that is drained; a row of plain is an election.
fn drained(drains: &[DrainView], output: &Output) -> String {
    if drains.is_empty() || output.format == OutputFormat::Plain {
        return String::new();
    }
    let said = |view: &DrainView| format!("{} {}", view.host, view.drain.said(view.written_at));
    let facts: Vec<_> = drains.iter().map(|view| ("drained", Cell::new(said(view), Tone::Warning))).collect();
    format!("\n{}", output.facts(&facts))
}

/// The state of an election that this client may not read.
const NO_PERMISSION: &str = "no permission";

fn closed_row(name: &str) -> Vec<Cell> {
    let unknown = ["?"; 5].map(Cell::from);
    [Cell::new(name, Tone::Strong)]
        .into_iter()
        .chain(unknown)
        .chain([Cell::new(NO_PERMISSION, Tone::Warning)])
        .collect()
}

/// Who leads; with several slots, all of them.
fn leaders(election: &ElectionView) -> Vec<String> {
    let holders = election.slots.iter().filter_map(|slot| slot_state::leader(slot, election));
    holders.map(|holder| holder.id).collect()
}

fn state(election: &ElectionView) -> (&'static str, Tone) {
    let states: Vec<_> = election.slots.iter().map(|slot| slot_state::of(slot, election)).collect();
    let is = |wanted: fn(&SlotState) -> bool| states.iter().any(wanted);
    match () {
        () if election.orders.disabled.is_some() => ("disabled", Tone::Warning),
        () if is(|state| *state == SlotState::Unknown) => ("unknown", Tone::Bad),
        () if is(|state| matches!(state, SlotState::Led { .. } | SlotState::Foreign { .. })) => ("led", Tone::Good),
        () if is(|state| matches!(state, SlotState::Overdue { .. })) => ("lease overdue", Tone::Bad),
        () if is(|state| matches!(state, SlotState::Waiting { .. })) => ("waiting", Tone::Warning),
        () => ("nobody leads", Tone::Bad),
    }
}

fn row(name: &str, election: &ElectionView, context: &CommandContext<'_>) -> Vec<Cell> {
    let (state, tone) = state(election);
    let terms: Vec<_> = election.slots.iter().filter_map(|slot| slot.term).collect();
    let newest = terms.iter().max_by_key(|term| term.mzxid).copied().unwrap_or_default();
    let leaders = leaders(election);
    let since = if leaders.is_empty() { "-".to_owned() } else { context.output.age(newest.changed_at) };
    let token = if newest.version == 0 { "-".to_owned() } else { newest.mzxid.to_string() };
    vec![
        Cell::new(name, Tone::Strong),
        Cell::from(if leaders.is_empty() { "-".to_owned() } else { leaders.join(", ") }),
        Cell::from(since),
        Cell::from(newest.version.to_string()),
        Cell::from(token),
        Cell::from(election.line.len().to_string()),
        Cell::new(state, tone),
    ]
}

fn as_json(name: &str, election: &ElectionView) -> serde_json::Value {
    json!({
        "name": name,
        "path": election.base,
        "leaders": leaders(election),
        "in_line": election.line.len(),
        "state": state(election).0,
    })
}
