//! `docs/verification/traps.md` has a row for each trap, `docs/security.md` one for each claim, and both name only tests that exist.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::fs;
use std::path::Path;

const TRAPS: usize = 54;

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/verification/traps.md")).unwrap()
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

/// Those that there are not.
fn missing(page: &str) -> Vec<&str> {
    let mut text = String::new();
    for directory in ["src", "tests"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory), &mut text);
    }
    names(page).filter(|name| !text.contains(&format!("fn {name}("))).collect()
}

#[test]
fn every_test_that_the_page_of_traps_names_exists() {
    let page = page();
    let missing = missing(&page);
    assert!(missing.is_empty(), "no such test: {missing:#?}");
}

#[test]
fn every_claim_about_security_has_a_test_that_exists() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/security.md")).unwrap();
    let table = page.split("## Claim and test").nth(1).expect("there is a table");
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 25, "{rows:#?}");
    for row in rows {
        let cells: Vec<_> = row.split(" | ").collect();
        assert!(cells.len() == 2 && names(cells[1]).next().is_some(), "a claim without a test: {row}");
    }
    let missing = missing(table);
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
