//! A file with a secret: read once, through one descriptor, and refused if everybody may read it. The descriptor is
//! checked, because the name may mean another file later.

use std::fs::File;
use std::io::{self, Read as _};

use nix::errno::Errno;

use crate::config::error::{ConfigError, quoted};
use crate::config::source::file_permissions::{Holder, Trust};
use crate::config::source::setting::Setting;

/// Longer files are refused.
const LONGEST: u64 = 1 << 20;
const READABLE_BY_GROUP: u32 = 0o040;
/// Read or write permission for everybody.
const OPEN_TO_ALL: u32 = 0o006;

/// Its text, and perhaps a notice.
pub struct Contents {
    pub text: String,
    /// And no pipe, which can be read only once.
    pub is_file: bool,
    pub notice: Option<String>,
}

/// Reads the file that `setting` names.
pub fn read(setting: &Setting) -> Result<Contents, ConfigError> {
    let (file, is_file, notice) = open_judged(setting)?;
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| broken(setting, &error))?;
    if text.len() as u64 > LONGEST {
        return Err(unusable(setting, "is longer than 1 MiB; write the path of a file of secrets"));
    }
    Ok(Contents { text, is_file, notice })
}

/// Checks only owner, mode and readability.
pub fn judge(setting: &Setting) -> Result<Option<String>, ConfigError> {
    open_judged(setting).map(|(.., notice)| notice)
}

/// Opens a file, whoever may read it.
pub fn open(setting: &Setting) -> Result<File, ConfigError> {
    File::open(&setting.text).map_err(|error| broken(setting, &error))
}

fn open_judged(setting: &Setting) -> Result<(File, bool, Option<String>), ConfigError> {
    let file = open(setting)?;
    let stat = file.metadata().map_err(|error| broken(setting, &error))?;
    // The mode of a pipe says nothing.
    let notice = if stat.is_file() { judge_rights(Trust::of(&stat), setting)? } else { None };
    Ok((file, stat.is_file(), notice))
}

fn broken(setting: &Setting, error: &io::Error) -> ConfigError {
    let reason = error.raw_os_error().map_or("it is not UTF-8 text", |errno| Errno::from_raw(errno).desc());
    unusable(setting, format_args!("cannot be read: {reason}; write the path of a file that this user may read"))
}

/// An unusable file is a configuration error.
fn unusable(setting: &Setting, complaint: impl std::fmt::Display) -> ConfigError {
    ConfigError::configuration(&setting.origin, format_args!("{} {complaint}", quoted(&setting.text)))
}

/// Refuses a file that everybody may read. Group access is usual where secrets are mounted (Kubernetes); a foreign group or
/// owner gives a notice.
fn judge_rights(trust: Trust, setting: &Setting) -> Result<Option<String>, ConfigError> {
    if trust.mode & OPEN_TO_ALL != 0 {
        let complaint = format!("holds a secret that everybody can read or write; chmod o-rw {}", setting.text);
        return Err(unusable(setting, complaint));
    }
    let strangers = trust.strangers(READABLE_BY_GROUP, Holder::of_this_process());
    Ok(strangers.map(|strangers| format!("{} holds a secret, and {strangers} may read it", setting.text)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::config::source::setting::Origin;

    #[test]
    fn a_file_that_is_too_long_is_refused_and_not_cut() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let setting = Setting { origin: Origin::Argument("--auth-file"), text: file.path().display().to_string() };
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(read(&setting).map_or(0, |contents| contents.text.len()), 1 << 20);
        file.write_all(b"y").unwrap();
        let Err(error) = read(&setting) else { panic!("it was cut") };
        assert!(
            error.sentence.ends_with("is longer than 1 MiB; write the path of a file of secrets"),
            "{}",
            error.sentence
        );
    }
}
