//! One event becomes one line: for people, one JSON object, or one entry of the journal.
//!
//! Never: a line break inside a line; an escape sequence that came from outside.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::time::Duration;

use serde::Serializer as _;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::journald;
use crate::observe::words::{self, printable, printable_json};

/// `--log-format`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    #[default]
    Human,
    Json,
    /// To journald, with fields.
    Journald,
}

/// Fields of a transition that its sentence already says to people.
const SAID: [&str; 3] = ["from", "to", "why"];
const OURS: &str = "zk_leader_run";

/// The election that a line is about, and our id in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Owner {
    pub election: String,
    pub id: String,
}

/// Writes lines of one format.
pub(super) struct Lines {
    pub format: Format,
    pub coloured: bool,
    /// Whose lines these are.
    pub owner: Owner,
    /// The time of day as RFC 3339: an argument, so that the lines can be tested.
    pub time: fn() -> String,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut told = Told::default();
        event.record(&mut told);
        let metadata = event.metadata();
        let told = told.with_origin(metadata.target());
        let (time, owner) = ((self.time)(), &self.owner);
        match self.format {
            Format::Human => line.write_str(&human((&time, owner), *metadata.level(), &told, self.coloured))?,
            Format::Json => line.write_str(&json((&time, owner), *metadata.level(), told)?)?,
            Format::Journald => return line.write_str(&journal_entry(owner, *metadata.level(), &told)),
        }
        line.write_char('\n')
    }
}

/// The message and fields of an event.
#[derive(Default)]
struct Told {
    message: String,
    /// In the order in which they were given.
    fields: Vec<(&'static str, Value)>,
}

impl Told {
    /// Lines of other crates name them.
    fn with_origin(mut self, target: &str) -> Self {
        if !target.starts_with(OURS) {
            self.fields.push(("target", target.into()));
        }
        self
    }

    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.push((field.name(), value.into()));
    }
}

impl Visit for Told {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let value = bounded(value);
        if field.name() == "message" {
            self.message = value.into_owned();
        } else {
            self.put(field, value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// A part of a line: what a stranger wrote into a znode could fill a disk.
fn bounded(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 2048;
    match words::cut(text, LONGEST) {
        Cow::Owned(cut) => format!("{cut} ({} bytes)", text.len()).into(),
        Cow::Borrowed(whole) => whole.into(),
    }
}

fn human((time, owner): (&str, &Owner), level: Level, told: &Told, coloured: bool) -> String {
    let paint = |code: &str, text: &str| if coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() };
    let Owner { election, id } = owner;
    let mut line = paint("2", &printable(&format!("{time} zk-leader-run[{election} {id}]:")));
    match level {
        Level::ERROR => line.push_str(&paint("1;31", " error:")),
        Level::WARN => line.push_str(&paint("33", " warning:")),
        _ => {}
    }
    line.push(' ');
    line.push_str(&sentence(told, paint));
    line
}

/// The message, and the fields that it does not contain.
fn sentence(told: &Told, paint: impl Fn(&str, &str) -> String) -> String {
    let mut sentence = printable(&told.message);
    for (name, value) in told.fields.iter().filter(|(name, _)| !SAID.contains(name)) {
        let (name, value) = with_unit(name, value);
        sentence.push_str(&paint("2", &format!(" {name}=")));
        sentence.push_str(&value);
    }
    sentence
}

/// Programs read the unit in the name (`lease_left_ms=9025`), people in the value (`lease_left=9.025s`).
fn with_unit<'a>(name: &'a str, value: &Value) -> (&'a str, String) {
    match (name.strip_suffix("_ms"), value.as_u64()) {
        (Some(name), Some(millis)) => (name, words::length(Duration::from_millis(millis))),
        _ => (name, field(value)),
    }
}

/// The priorities of `syslog(3)`.
fn journal_entry(owner: &Owner, level: Level, told: &Told) -> String {
    let priority = match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    };
    let owner = [("election", printable(&owner.election)), ("id", printable(&owner.id))];
    let owner = owner.into_iter().filter(|(name, _)| told.fields.iter().all(|(field, _)| field != name));
    let fields =
        told.fields.iter().map(|(name, value)| (*name, value.as_str().map_or_else(|| value.to_string(), printable)));
    journald::entry(priority, &sentence(told, |_, text| text.to_owned()), owner.chain(fields))
}

fn field(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() || text.contains([' ', '"', '=']) => {
            format!("\"{}\"", printable(&text.replace('"', "\\\"")))
        }
        Value::String(text) => printable(text),
        other => other.to_string(),
    }
}

fn json((time, owner): (&str, &Owner), level: Level, told: Told) -> Result<String, fmt::Error> {
    let level = level.as_str().to_ascii_lowercase();
    let head = [("time", Value::from(time)), ("level", level.into()), ("message", Value::String(told.message))];
    let owner = [("election", owner.election.as_str()), ("id", owner.id.as_str())];
    let owner = owner.into_iter().filter(|(name, _)| told.fields.iter().all(|(field, _)| field != name));
    let owner: Vec<_> = owner.map(|(name, value)| (name, Value::from(value))).collect();
    let mut line = Vec::new();
    serde_json::Serializer::new(&mut line)
        .collect_map(head.into_iter().chain(owner).chain(told.fields))
        .map_err(|_| fmt::Error)?;
    Ok(printable_json(std::str::from_utf8(&line).map_err(|_| fmt::Error)?))
}
