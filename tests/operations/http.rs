//! What is told over HTTP is true at the moment of asking.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use nix::sys::signal::Signal;

use super::{election, link, millis, secs};
use crate::support::election::STEADY;
use crate::support::{diary, http, wait};

#[test]
fn leader_and_standby_are_told_apart_and_change_places_with_the_leadership() {
    let election = election();
    let first = election.steady_host("a").served().spawn();
    let first_at = http::address_of(&first);
    wait::until("the first one is told to lead", || http::code(first_at, "/leader") == 200);
    let second = election.steady_host("b").served().spawn();
    let second_at = http::address_of(&second);
    wait::until("the second one is a standby", || http::code(second_at, "/standby") == 200);
    assert_eq!([http::code(first_at, "/standby"), http::code(second_at, "/leader")], [503, 503]);
    for at in [first_at, second_at] {
        assert_eq!([http::code(at, "/readyz"), http::code(at, "/livez"), http::code(at, "/nothing")], [200, 200, 404]);
        assert_eq!(http::ask(at, "OPTIONS", "/readyz", wait::LIMIT).unwrap().code, 200);
        assert_eq!(http::ask(at, "DELETE", "/leader", wait::LIMIT).unwrap().code, 405);
    }
    let status = http::status(first_at);
    assert_eq!(status["role"], "leader");
    assert_eq!(status["id"], "a");
    assert_eq!(status["term"]["token"], election.term().mzxid);
    assert_eq!(status["candidate"], election.candidates()[0].as_str());
    assert_eq!(http::status(second_at)["others_before"], 1);
    first.signal(Signal::SIGTERM);
    wait::until("the second one is told to lead", || http::code(second_at, "/leader") == 200);
    assert_eq!(http::code(second_at, "/standby"), 503);
}

#[test]
fn a_leader_says_how_long_its_command_is_left_alone_and_how_long_its_lease_lasts() {
    let election = election();
    let host = election.steady_host("a").served().spawn();
    let at = http::address_of(&host);
    let term = wait::for_some("it leads", || http::status(at)["term"].as_object().cloned());
    let [until_stop, left] = ["seconds_until_stop", "lease_seconds_left"].map(|name| term[name].as_f64().unwrap());
    assert!(until_stop < left, "the command has time to obey SIGTERM: {term:?}");
}

#[test]
fn before_its_command_runs_a_leader_says_that_it_is_elected() {
    let election = election();
    let goes_on = election.diary.directory().join("goes-on");
    let step = format!("until test -e {}; do sleep 0.05; done", goes_on.display());
    let host = election.steady_host("a").option("--before-start", &step).served().spawn();
    let at = http::address_of(&host);
    let said = || http::get(at, "/leader").unwrap();
    wait::until("it is elected", || said().body.starts_with("not yet: elected (token "));
    assert_eq!(said().code, 503);
    std::fs::write(goes_on, "").unwrap();
    wait::until("it is told to lead", || said().code == 200);
}

/// T28
#[test]
fn in_a_partition_leader_is_503_by_the_deadline_and_not_later() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout("8s").witness(&election.diary, &["ignore-term"]);
    let host = host.served().spawn();
    let at = http::address_of(&host);
    let start = election.diary.until_started(1);
    wait::until("it is told to lead", || http::code(at, "/leader") == 200);
    let cut_at = diary::now();
    link.stall();
    let mut last_yes = cut_at;
    wait::until("it is not told to lead", || {
        let asked_at = diary::now();
        let yes = http::code(at, "/leader") == 200;
        last_yes = if yes { asked_at } else { last_yes };
        !yes
    });
    assert!(last_yes > cut_at + millis(500), "a short outage is ridden out");
    assert_eq!(http::code(at, "/readyz"), 503);
    election.diary.until_nobody_lives();
    assert!(last_yes < election.diary.end_of(start.token), "told to lead after its command was killed");
    assert_eq!(http::code(at, "/leader"), 503);
    assert_eq!(http::code(at, "/livez"), 200, "the loop turns without ZooKeeper, too");
    link.heal();
    wait::until("it is told to lead again", || http::code(at, "/leader") == 200);
}

/// T46: the whole supervisor hangs past the deadline; a question that came meanwhile is answered by the truth of then.
#[test]
fn a_supervisor_that_was_stopped_past_its_deadline_never_says_that_it_leads() {
    let election = election();
    let host = election.host("a").served().spawn();
    let at = http::address_of(&host);
    wait::until("it is told to lead", || http::code(at, "/leader") == 200);
    host.signal(Signal::SIGSTOP);
    assert!(http::ask(at, "GET", "/leader", millis(300)).is_err(), "a stopped supervisor answers");
    let mut asked = TcpStream::connect(at).unwrap();
    asked.write_all(http::request("GET", "/leader").as_bytes()).unwrap();
    election.diary.until_nobody_lives();
    host.signal(Signal::SIGCONT);
    let answer = http::read(&mut asked).unwrap();
    // On a busy machine it may lead anew by then.
    let first = format!("token {},", election.diary.starts()[0].token);
    assert!(answer.code == 503 || !answer.body.contains(&first), "{answer:?}");
    wait::until("it is told to lead again", || http::code(at, "/leader") == 200);
}

#[test]
fn a_leader_whose_command_is_frozen_is_none() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout(STEADY).option("--on-pause", "freeze").served().spawn();
    let at = http::address_of(&host);
    wait::until("it is told to lead", || http::code(at, "/leader") == 200);
    link.cut();
    wait::until("it is not told to lead", || http::code(at, "/leader") == 503);
    assert_eq!(http::status(at)["command"]["frozen"], true);
    host.until_logged(
        "leading -> paused: contact with ZooKeeper is lost, and the command is frozen (--on-pause freeze); unless ",
    );
    link.heal();
    wait::until("it is told to lead again", || http::code(at, "/leader") == 200);
}

#[test]
fn clients_who_connect_and_say_nothing_delay_neither_other_clients_nor_the_leader() {
    let election = election();
    let host = election.steady_host("a").served().spawn();
    let at = http::address_of(&host);
    wait::until("it is told to lead", || http::code(at, "/leader") == 200);
    let mut idle = Vec::new();
    for _ in 0..10 {
        for _ in 0..30 {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.write_all(b"GET /leader HTTP/1.1\r\nX: ").unwrap();
            idle.push(stream);
        }
        assert_eq!(http::ask(at, "GET", "/leader", secs(10)).unwrap().code, 200);
    }
    // Headers without end.
    let mut flood = TcpStream::connect(at).unwrap();
    let line = [b"X: ".as_slice(), &[b'x'; 8192], b"\r\n"].concat();
    flood.write_all(b"GET /leader HTTP/1.1\r\n").unwrap();
    wait::until("it is cut off", || flood.write_all(&line).is_err());
    assert_eq!(http::code(at, "/leader"), 200);
    assert_eq!(election.diary.starts().len(), 1);
    assert!(!host.log().contains("paused"), "{}", host.log());
}

#[test]
fn http_is_served_on_a_unix_socket_and_the_socket_is_gone_with_us() {
    let election = election();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("http.sock");
    let mut host = election.steady_host("a").option("--http", &format!("unix:{}", path.display())).spawn();
    wait::until("it is told to lead", || {
        let Ok(mut stream) = UnixStream::connect(&path) else { return false };
        stream.write_all(http::request("GET", "/leader").as_bytes()).unwrap();
        http::read(&mut stream).is_ok_and(|reply| reply.code == 200)
    });
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0);
    assert!(!path.exists());
}
