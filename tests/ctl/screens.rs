//! What an operator sees on a terminal: screens of tmux, kept with times, names and numbers made alike.

use std::fmt::Write as _;

use super::failures::NOBODY;
use super::{election, server};
use crate::support::golden::golden;
use crate::support::terminal::Terminal;
use crate::support::{Election, wait};

fn shows(words: &[&str]) -> Terminal {
    let program = env!("CARGO_BIN_EXE_zk-leaderctl");
    let line = format!("{program} -z {} {}; read -r line", server().connect_string(), words.join(" "));
    Terminal::of(24, &["env", "USER=operator", "sh", "-c", &line])
}

/// How far a stop has come is told as it is seen: more on a slow machine.
const IN_PASSING: [&str; 5] = [" is stopping", " is releasing", " is following", " has released", "c is told to stop"];

/// Times, ages, numbers and our names are made alike; columns close up.
pub fn alike(screen: &str, election: &Election) -> String {
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
        _ if is_date(bare) => "DATE",
        _ if is_time(bare) => "TIME",
        _ if is_age => "AGE",
        _ if digits(bare) && bare.len() > 1 => "NUMBER",
        _ if bare == host => "HOST",
        _ if bare.split_once('@').is_some_and(|(_, at)| at == host) => "operator@HOST",
        _ => return word.to_owned(),
    };
    word.replace(bare, new)
}

/// `2026-11-21`.
pub fn is_date(word: &str) -> bool {
    word.len() == 10 && word.matches('-').count() == 2
}

/// `03:00:00`.
pub fn is_time(word: &str) -> bool {
    word.len() == 8 && word.matches(':').count() == 2
}

/// `a` leads, `b` and `c` wait; all have said who they are.
fn three(election: &Election) -> Vec<crate::support::Running> {
    let mut hosts = Vec::new();
    for id in ["a", "b", "c"] {
        hosts.push(election.steady_host(id).spawn());
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
        let screen = shows(&typed).until_shown(last);
        write!(screens, "$ zk-leaderctl {}\n{}\n", words.join(" "), alike(&screen, &election)).ok();
    }
    golden("tests/golden/ctl-screens.txt", &screens);
}

#[test]
fn the_live_view_follows_the_election() {
    let election = election();
    let hosts = three(&election);
    let terminal = shows(&["status", &election.name, "--watch"]);
    terminal.until_shown("leader    a (pid ");
    hosts[0].signal(nix::sys::signal::Signal::SIGTERM);
    let screen = terminal.until_shown("leader    b (pid ");
    assert!(screen.contains("every second, Ctrl-C ends it"), "{screen}");
    let found = wait::held_within(wait::LIMIT, || !terminal.screen().contains("1  a "));
    assert!(found, "what is gone is written over:\n{}", terminal.screen());
}

/// Below a root of their own, so that they fit on the screen.
#[test]
fn the_live_list_shows_trouble_first_and_the_rest_of_each_lease() {
    let (well, ill) = (election(), election());
    let root = format!("/live-{}", well.name);
    let host = |election: &Election, id: &str| {
        election.steady_host(id).without("--name").option("--path", &format!("{root}/{}", election.name))
    };
    let _leader = host(&well, "a").spawn();
    well.diary.until_started(1);
    assert_eq!(host(&ill, "prepares").command(&["true"]).spawn().code(), 0);
    let terminal = shows(&["list", "--watch", "--path", &root]);
    let screen = terminal.until_shown("nobody leads");
    assert!(screen.contains("LEASE") && screen.contains("list, every second, Ctrl-C ends it"), "{screen}");
    let names: Vec<_> = screen.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.ends_with(&[&ill.name, &well.name]), "trouble first:\n{screen}");
    let _later = host(&ill, "later").spawn();
    wait::until("the new leader is shown", || {
        let screen = terminal.screen();
        let row = screen.lines().find(|line| line.starts_with(&format!("{} ", ill.name)));
        row.is_some_and(|row| row.contains(" later ") && row.ends_with(" led"))
    });
}

#[test]
fn the_live_history_shows_a_term_as_soon_as_it_has_begun() {
    let election = election();
    let hosts = three(&election);
    let terminal = shows(&["history", &election.name, "--watch", "-n", "1"]);
    terminal.until_shown("  a  ");
    hosts[0].signal(nix::sys::signal::Signal::SIGTERM);
    let screen = terminal.until_shown("  b  ");
    assert!(!screen.contains("  a  "), "one line was asked for:\n{screen}");
}

/// A screen of 24 lines, and 30 terms.
#[test]
fn a_history_that_is_too_long_for_the_screen_shows_its_end() {
    let election = election();
    election.prepare();
    let term = |number: i64| {
        format!(
            r#"{{"slot":0,"term":{number},"token":{},"id":"a","host":"h","since":{},"until":{},"takeover":"free","ended":"exited"}}"#,
            900 + number,
            number * 1000,
            number * 1000 + 500
        )
    };
    let terms: Vec<_> = (1..=30).map(term).collect();
    election.admin.set(&election.path("history"), &format!(r#"{{"v":1,"terms":[{}]}}"#, terms.join(",")));
    let terminal = shows(&["history", &election.name, "--watch"]);
    terminal.until_shown("too small");
    // The last line of it.
    let screen = terminal.until_shown(" 930 ");
    let has = |token: &str| screen.split_whitespace().any(|word| word == token);
    assert!(has("930") && has("TOKEN") && !has("901"), "{screen}");
}

#[test]
fn the_live_list_shows_all_of_what_is_wrong_with_the_servers() {
    let program = env!("CARGO_BIN_EXE_zk-leaderctl");
    let servers = [NOBODY; 4].join(",");
    let terminal = Terminal::of(24, &["sh", "-c", &format!("{program} -z {servers} list --watch; read -r line")]);
    let screen = terminal.until_shown("check --connect");
    assert!(screen.lines().all(|line| line.chars().count() <= 100), "{screen}");
}
