//! `history`: the last terms, with a small line of time.

use serde_json::json;

use super::output::{Cell, Output, Tone, moment};
use super::{Answer, CommandContext, CommandError};
use crate::config::ctl::OutputFormat;
use crate::zookeeper::admin::view;
use crate::zookeeper::schema::history::{History, Term};

/// The width of the line of time.
const WIDTH: i64 = 40;

pub(super) async fn answer(context: &CommandContext<'_>) -> Result<Answer, CommandError> {
    let election = context.election().await?;
    let history = match view::history(&context.client, &election.base).await? {
        Some(Ok(history)) => history,
        Some(Err(complaint)) => {
            let sentence = format!("the history at {}/history cannot be read: {complaint}", election.base);
            return Err(CommandError::not_known(sentence));
        }
        None => History::default(),
    };
    let text = match context.output.format {
        OutputFormat::Json => format!("{:#}\n", json!({ "v": 1, "election": election.base, "terms": history.terms })),
        OutputFormat::Table if history.terms.is_empty() => "no term is written down yet\n".to_owned(),
        OutputFormat::Table | OutputFormat::Plain => table(&history, &context.output),
    };
    Ok(Answer { text, status: 0 })
}

/// The newest last, as in a log.
pub(super) fn table(history: &History, output: &Output) -> String {
    let first = history.terms.iter().map(|term| term.since).min().unwrap_or(output.now);
    let has_slots = history.terms.iter().any(|term| term.slot != 0);
    let slot = |term: &Term| has_slots.then(|| Cell::from(term.slot.to_string()));
    let rows: Vec<_> =
        history.terms.iter().map(|term| slot(term).into_iter().chain(row(term, first, output)).collect()).collect();
    let columns = ["SLOT", "TERM", "TOKEN", "ID", "SINCE", "FOR", "BEGAN", "ENDED", "TIME"];
    let columns: Vec<_> = columns.into_iter().skip(usize::from(!has_slots)).collect();
    output.table(&columns, &rows)
}

fn row(term: &Term, first: i64, output: &Output) -> Vec<Cell> {
    let until = term.until.unwrap_or(output.now).max(term.since);
    let (ended, tone) = match (&term.ended, term.until) {
        (Some(ended), _) if ended == "unclean" => (ended.as_str(), Tone::Bad),
        (Some(ended), _) => (ended.as_str(), Tone::Plain),
        (None, _) => ("-", Tone::Good),
    };
    let lasted = Output { now: until, ..*output }.age(term.since);
    let mut cells = vec![
        Cell::from(term.term.to_string()),
        Cell::from(term.token.to_string()),
        Cell::new(&term.id, Tone::Strong),
        Cell::from(moment(term.since)),
        Cell::from(lasted),
        Cell::from(&term.takeover),
        Cell::new(ended, tone),
    ];
    if output.format == OutputFormat::Table {
        cells.push(Cell::new(bar(term.since, until, first, output.now), tone));
    }
    cells
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
