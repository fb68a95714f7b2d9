//! What people see on a terminal while they wait: a screen of tmux, kept with times and names made alike.

use nix::sys::signal::Signal;

use super::{election, link};
use crate::support::golden::golden;
use crate::support::terminal::{LOG, Terminal};
use crate::support::{Election, Subject, wait};

/// High enough for all that the client library may say of its tries.
const LINES: u16 = 60;

/// A host and nothing else, until a key is pressed.
fn runs(host: &Subject) -> Terminal {
    let line = format!("{}; echo \"status $?\"; read -r line", words(host));
    Terminal::of(LINES, &["env", "NO_COLOR=1", "sh", "-c", &line])
}

/// An interactive shell, and in it a script that becomes the host.
fn shell(host: &Subject) -> Terminal {
    let terminal = Terminal::of(LINES, &["env", "PS1=shell> ", "bash", "--norc", "--noprofile", "-i"]);
    std::fs::write(terminal.directory().join("job"), format!("exec {} 2>{LOG}\n", words(host))).unwrap();
    terminal.until_shown("shell>");
    terminal
}

/// As it is typed.
fn words(host: &Subject) -> String {
    let process = host.to_process();
    let words = std::iter::once(process.get_program()).chain(process.get_args());
    words.map(|word| format!("'{}'", word.to_str().unwrap())).collect::<Vec<_>>().join(" ")
}

fn enters(terminal: &Terminal, line: &str) {
    terminal.types(line);
    terminal.types("Enter");
}

/// Waits until the terminal is this program's: what is typed before may be read by another, or in another mode.
#[track_caller]
fn until_it_is_of(terminal: &Terminal, program: &str) {
    let said =
        || String::from_utf8(terminal.tmux(&["display-message", "-p", "#{pane_current_command}"]).stdout).unwrap();
    let found = wait::held_within(wait::LIMIT, || said().trim() == program);
    assert!(found, "the terminal is {}'s and never {program}'s:\n{}", said(), terminal.screen());
}

#[track_caller]
fn until_started(terminal: &Terminal) {
    let found = wait::held_within(wait::LIMIT, || terminal.log().contains("Command started"));
    assert!(found, "the command never started:\n{}{}", terminal.screen(), terminal.log());
}

#[track_caller]
fn until_foot(terminal: &Terminal, text: &str) {
    let found = wait::held_within(wait::LIMIT, || terminal.foot().contains(text));
    assert!(found, "{text:?} never stood at the foot of\n{}", terminal.screen());
}

#[test]
fn a_line_at_the_foot_of_the_terminal_tells_who_leads_and_is_gone_before_the_command_starts() {
    let election = election();
    let holder = election.steady_host("holder").spawn();
    election.diary.until_started(1);
    let other = election.steady_host("other").spawn();
    election.until_candidates(2);
    let link = link();
    let host = election.host_behind(&link, "here").session_timeout("20s").option("--log-level", "info");
    let host = host.option("--contain", "subreaper").flag("--foreground");
    let terminal = runs(&host.command(&["sh", "-c", "read -r line; echo \"it read $line\""]));
    until_foot(&terminal, "3rd in line; holder leads since ");
    let mut screens = vec![terminal.screen()];
    // The line moves up, and nobody tells those behind: the line finds out.
    other.signal(Signal::SIGTERM);
    until_foot(&terminal, "2nd in line; holder leads since ");
    // A log line comes, and the line stays at the foot.
    link.cut();
    until_foot(&terminal, "no answer from ");
    link.heal();
    until_foot(&terminal, "2nd in line; ");
    screens.push(terminal.screen());
    holder.signal(Signal::SIGTERM);
    until_foot(&terminal, "Command started");
    terminal.types("abc");
    terminal.types("Enter");
    wait::until("the shell tells the status", || terminal.foot().starts_with("status "));
    screens.push(terminal.screen());
    let screens = screens.iter().map(|screen| normalised(screen)).collect::<Vec<_>>();
    golden("tests/golden/screen-waiting.txt", &screens.join("----\n"));
}

/// The record still says that it leads.
#[test]
fn the_line_says_so_if_the_leader_is_cut_off_and_may_live_on_promises() {
    let election = election();
    let link = link();
    let vouches = |host: Subject| host.session_timeout("4s").flag("--vouch");
    let _holder = vouches(election.host_behind(&link, "holder")).spawn();
    election.diary.until_started(1);
    let terminal = runs(&vouches(election.host("here")));
    until_foot(&terminal, "in line; holder leads since ");
    wait::until("the record names us", || election.record()["roster"][0]["id"] == "here");
    link.stall();
    until_foot(&terminal, "1st in line; holder is cut off or dead");
}

#[test]
fn where_standard_error_is_no_terminal_nothing_is_drawn() {
    let election = election();
    let _holder = election.steady_host("holder").spawn();
    election.diary.until_started(1);
    let waits = election.steady_host("waits").env("TERM", "xterm").spawn();
    election.until_candidates(2);
    waits.until_logged("Session was opened");
    wait::pass(super::millis(2500));
    assert!(!waits.log().contains(['\r', '\x1b']) && !waits.log().contains("waiting "), "{}", waits.log());
}

const READS: &str = "while read -r line; do echo \"it read $line\"; done";

/// Of a process: how often it went to sleep.
fn sleeps(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

fn in_the_foreground(election: &Election, contain: &str) -> Subject {
    let host = election.steady_host("here").option("--contain", contain).flag("--foreground");
    host.command(&["sh", "-c", READS])
}

#[test]
fn ctrl_z_gives_the_terminal_back_to_the_shell_and_fg_continues_the_command() {
    for contain in ["subreaper", "pid-namespace"] {
        let election = election();
        let terminal = shell(&in_the_foreground(&election, contain));
        enters(&terminal, "sh job");
        until_started(&terminal);
        until_it_is_of(&terminal, "sh");
        enters(&terminal, "one");
        terminal.until_shown("it read one");
        for word in ["two", "three"] {
            terminal.types("C-z");
            until_it_is_of(&terminal, "bash");
            enters(&terminal, &format!("echo \"shell, \"{word}"));
            terminal.until_shown(&format!("shell, {word}"));
            enters(&terminal, "fg");
            until_it_is_of(&terminal, "sh");
            enters(&terminal, word);
            terminal.until_shown(&format!("it read {word}"));
        }
        terminal.types("C-d");
        wait::until("the command has ended", || election.state() == "free");
        until_it_is_of(&terminal, "bash");
        enters(&terminal, "echo \"status \"$?");
        terminal.until_shown("status 0");
    }
}

/// Bash sends no SIGCONT to a job that runs.
#[test]
fn a_command_that_ran_in_the_background_has_the_terminal_after_fg_though_it_reads_nothing() {
    for contain in ["subreaper", "pid-namespace"] {
        let election = election();
        let host = election.steady_host("here").option("--contain", contain).flag("--foreground");
        let terminal = shell(&host.command(&["sleep", "1000"]));
        enters(&terminal, "sh job");
        until_started(&terminal);
        until_it_is_of(&terminal, "sleep");
        terminal.types("C-z");
        until_it_is_of(&terminal, "bash");
        enters(&terminal, "bg");
        terminal.until_shown("[1]+ sh job &");
        enters(&terminal, "fg");
        until_it_is_of(&terminal, "sleep");
        terminal.types("C-c");
        wait::until("the command has ended", || election.state() == "free");
        until_it_is_of(&terminal, "bash");
    }
}

#[test]
fn a_command_that_reads_the_terminal_in_the_background_stops_its_job_and_fg_continues_it() {
    for contain in ["subreaper", "pid-namespace"] {
        let election = election();
        let terminal = shell(&in_the_foreground(&election, contain));
        // The shell says at once what becomes of its jobs.
        enters(&terminal, "set -b");
        enters(&terminal, "sh job &");
        // It may stand still before it can log the start.
        terminal.until_shown("Stopped");
        let guard = wait::for_some("there is a guard", || guard_of(&election));
        let before = sleeps(guard);
        wait::pass(super::secs(1));
        assert!(sleeps(guard) - before < 1_000, "the guard is busy");
        enters(&terminal, "fg");
        until_it_is_of(&terminal, "sh");
        enters(&terminal, "a line");
        terminal.until_shown("it read a line");
        terminal.types("C-d");
        wait::until("the command has ended", || election.state() == "free");
    }
}

#[test]
fn a_command_in_the_background_does_not_read_what_is_typed_for_the_shell() {
    let election = election();
    let host = election.steady_host("here").command(&["sh", "-c", READS]);
    let terminal = shell(&host);
    enters(&terminal, "sh job &");
    until_started(&terminal);
    wait::until("the command has read to the end", || election.state() == "free");
    enters(&terminal, "echo \"shell, \"one");
    terminal.until_shown("shell, one");
    assert!(!terminal.screen().contains("it read"), "{}", terminal.screen());
}

#[test]
fn a_command_in_the_foreground_of_a_terminal_reads_it_without_an_option() {
    let election = election();
    let terminal = shell(&election.steady_host("here").command(&["sh", "-c", READS]));
    enters(&terminal, "sh job");
    until_started(&terminal);
    enters(&terminal, "a line");
    terminal.until_shown("it read a line");
    terminal.types("C-d");
    wait::until("the command has ended", || election.state() == "free");
}

/// The guard of the one host of this election, by its name and command line. (The host itself stands still with its job.) Another suite
/// may have an election of that name, at other servers.
fn guard_of(election: &Election) -> Option<i32> {
    let is_guard = |pid: &i32| {
        let of_process = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let line = of_process("cmdline");
        let has = |wanted: &str| line.split('\0').any(|word| word == wanted);
        of_process("comm").trim() == "zk-leader-guard" && has(&election.name) && has(election.servers())
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is_guard)
}

/// Whatever differs from run to run: times of day, lengths of time, ports, sessions, numbers of processes and elections; and
/// what the client library says of its tries.
fn normalised(screen: &str) -> String {
    let mut alike = String::new();
    let here = nix::unistd::gethostname().unwrap().into_string().unwrap();
    for line in screen.lines().filter(|line| !line.contains("target=zookeeper_client")) {
        let words = line.split(' ').map(|word| {
            let bare = word.trim_end_matches([':', ';', ',']);
            let numbers = bare.replace(|letter: char| letter.is_ascii_digit(), "0");
            match bare.split_once('=') {
                Some((name, _)) if bare.bytes().any(|byte| byte.is_ascii_digit()) => format!("{name}=N"),
                _ if bare.starts_with("zk-leader-run[") => "zk-leader-run[NAME".to_owned(),
                _ if numbers.ends_with("00Z") && bare.contains('T') => word.replace(bare, "DATE"),
                _ if numbers == "00:00:00" || numbers.ends_with("00.000Z") => word.replace(bare, "TIME"),
                _ if numbers.starts_with("000.0.0.0:") => word.replace(bare, "SERVER"),
                _ if bare == here => word.replace(bare, "HOST"),
                _ if numbers == "0s" || numbers == "00s" => word.replace(bare, "WHILE"),
                _ => word.to_owned(),
            }
        });
        alike.push_str(words.collect::<Vec<_>>().join(" ").trim_end());
        alike.push('\n');
    }
    alike
}
