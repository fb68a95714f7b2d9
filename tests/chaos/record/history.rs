//! One line of JSON for each request, with its answer, in the order of the requests.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::laws;
use super::protocol::{Op, Reply, Request};
use super::stream::Nanos;

/// A request, and what a server said to it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Exchange {
    pub server: String,
    /// The client's connection to that server, by its number there.
    pub connection: usize,
    /// The address of the host. Histories that were kept before do not tell it.
    #[serde(default)]
    pub host: String,
    /// When the first byte of the request came in, and the last one of the reply went out.
    pub asked: Nanos,
    pub answered: Option<Nanos>,
    pub request: Request,
    pub reply: Option<Reply>,
}

/// Lease records and terms, of all slots. What was deleted with them is deleted by name.
fn is_judged(path: &str) -> bool {
    matches!(path.rsplit_once('/'), Some((_, "lease" | "term")))
}

impl Exchange {
    pub fn is_judged(&self) -> bool {
        self.request.ops.iter().any(|op| is_judged(op.path()))
    }

    /// The slots that it is about: the directories of its records.
    pub fn slots(&self) -> impl Iterator<Item = &str> {
        let paths = self.request.ops.iter().map(Op::path).filter(|path| is_judged(path));
        paths.filter_map(|path| path.rsplit_once('/').map(|(slot, _)| slot))
    }
}

/// The tokens of the leases that were to be given back: of terms whose commands are gone.
pub fn given_back(exchanges: &[Exchange]) -> BTreeSet<i64> {
    let data = |op: &Op| match op {
        Op::Set { path, data, .. } if is_judged(path) => laws::gives_back(data),
        _ => None,
    };
    exchanges.iter().flat_map(|exchange| exchange.request.ops.iter().filter_map(data)).collect()
}

pub fn write(path: &Path, exchanges: &[Exchange]) {
    let lines = exchanges.iter().map(|exchange| serde_json::to_string(exchange).unwrap() + "\n");
    fs::write(path, lines.collect::<String>()).unwrap();
}

pub fn read(text: &str) -> Vec<Exchange> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
