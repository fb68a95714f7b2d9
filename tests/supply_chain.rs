//! What goes into the binaries: `deny.toml` holds, the stated compiler is new enough for every crate, and the bill of
//! materials is complete. `make deny` lets cargo-deny judge the same file, and the advisories, which need a database.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Name and version.
type Crate = (String, String);

fn cargo(words: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO")).args(words).args(["--locked", "--offline"]).current_dir(ROOT).output().unwrap();
    assert!(output.status.success(), "cargo {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What the packages' binaries are built with, and what anybody may build them with.
const USUAL: &[&str] = &[];
const EVERY: &[&str] = &["--all-features"];

/// All that is linked in or builds, as cargo resolves features for the binaries.
fn needed(features: &[&str]) -> BTreeSet<Crate> {
    let words = ["tree", "--target", TARGET, "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let tree = cargo(&[&words, features].concat());
    let lines = tree.lines().filter(|line| !line.starts_with(env!("CARGO_PKG_NAME")));
    let crates = lines
        .filter_map(|line| line.split_once(" v"))
        .map(|(name, rest)| (name.to_owned(), rest.split(' ').next().unwrap().to_owned()));
    crates.collect()
}

/// What cargo says of them.
fn packages() -> BTreeMap<Crate, Value> {
    let told: Value = serde_json::from_str(&cargo(&[
        "metadata",
        "--all-features",
        "--format-version",
        "1",
        "--filter-platform",
        TARGET,
    ]))
    .unwrap();
    let needed = needed(EVERY);
    let packages = told["packages"].as_array().unwrap().iter().cloned();
    let packages = packages.map(|package| ((text(&package["name"]), text(&package["version"])), package));
    packages.filter(|(identity, _)| needed.contains(identity)).collect()
}

fn deny() -> Value {
    let program = "import json, sys, tomllib; json.dump(tomllib.load(sys.stdin.buffer), sys.stdout)";
    let file = std::fs::File::open(format!("{ROOT}/deny.toml")).unwrap();
    let output = Command::new("python3").args(["-c", program]).stdin(file).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Of a list of tables in `deny.toml`: what each is about, and why.
fn crates_of(list: &Value) -> BTreeMap<String, String> {
    list.as_array().unwrap().iter().map(|entry| (text(&entry["crate"]), text(&entry["reason"]))).collect()
}

/// An SPDX expression: OR binds less than AND.
fn is_granted(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let inner = |part: &str| part.strip_prefix('(').and_then(|part| part.strip_suffix(')')).map(str::to_owned);
    let split = |by: &str| top_level(expression, by);
    match (split(" OR "), split(" AND ")) {
        (Some((first, rest)), _) => is_granted(first, allowed) || is_granted(rest, allowed),
        (None, Some((first, rest))) => is_granted(first, allowed) && is_granted(rest, allowed),
        (None, None) => {
            inner(expression).map_or_else(|| allowed.contains(expression), |part| is_granted(&part, allowed))
        }
    }
}

/// Splits at the first operator outside of brackets.
fn top_level<'a>(expression: &'a str, operator: &str) -> Option<(&'a str, &'a str)> {
    let depth = |before: &str| before.matches('(').count() - before.matches(')').count();
    let (at, _) = expression.match_indices(operator).find(|(at, _)| depth(&expression[..*at]) == 0)?;
    Some((&expression[..at], &expression[at + operator.len()..]))
}

#[test]
fn an_expression_of_licences_is_read_as_spdx_means_it() {
    let allowed = BTreeSet::from(["MIT", "ISC"]);
    for granted in ["MIT", "GPL OR MIT", "(GPL OR MIT) AND ISC", "GPL AND BSD OR ISC", "ISC AND (GPL OR (BSD OR MIT))"]
    {
        assert!(is_granted(granted, &allowed), "{granted}");
    }
    for refused in ["GPL", "GPL AND MIT", "(GPL OR MIT) AND BSD", "GPL OR BSD AND MIT"] {
        assert!(!is_granted(refused, &allowed), "{refused}");
    }
}

#[test]
fn every_crate_has_a_licence_that_is_allowed() {
    let deny = deny();
    let allowed = deny["licenses"]["allow"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    for (identity, package) in packages() {
        let expression = text(&package["license"]).replace('/', " OR ");
        assert!(is_granted(&expression, &allowed), "{identity:?}: {expression} is not allowed by deny.toml");
    }
}

#[test]
fn every_crate_comes_from_the_registry_and_none_is_banned() {
    let banned = crates_of(&deny()["bans"]["deny"]);
    for ((name, _), package) in packages() {
        assert_eq!(package["source"], "registry+https://github.com/rust-lang/crates.io-index", "{name}");
        assert!(!banned.contains_key(&name), "{name} is banned: {}", banned[&name]);
    }
}

#[test]
fn of_no_crate_there_are_two_versions_without_a_reason() {
    let reasons = crates_of(&deny()["bans"]["skip"]);
    let mut versions = BTreeMap::<String, Vec<String>>::new();
    for (name, version) in needed(EVERY) {
        versions.entry(name).or_default().push(version);
    }
    for (name, versions) in &versions {
        let without = versions.iter().filter(|version| !reasons.contains_key(&format!("{name}@{version}"))).count();
        assert!(without <= 1, "{name} {versions:?}: say why in deny.toml, or get rid of one");
    }
    for excused in reasons.keys() {
        let (name, version) = excused.split_once('@').unwrap();
        let is_double = versions.get(name).is_some_and(|all| all.len() > 1 && all.iter().any(|one| one == version));
        assert!(is_double, "{excused} needs no excuse any more: take it out of deny.toml");
    }
}

/// `make msrv` compiles with it; this is what can be seen in no time.
#[test]
fn no_crate_needs_a_newer_compiler_than_is_stated() {
    let number = |version: &str| -> Vec<u32> { version.split('.').map(|part| part.parse().unwrap()).collect() };
    let stated = number(env!("CARGO_PKG_RUST_VERSION"));
    for (identity, package) in packages() {
        let Some(wanted) = package["rust_version"].as_str() else { continue };
        assert!(number(wanted)[..2] <= stated[..2], "{identity:?} needs Rust {wanted}");
    }
}

/// Clippy tells of library functions that are too new (`incompatible_msrv`), but not of this.
#[test]
fn no_condition_binds_and_asks_on_which_takes_rust_1_88() {
    let list = Command::new("git").args(["ls-files", "*.rs"]).current_dir(ROOT).output().unwrap();
    let files = String::from_utf8(list.stdout).unwrap();
    assert!(files.lines().count() > 100, "{files}");
    for file in files.lines() {
        let source = std::fs::read_to_string(format!("{ROOT}/{file}")).unwrap();
        for condition in conditions(&source) {
            assert!(!is_chain(condition), "{file}: Rust {} does not know {condition}", env!("CARGO_PKG_RUST_VERSION"));
        }
    }
}

/// What stands between `if` or `while` and the block, which is empty or whose brace ends a line.
fn conditions(source: &str) -> impl Iterator<Item = &str> {
    let starts = source.match_indices("if ").chain(source.match_indices("while "));
    starts.filter_map(|(at, word)| {
        let rest = &source[at + word.len()..];
        let block = [rest.find("{\n"), rest.find("{}")].into_iter().flatten().min()?;
        Some(&rest[..block])
    })
}

/// Whether a `let` stands beside an `&&` that is in no brackets.
fn is_chain(condition: &str) -> bool {
    let mut depth = 0_i32;
    let outside: String = condition
        .chars()
        .filter(|&char| {
            depth += i32::from("([".contains(char)) - i32::from(")]".contains(char));
            depth == 0
        })
        .collect();
    (outside.starts_with("let ") || outside.contains("&& let ")) && outside.contains("&&")
}

#[test]
fn a_chain_is_told_from_what_looks_like_one() {
    for chain in ["let Some(a) = b && c ", "a && let Some(b) = c ", "a\n            && let Ok(b) = c(d)\n        "] {
        assert!(is_chain(chain), "{chain}");
    }
    for none in ["a && b ", "let Some(a) = b.filter(|b| c && d) ", "let (None, Some(a)) = (b, c) "] {
        assert!(!is_chain(none), "{none}");
    }
}

#[test]
fn the_bill_of_materials_names_every_crate_once_with_its_licence_and_checksum() {
    let bill = || Command::new("python3").arg(format!("{ROOT}/packaging/sbom.py")).output().unwrap();
    let output = bill();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, bill().stdout, "the same sources, another bill");
    let bill: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));

    let components = bill["components"].as_array().unwrap();
    let named: Vec<Crate> = components.iter().map(|one| (text(&one["name"]), text(&one["version"]))).collect();
    assert_eq!(named, needed(USUAL).into_iter().collect::<Vec<_>>());
    for component in components {
        assert_eq!(text(&component["hashes"][0]["content"]).len(), 64, "{component}");
        assert!(!text(&component["licenses"][0]["expression"]).is_empty());
    }
    let linked = |name: &str| components.iter().any(|one| one["name"] == name && one["scope"] == "required");
    assert!(linked("tokio") && linked("zookeeper-client") && !linked("serde_derive") && !linked("cc"));

    let references: BTreeSet<_> = components.iter().map(|one| text(&one["bom-ref"])).collect();
    for entry in bill["dependencies"].as_array().unwrap() {
        for needed in entry["dependsOn"].as_array().unwrap() {
            assert!(references.contains(&text(needed)), "{entry}");
        }
    }
}
