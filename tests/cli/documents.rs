//! What the documents say, where it can be compared with what is there: links, alerts, and the table of timeouts. Their
//! commands are run by `tests/operations/documents.rs`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::{golden, run};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every document, at any depth.
fn documents() -> Vec<PathBuf> {
    let mut found: Vec<_> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)).into();
    found.extend(files("md"));
    found
}

/// Every file of documents with this ending, at any depth.
fn files(ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = ["docs", "examples", "packaging", "benches", "tests"].map(|name| root().join(name)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.extension() {
                None if entry.is_dir() => folders.push(entry),
                Some(extension) if extension == ending => found.push(entry),
                _ => {}
            }
        }
    }
    found
}

/// The name by which a heading is linked to: as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
    heading.trim().to_lowercase().chars().filter(kept).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

fn headings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().filter_map(move |line| {
        is_code ^= line.trim_start().starts_with("```");
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        (!is_code && level > 0).then(|| (level, line.trim_start_matches('#').trim()))
    })
}

/// What stands in `](…)`, outside of this project excepted.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains("://"))
}

#[test]
fn every_link_leads_to_something() {
    let mut dead = Vec::new();
    for document in documents() {
        let text = read(&document);
        for link in links(&text) {
            let (path, wanted) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { document.clone() } else { document.parent().unwrap().join(path) };
            let has_anchor = || headings(&read(&target)).any(|(_, heading)| anchor(heading) == wanted);
            if !target.exists() || !(wanted.is_empty() || has_anchor()) {
                dead.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert_eq!(dead, [""; 0]);
}

#[test]
fn every_picture_has_a_title_and_colours_for_a_dark_page() {
    let pictures = files("svg");
    assert!(pictures.len() >= 5, "{pictures:?}");
    for picture in pictures {
        let text = read(&picture);
        let wanted = ["<title>", "prefers-color-scheme:dark"];
        assert!(wanted.iter().all(|part| text.contains(part)), "{}: {wanted:?}", picture.display());
    }
}

#[test]
fn every_alert_says_in_the_documents_what_to_do() {
    let rules = read(&root().join("packaging/prometheus/zk-leader-run.rules.yml"));
    let alerts: BTreeSet<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let page = read(&root().join("docs/operations.md"));
    let mut explained = headings(&page).skip_while(|heading| *heading != (2, "Alerts")).skip(1);
    let explained: BTreeSet<_> =
        explained.by_ref().take_while(|(level, _)| *level == 3).map(|(_, name)| name).collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    assert_eq!(alerts, explained);
}

/// What the program says in the row of that name.
fn said<'a>(page: &'a str, row: &str) -> &'a str {
    let line = page.lines().find_map(|line| line.trim().strip_prefix(row));
    line.unwrap_or_else(|| panic!("no {row:?} in {page}")).trim()
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap()
}

fn table_of_timeouts() -> String {
    let mut table = "| T | renewed every | longest tolerated outage | SIGTERM at | SIGKILL at | successor after a crash of the host |\n\
                     |---|---|---|---|---|---|\n"
        .to_owned();
    for timeout in ["4s", "6s", "10s", "15s", "20s", "30s", "40s"] {
        let output = run(&["--session-timeout", timeout, "--dry-run", "true"], &[]);
        let page = String::from_utf8(output.stdout).unwrap();
        let tolerated = said(&page, "longest tolerated outage");
        let crash = said(&page, "after a host's crash");
        assert!(crash.contains(&format!("the session timeout ({timeout}) and two server ticks")), "{crash}");
        let cells = [
            timeout,
            first_word(said(&page, "renewal interval")),
            tolerated,
            first_word(said(&page, "stop signal")),
            first_word(said(&page, "SIGKILL to the tree")),
            &format!("at most {timeout} and two server ticks"),
        ];
        writeln!(table, "| {} |", cells.join(" | ")).unwrap();
    }
    table
}

#[test]
fn the_table_of_timeouts_is_what_the_program_says() {
    const BEGIN: &str = "<!-- computed: `UPDATE=1 cargo test --test cli documents` -->\n";
    const END: &str = "<!-- end -->";
    let page = read(&root().join("docs/operations.md"));
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    golden("docs/operations.md", &format!("{before}{BEGIN}{}{END}{after}", table_of_timeouts()));
}
