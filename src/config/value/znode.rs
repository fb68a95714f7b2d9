//! Paths and names of znodes that every server and client library accepts (`PathUtils.validatePath`).

use std::fmt;

use crate::config::error::{ConfigError, ValueError};
use crate::config::source::setting::Setting;
use crate::zookeeper::schema::control::remedy::DEFAULT_ROOT;

const LONGEST: usize = 1024;

/// An absolute path of a znode other than the root, without a slash at its end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ZnodePath(String);

impl ZnodePath {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of `name` under this one.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        Self(format!("{}/{name}", self.0))
    }

    /// Whether it is `other`, or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.strip_prefix(&other.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for ZnodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `/zk-leader-run`, the parent of elections unless `--path` says otherwise.
pub fn default_root() -> ZnodePath {
    ZnodePath(DEFAULT_ROOT.to_owned())
}

/// A whole path, for `--path`.
pub fn path(setting: &Setting) -> Result<ZnodePath, ConfigError> {
    check_path(&setting.text).map_err(|complaint| setting.refused(complaint))?;
    Ok(ZnodePath(setting.text.clone()))
}

/// A path within a longer text; the error is the end of a sentence.
pub fn part_of(text: &str) -> Result<ZnodePath, ValueError> {
    check_path(text)?;
    Ok(ZnodePath(text.to_owned()))
}

/// One path element, for `--name` and `--id`.
pub fn name(setting: &Setting) -> Result<String, ConfigError> {
    check_name(&setting.text).map_err(|complaint| setting.refused(complaint))?;
    Ok(setting.text.clone())
}

/// The text as a default name, if it is a valid znode name.
pub fn as_name(text: &str) -> Option<String> {
    check_name(text).is_ok().then(|| text.to_owned())
}

fn check_path(path: &str) -> Result<(), ValueError> {
    let Some(steps) = path.strip_prefix('/') else {
        return Err(ValueError::from(format!(
            "is not an absolute path; write it like /{}",
            if path.is_empty() { "jobs" } else { "jobs/nightly" }
        )));
    };
    if steps.is_empty() {
        return Err(ValueError::from("is the root, which belongs to everyone; write a path like /jobs/nightly"));
    }
    if path.ends_with('/') {
        return Err(ValueError::from("ends with '/'; leave that out"));
    }
    if path.len() > LONGEST {
        return Err(ValueError::from(format!("is longer than {LONGEST} bytes; write a shorter one")));
    }
    if path == "/zookeeper" || path.starts_with("/zookeeper/") {
        return Err(ValueError::from("lies in ZooKeeper's own tree; write a path like /jobs/nightly"));
    }
    steps.split('/').try_for_each(check_step)
}

fn check_step(step: &str) -> Result<(), ValueError> {
    match step {
        "" => Err(ValueError::from("has an empty step ('//'); leave the second slash out")),
        "." | ".." => Err(ValueError::from(format!("has a relative step '{step}'; write the path out"))),
        _ if step.chars().any(is_refused) => Err(ValueError::from(
            "contains a character that ZooKeeper refuses (control, private use, or beyond U+FFFF, as most emojis are); leave it out",
        )),
        _ => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), ValueError> {
    const LONGEST_NAME: usize = 255;
    match name {
        "" => Err(ValueError::from("is empty; write a name like nightly")),
        _ if name.contains('/') => {
            Err(ValueError::from("contains '/'; write a name without it (--path takes a whole path)"))
        }
        _ if name.len() > LONGEST_NAME => {
            Err(ValueError::from(format!("is longer than {LONGEST_NAME} bytes; write a shorter one")))
        }
        _ => check_step(name),
    }
}

/// As `PathUtils.validatePath`, and U+FFFD, which replaces invalid UTF-8. Whatever is beyond U+FFFF is two surrogates to a server.
fn is_refused(character: char) -> bool {
    matches!(character, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::setting::Origin;

    fn refused(parse: impl Fn(&Setting) -> Option<ConfigError>, text: &str) -> String {
        let setting = Setting { origin: Origin::Option("path"), text: text.into() };
        parse(&setting).map_or_else(|| panic!("{text} was accepted"), |error| error.sentence)
    }

    #[test]
    fn good_paths_are_taken_as_they_are() {
        for text in ["/a", "/a/b.c/d..e", "/...", "/zookeeper2", "/日本/ü"] {
            let setting = Setting { origin: Origin::Option("path"), text: text.into() };
            assert_eq!(path(&setting).unwrap().as_str(), text);
        }
    }

    #[test]
    fn bad_paths_are_refused_each_with_its_reason() {
        let cases = [
            ("", "is not an absolute path"),
            ("a/b", "is not an absolute path"),
            ("/", "is the root"),
            ("/a/", "ends with '/'"),
            ("/a//b", "has an empty step"),
            ("//", "ends with '/'"),
            ("/a/./b", "has a relative step '.'"),
            ("/a/..", "has a relative step '..'"),
            ("/a\0b", "contains a character that ZooKeeper refuses"),
            ("/a\u{1f600}", "contains a character that ZooKeeper refuses"),
            ("/a\u{7f}", "contains a character that ZooKeeper refuses"),
            ("/zookeeper/quota", "lies in ZooKeeper's own tree"),
        ];
        for (text, reason) in cases {
            let sentence = refused(|setting| path(setting).err(), text);
            assert!(sentence.contains(reason), "{text:?}: {sentence}");
        }
        assert!(
            refused(|setting| path(setting).err(), &format!("/{}", "x".repeat(2000)))
                .contains("is longer than 1024 bytes")
        );
    }

    #[test]
    fn a_name_is_one_step() {
        for (text, reason) in [("a/b", "contains '/'"), ("", "is empty"), ("..", "relative step"), ("a\nb", "refuses")]
        {
            let sentence = refused(|setting| name(setting).err(), text);
            assert!(sentence.contains(reason), "{text:?}: {sentence}");
        }
    }
}
