//! The socket itself.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sched::{CloneFlags, unshare};
use zk_leader_run::core::vouching::Word;
use zk_leader_run::vouching::{Network as _, Socket};

use crate::host::{ELECTION, Host, Log, MEMBER, SECRET, Stranger, asks, loopback, pair, question, yes};

fn is_closed_on_exec(descriptor: BorrowedFd<'_>) -> bool {
    let flags = fcntl(descriptor, FcntlArg::F_GETFD).unwrap();
    FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC)
}

#[tokio::test]
async fn the_next_program_goes_on_at_the_same_port() {
    let (leader, mut before) = pair();
    let address = before.direct.address();
    leader.direct.ask(MEMBER, question(1));
    assert_eq!(before.hears().await, Word::Asked(question(1)));
    let kept = before.direct.descriptor().unwrap().try_clone_to_owned().unwrap();
    fcntl(&kept, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    assert!(!is_closed_on_exec(std::os::fd::AsFd::as_fd(&kept)), "otherwise this proves nothing");
    drop(before);

    let socket = Socket::take_up(kept).unwrap();
    assert!(is_closed_on_exec(socket.descriptor().unwrap()));
    let mut after = Host::at(MEMBER, socket);
    assert_eq!(after.direct.address(), address);
    leader.direct.ask(MEMBER, question(2));
    assert_eq!(after.hears().await, Word::Asked(question(2)));
    after.direct.reply(yes(MEMBER, 2));
}

#[tokio::test]
async fn no_program_that_we_start_inherits_the_socket() {
    let mut host = Host::new(MEMBER);
    let stranger = Stranger::new().await;
    stranger.sends(&host, &asks(1).write(ELECTION, &SECRET)).await;
    assert_eq!(host.hears().await, Word::Asked(question(1)), "so it is registered");
    let ours = host.direct.descriptor().unwrap();
    assert!(is_closed_on_exec(ours));
    let named = std::fs::read_link(format!("/proc/self/fd/{}", ours.as_raw_fd())).unwrap();
    let mut copies = 0;
    for number in std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().file_name()) {
        let number = number.to_str().unwrap().to_owned();
        if std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok_and(|name| name == named) {
            let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim().to_owned();
            let flags = i32::from_str_radix(&flags, 8).unwrap();
            assert_ne!(flags & nix::libc::O_CLOEXEC, 0, "descriptor {number}");
            copies += 1;
        }
    }
    assert!(copies >= 1, "the socket was not found");
}

#[tokio::test]
async fn hosts_talk_over_ipv6() {
    let six: SocketAddr = "[::1]:0".parse().unwrap();
    let bound =
        |instance| Host::at(instance, Socket::bind(six).expect("these tests want ::1 on the loopback interface"));
    let (leader, mut member) = (bound(1), bound(MEMBER));
    leader.meet(MEMBER, member.direct.address());
    leader.direct.ask(MEMBER, question(1));
    assert_eq!(member.hears().await, Word::Asked(question(1)));
}

#[test]
fn an_address_that_is_taken_or_of_another_host_is_refused() {
    let socket = Socket::bind(loopback()).unwrap();
    assert_ne!(socket.address().port(), 0);
    let taken = Socket::bind(socket.address()).unwrap_err();
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    let foreign = Socket::bind("192.0.2.1:0".parse().unwrap()).unwrap_err();
    assert_eq!(foreign.kind(), std::io::ErrorKind::AddrNotAvailable);
}

#[track_caller]
fn ip(words: &str) {
    let status = std::process::Command::new("ip").args(words.split(' ')).status();
    assert!(status.is_ok_and(|status| status.success()), "this needs root, and `apt-get install iproute2`: ip {words}");
}

#[test]
fn only_a_host_whose_address_is_gone_is_told_to_restart() {
    let in_a_network_of_its_own = || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        ip("link set lo up");
        ip("address add 192.0.2.7/32 dev lo");
        let (log, _here) = Log::of_this_thread();
        let socket = Socket::bind("192.0.2.7:0".parse().unwrap()).unwrap();
        let away = "198.51.100.1:7".parse().unwrap();
        socket.check();
        socket.send(away, b"hello");
        assert_eq!((log.count("WARN"), log.count("see whether a network leads there")), (1, 1), "{log}");
        ip("address delete 192.0.2.7/32 dev lo");
        socket.send("127.0.0.1:7".parse().unwrap(), b"hello");
        let gone = "This host does not have the address 192.0.2.7 any more";
        let said = "this host does not have the address 192.0.2.7 any more: restart zk-leader-run here";
        assert_eq!((log.count(said), log.count(gone)), (1, 0), "{log}");
        socket.check();
        socket.check();
        assert_eq!(log.count(gone), 1, "{log}");
    };
    std::thread::spawn(in_a_network_of_its_own).join().unwrap();
}

#[test]
fn only_a_socket_can_be_taken_up() {
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(Socket::take_up(file.into()).is_err());
}
