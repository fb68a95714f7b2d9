//! `list`: every election below a root, one line each.

use serde_json::json;

use super::paper::{Cell, Tone};
use super::verdict::{self, Verdict};
use super::{Answer, Desk, Excuse};
use crate::config::ctl::{Format, Place};
use crate::zookeeper::admin::view::{self, Election};

pub(super) async fn answer(desk: &Desk<'_>) -> Result<Answer, Excuse> {
    let (Place::Base(root) | Place::OnlyOneBelow(root)) = &desk.asked.place;
    let mut elections = Vec::new();
    for name in view::elections(&desk.visit, root.as_str()).await? {
        // It may be deleted between two reads.
        if let Some(election) = view::election(&desk.visit, &format!("{root}/{name}")).await? {
            elections.push((name, election));
        }
    }
    let text = match desk.paper.format {
        Format::Json => {
            let list: Vec<_> = elections.iter().map(|(name, election)| as_json(name, election)).collect();
            format!("{:#}\n", json!({ "v": 1, "root": root.as_str(), "elections": list }))
        }
        Format::Table if elections.is_empty() => format!("no elections below {root}{}\n", desk.in_chroot()),
        Format::Table | Format::Plain => {
            let rows: Vec<_> = elections.iter().map(|(name, election)| row(name, election, desk)).collect();
            desk.paper.table(&["NAME", "LEADER", "SINCE", "TERM", "TOKEN", "IN LINE", "STATE"], &rows)
        }
    };
    Ok(Answer { text, status: 0 })
}

/// Who leads; with several offices, all of them.
fn leaders(election: &Election) -> Vec<String> {
    let holders = election.offices.iter().filter_map(|office| verdict::leader(office, election));
    holders.map(|holder| holder.id).collect()
}

fn state(election: &Election) -> (&'static str, Tone) {
    let verdicts: Vec<_> = election.offices.iter().map(|office| verdict::of(office, election)).collect();
    let is = |wanted: fn(&Verdict) -> bool| verdicts.iter().any(wanted);
    match () {
        () if election.orders.disabled.is_some() => ("disabled", Tone::Warning),
        () if is(|verdict| *verdict == Verdict::Unknown) => ("unknown", Tone::Bad),
        () if is(|verdict| matches!(verdict, Verdict::Led { .. } | Verdict::Foreign { .. })) => ("led", Tone::Good),
        () if is(|verdict| matches!(verdict, Verdict::Waiting { .. })) => ("waiting", Tone::Warning),
        () => ("nobody leads", Tone::Bad),
    }
}

fn row(name: &str, election: &Election, desk: &Desk<'_>) -> Vec<Cell> {
    let (state, tone) = state(election);
    let terms: Vec<_> = election.offices.iter().filter_map(|office| office.term).collect();
    let newest = terms.iter().max_by_key(|term| term.mzxid).copied().unwrap_or_default();
    let leaders = leaders(election);
    let since = if leaders.is_empty() { "-".to_owned() } else { desk.paper.age(newest.changed_at) };
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

fn as_json(name: &str, election: &Election) -> serde_json::Value {
    json!({
        "name": name,
        "path": election.base,
        "leaders": leaders(election),
        "in_line": election.line.len(),
        "state": state(election).0,
    })
}
