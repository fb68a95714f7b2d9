//! docs/json.md has every field that `zk-leaderctl` writes for programs, and no other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Deserializer, Value, json};

use super::election;
use super::operator::ctl;
use crate::support::wait;

type Fields = BTreeSet<String>;

/// Of no command.
const NO_ANSWER: &str = "No answer";
const ORDERS: &str = "Orders";

/// The fields under each heading.
fn told() -> BTreeMap<String, Fields> {
    let mut told = BTreeMap::new();
    for part in include_str!("../../docs/json.md").split("\n## ").skip(1) {
        let (heading, rows) = part.split_once('\n').unwrap();
        let cells = rows.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
        let fields = cells.flat_map(|cell| cell.split(',')).map(|name| name.trim().trim_matches('`').replace("[]", ""));
        told.insert(heading.trim_matches('`').to_owned(), fields.collect());
    }
    told
}

/// The names of all fields. An order within an answer has a heading of its own.
fn shown(value: &Value, prefix: &str, found: &mut BTreeMap<&'static str, Fields>, heading: &'static str) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let parts = value.as_array().map_or_else(|| vec![value], |all| all.iter().collect());
        let name = format!("{prefix}{key}");
        let is_order = matches!(name.as_str(), "replaced" | "ended") || heading == "enable" && name == "disabled";
        match name.as_str() {
            _ if is_order => parts.iter().for_each(|part| shown(part, "", found, ORDERS)),
            // Its fields are the user's.
            "contenders.meta" => {}
            "lapsed" => {
                for key in ["disabled", "handover"] {
                    found.entry(heading).or_default().insert(format!("lapsed.{key}"));
                    shown(&json!({ key: value[key] }), "", found, heading);
                }
                continue;
            }
            _ => parts.iter().for_each(|part| shown(part, &format!("{name}."), found, heading)),
        }
        found.entry(heading).or_default().insert(name);
    }
}

/// What a command wrote. `verb`: as the document has it.
fn fields(verb: &'static str, output: &str, found: &mut BTreeMap<&'static str, Fields>) {
    for value in Deserializer::from_str(output).into_iter::<Value>() {
        let value = value.unwrap_or_else(|error| panic!("{error}: {verb} says {output}"));
        let is_answer = value.get("why").is_none();
        shown(&value, "", found, if is_answer { verb } else { NO_ANSWER });
    }
}

const VERBS: [&str; 12] = [
    "status",
    "list",
    "history",
    "handover",
    "disable",
    "enable",
    "drain",
    "undrain",
    "token-check",
    "put",
    "lease",
    "doctor",
];

/// An answer of any test.
pub fn check(words: &[&str], output: &str) {
    let is_for_programs = words.contains(&"json") || words.contains(&"--json");
    let verb = VERBS.into_iter().find(|verb| words.first() == Some(verb));
    let (Some(verb), true) = (verb, is_for_programs) else { return };
    let (mut found, told) = (BTreeMap::new(), told());
    fields(verb, output, &mut found);
    for (heading, found) in found {
        let more: Vec<_> = found.difference(&told[heading]).collect();
        assert!(more.is_empty(), "docs/json.md does not have {more:?} of {heading}: {output}");
    }
}

/// Fields that no answer below has; others' tests have them.
const ELSEWHERE: [(&str, &str); 2] = [("handover", "reason"), ("handover", "state")];

/// What is said of an election in which much has happened.
fn of_a_rich_election(ask: &mut impl FnMut(&[&str])) {
    let election = election();
    election.prepare();
    let order = r#"{"order":"o","by":"b","reason":"r","to":"x","token":7,"stop":false,"for_ms":600000SINCE}"#;
    let orders = |since: &str| {
        let order = order.replace("SINCE", since);
        election.admin.set(&election.path("control"), &format!(r#"{{"v":1,"disabled":{order},"handover":{order}}}"#));
        ask(&["status", &election.name]);
    };
    election.admin.create(&election.path("control"), "{}");
    for directory in ["members", "runs"] {
        election.admin.create_all(&election.path(directory));
    }
    election.admin.create(&election.path("members/x"), "garbage");
    [",\"since\":1000", ""].into_iter().for_each(orders);
    let term = r#"{"token":7,"slot":1,"term":7,"id":"a","host":"h","since":1,"until":2,"takeover":"clean","ended":"e","max_pause_ms":1}"#;
    election.admin.set(&election.path("history"), &format!(r#"{{"v":1,"terms":[{term}]}}"#));
    let run = r#"{"slot":"s","id":"a","host":"h","token":7,"ok":true,"status":0}"#;
    election.admin.create(&election.path("runs/last"), &format!(r#"{{"v":1,"run":{run}}}"#));
    ask(&["history", &election.name]);
    ask(&["status", &election.name]);
    ask(&["list"]);
}

/// What orders answer, and what is asked of a leader.
fn of_a_led_election(ask: &mut impl FnMut(&[&str])) {
    let election = election();
    let root = format!("/documented-{}", election.name);
    let path = format!("{root}/job");
    let lease = format!("{} lease --json; sleep 1000", env!("CARGO_BIN_EXE_zk-leaderctl"));
    let host = election.steady_host("a").without("--name").option("--path", &path).option("--stop-signal", "USR1");
    let host = host.option("--stop-timeout", "10m").command(&["sh", "-c", &format!("trap '' USR1; {lease}")]).spawn();
    wait::until("it leads", || host.output().ends_with("}\n"));
    ask(&["lease", &host.output()]);
    ask(&["drain", "h1", "--force", "--root", &root]);
    ask(&["list", "--path", &root]);
    ask(&["status", "--path", &path]);
    for words in [
        &["drain", "h1", "--force", "--root", &root][..],
        &["undrain", "h1", "--root", &root],
        &["token-check", "1", "--path", &path],
        &["put", "/documented", "x", "--fenced", "--token", "1", "--path", &path],
        &["handover", "--path", &path],
        &["disable", "--path", &path, "--wait", "--timeout", "1s"],
        &["disable", "--path", &path],
        &["enable", "--path", &path],
        &["doctor"],
        &["doctor", "--connect", "127.0.0.1:1"],
        &["status", "nothing"],
    ] {
        ask(words);
    }
}

#[test]
fn every_field_of_the_json_is_in_its_document_and_no_other() {
    let mut found = BTreeMap::new();
    let mut ask = |words: &[&str]| {
        let verb = VERBS.into_iter().find(|verb| *verb == words[0]).unwrap();
        if verb == "lease" {
            return fields(verb, words[1], &mut found);
        }
        let said = ctl(&[words, &["--json"]].concat());
        fields(verb, &said.output, &mut found);
    };
    of_a_rich_election(&mut ask);
    of_a_led_election(&mut ask);
    for (verb, field) in ELSEWHERE {
        assert!(found.entry(verb).or_default().insert(field.to_owned()), "{verb} shows {field} here, too");
    }
    for (heading, told) in told() {
        let found = found.iter().find(|(shown, _)| **shown == heading);
        assert_eq!(Some(&told), found.map(|(_, found)| found), "{heading}");
    }
}
