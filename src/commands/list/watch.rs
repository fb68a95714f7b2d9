//! `list --watch`: elections in trouble first, finished jobs last; in a pipe, a line for each change.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::json;

use super::{
    Cell, CommandContext, CommandError, ElectionView, FOREIGN, Fleet, NO_PERMISSION, Output, Tone, as_json, changed_at,
    closed_json, closed_row, drained, leading, look, newest_term, row, state, why,
};
use crate::commands::output::moment;
use crate::commands::watch::View;
use crate::config::ctl::OutputFormat;

const COLUMNS: &[&str] = &["NAME", "LEADER", "SINCE", "LEASE", "CHANGED", "TERM", "IN LINE", "STATE"];
const WIDE: &[&str] = super::WIDE;
/// In a pipe, with the time in front.
const NEWS: &[&str] = &["NAME", "STATE", "LEADER", "TERM", "TOKEN", "IN LINE"];

#[derive(Default)]
pub struct Watch {
    /// The widths of the columns so far.
    widths: Vec<usize>,
}

/// What a change of is news: state and why nobody leads, leaders, token, how many stand in line.
type Fingerprint = ((&'static str, Option<&'static str>), Vec<String>, i64, usize);

impl View for Watch {
    type Seen = Fleet;

    const VERB: &'static str = "list";

    async fn look(&self, context: &CommandContext<'_>) -> Result<Fleet, CommandError> {
        look(context).await
    }

    fn screen(&self, seen: &Fleet, output: &Output) -> String {
        let columns = if output.format == OutputFormat::Wide { WIDE } else { COLUMNS };
        let mut elections: Vec<_> = seen.elections.iter().collect();
        elections.sort_by_cached_key(|(name, election)| (grade(election), Reverse(changed_when_bad(election)), name));
        let closed = seen.closed.iter().map(|name| closed_row(name, columns));
        let rows = elections.iter().map(|(name, election)| row(name, election, columns, output));
        let rows: Vec<_> = rows.chain(closed).collect();
        // First, so that many elections do not hide them.
        let drains = drained(seen, output);
        let drains = drains.trim_start();
        let gap = if drains.is_empty() { "" } else { "\n" };
        format!("{}\n\n{drains}{gap}{}", summary(seen), output.table(columns, &rows))
    }

    fn news(&mut self, last: Option<&Fleet>, seen: &Fleet, output: &Output) -> String {
        let before = last.map(fingerprints).unwrap_or_default();
        let now = fingerprints(seen);
        let gone = before.keys().filter(|name| !now.contains_key(*name)).copied();
        let mut news: Vec<_> = now.iter().filter(|(name, print)| before.get(*name) != Some(print)).collect();
        // All at first, those in trouble before the others.
        news.sort_by_key(|(name, _)| {
            (seen.elections.iter().find(|(known, _)| known == *name).map(|(_, it)| grade(it)), *name)
        });
        let news = news.into_iter().map(|(name, _)| *name).chain(gone);
        if output.format.is_object() {
            return news.map(|name| output.one_object(&object(seen, name, output))).collect();
        }
        let rows: Vec<_> = news.map(|name| line(seen, name, output)).collect();
        let headings = [&["TIME"], NEWS].concat();
        let headings = if last.is_none() { headings.as_slice() } else { &[] };
        output.more_of(&mut self.widths, headings, &rows)
    }
}

const GONE: &str = "gone";

/// In this order: trouble, what is led, and last the jobs that have no run now.
fn grade(election: &ElectionView) -> u8 {
    match state(election).1 {
        Tone::Bad => 0,
        Tone::Warning => 1,
        Tone::Faint => 3,
        _ => 2,
    }
}

/// The newest trouble first; those without by name.
fn changed_when_bad(election: &ElectionView) -> i64 {
    if grade(election) >= 2 { 0 } else { changed_at(election) }
}

fn summary(seen: &Fleet) -> String {
    let all = seen.elections.len() + seen.closed.len();
    let led = seen.elections.iter().filter(|(_, election)| matches!(state(election).0, "led" | FOREIGN)).count();
    let elections = if all == 1 { "election" } else { "elections" };
    format!("{all} {elections} below {}{}, {led} led", seen.root, seen.in_chroot)
}

fn fingerprints(fleet: &Fleet) -> BTreeMap<&str, Fingerprint> {
    let open = fleet.elections.iter().map(|(name, election)| {
        let state = (state(election).0, why(election).map(|why| why.word()));
        (name.as_str(), (state, leading(election), newest_term(election).mzxid, election.line.len()))
    });
    let closed = fleet.closed.iter().map(|name| (name.as_str(), ((NO_PERMISSION, None), Vec::new(), 0, 0)));
    open.chain(closed).collect()
}

fn object(seen: &Fleet, name: &str, output: &Output) -> serde_json::Value {
    match seen.elections.iter().find(|(known, _)| known == name) {
        Some((name, election)) => as_json(name, election, output.now),
        None if seen.closed.iter().any(|closed| closed == name) => closed_json(&seen.root, name),
        None => json!({ "name": name, "path": format!("{}/{name}", seen.root), "state": GONE }),
    }
}

fn line(seen: &Fleet, name: &str, output: &Output) -> Vec<Cell> {
    let cells = match seen.elections.iter().find(|(known, _)| known == name) {
        Some((name, election)) => row(name, election, NEWS, output),
        None if seen.closed.iter().any(|closed| closed == name) => closed_row(name, NEWS),
        None => vec![Cell::new(name, Tone::Strong), Cell::new(GONE, Tone::Warning)],
    };
    std::iter::once(Cell::from(moment(output.now))).chain(cells).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::admin::Facts;
    use crate::zookeeper::admin::view::{Candidate, SlotView};
    use crate::zookeeper::schema::lease::Lease;
    use crate::zookeeper::schema::member::Member;

    fn election(record: &str, has_runs: bool, in_line: Option<&str>) -> ElectionView {
        let lease = Lease::read(format!(r#"{{"v":1,"lease_ms":15000,{record}}}"#).as_bytes()).unwrap();
        let slots = vec![SlotView { lease: Some((lease, Facts::default())), ..SlotView::default() }];
        let line = in_line.map(|id| Candidate { id: id.into(), ..Candidate::default() }).into_iter().collect();
        ElectionView { has_runs, line, slots, ..ElectionView::default() }
    }

    #[test]
    fn trouble_comes_first_and_jobs_that_have_no_run_now_come_last() {
        let (free, held) = (r#""state":"free""#, r#""state":"held","holder":{"id":"a","host":"h","pid":1}"#);
        let mut disabled = election(free, true, None);
        disabled.orders.disabled = Some(crate::zookeeper::schema::control::Disabled::default());
        let elections = [
            ("a-finished-job", election(free, true, None)),
            ("b-running-job", election(held, true, Some("a"))),
            ("c-service", election(held, false, Some("a"))),
            ("d-service-without-a-host", election(free, false, None)),
            ("e-job-that-is-not-taken", election(free, true, Some("a"))),
            ("f-disabled-job", disabled),
        ];
        let elections = elections.into_iter().map(|(name, election)| (name.to_owned(), election)).collect();
        let fleet =
            Fleet { root: "/r".into(), in_chroot: String::new(), elections, closed: Vec::new(), drains: Vec::new() };
        let plain = Output { format: OutputFormat::Plain, coloured: false, now: 0 };
        let order = |text: &str, column| {
            let names = text.lines().filter_map(|line| line.split('\t').nth(column)?.chars().next());
            names.collect::<String>()
        };
        let mut watch = Watch::default();
        assert_eq!(order(&watch.news(None, &fleet, &plain), 1), "defbca");
        assert_eq!(order(watch.screen(&fleet, &plain).rsplit("\n\n").next().unwrap(), 0), "defbca");
        let one = Fleet { elections: fleet.elections.into_iter().take(1).collect(), ..fleet };
        assert_eq!(summary(&one), "1 election below /r, 0 led");
    }

    #[test]
    fn another_reason_why_nobody_leads_is_news() {
        let fleet = |members: &[(&str, bool)]| {
            let mut election = election(r#""state":"free""#, false, None);
            election.members.extend(members.iter().map(|(id, eligible)| {
                let member = Member { id: (*id).into(), eligible: *eligible, ..Member::default() };
                ((*id).to_owned(), (member, Facts::default()))
            }));
            let elections = vec![("e".to_owned(), election)];
            Fleet { root: "/r".into(), in_chroot: String::new(), elections, closed: Vec::new(), drains: Vec::new() }
        };
        let plain = Output { format: OutputFormat::Plain, coloured: false, now: 0 };
        let mut watch = Watch::default();
        let barred = fleet(&[("a", false)]);
        assert_eq!(watch.news(Some(&barred), &fleet(&[("b", false)]), &plain), "");
        assert!(
            watch.news(Some(&fleet(&[])), &barred, &plain).contains("nobody leads"),
            "its host is there, and stands back"
        );
    }

    /// Nothing of ours changes with it.
    #[test]
    fn another_leader_of_another_library_is_news_and_is_named() {
        let fleet = |first: &str| {
            let mut election = election(r#""state":"free""#, false, Some(first));
            election.is_shared = true;
            let elections = vec![("e".to_owned(), election)];
            Fleet { root: "/r".into(), in_chroot: String::new(), elections, closed: Vec::new(), drains: Vec::new() }
        };
        let json = Output { format: OutputFormat::Json, coloured: false, now: 0 };
        let mut watch = Watch::default();
        assert_eq!(watch.news(Some(&fleet("a")), &fleet("a"), &json), "");
        let news = watch.news(Some(&fleet("a")), &fleet("b"), &json);
        let news: serde_json::Value = serde_json::from_str(&news).unwrap();
        assert_eq!((&news["state"], &news["leaders"], &news["hosts"]), (&json!("foreign"), &json!(["b"]), &json!([])));
    }
}
