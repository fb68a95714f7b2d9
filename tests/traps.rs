//! `docs/traps.md` has a row for each trap, and names only tests that exist.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::fs;
use std::path::Path;

const TRAPS: usize = 54;

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/traps.md")).unwrap()
}

/// The text of every file below `directory` with this ending.
fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

/// What stands between backticks and is written like a test's name.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |word: &&str| {
        word.contains('_')
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit())
    };
    text.split('`').skip(1).step_by(2).filter(is_name)
}

#[test]
fn every_test_that_the_page_of_traps_names_exists() {
    let mut text = String::new();
    for directory in ["src", "tests"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory), &mut text);
    }
    let page = page();
    let missing: Vec<_> = names(&page).filter(|name| !text.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "no such test: {missing:#?}");
}

#[test]
fn every_trap_has_a_test_or_a_reason() {
    let page = page();
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| T")).collect();
    assert_eq!(rows.len(), TRAPS);
    for (row, number) in rows.iter().zip(1..) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert!(cells.len() == 5 && cells[1] == format!("T{number}"), "{row}");
        let has_reason = ["Not yet: ", "Cannot occur: "].iter().any(|reason| cells[3].starts_with(reason));
        assert!(has_reason || names(cells[3]).next().is_some(), "{row}");
    }
}
