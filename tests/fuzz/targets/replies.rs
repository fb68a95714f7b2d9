//! A server that answers anything: the client library's readers, in which there is unsafe code. The input is the server's:
//! at first, if it is odd, the answer that opens the session; then the answer to each request, with the request's number.
#![no_main]

use std::future::poll_fn;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::task::Poll;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::time::sleep;
use zookeeper_client::{Client, Error};

/// For the last reply.
const REST: Duration = Duration::from_millis(2);

/// A part of the input: its length, and so many bytes.
fn part<'a>(data: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (&length, rest) = data.split_first()?;
    let (part, rest) = rest.split_at(usize::from(length).min(rest.len()));
    *data = rest;
    Some(part)
}

async fn record(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let length = usize::try_from(stream.read_i32().await.ok()?).ok()?;
    let mut record = vec![0; length];
    stream.read_exact(&mut record).await.ok()?;
    Some(record)
}

async fn send(stream: &mut TcpStream, record: &[u8]) -> Option<()> {
    let length = i32::try_from(record.len()).ok()?.to_be_bytes();
    stream.write_all(&[&length, record].concat()).await.ok()
}

async fn server(listener: TcpListener, mut data: &[u8]) -> Option<()> {
    let (mut stream, _) = listener.accept().await.ok()?;
    drop(listener);
    record(&mut stream).await?;
    let good = [&[0; 4][..], &4_000_i32.to_be_bytes(), &7_i64.to_be_bytes(), &16_i32.to_be_bytes(), &[1; 16], &[0]];
    let is_good = data.first()? % 2 == 0;
    data = &data[1..];
    let opened = if is_good { good.concat() } else { part(&mut data)?.to_vec() };
    send(&mut stream, &opened).await?;
    loop {
        let request = record(&mut stream).await?;
        let mut request = Cursor::new(request);
        let (xid, _code) = (request.read_i32().await.ok()?, request.read_i32().await.ok()?);
        let Some((&kind, rest)) = data.split_first().filter(|_| xid != -2) else {
            // A ping, or there is no more: an answer without content, then the end.
            send(&mut stream, &[&xid.to_be_bytes()[..], &[0; 12]].concat()).await?;
            if xid != -2 { return None } else { continue }
        };
        data = rest;
        let body = part(&mut data).unwrap_or_default();
        let reply = match kind % 4 {
            // Only the body, the error code too, the whole, or a notification before.
            0 => [&xid.to_be_bytes()[..], &[0; 12], body].concat(),
            1 => [&xid.to_be_bytes()[..], &[0; 8], body].concat(),
            2 => body.to_vec(),
            _ => {
                send(&mut stream, &[&(-1_i32).to_be_bytes()[..], &[0; 12], body].concat()).await?;
                [&xid.to_be_bytes()[..], &[0; 12]].concat()
            }
        };
        send(&mut stream, &reply).await?;
    }
}

/// The library panics at some answers that are too short; our own code is ready for that at each request (`catch_unwind`).
async fn answered<T>(request: impl Future<Output = Result<T, Error>>) -> Option<T> {
    let mut request = std::pin::pin!(request);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| request.as_mut().poll(context))) {
        Ok(polled) => polled.map(Result::ok),
        Err(_) => Poll::Ready(None),
    })
    .await
}

async fn client(address: String) {
    let connector =
        Client::connector().with_session_timeout(Duration::from_secs(4)).with_fail_eagerly().with_detached();
    let Some(client) = answered(connector.connect(&address)).await else { return };
    assert!(answered(client.get_data("/a")).await.is_none_or(|(data, _)| data.len() < 1 << 10), "more than was sent");
    answered(client.get_and_watch_children("/a")).await;
    answered(client.check_and_watch_stat("/a/b")).await;
    let mut multi = client.new_multi_writer();
    multi.add_check_version("/a", 1).unwrap();
    multi.add_set_data("/a", b"x", None).unwrap();
    multi.add_delete("/b", None).unwrap();
    answered(async { multi.commit().await.map_err(|_| Error::ConnectionLoss) }).await;
    answered(client.get_acl("/a")).await;
}

/// In place of the fuzzer's, which ends at every panic. One that nobody catches ends it still.
static QUIET: Once = Once::new();

fuzz_target!(|data: &[u8]| {
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        // A client that was granted a long session tries to come back for as long.
        let end = async {
            server(listener, data).await;
            sleep(REST).await;
        };
        tokio::select! {
            () = client(address) => {}
            () = end => {}
        }
    });
    runtime.shutdown_background();
});
