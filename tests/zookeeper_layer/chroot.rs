//! A tree of one test on the server that all tests share which do not break it: most of the time of a test, and nearly all that
//! it costs, is the start of a server.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::standalone::server;
use crate::support::{Admin, Proxy};

/// A znode that stands for the root.
pub struct Chroot {
    path: String,
}

impl Chroot {
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let path = format!("/test{}", COUNT.fetch_add(1, Ordering::Relaxed));
        Admin::to(&server().connect_string()).create(&path, "");
        Self { path }
    }

    /// `host:port/path`.
    pub fn connect_string(&self) -> String {
        format!("{}{}", server().connect_string(), self.path)
    }

    /// The same behind a link that can be broken.
    pub fn behind(&self, proxy: &Proxy) -> String {
        format!("{}{}", proxy.connect_string(), self.path)
    }
}
