//! One election of one test: a name that no other test has, a diary for its witnesses, and a view of its znodes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use zookeeper_client::Stat;

use super::{Admin, Diary, Proxy, Subject, wait};

/// T of a host, if a test does not say otherwise. With a shorter one, a busy machine is late for the guard's deadlines too often:
/// safe, but then the kernel kills the guard, and the program ends.
pub const SESSION_TIMEOUT: &str = "3s";

/// T of a host whose lease shall not run out in its test: a machine that stalls for ten seconds ends no command.
pub const STEADY: &str = "20s";

/// No command lives longer than this after the last renewal of a host with the usual session timeout.
pub const LEASE: Duration = wait::secs(3);

pub struct Election {
    pub name: String,
    pub diary: Diary,
    pub admin: Admin,
    servers: String,
}

impl Election {
    /// An election of its own on these servers (`host:port,…`).
    pub fn on(servers: &str) -> Self {
        Self::seen_by(Admin::to(servers), servers)
    }

    /// The same, seen through a session of one's own.
    pub fn seen_by(admin: Admin, servers: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("e{}", COUNT.fetch_add(1, Ordering::SeqCst));
        Self { name, diary: Diary::new(), admin, servers: servers.to_owned() }
    }

    /// Where the ensemble is.
    pub fn servers(&self) -> &str {
        &self.servers
    }

    /// A host with the witness as its command, not yet started.
    pub fn host(&self, id: &str) -> Subject {
        self.host_at(&self.servers, id)
    }

    /// The same, for a test that waits for no lease to run out.
    pub fn steady_host(&self, id: &str) -> Subject {
        self.host(id).session_timeout(STEADY)
    }

    /// A host with the witness as its command, behind a link that can be broken.
    pub fn host_behind(&self, link: &Proxy, id: &str) -> Subject {
        self.host_at(&link.connect_string(), id)
    }

    /// A host with the witness as its command, on servers of its choice.
    pub fn host_at(&self, servers: &str, id: &str) -> Subject {
        Subject::new(servers, &self.name, id).session_timeout(SESSION_TIMEOUT).witness(&self.diary, &[])
    }

    /// The full path of a znode below the base.
    pub fn path(&self, below: &str) -> String {
        format!("/zk-leader-run/{}/{below}", self.name)
    }

    /// The names in the election directory, first in line first.
    pub fn candidates(&self) -> Vec<String> {
        let mut names = self.admin.children(&self.path("election"));
        names.sort_by_key(|name| sequence(name));
        names
    }

    /// The full path of the first in line.
    pub fn first(&self) -> String {
        self.path(&format!("election/{}", self.candidates().first().expect("there is a candidate")))
    }

    /// Waits until so many stand in line.
    #[track_caller]
    pub fn until_candidates(&self, count: usize) {
        let found = wait::held_within(wait::LIMIT, || self.candidates().len() == count);
        assert!(found, "never saw {count} candidates; there are {:?}", self.candidates());
    }

    /// The lease record, which must be readable.
    pub fn record(&self) -> Value {
        serde_json::from_str(&self.admin.read(&self.path("lease"))).unwrap()
    }

    /// `held` or `free`.
    pub fn state(&self) -> String {
        self.record()["state"].as_str().unwrap().to_owned()
    }

    pub fn record_version(&self) -> i32 {
        self.admin.stat(&self.path("lease")).unwrap().version
    }

    /// Waits until the record was written so often from now on.
    #[track_caller]
    pub fn until_renewed(&self, times: i32) {
        let version = self.record_version();
        wait::until("the lease is renewed", || self.record_version() >= version + times);
    }

    pub fn term(&self) -> Stat {
        self.admin.stat(&self.path("term")).unwrap()
    }

    /// Creates all znodes, by a run that came and went.
    pub fn prepare(&self) {
        assert_eq!(self.steady_host("prepares").command(&["true"]).spawn().code(), 0);
    }
}

/// The ten digits at the end, or nothing.
pub fn sequence(name: &str) -> Option<i64> {
    name.rsplit('-').next().and_then(|digits| digits.parse().ok())
}
