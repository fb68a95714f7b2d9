//! A terminal of 100 columns, by a tmux server of its own.

use std::path::Path;
use std::process::{Command, Output};

use super::wait;

const HELP: &str = "this test looks at a terminal: apt-get install tmux";

pub const LOG: &str = "log";

/// Dropped: the server and what runs on it are gone.
pub struct Terminal {
    directory: tempfile::TempDir,
}

impl Terminal {
    /// So many lines, on which this runs.
    pub fn of(lines: u16, command: &[&str]) -> Self {
        let terminal = Self { directory: tempfile::tempdir().unwrap() };
        let lines = lines.to_string();
        let made = terminal
            .tmux(&[&["new-session", "-d", "-x", "100", "-y", &lines, "-c", terminal.path()], command].concat());
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        terminal
    }

    /// Where the command runs.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn path(&self) -> &str {
        self.directory().to_str().unwrap()
    }

    pub fn tmux(&self, words: &[&str]) -> Output {
        let socket = self.directory().join("tmux");
        let mut tmux = Command::new("tmux");
        tmux.env_remove("TMUX").env("LC_ALL", "C.UTF-8").arg("-S").arg(socket).args(["-f", "/dev/null"]).args(words);
        tmux.output().expect(HELP)
    }

    pub fn types(&self, key: &str) {
        assert!(self.tmux(&["send-keys", key]).status.success());
    }

    /// Without blanks at the ends of lines and empty lines at the end; a line that was wrapped is one.
    pub fn screen(&self) -> String {
        let captured = self.tmux(&["capture-pane", "-p", "-J"]);
        let screen = String::from_utf8(captured.stdout).unwrap();
        screen.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n") + "\n"
    }

    /// The line at the foot.
    pub fn foot(&self) -> String {
        self.screen().lines().last().unwrap_or_default().to_owned()
    }

    /// The screen on which it stands.
    #[track_caller]
    pub fn until_shown(&self, text: &str) -> String {
        let mut screen = String::new();
        let found = wait::held_within(wait::LIMIT, || {
            screen = self.screen();
            screen.contains(text)
        });
        assert!(found, "{text:?} was never shown on\n{screen}{}", self.log());
        screen
    }

    /// What the command wrote to a file of this name, if it did.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory().join(LOG)).unwrap_or_default()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
