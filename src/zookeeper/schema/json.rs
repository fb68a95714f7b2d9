//! The JSON of a znode: an object with the version of its format in the field `v`.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of every format.
pub(crate) const VERSION: u32 = 1;

/// In bytes; about three times the longest that is written, a run marker with long ids. A server takes a megabyte, and a
/// list of short entries fills fifty times as much memory.
const LONGEST: usize = 256 * 1024;

/// Of a text for people, in characters: an operator types a thousand bytes at most.
const LONGEST_TEXT: usize = 2048;

/// Of a complaint, which repeats what a stranger may have written.
const LONGEST_COMPLAINT: usize = 200;

/// Why the content of a znode cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("{0}")]
    Json(String),
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    #[error("its format is version {0}")]
    Version(u32),
    #[error("it is held with a lease of 0 ms")]
    NoLease,
    #[error("its command may live on promises, and it does not say for how long")]
    NoLimit,
    #[error("it has an order without an id")]
    OrderWithoutId,
}

/// As much of a text for people as we keep and show: a stranger may have written it.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

/// Reads the JSON of a format whose version is `version`.
///
/// # Errors
///
/// It is too long, not of this shape, or of another version.
pub(crate) fn read<T: DeserializeOwned>(data: &[u8], version: impl FnOnce(&T) -> u32) -> Result<T, SchemaError> {
    if data.len() > LONGEST {
        return Err(SchemaError::TooLong);
    }
    let read = serde_json::from_slice(data).map_err(|error| SchemaError::Json(complaint(&error)))?;
    match version(&read) {
        VERSION => Ok(read),
        other => Err(SchemaError::Version(other)),
    }
}

fn complaint(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    match whole.char_indices().nth(LONGEST_COMPLAINT) {
        Some((end, _)) => format!("{}...", whole.get(..end).unwrap_or_default()),
        None => whole,
    }
}

/// Plain structs of numbers and strings always serialize.
pub(crate) fn written(json: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(json).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::zookeeper::schema::history::History;
    use crate::zookeeper::schema::lease::Lease;

    /// What a server takes by default (`jute.maxbuffer`) becomes fifty times as much memory, where each entry of a list
    /// is short.
    #[test]
    fn what_is_longer_than_anything_that_we_write_is_not_read() {
        let many = |count| format!(r#"{{"v":1,"terms":[{}{{}}]}}"#, "{},".repeat(count));
        assert!(History::read(many(100).as_bytes()).is_ok());
        let complaint = History::read(many(340_000).as_bytes()).err().map(|error| error.to_string());
        assert_eq!(complaint.as_deref(), Some("it is longer than 262144 bytes"));
    }

    #[test]
    fn a_complaint_repeats_little_of_a_long_text() {
        let word = "x".repeat(100_000);
        let complaint = Lease::read(format!(r#"{{"v":1,"state":"{word}"}}"#).as_bytes()).unwrap_err().to_string();
        assert!(complaint.starts_with("unknown variant `xxx") && complaint.len() < 300, "{} bytes", complaint.len());
    }
}
