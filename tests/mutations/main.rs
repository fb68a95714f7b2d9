//! Every planted mistake can still be planted: what the code around it has become has not made its patch void.
//! That each turns its test red is the business of `make mutants` and `make chaos-controls`, which take longer.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn every_patch_applies_and_names_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut void = Vec::new();
    for folder in ["tests/mutations", "tests/chaos/controls"] {
        let patches = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        for patch in patches.filter(|path| path.extension().is_some_and(|extension| extension == "patch")) {
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
