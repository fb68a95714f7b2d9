//! A thread of its own for whatever may block.
//!
//! Never: a thread that somebody has to wait for; one that is stuck ends with the process.

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

/// Calls what may block. Given up, it goes on, and its answer is lost.
///
/// # Errors
/// There can be no thread.
pub(crate) async fn call<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (sender, receiver) = oneshot::channel();
    start(move || drop(sender.send(call())))?;
    receiver.await.map_err(io::Error::other)
}

/// Opens a session on a thread on which it then stays: the client library logs in again by itself when a connection is lost.
/// `meanwhile` is done there as long as the session lasts.
pub async fn open<O>(
    opening: impl FnOnce() -> O + Send + 'static,
    meanwhile: impl Future<Output = Infallible> + Send + 'static,
) -> (Result<Client, Error>, Option<Task>)
where
    O: Future<Output = Result<Client, Error>>,
{
    let (sender, receiver) = oneshot::channel();
    let stay = move |runtime: Runtime| {
        runtime.block_on(async {
            let opened = task::capture(opening()).await;
            let service = opened.1.clone();
            // If nobody waits any more, the client is dropped, and its session closed.
            drop(sender.send(opened));
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
