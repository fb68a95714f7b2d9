//! Loopback ports that no other test of this machine uses at the same time.
//!
//! Taken below the range from which the kernel serves outgoing connections, and reserved by a locked file until dropped.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use rustix::fs::{FlockOperation, flock};

const FIRST: u16 = 17_000;
const COUNT: u16 = 12_000;

/// One port of 127.0.0.1, ours until dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    pub fn reserve() -> Self {
        let start = u16::try_from(std::process::id().wrapping_mul(37) % u32::from(COUNT)).unwrap();
        (0..COUNT)
            .map(|step| FIRST + (start + step) % COUNT)
            .find_map(Self::try_reserve)
            .expect("no free loopback port between 17000 and 29000")
    }

    fn try_reserve(number: u16) -> Option<Self> {
        let directory = std::env::temp_dir().join("zk-leader-run-test-ports");
        std::fs::create_dir_all(&directory).unwrap();
        let lock = File::create(directory.join(number.to_string())).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        Some(Self { number, _lock: lock })
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}
