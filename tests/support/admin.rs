//! A pair of hands inside `ZooKeeper`: blocking calls with full paths, for tests with and without a runtime of their own.
//!
//! Never: retries; a test that breaks the server which it asks through `Admin` gets a panic with the error.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::Handle;
use zookeeper_client::{Acl, Acls, AuthId, Client, Connector, CreateMode, Error, Permission, Stat};

/// As `zkCli.sh` orders them.
const RIGHTS: [(char, Permission); 5] = [
    ('c', Permission::CREATE),
    ('d', Permission::DELETE),
    ('r', Permission::READ),
    ('w', Permission::WRITE),
    ('a', Permission::ADMIN),
];

/// A session of its own, served by a thread of its own. Dropped: the session is closed.
#[derive(Debug)]
pub struct Admin {
    client: Client,
    runtime: Handle,
}

impl Admin {
    /// Connects to `host:port,…`; panics if that takes longer than a generous limit.
    pub fn to(servers: &str) -> Self {
        Self::with_session_timeout(servers, Duration::from_secs(30))
    }

    /// The same with a session timeout, for ephemeral znodes that shall expire.
    pub fn with_session_timeout(servers: &str, session_timeout: Duration) -> Self {
        Self::through(Client::connector().with_session_timeout(session_timeout), servers)
    }

    /// The same as somebody: `user:password` of the scheme `digest`.
    pub fn known_as(servers: &str, login: &str) -> Self {
        let connector = Client::connector().with_session_timeout(Duration::from_secs(30));
        Self::through(connector.with_auth("digest", login.as_bytes()), servers)
    }

    /// The same by a connector of one's own: with an identity, say.
    pub fn through(connector: Connector, servers: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let servers = servers.to_owned();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            runtime.block_on(async {
                let client = connector.connect(&servers).await.expect("the admin session is established");
                let mut states = client.state_watcher();
                sender.send(client).expect("the test waits for its admin session");
                while !states.changed().await.is_terminated() {}
            });
        });
        Self { client: receiver.recv().expect("the admin session is established"), runtime: handle }
    }

    /// The names of the children, sorted; none if the znode does not exist.
    pub fn children(&self, path: &str) -> Vec<String> {
        let found = self.absent_as_none(path, |client, path| async move { client.list_children(&path).await });
        let mut children = found.unwrap_or_default();
        children.sort();
        children
    }

    /// The data as text; panics if the znode does not exist.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        self.find(path).unwrap_or_else(|| panic!("{path} does not exist")).0
    }

    /// The data as text and the stat, if the znode exists.
    pub fn find(&self, path: &str) -> Option<(String, Stat)> {
        let found = self.absent_as_none(path, |client, path| async move { client.get_data(&path).await })?;
        Some((String::from_utf8_lossy(&found.0).into_owned(), found.1))
    }

    pub fn stat(&self, path: &str) -> Option<Stat> {
        self.find(path).map(|(_, stat)| stat)
    }

    pub fn exists(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// Creates a persistent znode; its parent must exist.
    #[track_caller]
    pub fn create(&self, path: &str, data: &str) {
        self.create_as(CreateMode::Persistent, path, data);
    }

    /// Creates an ephemeral znode; its parent must exist.
    #[track_caller]
    pub fn create_ephemeral(&self, path: &str, data: &str) {
        self.create_as(CreateMode::Ephemeral, path, data);
    }

    /// Creates an ephemeral sequential znode and returns its full path.
    #[track_caller]
    pub fn create_sequential(&self, prefix: &str, data: &str) -> String {
        format!("{prefix}{}", self.create_as(CreateMode::EphemeralSequential, prefix, data))
    }

    /// Creates what is missing of a path of persistent, empty znodes.
    #[track_caller]
    pub fn create_all(&self, path: &str) {
        self.must(path, |client, path| async move {
            client.mkdir(&path, &CreateMode::Persistent.with_acls(Acls::anyone_all())).await
        });
    }

    /// Overwrites the data, whatever its version.
    #[track_caller]
    pub fn set(&self, path: &str, data: &str) {
        let data = data.as_bytes().to_vec();
        self.must(path, |client, path| async move { client.set_data(&path, &data, None).await });
    }

    /// Who may do what with it, as `zkCli.sh` writes it: `world:anyone:cdrwa`.
    #[track_caller]
    pub fn acl(&self, path: &str) -> Vec<String> {
        self.find_acl(path).unwrap_or_else(|| panic!("{path} does not exist"))
    }

    /// The same, if the znode exists.
    #[track_caller]
    pub fn find_acl(&self, path: &str) -> Option<Vec<String>> {
        let (entries, _) = self.absent_as_none(path, |client, path| async move { client.get_acl(&path).await })?;
        let letters = |entry: &Acl| {
            RIGHTS
                .iter()
                .filter(|(_, right)| entry.permission().has(*right))
                .map(|(letter, _)| *letter)
                .collect::<String>()
        };
        Some(entries.iter().map(|entry| format!("{}:{}:{}", entry.scheme(), entry.id(), letters(entry))).collect())
    }

    /// Replaces its ACL by this one entry.
    #[track_caller]
    pub fn set_acl(&self, path: &str, scheme: &str, id: &str, letters: &str) {
        let rights = RIGHTS
            .iter()
            .filter(|(letter, _)| letters.contains(*letter))
            .fold(Permission::NONE, |all, (_, right)| all | *right);
        let entries = [Acl::new(rights, AuthId::new(scheme, id))];
        self.must(path, |client, path| async move { client.set_acl(&path, &Acls::new(&entries), None).await });
    }

    /// From now on everyone may read it, and nobody may write it.
    #[track_caller]
    pub fn make_read_only(&self, path: &str) {
        self.must(path, |client, path| async move { client.set_acl(&path, &Acls::anyone_read(), None).await });
    }

    /// Deletes a znode without children, whatever its version; it must exist.
    #[track_caller]
    pub fn delete(&self, path: &str) {
        self.must(path, |client, path| async move { client.delete(&path, None).await });
    }

    /// Deletes a znode and all below it.
    #[track_caller]
    pub fn delete_tree(&self, path: &str) {
        for child in self.children(path) {
            self.delete_tree(&format!("{path}/{child}"));
        }
        self.delete(path);
    }

    /// Deletes all of these in one multi, so that nobody can act between two of them. Children come before their parents.
    #[track_caller]
    pub fn delete_at_once(&self, paths: &[String]) {
        let paths = paths.to_vec();
        self.must("several", |client, _| async move {
            let mut multi = client.new_multi_writer();
            for path in &paths {
                multi.add_delete(path, None)?;
            }
            multi.commit().await.map(drop).map_err(Error::from)
        });
    }

    /// Deletes a znode and makes an ephemeral one of ours in its place, in one multi.
    #[track_caller]
    pub fn replace_by_ephemeral(&self, path: &str, data: &str) {
        let data = data.as_bytes().to_vec();
        self.must(path, |client, path| async move {
            let mut multi = client.new_multi_writer();
            multi.add_delete(&path, None)?;
            multi.add_create(&path, &data, &CreateMode::Ephemeral.with_acls(Acls::anyone_all()))?;
            multi.commit().await.map(drop).map_err(Error::from)
        });
    }

    /// The server's id of this session.
    pub fn session_id(&self) -> i64 {
        self.client.session_id().0
    }

    #[track_caller]
    fn create_as(&self, mode: CreateMode, path: &str, data: &str) -> String {
        let data = data.as_bytes().to_vec();
        let (_, sequence) = self.must(path, |client, path| async move {
            client.create(&path, &data, &mode.with_acls(Acls::anyone_all())).await
        });
        sequence.to_string()
    }

    #[track_caller]
    fn must<T, F>(&self, path: &str, ask: impl FnOnce(Client, String) -> F) -> T
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        self.ask(path, ask).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[track_caller]
    fn absent_as_none<T, F>(&self, path: &str, ask: impl FnOnce(Client, String) -> F) -> Option<T>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        match self.ask(path, ask) {
            Err(Error::NoNode) => None,
            answer => Some(answer.unwrap_or_else(|error| panic!("{path}: {error}"))),
        }
    }

    /// Runs on the session's thread, so that it may be called from within another runtime.
    pub fn ask<T, F>(&self, path: &str, ask: impl FnOnce(Client, String) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        let (sender, receiver) = mpsc::channel();
        let request = ask(self.client.clone(), path.to_owned());
        self.runtime.spawn(async move { sender.send(request.await) });
        receiver.recv().expect("the admin session lives")
    }
}
