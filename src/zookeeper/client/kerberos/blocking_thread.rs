//! A thread for calls that may block. The caller need not wait for it; a blocked thread ends with the process.

use std::convert::Infallible;
use std::future::Future;
use std::{io, thread};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use zookeeper_client::{Client, Error};

use crate::zookeeper::client::task::{self, Task};

fn start(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("kerberos".to_owned()).spawn(body).map(drop)
}

/// Makes a call that may block. If the future is dropped, the call goes on and its result is lost.
///
/// # Errors
///
/// No thread can be started.
pub(crate) async fn call<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (sender, receiver) = oneshot::channel();
    start(move || drop(sender.send(call())))?;
    receiver.await.map_err(io::Error::other)
}

/// Opens a session on a thread of its own, where it stays: the client library logs in again by itself when a connection
/// is lost. `meanwhile` runs there as long as the session lasts. If the caller does not wait any more, a new session is closed; one
/// that was to be taken up is left alone, because another connection may serve it by now.
pub async fn open<O>(
    opening: impl FnOnce() -> O + Send + 'static,
    meanwhile: impl Future<Output = Infallible> + Send + 'static,
    takes_up: bool,
) -> (Result<Client, Error>, Option<Task>)
where
    O: Future<Output = Result<Client, Error>>,
{
    let (sender, receiver) = oneshot::channel();
    let stay = move |runtime: Runtime| {
        runtime.block_on(async {
            let opened = task::capture(opening()).await;
            let service = opened.1.clone();
            // A client that is dropped closes its session, unless its task has ended.
            match sender.send(opened) {
                Err((_unclaimed, Some(task))) if takes_up => task.end(),
                _ => {}
            }
            if let Some(mut service) = service {
                tokio::select! {
                    () = service.over() => {}
                    never = meanwhile => match never {},
                }
            }
        });
    };
    let runtime = Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| start(move || stay(runtime))) {
        Ok(()) => receiver.await.unwrap_or((Err(Error::ClientClosed), None)),
        Err(error) => (Err(Error::UnexpectedError(format!("no thread for Kerberos: {error}"))), None),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;

    const PING: i32 = 11;
    const CLOSE: i32 = -11;

    /// A server that grants everything. The kinds of the requests on each connection after the first one, and 0 at its end.
    fn server() -> io::Result<(String, Receiver<i32>)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, (told, requests)) = (listener.local_addr()?.to_string(), channel());
        thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let told = told.clone();
                let tell = move |kind| {
                    if number > 0 {
                        told.send(kind).ok();
                    }
                };
                thread::spawn(move || {
                    serve(stream, &tell).ok();
                    tell(0);
                });
            }
        });
        Ok((address, requests))
    }

    fn serve(mut stream: std::net::TcpStream, tell: &dyn Fn(i32)) -> io::Result<()> {
        let mut is_open = false;
        loop {
            let mut length = [0; 4];
            stream.read_exact(&mut length)?;
            let mut request = vec![0; usize::try_from(i32::from_be_bytes(length)).map_err(io::Error::other)?];
            stream.read_exact(&mut request)?;
            let body = if is_open {
                tell(i32::from_be_bytes(request[4..8].try_into().map_err(io::Error::other)?));
                [&request[..4], &1_i64.to_be_bytes(), &0_i32.to_be_bytes()].concat()
            } else {
                let (timeout, session) = (10_000_i32.to_be_bytes(), 7_i64.to_be_bytes());
                [&[0; 4][..], &timeout, &session, &16_i32.to_be_bytes(), &[7; 16], &[0]].concat()
            };
            is_open = true;
            stream.write_all(
                &[&u32::try_from(body.len()).map_err(io::Error::other)?.to_be_bytes()[..], &body].concat(),
            )?;
        }
    }

    #[tokio::test]
    async fn a_session_that_is_taken_up_too_late_is_not_closed_and_a_new_one_is() {
        for takes_up in [true, false] {
            let (address, requests) = server().unwrap();
            let first = Client::connector().connect(&address).await.unwrap();
            let session = first.session().clone();
            let opening = move || async move {
                sleep(Duration::from_secs(2)).await;
                let connector = Client::connector();
                let connector = if takes_up { connector.with_session(session) } else { connector };
                connector.connect(&address).await
            };
            let opened = timeout(Duration::from_millis(20), open(opening, std::future::pending(), takes_up)).await;
            assert!(opened.is_err(), "the caller has given up");
            let kinds = tokio::task::spawn_blocking(move || {
                let next = || requests.recv_timeout(Duration::from_secs(30)).expect("it ends its connection");
                std::iter::repeat_with(next).take_while(|kind| *kind != 0).collect::<Vec<_>>()
            });
            let kinds = kinds.await.unwrap();
            assert_eq!(kinds.contains(&CLOSE), !takes_up, "{kinds:?}");
            assert!(kinds.iter().all(|kind| [PING, CLOSE].contains(kind)), "{kinds:?}");
            drop(first);
        }
    }
}
