//! One-shot watches of one server: `WatchManager`, twice.

use std::collections::{BTreeMap, BTreeSet};

use super::protocol::{Acl, ConnectionId, EventKind};
use super::tree::{Change, parent_of};

type Table = BTreeMap<String, BTreeSet<ConnectionId>>;

#[derive(Clone, Debug, Default)]
pub struct Watches {
    /// Set by `exists` and `get_data`.
    data: Table,
    /// Set by `get_children`.
    children: Table,
}

/// A watch that fired.
#[derive(Clone, Debug)]
pub struct Fired {
    pub connection: ConnectionId,
    pub kind: EventKind,
    pub path: String,
    /// Who may hear of it.
    pub acl: Vec<Acl>,
}

impl Watches {
    pub fn watch_data(&mut self, path: &str, connection: ConnectionId) {
        self.data.entry(path.to_owned()).or_default().insert(connection);
    }

    pub fn watch_children(&mut self, path: &str, connection: ConnectionId) {
        self.children.entry(path.to_owned()).or_default().insert(connection);
    }

    /// The connection is gone.
    pub fn forget(&mut self, connection: ConnectionId) {
        for table in [&mut self.data, &mut self.children] {
            for watching in table.values_mut() {
                watching.remove(&connection);
            }
            table.retain(|_, watching| !watching.is_empty());
        }
    }

    pub fn fire(&mut self, change: &Change) -> Vec<Fired> {
        let mut fired = Vec::new();
        match change {
            Change::Created { path, acl, parent_acl } => {
                take(&mut self.data, path, EventKind::Created, acl, &mut fired);
                take(&mut self.children, parent_of(path), EventKind::ChildrenChanged, parent_acl, &mut fired);
            }
            Change::Deleted { path, acl, parent_acl } => {
                take(&mut self.data, path, EventKind::Deleted, acl, &mut fired);
                let told: BTreeSet<_> = fired.iter().map(|fired| fired.connection).collect();
                let mut again = Vec::new();
                take(&mut self.children, path, EventKind::Deleted, acl, &mut again);
                // Told once of the deletion, though it watched twice.
                fired.extend(again.into_iter().filter(|fired| !told.contains(&fired.connection)));
                take(&mut self.children, parent_of(path), EventKind::ChildrenChanged, parent_acl, &mut fired);
            }
            Change::DataChanged { path, acl } => {
                take(&mut self.data, path, EventKind::DataChanged, acl, &mut fired);
            }
        }
        fired
    }
}

fn take(table: &mut Table, path: &str, kind: EventKind, acl: &[Acl], fired: &mut Vec<Fired>) {
    for connection in table.remove(path).unwrap_or_default() {
        fired.push(Fired { connection, kind, path: path.to_owned(), acl: acl.to_vec() });
    }
}
