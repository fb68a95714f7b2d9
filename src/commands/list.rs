//! `list`: every election below a root, one line each.

use serde_json::json;

use super::output::{Cell, Tone};
use super::overdue;
use super::slot_state::{self, SlotState};
use super::{Answer, CommandContext, CommandError};
use crate::config::ctl::{Format, Place};
use crate::zookeeper::admin::view::{self, ElectionView};

pub(super) async fn answer(context: &CommandContext<'_>) -> Result<Answer, CommandError> {
    let (Place::Base(root) | Place::OnlyOneBelow(root)) = &context.asked.place;
    let mut elections = Vec::new();
    for name in view::elections(&context.client, root.as_str()).await? {
        // It may be deleted between two reads.
        if let Some(election) = view::election(&context.client, &format!("{root}/{name}")).await? {
            elections.push((name, election));
        }
    }
    overdue::mark(context, elections.iter_mut().map(|(_, election)| election)).await?;
    let text = match context.output.format {
        Format::Json => {
            let list: Vec<_> = elections.iter().map(|(name, election)| as_json(name, election)).collect();
            format!("{:#}\n", json!({ "v": 1, "root": root.as_str(), "elections": list }))
        }
        Format::Table if elections.is_empty() => format!("no elections below {root}{}\n", context.in_chroot()),
        Format::Table | Format::Plain => {
            let rows: Vec<_> = elections.iter().map(|(name, election)| row(name, election, context)).collect();
            context.output.table(&["NAME", "LEADER", "SINCE", "TERM", "TOKEN", "IN LINE", "STATE"], &rows)
        }
    };
    Ok(Answer { text, status: 0 })
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
