//! What people see on a terminal while they wait: a screen of tmux, kept with times and names made alike.

use std::path::PathBuf;
use std::process::{Command, Output};

use super::{election, link};
use crate::support::{Subject, wait};

const HELP: &str = "this test looks at a terminal: apt-get install tmux";

/// A terminal of 100 columns, on which one program runs, by a tmux server of its own; high enough for all that the client
/// library may say of its tries. Dropped: both are gone.
struct Terminal {
    directory: tempfile::TempDir,
}

impl Terminal {
    fn runs(host: &Subject) -> Self {
        let terminal = Self { directory: tempfile::tempdir().unwrap() };
        let process = host.to_process();
        let mut typed = vec![process.get_program().to_owned()];
        typed.extend(process.get_args().map(ToOwned::to_owned));
        let typed = typed.iter().map(|word| format!("'{}'", word.to_str().unwrap())).collect::<Vec<_>>().join(" ");
        let line = format!("{typed}; echo \"status $?\"; read -r line");
        let made =
            terminal.tmux(&["new-session", "-d", "-x", "100", "-y", "60", "env", "NO_COLOR=1", "sh", "-c", &line]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        terminal
    }

    fn tmux(&self, words: &[&str]) -> Output {
        let socket = self.directory.path().join("tmux");
        let mut tmux = Command::new("tmux");
        tmux.env_remove("TMUX").env("LC_ALL", "C.UTF-8").arg("-S").arg(socket).args(["-f", "/dev/null"]).args(words);
        tmux.output().expect(HELP)
    }

    fn types(&self, key: &str) {
        assert!(self.tmux(&["send-keys", key]).status.success());
    }

    /// Without the empty lines at the end; a line that was wrapped is one.
    fn screen(&self) -> String {
        let captured = self.tmux(&["capture-pane", "-p", "-J"]);
        String::from_utf8(captured.stdout).unwrap().trim_end().to_owned() + "\n"
    }

    /// The line at the foot.
    fn foot(&self) -> String {
        self.screen().lines().last().unwrap_or_default().to_owned()
    }

    #[track_caller]
    fn until_foot(&self, text: &str) {
        let found = wait::held_within(wait::LIMIT, || self.foot().contains(text));
        assert!(found, "{text:?} never stood at the foot of\n{}", self.screen());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_line_at_the_foot_of_the_terminal_tells_who_leads_and_is_gone_before_the_command_starts() {
    let election = election();
    let holder = election.host("holder").spawn();
    election.diary.until_started(1);
    let other = election.host("other").spawn();
    election.until_candidates(2);
    let link = link();
    let host = election.host_behind(&link, "here").session_timeout("20s").option("--log-level", "info");
    let host = host.option("--contain", "subreaper").flag("--foreground");
    let terminal = Terminal::runs(&host.command(&["sh", "-c", "read -r line; echo \"it read $line\""]));
    terminal.until_foot("3rd in line; holder leads since ");
    let mut screens = vec![terminal.screen()];
    // The line moves up, and nobody tells those behind: the line finds out.
    drop(other);
    terminal.until_foot("2nd in line; holder leads since ");
    // A log line comes, and the line stays at the foot.
    link.cut();
    terminal.until_foot("no answer from ");
    link.heal();
    terminal.until_foot("2nd in line; ");
    screens.push(terminal.screen());
    holder.signal(nix::sys::signal::Signal::SIGTERM);
    terminal.until_foot("Command started");
    terminal.types("abc");
    terminal.types("Enter");
    terminal.until_foot("status ");
    screens.push(terminal.screen());
    let screens = screens.iter().map(|screen| normalised(screen)).collect::<Vec<_>>();
    golden("tests/golden/screen-waiting.txt", &screens.join("----\n"));
}

#[test]
fn where_standard_error_is_no_terminal_nothing_is_drawn() {
    let election = election();
    let _holder = election.host("holder").spawn();
    election.diary.until_started(1);
    let waits = election.host("waits").env("TERM", "xterm").spawn();
    election.until_candidates(2);
    waits.until_logged("Session was opened");
    wait::pass(super::millis(2500));
    assert!(!waits.log().contains(['\r', '\x1b']) && !waits.log().contains("waiting "), "{}", waits.log());
}

/// Whatever differs from run to run: times of day, lengths of time, ports, sessions, numbers of processes and elections; and
/// what the client library says of its tries.
fn normalised(screen: &str) -> String {
    let mut alike = String::new();
    for line in screen.lines().filter(|line| !line.contains("target=zookeeper_client")) {
        let words = line.split(' ').map(|word| {
            let bare = word.trim_end_matches([':', ';', ',']);
            let numbers = bare.replace(|letter: char| letter.is_ascii_digit(), "0");
            match bare.split_once('=') {
                Some((name, _)) if bare.bytes().any(|byte| byte.is_ascii_digit()) => format!("{name}=N"),
                _ if bare.starts_with("zk-leader-run[") => "zk-leader-run[NAME".to_owned(),
                _ if numbers.ends_with("00Z") && bare.contains('T') => word.replace(bare, "DATE"),
                _ if numbers.ends_with("00:00Z") || numbers.ends_with("00.000Z") => word.replace(bare, "TIME"),
                _ if numbers.starts_with("000.0.0.0:") => word.replace(bare, "SERVER"),
                _ if numbers == "0s" || numbers == "00s" => word.replace(bare, "WHILE"),
                _ => word.to_owned(),
            }
        });
        alike.push_str(words.collect::<Vec<_>>().join(" ").trim_end());
        alike.push('\n');
    }
    alike
}

fn golden(file: &str, actual: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE").is_some_and(|update| update == "1") {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == actual,
        "{file} is stale; rewrite it with UPDATE=1 and look at the difference. It would be:\n{actual}"
    );
}
