//! What is in the packages, and what Debian and RPM say about it.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::packages::{self, said};

#[test]
fn debians_checker_finds_nothing_in_the_package_that_is_not_explained() {
    // It leaves a file behind.
    let scratch = tempfile::tempdir().unwrap();
    let mut lintian = Command::new("lintian");
    lintian.env("TMPDIR", scratch.path());
    lintian.args(["--allow-root", "--pedantic", "-I", "--fail-on", "error,warning,pedantic"]);
    let told = said(lintian.arg(packages::debian()));
    // It sees misspelt words in machine code, in some builds and not in others: that is overridden.
    let is_open = |line: &&str| line.starts_with("I: ") && !line.contains("unused-override spelling-error-in-binary");
    assert_eq!(told.lines().find(is_open), None, "{told}");
}

#[test]
fn the_rpm_is_installed_into_an_empty_root_and_removed_without_a_trace() {
    let root = tempfile::tempdir().unwrap();
    let rpm = |words: &[&str]| {
        let mut rpm = Command::new("rpm");
        said(rpm.arg("--root").arg(root.path()).args(words).current_dir(root.path()))
    };
    let package = packages::rpm().to_str().unwrap();
    rpm(&["--initdb"]);
    said(Command::new("rpm").args(["-K", "--nosignature", package]));
    // No shell is there to run its scripts, and nothing to satisfy what it requires.
    rpm(&["-i", "--nodeps", "--noscripts", package]);
    assert_eq!(rpm(&["-V", "--nodeps", "zk-leader-run"]), "");
    let version = said(Command::new(root.path().join("usr/bin/zk-leader-run")).arg("--version"));
    assert_eq!(version, format!("zk-leader-run {}\n", env!("CARGO_PKG_VERSION")));
    rpm(&["-e", "--noscripts", "zk-leader-run"]);
    let left = said(Command::new("find").arg(root.path()).args(["-name", "*zk-leader*"]));
    assert_eq!(left, "");
    for script in said(Command::new("rpm").args(["-qp", "--scripts", package])).split("scriptlet (using /bin/sh):") {
        let script = script.rsplit_once('\n').map_or(script, |(script, _)| script);
        said(Command::new("sh").args(["-nc", script]));
    }
}

#[test]
fn both_packages_hold_the_same() {
    let listed = |words: &[&str], package| {
        let list = said(Command::new(words[0]).args(&words[1..]).arg(package));
        let files = list.lines().map(|line| line.rsplit(' ').next().unwrap().trim_start_matches('.').to_owned());
        // Where each distribution wants its papers, and the completions of zsh.
        let files = files.map(|file| file.replace("vendor-completions", "site-functions"));
        let papers = ["/usr/share/doc/", "/usr/share/licenses/", "/usr/share/lintian/"];
        files
            .filter(|file| file.contains("zk-leader") && !file.ends_with('/'))
            .filter(|file| !papers.iter().any(|at| file.starts_with(at)))
            .collect::<BTreeSet<_>>()
    };
    let debian = listed(&["dpkg-deb", "-c"], packages::debian());
    let mut rpm = listed(&["rpm", "-qpl"], packages::rpm());
    // It lists folders, too.
    let is_folder = |file: &String| rpm.iter().any(|other| other.starts_with(&format!("{file}/")));
    let folders: Vec<_> = rpm.iter().filter(|file| is_folder(file)).cloned().collect();
    rpm.retain(|file| !folders.contains(file));
    assert_eq!(debian, rpm);
    assert!(debian.len() >= 17, "{debian:?}");
}

#[test]
fn the_same_tree_gives_the_same_bytes() {
    for (kind, compression, first) in
        [("debian", packages::GZIP, packages::debian()), ("rpm", "w1.zstdio", packages::rpm())]
    {
        let again = packages::build(kind, compression);
        said(Command::new("cmp").arg(first).arg(&again.file));
    }
}
