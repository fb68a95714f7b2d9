//! What passes between the nodes, and what does not: dropped, refused, lost, slowed; known at every moment.
//!
//! Never: a rule outside of the lab's namespaces.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Mutex;

use super::lab::Node;

/// Where `ZooKeeper` listens for clients.
pub const CLIENT_PORT: u16 = 2181;

#[derive(Debug)]
pub struct Network {
    nodes: Vec<Node>,
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    /// (from, to): nothing passes.
    blocked: BTreeSet<(usize, usize)>,
    /// Slow or lossy.
    impaired: BTreeSet<usize>,
    /// Nodes with rules or queues of ours.
    touched: BTreeSet<usize>,
}

impl Network {
    pub fn of(nodes: Vec<Node>) -> Self {
        Self { nodes, state: Mutex::default() }
    }

    pub fn node(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    /// Nothing passes between these nodes and the others, in either direction.
    pub fn cut(&self, nodes: &[usize], others: &[usize]) {
        for &node in nodes {
            self.block(node, others, others);
        }
    }

    /// Whatever the senders send to the receivers is dropped; the other direction works.
    pub fn cut_one_way(&self, senders: &[usize], receivers: &[usize]) {
        for &receiver in receivers {
            self.block(receiver, senders, &[]);
        }
    }

    /// Connections of this node to servers are reset, and new ones refused. `false` if this kernel cannot do that, here and
    /// below.
    pub fn refuse(&self, node: usize) -> bool {
        let mut rules = String::new();
        for (chain, port) in [("INPUT", "--sport"), ("OUTPUT", "--dport")] {
            writeln!(rules, "-A {chain} -p tcp {port} {CLIENT_PORT} -j REJECT --reject-with tcp-reset").unwrap();
        }
        self.impair(node, &rules)
    }

    /// So many packets of a hundred are lost in each direction.
    pub fn lose(&self, node: usize, percent: usize) -> bool {
        let mut rules = String::new();
        for chain in ["INPUT", "OUTPUT"] {
            writeln!(rules, "-A {chain} -m statistic --mode random --probability 0.{percent:02} -j DROP").unwrap();
        }
        self.impair(node, &rules)
    }

    /// Everything that the node sends stands in a queue: a small packet for a tenth of a second or so. Not `netem`, which
    /// many kernels lack.
    pub fn slow(&self, node: usize) -> bool {
        let queue =
            ["qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", "12kbit", "burst", "1600", "latency", "3s"];
        self.impair(node, "") && self.nodes[node].tool("tc", &queue, "").status.success()
    }

    /// All as at first.
    pub fn heal(&self) {
        let touched = std::mem::take(&mut self.state.lock().unwrap().touched);
        for node in touched {
            self.nodes[node].tool("iptables-restore", &["-w"], "*filter\nCOMMIT\n");
            self.nodes[node].tool("tc", &["qdisc", "del", "dev", "eth0", "root"], "");
        }
        let mut state = self.state.lock().unwrap();
        state.blocked.clear();
        state.impaired.clear();
    }

    /// Whether these two hear each other, without loss or delay.
    pub fn passes(&self, one: usize, other: usize) -> bool {
        let state = self.state.lock().unwrap();
        let blocked = state.blocked.contains(&(one, other)) || state.blocked.contains(&(other, one));
        !blocked && !state.impaired.contains(&one) && !state.impaired.contains(&other)
    }

    fn block(&self, node: usize, from: &[usize], to: &[usize]) {
        let mut rules = String::new();
        for (chain, side, peers) in [("INPUT", "-s", from), ("OUTPUT", "-d", to)] {
            for &peer in peers {
                writeln!(rules, "-A {chain} {side} {} -j DROP", self.nodes[peer].address).unwrap();
            }
        }
        assert!(self.apply(node, &rules), "iptables cannot even drop; apt-get install iptables");
        let mut state = self.state.lock().unwrap();
        state.blocked.extend(from.iter().map(|&peer| (peer, node)));
        state.blocked.extend(to.iter().map(|&peer| (node, peer)));
    }

    fn impair(&self, node: usize, rules: &str) -> bool {
        self.state.lock().unwrap().impaired.insert(node);
        self.apply(node, rules)
    }

    /// All rules of one call come into force at once.
    fn apply(&self, node: usize, rules: &str) -> bool {
        self.state.lock().unwrap().touched.insert(node);
        self.nodes[node].tool("iptables-restore", &["-w", "-n"], &format!("*filter\n{rules}COMMIT\n")).status.success()
    }
}
