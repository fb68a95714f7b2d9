//! The leader is cut off, and its session or its candidate is gone before its command is: the successor is elected while the
//! old command lives, and nothing but its wait keeps it from starting beside that.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{election, link, secs, server};
use crate::support::{Election, Proxy, Running, Subject, diary, wait};

/// A leader whose command ends by SIGKILL only, and the next in line. With this session timeout the command lives on for more
/// than four seconds.
struct Scene {
    election: Election,
    link: Proxy,
    hosts: [Running; 2],
}

impl Scene {
    fn of(recipe: &str, link: Proxy) -> Self {
        let election = election();
        let witness = ["ignore-term", "daemonise"];
        let host = |host: Subject| {
            host.option("--recipe", recipe).session_timeout("5s").witness(&election.diary, &witness).spawn()
        };
        let first = host(election.host_behind(&link, "a"));
        election.diary.until_noted("orphan");
        let second = host(election.host("b"));
        wait::until("the next one has said who it is", || election.admin.exists(&election.path("members/b")));
        election.until_candidates(if recipe == "single" { 1 } else { 2 });
        Self { election, link, hosts: [first, second] }
    }

    /// The leader's place was lost at this time, and its command did not know.
    fn only_the_wait_prevents_an_overlap(&self, lost_at: Duration) {
        let diary = &self.election.diary;
        let start = diary.until_started(2);
        assert_eq!((start.id.as_str(), start.told[1].as_str()), ("b", "unclean"), "{}", self.hosts[1].log());
        diary.assert_no_overlap();
        let lived = diary.end_of(diary.starts()[0].token).saturating_sub(lost_at);
        assert!(lived > secs(2), "the old command lived on for {lived:?} only, and was in nobody's way");
    }
}

#[test]
fn the_wait_alone_prevents_an_overlap_where_the_candidate_of_a_leader_that_is_cut_off_is_deleted() {
    for recipe in ["sequential", "single"] {
        let scene = Scene::of(recipe, link());
        scene.link.stall();
        let lost_at = diary::now();
        scene.election.admin.delete(&scene.election.first());
        scene.only_the_wait_prevents_an_overlap(lost_at);
    }
}

#[test]
fn the_wait_alone_prevents_an_overlap_where_the_session_of_a_leader_that_is_cut_off_is_closed() {
    let link = link();
    let session = Session::seen_through(&link);
    let scene = Scene::of("sequential", link);
    scene.link.stall();
    let lost_at = diary::now();
    session.close();
    scene.election.until_candidates(1);
    scene.only_the_wait_prevents_an_overlap(lost_at);
}

/// The answer by which a server opened a session: length, version, timeout, id, password.
struct Session(Arc<Mutex<Vec<u8>>>);

const PASSWORD: usize = 16;

impl Session {
    /// The first that is opened.
    fn seen_through(link: &Proxy) -> Self {
        let session = Self(Arc::default());
        let answer = Arc::clone(&session.0);
        link.tamper(move |reply| {
            let mut answer = answer.lock().unwrap();
            if answer.is_empty() {
                answer.clone_from(&reply);
            }
            reply
        });
        session
    }

    /// Taken up by another client (`ConnectRequest`), and closed (`RequestHeader` with the type -11).
    fn close(&self) {
        let answer = self.0.lock().unwrap();
        let (id, password) = (&answer[12..20], &answer[20..24 + PASSWORD]);
        let mut server = TcpStream::connect(server().server(0).address()).unwrap();
        server.set_read_timeout(Some(wait::LIMIT)).unwrap();
        let (version, last_zxid, timeout) = (0_i32.to_be_bytes(), 0_i64.to_be_bytes(), 5000_i32.to_be_bytes());
        ask(&mut server, &[&version, &last_zxid, &timeout, id, password]);
        ask(&mut server, &[&1_i32.to_be_bytes(), &(-11_i32).to_be_bytes()]);
    }
}

/// One request, and its whole answer.
fn ask(server: &mut TcpStream, parts: &[&[u8]]) {
    let request = parts.concat();
    let length = u32::try_from(request.len()).unwrap().to_be_bytes();
    server.write_all(&[&length, request.as_slice()].concat()).unwrap();
    let mut length = [0; 4];
    server.read_exact(&mut length).unwrap();
    let mut answer = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
    server.read_exact(&mut answer).unwrap();
}
