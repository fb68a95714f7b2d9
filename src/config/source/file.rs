//! The configuration file: found, checked and read once, before everything else. The open descriptor is checked,
//! because the name may mean another file later.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use nix::errno::Errno;

use crate::config::error::{ConfigError, quoted};
use crate::config::source::file_permissions::{Holder, Trust};
use crate::config::source::file_settings::{FileSettings, Key};
use crate::config::source::layers::Layers;
use crate::config::source::setting::Setting;

/// Longer files are refused.
const LONGEST: u64 = 1 << 20;

#[derive(Debug, Default)]
pub struct ConfigFile {
    /// `None`: there is no file.
    pub path: Option<String>,
    pub settings: FileSettings,
    pub notice: Option<String>,
}

/// Reads the file that was named, else the usual one.
pub fn read(layers: &Layers, keys: &[Key]) -> Result<ConfigFile, ConfigError> {
    let usual = &layers.process_environment.usual_file;
    match layers.given("config")? {
        Some(setting) => {
            let file = File::open(&setting.text).map_err(|error| cannot_be_read(&setting, &error))?;
            read_open(&setting.text, &file, keys)
        }
        None if usual.as_os_str().is_empty() => Ok(ConfigFile::default()),
        None => match File::open(usual) {
            Ok(file) => read_open(&usual.to_string_lossy(), &file, keys),
            Err(error) if is_missing(&error) => Ok(ConfigFile::default()),
            Err(error) => Err(usual_cannot_be_read(usual, &error)),
        },
    }
}

fn read_open(path: &str, file: &File, keys: &[Key]) -> Result<ConfigFile, ConfigError> {
    let stat = file.metadata().map_err(|error| broken(path, &error))?;
    // The mode of a pipe or of /dev/null says nothing.
    let notice = if stat.is_file() { Trust::of(&stat).judge(path, Holder::of_this_process())? } else { None };
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| broken(path, &error))?;
    if bytes.is_empty() && stat.file_type().is_fifo() {
        let complaint =
            "this pipe gives nothing (a pipe can be read once, and not again for an upgrade in place); write a file";
        return Err(ConfigError::configuration(path, complaint));
    }
    if bytes.len() as u64 > LONGEST {
        return Err(ConfigError::configuration(path, "this is longer than 1 MiB; write a file of settings"));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| ConfigError::configuration(path, "this is not UTF-8 text; write it in UTF-8"))?;
    let settings = FileSettings::read(path, &text, keys)?;
    Ok(ConfigFile { path: Some(path.to_owned()), settings, notice })
}

fn cannot_be_read(setting: &Setting, error: &io::Error) -> ConfigError {
    let complaint = format!(
        "{} cannot be read: {}; write the path of a TOML file, or leave it out",
        quoted(&setting.text),
        reason(error)
    );
    ConfigError::configuration(&setting.origin, complaint)
}

fn usual_cannot_be_read(path: &Path, error: &io::Error) -> ConfigError {
    let remedy = "let this user read it, or add --config and another file, or --config /dev/null";
    ConfigError::configuration(path.display(), format_args!("it cannot be read: {}; {remedy}", reason(error)))
}

fn broken(path: &str, error: &io::Error) -> ConfigError {
    ConfigError::configuration(
        path,
        format_args!("it cannot be read: {}; write the path of a TOML file", reason(error)),
    )
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn reason(error: &io::Error) -> &'static str {
    error.raw_os_error().map_or("it cannot be opened", |errno| Errno::from_raw(errno).desc())
}
