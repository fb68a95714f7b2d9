//! What one version writes for the next: a change of its layout demands another version of the document, unless an earlier document fits it.

use std::fs;

use serde_json::{Value, json};

use crate::election;
use crate::package::{Package, ask};
use crate::refusals::{Pipe, leader_with_pipe};
use crate::support::subject::children_of;
use crate::support::wait;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/hand-over.json");

/// The same, with one value for all of a kind.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => json!(null),
        Value::Bool(_) => json!("a bool"),
        Value::Number(_) => json!("a number"),
        Value::String(_) => json!("a text"),
        Value::Array(values) => values.iter().map(shape).take(1).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
    }
}

/// The new program hangs on its configuration, with the trial document as its standard input.
#[test]
fn the_layout_of_the_document_is_that_of_its_version() {
    let (election, package) = (election(), Package::new());
    let pipe = Pipe::new(&election);
    let host = leader_with_pipe(&election, &package, &pipe);
    package.install();
    ask(&host);
    let document = wait::for_some("the new program is asked", || {
        let asked = children_of(host.pid()).into_iter().find(|pid| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.contains("--can-take-over")
        })?;
        fs::read_to_string(format!("/proc/{asked}/fd/0")).ok().filter(|text| !text.is_empty())
    });
    pipe.write();
    let mut document: Value = serde_json::from_str(&document).unwrap();
    let versions = [document["version"].take(), document["machine"]["version"].take()];
    let mut shape = shape(&document);
    (shape["version"], shape["machine"]["version"]) = (versions[0].clone(), versions[1].clone());
    // The second is written before or after this moment; the third depends on the host.
    shape["election"]["key"] = json!("a secret");
    shape["election"]["unwritten"] = json!("terms");
    shape["guard"]["containment"] = json!("a containment");
    let text = serde_json::to_string_pretty(&shape).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        fs::write(GOLDEN, &text).unwrap();
    }
    assert_eq!(
        text,
        fs::read_to_string(GOLDEN).unwrap(),
        "another layout is another version, or an earlier document fits it; then run with UPDATE=1"
    );
}
