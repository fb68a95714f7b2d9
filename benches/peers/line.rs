//! A line to a server that delivers the answers to writes late, as a server with a slow disk does, or loses every so many answers
//! while the connection lives.

use std::collections::HashSet;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::contender::monotonic;
use crate::jute::request;
use crate::wait;

/// What becomes of answers.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    /// How much later those to writes come, and all that stand behind them.
    pub writes_late_by: Duration,
    /// Every one of this many is lost; zero: none. Pings and events are none.
    pub one_lost_of: usize,
}

/// Dropped: connections that stand go on, new ones are not taken.
#[derive(Clone)]
pub struct Line {
    pub address: String,
    faults: Arc<Mutex<Faults>>,
    answers: Arc<Mutex<usize>>,
}

impl Line {
    pub fn to(server: &str, faults: Faults) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let line = Self { address, faults: Arc::new(Mutex::new(faults)), answers: Arc::default() };
        let (carrier, server) = (line.clone(), server.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                carrier.carry(client, &server).ok();
            }
        });
        Ok(line)
    }

    pub fn change(&self, faults: Faults) {
        *self.faults.lock().unwrap() = faults;
    }

    fn carry(&self, client: TcpStream, server: &str) -> io::Result<()> {
        let server = TcpStream::connect(server)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let writes = Arc::<Mutex<HashSet<i32>>>::default();
        let (late, due) = channel();
        let (from, to, seen) = (client.try_clone()?, server.try_clone()?, Arc::clone(&writes));
        thread::spawn(move || requests(from, to, &seen));
        let line = self.clone();
        let from = server.try_clone()?;
        thread::spawn(move || line.answers(from, &writes, &late));
        thread::spawn(move || deliver(&due, client, &server));
        Ok(())
    }

    fn answers(&self, mut server: TcpStream, writes: &Mutex<HashSet<i32>>, late: &Sender<(Duration, Vec<u8>)>) {
        let mut is_greeting = true;
        while let Ok(frame) = frame(&mut server) {
            let faults = *self.faults.lock().unwrap();
            let xid = int(&frame, 4);
            let is_write = writes.lock().unwrap().remove(&xid);
            if !std::mem::take(&mut is_greeting) && xid > 0 && self.is_lost(faults) {
                continue;
            }
            let by = if is_write { faults.writes_late_by } else { Duration::ZERO };
            if late.send((monotonic() + by, frame)).is_err() {
                return;
            }
        }
    }

    fn is_lost(&self, faults: Faults) -> bool {
        let mut answers = self.answers.lock().unwrap();
        *answers += 1;
        faults.one_lost_of > 0 && *answers % faults.one_lost_of == 0
    }
}

/// `jute.maxbuffer`.
const LARGEST_FRAME: usize = 1 << 20;
const WRITES: [i32; 6] =
    [request::CREATE, request::CREATE2, request::DELETE, request::SET_DATA, request::MULTI, request::CLOSE_SESSION];

fn requests(mut client: TcpStream, mut server: TcpStream, writes: &Mutex<HashSet<i32>>) {
    let mut is_greeting = true;
    while let Ok(frame) = frame(&mut client) {
        if !std::mem::take(&mut is_greeting) && WRITES.contains(&int(&frame, 8)) {
            writes.lock().unwrap().insert(int(&frame, 4));
        }
        if server.write_all(&frame).is_err() {
            break;
        }
    }
    server.shutdown(Shutdown::Both).ok();
}

fn deliver(due: &Receiver<(Duration, Vec<u8>)>, mut client: TcpStream, server: &TcpStream) {
    for (at, frame) in due {
        wait::pass(at.saturating_sub(monotonic()));
        if client.write_all(&frame).is_err() {
            break;
        }
    }
    client.shutdown(Shutdown::Both).ok();
    server.shutdown(Shutdown::Both).ok();
}

/// With its length in front.
fn frame(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let rest = usize::try_from(i32::from_be_bytes(length)).map_err(io::Error::other)?;
    if rest > LARGEST_FRAME {
        return Err(io::Error::other("a four-letter word"));
    }
    let mut frame = vec![0; 4 + rest];
    frame[..4].copy_from_slice(&length);
    from.read_exact(&mut frame[4..])?;
    Ok(frame)
}

fn int(frame: &[u8], at: usize) -> i32 {
    frame.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_be_bytes)
}
