//! Whatever is sent to `--http` is answered by answers and nothing else, and the next client is served.
#![no_main]

use std::ffi::OsString;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::timeout;
use zk_leader_run::config::load::load;
use zk_leader_run::config::source::process_environment::ProcessEnvironment;
use zk_leader_run::core::machine::Machine;
use zk_leader_run::observe::http::{Address, HttpState, Identity, Listener, serve};
use zk_leader_run::observe::status_publisher::StatusPublisher;
use zk_leader_run::zookeeper::schema::member::About;
use zk_leader_run::zookeeper::schema::vouching::Neighbourhood;
use zk_leader_run::{clock, wiring};

/// Their answers fit into a socket's buffer. Where an answer has to wait for room, hyper does not always read on, and the connection
/// ends after 60 s.
const MOST_REQUESTS: usize = 20;
const LIMIT: Duration = Duration::from_secs(20);

thread_local! {
    static SERVED: (Runtime, String) = served();
}

fn served() -> (Runtime, String) {
    let variables = vec![(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))];
    let environment = ProcessEnvironment { variables, host: "host".into(), pid: 1, ..ProcessEnvironment::default() };
    let config = load(["zk-leader-run", "--name", "job", "true"].map(OsString::from), &environment).unwrap();
    let path = format!("{}/zk-leader-fuzz-{}", std::env::temp_dir().display(), std::process::id());
    let (name, id, host) = ("job".to_owned(), "host:1".to_owned(), "host".to_owned());
    let identity = Identity { name, id, host, path: "/job".into(), pid: 1, about: About::default() };
    let snapshot = Machine::new(wiring::machine(&config, 7), clock::now()).snapshot();
    // Its end says at once that the loop does not turn.
    let publisher = StatusPublisher::new(clock::now(), snapshot, &identity);
    let (feed, metrics) = (publisher.feed(), publisher.metrics());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let listener = Listener::bind(&Address::Unix(path.clone().into())).unwrap();
    runtime
        .block_on(async { serve(listener, HttpState { identity, feed, metrics, drain: watch::channel(None).1, neighbourhood: watch::channel(Neighbourhood::default()).1, dropped: None }) })
        .unwrap();
    (runtime, path)
}

/// All that is answered until the server closes.
async fn ask(path: &str, request: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(path).await.unwrap();
    let mut answer = Vec::new();
    // The server may close before it has read all.
    let asked = async {
        stream.write_all(request).await.ok();
        stream.shutdown().await.ok();
        stream.read_to_end(&mut answer).await.ok();
    };
    timeout(LIMIT, asked).await.expect("no end");
    answer
}

fuzz_target!(|data: &[u8]| {
    if data.windows(6).filter(|letters| letters == b"HTTP/1").count() > MOST_REQUESTS {
        return;
    }
    SERVED.with(|(runtime, path)| {
        let answer = runtime.block_on(ask(path, data));
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{:?}", String::from_utf8_lossy(&answer));
        let next = runtime.block_on(ask(path, b"GET /leader HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        assert!(next.starts_with(b"HTTP/1.1 503"), "{:?}", String::from_utf8_lossy(&next));
    });
});
