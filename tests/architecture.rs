//! The layers: who may use whom, read from `src/` itself. A module that is not in the table has no place yet.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module (the longest prefix counts), what of ours it may use besides itself, and which crates.
type Place = (&'static str, &'static [&'static str], &'static [&'static str]);

const PLACES: &[Place] = &[
    // L0: decisions only.
    ("core", &[], &["serde"]),
    // L1: the guard's decisions, and what it says.
    ("guard::protocol", &["core::guard_messages", "core::time"], &[]),
    ("guard::lease_file::layout", &["core::guard_messages", "core::time", "guard::protocol"], &[]),
    // G is that of the lease.
    ("guard::policy", &["core::guard_messages", "core::lease", "core::time", "guard::lease_file::layout"], &[]),
    ("guard::briefing", &["core::guard_messages", "core::time", "guard::protocol"], &[]),
    // L2: the two edges, the clock, and chance.
    ("clock", &["core::time"], &["nix"]),
    ("background", &[], &["tokio"]),
    ("random", &[], &["uuid"]),
    ("guard", &["core::guard_messages", "core::time", "core::settings", "clock"], &["nix", "libc", "rustix", "serde"]),
    (
        "guard::handle",
        &["core::guard_messages", "core::time", "core::settings", "guard"],
        &["nix", "libc", "rustix", "thiserror", "tokio", "serde"],
    ),
    ("guard::probe", &["guard"], &["nix", "tokio"]),
    ("zookeeper", ZOOKEEPER, &["tokio", "tracing", "futures_util", "serde"]),
    (
        "zookeeper::client",
        &["core", "clock", "background"],
        &[
            "zookeeper_client",
            "rustls",
            "rsasl",
            "linkme",
            "libgssapi",
            "humantime",
            "rustix",
            // Asks a descriptor for its addresses by its number.
            "nix",
            "serde",
            "tokio",
            "futures_util",
            "spawns_core",
            "thiserror",
            "tracing",
        ],
    ),
    (
        "zookeeper::schema",
        &["core", "zookeeper::client"],
        &["tracing", "serde", "serde_json", "thiserror", "uuid", "humantime"],
    ),
    (
        "zookeeper::election",
        &["core", "clock", "background", "random", "zookeeper::client", "zookeeper::schema"],
        &["tokio", "futures_util", "tracing", "serde", "serde_json", "uuid", "humantime"],
    ),
    (
        "zookeeper::publish",
        &["core", "clock", "zookeeper::client", "zookeeper::schema", "zookeeper::election"],
        // Whether the process of a member lives.
        &["rustix", "tokio", "futures_util", "tracing"],
    ),
    (
        "zookeeper::admin",
        &["core", "clock", "zookeeper::client", "zookeeper::schema"],
        &["tokio", "futures_util", "tracing", "serde", "serde_json", "thiserror"],
    ),
    (
        "vouching",
        &["core::event", "core::time", "core::vouching", "clock", "background", "zookeeper::schema::vouching"],
        &["tokio", "tracing", "futures_util", "serde", "hmac", "sha2", "nix"],
    ),
    // L3: the loop, and its observers.
    (
        "observe",
        &["core", "clock", "background", "guard", "zookeeper", "vouching"],
        &[
            "nix",
            "rustix",
            "libc",
            "tokio",
            "tracing",
            "tracing_subscriber",
            "humantime",
            "serde",
            "serde_json",
            "hyper",
            "hyper_util",
            "http_body_util",
            "prometheus_client",
        ],
    ),
    (
        "supervisor",
        &["core", "clock", "background", "guard", "zookeeper", "vouching", "observe"],
        &["nix", "libc", "tokio", "tracing", "futures_util", "signal_hook", "signal_hook_tokio", "serde"],
    ),
    (
        "supervisor::upgrade",
        &["core", "clock", "guard", "zookeeper", "vouching", "supervisor"],
        &["nix", "libc", "rustix", "tokio", "tracing", "futures_util", "serde", "serde_json"],
    ),
    // L4: what was typed, and what it means.
    ("cli", &["exit"], &["clap"]),
    ("config", BELOW_CONFIG, CRATES_OF_L4),
    (
        "config::value",
        &["core", "cli", "config::error", "config::source", "exit", "observe", "zookeeper"],
        CRATES_OF_L4,
    ),
    ("config::source", &["cli", "config::error", "exit"], CRATES_OF_L4),
    ("config::error", &["exit", "observe"], &["strsim", "thiserror"]),
    ("dry_run", &["core", "zookeeper", "observe", "config"], &[]),
    ("commands", ALL, CRATES_OF_L4),
    ("exit", ALL, CRATES_OF_L4),
    ("wiring", ALL, CRATES_OF_L4),
    ("after_upgrade", ALL, CRATES_OF_L4),
    ("bin", ALL, CRATES_OF_L4),
];

const ZOOKEEPER: &[&str] = &["core", "clock", "background", "random", "zookeeper"];

const ALL: &[&str] = &[
    "core",
    "clock",
    "background",
    "random",
    "guard",
    "zookeeper",
    "vouching",
    "observe",
    "supervisor",
    "cli",
    "commands",
    "config",
    "dry_run",
    "exit",
    "after_upgrade",
    "wiring",
];
const BELOW_CONFIG: &[&str] =
    &["core", "clock", "background", "guard", "zookeeper", "vouching", "observe", "supervisor", "cli", "exit"];
/// Everything but `zookeeper_client`, which `zookeeper` alone uses.
const CRATES_OF_L4: &[&str] = &[
    "clap",
    "nix",
    "libc",
    "rustix",
    "tokio",
    "tracing",
    "humantime",
    "serde",
    "serde_json",
    "strsim",
    "toml",
    "thiserror",
    "uuid",
];

/// Circles of modules that are still there. This list only shrinks.
const CIRCLES: &[&[&str]] = &[];

/// How many files one folder may hold, its subfolders aside.
const FILES_OF_A_ROOM: usize = 14;
/// Folders that hold more. This list only shrinks.
const LARGE_ROOMS: &[&str] = &[];

/// What of std a decision may not touch.
const IMPURE: &[&str] = &[
    "std::io",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "std::os",
    "std::sync",
    "Instant",
    "SystemTime",
];
const PURE: &[&str] = &["core", "guard::protocol", "guard::lease_file::layout", "guard::policy", "guard::briefing"];

const LONGEST_FILE: usize = 350;
/// Files that may be longer, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// One source file, without its tests.
struct Source {
    path: PathBuf,
    module: String,
    /// Without comments and the insides of strings.
    code: String,
    text: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    collect(&root, &root, &mut sources);
    assert!(sources.len() > 20, "src/ was not read");
    sources
}

fn collect(root: &Path, folder: &Path, sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, sources);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let inside = path.strip_prefix(root).unwrap().with_extension("");
            let names: Vec<_> =
                inside.iter().map(|name| name.to_str().unwrap()).filter(|name| *name != "mod").collect();
            // Tests come last in a file, or fill one of their own.
            if names.contains(&"tests") || names.contains(&"testing") {
                continue;
            }
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap().split("#[cfg(test)]\npub mod ").next().unwrap();
            sources.push(Source { path: path.clone(), module: names.join("::"), code: bare(code), text });
        }
    }
}

/// Code without comments, and with empty strings.
fn bare(code: &str) -> String {
    let mut bare = String::new();
    let mut rest = code;
    while let Some(letter) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if let Some(end) = raw_string(rest) {
            bare.push_str("\"\"");
            rest = &rest[end..];
        } else if letter == '"' {
            bare.push_str("\"\"");
            rest = &rest[string_length(rest)..];
        } else if let Some(length) = char_length(rest) {
            rest = &rest[rest.char_indices().nth(length).map_or(rest.len(), |(at, _)| at)..];
        } else {
            bare.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    bare
}

/// `'x'` and `'\\x'`, but no lifetime.
fn char_length(rest: &str) -> Option<usize> {
    let letters: Vec<char> = rest.chars().take(4).collect();
    match letters[..] {
        ['\'', '\\', _, '\''] => Some(4),
        ['\'', _, '\'', ..] => Some(3),
        _ => None,
    }
}

fn raw_string(rest: &str) -> Option<usize> {
    let hashes = rest.strip_prefix('r')?.chars().take_while(|letter| *letter == '#').count();
    let start = 1 + hashes;
    rest[start..].starts_with('"').then_some(())?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(start + 1 + rest[start + 1..].find(&end)? + end.len())
}

fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The places where a whole word stands.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = code[..*at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(is_of_word) && !after.is_some_and(is_of_word)
    })
}

/// Every path of ours that the code names, in full: `crate::…`, `super::…`, groups in braces unfolded.
fn uses(source: &Source) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (root, base) in [("crate", ""), ("zk_leader_run", "")] {
        for at in words(&source.code, root) {
            if let Some(rest) = source.code[at + root.len()..].strip_prefix("::") {
                unfold(base, rest, &mut found);
            }
        }
    }
    for at in words(&source.code, "super") {
        let before = &source.code[..at];
        // The first of a chain of supers.
        if before.ends_with("super::") || before.ends_with("(in ") || before.ends_with("pub(") {
            continue;
        }
        let mut base: Vec<&str> = source.module.split("::").collect();
        let mut rest = &source.code[at..];
        while let Some(after) = rest.strip_prefix("super::") {
            base.pop();
            rest = after;
        }
        unfold(&base.iter().flat_map(|name| [*name, "::"]).collect::<String>(), rest, &mut found);
    }
    found
}

/// `a::b` → `a::b`; `{a, b::{c}}` → `a`, `b::c`. Five names are enough to tell a module.
fn unfold(base: &str, rest: &str, found: &mut BTreeSet<String>) {
    if let Some(group) = rest.strip_prefix('{') {
        let mut depth = 0;
        let mut start = 0;
        for (at, letter) in group.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' => {
                    let part = group[start..at].trim();
                    if !part.is_empty() {
                        unfold(base, part, found);
                    }
                    start = at + 1;
                    if letter == '}' {
                        return;
                    }
                }
                _ => {}
            }
        }
        return;
    }
    let name: String = rest.chars().take_while(|letter| is_of_word(*letter)).collect();
    let path = format!("{base}{name}");
    match rest[name.len()..].strip_prefix("::") {
        Some(more) if path.matches("::").count() < 4 => unfold(&format!("{path}::"), more, found),
        _ => {
            found.insert(path);
        }
    }
}

fn is_within(path: &str, module: &str) -> bool {
    path == module || path.strip_prefix(module).is_some_and(|rest| rest.starts_with("::"))
}

fn place_of(module: &str) -> Place {
    let places = PLACES.iter().filter(|(prefix, ..)| is_within(module, prefix));
    *places
        .max_by_key(|(prefix, ..)| prefix.len())
        .unwrap_or_else(|| panic!("{module} has no place in the layers' table"))
}

#[test]
fn imports_point_down_only() {
    let modules: BTreeSet<_> = PLACES.iter().map(|(module, ..)| module.split("::").next().unwrap()).collect();
    for source in sources().iter().filter(|source| source.module != "lib") {
        let (own, allowed, _) = place_of(&source.module);
        for used in uses(source) {
            let known = used.split("::").next().is_some_and(|top| modules.contains(top));
            let allowed = allowed.iter().chain([&own]).any(|module| is_within(&used, module));
            // `use super::Thing` of the parent's own file: the guard's name for its parts.
            let parents = source.module.starts_with(used.rsplit_once("::").map_or("", |(parent, _)| parent));
            let item = used.rsplit("::").next().is_some_and(|name| name.starts_with(char::is_uppercase));
            assert!(!known || allowed || (parents && item), "{}: {own} may not use {used}", source.path.display());
        }
    }
}

/// Which modules each module uses. A child that uses what its own parent defines is no edge: a folder is one room.
fn graph(sources: &[Source]) -> BTreeMap<&str, BTreeSet<&str>> {
    let modules: BTreeSet<_> = sources.iter().map(|source| source.module.as_str()).collect();
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        let children = modules.iter().filter(|module| {
            module.strip_prefix(&source.module).and_then(|rest| rest.strip_prefix("::")).is_some_and(|child| {
                !child.contains("::")
                    && words(&source.code, child).any(|at| source.code[at + child.len()..].starts_with("::"))
            })
        });
        let used = uses(source).into_iter().filter_map(|path| {
            modules.iter().filter(|module| is_within(&path, module)).max_by_key(|module| module.len()).copied()
        });
        let used = used.chain(children.copied()).filter(|used| !is_within(&source.module, used));
        graph.entry(&source.module).or_default().extend(used.collect::<Vec<_>>());
    }
    graph
}

/// All that can be reached from a module.
fn reached<'a>(graph: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for next in graph.get(module).into_iter().flatten() {
            if reached.insert(*next) {
                open.push(next);
            }
        }
    }
    reached
}

#[test]
fn the_graph_of_modules_has_no_circle() {
    let sources: Vec<_> = sources().into_iter().filter(|source| source.module != "lib").collect();
    let graph = graph(&sources);
    let reach: BTreeMap<_, _> = graph.keys().map(|module| (*module, reached(&graph, module))).collect();
    let circles: BTreeSet<Vec<_>> = graph
        .keys()
        .filter(|module| reach[*module].contains(*module))
        .map(|module| reach[module].iter().filter(|other| reach[*other].contains(module)).copied().collect())
        .collect();
    let known: BTreeSet<Vec<_>> = CIRCLES.iter().map(|circle| circle.to_vec()).collect();
    assert_eq!(circles, known, "circles, and those that are known");
}

#[test]
fn a_folder_can_be_taken_in_at_a_glance() {
    let mut rooms: BTreeMap<String, usize> = BTreeMap::new();
    for source in sources() {
        let folder = source.path.parent().unwrap().strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        *rooms.entry(folder.unwrap().to_str().unwrap().replace('/', "::")).or_default() += 1;
    }
    let large: Vec<_> =
        rooms.iter().filter(|(_, files)| **files > FILES_OF_A_ROOM).map(|(room, _)| room.as_str()).collect();
    assert_eq!(large, LARGE_ROOMS, "folders with more than {FILES_OF_A_ROOM} files, and those that are known");
}

#[test]
fn each_layer_uses_only_its_crates() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let crates: Vec<String> = dependencies
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim().split('.').next().unwrap().replace('-', "_"))
        .collect();
    assert!(crates.len() > 5, "Cargo.toml was not read");
    for source in sources().iter().filter(|source| source.module != "lib") {
        let (own, _, allowed) = place_of(&source.module);
        for name in crates.iter().filter(|name| !allowed.contains(&name.as_str())) {
            let used = words(&source.code, name).any(|at| {
                let before = source.code[..at].trim_end();
                let inner = before.ends_with("::") || before.ends_with('.');
                !inner && (source.code[at + name.len()..].starts_with("::") || before.ends_with("use"))
            });
            assert!(!used, "{}: {own} may not use the crate {name}", source.path.display());
        }
    }
}

#[test]
fn decisions_touch_nothing_but_their_arguments() {
    for source in sources().iter().filter(|source| PURE.iter().any(|module| is_within(&source.module, module))) {
        for name in IMPURE {
            assert!(words(&source.code, name).next().is_none(), "{}: {name} in a decision", source.path.display());
        }
    }
}

#[test]
fn every_znode_is_created_with_the_acl_of_one_place() {
    for source in sources().iter().filter(|source| source.module != "zookeeper::client::acl") {
        for name in ["Acls", "CreateMode", "with_acls", "mkdir"] {
            let said = words(&source.code, name).next();
            assert!(
                said.is_none(),
                "{}: {name}, which is for src/zookeeper/client/acl.rs alone",
                source.path.display()
            );
        }
    }
}

#[test]
fn only_the_guards_system_calls_are_unsafe() {
    for source in sources() {
        // The client library's word for a choice that is its user's.
        let is_choice = source.path.ends_with("src/zookeeper/client/tls/verifier.rs");
        let is_sys = is_choice || source.path.ends_with("src/guard/sys.rs");
        let blocks = words(&source.code, "unsafe").count();
        assert!(is_sys || blocks == 0, "{}: unsafe outside guard/sys.rs", source.path.display());
        let reasons = source.text.matches("SAFETY").count();
        assert!(reasons >= blocks, "{}: {blocks} unsafe, {reasons} SAFETY comments", source.path.display());
    }
}

#[test]
fn nothing_panics_on_purpose_outside_tests() {
    for source in sources() {
        for call in [".unwrap()", ".expect(", "panic!(", "unreachable!(", "todo!("] {
            assert!(!source.code.contains(call), "{}: {call} outside tests", source.path.display());
        }
    }
}

#[test]
fn files_are_short_and_say_what_they_are() {
    for source in sources() {
        let name = source.path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().to_str().unwrap().to_string();
        let lines = source.code.lines().filter(|line| !line.trim().is_empty()).count();
        let excused = LONG_FILES.iter().any(|(file, _)| *file == name);
        assert!(lines <= LONGEST_FILE || excused, "{name} has {lines} lines of code, more than {LONGEST_FILE}");
        assert!(lines > LONGEST_FILE || !excused, "{name} is short enough now: take it off the list");
        assert!(source.text.starts_with("//!"), "{name} does not begin with its promise");
        for word in ["util", "helper", "manager"] {
            assert!(!name.contains(word), "{name}: a {word} has no name yet");
        }
    }
}
