//! Endpoints that are no `ZooKeeper`, or no sane one, each for a host of its own.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use zk_leader_run::clock;

use super::support::impostor::{Victim, wire};
use super::support::proxy::request;
use super::support::{Diary, Impostor, Running, Subject, wait};

/// Private and shared pages together: 64 MiB of data, which the fuse allows, and the program itself with its debug info, which the
/// backtrace of its end reads as a whole. Far less than a hostile length could ask for.
pub const MOST_MEMORY_KIB: u64 = 160 * 1024;

/// A stop is a matter of milliseconds, and half a second for a session that cannot be closed; the rest is for a busy machine.
pub const STOP_LIMIT: Duration = Duration::from_secs(10);

/// T, as every subject asks for it.
const T_MS: i32 = 2000;

/// A host whose only server is this one; left alone with it until it has come back `visits` times.
#[track_caller]
fn endures(visits: usize, behave: impl Fn(&mut Victim) -> io::Result<()> + Send + Sync + 'static) {
    let diary = Diary::new();
    let impostor = Impostor::that(behave);
    let mut host = Subject::new(&impostor.connect_string(), "hostile", "a").witness(&diary, &[]).spawn();
    wait::until("it has come back", || {
        assert!(!host.has_exited(), "it ended:\n{}", host.log());
        impostor.connections() >= visits
    });
    stops_unharmed(&mut host, &diary);
}

/// Nothing was started, no memory was wasted, nothing panicked, and SIGTERM ends it.
#[track_caller]
fn stops_unharmed(host: &mut Running, diary: &Diary) {
    let memory = peak_memory(host.pid()).unwrap();
    host.signal(Signal::SIGTERM);
    assert!(wait::held_within(STOP_LIMIT, || host.has_exited()), "SIGTERM did not end it:\n{}", host.log());
    assert_eq!(host.code(), 0, "{}", host.log());
    assert!(!our_panics(&host.log()), "{}", host.log());
    assert!(memory < MOST_MEMORY_KIB, "it used {memory} KiB:\n{}", host.log());
    assert!(diary.starts().is_empty(), "it started without a lease");
}

/// The client library panics on some replies, which is survived; we never do. It does so by an index out of range, whose place
/// is said to be in its own files or, depending on what was inlined, in the standard library's; we index nowhere (clippy).
pub fn our_panics(log: &str) -> bool {
    let theirs = ["/zookeeper-client-", "/library/core/src/slice/"];
    log.lines().any(|line| line.contains("panicked") && !theirs.iter().any(|place| line.contains(place)))
}

/// `VmHWM` of `proc_pid_status(5)`, in KiB, while the process lives.
pub fn peak_memory(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn a_server_that_accepts_and_says_nothing_is_given_up() {
    endures(3, Victim::listen_in_silence);
}

#[test]
fn a_server_that_closes_at_once_is_tried_again_with_pauses() {
    endures(4, |_| Ok(()));
}

#[test]
fn garbage_instead_of_a_connect_response_is_given_up() {
    endures(3, |victim| {
        victim.send(&[0xff; 4096])?;
        victim.listen_in_silence()
    });
}

#[test]
fn a_frame_of_two_gigabytes_is_not_waited_for() {
    endures(3, |victim| {
        victim.send(&i32::MAX.to_be_bytes())?;
        victim.listen_in_silence()
    });
}

#[test]
fn a_frame_of_negative_length_is_given_up() {
    endures(3, |victim| {
        victim.send(&i32::MIN.to_be_bytes())?;
        victim.listen_in_silence()
    });
}

#[test]
fn half_a_connect_response_is_given_up() {
    endures(3, |victim| {
        victim.frame()?;
        victim.send(&wire::connect_response(T_MS)[..20])?;
        victim.listen_in_silence()
    });
}

#[test]
fn a_connect_response_in_single_bytes_that_never_end_is_given_up() {
    endures(3, |victim| {
        victim.frame()?;
        victim.send(&i32::MAX.to_be_bytes())?;
        victim.until_gone(|victim| {
            wait::pass(Duration::from_millis(20));
            victim.send(&[0])
        })
    });
}

#[test]
fn another_protocol_is_given_up() {
    for banner in [
        &b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<html></html>"[..],
        b"\x15\x03\x03\x00\x02\x02\x46",
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
        b"-ERR unknown command\r\n",
    ] {
        endures(2, move |victim| {
            victim.frame()?;
            victim.send(banner)
        });
    }
}

#[test]
fn garbage_after_a_good_connect_response_is_given_up() {
    endures(3, |victim| {
        victim.accept(T_MS)?;
        victim.send(&[0xa5; 8 * 1024])?;
        victim.listen_in_silence()
    });
}

#[test]
fn a_session_in_which_nothing_is_answered_is_given_up() {
    endures(3, |victim| {
        victim.accept(T_MS)?;
        victim.listen_in_silence()
    });
}

#[test]
fn a_session_in_which_only_pings_are_answered_is_given_up() {
    endures(3, |victim| {
        victim.accept(T_MS)?;
        answer(victim, |_, kind| if kind == request::PING { wire::reply(-2, 0, &[]) } else { Vec::new() })
    });
}

/// As one that closes the connection at a reply that is too long for it.
#[test]
fn a_server_that_takes_each_session_up_and_closes_at_a_request_is_tried_again_with_pauses() {
    let (diary, times) = (Diary::new(), Arc::new(Mutex::new(Vec::new())));
    let visits = Arc::clone(&times);
    let impostor = Impostor::that(move |victim| {
        victim.accept(T_MS)?;
        visits.lock().unwrap().push(clock::now().lease);
        while victim.request()?.1 == request::PING {
            victim.send(&wire::reply(-2, 0, &[]))?;
        }
        Ok(())
    });
    let mut host = Subject::new(&impostor.connect_string(), "hostile", "a").witness(&diary, &[]).spawn();
    wait::until("it has come back", || times.lock().unwrap().len() >= 12);
    let times = times.lock().unwrap().clone();
    let took = times[0].until(times[11]);
    stops_unharmed(&mut host, &diary);
    assert!(took > Duration::from_secs(1), "it came back eleven times in {took:?}");
}

#[test]
fn a_reply_that_comes_in_single_bytes_and_never_ends_is_given_up() {
    endures(3, |victim| {
        victim.accept(T_MS)?;
        victim.send(&i32::MAX.to_be_bytes())?;
        victim.until_gone(|victim| {
            wait::pass(Duration::from_millis(20));
            victim.send(&[0])
        })
    });
}

#[test]
fn replies_to_other_requests_are_given_up() {
    endures(3, |victim| {
        victim.accept(T_MS)?;
        answer(victim, |xid, _| wire::reply(xid.wrapping_add(77), 0, &[]))
    });
}

#[test]
fn replies_that_nobody_asked_for_are_given_up() {
    endures(3, |victim| {
        victim.accept(T_MS)?;
        victim.send(&[wire::reply(-2, 0, &[]), wire::reply(12, 0, &[]), wire::reply(-8, 0, &[])].concat())?;
        victim.listen_in_silence()
    });
}

#[test]
fn empty_replies_start_nothing() {
    endures(2, |victim| {
        victim.accept(T_MS)?;
        answer(victim, |xid, _| wire::reply(xid, 0, &[]))
    });
}

#[test]
fn short_replies_start_nothing() {
    for length in [1, 3, 4, 67, 68, 71, 72, 200] {
        endures(2, move |victim| {
            victim.accept(T_MS)?;
            answer(victim, move |xid, _| wire::reply(xid, 0, &vec![0; length]))
        });
    }
}

#[test]
fn unknown_error_codes_start_nothing() {
    endures(2, |victim| {
        victim.accept(T_MS)?;
        answer(victim, |xid, _| wire::reply(xid, -9999, &[]))
    });
}

#[test]
fn a_server_that_knows_no_znode_and_creates_none_starts_nothing() {
    endures(2, |victim| {
        victim.accept(T_MS)?;
        answer(victim, |xid, _| wire::reply(xid, wire::NO_NODE, &[]))
    });
}

/// Left alone with this server, it may end itself for lack of memory, as the supervisor of a host that it must not harm.
#[track_caller]
fn is_bounded(behave: impl Fn(&mut Victim) -> io::Result<()> + Send + Sync + 'static) {
    let diary = Diary::new();
    let impostor = Impostor::that(behave);
    let mut host = Subject::new(&impostor.connect_string(), "hostile", "a").witness(&diary, &[]).spawn();
    let mut memory = 0;
    wait::until("it has come back, or ended itself", || {
        memory = peak_memory(host.pid()).unwrap_or(memory);
        host.has_exited() || impostor.connections() >= 2
    });
    if !host.has_exited() {
        return stops_unharmed(&mut host, &diary);
    }
    assert_eq!(host.status().signal(), Some(Signal::SIGABRT as i32), "{}", host.log());
    assert!(host.log().contains("memory allocation of"), "{}", host.log());
    assert!(memory < MOST_MEMORY_KIB, "it used {memory} KiB:\n{}", host.log());
    assert!(diary.starts().is_empty(), "it started without a lease");
}

#[test]
fn an_endless_frame_before_the_session_does_not_harm_the_host() {
    is_bounded(|victim| {
        victim.frame()?;
        victim.send(&i32::MAX.to_be_bytes())?;
        victim.until_gone(|victim| victim.send(&[0; 8 * 1024]))
    });
}

#[test]
fn an_endless_frame_in_a_session_does_not_harm_the_host() {
    is_bounded(|victim| {
        victim.accept(T_MS)?;
        victim.send(&i32::MAX.to_be_bytes())?;
        victim.until_gone(|victim| victim.send(&[0; 8 * 1024]))
    });
}

#[test]
fn a_flood_of_notifications_does_not_harm_the_host() {
    let body = [&3_i32.to_be_bytes()[..], &3_i32.to_be_bytes(), &wire::text(b"/zk-leader-run/hostile/lease")].concat();
    let notifications = wire::reply(wire::NOTIFICATION, 0, &body).repeat(1000);
    is_bounded(move |victim| {
        victim.accept(T_MS)?;
        victim.until_gone(|victim| victim.send(&notifications))
    });
}

#[test]
fn a_children_list_of_two_billion_names_does_not_harm_the_host() {
    is_bounded(|victim| {
        victim.accept(T_MS)?;
        answer(victim, |xid, kind| match kind {
            request::CREATE2 => wire::reply(xid, 0, &[wire::text(b"/zk"), vec![0; 68]].concat()),
            request::GET_CHILDREN2 => wire::reply(xid, 0, &i32::MAX.to_be_bytes()),
            _ => wire::reply(xid, 0, &[0; 80]),
        })
    });
}

/// What the ensemble grants is not what was asked for, and no lease comes of it.
#[test]
fn a_session_timeout_that_allows_no_lease_is_refused() {
    for granted in [0, 1, 39, i32::MAX] {
        let (diary, impostor) = (
            Diary::new(),
            Impostor::that(move |victim| {
                victim.accept(granted)?;
                answer(victim, |_, _| wire::reply(-2, 0, &[]))
            }),
        );
        let mut host = Subject::new(&impostor.connect_string(), "hostile", "a").witness(&diary, &[]).spawn();
        assert_eq!(host.code(), 78, "{granted} ms: {}", host.log());
        assert!(diary.starts().is_empty());
    }
}

#[test]
fn a_negative_session_timeout_is_given_up() {
    endures(3, |victim| {
        victim.accept(-1)?;
        victim.listen_in_silence()
    });
}

/// Answers every request at once.
fn answer(victim: &mut Victim, reply: impl Fn(i32, i32) -> Vec<u8>) -> io::Result<()> {
    loop {
        let (xid, kind) = victim.request()?;
        victim.send(&reply(xid, kind))?;
    }
}
