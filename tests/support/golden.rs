//! What is kept in a file and compared.

use std::path::Path;

/// Compares with a file of the tree; `UPDATE=1` rewrites it.
#[track_caller]
pub fn golden(file: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE").is_some_and(|update| update == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == actual,
        "{file} is stale; rewrite it with UPDATE=1 and look at the difference. It would be:\n{actual}"
    );
}
