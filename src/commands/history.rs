//! `history`: the last terms, with a small line of time.

use serde_json::json;

use super::output::{Cell, Output, Tone, moment};
use super::watch::View;
use super::{Answer, CommandContext, CommandError};
use crate::config::ctl::OutputFormat;
use crate::zookeeper::admin::view::{self, ElectionView};
use crate::zookeeper::schema::history::{History, Term};

/// The width of the line of time.
const WIDTH: i64 = 40;

/// The last terms of an election.
pub(super) struct Terms {
    base: String,
    has_slots: bool,
    history: History,
}

pub(super) async fn answer(context: &CommandContext<'_>, lines: usize) -> Result<Answer, CommandError> {
    let terms = look(context, lines).await?;
    Ok(Answer { text: whole(&terms, &context.output), status: 0 })
}

async fn look(context: &CommandContext<'_>, lines: usize) -> Result<Terms, CommandError> {
    let ElectionView { base, slots, .. } = context.election().await?;
    let has_slots = slots.iter().any(|slot| slot.name.is_some());
    let mut history = match view::history(&context.client, &base).await? {
        Some(Ok(history)) => history,
        Some(Err(complaint)) => {
            let sentence = format!("the history at {base}/history cannot be read: {complaint}");
            return Err(CommandError::not_known(sentence));
        }
        None => History::default(),
    };
    history.terms.drain(..history.terms.len().saturating_sub(lines));
    Ok(Terms { base, has_slots, history })
}

fn whole(Terms { base, history, .. }: &Terms, output: &Output) -> String {
    match output.format {
        OutputFormat::Json | OutputFormat::Yaml => {
            output.object(&json!({ "v": 1, "election": base, "terms": history.terms }))
        }
        OutputFormat::Table | OutputFormat::Wide if history.terms.is_empty() => {
            "no term is written down yet\n".to_owned()
        }
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Plain => table(history, output),
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
            return news.iter().map(|term| output.one_object(&json!(term))).collect();
        }
        let (has_slots, is_wide) = (seen.has_slots, output.format == OutputFormat::Wide);
        let columns = Columns { has_slots, has_bar: false, is_wide };
        let rows: Vec<_> = news.iter().map(|term| row(term, 0, &columns, output)).collect();
        let headings = if last.is_none() { columns.headings() } else { Vec::new() };
        output.more_of(&mut self.widths, &headings, &rows)
    }
}

/// Which columns a table has.
struct Columns {
    has_slots: bool,
    has_bar: bool,
    is_wide: bool,
}

impl Columns {
    fn headings(&self) -> Vec<&'static str> {
        let all = [
            (self.has_slots, "SLOT"),
            (true, "TERM"),
            (true, "TOKEN"),
            (true, "ID"),
            (self.is_wide, "HOST"),
            (true, "SINCE"),
            (self.is_wide, "UNTIL"),
            (true, "FOR"),
            (true, "BEGAN"),
            (true, "ENDED"),
            (self.has_bar, "TIME"),
        ];
        all.into_iter().filter(|(has, _)| *has).map(|(_, heading)| heading).collect()
    }
}

/// The newest last, as in a log.
pub(super) fn table(history: &History, output: &Output) -> String {
    let first = history.terms.iter().map(|term| term.since).min().unwrap_or(output.now);
    let columns = Columns {
        has_slots: history.terms.iter().any(|term| term.slot != 0),
        has_bar: output.format.is_table(),
        is_wide: output.format == OutputFormat::Wide,
    };
    let rows: Vec<_> = history.terms.iter().map(|term| row(term, first, &columns, output)).collect();
    output.table(&columns.headings(), &rows)
}

fn row(term: &Term, first: i64, columns: &Columns, output: &Output) -> Vec<Cell> {
    let until = term.until.unwrap_or(output.now).max(term.since);
    let (ended, tone) = match (&term.ended, term.until) {
        (Some(ended), _) if ended == "unclean" => (ended.as_str(), Tone::Bad),
        (Some(ended), _) => (ended.as_str(), Tone::Plain),
        (None, _) => ("-", Tone::Good),
    };
    let lasted = Output { now: until, ..*output }.age(term.since);
    let (cells, wide) = (|text: String| Some(Cell::from(text)), columns.is_wide);
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
        columns.has_bar.then(|| Cell::new(bar(term.since, until, first, output.now), tone)),
    ];
    row.into_iter().flatten().collect()
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

    #[test]
    fn the_line_of_time_shows_when_each_term_was() {
        assert_eq!(bar(0, 50, 0, 100).matches('█').count(), 21);
        assert!(bar(99, 100, 0, 100).ends_with("·█"));
        assert_eq!(bar(5, 5, 5, 5).chars().count(), 40);
        assert_eq!(bar(i64::MAX, i64::MIN, 0, i64::MAX).chars().count(), 40);
    }
}
