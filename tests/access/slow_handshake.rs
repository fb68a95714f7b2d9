//! A server in the distance, or one under load, answers late: the operator says how long to try.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use super::secs;
use super::tls::site;
use crate::support::wait;

#[test]
fn a_slow_handshake_may_take_an_operator_all_of_the_connect_timeout() {
    let site = site();
    let election = site.election();
    election.prepare();
    let servers = format!("tcp+tls://localhost:{}", slow_to_answer(site.secure.number(), secs(6)));
    let said = site.ctl(&servers, &["status", &election.name, "--connect-timeout", "2m"]);
    let output = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.code() == Some(1) && output.contains("nobody"), "{said:?}");
}

/// A relay that holds back the first answer of each connection for so long: the server's part of the handshake.
fn slow_to_answer(target: u16, delay: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", target)).unwrap();
            let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                std::io::copy(&mut from_client, &mut to_server).ok();
                to_server.shutdown(Shutdown::Write).ok();
            });
            std::thread::spawn(move || {
                let (mut from_server, mut to_client) = (server, client);
                from_server.peek(&mut [0]).ok();
                wait::pass(delay);
                std::io::copy(&mut from_server, &mut to_client).ok();
                to_client.shutdown(Shutdown::Both).ok();
            });
        }
    });
    port
}
