//! A real `HAProxy` that asks `/leader` sends traffic to the leader's host and to nobody else.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{election, link};
use crate::support::ports::Port;
use crate::support::{diary, http, wait};

/// What a host serves to the world. It listens whether its host leads or not, so whatever comes at the wrong time is seen.
struct Service {
    address: SocketAddr,
    asked_at: Arc<Mutex<Vec<Duration>>>,
}

impl Service {
    fn called(id: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked_at = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked_at);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                log.lock().unwrap().push(diary::now());
                drop(stream.read(&mut [0; 1024]));
                write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{id}").ok();
            }
        });
        Self { address, asked_at }
    }

    fn asked_at(&self) -> Vec<Duration> {
        self.asked_at.lock().unwrap().clone()
    }
}

struct Balancer {
    process: Child,
    port: Port,
}

impl Balancer {
    /// In front of these hosts: a name, the service, and where `/leader` is asked for.
    fn start(directory: &Path, hosts: &[(&str, SocketAddr, SocketAddr)]) -> Self {
        let port = Port::reserve();
        let mut servers = String::from("    stats enable\n    stats uri /haproxy\n");
        for (name, service, health) in hosts {
            writeln!(servers, "    server {name} {service} check addr {} port {}", health.ip(), health.port()).ok();
        }
        let settings = include_str!("../../examples/haproxy/haproxy.cfg");
        let (head, _) = settings.split_once("    server ").unwrap();
        let settings = head.replace("bind :80", &format!("bind {}", port.address())) + &servers;
        let path = directory.join("haproxy.cfg");
        std::fs::write(&path, settings).unwrap();
        let mut haproxy = Command::new("haproxy");
        haproxy.arg("-db").arg("-f").arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = haproxy.spawn().expect("haproxy is missing: apt-get install haproxy");
        Self { process, port }
    }

    /// The body of what is served.
    fn ask(&self) -> Option<String> {
        http::get(self.port.address(), "/").ok().filter(|reply| reply.code == 200).map(|reply| reply.body)
    }

    /// The first answer may come before the first check.
    fn until_checked(&self) {
        wait::until("every host was checked", || {
            let page = http::get(self.port.address(), "/haproxy;csv").map_or_else(|_| String::new(), |page| page.body);
            let host =
                |line: &&str| line.starts_with("leader,") && !line.contains("FRONTEND") && !line.contains("BACKEND");
            let checked = |line: &str| line.contains(",L7OK,") || line.contains(",L7STS,");
            page.lines().filter(host).count() == 2 && page.lines().filter(host).all(checked)
        });
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn haproxy_sends_traffic_to_the_leader_only_across_a_partition() {
    let election = election();
    let link = link();
    let services = ["a", "b"].map(Service::called);
    // SIGTERM does not end the command: the last two seconds and a half of the lease are without traffic.
    let first = election.host_behind(&link, "a").session_timeout("10s").served();
    let first = first.witness(&election.diary, &["ignore-term"]).spawn();
    election.diary.until_started(1);
    let second = election.steady_host("b").served().spawn();
    election.until_candidates(2);
    let directory = tempfile::tempdir().unwrap();
    let balancer = Balancer::start(
        directory.path(),
        &[("a", services[0].address, http::address_of(&first)), ("b", services[1].address, http::address_of(&second))],
    );
    balancer.until_checked();
    assert_eq!(balancer.ask().as_deref(), Some("a"));
    let early = services[1].asked_at().len();
    link.stall();
    wait::until("traffic goes to the other host", || balancer.ask().as_deref() == Some("b"));
    // The command runs before it has written that it does.
    election.diary.until_started(2);
    let ended_at = election.diary.end_of(election.diary.starts()[0].token);
    assert!(services[0].asked_at().iter().all(|asked_at| *asked_at < ended_at), "a was asked after its command's end");
    let late: Vec<_> = services[1].asked_at().split_off(early);
    assert!(late.iter().all(|asked_at| *asked_at > ended_at), "b was asked before the end of a's command");
    election.diary.assert_no_overlap();
}

/// Answers `status` to each check, but leaves open so many of the next ones. Returns how many checks were answered.
fn checks(status: &'static str, lost: &Arc<AtomicUsize>) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, answered) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let (lost, count) = (Arc::clone(lost), Arc::clone(&answered));
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if lost.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                kept.push(stream);
                continue;
            }
            drop(stream.read(&mut [0; 1024]));
            write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").ok();
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, answered)
}

#[test]
fn one_check_that_is_lost_does_not_cut_off_the_clients_of_a_healthy_leader() {
    let lost = Arc::new(AtomicUsize::new(0));
    let (leader, answered) = checks("200 OK", &lost);
    let (standby, _) = checks("503 Service Unavailable", &Arc::new(AtomicUsize::new(0)));
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let (directory, address) = (tempfile::tempdir().unwrap(), service.local_addr().unwrap());
    let balancer = Balancer::start(directory.path(), &[("a", address, leader), ("b", address, standby)]);
    balancer.until_checked();
    let mut client = TcpStream::connect(balancer.port.address()).unwrap();
    write!(client, "GET / HTTP/1.1\r\nHost: leader\r\nConnection: close\r\n\r\n").unwrap();
    let (mut served, _) = service.accept().unwrap();
    drop(served.read(&mut [0; 1024]));
    write!(served, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbegun").unwrap();
    lost.store(1, Ordering::SeqCst);
    wait::until("a check is lost", || lost.load(Ordering::SeqCst) == 0);
    let before = answered.load(Ordering::SeqCst);
    wait::until("later ones are answered", || answered.load(Ordering::SeqCst) >= before + 3);
    write!(served, ", done").ok();
    drop(served);
    let mut reply = String::new();
    client.read_to_string(&mut reply).ok();
    assert!(reply.ends_with("begun, done"), "{reply}");
}
