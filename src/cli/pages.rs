//! `completions SHELL` and `man` print what a package places in the system's folders and `cargo install` does not: the files of
//! the tree that the tests keep up to date.
//!
//! Never: an election. A command that is called `man` or `completions` and nothing else stands behind `--`.

use std::ffi::OsString;

use super::{EarlyExit, Stream};
use crate::exit::Status;

/// What one program comes with.
pub struct Pages {
    program: &'static str,
    man: &'static str,
    completions: [(&'static str, &'static str); 3],
}

pub const RUN: Pages = Pages {
    program: "zk-leader-run",
    man: include_str!("../../docs/man/zk-leader-run.1"),
    completions: [
        ("bash", include_str!("../../packaging/completions/zk-leader-run.bash")),
        ("fish", include_str!("../../packaging/completions/zk-leader-run.fish")),
        ("zsh", include_str!("../../packaging/completions/_zk-leader-run")),
    ],
};

pub const CTL: Pages = Pages {
    program: "zk-leaderctl",
    man: include_str!("../../docs/man/zk-leaderctl.1"),
    completions: [
        ("bash", include_str!("../../packaging/completions/zk-leaderctl.bash")),
        ("fish", include_str!("../../packaging/completions/zk-leaderctl.fish")),
        ("zsh", include_str!("../../packaging/completions/_zk-leaderctl")),
    ],
};

impl Pages {
    /// The answer if these arguments, without the program's name, are one of the two questions.
    pub fn asked_for(&self, arguments: impl IntoIterator<Item = OsString>) -> Option<EarlyExit> {
        let words: Vec<_> = arguments.into_iter().take(4).collect();
        let is_help = |word: &OsString| word == "--help" || word == "-h";
        match words.as_slice() {
            [word, help] if word == "man" && is_help(help) => Some(self.help("man", "prints the manual page")),
            [word, help] | [word, _, help] if word == "completions" && is_help(help) => Some(self.help(
                "completions SHELL",
                "prints what that shell needs to complete the options; SHELL is bash, fish or zsh",
            )),
            [word] if word == "man" => Some(EarlyExit::answer(self.man)),
            [word] if word == "completions" => Some(self.no_such_shell("no shell")),
            [word, shell] if word == "completions" => Some(self.completions_of(&shell.to_string_lossy())),
            _ => None,
        }
    }

    /// No command is called so unless it stands behind `--`.
    fn help(&self, what: &str, does: &str) -> EarlyExit {
        EarlyExit::answer(format!("{} {what} {does}. It contacts no server.", self.program))
    }

    fn completions_of(&self, shell: &str) -> EarlyExit {
        let found = self.completions.iter().find(|(name, _)| *name == shell);
        found.map_or_else(
            || self.no_such_shell(&format!("{shell:?} is not a choice")),
            |(_, script)| EarlyExit::answer(*script),
        )
    }

    fn no_such_shell(&self, complaint: &str) -> EarlyExit {
        let text = format!("{}: completions: {complaint}; write bash, fish or zsh\n", self.program);
        EarlyExit { text, stream: Stream::Stderr, status: Status::Usage.code() }
    }
}
