//! An endpoint that is no `ZooKeeper`: it accepts connections and answers each in one way that no server should.
//!
//! Never: a model of `ZooKeeper`'s logic. It knows frames, the connect response and the header of a reply, no znodes.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What the tests put into replies.
pub mod wire {
    /// The error code of a missing znode (`KeeperException.Code.NONODE`).
    pub const NO_NODE: i32 = -101;
    /// The xid of a notification of a watch (`ClientCnxn.NOTIFICATION_XID`).
    pub const NOTIFICATION: i32 = -1;

    /// Four bytes of length, then the bytes.
    pub fn frame(body: &[u8]) -> Vec<u8> {
        [&i32::try_from(body.len()).unwrap().to_be_bytes(), body].concat()
    }

    /// Accepts a session with this timeout.
    pub fn connect_response(session_timeout_ms: i32) -> Vec<u8> {
        let session = 0x0100_0000_0000_0001_i64;
        let body = [
            &0_i32.to_be_bytes()[..],
            &session_timeout_ms.to_be_bytes(),
            &session.to_be_bytes(),
            &16_i32.to_be_bytes(),
        ];
        frame(&[&body.concat()[..], &[7; 16], &[0]].concat())
    }

    /// A reply with this header.
    pub fn reply(xid: i32, error: i32, body: &[u8]) -> Vec<u8> {
        frame(&[&xid.to_be_bytes()[..], &1_i64.to_be_bytes(), &error.to_be_bytes(), body].concat())
    }

    /// A text or a buffer, with its length.
    pub fn text(text: &[u8]) -> Vec<u8> {
        frame(text)
    }
}

/// Listens until dropped; its connections are then shut down, too.
pub struct Impostor {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    gone: Arc<AtomicBool>,
}

/// One connection, as its behaviour sees it.
pub struct Victim {
    stream: TcpStream,
    gone: Arc<AtomicBool>,
}

impl Impostor {
    /// Answers every connection by `behave`, each on a thread of its own. An error ends the connection, as returning does.
    pub fn that(behave: impl Fn(&mut Victim) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, gone) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, over, behave) = (Arc::clone(&connections), Arc::clone(&gone), Arc::new(behave));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let mut victim = Victim { stream: stream.unwrap(), gone: Arc::clone(&over) };
                count.fetch_add(1, Ordering::SeqCst);
                let behave = Arc::clone(&behave);
                std::thread::spawn(move || behave(&mut victim));
            }
        });
        Self { address, connections, gone }
    }

    pub fn connect_string(&self) -> String {
        self.address.to_string()
    }

    /// How often it was connected to.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
        // Wakes the listener.
        TcpStream::connect(self.address).ok();
    }
}

impl Victim {
    /// Sends it as it is.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next frame of the client, without its length.
    pub fn frame(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut body = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    /// The next request: its xid and its type.
    pub fn request(&mut self) -> io::Result<(i32, i32)> {
        let body = self.frame()?;
        let number = |at: usize| i32::from_be_bytes(body[at..at + 4].try_into().unwrap());
        Ok((number(0), number(4)))
    }

    /// Takes the connect request, and accepts the session.
    pub fn accept(&mut self, session_timeout_ms: i32) -> io::Result<()> {
        self.frame()?;
        self.send(&wire::connect_response(session_timeout_ms))
    }

    /// Reads and says nothing until the client closes, or the impostor is dropped.
    pub fn listen_in_silence(&mut self) -> io::Result<()> {
        self.until_gone(|victim| {
            let mut ignored = [0; 4096];
            match victim.stream.read(&mut ignored) {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
                other => other.map(drop),
            }
        })
    }

    /// Does `step` again and again until it fails, or the impostor is dropped. Reading blocks for a moment at most.
    pub fn until_gone(&mut self, mut step: impl FnMut(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.stream.set_read_timeout(Some(std::time::Duration::from_millis(50)))?;
        while !self.gone.load(Ordering::SeqCst) {
            step(self)?;
        }
        Ok(())
    }
}
