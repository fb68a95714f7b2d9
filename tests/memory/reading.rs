//! What a server answers from what it has applied: `FinalRequestProcessor`.

use super::acl;
use super::ensemble::{Ensemble, shuffle};
use super::protocol::{ADMIN, Code, ConnectionId, EventKind, Id, Message, READ, Reply, Request, Zxid};
use super::settings::Version;
use super::state::State;
use super::tree::Node;

impl Ensemble {
    pub(super) fn read(
        &mut self,
        server: usize,
        connection: ConnectionId,
        request: &Request,
        who: &[Id],
    ) -> Result<Reply, Code> {
        let known = &mut self.servers[server];
        match request {
            Request::Exists { path, watch } => {
                may_ask_for(&known.state, path, self.settings.version, who)?;
                if *watch {
                    known.watches.watch_data(path, connection);
                }
                Ok(Reply::Stat(known.state.tree.node(path)?.stat()))
            }
            Request::GetData { path, watch } => {
                let node = readable(&known.state, path, READ, who)?;
                if *watch {
                    known.watches.watch_data(path, connection);
                }
                Ok(Reply::Data { data: node.data.clone(), stat: node.stat() })
            }
            Request::GetChildren { path, watch } => {
                let node = readable(&known.state, path, READ, who)?;
                if *watch {
                    known.watches.watch_children(path, connection);
                }
                let mut names: Vec<String> = node.children.iter().cloned().collect();
                shuffle(&mut self.rng, &mut names);
                Ok(Reply::Children { names, stat: node.stat() })
            }
            Request::GetAcl { path } => {
                let node = readable(&known.state, path, READ | ADMIN, who)?;
                Ok(Reply::Acl { acl: acl::as_seen_by(&node.acl, who), stat: node.stat() })
            }
            Request::GetEphemerals { prefix } => {
                let mut paths = known.state.tree.paths_owned_by(known.connections[&connection].session);
                paths.retain(|path| prefix == "/" || path.starts_with(prefix));
                Ok(Reply::Ephemerals(paths))
            }
            Request::SetWatches { since, data, exists, children } => {
                self.set_watches(server, connection, *since, [data, exists, children]);
                Ok(Reply::Done)
            }
            _ => Ok(Reply::Done),
        }
    }

    /// Fires what has happened while the client was away, whoever may read it.
    fn set_watches(&mut self, server: usize, connection: ConnectionId, since: Zxid, paths: [&[String]; 3]) {
        let server = &mut self.servers[server];
        let [data, exists, children] = paths;
        let mut missed = Vec::new();
        for path in data {
            match server.state.tree.node(path) {
                Err(_) => missed.push((EventKind::Deleted, path)),
                Ok(node) if node.stat().mzxid > since => missed.push((EventKind::DataChanged, path)),
                Ok(_) => server.watches.watch_data(path, connection),
            }
        }
        for path in exists {
            match server.state.tree.node(path) {
                Ok(_) => missed.push((EventKind::Created, path)),
                Err(_) => server.watches.watch_data(path, connection),
            }
        }
        for path in children {
            match server.state.tree.node(path) {
                Err(_) => missed.push((EventKind::Deleted, path)),
                Ok(node) if node.stat().pzxid > since => missed.push((EventKind::ChildrenChanged, path)),
                Ok(_) => server.watches.watch_children(path, connection),
            }
        }
        for (kind, path) in missed {
            self.send(connection, Message::Event { zxid: -1, kind, path: path.clone() });
        }
    }
}

/// ZOOKEEPER-2590: whether a znode exists is told to those alone who may read it.
fn may_ask_for(state: &State, path: &str, version: Version, who: &[Id]) -> Result<(), Code> {
    match state.tree.node(path) {
        Ok(node) if version == Version::V3_9 => acl::check(&node.acl, READ, who),
        _ => Ok(()),
    }
}

fn readable<'a>(state: &'a State, path: &str, permissions: i32, who: &[Id]) -> Result<&'a Node, Code> {
    let node = state.tree.node(path)?;
    acl::check(&node.acl, permissions, who)?;
    Ok(node)
}
