//! What the supervisor's machine does, in words: transcripts of incidents and the whole transition table, both kept in
//! `src/core/testdata` and rewritten with `UPDATE=1`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

mod harness;
mod parse;
mod render;
mod transcripts;
mod transition_table;

use std::path::{Path, PathBuf};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core/testdata")
}

/// Compares with the file, or rewrites it.
fn agrees_with_file(path: &Path, actual: &str) {
    let difference = difference(path, actual);
    assert!(difference.is_none(), "{}", difference.unwrap_or_default());
}

/// With `UPDATE` the file is written anew.
fn difference(path: &Path, actual: &str) -> Option<String> {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, actual).unwrap();
        return None;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    let differing = expected.lines().zip(actual.lines()).position(|(old, new)| old != new);
    let line = differing.unwrap_or_else(|| expected.lines().count().min(actual.lines().count()));
    (expected != actual).then(|| {
        format!(
            "{}:{}: the machine does something else (UPDATE=1 accepts it):\n  file:    {}\n  machine: {}",
            path.display(),
            line + 1,
            expected.lines().nth(line).unwrap_or("(end)"),
            actual.lines().nth(line).unwrap_or("(end)"),
        )
    })
}
