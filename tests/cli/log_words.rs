//! `docs/log.md`: every word that stands in `why` of a line, with its level and what it means.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::golden;
use zk_leader_run::core::action::Why;
use zk_leader_run::observe::{log, words};

const BEGIN: &str = "\
# Words of the log

Generated from `src/core/action.rs`, `src/observe/` and `tests/cli/log_words.rs`; `UPDATE=1 cargo test --test cli` rewrites it.

A line that tells of a change has a word for its reason: `why` with `--log-format json`, `ZK_LEADER_WHY` in systemd's journal, `why` in
[`/status`](status.md) and of the metric `zk_leader_run_transitions_total`. The words stay; the sentences may change. `warn` is for an operator to
see, `error` needs one.

## Changes of phase

These lines have `from`, `to`, `token` and `lease_left_ms`, too.

| Word | Level | Meaning |
|---|---|---|
";

const OTHERS: &str = "
## Other lines

| Word | Level | Meaning |
|---|---|---|
";

/// Word, level, meaning.
const ROWS: [[&str; 3]; 25] = [
    [
        "address-gone",
        "warn",
        "this host does not have the address of `--vouch-address`, or the one where others ask it, any more",
    ],
    ["address-of-no-use", "warn", "no other host can ask this one to vouch at the address that it has"],
    ["another-command", "warn", "the leader runs another command than this host would"],
    ["cannot-send", "warn", "this host cannot send to another one, so neither vouches for the other"],
    ["chroot-created", "warn", "the chroot of `--connect` did not exist, and was created"],
    ["contact-restored", "info", "ZooKeeper is back, after a time on promises (`--vouch`)"],
    ["disabled", "warn", "an operator disabled the election: who, until when, why"],
    ["disagreement", "error", "the settings that all hosts of an election share differ"],
    ["enabled", "info", "no operator disables the election any more"],
    ["forbidden", "error", "ZooKeeper refuses a request for good"],
    ["handover", "info", "an operator ordered a handover: who, and to whom"],
    ["healthy", "info", "the health command succeeds again"],
    ["nobody-to-vouch", "info", "no other host could take over, so none is asked to vouch"],
    [
        "not-vouched-for",
        "warn",
        "ZooKeeper is away, and not every host that could take over holds back: who is missing",
    ],
    [
        "refused",
        "error, warn",
        "ZooKeeper refuses the credentials, the connection, or a right: which, and what is needed",
    ],
    ["server-differs", "warn", "a server shows a record that the ensemble does not have; another connection is made"],
    ["stop-again", "warn", "a second signal: what still runs is killed"],
    ["stop-requested", "info", "a signal came while a stop was under way"],
    [
        "stuck",
        "error",
        "processes survive SIGKILL: the lease is not released, and runs out; end them, or fence this host",
    ],
    [
        "supervisor-stood-still",
        "warn",
        "this process was stopped, frozen or starved of CPU: what the guard did meanwhile",
    ],
    ["unhealthy", "warn", "the health command failed too often"],
    ["unreachable", "warn", "no server answers: which, why, for how long"],
    [
        "vouched-for",
        "warn, info",
        "ZooKeeper is away, and every host that could take over holds back; or all of them answer again",
    ],
    ["vouches", "warn", "ZooKeeper is away, and this host holds back for the leader: until when"],
    ["vouches-no-more", "info", "this host holds back for nobody any more"],
];

#[test]
fn every_word_of_the_log_is_in_the_reference() {
    let mut page = BEGIN.to_owned();
    let mut told = BTreeSet::new();
    for why in Why::ALL.into_iter().filter(|why| told.insert(words::reason_code(*why))) {
        let word = words::reason_code(why);
        let same = Why::ALL.into_iter().filter(|other| words::reason_code(*other) == word);
        let meaning = same.map(words::reason).collect::<Vec<_>>().join("; or: ").replace('_', r"\_");
        writeln!(page, "| `{word}` | {} | {meaning} |", log::level(why).to_string().to_lowercase()).ok();
    }
    page.push_str(OTHERS);
    for [word, level, meaning] in ROWS {
        writeln!(page, "| `{word}` | {level} | {meaning} |").ok();
    }
    golden("docs/log.md", &page);
    let known: BTreeSet<_> = ROWS.iter().map(|[word, ..]| (*word).to_owned()).collect();
    assert_eq!(written(Path::new("src")), known, "what stands as `why = \"…\"` in a line of the log");
}

/// The words of the lines below this folder.
fn written(folder: &Path) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            words.append(&mut written(&entry.path()));
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap();
        let values = text.split(" why = \"").skip(1).chain(text.split("(why = \"").skip(1));
        let is_word = |value: &&str| value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        words.extend(values.filter_map(|rest| rest.split('"').next()).filter(is_word).map(str::to_owned));
    }
    words
}
