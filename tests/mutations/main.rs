//! Every planted mistake can still be planted: what the code around it has become has not made its patch void, and the test
//! that it names is where it says.
//! That each turns its test red is the business of `make mutants` and `make chaos-controls`, which take longer.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|extension| extension == ending)
}

/// The modules of a test target and the text of each: `interop::matrix`, and nothing for its root.
fn modules(folder: &Path, parent: &str, found: &mut Vec<(String, String)>) {
    for path in files_in(folder) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let module = match name {
            "main" | "lib" | "mod" => parent.to_owned(),
            _ if parent.is_empty() => name.to_owned(),
            _ => format!("{parent}::{name}"),
        };
        if path.is_dir() {
            modules(&path, &module, found);
        } else if has_ending(&path, "rs") {
            found.push((module, fs::read_to_string(path).unwrap()));
        }
    }
}

/// As `tests/mutations/run.sh` looks for it: the end of a test's full name.
fn is_a_test(target: &str, name: &str) -> bool {
    let mut found = Vec::new();
    let file = root().join("tests").join(target).with_extension("rs");
    let folder = if target == "lib" { root().join("src") } else { root().join("tests").join(target) };
    if file.exists() {
        found.push((String::new(), fs::read_to_string(file).unwrap()));
    } else if folder.is_dir() {
        modules(&folder, "", &mut found);
    }
    let (wanted, test) = name.rsplit_once("::").unwrap_or(("", name));
    let wanted = wanted.strip_suffix("::tests").or((wanted != "tests").then_some(wanted)).unwrap_or_default();
    found.iter().any(|(module, text)| {
        // Tests may have a file of their own.
        let module = module.strip_suffix("::tests").unwrap_or(module);
        let is_there = module == wanted || wanted.is_empty() || module.ends_with(&format!("::{wanted}"));
        is_there && (text.contains(&format!("fn {test}(")) || text.contains(&format!("\"{test}\"")))
    })
}

#[test]
fn every_patch_names_tests_that_there_are() {
    let mut void = Vec::new();
    for patch in files_in(&root().join("tests/mutations")).iter().filter(|path| has_ending(path, "patch")) {
        let text = fs::read_to_string(patch).unwrap();
        for line in text.lines().filter_map(|line| line.strip_prefix("# expects red: ")) {
            let (target, name) = line.split_once(' ').unwrap();
            if !is_a_test(target, name) {
                void.push(format!("{}: {line}", patch.display()));
            }
        }
    }
    assert!(void.is_empty(), "no such test: {void:#?}");
}

#[test]
fn every_patch_applies_and_names_its_test() {
    let root = root();
    let mut void = Vec::new();
    for folder in ["tests/mutations", "tests/chaos/controls"] {
        for patch in files_in(&root.join(folder)).into_iter().filter(|path| has_ending(path, "patch")) {
            let applies =
                Command::new("git").args(["apply", "--check"]).arg(&patch).current_dir(root).output().unwrap();
            let is_judged =
                folder.ends_with("controls") || fs::read_to_string(&patch).unwrap().contains("# expects red: ");
            if !applies.status.success() || !is_judged {
                void.push((patch, String::from_utf8_lossy(&applies.stderr).into_owned()));
            }
        }
    }
    assert!(void.is_empty(), "{void:#?}");
}

/// So many tests are named without the text that tells why they turn red. This number only shrinks.
const WITHOUT_A_REASON: usize = 76;
const FEWEST_PATCHES: usize = 120;

#[test]
fn every_named_test_says_why_it_turns_red() {
    let (mut named, mut without) = (0, Vec::new());
    let patches = files_in(&root().join("tests/mutations"));
    for patch in patches.iter().filter(|path| has_ending(path, "patch")) {
        let text = fs::read_to_string(patch).unwrap();
        let lines: Vec<&str> = text.lines().take_while(|line| line.starts_with("# ")).collect();
        let is_named = |line: &str| line.starts_with("# expects red: ");
        named += usize::from(lines.iter().any(|line| is_named(line)));
        let says_why = |next: Option<&&str>| next.is_some_and(|next| next.starts_with("# because: "));
        for (index, line) in lines.iter().enumerate() {
            if is_named(line) && !says_why(lines.get(index + 1)) {
                without.push(format!("{}: {line}", patch.display()));
            }
        }
    }
    assert!(named >= FEWEST_PATCHES, "only {named} patches were read");
    assert!(without.len() <= WITHOUT_A_REASON, "{without:#?}");
}
