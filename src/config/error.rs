//! One sentence for bad input: the value, the error, and the remedy. It is one line without control characters.

use std::fmt::Display;

use crate::exit::Status;
use crate::observe::words::cut;
pub use crate::observe::words::printable;

/// Why the program does not start.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{sentence}")]
pub struct ConfigError {
    pub status: Status,
    /// Without the name of the program.
    pub sentence: String,
}

impl ConfigError {
    /// The command line cannot be parsed, or contradicts itself.
    pub fn usage(subject: impl Display, complaint: impl Display) -> Self {
        Self::new(Status::Usage, subject, complaint)
    }

    /// Every value is valid, but together they cannot work.
    pub fn configuration(subject: impl Display, complaint: impl Display) -> Self {
        Self::new(Status::Configuration, subject, complaint)
    }

    pub fn new(status: Status, subject: impl Display, complaint: impl Display) -> Self {
        Self { status, sentence: format!("{subject}: {complaint}") }
    }
}

/// The error in a value, as the end of a sentence that begins with the value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(String);

impl From<String> for ValueError {
    fn from(complaint: String) -> Self {
        Self(complaint)
    }
}

impl From<&str> for ValueError {
    fn from(complaint: &str) -> Self {
        Self(complaint.to_owned())
    }
}

/// The input on one line, at a readable length.
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 200;
    format!("'{}'", cut(&printable(text), LONGEST))
}

/// The known word that was probably meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const SIMILAR: f64 = 0.75;
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&word, &known.to_lowercase()), known))
        .filter(|(similarity, _)| *similarity > SIMILAR)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, known)| known)
}

/// The known word that differs from this one in one or two letters.
pub fn misspelt<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = if word.len() < 6 { 1 } else { 2 };
    let distances = known.into_iter().map(|known| (strsim::osa_distance(word, known), known));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// `; did you mean X?`, or nothing.
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |known| format!("; did you mean {known}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_shown_on_one_line_at_a_readable_length() {
        assert_eq!(quoted("a\nb\x1b[2J"), r"'a\nb\u{1b}[2J'");
        assert_eq!(quoted(&"é".repeat(1000)), format!("'{}...'", "é".repeat(200)));
    }

    #[test]
    fn only_a_similar_word_is_suggested() {
        assert_eq!(nearest("sequental", ["single", "sequential"]), Some("sequential"));
        assert_eq!(nearest("zebra", ["single", "sequential"]), None);
    }
}
