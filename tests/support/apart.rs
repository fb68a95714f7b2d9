//! A network of one's own, with no address but those that a test gives it, and from which a server of the test is reached all the same.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use super::addresses::pass_on;

/// A network namespace.
pub struct Apart(File);

impl Apart {
    /// This host alone is there: 127.0.0.1.
    pub fn new() -> Self {
        let made = || {
            unshare(CloneFlags::CLONE_NEWNET).expect("this needs root");
            Self(File::open("/proc/thread-self/ns/net").unwrap())
        };
        let apart = thread::spawn(made).join().unwrap();
        apart.ip("link set lo up");
        apart
    }

    /// What is opened there stays there.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let act = || {
            setns(&self.0, CloneFlags::CLONE_NEWNET).unwrap();
            act()
        };
        thread::scope(|scope| scope.spawn(act).join().unwrap())
    }

    #[track_caller]
    pub fn ip(&self, words: &str) {
        let status = self.within(|| Command::new("ip").args(words.split(' ')).status());
        assert!(status.is_ok_and(|status| status.success()), "ip {words}");
    }

    /// Where a server of the test answers, at this address.
    pub fn server_at(&self, address: &str, server: SocketAddr) -> SocketAddr {
        let listener = self.within(|| TcpListener::bind((address, 0)).unwrap());
        let address = listener.local_addr().unwrap();
        pass_on(listener, server);
        address
    }

    /// What runs a program there.
    pub fn wrapper(&self) -> Command {
        let mut wrapper = Command::new("nsenter");
        wrapper.arg(format!("--net=/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()));
        wrapper
    }

    /// The same, and another wrapper there.
    pub fn and(&self, other: &Command) -> Command {
        let mut wrapper = self.wrapper();
        wrapper.arg(other.get_program()).args(other.get_args());
        wrapper
    }
}
