//! Whether the command can be found and executed, before anything is connected: looked up like `execvp(3)`. `execve(2)`
//! decides in the end.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, eaccess};

use crate::config::error::{ConfigError, quoted};
use crate::exit::not_executed;

/// The path that `execvp(3)` searches without PATH.
const PATH_WITHOUT_PATH: &str = "/bin:/usr/bin";

/// Refuses a command that cannot be executed.
pub fn check(command: &OsStr, path: Option<&OsStr>) -> Result<(), ConfigError> {
    let path = path.unwrap_or(OsStr::new(PATH_WITHOUT_PATH));
    find(command, path).map_err(|error| {
        let complaint = complaint(command, path, error);
        ConfigError::new(
            not_executed(error),
            "COMMAND",
            format_args!("{} {complaint}", quoted(&command.to_string_lossy())),
        )
    })
}

fn complaint(command: &OsStr, path: &OsStr, error: Errno) -> String {
    let has_slash = command.as_bytes().contains(&b'/');
    let is_a_line = command.as_bytes().contains(&b' ');
    match error {
        Errno::ENOENT | Errno::ENOTDIR if is_a_line => {
            "is not a program; no shell is used: write the words as separate arguments, or write sh -c and the line"
                .into()
        }
        Errno::ENOENT | Errno::ENOTDIR if has_slash => "does not exist; write the path of a program".into(),
        Errno::ENOENT | Errno::ENOTDIR => {
            format!("was not found in PATH={}; write its whole path, or extend PATH", quoted(&path.to_string_lossy()))
        }
        Errno::EISDIR => "is a directory; write the path of a program".into(),
        Errno::EACCES => {
            "is not executable by us; see its permissions and those of its directories, or chmod +x it".into()
        }
        other => format!("cannot be executed: {}", other.desc()),
    }
}

fn find(command: &OsStr, path: &OsStr) -> Result<(), Errno> {
    if command.is_empty() {
        return Err(Errno::ENOENT);
    }
    if command.as_bytes().contains(&b'/') {
        return executable(Path::new(command));
    }
    let mut failure = Errno::ENOENT;
    for directory in path.as_bytes().split(|byte| *byte == b':') {
        // An empty entry in PATH is the current directory.
        let directory = if directory.is_empty() { b"." } else { directory };
        match executable(&PathBuf::from(OsStr::from_bytes(directory)).join(command)) {
            Ok(()) => return Ok(()),
            Err(error @ (Errno::EACCES | Errno::EISDIR)) => failure = error,
            Err(_) => {}
        }
    }
    Err(failure)
}

fn executable(file: &Path) -> Result<(), Errno> {
    eaccess(file, AccessFlags::F_OK)?;
    if file.is_dir() {
        return Err(Errno::EISDIR);
    }
    eaccess(file, AccessFlags::X_OK)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::exit::Status;

    #[test]
    fn a_command_is_looked_up_as_exec_does_it() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str, mode| {
            let file = place.path().join(name);
            fs::write(&file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            file
        };
        let good = make("good", 0o755);
        let plain = make("plain", 0o644);
        let path = format!("/nonexistent:{}", place.path().display());
        let status = |command: &str| check(OsStr::new(command), Some(OsStr::new(&path))).map_err(|error| error.status);
        assert_eq!(status("good"), Ok(()));
        assert_eq!(status(good.to_str().unwrap()), Ok(()));
        assert_eq!(status("plain"), Err(Status::NotExecutable));
        assert_eq!(status(plain.to_str().unwrap()), Err(Status::NotExecutable));
        assert_eq!(status(place.path().to_str().unwrap()), Err(Status::NotExecutable));
        assert_eq!(status("absent"), Err(Status::NotFound));
        assert_eq!(status("/nonexistent/absent"), Err(Status::NotFound));
        assert_eq!(status(&format!("{}/x", good.display())), Err(Status::NotFound));
        assert_eq!(status(""), Err(Status::NotFound));
    }

    #[test]
    fn a_later_place_in_path_makes_up_for_an_earlier_one() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("sh"), "").unwrap();
        let path = format!("{}:/bin", place.path().display());
        assert_eq!(check(OsStr::new("sh"), Some(OsStr::new(&path))), Ok(()));
        assert_eq!(check(OsStr::new("sh"), None), Ok(()));
    }
}
