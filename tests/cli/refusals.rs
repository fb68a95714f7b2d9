//! Mistakes: each is refused with its option or variable, its value and a remedy, before anything is connected.

use super::*;

#[test]
fn options_that_do_not_exist_or_lack_something_are_refused() {
    each_is_refused(&[
        typed(&[], 64, ["COMMAND", "no command", "zk-leader-run [OPTIONS] -- COMMAND"]),
        typed(&["--"], 64, ["COMMAND", "no command", "zk-leader-run [OPTIONS] -- COMMAND"]),
        typed(&["--sesion-timeout", "5s", "true"], 64, ["--sesion-timeout:", "no such option", "--session-timeout?"]),
        typed(&["-x", "true"], 64, ["-x:", "no such option", "--help"]),
        typed(&["--verbose", "true"], 64, ["--verbose:", "no such option", "write --log-level debug"]),
        typed(&["-n", "true"], 64, ["-n:", "no such option", "write --wait 0"]),
        typed(&["--servers", "zk1", "true"], 64, ["--servers:", "no such option", "write --connect and the servers"]),
        typed(&["--endpoints=zk1", "true"], 64, ["--endpoints:", "no such option", "write --connect and"]),
        typed(&["-server", "zk1", "true"], 64, ["-s:", "no such option", "or --connect and the servers"]),
        typed(&["--ttl", "9s", "true"], 64, ["--ttl:", "no such option", "write --session-timeout and a duration"]),
        typed(&["-k", "9", "true"], 64, ["-k:", "no such option", "write --stop-timeout and a duration"]),
        typed(&["--no-wait", "true"], 64, ["--no-wait:", "no such option", "write --wait 0"]),
        typed(&["-c", "true"], 64, ["-c:", "no such option", "write -- sh -c and the line"]),
        typed(&["--grace", "1s", "--wait", "true"], 64, ["COMMAND:", "'true' is the value of --wait", "-- COMMAND"]),
        typed(
            &["--log-format", "human", "--"],
            64,
            ["COMMAND:", "no command after -- (is a variable empty?)", "-- COMMAND"],
        ),
        typed(&["--slot", "--"], 64, ["COMMAND:", "'--' is the value of --slot", "-- COMMAND"]),
        typed(&["--a\nb", "true"], 64, [r"--a\nb:", "no such option", "--help"]),
        typed(&["--name"], 64, ["--name:", "a value is missing", "write --name NAME"]),
        typed(&["--dry-run=yes", "true"], 64, ["--dry-run:", "'yes'", "write --dry-run without a value"]),
        typed(
            &["--vouch=false", "true"],
            64,
            ["--vouch:", "'false'", "or set ZK_LEADER_RUN_VOUCH=false to turn off what the file turns on"],
        ),
    ]);
}

/// As `--slot $DAY -- COMMAND` is where `DAY` is not set: as a key, `--` would run the job once, and then never again.
#[test]
fn an_option_whose_value_is_missing_takes_no_other_word_for_it() {
    const MISSING: &str = "is a variable empty?";
    each_is_refused(&[
        typed(&["--slot", "--", "true"], 64, ["--slot:", "'--'", MISSING]),
        typed(&["--slot", "--retry-failed", "--", "true"], 64, ["--slot:", "'--retry-failed'", MISSING]),
        typed(&["--slot", "--wait=5s", "--", "true"], 64, ["--slot:", "'--wait=5s'", MISSING]),
        typed(&["--hook", "--", "true"], 64, ["--hook:", "'--'", MISSING]),
        typed(&["--wait", "--", "true"], 64, ["--wait:", "'--'", MISSING]),
        typed(&["--name", "--", "true"], 64, ["--name:", "a value is missing", "write --name NAME"]),
    ]);
    assert!(parse(&["--slot", "--2026", "true"], &[]).is_ok(), "no word of ours");
}

#[test]
fn ensembles_that_cannot_be_understood_are_refused() {
    each_is_refused(&[
        typed(&["-z", "", "true"], 64, ["--connect:", "''", "h1:2181"]),
        typed(&["-z", ":2181", "true"], 64, ["--connect:", "':2181'", "h1:2181"]),
        typed(&["-z", "h:0", "true"], 64, ["--connect:", "'h:0'", "1 to 65535"]),
        typed(&["-z", "h:65536", "true"], 64, ["--connect:", "'h:65536'", "1 to 65535"]),
        typed(&["-z", "::1", "true"], 64, ["--connect:", "'::1'", "[::1]:2181"]),
        typed(&["-z", "h1, h2", "true"], 64, ["--connect:", "'h1, h2'", "h1:2181,h2:2181"]),
        typed(&["-z", "h1,,h2", "true"], 64, ["--connect:", "'h1,,h2'", "h1:2181,h2:2181"]),
        typed(&["-z", "h1/a,h2", "true"], 64, ["--connect:", "'h1/a,h2'", "h1:2181,h2:2181/chroot"]),
        typed(&["-z", "h1/a/../b", "true"], 64, ["--connect:", "'h1/a/../b'", "write the path out"]),
        typed(&["-z", "h1//a", "true"], 64, ["--connect:", "'h1//a'", "second slash"]),
    ]);
}

#[test]
fn paths_names_and_ids_that_cannot_be_znodes_are_refused() {
    each_is_refused(&[
        typed(&["--path", "a/b", "true"], 64, ["--path:", "'a/b'", "/jobs/nightly"]),
        typed(&["--path", "/", "true"], 64, ["--path:", "'/'", "/jobs/nightly"]),
        typed(&["--path", "/a/../b", "true"], 64, ["--path:", "'/a/../b'", "write the path out"]),
        typed(&["--path", "/a/./b", "true"], 64, ["--path:", "'/a/./b'", "write the path out"]),
        typed(&["--path", "/a//b", "true"], 64, ["--path:", "'/a//b'", "second slash"]),
        typed(&["--path", "/a/", "true"], 64, ["--path:", "'/a/'", "leave that out"]),
        typed(&["--path", "/a\x1b[2Jb", "true"], 64, ["--path:", r"'/a\u{1b}[2Jb'", "leave it out"]),
        typed(&["--name", "a/b", "true"], 64, ["--name:", "'a/b'", "--path takes a whole path"]),
        typed(&["--name", "..", "true"], 64, ["--name:", "'..'", "write"]),
        typed(&["--name", "drains", "true"], 64, ["--name:", "'drains'", "the drains of all elections"]),
        typed(&["--path", "/jobs/drains", "true"], 64, ["--path:", "'/jobs/drains'", "the drains of all elections"]),
        typed(&["--id", "a/b", "true"], 64, ["--id:", "'a/b'", "without it"]),
        typed(&["--id", "a\tb", "true"], 64, ["--id:", r"'a\tb'", "leave it out"]),
    ]);
}

#[test]
fn logins_by_kerberos_that_cannot_be_are_refused() {
    each_is_refused(&[
        typed(
            &["--kerberos-server", "zk/h@R", "true"],
            64,
            ["--kerberos-server:", "'zk/h@R'", "SERVICE/HOST, without a realm"],
        ),
        typed(&["--kerberos-server", "zk/", "true"], 64, ["--kerberos-server:", "'zk/'", "SERVICE/HOST"]),
        typed(&["--kerberos-server", "/h", "true"], 64, ["--kerberos-server:", "'/h'", "SERVICE/HOST"]),
    ]);
    #[cfg(not(feature = "kerberos"))]
    each_is_refused(&[typed(
        &["--kerberos", "true"],
        78,
        ["--kerberos:", "this build cannot do Kerberos", "cargo build --release --features kerberos"],
    )]);
}

#[test]
fn numbers_of_leaders_and_priorities_that_cannot_be_are_refused() {
    each_is_refused(&[
        typed(&["--leaders", "0", "true"], 64, ["--leaders:", "'0'", "from 1 to 64"]),
        typed(&["--leaders", "-1", "true"], 64, ["--leaders:", "'-1'", "from 1 to 64"]),
        typed(&["--leaders", "65", "true"], 64, ["--leaders:", "'65'", "from 1 to 64"]),
        typed(&["--leaders", "2", "--recipe", "single", "true"], 64, ["--leaders:", "'2'", "--recipe single"]),
        typed(&["--leaders", "2", "--guarantee", "at-least-one", "true"], 64, ["--leaders:", "'2'", "at-least-one"]),
        typed(&["--leaders", "2", "--once-per", "1h", "true"], 64, ["--once-per:", "'1h'", "--leaders"]),
        typed(&["--priority", "1000", "true"], 64, ["--priority:", "'1000'", "from -999 to 999"]),
        typed(&["--priority", "high", "true"], 64, ["--priority:", "'high'", "from -999 to 999"]),
        typed(&["--priority", "Spread", "true"], 64, ["--priority:", "'Spread'", "or spread"]),
        typed(
            &["--priority", "spread", "--recipe", "single", "true"],
            64,
            ["--priority:", "'spread'", "--recipe single"],
        ),
        typed(&["--priority", "1", "--recipe", "single", "true"], 64, ["--priority:", "'1'", "--recipe single"]),
        typed(&["--preempt-after", "soon", "true"], 64, ["--preempt-after:", "'soon'", "5s"]),
        typed(
            &["--preempt-after", "5s", "--recipe", "single", "true"],
            64,
            ["--preempt-after:", "'5s'", "--recipe single"],
        ),
        typed(&["--preempt-after", "5s", "--leaders", "2", "true"], 64, ["--preempt-after:", "'5s'", "--leaders"]),
        typed(&["--priority", "1", "--recipe", "kazoo", "true"], 64, ["--priority:", "'1'", "--recipe kazoo"]),
        typed(&["--leaders", "2", "--recipe", "java-les", "true"], 64, ["--leaders:", "'2'", "--recipe java-les"]),
    ]);
}

#[test]
fn what_other_libraries_do_not_know_is_refused_in_their_directory() {
    each_is_refused(&[
        typed(&["--election-path", "latch", "true"], 64, ["--election-path:", "'latch'", "/jobs"]),
        typed(
            &["--election-path", "/x", "--recipe", "single", "true"],
            64,
            ["--election-path:", "'/x'", "curator-latch"],
        ),
        typed(&["--election-path", "/x", "--leaders", "2", "true"], 64, ["--leaders:", "'2'", "--election-path"]),
        typed(&["--election-path", "/x", "--priority", "-1", "true"], 64, ["--priority:", "'-1'", "--election-path"]),
        typed(&["--election-path", "/a", "--path", "/a/b", "true"], 64, ["--election-path:", "'/a'", "another --path"]),
        typed(&["--election-path", "/a", "--path", "/a", "true"], 64, ["--election-path:", "'/a'", "another --path"]),
        typed(&["--election-path", "/a/term", "--path", "/a", "true"], 64, ["--election-path:", "'/a/term'", "--path"]),
        typed(
            &["--election-path", "/x", "--stop-reserve", "6s", "true"],
            78,
            ["--stop-reserve:", "'6s'", "2.812s = 3 x 937.5ms renewal interval"],
        ),
    ]);
}

#[test]
fn durations_that_make_no_sense_are_refused() {
    each_is_refused(&[
        typed(&["--session-timeout", "abc", "true"], 64, ["--session-timeout:", "'abc'", "1500ms, 5s or 1m30s"]),
        typed(&["--session-timeout", "15", "true"], 64, ["--session-timeout:", "'15'", "15s or 15ms"]),
        typed(&["--session-timeout", "0", "true"], 64, ["--session-timeout:", "'0'", "15s"]),
        typed(&["--session-timeout", "2d", "true"], 64, ["--session-timeout:", "'2d'", "at most 1d"]),
        typed(&["--wait", "-5s", "true"], 64, ["--wait:", "'-5s'", "1500ms, 5s or 1m30s"]),
        typed(&["--wait", "5000y", "true"], 64, ["--wait:", "'5000y'", "at most 366d"]),
        typed(&["--stop-timeout", "", "true"], 64, ["--stop-timeout:", "'' is empty", "5s"]),
        typed(&["--connect-timeout", "0", "true"], 64, ["--connect-timeout:", "'0'", "leave it out"]),
        typed(&["--lease", "0s", "true"], 64, ["--lease:", "'0s'", "15s"]),
        typed(&["--timeout", "0", "true"], 64, ["--timeout:", "'0'", "leave it out"]),
        typed(&["--start-deadline", "0", "true"], 64, ["--start-deadline:", "'0'", "leave it out"]),
        typed(&["--stand-back", "0", "true"], 64, ["--stand-back:", "'0'", "1m"]),
        typed(&["--grace", "soon", "true"], 64, ["--grace:", "'soon'", "5s"]),
    ]);
}

#[test]
fn words_signals_and_statuses_that_do_not_exist_are_refused() {
    each_is_refused(&[
        typed(&["--recipe", "sequental", "true"], 64, ["--recipe:", "'sequental'", "did you mean sequential?"]),
        typed(&["--guarantee", "none", "true"], 64, ["--guarantee:", "'none'", "at-most-one or at-least-one"]),
        typed(&["--contain", "docker", "true"], 64, ["--contain:", "'docker'", "subreaper, cgroup or pid-namespace"]),
        typed(&["--on-exit", "stay", "true"], 64, ["--on-exit:", "'stay'", "exit, rejoin or restart"]),
        typed(&["--on-loss", "cry", "true"], 64, ["--on-loss:", "'cry'", "rejoin or exit"]),
        typed(&["--log-format", "xml", "true"], 64, ["--log-format:", "'xml'", "human, json or journald"]),
        typed(&["--log-level", "warning", "true"], 64, ["--log-level:", "'warning'", "did you mean warn?"]),
        typed(&["--stop-signal", "SIGTREM", "true"], 64, ["--stop-signal:", "'SIGTREM'", "did you mean TERM?"]),
        typed(&["--stop-signal", "0", "true"], 64, ["--stop-signal:", "'0'", "1 to 31"]),
        typed(&["--stop-signal", "-9", "true"], 64, ["--stop-signal:", "'-9'", "1 to 31"]),
        typed(&["--stop-signal", "STOP", "true"], 64, ["--stop-signal:", "'STOP'", "TERM"]),
        typed(&["--on-pause", "freez", "true"], 64, ["--on-pause:", "'freez'", "did you mean freeze?"]),
        typed(&["--on-exit", "restart", "--restart", "never", "true"], 64, ["--restart:", "'never'", "always"]),
        typed(&["--max-restarts", "-1", "true"], 64, ["--max-restarts:", "'-1'", "unlimited"]),
        typed(&["--max-restarts", "infinite", "true"], 64, ["--max-restarts:", "'infinite'", "unlimited"]),
        typed(&["--no-restart-status", "2,256", "true"], 64, ["--no-restart-status:", "'2,256'", "like 2,78"]),
        typed(&["--no-restart-status", "2,", "true"], 64, ["--no-restart-status:", "'2,'", "like 2,78"]),
        typed(&["--conflict-exit-code", "256", "true"], 64, ["--conflict-exit-code:", "'256'", "0 to 255"]),
        typed(&["--conflict-exit-code", "+1", "true"], 64, ["--conflict-exit-code:", "'+1'", "0 to 255"]),
    ]);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    each_is_refused(&[
        typed(&["--on-resume", "CONT", "true"], 64, ["--on-resume:", "'CONT'", "--on-pause SIGNAL"]),
        typed(&["--on-pause", "freeze", "--on-resume", "CONT", "true"], 64, ["--on-resume:", "'CONT'", "--on-pause"]),
        typed(&["--max-pause", "1m", "true"], 64, ["--max-pause:", "'1m'", "--guarantee at-least-one"]),
        typed(&["--restart", "always", "true"], 64, ["--restart:", "'always'", "--on-exit restart"]),
        typed(
            &["--restart-delay", "2m", "true"],
            64,
            ["--restart-max-delay:", "'1m'", "--restart-delay 2m; write at least 2m"],
        ),
        typed(
            &["--guarantee", "at-least-one", "--takeover-delay", "1s", "true"],
            64,
            ["--takeover-delay:", "'1s'", "--guarantee at-most-one"],
        ),
    ]);
}

const SHARED: &str = "--election-path /x";
const AT_LEAST_ONE: &str = "--guarantee at-least-one";

/// Options that contradict one another.
const CONTRADICTIONS: &[[&str; 2]] = &[
    ["--leaders 2", "--recipe curator-lock"],
    ["--leaders 2", "--recipe kazoo"],
    ["--leaders 2", "--recipe java-les"],
    ["--leaders 2", "--recipe single"],
    ["--leaders 2", AT_LEAST_ONE],
    ["--leaders 2", "--preempt-after 5s"],
    ["--leaders 2", "--slot now"],
    ["--leaders 2", "--once-per 1h"],
    ["--leaders 2", "--vouch"],
    ["--priority 2", "--recipe curator-lock"],
    ["--priority 2", "--recipe kazoo"],
    ["--priority 2", "--recipe java-les"],
    ["--priority 2", "--recipe single"],
    ["--priority spread", "--recipe single"],
    ["--preempt-after 5s", "--recipe single"],
    [SHARED, "--leaders 2"],
    [SHARED, "--priority 2"],
    [SHARED, "--preempt-after 5s"],
    [SHARED, "--recipe single"],
    [SHARED, "--path /x"],
    [SHARED, "--path /x/y"],
    [SHARED, "--vouch"],
    ["--vouch", "--recipe single"],
    ["--vouch", AT_LEAST_ONE],
    ["--slot now", "--once-per 1h"],
    ["--slot now", AT_LEAST_ONE],
    ["--slot now", "--on-exit rejoin"],
    ["--slot now", "--on-exit restart"],
    ["--slot now", "--on-loss rejoin"],
    ["--once-per 1h", "--recipe single"],
    ["--takeover-delay 1s", AT_LEAST_ONE],
    ["--max-pause 1m", "--guarantee at-most-one"],
    ["--restart always", "--on-exit rejoin"],
    ["--on-resume CONT", "--on-pause freeze"],
    ["--restart-delay 2m", "--restart-max-delay 1m"],
];

/// Whichever of the two is named: 78 is for values that cannot work.
#[test]
fn every_two_options_that_contradict_each_other_end_with_64() {
    for [one, other] in CONTRADICTIONS {
        for both in [format!("{one} {other}"), format!("{other} {one}")] {
            let typed: Vec<_> = both.split(' ').chain(["true"]).collect();
            let stop = parse(&typed, &[]).expect_err(&both);
            assert_eq!(stop.status, 64, "{both}: {}", stop.text);
        }
    }
}

#[test]
fn what_does_not_go_with_vouching_is_refused() {
    const VOUCH: [&str; 3] = ["--vouch:", "cannot be combined with", "leave one of them out"];
    each_is_refused(&[
        typed(&["--vouch", "--guarantee", "at-least-one", "true"], 64, VOUCH),
        typed(&["--vouch", "--election-path", "/x", "true"], 64, VOUCH),
        typed(&["--vouch", "--recipe", "single", "true"], 64, VOUCH),
        typed(&["--vouch", "--leaders", "2", "true"], 64, VOUCH),
        variable(
            &[("ZK_LEADER_RUN_VOUCH", "true"), ("ZK_LEADER_RUN_LEADERS", "2")],
            64,
            ["ZK_LEADER_RUN_VOUCH:", "a promise is for one leader", "leave one of them out"],
        ),
        typed(&["--vouch-limit", "5m", "true"], 64, ["--vouch-limit:", "'5m'", "requires --vouch"]),
        typed(&["--vouch-address", "10.0.0.7", "true"], 64, ["--vouch-address:", "'10.0.0.7'", "requires --vouch"]),
    ]);
}

#[test]
fn a_limit_of_vouching_out_of_range_is_refused_with_the_range() {
    each_is_refused(&[
        typed(&["--vouch", "--vouch-limit", "29s", "true"], 78, ["--vouch-limit:", "'29s'", "30s = 2 x 15s lease"]),
        typed(&["--vouch", "--vouch-limit", "0", "true"], 78, ["--vouch-limit:", "'0'", "at least 30s"]),
        typed(&["--vouch", "--vouch-limit", "25h", "true"], 78, ["--vouch-limit:", "'25h'", "at most 1d"]),
        typed(&["--vouch", "--vouch-limit", "600", "true"], 64, ["--vouch-limit:", "'600'", "600s"]),
    ]);
}

#[test]
fn an_address_that_no_other_host_can_ask_is_refused() {
    each_is_refused(&[
        typed(
            &["--vouch", "--vouch-address", "0.0.0.0", "true"],
            64,
            ["--vouch-address:", "'0.0.0.0'", "10.0.0.7:4711"],
        ),
        typed(
            &["--vouch", "--vouch-address", "[::]:47", "true"],
            64,
            ["--vouch-address:", "'[::]:47'", "[2001:db8::7]"],
        ),
        typed(&["--vouch", "--vouch-address", "224.0.0.1", "true"], 64, ["--vouch-address:", "many hosts", "10.0.0.7"]),
        typed(
            &["--vouch", "--vouch-address", "host:47", "true"],
            64,
            ["--vouch-address:", "'host:47'", "is not an address"],
        ),
        // Of TEST-NET-1: no address of this host, or not yet.
        typed(
            &["--vouch", "--vouch-address", "192.0.2.1", "true"],
            69,
            ["--vouch-address:", "'192.0.2.1:0'", "listened at"],
        ),
    ]);
}

#[test]
fn what_does_not_go_with_a_job_that_runs_once_is_refused() {
    each_is_refused(&[
        typed(&["--slot", "", "true"], 64, ["--slot:", "''", "2026-11-21"]),
        typed(&["--slot", "a\nb", "true"], 64, ["--slot:", r"'a\nb'", "control character"]),
        typed(&["--once-per", "0", "true"], 64, ["--once-per:", "'0'", "1h"]),
        typed(&["--slot", "k", "--once-per", "1h", "true"], 64, ["--once-per:", "'1h'", "one of the two"]),
        typed(&["--retry-failed", "true"], 64, ["--retry-failed:", "requires", "--slot or --once-per"]),
        typed(&["--slot", "k", "--keep-slots", "0", "true"], 64, ["--keep-slots:", "'0'", "from 1 to"]),
        typed(&["--slot", "k", "--on-exit", "rejoin", "true"], 64, ["--on-exit:", "'rejoin'", "write exit"]),
        typed(&["--slot", "k", "--on-loss", "rejoin", "true"], 64, ["--on-loss:", "'rejoin'", "--retry-failed"]),
        typed(
            &["--slot", "k", "--guarantee", "at-least-one", "true"],
            64,
            ["--slot:", "--guarantee at-least-one", "--retry-failed"],
        ),
        typed(&["--once-per", "1h", "--recipe", "single", "true"], 64, ["--once-per:", "--recipe single", "--slot"]),
        variable(
            &[("ZK_LEADER_RUN_RETRY_FAILED", "true")],
            64,
            ["ZK_LEADER_RUN_RETRY_FAILED:", "--slot", "leave it out"],
        ),
    ]);
}

#[test]
fn a_lost_run_ends_the_process_unless_it_is_retried() {
    let on_loss = |typed: &[&str]| parse(typed, &[]).unwrap().on_loss;
    assert_eq!(on_loss(&["--slot", "k", "true"]), OnLoss::Exit);
    assert_eq!(on_loss(&["--slot", "k", "--retry-failed", "true"]), OnLoss::Rejoin);
    assert_eq!(on_loss(&["--once-per", "1h", "--retry-failed", "--on-loss", "exit", "true"]), OnLoss::Exit);
}

#[test]
fn timings_that_do_not_fit_are_refused_with_the_sum_and_the_way_out() {
    each_is_refused(&[
        typed(&["--stop-reserve", "10s", "true"], 78, ["--stop-reserve:", "= 4.65s, but", "at most 4.9s"]),
        typed(
            &["--session-timeout", "100ms", "true"],
            78,
            ["--session-timeout:", "'100ms'", "--session-timeout at least"],
        ),
        typed(&["--session-timeout", "3m", "true"], 78, ["--session-timeout:", "'3m'", "--lease 2m"]),
        typed(&["--session-timeout", "5m", "true"], 78, ["--session-timeout:", "'5m'", "write at most 2m"]),
        typed(&["--session-timeout", "5m", "--lease", "3m", "true"], 78, ["--lease:", "'3m'", "at most 2m"]),
        typed(&["--lease", "5s", "true"], 78, ["--lease:", "'5s'", "--lease at least"]),
        typed(&["--grace", "15s", "true"], 78, ["--grace:", "'15s'", "at most 10.9s"]),
        typed(
            &["--guarantee", "at-least-one", "--max-pause", "5s", "true"],
            78,
            ["--max-pause:", "'5s'", "at least 13.5s"],
        ),
    ]);
}

#[test]
fn a_command_that_cannot_be_executed_is_refused_before_anything_is_connected() {
    each_is_refused(&[
        typed(&["no-such-command-anywhere"], 127, ["COMMAND:", "'no-such-command-anywhere'", "whole path"]),
        typed(&["ls -l"], 127, ["COMMAND:", "'ls -l'", "sh -c and the line"]),
        typed(&["/nonexistent/command"], 127, ["COMMAND:", "'/nonexistent/command'", "the path of a program"]),
        typed(&["--name", "n", ""], 127, ["COMMAND:", "''", "whole path"]),
        typed(&["/etc/passwd"], 126, ["COMMAND:", "'/etc/passwd'", "chmod +x"]),
        typed(&["--name", "n", "/"], 126, ["COMMAND:", "'/'", "the path of a program"]),
        typed(&["/etc"], 126, ["COMMAND:", "'/etc'", "the path of a program"]),
        typed(&["FOO=bar", "true"], 127, ["COMMAND:", "'FOO=bar'", "write env FOO=bar and the command"]),
        typed(&["export", "A=b"], 127, ["COMMAND:", "'export' is a word of the shell", "write sh -c and the line"]),
        typed(&["--", "\u{2013}name", "x"], 127, ["COMMAND:", "'\u{2013}name'", "write two hyphens"]),
        typed(&["--", "--name", "x"], 127, ["COMMAND:", "'--name'", "our options stand before --"]),
        typed(&["a\x01b"], 64, ["--name:", r"'a\u{1}b'", "add --name"]),
    ]);
}

#[test]
fn an_address_that_is_none_or_taken_is_refused_before_anything_is_connected() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: &'static str = taken.local_addr().unwrap().to_string().leak();
    let in_use: &'static [&'static str] = vec!["--http", address, "true"].leak();
    each_is_refused(&[
        typed(&["--meta", "address", "true"], 64, ["--meta:", "'address'", "KEY=VALUE"]),
        typed(&["--meta", "a=1", "--meta", "a=2", "true"], 64, ["--meta:", "'a=1 a=2'", "two values for 'a'"]),
        typed(&["--http", "8080", "true"], 64, ["--http:", "'8080'", "127.0.0.1:8080"]),
        typed(&["--http", "host:8080", "true"], 64, ["--http:", "'host:8080'", "127.0.0.1:8080"]),
        typed(&["--http", "unix:here", "true"], 64, ["--http:", "'unix:here'", "absolute path"]),
        typed(&["--http", "unix:/no/such/directory/s", "true"], 78, ["--http:", "'unix:/no", "No such file"]),
        // Whoever has it may give it up: a restart is worth it.
        typed(in_use, 69, ["--http:", "cannot be listened at: Address already in use", "write another address"]),
    ]);
}

#[test]
fn a_mistake_in_a_variable_names_the_variable() {
    each_is_refused(&[
        variable(&[("ZK_LEADER_RUN_GRACE", "abc")], 64, ["ZK_LEADER_RUN_GRACE:", "'abc'", "5s"]),
        variable(&[("ZK_LEADER_RUN_FOREGROUND", "maybe")], 64, ["ZK_LEADER_RUN_FOREGROUND:", "'maybe'", "true, false"]),
        variable(
            &[("ZK_LEADER_RUN_STOP_RESERVE", "10s")],
            78,
            ["ZK_LEADER_RUN_STOP_RESERVE:", "'10s'", "at most 4.9s"],
        ),
        variable(&[("ZK_LEADER_RUN_MAX_PAUSE", "1m")], 64, ["ZK_LEADER_RUN_MAX_PAUSE:", "'1m'", "at-least-one"]),
    ]);
}

#[test]
fn a_misspelt_variable_is_refused_instead_of_ignored() {
    each_is_refused(&[
        variable(
            &[("ZK_LEADER_RUN_SESION_TIMEOUT", "1s")],
            64,
            ["ZK_LEADER_RUN_SESION_TIMEOUT", "no such variable", "ZK_LEADER_RUN_SESSION_TIMEOUT?"],
        ),
        variable(&[("ZK_LEADER_RUN_NAEM", "x")], 64, ["ZK_LEADER_RUN_NAEM", "no such variable", "ZK_LEADER_RUN_NAME?"]),
        variable(&[("ZK_LEADER_RUN_AUHT", "x")], 64, ["ZK_LEADER_RUN_AUHT", "no such variable", "ZK_LEADER_RUN_AUTH?"]),
    ]);
    let variables = vec![("ZK_LEADER_RUN_CONECT".into(), "zk1".into())];
    let process_environment = ProcessEnvironment { variables, ..ProcessEnvironment::default() };
    let stop = ctl::load(["zk-leaderctl", "list"].map(OsString::from), &process_environment).unwrap_err();
    assert_eq!(stop.status, 64);
    assert!(stop.text.contains("did you mean ZK_LEADER_RUN_CONNECT?"), "{}", stop.text);
    assert!(parse(&["true"], &[("ZK_LEADER_RUN_NAEM", "")]).is_ok(), "an empty variable counts as not set");
}

#[test]
fn a_mistake_after_a_subcommand_names_the_help_of_that_subcommand() {
    let said = |words: &[&str]| {
        let typed = ["zk-leaderctl"].iter().chain(words).map(OsString::from);
        ctl::load(typed, &ProcessEnvironment::default()).unwrap_err().text
    };
    assert!(said(&["drain"]).ends_with("HOST: is missing; zk-leaderctl drain --help tells what it is\n"));
    assert!(said(&["-z", "zk1", "handover", "--dry"]).ends_with("zk-leaderctl handover --help lists all options\n"));
    assert!(said(&["--dry"]).ends_with("zk-leaderctl --help lists all options\n"));
    assert!(said(&["stop", "x"]).contains("stop: no such command; did you mean disable?"));
    assert!(said(&["release"]).contains("release: no such command; did you mean handover?"));
    assert!(
        said(&["list", "--zookeeper", "zk1"]).contains("--zookeeper: no such option; write --connect and the servers")
    );
    assert!(said(&["disable", "x", "--until", "5m"]).contains("--until: no such option; zk-leaderctl disable --help"));
    assert!(said(&["handover", "--tiemout", "5s"]).contains("did you mean --timeout?"));
    for verb in ["drain", "undrain"] {
        assert!(said(&[verb, "host", "--path", "/jobs/a"]).contains("--path: '/jobs/a' names one election"));
    }
    assert!(said(&["help", "drain"]).contains("help: no such command; write zk-leaderctl COMMAND --help"));
}

#[test]
fn an_interpreter_needs_a_name() {
    each_is_refused(&[
        typed(&["sh", "-c", "true"], 64, ["--name:", "'sh'", "add --name"]),
        typed(&["/usr/bin/env", "true"], 64, ["--name:", "'env'", "add --name"]),
        typed(&["setpriv", "--reuid=a", "true"], 64, ["--name:", "'setpriv'", "add --name"]),
        typed(&["/usr/bin/python3.11", "job.py"], 64, ["--name:", "'python3.11'", "add --name"]),
    ]);
    assert_eq!(parse(&["--name", "nightly", "sh", "-c", "true"], &[]).unwrap().name, "nightly");
    assert_eq!(parse(&["--path", "/jobs/nightly", "sh", "-c", "true"], &[]).unwrap().name, "sh");
    assert_eq!(parse(&["true"], &[]).unwrap().name, "true");
}

#[test]
fn text_that_is_not_utf_8_is_refused_with_the_option() {
    let not_text = OsString::from_vec(vec![b'a', 0xff]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_zk-leader-run"));
    let output = command.arg("--name").arg(not_text).arg("true").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "zk-leader-run: --name: 'a\u{fffd}' is not UTF-8 text; write it in UTF-8\n"
    );
}

#[test]
fn every_option_and_every_variable_is_read_and_named_when_it_is_wrong() {
    let command = cli::command();
    let settings: Vec<_> = command.get_arguments().filter(|argument| reference::has_variable(argument)).collect();
    assert!(settings.len() >= 25);
    for argument in settings {
        let option = argument.get_long().unwrap();
        let twin = format!("ZK_LEADER_RUN_{}", option.to_uppercase().replace('-', "_"));
        let stop = refused(&["true"], &[(&twin, "\u{1}")]);
        // A file that is not there is no mistake of spelling.
        let files = ["config", "auth-file", "tls-ca", "tls-cert", "tls-key"];
        let status = if files.contains(&option) { 78 } else { 64 };
        assert_eq!((stop.status, stop.stream), (status, Stream::Stderr), "{}", stop.text);
        assert!(stop.text.starts_with(&format!("zk-leader-run: {twin}: '\\u{{1}}' ")), "{}", stop.text);
        if argument.get_action().takes_values() {
            let stop = refused(&[&format!("--{option}=\u{1}"), "true"], &[]);
            assert!(stop.text.starts_with(&format!("zk-leader-run: --{option}: '\\u{{1}}' ")), "{}", stop.text);
        }
    }
}
