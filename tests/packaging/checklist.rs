//! The checklist of a release, dry: in a repository of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::packages::{said, source};

const VERSION: &str = env!("CARGO_PKG_VERSION");

struct Repository(tempfile::TempDir);

impl Repository {
    /// With all that the checklist reads, committed; everything is as it must be but for CHANGELOG.md.
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        for file in ["Cargo.toml", "Cargo.lock", "CHANGELOG.md", "Makefile"] {
            fs::copy(source().join(file), repository.path(file)).unwrap();
        }
        said(Command::new("cp").arg("-R").arg(source().join("packaging")).arg(repository.0.path()));
        repository.git(&["init", "-q", "-b", "main"]);
        repository.commit();
        repository
    }

    fn path(&self, file: &str) -> std::path::PathBuf {
        self.0.path().join(file)
    }

    fn git(&self, words: &[&str]) -> String {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        said(Command::new("git").current_dir(self.0.path()).args(who).args(words))
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "All"]);
    }

    /// Whether it went through, and what it said.
    fn checklist(&self) -> (bool, String) {
        let mut script = Command::new("sh");
        let output = script.arg(self.path("packaging/release.sh")).arg("--dry-run").current_dir(Path::new("/"));
        let output = output.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    #[track_caller]
    fn assert_refused(&self, why: &str) {
        let (is_through, text) = self.checklist();
        assert!(!is_through && text.contains(why), "not refused for {why}:\n{text}");
        assert!(!text.contains("== "), "a step was taken:\n{text}");
    }
}

#[test]
fn a_release_is_refused_until_everything_is_as_it_must_be_and_tagged_last() {
    let repository = Repository::new();
    repository.assert_refused(&format!("CHANGELOG.md has no line '## {VERSION} ("));
    let today = said(Command::new("date").args(["-u", "+%F"]));
    let heading = format!("## {VERSION} ({})", today.trim());
    let changelog = fs::read_to_string(repository.path("CHANGELOG.md")).unwrap();
    let unreleased = "## Unreleased\n";
    fs::write(repository.path("CHANGELOG.md"), changelog.replacen(unreleased, &format!("{heading}\n"), 1)).unwrap();
    repository.assert_refused("not committed");
    repository.commit();
    let (is_through, steps) = repository.checklist();
    assert!(is_through, "{steps}");
    let steps: Vec<_> = steps.lines().filter_map(|line| line.strip_prefix("== ")).collect();
    let at = |step: &str| steps.iter().position(|line| line.starts_with(step)).unwrap_or_else(|| panic!("{steps:?}"));
    assert!(at("make check test") < at("make deb rpm") && at("make deb rpm") < at("checksums"));
    assert!(at("checksums") < at("git tag") && at("git tag") == steps.len() - 1);
    assert_eq!(repository.git(&["tag"]), "", "a dry run has tagged");

    repository.git(&["switch", "-q", "-c", "other"]);
    repository.assert_refused("git switch main");
    repository.git(&["switch", "-q", "main"]);
    repository.git(&["tag", &format!("v{VERSION}")]);
    repository.assert_refused("exists: raise version");
    repository.git(&["tag", "-d", &format!("v{VERSION}")]);
    let manifest = fs::read_to_string(repository.path("Cargo.toml")).unwrap();
    fs::write(repository.path("Cargo.toml"), manifest.replacen(VERSION, "99.0.0", 1)).unwrap();
    repository.commit();
    repository.assert_refused("Cargo.lock does not say 99.0.0");
}
