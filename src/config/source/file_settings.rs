//! Parses a TOML file: the text of each setting with its line, or one sentence on the first mistake. A file with a
//! mistake is refused as a whole. The meaning of a value does not depend on its origin.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::Arc;

use clap::{Arg, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::cli::reference;
use crate::config::error::{ConfigError, nearest, printable, quoted};

/// Settings of one election: `[election.<name>]`.
const ELECTIONS: &str = "election";

/// A key for one option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// The option's long name.
    pub name: String,
    pub kind: Kind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// Text or a whole number, with the value's name in the help.
    Value(String),
    /// Asked on the command line; not a setting.
    Question,
}

/// The keys of a configuration file.
pub fn keys(grammar: &Command) -> Vec<Key> {
    let options = grammar.get_arguments().filter(|argument| argument.get_long().is_some());
    let key = |argument: &Arg| {
        let kind = match argument.get_value_names() {
            _ if !reference::is_setting(argument) => Kind::Question,
            Some([name, ..]) if argument.get_action().takes_values() => Kind::Value(name.to_string()),
            _ => Kind::Flag,
        };
        Key { name: argument.get_long().unwrap_or_default().to_owned(), kind }
    };
    options.map(key).collect()
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    pub file: Arc<str>,
    /// From 1.
    pub line: usize,
}

impl Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One setting, as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileValue {
    pub text: String,
    pub place: Location,
}

type Section = BTreeMap<String, FileValue>;

/// The settings of one file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileSettings {
    general: Section,
    elections: BTreeMap<String, Section>,
}

impl FileSettings {
    /// Parses the text of the file named `file`.
    ///
    /// # Errors
    ///
    /// It is not TOML, or contains a key that is not a setting.
    pub fn read(file: &str, text: &str, keys: &[Key]) -> Result<Self, ConfigError> {
        let source = Source { file: file.into(), text, keys };
        let table = DeTable::parse(text).map_err(|error| source.not_toml(&error))?;
        let mut settings = Self::default();
        for (key, value) in table.get_ref() {
            if key.get_ref() == ELECTIONS {
                settings.elections = source.elections(key, value)?;
            } else {
                let setting = source.setting(key, value)?;
                settings.general.insert(key.get_ref().to_string(), setting);
            }
        }
        Ok(settings)
    }

    /// The value for all elections.
    pub fn general(&self, option: &str) -> Option<&FileValue> {
        self.general.get(option)
    }

    /// The settings for this election: its own section wins over the general ones.
    #[must_use]
    pub fn of_election(mut self, name: &str) -> Self {
        self.general.extend(self.elections.remove(name).unwrap_or_default());
        Self { general: self.general, elections: BTreeMap::new() }
    }
}

/// A file while it is read.
struct Source<'a> {
    file: Arc<str>,
    text: &'a str,
    keys: &'a [Key],
}

type KeyOf<'a> = Spanned<std::borrow::Cow<'a, str>>;

impl Source<'_> {
    fn elections(&self, key: &KeyOf, value: &Spanned<DeValue>) -> Result<BTreeMap<String, Section>, ConfigError> {
        let DeValue::Table(sections) = value.get_ref() else {
            return Err(self.refused(key, "is not a setting; write the settings of one election below [election.NAME]"));
        };
        sections.iter().map(|(name, section)| Ok((name.get_ref().to_string(), self.election(name, section)?))).collect()
    }

    fn election(&self, name: &KeyOf, section: &Spanned<DeValue>) -> Result<Section, ConfigError> {
        let DeValue::Table(section) = section.get_ref() else {
            let remedy = format!(
                "is not a setting of all elections; write [election.NAME], and {} below it",
                printable(name.get_ref())
            );
            return Err(self.refused(name, remedy));
        };
        let settings = section.iter().map(|(key, value)| {
            if key.get_ref() == "name" {
                return Err(self.refused(key, "cannot be set for one election, which has a name already"));
            }
            Ok((key.get_ref().to_string(), self.setting(key, value)?))
        });
        settings.collect()
    }

    fn setting(&self, key: &KeyOf, value: &Spanned<DeValue>) -> Result<FileValue, ConfigError> {
        let name = key.get_ref();
        let kind = &self.keys.iter().find(|known| known.name == **name).ok_or_else(|| self.unknown(key, value))?.kind;
        let text = match (kind, value.get_ref()) {
            (Kind::Question, _) => {
                return Err(self.refused(key, format_args!("is not a setting; write --{name} on the command line")));
            }
            (Kind::Flag, DeValue::Boolean(flag)) => flag.to_string(),
            (Kind::Flag, other) => {
                let remedy = format!("is {}; write {name} = true or {name} = false", kind_of(other));
                return Err(self.refused(key, remedy));
            }
            (Kind::Value(_), DeValue::String(text)) => text.to_string(),
            (Kind::Value(_), DeValue::Integer(number)) if number.radix() == 10 => number.as_str().to_owned(),
            (Kind::Value(called), other) => {
                let remedy = format!("is {}; write {name} = \"{called}\", with the quotes", kind_of(other));
                return Err(self.refused(key, remedy));
            }
        };
        Ok(FileValue { text, place: self.place(key.span().start) })
    }

    fn unknown(&self, key: &KeyOf, value: &Spanned<DeValue>) -> ConfigError {
        let name = key.get_ref();
        // Options are written with dashes everywhere else.
        let known = self.keys.iter().filter(|key| key.kind != Kind::Question).map(|key| key.name.as_str());
        let is_table = matches!(value.get_ref(), DeValue::Table(_));
        let remedy = match nearest(&name.replace('_', "-"), known.chain(is_table.then_some(ELECTIONS))) {
            Some(ELECTIONS) => format!("did you mean [{ELECTIONS}.NAME]?"),
            Some(meant) => format!("did you mean {meant}?"),
            None if is_table => format!("the settings of one election stand below [{ELECTIONS}.NAME]"),
            None => "zk-leader-run --help lists all options, and each is a key".to_owned(),
        };
        let place = self.place(key.span().start);
        ConfigError::configuration(place, format_args!("{} is not a key; {remedy}", quoted(name)))
    }

    fn refused(&self, key: &KeyOf, complaint: impl Display) -> ConfigError {
        let place = self.place(key.span().start);
        ConfigError::configuration(place, format_args!("{} {complaint}", quoted(key.get_ref())))
    }

    /// The parser's own message may have several lines.
    fn not_toml(&self, error: &toml::de::Error) -> ConfigError {
        let at = error.span().map_or(self.text.len(), |span| span.start);
        let what = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        let hint = if self.lacks_quotes(at) { "; text stands in quotes, as in session-timeout = \"15s\"" } else { "" };
        ConfigError::configuration(self.place(at), format_args!("this is not TOML: {what}{hint}"))
    }

    /// The commonest mistake: `session-timeout = 15s`.
    fn lacks_quotes(&self, at: usize) -> bool {
        let line = self.text.lines().nth(self.place(at).line.saturating_sub(1)).unwrap_or_default();
        let value = line.split_once('=').map(|(_, value)| value.trim_start());
        value.is_some_and(|value| !value.is_empty() && !value.starts_with(['"', '\'', '[', '{']))
    }

    fn place(&self, at: usize) -> Location {
        let before = self.text.as_bytes().get(..at).unwrap_or(self.text.as_bytes());
        // An error at the end of the file is on the last line that is not blank.
        let before = if at >= self.text.len() { before.trim_ascii_end() } else { before };
        let line = before.split(|byte| *byte == b'\n').count();
        Location { file: Arc::clone(&self.file), line }
    }
}

/// The kind of the value that was found.
fn kind_of(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => format!("the text {}", quoted(text)),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => format!("the truth value {flag}"),
        DeValue::Datetime(_) => "a date or a time".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::exit::Status;

    fn keys() -> Vec<Key> {
        let value = |name: &str, called: &str| Key { name: name.into(), kind: Kind::Value(called.into()) };
        vec![
            value("connect", "HOSTS"),
            value("name", "NAME"),
            value("election-path", "PATH"),
            value("session-timeout", "DURATION"),
            value("conflict-exit-code", "STATUS"),
            Key { name: "foreground".into(), kind: Kind::Flag },
            Key { name: "dry-run".into(), kind: Kind::Question },
        ]
    }

    fn read(text: &str) -> Result<FileSettings, ConfigError> {
        FileSettings::read("/etc/x.toml", text, &keys())
    }

    fn refused(text: &str) -> String {
        let error = read(text).expect_err(text);
        assert_eq!(error.status, Status::Configuration);
        error.sentence
    }

    #[test]
    fn each_setting_is_read_as_text_with_its_line() {
        let settings =
            read("# comment\nconnect = \"h1,h2\"\n\nforeground = true\nconflict-exit-code = 3\nname = 'é'\n").unwrap();
        let said = |option| settings.general(option).map(|setting| (setting.text.as_str(), setting.place.line));
        assert_eq!(said("connect"), Some(("h1,h2", 2)));
        assert_eq!(said("foreground"), Some(("true", 4)));
        assert_eq!(said("conflict-exit-code"), Some(("3", 5)));
        assert_eq!(said("name"), Some(("é", 6)));
        assert_eq!(said("session-timeout"), None);
        assert_eq!(read("").unwrap(), FileSettings::default());
    }

    #[test]
    fn the_section_of_an_election_wins_over_what_holds_for_all() {
        let text = "connect = \"all\"\nname = \"n\"\n[election.nightly]\nconnect = \"own\"\n[election.\"a b\"]\nforeground = true\n";
        let connect = |election| {
            let settings = read(text).unwrap().of_election(election);
            settings.general("connect").map(|setting| (setting.text.clone(), setting.place.line))
        };
        assert_eq!(connect("nightly"), Some(("own".to_owned(), 4)));
        assert_eq!(connect("other"), Some(("all".to_owned(), 1)));
        assert!(read(text).unwrap().of_election("a b").general("foreground").is_some());
        assert!(read(text).unwrap().of_election("nightly").general("name").is_some());
    }

    #[test]
    fn what_is_no_setting_is_refused_with_its_line_and_the_way_out() {
        let cases = [
            ("\nsesion-timeout = \"5s\"", "2: 'sesion-timeout' is not a key; did you mean session-timeout?"),
            ("session_timeout = \"5s\"", "1: 'session_timeout' is not a key; did you mean session-timeout?"),
            ("zebra = 1", "1: 'zebra' is not a key; zk-leader-run --help lists all options, and each is a key"),
            ("[electoin.a]\nname = \"b\"", "1: 'electoin' is not a key; did you mean [election.NAME]?"),
            ("electoin = 1", "1: 'electoin' is not a key; did you mean election-path?"),
            ("[nightly]", "1: 'nightly' is not a key; the settings of one election stand below [election.NAME]"),
            (
                "foreground = \"yes\"",
                "1: 'foreground' is the text 'yes'; write foreground = true or foreground = false",
            ),
            ("foreground = 1", "1: 'foreground' is the number 1; write foreground = true or foreground = false"),
            ("connect = [\"h1\"]", "1: 'connect' is a list; write connect = \"HOSTS\", with the quotes"),
            ("name = true", "1: 'name' is the truth value true; write name = \"NAME\", with the quotes"),
            ("name = 1.5", "1: 'name' is the number 1.5; write name = \"NAME\", with the quotes"),
            ("[name]", "1: 'name' is a table; write name = \"NAME\", with the quotes"),
            ("name = 2026-11-20", "1: 'name' is a date or a time; write name = \"NAME\", with the quotes"),
            ("dry-run = true", "1: 'dry-run' is not a setting; write --dry-run on the command line"),
            (
                "election = 1",
                "1: 'election' is not a setting; write the settings of one election below [election.NAME]",
            ),
            (
                "[election]\nconnect = \"h\"",
                "2: 'connect' is not a setting of all elections; write [election.NAME], and connect below it",
            ),
            (
                "[election]\n\"a\\u001b[2J\" = 1",
                "2: 'a\\u{1b}[2J' is not a setting of all elections; write [election.NAME], and a\\u{1b}[2J below it",
            ),
            ("[election.a]\nname = \"b\"", "2: 'name' cannot be set for one election, which has a name already"),
            ("[election.a]\nconect = \"b\"", "2: 'conect' is not a key; did you mean connect?"),
        ];
        for (text, sentence) in cases {
            assert_eq!(refused(text), format!("/etc/x.toml:{sentence}"), "{text}");
        }
    }

    #[test]
    fn what_is_not_toml_is_refused_in_one_line_with_a_hint_where_quotes_are_missing() {
        let sentence = refused("connect = \"h\"\nsession-timeout = 15s\n");
        assert!(sentence.starts_with("/etc/x.toml:2: this is not TOML: "), "{sentence}");
        assert!(sentence.ends_with("; text stands in quotes, as in session-timeout = \"15s\""), "{sentence}");
        let sentence = refused("name = \"a\"\nname = \"b\"\n");
        assert!(sentence.starts_with("/etc/x.toml:2: this is not TOML: duplicate key"), "{sentence}");
        for text in ["connect", "= 1", "[election", "name = \"open", "\u{0}", "name = '''a\n\n\n"] {
            let sentence = refused(text);
            assert!(sentence.starts_with("/etc/x.toml:1: this is not TOML: "), "{sentence}");
            assert_eq!(sentence.lines().count(), 1, "{sentence}");
        }
    }

    proptest! {
        #[test]
        fn whatever_stands_in_the_file_is_read_or_refused_in_one_printable_line(
            lines in proptest::collection::vec(
                "(connect|name|foreground|election|[a-z]{1,5}|\\[election\\.[a-z ]{1,3}\\])? ?=? ?(\"|'|\\[|\\{|[0-9]|true|.){0,12}",
                0..6,
            ),
        ) {
            if let Err(error) = read(&lines.join("\n")) {
                prop_assert!(error.sentence.starts_with("/etc/x.toml:"), "{}", error.sentence);
                prop_assert!(!error.sentence.chars().any(char::is_control), "{}", error.sentence);
            }
        }
    }
}
