//! The records that open a session (`zookeeper.jute`: `ConnectRequest`, `ConnectResponse`, and the ping that the library
//! sends first of all), big-endian, each behind its length.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Far longer than a request.
const LONGEST: usize = 256;

/// The xid of a ping.
const PING: i32 = -2;

async fn read_record(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = usize::try_from(client.read_i32().await?).ok().filter(|&length| length <= LONGEST);
    let mut record = vec![0; length.ok_or(io::ErrorKind::InvalidData)?];
    client.read_exact(&mut record).await?;
    Ok(record)
}

async fn write_record(client: &mut TcpStream, record: &[u8]) -> io::Result<()> {
    let length = i32::try_from(record.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    client.write_all(&[&length.to_be_bytes(), record].concat()).await
}

/// The session's id and password in a request.
pub(super) async fn read_request(client: &mut TcpStream) -> io::Result<(i64, Vec<u8>)> {
    let request = read_record(client).await?;
    let mut request = request.as_slice();
    let _version = request.read_i32().await?;
    let _last_zxid_seen = request.read_i64().await?;
    let _timeout = request.read_i32().await?;
    let id = request.read_i64().await?;
    let length = usize::try_from(request.read_i32().await?).ok().filter(|&length| length <= LONGEST);
    let mut password = vec![0; length.ok_or(io::ErrorKind::InvalidData)?];
    request.read_exact(&mut password).await?;
    Ok((id, password))
}

/// Answers that the session is established, and then the library's ping.
pub(super) async fn grant(client: &mut TcpStream, id: i64, password: &[u8], negotiated: Duration) -> io::Result<()> {
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
    let mut response = Vec::new();
    response.extend(0_i32.to_be_bytes());
    response.extend(i32::try_from(negotiated.as_millis()).map_err(invalid)?.to_be_bytes());
    response.extend(id.to_be_bytes());
    response.extend(i32::try_from(password.len()).map_err(invalid)?.to_be_bytes());
    response.extend(password);
    // Not read-only.
    response.push(0);
    write_record(client, &response).await?;
    let _ping = read_record(client).await?;
    let (zxid, error) = (0_i64, 0_i32);
    write_record(client, &[&PING.to_be_bytes()[..], &zxid.to_be_bytes(), &error.to_be_bytes()].concat()).await
}
