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
/// is lost. `meanwhile` runs there as long as the session lasts.
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
            // If the caller does not wait any more, the client is dropped and its session closed.
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
