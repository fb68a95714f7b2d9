//! Whether the command can be found and executed, before anything is connected: looked up like `execvp(3)`. `execve(2)`
//! decides in the end.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, eaccess};

use crate::cli::ctl;
use crate::config::error::{ConfigError, printable, quoted};
use crate::exit::not_executed;

/// The path that `execvp(3)` searches without PATH.
const PATH_WITHOUT_PATH: &str = "/bin:/usr/bin";

/// The first bytes of a file, by which the kernel tells how to execute it (`BINPRM_BUF_SIZE`).
const HEAD: usize = 256;

/// Why a command cannot be executed.
#[derive(Debug)]
enum Lack {
    Itself(Errno),
    /// The interpreter that its first line names.
    Interpreter(Vec<u8>),
}

/// Whether a script cannot be executed if its interpreter is not there now.
type IsCertain<'a> = &'a dyn Fn() -> bool;

/// Refuses a command that cannot be executed.
pub fn check(command: &OsStr, path: Option<&OsStr>, is_certain: IsCertain) -> Result<(), ConfigError> {
    let path = path.unwrap_or(OsStr::new(PATH_WITHOUT_PATH));
    find(command, path, is_certain).map_err(|lack| {
        let (error, complaint) = match lack {
            Lack::Itself(error) => (error, complaint(command, path, error)),
            Lack::Interpreter(name) => (Errno::ENOENT, without_interpreter(&name)),
        };
        ConfigError::new(
            not_executed(error),
            "COMMAND",
            format_args!("{} {complaint}", quoted(&command.to_string_lossy())),
        )
    })
}

/// What only a shell knows, unless a program has the name, too.
const SHELL: [&str; 12] =
    ["cd", "eval", "exec", "export", "for", "if", "set", "source", "trap", "ulimit", "umask", "while"];

/// As `FOO=bar` does before a command.
fn sets_a_variable(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn without_interpreter(name: &[u8]) -> String {
    let remedy = if name.ends_with(b"\r") {
        "end its lines as Linux does: it has those of Windows"
    } else {
        "correct its first line, or install that"
    };
    format!("needs the interpreter {}, which does not exist; {remedy}", quoted(&String::from_utf8_lossy(name)))
}

fn complaint(command: &OsStr, path: &OsStr, error: Errno) -> String {
    let has_slash = command.as_bytes().contains(&b'/');
    let is_a_line = command.as_bytes().contains(&b' ');
    let text = command.to_string_lossy();
    match error {
        Errno::ENOENT | Errno::ENOTDIR if text.starts_with('-') => {
            "begins like an option; our options stand before --, and the command after it".into()
        }
        Errno::ENOENT | Errno::ENOTDIR if text.starts_with(['\u{2012}', '\u{2013}', '\u{2014}', '\u{2212}']) => {
            "begins with a long dash, as some editors make of --; write two hyphens".into()
        }
        Errno::ENOENT if SHELL.contains(&&*text) => {
            "is a word of the shell, and none is used: write sh -c and the line".into()
        }
        Errno::ENOENT if ctl::command().find_subcommand(command).is_some() => {
            format!("is a command of {}: write {0} {text}", ctl::PROGRAM)
        }
        Errno::ENOENT | Errno::ENOTDIR if is_a_line => {
            "is not a program; no shell is used: write the words as separate arguments, or write sh -c and the line"
                .into()
        }
        Errno::ENOENT | Errno::ENOTDIR if sets_a_variable(&text) => {
            format!("sets a variable; no shell is used: write env {} and the command", printable(&text))
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

fn find(command: &OsStr, path: &OsStr, is_certain: IsCertain) -> Result<(), Lack> {
    if command.is_empty() {
        return Err(Lack::Itself(Errno::ENOENT));
    }
    if command.as_bytes().contains(&b'/') {
        return executable(Path::new(command), is_certain);
    }
    let mut failure = Lack::Itself(Errno::ENOENT);
    for directory in path.as_bytes().split(|byte| *byte == b':') {
        // An empty entry in PATH is the current directory.
        let directory = if directory.is_empty() { b"." } else { directory };
        match executable(&PathBuf::from(OsStr::from_bytes(directory)).join(command), is_certain) {
            Ok(()) => return Ok(()),
            Err(lack @ (Lack::Itself(Errno::EACCES | Errno::EISDIR) | Lack::Interpreter(_))) => failure = lack,
            Err(Lack::Itself(_)) => {}
        }
    }
    Err(failure)
}

fn executable(file: &Path, is_certain: IsCertain) -> Result<(), Lack> {
    eaccess(file, AccessFlags::F_OK).map_err(Lack::Itself)?;
    if file.is_dir() {
        return Err(Lack::Itself(Errno::EISDIR));
    }
    eaccess(file, AccessFlags::X_OK).map_err(Lack::Itself)?;
    match missing_interpreter(file) {
        Some(name) if is_certain() => Err(Lack::Interpreter(name)),
        _ => Ok(()),
    }
}

/// The interpreter of a script, if that is not there.
fn missing_interpreter(file: &Path) -> Option<Vec<u8>> {
    if !fs::metadata(file).is_ok_and(|found| found.is_file()) {
        return None;
    }
    let mut head = Vec::new();
    let bytes = u64::try_from(HEAD).unwrap_or_default();
    // Who holds it by a file lease (`fcntl(2)`) may take his time: the guard will wait for him.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(file).ok()?;
    file.take(bytes).read_to_end(&mut head).ok()?;
    let name = interpreter(&head)?;
    // A relative one depends on the directory of the command.
    let path = Path::new(OsStr::from_bytes(name));
    let is_missing = path.is_absolute() && fs::metadata(path).is_err_and(|why| why.kind() == io::ErrorKind::NotFound);
    is_missing.then(|| name.to_owned())
}

/// As `execve(2)` reads the beginning of a file. `None`: no script, or one that it takes for none.
fn interpreter(head: &[u8]) -> Option<&[u8]> {
    let line = head.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let start = line.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
    let mut words = line.get(start..)?.split(|byte| matches!(byte, b' ' | b'\t' | 0));
    let name = words.next().filter(|name| !name.is_empty())?;
    // It may be longer than what was read.
    let is_whole = head.len() < HEAD || head.contains(&b'\n') || words.next().is_some();
    is_whole.then_some(name)
}

/// Whether no format was registered that may take a script before the kernel looks for its interpreter (`binfmt_misc`). In doubt
/// there is one.
pub fn only_the_kernel_knows_scripts() -> bool {
    are_scripts_left(fs::read_to_string("/proc/filesystems"), Path::new("/proc/sys/fs/binfmt_misc"))
}

fn are_scripts_left(file_systems: io::Result<String>, formats: &Path) -> bool {
    if file_systems.is_ok_and(|known| !known.contains("binfmt_misc")) {
        return true;
    }
    // In a container they are in force, and often not to be seen.
    let is_seen = formats.join("status").exists();
    let Some(entries) = fs::read_dir(formats).ok().filter(|_| is_seen) else { return false };
    entries.flatten().all(|entry| {
        let is_control = entry.file_name() == "register" || entry.file_name() == "status";
        is_control || fs::read_to_string(entry.path()).is_ok_and(|format| takes_no_script(&format))
    })
}

/// A format that is known by its first byte, which is another than that of a script.
fn takes_no_script(format: &str) -> bool {
    let line = |begins: &str| format.lines().find_map(|line| line.strip_prefix(begins));
    let is_first = line("offset ") == Some("0") && line("mask ").is_none_or(|mask| mask.starts_with("ff"));
    format.starts_with("disabled") || is_first && line("magic ").is_some_and(|magic| !magic.starts_with("23"))
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
        let status =
            |command: &str| check(OsStr::new(command), Some(OsStr::new(&path)), &|| true).map_err(|error| error.status);
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
    fn who_meant_the_other_program_is_told() {
        let said = |command: &str| {
            check(OsStr::new(command), Some(OsStr::new("/nonexistent")), &|| true).unwrap_err().sentence
        };
        assert!(said("status").ends_with("'status' is a command of zk-leaderctl: write zk-leaderctl status"));
        assert!(said("statues").contains("was not found in PATH"));
    }

    #[test]
    fn a_later_place_in_path_makes_up_for_an_earlier_one() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("sh"), "").unwrap();
        let path = format!("{}:/bin", place.path().display());
        assert_eq!(check(OsStr::new("sh"), Some(OsStr::new(&path)), &|| true), Ok(()));
        assert_eq!(check(OsStr::new("sh"), None, &|| true), Ok(()));
    }

    /// What `execve(2)` says of each is what decides: none is refused that it would execute.
    #[test]
    fn a_script_is_refused_if_its_interpreter_is_not_there() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).display().to_string();
        let script = |first_line: &str| {
            let file = place.path().join("script");
            fs::write(&file, first_line).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
            check(file.as_os_str(), None, &|| true).map_err(|error| (error.status, error.sentence))
        };
        for missing in ["#!/usr/bin/nonesuch\n", "#! \t/usr/bin/nonesuch -x\n", "#!/usr/bin/nonesuch", "#!/bin/sh\r\n"]
        {
            let (status, said) = script(missing).expect_err(missing);
            assert_eq!(status, Status::NotFound, "{said}");
            let rest = if missing.contains('\r') {
                r"needs the interpreter '/bin/sh\r', which does not exist; end its lines as Linux does: it has those of Windows"
            } else {
                "needs the interpreter '/usr/bin/nonesuch', which does not exist; correct its first line, or install that"
            };
            assert!(said.ends_with(rest), "{said}");
        }
        fs::write(place.path().join("inner"), "#!/usr/bin/nonesuch\n").unwrap();
        let long = format!("#!/{}\n", "x".repeat(HEAD));
        let inner = format!("#!{}\n", path("inner"));
        let taken =
            ["", "\x7fELF", "echo\n", "#!\n", "#!  \t\n", "#!/bin/sh", "#!/bin/sh -e\n", "#!/usr/bin/env nonesuch\n"];
        for taken in taken.into_iter().chain(["#!nonesuch\n", "#!./nonesuch\n", "#!/\n", &long, &inner]) {
            assert_eq!(script(taken), Ok(()), "{taken:?}");
        }
        script("#!/usr/bin/nonesuch\n").ok();
        assert_eq!(check(OsStr::new(&path("script")), None, &|| false), Ok(()), "a step may bring it");
    }

    #[test]
    fn a_format_that_may_take_scripts_is_told_from_one_that_takes_none() {
        let format = |rest: &str| format!("enabled\ninterpreter /usr/bin/x\nflags: F\n{rest}\n");
        let place = tempfile::tempdir().unwrap();
        let left = |text: &str| are_scripts_left(Ok(text.to_owned()), place.path());
        assert!(left("nodev\tproc\n"), "no format can be registered");
        assert!(!left("nodev\tbinfmt_misc\n"), "they cannot be seen");
        fs::write(place.path().join("status"), "enabled\n").unwrap();
        let left_beside = |entry: &str| {
            fs::write(place.path().join("entry"), entry).unwrap();
            left("nodev\tbinfmt_misc\n")
        };
        assert!(left_beside(&format("offset 0\nmagic 7f454c46\nmask ffffff00")));
        assert!(left_beside(&format("offset 0\nmagic cafebabe")) && left_beside("disabled\nextension .py\n"));
        let perhaps =
            ["extension .py", "offset 0\nmagic 2321", "offset 4\nmagic 7f", "offset 0\nmagic 7f45\nmask 00ff"];
        for perhaps in perhaps {
            assert!(!left_beside(&format(perhaps)), "{perhaps}");
        }
    }
}
