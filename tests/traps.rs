//! `docs/verification` says which test holds which promise, which claim about security, and which trap: each row names a
//! test, and what it names exists.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::fs;
use std::path::Path;

const TRAPS: usize = 54;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs/verification").join(name)).unwrap()
}

/// The cells of each row of the table below this heading, without the row of titles.
fn table<'a>(page: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let section = page.split(&format!("\n## {heading}\n")).nth(1).expect("there is such a heading");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
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
        sources(&root().join(directory), &mut text);
    }
    names(page).filter(|name| !text.contains(&format!("fn {name}("))).collect()
}

#[test]
fn every_test_that_the_page_of_traps_names_exists() {
    let page = page("traps.md");
    let missing = missing(&page);
    assert!(missing.is_empty(), "no such test: {missing:#?}");
}

#[test]
fn every_rule_of_the_promise_has_a_test_and_its_planted_mistakes_exist() {
    let page = page("README.md");
    let rows = table(&page, "The promise");
    assert!(rows.len() > 25, "{rows:#?}");
    let cited: Vec<_> = rows.iter().map(|row| row[2]).collect();
    assert_eq!(missing(&cited.join(" ")), [""; 0], "no such test");
    for row in rows {
        let [rule, _, tests, mistakes] = row[..] else { panic!("{row:?}") };
        let beyond = ["sim", "transcripts", "transition table", "tests/"];
        let is_held = names(tests).next().is_some() || beyond.iter().any(|word| tests.contains(word));
        assert!(is_held, "a rule without a test: {rule}");
        let void = |name: &&str| !root().join("tests/mutations").join(format!("{name}.patch")).exists();
        let planted = mistakes.split(", ").filter(|name| *name != "tests/chaos/controls");
        assert_eq!(planted.filter(void).collect::<Vec<_>>(), [""; 0], "no such planted mistake: {rule}");
    }
}

#[test]
fn every_claim_about_security_has_a_test_that_exists() {
    let page = page("README.md");
    let rows = table(&page, "Security");
    assert!(rows.len() > 25, "{rows:#?}");
    let cited: Vec<_> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(missing(&cited.join(" ")), [""; 0], "no such test");
    for row in rows {
        let [claim, tests] = row[..] else { panic!("{row:?}") };
        assert!(names(tests).next().is_some(), "a claim without a test: {claim}");
    }
}

#[test]
fn every_trap_has_a_test_or_a_reason() {
    let page = page("traps.md");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| T")).collect();
    assert_eq!(rows.len(), TRAPS);
    for (row, number) in rows.iter().zip(1..) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert!(cells.len() == 5 && cells[1] == format!("T{number}"), "{row}");
        let has_reason = ["Not yet: ", "Cannot occur: "].iter().any(|reason| cells[3].starts_with(reason));
        assert!(has_reason || names(cells[3]).next().is_some(), "{row}");
    }
}
