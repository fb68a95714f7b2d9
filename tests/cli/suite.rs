//! How the whole suite (`tests/run.sh`) goes on after a step that fails.

use std::process::Command;

/// Runs these steps as `tests/run.sh` does.
fn suite(steps: &str) -> (Option<i32>, String) {
    let script = format!(". tests/prerequisites.sh; . tests/steps.sh; {steps}; finish");
    let output = Command::new("bash").args(["-euo", "pipefail", "-c", &script]).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// The words of a line of the table at the end.
fn row<'a>(said: &'a str, name: &str) -> Vec<&'a str> {
    let row = said.lines().rfind(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no row of {name}:\n{said}"));
    row[name.len()..].split_whitespace().collect()
}

#[test]
fn a_suite_runs_to_its_end_and_fails_at_the_end_if_a_step_did() {
    let (code, said) = suite("step Red false; step Green echo still tested; step Absent no-such-program 2>&1");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("\nstill tested\n"), "{said}");
    let verdicts = ["Red", "Green", "Absent"].map(|name| *row(&said, name).last().unwrap());
    assert_eq!(verdicts, ["FAILED", "ok", "FAILED"], "{said}");
    assert!(said.lines().last().unwrap().contains("FAILED: 2 of 3 steps"), "{said}");

    let (code, said) = suite("step Green true");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.lines().last().unwrap().contains("All tests passed"), "{said}");
}

#[test]
fn the_reason_of_each_failure_is_told_at_the_end() {
    let tests = r"printf '%s\n' 'test all ... FAILED' '' 'failures:' '---- all ----' 'one of two' '   0: main' 'test result: FAILED.'";
    let (_, said) = suite(&format!("red() {{ {tests}; false; }}; step Red red; step 'Red, too' ls /nowhere"));
    let (_, reasons) = said.split_once("\nTotal ").unwrap();
    let (tests, other) = reasons.split_once("Why \"Red, too\" failed:\n").unwrap();
    assert!(tests.ends_with("Why \"Red\" failed:\n---- all ----\none of two\n\n"), "{said}");
    assert!(other.starts_with("ls: cannot access '/nowhere'"), "{said}");
}
