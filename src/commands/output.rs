//! How answers are laid out: tables for people, tabs for scripts, and times as both can read them.
//!
//! Never: a control character that came from a znode.

mod yaml;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use crate::config::ctl::OutputFormat;
use crate::observe::words;
use crate::observe::words::{cut, printable, printable_json};
pub(super) use crate::zookeeper::schema::control::moment::moment;

/// A longer cell is cut in a table, which pads all others to its width: anyone who may write a znode may fill it.
const WIDEST: usize = 500;

/// A reason or a name within a sentence is cut in a table, so that the end of the sentence is seen: it says what to do.
const LONGEST_PART: usize = 200;

/// The tone of a cell, shown as a colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Tone {
    #[default]
    Plain,
    Good,
    Warning,
    Bad,
    Faint,
    Strong,
}

/// One cell of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Cell {
    text: String,
    tone: Tone,
}

/// The format of an answer, with the time of day that ages count from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Output {
    pub format: OutputFormat,
    pub coloured: bool,
    /// Milliseconds since 1970.
    pub now: i64,
}

impl Cell {
    pub fn new(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { text: printable(text.as_ref()), tone }
    }

    fn in_table(&self) -> Cow<'_, str> {
        cut(&self.text, WIDEST)
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Tone::Plain)
    }
}

impl Output {
    /// JSON or YAML.
    pub fn object(&self, value: &Value) -> String {
        if self.format == OutputFormat::Yaml { yaml::of(value) } else { printable_json(&format!("{value:#}\n")) }
    }

    /// An object for programs, a word for scripts, a line for people, or none: whatever a name in it holds, it is one line.
    pub fn told(&self, object: &Value, word: &str, line: &str) -> String {
        match self.format {
            OutputFormat::Json | OutputFormat::Yaml => self.object(object),
            OutputFormat::Plain => format!("{word}\n"),
            OutputFormat::Table | OutputFormat::Wide if line.is_empty() => String::new(),
            OutputFormat::Table | OutputFormat::Wide => printable(line) + "\n",
        }
    }

    /// One of many objects: JSON on one line, or a document of YAML.
    pub fn one_object(&self, value: &Value) -> String {
        match self.format {
            OutputFormat::Yaml => format!("---\n{}", yaml::of(value)),
            _ => printable_json(&format!("{value}\n")),
        }
    }

    /// Rows under headings; in plain, tabs and no headings.
    pub fn table(&self, headings: &[&str], rows: &[Vec<Cell>]) -> String {
        self.more_of(&mut Vec::new(), headings, rows)
    }

    /// The same for a table that goes on: `widths` are those of the columns so far. No headings: those of before.
    pub fn more_of(&self, widths: &mut Vec<usize>, headings: &[&str], rows: &[Vec<Cell>]) -> String {
        let mut text = String::new();
        if self.format == OutputFormat::Plain {
            for row in rows {
                let cells: Vec<_> = row.iter().map(|cell| cell.text.as_str()).collect();
                writeln!(text, "{}", cells.join("\t")).ok();
            }
            return text;
        }
        let head: Vec<_> = headings.iter().map(|heading| Cell::new(heading, Tone::Faint)).collect();
        let rows = || std::iter::once(&head).filter(|head| !head.is_empty()).chain(rows);
        widths.resize(rows().map(Vec::len).max().unwrap_or(0).max(widths.len()), 0);
        for row in rows() {
            for (cell, width) in row.iter().zip(widths.iter_mut()) {
                *width = cell.in_table().chars().count().max(*width);
            }
        }
        for row in rows() {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(widths.iter()) {
                let padding = width.saturating_sub(cell.in_table().chars().count()) + 2;
                write!(line, "{}{:padding$}", self.painted(cell), "").ok();
            }
            writeln!(text, "{}", line.trim_end()).ok();
        }
        text
    }

    /// Lines of a name and what it is; in plain, a tab between them.
    pub fn facts(&self, facts: &[(&str, Cell)]) -> String {
        let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, cell) in facts {
            if self.format == OutputFormat::Plain {
                writeln!(text, "{name}\t{}", cell.text).ok();
            } else {
                let name = Cell::new(format!("{name:<width$}"), Tone::Faint);
                writeln!(text, "{}  {}", self.painted(&name), self.painted(cell)).ok();
            }
        }
        text
    }

    /// A part of a sentence that somebody else wrote.
    pub fn part<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.left_out(text) {
            None => text.into(),
            Some(note) => format!("{}{note}", cut(text, LONGEST_PART)).into(),
        }
    }

    /// The same in quotes, so that no quotes and no end of a line in it garble the sentence.
    pub fn quoted_part(&self, text: &str) -> String {
        match self.left_out(text) {
            None => format!("{text:?}"),
            Some(note) => format!("{:?}{note}", cut(text, LONGEST_PART)),
        }
    }

    fn left_out(&self, text: &str) -> Option<String> {
        let more = text.chars().count().saturating_sub(LONGEST_PART);
        let is_cut = more > 0 && self.format.is_table();
        is_cut.then(|| format!(" ({more} more characters, -o plain shows them)"))
    }

    /// How long ago it was, by two clocks that need not agree: never negative.
    pub fn age(&self, then: i64) -> String {
        let age = Duration::from_millis(u64::try_from(self.now.saturating_sub(then)).unwrap_or(0));
        if age < Duration::from_secs(1) { "0s".to_owned() } else { words::length(Duration::from_secs(age.as_secs())) }
    }

    fn painted(&self, cell: &Cell) -> String {
        let code = match cell.tone {
            _ if !self.coloured => None,
            Tone::Plain => None,
            Tone::Good => Some("32"),
            Tone::Warning => Some("33"),
            Tone::Bad => Some("31"),
            Tone::Faint => Some("2"),
            Tone::Strong => Some("1"),
        };
        let text = cell.in_table();
        code.map_or_else(|| text.to_string(), |code| format!("\x1b[{code}m{text}\x1b[0m"))
    }
}

/// The object with one more field.
pub(super) fn with(mut object: Value, name: &str, value: Value) -> Value {
    object.as_object_mut().and_then(|fields| fields.insert(name.to_owned(), value));
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: Output = Output { format: OutputFormat::Table, coloured: false, now: 100_000 };

    #[test]
    fn a_table_is_aligned_and_shows_no_control_characters() {
        let rows = [vec![Cell::from("1"), Cell::from("größe\x1b[2J")], vec![Cell::from("22"), Cell::from("b")]];
        assert_eq!(OUTPUT.table(&["#", "ID"], &rows), "#   ID\n1   größe\\u{1b}[2J\n22  b\n");
        let plain = Output { format: OutputFormat::Plain, ..OUTPUT };
        assert_eq!(plain.table(&["#", "ID"], &rows), "1\tgröße\\u{1b}[2J\n22\tb\n");
    }

    #[test]
    fn a_long_text_of_a_stranger_is_cut_in_a_table_and_nowhere_else() {
        let rows = [vec![Cell::from("x".repeat(100_000)), Cell::from("b")], vec![Cell::from("é"), Cell::from("c")]];
        let table = OUTPUT.table(&["ID", "#"], &rows);
        assert!(table.lines().all(|line| line.chars().count() < 600), "{} bytes", table.len());
        assert!(table.contains("xxx...  b\n") && OUTPUT.facts(&[("a", rows[0][0].clone())]).len() < 600);
        let plain = Output { format: OutputFormat::Plain, ..OUTPUT };
        assert_eq!(plain.table(&["ID", "#"], &rows[..1]).len(), 100_003);
    }

    #[test]
    fn an_object_shows_no_control_characters_either() {
        let value = serde_json::json!({ "id": "a\x1b\u{9b}2J\u{7f}é" });
        let output = Output { format: OutputFormat::Json, ..OUTPUT };
        for text in [output.object(&value), output.one_object(&value)] {
            assert!(!text.trim_end().replace('\n', "").contains(char::is_control), "{text:?}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }

    #[test]
    fn what_is_told_is_one_line_and_shows_no_control_characters() {
        let told = |line| OUTPUT.told(&Value::Null, "word", line);
        assert_eq!(told("a\x1b[31mb\nc\x07"), "a\\u{1b}[31mb\\nc\\u{7}\n");
        assert_eq!(told(""), "");
    }

    #[test]
    fn colours_change_nothing_else() {
        let painted = Output { coloured: true, ..OUTPUT }.facts(&[("lease", Cell::new("held", Tone::Good))]);
        assert_eq!(painted, "\x1b[2mlease\x1b[0m  \x1b[32mheld\x1b[0m\n");
    }

    #[test]
    fn ages_are_said_for_people() {
        assert_eq!((OUTPUT.age(97_500).as_str(), OUTPUT.age(200_000).as_str()), ("2s", "0s"));
    }
}
