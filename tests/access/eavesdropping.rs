//! What somebody hears who listens between us and the servers.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::sys::signal::Signal;

use super::tls::{site, text};
use crate::support::election::STEADY;
use crate::support::ensemble::Build;
use crate::support::{Election, Ensemble, Subject};

// So long that no chance puts them into what is encrypted.
const PASSWORD: &str = "hunter2-on-the-wire";
const USER: &str = "bob-on-the-wire";
const NAME: &str = "name-on-the-wire";

/// A relay that keeps what passes, in both directions.
struct Tap {
    port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Tap {
    fn on(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, heard) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<u8>>>::default());
        let all = Arc::clone(&heard);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else { continue };
                let pairs = [(&client, &server), (&server, &client)];
                for (from, to) in pairs.map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap())) {
                    let all = Arc::clone(&all);
                    thread::spawn(move || relay(from, to, &all));
                }
            }
        });
        Self { port, heard }
    }

    fn has_heard(&self, word: &str) -> bool {
        self.heard.lock().unwrap().windows(word.len()).any(|window| window == word.as_bytes())
    }
}

fn relay(mut from: TcpStream, mut to: TcpStream, all: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        all.lock().unwrap().extend_from_slice(&bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    to.shutdown(Shutdown::Both).ok();
}

/// A term from its beginning to its end, as this identity.
fn lead(election: &Election, servers: &str, identity: &str, prepare: impl FnOnce(Subject) -> Subject) {
    let starts = election.diary.starts().len();
    let host = prepare(election.host_at(servers, "a").session_timeout(STEADY))
        .env("ZK_LEADER_RUN_AUTH", &format!("{identity}:{PASSWORD}"));
    let mut host = host.spawn();
    election.diary.until_started(starts + 1);
    host.signal(Signal::SIGTERM);
    assert_eq!(host.code(), 0, "{}", host.log());
}

#[test]
fn in_plain_text_everything_is_heard_and_over_tls_nothing() {
    let (site, mut election) = (site(), site().election());
    NAME.clone_into(&mut election.name);
    let plain = Tap::on(site.ensemble.server(0).address());
    lead(&election, &format!("localhost:{}", plain.port), &format!("digest:{USER}"), |host| host);
    assert!(plain.has_heard(PASSWORD) && plain.has_heard(NAME), "the ear is deaf");

    let secure = Tap::on(site.secure.address());
    lead(&election, &format!("tcp+tls://localhost:{}", secure.port), &format!("digest:{USER}"), |host| {
        let ca = site.authority.certificate();
        let host = host.option("--tls-ca", text(&ca)).option("--tls-cert", text(&site.ours.certificate));
        host.option("--tls-key", text(&site.ours.key))
    });
    assert!(!secure.heard.lock().unwrap().is_empty());
    for word in [PASSWORD, USER, NAME, "zk-leader-run/", "election"] {
        assert!(!secure.has_heard(word), "{word} was heard");
    }
}

#[cfg(feature = "sasl-digest")]
#[test]
fn a_login_by_sasl_sends_the_user_and_no_password() {
    let users = tempfile::tempdir().unwrap();
    let file = users.path().join("jaas.conf");
    let module = "org.apache.zookeeper.server.auth.DigestLoginModule";
    std::fs::write(&file, format!("Server {{ {module} required user_bob=\"{PASSWORD}\"; }};\n")).unwrap();
    let java = vec![format!("-Djava.security.auth.login.config={}", file.display())];
    let config = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n".to_owned();
    let ensemble = Ensemble::built(1, &Build { config, java });
    let (election, tap) = (Election::on(&ensemble.connect_string()), Tap::on(ensemble.server(0).address()));
    lead(&election, &format!("localhost:{}", tap.port), "sasl:bob", |host| host);
    assert!(tap.has_heard("bob") && tap.has_heard("digest-uri"), "there was no login");
    assert!(!tap.has_heard(PASSWORD));
}
