//! The znodes: `DataTree` and `DataNode`.

use std::collections::{BTreeMap, BTreeSet};

use super::protocol::{Acl, Code, READ, SessionId, Stat, Zxid};

#[derive(Clone, Debug)]
pub struct Node {
    pub data: Vec<u8>,
    pub acl: Vec<Acl>,
    pub children: BTreeSet<String>,
    czxid: Zxid,
    mzxid: Zxid,
    pzxid: Zxid,
    ctime: i64,
    mtime: i64,
    pub version: i32,
    /// How many children were ever created.
    pub created_children: i32,
    pub aversion: i32,
    pub owner: SessionId,
}

impl Node {
    fn new(data: Vec<u8>, acl: Vec<Acl>, owner: SessionId, at: At) -> Self {
        let At { zxid, time } = at;
        let children = BTreeSet::new();
        let (czxid, mzxid, pzxid, ctime, mtime) = (zxid, zxid, zxid, time, time);
        let (version, created_children, aversion) = (0, 0, 0);
        Self { data, acl, children, czxid, mzxid, pzxid, ctime, mtime, version, created_children, aversion, owner }
    }

    pub fn stat(&self) -> Stat {
        let children = self.children.len() as i32;
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            pzxid: self.pzxid,
            ctime: self.ctime,
            mtime: self.mtime,
            version: self.version,
            // Every child that is gone was created and deleted.
            cversion: self.created_children * 2 - children,
            aversion: self.aversion,
            ephemeral_owner: self.owner,
            data_length: self.data.len() as i32,
            num_children: children,
        }
    }
}

/// Of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct At {
    pub zxid: Zxid,
    pub time: i64,
}

/// What watches may wait for, with the ACLs that say who may hear of it.
#[derive(Clone, Debug)]
pub enum Change {
    Created { path: String, acl: Vec<Acl>, parent_acl: Vec<Acl> },
    Deleted { path: String, acl: Vec<Acl>, parent_acl: Vec<Acl> },
    DataChanged { path: String, acl: Vec<Acl> },
}

#[derive(Clone, Debug)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
}

/// `/a/b` → `/a`, `/a` → `/`.
pub fn parent_of(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

impl Tree {
    pub fn new() -> Self {
        let mut tree = Self { nodes: BTreeMap::new() };
        for (path, children) in [
            ("/", &["zookeeper"][..]),
            ("/zookeeper", &["config", "quota"]),
            ("/zookeeper/config", &[]),
            ("/zookeeper/quota", &[]),
        ] {
            let mut node = Node::new(Vec::new(), Acl::open(), 0, At { zxid: 0, time: 0 });
            node.children = children.iter().map(|name| (*name).to_owned()).collect();
            tree.nodes.insert(path.to_owned(), node);
        }
        let config = tree.nodes.get_mut("/zookeeper/config").unwrap();
        config.acl = vec![Acl::new(READ, "world", "anyone")];
        config.aversion = -1;
        tree
    }

    pub fn node(&self, path: &str) -> Result<&Node, Code> {
        // The root has an alias.
        self.nodes.get(if path.is_empty() { "/" } else { path }).ok_or(Code::NoNode)
    }

    pub fn paths_owned_by(&self, session: SessionId) -> Vec<String> {
        self.nodes.iter().filter(|(_, node)| node.owner == session).map(|(path, _)| path.clone()).collect()
    }

    /// All paths, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.nodes.keys()
    }

    pub fn create(&mut self, path: &str, data: Vec<u8>, acl: Vec<Acl>, owner: SessionId, at: At) -> (Stat, Change) {
        let parent = self.nodes.get_mut(parent_of(path)).unwrap();
        let parent_acl = parent.acl.clone();
        parent.children.insert(name_of(path).to_owned());
        parent.created_children += 1;
        parent.pzxid = at.zxid;
        let node = Node::new(data, acl.clone(), owner, at);
        let stat = node.stat();
        self.nodes.insert(path.to_owned(), node);
        (stat, Change::Created { path: path.to_owned(), acl, parent_acl })
    }

    pub fn delete(&mut self, path: &str, at: At) -> Option<Change> {
        let node = self.nodes.remove(path)?;
        let parent = self.nodes.get_mut(parent_of(path)).unwrap();
        parent.children.remove(name_of(path));
        parent.pzxid = at.zxid;
        Some(Change::Deleted { path: path.to_owned(), acl: node.acl, parent_acl: parent.acl.clone() })
    }

    pub fn set_data(&mut self, path: &str, data: Vec<u8>, at: At) -> (Stat, Change) {
        let node = self.nodes.get_mut(path).unwrap();
        node.data = data;
        node.version += 1;
        (node.mzxid, node.mtime) = (at.zxid, at.time);
        (node.stat(), Change::DataChanged { path: path.to_owned(), acl: node.acl.clone() })
    }

    pub fn set_acl(&mut self, path: &str, acl: Vec<Acl>) -> Stat {
        let node = self.nodes.get_mut(path).unwrap();
        node.acl = acl;
        node.aversion += 1;
        node.stat()
    }
}
