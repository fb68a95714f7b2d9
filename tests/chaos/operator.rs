//! An operator with a careless hand: looks into `ZooKeeper`, and deletes what others rely on. A session for each errand.
//!
//! Never: a wait longer than its limit; without a quorum the answer is `None`.

use std::time::Duration;

use tokio::runtime::Runtime;
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::lab::Node;

const LIMIT: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub struct Operator {
    node: Node,
    servers: String,
    base: String,
    leaders: usize,
}

/// What is left under the base.
#[derive(Clone, Debug, Default)]
pub struct Leftovers {
    pub candidates: Vec<String>,
    pub record: String,
}

impl Operator {
    pub fn new(node: Node, servers: String, base: String, leaders: usize) -> Self {
        Self { node, servers, base, leaders }
    }

    /// The lease record of a slot.
    fn lease(&self, slot: usize) -> String {
        format!("{}/lease", self.records(slot))
    }

    /// The directory of a slot's records.
    pub fn records(&self, slot: usize) -> String {
        if self.leaders == 1 { self.base.clone() } else { format!("{}/slots/{slot}", self.base) }
    }

    /// Deletes the first candidate of this host.
    pub fn delete_candidate(&self, host: &str) -> bool {
        let (election, host) = (format!("{}/election", self.base), host.to_owned());
        self.errand(|client| async move {
            for name in sorted(client.list_children(&election).await?) {
                let path = format!("{election}/{name}");
                let (data, _) = client.get_data(&path).await?;
                if String::from_utf8_lossy(&data).contains(&host) {
                    return client.delete(&path, None).await;
                }
            }
            Err(Error::NoNode)
        })
        .is_some()
    }

    /// Deletes every candidate and, if nobody was faster, their directory.
    pub fn delete_election(&self) -> bool {
        let election = format!("{}/election", self.base);
        self.errand(|client| async move {
            for _ in 0..5 {
                for name in client.list_children(&election).await? {
                    ignore_absence(client.delete(&format!("{election}/{name}"), None).await)?;
                }
                if client.delete(&election, None).await.is_ok() {
                    break;
                }
            }
            Ok(())
        })
        .is_some()
    }

    pub fn delete_lease(&self, slot: usize) -> bool {
        let lease = self.lease(slot);
        self.errand(|client| async move { client.delete(&lease, None).await }).is_some()
    }

    /// Deletes everything in one write: a base that goes piece by piece is re-created meanwhile, as held by unknown.
    pub fn delete_base(&self) -> bool {
        let base = self.base.clone();
        self.errand(|client| async move {
            for _ in 0..20 {
                let paths = below(&client, &base).await?;
                let mut writer = client.new_multi_writer();
                for path in &paths {
                    writer.add_delete(path, None)?;
                }
                if writer.commit().await.is_ok() {
                    return Ok(());
                }
            }
            Err(Error::NotEmpty)
        })
        .is_some()
    }

    /// The slot that this host holds, or one that it might.
    pub fn slot_of(&self, host: &str) -> usize {
        (1..self.leaders).find(|&slot| self.holder(slot).is_some_and(|id| id == host)).unwrap_or(0)
    }

    /// The id in the lease record, if it is held.
    pub fn holder(&self, slot: usize) -> Option<String> {
        let lease = self.lease(slot);
        let (data, _) = self.errand(|client| async move { client.get_data(&lease).await })?;
        let record: serde_json::Value = serde_json::from_slice(&data).ok()?;
        (record["state"] == "held").then(|| record["holder"]["id"].as_str().map(str::to_owned))?
    }

    /// The ids that the lease record names as those whose promises the holder needs.
    pub fn roster(&self) -> Option<Vec<String>> {
        let lease = self.lease(0);
        let (data, _) = self.errand(|client| async move { client.get_data(&lease).await })?;
        let record: serde_json::Value = serde_json::from_slice(&data).ok()?;
        let named = record["roster"].as_array().into_iter().flatten();
        Some(named.filter_map(|host| host["id"].as_str().map(str::to_owned)).collect())
    }

    pub fn leftovers(&self) -> Option<Leftovers> {
        let base = self.base.clone();
        self.errand(|client| async move {
            let candidates = sorted(client.list_children(&format!("{base}/election")).await?);
            let (record, _) = client.get_data(&format!("{base}/lease")).await?;
            Ok(Leftovers { candidates, record: String::from_utf8_lossy(&record).into_owned() })
        })
    }

    /// Of all candidates the id, the name and the session.
    pub fn candidates(&self) -> Option<Vec<(String, String, i64)>> {
        let election = format!("{}/election", self.base);
        self.errand(|client| async move {
            let mut candidates = Vec::new();
            for name in sorted(client.list_children(&election).await?) {
                let (data, stat) = client.get_data(&format!("{election}/{name}")).await?;
                candidates.push((String::from_utf8_lossy(&data).into_owned(), name, stat.ephemeral_owner));
            }
            Ok(candidates)
        })
    }

    /// Writes again and again in one session, until a write fails or `goes_on` says no after one.
    pub fn write_on(&self, mut goes_on: impl FnMut() -> bool + Send) {
        self.errand_within(Duration::MAX, |client| async move {
            let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
            client.create("/chaos-was-here", b"", &options).await.ok();
            while tokio::time::timeout(LIMIT, client.set_data("/chaos-was-here", b"", None))
                .await
                .is_ok_and(|set| set.is_ok())
            {
                if !goes_on() {
                    break;
                }
            }
            Ok(())
        });
    }

    fn errand<T, F>(&self, errand: impl FnOnce(Client) -> F + Send) -> Option<T>
    where
        T: Send,
        F: Future<Output = Result<T, Error>>,
    {
        self.errand_within(LIMIT, errand)
    }

    /// In a thread of its own, because only a thread can enter a namespace.
    fn errand_within<T, F>(&self, limit: Duration, errand: impl FnOnce(Client) -> F + Send) -> Option<T>
    where
        T: Send,
        F: Future<Output = Result<T, Error>>,
    {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.node.enter();
                runtime().block_on(async {
                    let work = async {
                        let connector = Client::connector().with_session_timeout(LIMIT);
                        errand(connector.connect(&self.servers).await?).await
                    };
                    tokio::time::timeout(limit, work).await.ok()?.ok()
                })
            });
            thread.join().unwrap()
        })
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    // Curator's order: by what follows the last `-`.
    names.sort_by(|one, other| one.rsplit('-').next().cmp(&other.rsplit('-').next()));
    names
}

/// Children before parents.
async fn below(client: &Client, base: &str) -> Result<Vec<String>, Error> {
    let mut paths = vec![base.to_owned()];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        next += 1;
        let children = client.list_children(&path).await?;
        paths.extend(children.into_iter().map(|child| format!("{path}/{child}")));
    }
    paths.reverse();
    Ok(paths)
}

fn ignore_absence(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::NoNode) => Ok(()),
        other => other,
    }
}
