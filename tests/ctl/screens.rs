//! What an operator sees on a terminal: screens of tmux, kept with times, names and numbers made alike.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::{election, server};
use crate::support::{Election, wait};

const HELP: &str = "this test looks at a terminal: apt-get install tmux";

/// A terminal of 100 columns with one command on it, by a tmux server of its own. Dropped: both are gone.
struct Terminal(tempfile::TempDir);

impl Terminal {
    fn shows(words: &[&str]) -> Self {
        let terminal = Self(tempfile::tempdir().unwrap());
        let program = env!("CARGO_BIN_EXE_zk-leaderctl");
        let line = format!("{program} -z {} {}; read -r line", server().connect_string(), words.join(" "));
        let made =
            terminal.tmux(&["new-session", "-d", "-x", "100", "-y", "24", "env", "USER=operator", "sh", "-c", &line]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        terminal
    }

    fn tmux(&self, words: &[&str]) -> Output {
        let socket = self.0.path().join("tmux");
        let mut tmux = Command::new("tmux");
        tmux.env_remove("TMUX").env("LC_ALL", "C.UTF-8").arg("-S").arg(socket).args(["-f", "/dev/null"]).args(words);
        tmux.output().expect(HELP)
    }

    fn screen(&self) -> String {
        let captured = self.tmux(&["capture-pane", "-p", "-J"]);
        let screen = String::from_utf8(captured.stdout).unwrap();
        screen.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n") + "\n"
    }

    #[track_caller]
    fn until_shown(&self, text: &str) -> String {
        let found = wait::held_within(wait::LIMIT, || self.screen().contains(text));
        assert!(found, "{text:?} never stood on\n{}", self.screen());
        self.screen()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// How far a stop has come is told as it is seen: more on a slow machine.
const IN_PASSING: [&str; 4] = [" is stopping", " is releasing", " is following", " has released"];

/// Times, ages, numbers and our names are made alike; columns close up.
fn alike(screen: &str, election: &Election) -> String {
    let host = nix::unistd::gethostname().unwrap().into_string().unwrap();
    let mut text = String::new();
    for line in screen.replace(&format!("/zk-leader-run/{}", election.name), "/zk-leader-run/nightly").lines() {
        if IN_PASSING.iter().any(|passing| line.contains(passing)) {
            continue;
        }
        let words: Vec<_> = line.split_whitespace().map(|word| word_alike(word, &host)).collect();
        text += &(words.join(" ") + "\n");
    }
    text
}

fn word_alike(word: &str, host: &str) -> String {
    let bare = word.trim_matches(|letter: char| "(),:;".contains(letter));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_age = ["ms", "s", "m"]
        .iter()
        .any(|unit| bare.strip_suffix(unit).is_some_and(|number| digits(&number.replace('.', ""))));
    let new = match bare {
        _ if bare.len() == 10 && bare.matches('-').count() == 2 => "DATE",
        _ if bare.len() == 8 && bare.matches(':').count() == 2 => "TIME",
        _ if is_age => "AGE",
        _ if digits(bare) && bare.len() > 1 => "NUMBER",
        _ if bare == host => "HOST",
        _ => return word.to_owned(),
    };
    word.replace(bare, new)
}

/// Compares with a file of `tests/golden`; `UPDATE=1` rewrites it.
#[track_caller]
fn is_as_kept(name: &str, screen: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, screen).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(screen, kept, "{} differs; UPDATE=1 accepts it", path.display());
}

/// `a` leads with the lease of its session timeout, `b` and `c` wait; all have said who they are.
fn three(election: &Election) -> Vec<crate::support::Running> {
    let mut hosts = Vec::new();
    for id in ["a", "b", "c"] {
        hosts.push(election.host(id).spawn());
        election.until_candidates(hosts.len());
        wait::until("it has said who it is", || election.admin.exists(&election.path(&format!("members/{id}"))));
    }
    election.diary.until_started(1);
    hosts
}

#[test]
fn the_screens_of_status_disable_and_handover_are_as_they_were_reviewed() {
    let election = election();
    let _hosts = three(&election);
    let mut screens = String::new();
    let asked: [(&[&str], &str); 4] = [
        (&["status"], "3  c"),
        (&["handover", "--to", "c"], "c leads, token"),
        (&["disable", "--reason", "'upgrade of the database'", "--for", "1h", "--wait"], "no command runs"),
        (&["enable", "--wait"], " leads"),
    ];
    for (words, last) in asked {
        let typed = [&words[..1], &[election.name.as_str()], &words[1..]].concat();
        let screen = Terminal::shows(&typed).until_shown(last);
        write!(screens, "$ zk-leaderctl {}\n{}\n", words.join(" "), alike(&screen, &election)).ok();
    }
    is_as_kept("ctl-screens.txt", &screens);
}

#[test]
fn the_live_view_follows_the_election() {
    let election = election();
    let hosts = three(&election);
    let terminal = Terminal::shows(&["status", &election.name, "--watch"]);
    terminal.until_shown("leader    a (pid ");
    hosts[0].signal(nix::sys::signal::Signal::SIGTERM);
    let screen = terminal.until_shown("leader    b (pid ");
    assert!(screen.contains("every second, Ctrl-C ends it"), "{screen}");
    let found = wait::held_within(wait::LIMIT, || !terminal.screen().contains("1  a "));
    assert!(found, "what is gone is written over:\n{}", terminal.screen());
}
