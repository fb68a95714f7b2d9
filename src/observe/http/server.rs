//! The connections: few, short and small, on the supervisor's own thread. When there are too many the oldest gives way, so
//! that silent clients do not keep others out.
//!
//! Never: a connection without an end; a request body that is read; more than a few kilobytes for one client.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::address::{Listener, SocketFile};
use super::answers::{self, Answer, Identity, TEXT};
use crate::clock;
use crate::observe::liveness::Feed;
use crate::observe::metrics::Metrics;
use crate::observe::status::Status;
use crate::vouching::Dropped;
use crate::zookeeper::publish::DrainNotice;
use crate::zookeeper::schema::vouching::Neighbourhood;

const MOST_CONNECTIONS: usize = 64;
/// For the head of a request, and between two of them.
const HEAD_LIMIT: Duration = Duration::from_secs(5);
/// For a whole connection; a request that is being answered then has a head's time left.
const CONNECTION_LIMIT: Duration = Duration::from_secs(60);
/// hyper's least.
const BUFFER: usize = 8 * 1024;
/// The loop turns within a millisecond; a host that is this busy had better not be counted on.
const TURN_LIMIT: Duration = Duration::from_secs(1);
/// After a connection could not be accepted (no descriptors left?).
const RESPITE: Duration = Duration::from_millis(100);

/// The state that answers are made from.
#[derive(Debug)]
pub struct HttpState {
    pub identity: Identity,
    pub feed: Feed,
    pub metrics: Arc<Metrics>,
    /// The drain of our host.
    pub drain: watch::Receiver<Option<DrainNotice>>,
    /// Those who vouch for one another.
    pub neighbourhood: watch::Receiver<Neighbourhood>,
    /// The datagrams of theirs that were dropped. `None`: without `--vouch`.
    pub dropped: Option<Arc<Dropped>>,
}

/// Serves until the runtime ends.
///
/// # Errors
/// Outside of a tokio runtime with I/O.
pub fn serve(listener: Listener, state: HttpState) -> io::Result<()> {
    let state = Arc::new(state);
    if let Some(address) = listener.address() {
        tracing::info!("HTTP is served at {address}");
    }
    match listener {
        Listener::Tcp(listener) => drop(tokio::spawn(receive(TcpListener::from_std(listener)?, state))),
        Listener::Unix(listener, file) => {
            drop(tokio::spawn(receive((UnixListener::from_std(listener)?, file), state)));
        }
    }
    Ok(())
}

/// A listener for connections.
trait Door: Send + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Door for TcpListener {
    type Stream = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        Self::accept(self).await.map(|(stream, _)| stream)
    }
}

impl Door for (UnixListener, Arc<SocketFile>) {
    type Stream = UnixStream;

    async fn accept(&mut self) -> io::Result<UnixStream> {
        self.0.accept().await.map(|(stream, _)| stream)
    }
}

async fn receive(mut door: impl Door, state: Arc<HttpState>) {
    let mut connections: VecDeque<AbortHandle> = VecDeque::with_capacity(MOST_CONNECTIONS);
    loop {
        match door.accept().await {
            Ok(stream) => {
                connections.retain(|connection| !connection.is_finished());
                if connections.len() >= MOST_CONNECTIONS {
                    connections.pop_front().iter().for_each(AbortHandle::abort);
                }
                connections.push_back(tokio::spawn(converse(stream, Arc::clone(&state))).abort_handle());
            }
            Err(error) => {
                tracing::debug!(%error, "HTTP connection was not accepted");
                sleep(RESPITE).await;
            }
        }
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, state: Arc<HttpState>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(respond(&request, &state).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(BUFFER);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = sleep(CONNECTION_LIMIT) => connection.as_mut().graceful_shutdown(),
    }
    tokio::time::timeout(HEAD_LIMIT, connection).await.ok();
}

/// Load balancers ask by OPTIONS and HEAD, too.
async fn respond(request: &Request<Incoming>, state: &HttpState) -> Response<Full<Bytes>> {
    let asks = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    let answer = if asks {
        answer(request.uri().path(), state).await
    } else {
        Answer::text(StatusCode::METHOD_NOT_ALLOWED.as_u16(), "only GET, HEAD and OPTIONS\n")
    };
    let mut response = Response::new(Full::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !asks {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    }
    response
}

async fn answer(path: &str, state: &HttpState) -> Answer {
    match path {
        // The lease tells, whether the loop turns or not.
        "/leader" => answers::leader(&state.feed.status(), clock::now()),
        "/standby" => asked_of_the_loop(state, |status| answers::standby(status, clock::now())).await,
        "/readyz" => asked_of_the_loop(state, |status| answers::ready(status, clock::now())).await,
        "/livez" => asked_of_the_loop(state, |_| answers::alive()).await,
        "/status" => {
            let known = (&*state.drain.borrow(), &*state.neighbourhood.borrow());
            answers::status(&state.identity, &state.feed.status(), (known.0.as_ref(), known.1), clock::now())
        }
        "/metrics" => {
            let dropped = state.dropped.iter().flat_map(|dropped| dropped.iter());
            dropped.for_each(|(why, total)| state.metrics.datagrams_dropped(why, total));
            answers::metrics(&state.metrics, &state.feed.status(), clock::now())
        }
        "/" => Answer { code: 200, kind: TEXT, body: answers::INDEX.to_owned() },
        _ => Answer { code: 404, kind: TEXT, body: format!("there is no such page; there are\n{}", answers::INDEX) },
    }
}

/// An answer that does not depend on a deadline needs a loop that turns (T46).
async fn asked_of_the_loop(state: &HttpState, judge: impl FnOnce(&Status) -> Answer) -> Answer {
    match state.feed.fresh(TURN_LIMIT).await {
        Some(status) => judge(&status),
        None => Answer::hung(&state.feed.status(), clock::now()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::watch;

    use super::*;
    use crate::observe::http::Address;
    use crate::observe::liveness::Liveness;
    use crate::observe::status::tests::leading;
    use crate::zookeeper::schema::member::About;

    async fn ask(address: &Address, path: &str) -> String {
        let Address::Tcp(address) = address else { unreachable!() };
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply.split(' ').nth(1).unwrap().to_owned()
    }

    /// T46: this loop has turned once, and never does again.
    #[tokio::test]
    async fn a_loop_that_hangs_leads_until_its_deadline_and_is_alive_for_nobody() {
        let now = clock::now();
        let stop_at = now.lease.after(Duration::from_secs(3));
        let (_loop, statuses) = watch::channel(leading(now, stop_at));
        let identity = Identity {
            name: "job".into(),
            id: "a".into(),
            path: "/zk-leader-run/job".into(),
            host: "host".into(),
            pid: 1,
            about: About::default(),
        };
        let metrics = Arc::new(Metrics::new("job", "a"));
        let listener = Listener::bind(&Address::parse("127.0.0.1:0").unwrap()).unwrap();
        let address = listener.address().unwrap();
        let feed = Feed::new(Liveness::default(), statuses);
        let drain = watch::channel(None).1;
        let neighbourhood = watch::channel(Neighbourhood::default()).1;
        serve(listener, HttpState { identity, feed, metrics, drain, neighbourhood, dropped: None }).unwrap();
        assert_eq!(ask(&address, "/leader").await, "200");
        assert_eq!(ask(&address, "/livez").await, "503");
        assert_eq!(ask(&address, "/readyz").await, "503");
        loop {
            let asked_at = clock::now().lease;
            if ask(&address, "/leader").await == "503" {
                break;
            }
            assert!(asked_at < stop_at, "told to lead after the deadline");
        }
        assert!(clock::now().lease >= stop_at, "told not to lead before the deadline");
    }
}
