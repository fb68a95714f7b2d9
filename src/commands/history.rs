//! `history`: the last terms, with a small line of time.
//!
//! Never: a term that lasts without a lease.

use serde_json::{Value, json};

use super::output::{Cell, Output, Tone, moment, with};
use super::slot_state::{self, SlotState};
use super::watch::View;
use super::{Answer, CommandContext, CommandError};
use crate::config::ctl::OutputFormat;
use crate::core::action::Why;
use crate::observe::words;
use crate::zookeeper::admin::view::{self, ElectionView};
use crate::zookeeper::schema::history::{self, History, Term, UNCLEAN};
use crate::zookeeper::schema::run_marker::Run;

/// The width of the line of time.
const WIDTH: i64 = 40;

/// Ends that no host has written: by the lease record, nobody leads.
const LEASE_OVERDUE: &str = "lease overdue";
const LEASE_FREE: &str = "lease free";
const NOT_KNOWN: &str = "not known";

/// The end of a term that ran nothing, because the run was done.
const DUPLICATE: &str = words::reason_code(Why::Duplicate);

/// The last terms of an election.
pub(super) struct Terms {
    base: String,
    has_slots: bool,
    history: History,
    /// Of a job that runs once for each scheduled time.
    runs: Vec<Run>,
}

impl Terms {
    /// The run of this term; the last one, if it had several.
    fn run_of(&self, term: &Term) -> Option<&Run> {
        self.runs.iter().find(|run| run.token == term.token)
    }

    fn json(&self, term: &Term) -> Value {
        let run = self.run_of(term).map(|run| json!({ "slot": run.slot, "status": run.status, "ok": run.ok }));
        run.map_or_else(|| json!(term), |run| with(json!(term), "run", run))
    }

    /// The same whichever terms are shown.
    fn columns(&self, has_bar: bool, format: OutputFormat) -> Columns {
        Columns { has_slots: self.has_slots, has_runs: !self.runs.is_empty(), has_bar, format }
    }
}

pub(super) async fn answer(context: &CommandContext<'_>, lines: usize) -> Result<Answer, CommandError> {
    let terms = look(context, lines).await?;
    Ok(Answer { text: whole(&terms, &context.output), status: 0 })
}

async fn look(context: &CommandContext<'_>, lines: usize) -> Result<Terms, CommandError> {
    let election = context.election().await?;
    let ElectionView { base, slots, has_runs, .. } = &election;
    let mut history = match view::history(&context.client, base).await? {
        Some(Ok(history)) => history,
        Some(Err(complaint)) => {
            let sentence = format!("the history at {base}/history cannot be read: {complaint}");
            return Err(CommandError::not_known(sentence));
        }
        None => History::default(),
    };
    let has_slots = slots.iter().any(|slot| slot.name.is_some()) || history.terms.iter().any(|term| term.slot != 0);
    if context.output.format == OutputFormat::Table {
        leave_duplicates_out(&mut history.terms);
    }
    history.terms.drain(..history.terms.len().saturating_sub(lines));
    // After the history: the end of a run is written before that of its term.
    let runs = if *has_runs { view::runs(&context.client, base).await? } else { Vec::new() };
    history.terms.iter_mut().for_each(|term| end_without_a_lease(term, &election));
    Ok(Terms { base: election.base, has_slots, history, runs })
}

/// Of six hosts that cron calls at one time, five have nothing to run. Of sixty, no run may be among those that are written down.
fn leave_duplicates_out(terms: &mut Vec<Term>) {
    let ran = |term: &Term| !term.ended.as_deref().is_some_and(|ended| ended.starts_with(DUPLICATE));
    if terms.iter().any(ran) {
        terms.retain(ran);
    }
}

/// Of a term that nobody has ended: it lasts only as long as its leader is known to lead.
fn end_without_a_lease(term: &mut Term, election: &ElectionView) {
    let slot = election.slots.iter().find(|slot| slot.token() == term.token);
    let Some(slot) = slot.filter(|_| term.ended.is_none() && term.until.is_none()) else { return };
    let freed_at = slot.lease.as_ref().filter(|(lease, _)| !lease.is_held()).map(|(_, written)| written.changed_at);
    let (until, ended) = match slot_state::of(slot, election) {
        SlotState::Led { .. } | SlotState::Waiting { .. } => return,
        _ if freed_at.is_some() => (freed_at, LEASE_FREE),
        _ if slot.overdue_since.is_some() => (slot.overdue_since, LEASE_OVERDUE),
        _ => (None, NOT_KNOWN),
    };
    (term.until, term.ended) = (until, Some(ended.to_owned()));
}

fn whole(seen: &Terms, output: &Output) -> String {
    let Terms { base, history, .. } = seen;
    match output.format {
        OutputFormat::Json | OutputFormat::Yaml => {
            let terms: Vec<_> = history.terms.iter().map(|term| seen.json(term)).collect();
            output.object(&json!({ "v": 1, "election": base, "terms": terms }))
        }
        OutputFormat::Table | OutputFormat::Wide if history.terms.is_empty() => {
            "no term is written down yet\n".to_owned()
        }
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Plain => table(seen, output),
    }
}

/// `--watch`.
pub(super) struct Watch {
    lines: usize,
    /// The widths of the columns so far.
    widths: Vec<usize>,
}

impl Watch {
    pub fn of(lines: usize) -> Self {
        Self { lines, widths: Vec::new() }
    }
}

impl View for Watch {
    type Seen = Terms;

    const VERB: &'static str = "history";
    const NEWEST_LAST: bool = true;

    async fn look(&self, context: &CommandContext<'_>) -> Result<Terms, CommandError> {
        look(context, self.lines).await
    }

    fn screen(&self, seen: &Terms, output: &Output) -> String {
        whole(seen, output)
    }

    /// Terms that have begun or ended.
    fn news(&mut self, last: Option<&Terms>, seen: &Terms, output: &Output) -> String {
        let known = |term: &&Term| last.is_some_and(|last| last.history.terms.contains(term));
        let news: Vec<_> = seen.history.terms.iter().filter(|term| !known(term)).collect();
        if output.format.is_object() {
            return news.iter().map(|term| output.one_object(&seen.json(term))).collect();
        }
        let columns = seen.columns(false, output.format);
        let rows: Vec<_> = news.iter().map(|term| row((term, seen.run_of(term)), 0, &columns, output)).collect();
        let headings = if last.is_none() { columns.headings() } else { Vec::new() };
        output.more_of(&mut self.widths, &headings, &rows)
    }
}

/// Which columns a table has.
struct Columns {
    has_slots: bool,
    has_runs: bool,
    has_bar: bool,
    format: OutputFormat,
}

impl Columns {
    fn headings(&self) -> Vec<&'static str> {
        let all = [
            (self.has_slots, "SLOT"),
            (true, "TERM"),
            (true, "TOKEN"),
            (true, "ID"),
            (self.format == OutputFormat::Wide, "HOST"),
            (true, "SINCE"),
            (self.format == OutputFormat::Wide, "UNTIL"),
            (true, "FOR"),
            (true, "BEGAN"),
            (true, "ENDED"),
            (self.has_runs, "RUN"),
            (self.has_runs, "STATUS"),
            (self.has_bar, "TIME"),
        ];
        all.into_iter().filter(|(has, _)| *has).map(|(_, heading)| heading).collect()
    }
}

/// The newest last, as in a log.
fn table(seen: &Terms, output: &Output) -> String {
    let history = &seen.history;
    let first = history.terms.iter().map(|term| term.since).min().unwrap_or(output.now);
    let columns = seen.columns(output.format.is_table(), output.format);
    let rows: Vec<_> =
        history.terms.iter().map(|term| row((term, seen.run_of(term)), first, &columns, output)).collect();
    output.table(&columns.headings(), &rows)
}

fn row((term, run): (&Term, Option<&Run>), first: i64, columns: &Columns, output: &Output) -> Vec<Cell> {
    let (until, is_known) = latest_end(term, output.now);
    let (ended, tone) = match term.ended.as_deref() {
        Some(ended @ (UNCLEAN | LEASE_OVERDUE | NOT_KNOWN)) => (ended, Tone::Bad),
        Some(ended) => (ended, Tone::Plain),
        None => ("-", Tone::Good),
    };
    let lasted = Output { now: until, ..*output }.age(term.since);
    let lasted = if is_known { lasted } else { format!("at most {lasted}") };
    let bar = bar(term.since, until, first, output.now);
    let bar = if is_known { bar } else { bar.replace('█', "░") };
    let (cells, wide) = (|text: String| Some(Cell::from(text)), columns.format == OutputFormat::Wide);
    let until_cell = term.until.map_or_else(|| "-".to_owned(), moment);
    let row = [
        cells(term.slot.to_string()).filter(|_| columns.has_slots),
        cells(term.term.to_string()),
        cells(term.token.to_string()),
        Some(Cell::new(&term.id, Tone::Strong)),
        cells(term.host.clone()).filter(|_| wide),
        cells(moment(term.since)),
        cells(until_cell).filter(|_| wide),
        cells(lasted),
        cells(term.takeover.clone()),
        Some(Cell::new(ended, tone)),
        columns.has_runs.then(|| Cell::from(run.and_then(|run| run.slot.as_deref()).unwrap_or("-"))),
        columns.has_runs.then(|| run.map_or_else(|| Cell::from("-"), |run| status(term, run))),
        columns.has_bar.then(|| Cell::new(bar, tone)),
    ];
    row.into_iter().flatten().collect()
}

/// Until when its command may have run, and whether it ran until then: else its host has written no end, and its lease was over by
/// `until`.
fn latest_end(term: &Term, now: i64) -> (i64, bool) {
    let until = term.until.unwrap_or(now).max(term.since);
    match term.ended.as_deref() {
        Some(UNCLEAN | LEASE_OVERDUE) => {
            (history::later(until, term.max_pause_ms.unwrap_or_default()).min(now).max(until), false)
        }
        Some(ended) => (until, ended != NOT_KNOWN && !history::is_told_by_the_next(ended)),
        None => (until, true),
    }
}

/// The exit status of a run, as in a shell.
fn status(term: &Term, run: &Run) -> Cell {
    match (run.status, run.ok) {
        (Some(status), Some(true)) => Cell::from(status.to_string()),
        // It was stopped before its end.
        (Some(0), _) => Cell::new("0, failed", Tone::Bad),
        (Some(status), _) => Cell::new(status.to_string(), Tone::Bad),
        (None, None) if term.until.is_none() => Cell::from("-"),
        (None, None) => Cell::new("interrupted", Tone::Bad),
        // It could not be started.
        (None, Some(_)) => Cell::new("failed", Tone::Bad),
    }
}

/// Where a term lies between the first one's beginning and now.
fn bar(since: i64, until: i64, first: i64, now: i64) -> String {
    let whole = now.saturating_sub(first).max(1);
    let column = |time: i64| (time.saturating_sub(first).saturating_mul(WIDTH) / whole).clamp(0, WIDTH - 1);
    let (from, to) = (column(since), column(until));
    (0..WIDTH).map(|at| if (from..=to).contains(&at) { '█' } else { '·' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::admin::Facts;
    use crate::zookeeper::admin::view::{Candidate, SlotView};
    use crate::zookeeper::schema::lease::Lease;

    #[test]
    fn a_run_that_has_no_exit_status_is_told_as_what_it_was() {
        let said = |until, ok, status_of_run| {
            let (term, run) = (Term { until, ..Term::default() }, Run { ok, status: status_of_run, ..Run::default() });
            status(&term, &run)
        };
        assert_eq!(said(None, None, None), Cell::from("-"), "it goes on");
        assert_eq!(said(Some(9), None, None), Cell::new("interrupted", Tone::Bad), "its host died with it");
        assert_eq!(said(Some(9), Some(false), None), Cell::new("failed", Tone::Bad), "it could not be started");
        assert_eq!(said(Some(9), Some(false), Some(3)), Cell::new("3", Tone::Bad));
    }

    #[test]
    fn a_run_that_was_stopped_is_not_told_as_one_that_ended_well() {
        let said = |ok| status(&Term::default(), &Run { ok, status: Some(0), ..Run::default() });
        assert_eq!([said(Some(true)), said(Some(false))], [Cell::from("0"), Cell::new("0, failed", Tone::Bad)]);
    }

    #[test]
    fn terms_that_ran_nothing_are_left_out_beside_others_but_are_not_no_terms() {
        let left = |ended: &[&str]| {
            let term = |ended: &&str| Term { ended: Some((*ended).to_owned()), ..Term::default() };
            let mut terms: Vec<_> = ended.iter().map(term).collect();
            leave_duplicates_out(&mut terms);
            terms.into_iter().filter_map(|term| term.ended).collect::<Vec<_>>()
        };
        assert_eq!(left(&["duplicate", "command-ended", "duplicate"]), ["command-ended"]);
        assert_eq!(left(&["duplicate", "duplicate"]), ["duplicate", "duplicate"]);
    }

    /// Its host crashed, and wrote no end.
    #[test]
    fn a_term_that_nobody_has_ended_lasts_only_while_its_leader_is_known_to_lead() {
        let end = |record: &str, is_in_line: bool, overdue_since| {
            let holder = r#""holder":{"id":"a","host":"h","pid":1}"#;
            let lease = Lease::read(format!(r#"{{"v":1,"lease_ms":9000,{holder},{record}}}"#).as_bytes()).unwrap();
            let (lease, term) = (Some((lease, at(500, 8))), Some(at(100, 7)));
            let slots = vec![SlotView { lease, term, overdue_since, ..SlotView::default() }];
            let line = is_in_line.then(|| Candidate { id: "a".into(), ..Candidate::default() });
            let election = ElectionView { slots, line: line.into_iter().collect(), ..ElectionView::default() };
            let [mut term, mut next] = [7, 9].map(|token| Term { token, since: 100, ..Term::default() });
            for term in [&mut term, &mut next] {
                end_without_a_lease(term, &election);
            }
            assert_eq!(next.ended, None, "it began after our look");
            (term.until, term.ended.unwrap_or_default())
        };
        let is = |until, ended: &str| (until, ended.to_owned());
        assert_eq!(end(r#""state":"held""#, true, None), is(None, ""));
        assert_eq!(end(r#""state":"held""#, true, Some(9_500)), is(Some(9_500), "lease overdue"));
        assert_eq!(end(r#""state":"held""#, false, None), is(None, "not known"), "its lease must run out");
        assert_eq!(end(r#""state":"held","vouch_ms":60000"#, false, None), is(None, "not known"), "others may vouch");
        assert_eq!(end(r#""state":"free""#, true, None), is(Some(500), "lease free"), "its guard released it");
    }

    fn at(changed_at: i64, mzxid: i64) -> Facts {
        Facts { mzxid, changed_at, ..Facts::default() }
    }

    #[test]
    fn where_an_end_is_not_known_a_term_is_said_to_have_lasted_at_most_so_long() {
        let shown = |ended: Option<&str>, until, max_pause_ms| {
            let ended = ended.map(str::to_owned);
            let term = Term { since: 10_000, until, ended, max_pause_ms, ..Term::default() };
            let history = History { terms: vec![term], ..History::default() };
            let terms = Terms { base: String::new(), has_slots: false, history, runs: Vec::new() };
            let output = Output { format: OutputFormat::Plain, coloured: false, now: 100_000 };
            table(&terms, &output).split('\t').nth(4).unwrap().to_owned()
        };
        assert_eq!([shown(None, None, None), shown(Some("released"), Some(30_000), None)], ["1m30s", "20s"]);
        for ended in ["unclean", "killed, released", "own lease", "lease overdue"] {
            assert_eq!(shown(Some(ended), Some(30_000), None), "at most 20s", "{ended}");
        }
        assert_eq!(shown(Some("not known"), None, None), "at most 1m30s");
        assert_eq!(shown(Some("unclean"), Some(30_000), Some(5_000)), "at most 25s", "it may outlive its term");
        assert_eq!(shown(Some("unclean"), Some(30_000), Some(u64::MAX)), "at most 1m30s", "it may run yet");
    }

    #[test]
    fn the_line_of_time_shows_when_each_term_was() {
        assert_eq!(bar(0, 50, 0, 100).matches('█').count(), 21);
        assert!(bar(99, 100, 0, 100).ends_with("·█"));
        assert_eq!(bar(5, 5, 5, 5).chars().count(), 40);
        assert_eq!(bar(i64::MAX, i64::MIN, 0, i64::MAX).chars().count(), 40);
    }
}
