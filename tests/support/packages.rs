//! Our packages, built as a packager builds them, but from the programs under test and hardly compressed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The tree that the packages are built from.
pub fn source() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The fastest.
pub const GZIP: &str = "gzip -z1";

/// The Debian package, built once.
pub fn debian() -> &'static Path {
    static PACKAGE: OnceLock<Package> = OnceLock::new();
    &PACKAGE.get_or_init(|| build("debian", GZIP)).file
}

/// The RPM, built once.
pub fn rpm() -> &'static Path {
    static PACKAGE: OnceLock<Package> = OnceLock::new();
    &PACKAGE.get_or_init(|| build("rpm", "w1.zstdio")).file
}

/// A package of one kind, in a folder of its own.
pub struct Package {
    pub file: PathBuf,
    folder: tempfile::TempDir,
}

/// Builds a package of a kind: `debian` or `rpm`.
pub fn build(kind: &str, compression: &str) -> Package {
    let folder = tempfile::tempdir().unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_zk-leader-run")).parent().unwrap();
    let mut build = Command::new("sh");
    build.arg(source().join("packaging").join(kind).join("build.sh")).arg(programs).arg(folder.path());
    said(build.env("COMPRESSION", compression).env("SOURCE_DATE_EPOCH", "1700000000"));
    let file = fs::read_dir(folder.path()).unwrap().next().expect("a package was built").unwrap().path();
    Package { file, folder }
}

/// What a program prints that must end well.
#[track_caller]
pub fn said(program: &mut Command) -> String {
    let output = program.output().unwrap_or_else(|error| panic!("{program:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program:?}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}
