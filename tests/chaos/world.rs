//! Everything that runs: servers, hosts, the network between them; kept going, and watched, by threads of its own.
//!
//! Never: a fault.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::calm::Seat;
use super::dice::Dice;
use super::ensemble::{Ensemble, Mode};
use super::host::{Host, Setup};
use super::lab::Lab;
use super::network::{CLIENT_PORT, Network};
use super::operator::Operator;
use super::record::Tap;
use super::settings::Settings;
use super::tail::Tail;
use super::upgrade::{Programs, Upgrade};
use crate::support::diary::{Entry, now};
use crate::support::{subject, wait};

pub const SERVERS: usize = 3;

/// The nodes are numbered: servers, hosts, ourselves.
#[derive(Debug)]
pub struct World {
    // Dropped in this order: the processes first.
    pub ensemble: Ensemble,
    pub hosts: Vec<Host>,
    pub network: Network,
    pub operator: Operator,
    /// What the servers were asked, and said.
    pub tap: Mutex<Option<Tap>>,
    /// One for each slot.
    pub tails: Vec<Tail>,
    pub history: Mutex<History>,
    pub upgrades: Mutex<Vec<Upgrade>>,
    /// How long commands live on promises, if they do.
    pub limit: Option<Duration>,
    /// When the ensemble last took a write of ours.
    last_write: Mutex<Duration>,
    finished: AtomicBool,
    lab: Lab,
}

/// An ensemble that has taken no write for so long does not count as a quorum, whatever its servers say.
const WRITE_SILENCE: Duration = Duration::from_secs(3);

/// What the threads saw.
#[derive(Default, Debug)]
pub struct History {
    /// Every change of what the servers say they are, and of whether a command could run.
    pub views: Vec<View>,
    /// When a process without supervisor and guard was first seen, by host and pid; and last.
    pub orphans: BTreeMap<(String, i32), (Duration, Duration)>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct View {
    pub at: Duration,
    pub modes: [Mode; SERVERS],
    /// A quorum, and a host that is connected to it and whole.
    pub possible: bool,
}

/// The world with its threads; all gone when dropped.
pub struct Running {
    pub world: Arc<World>,
    threads: Vec<JoinHandle<()>>,
}

impl World {
    /// Builds and starts everything.
    pub fn start(settings: &Settings) -> Running {
        let servers = (0..SERVERS).map(|index| format!("z{index}"));
        let hosts = (0..settings.hosts).map(|index| format!("h{index}"));
        let names: Vec<String> = servers.chain(hosts).chain(["me".to_owned()]).collect();
        let lab = Lab::build(&names);
        let network = Network::of(lab.nodes.clone());
        let tap = Tap::on(&lab.nodes[..SERVERS]);
        let ensemble = Ensemble::start(&lab.nodes[..SERVERS], lab.directory(), &settings.report);
        let setup = setup(settings, lab.directory());
        let mut dice = Dice::new(settings.seed ^ 0x0051_7A7E);
        let addresses: Vec<String> =
            lab.nodes[..SERVERS].iter().map(|node| format!("{}:{CLIENT_PORT}", node.address)).collect();
        let hosts = (0..settings.hosts).map(|index| {
            let connect = reach(index).map(|server| addresses[server].clone()).collect::<Vec<_>>().join(",");
            let setup = setup.of(&settings.election.hosts[index]);
            Host::new(lab.nodes[SERVERS + index].clone(), connect, setup, dice.for_the())
        });
        let operator = Operator::new(
            lab.nodes.last().unwrap().clone(),
            addresses.join(","),
            setup.base.clone(),
            settings.election.leaders,
        );
        let world = World {
            hosts: hosts.collect(),
            ensemble,
            network,
            operator,
            tap: Mutex::new(Some(tap)),
            tails: (0..settings.election.leaders).map(|slot| Tail::of(setup.diary(slot))).collect(),
            history: Mutex::default(),
            upgrades: Mutex::default(),
            limit: settings.election.vouch,
            last_write: Mutex::new(now()),
            finished: AtomicBool::new(false),
            lab,
        };
        Running::keep(Arc::new(world), (settings.upgrades > 0).then(|| dice.for_the()))
    }

    /// `ZooKeeper`'s own leader, if a quorum follows it.
    pub fn leader(&self) -> Option<usize> {
        let view = self.view()?;
        view.modes.iter().position(|&mode| mode == Mode::Leader)
    }

    pub fn view(&self) -> Option<View> {
        self.history.lock().unwrap().views.last().copied()
    }

    /// The host that runs the command now; of several, the one that wrote last.
    pub fn holder(&self) -> Option<usize> {
        let running = self.tails.iter().filter_map(Tail::running).max_by_key(|entry| entry.at);
        self.host_called(&running?.id)
    }

    /// Jobs that run once: the key and the token of each start, in the order of their starts.
    pub fn jobs(&self) -> Vec<(String, i64)> {
        let text = std::fs::read_to_string(self.lab.directory().join("diary.jobs")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.filter_map(|(key, token)| Some((key.to_owned(), token.parse().ok()?))).collect()
    }

    /// The host that a lease record names: it runs the command, or is about to.
    pub fn heir(&self) -> Option<usize> {
        (0..self.tails.len()).find_map(|slot| self.host_called(&self.operator.holder(slot)?))
    }

    pub fn host_called(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.node.name == name)
    }

    /// The server that a host is connected to, or would be.
    pub fn server_of(&self, host: usize) -> usize {
        let touched = self.hosts[host].servers_in_touch();
        let address = |server: &usize| self.network.node(*server).address;
        reach(host).find(|server| touched.contains(&address(server))).or_else(|| reach(host).next()).unwrap()
    }

    pub fn node_of(host: usize) -> usize {
        SERVERS + host
    }

    pub fn nodes_of_all_hosts(&self) -> Vec<usize> {
        (0..self.hosts.len()).map(Self::node_of).collect()
    }

    /// The other hosts.
    pub fn neighbours_of(&self, host: usize) -> Vec<usize> {
        self.nodes_of_all_hosts().into_iter().filter(|node| *node != Self::node_of(host)).collect()
    }

    /// All faults end.
    pub fn heal(&self) {
        self.network.heal();
        self.ensemble.heal();
        self.hosts.iter().for_each(Host::heal);
    }

    fn keep_hosts(&self) {
        let mut next_look = Duration::ZERO;
        while !self.finished.load(Ordering::Relaxed) {
            self.hosts.iter().for_each(Host::attend);
            if now() >= next_look {
                self.look_for_orphans();
                next_look = now() + Duration::from_millis(200);
            }
            wait::pass(Duration::from_millis(15));
        }
    }

    pub fn look_for_orphans(&self) {
        for host in &self.hosts {
            for pid in host.orphans() {
                let now = now();
                let mut history = self.history.lock().unwrap();
                history.orphans.entry((host.node.name.clone(), pid)).or_insert((now, now)).1 = now;
            }
        }
    }

    fn watch_servers(&self) {
        self.lab.nodes.last().unwrap().enter();
        while !self.finished.load(Ordering::Relaxed) {
            let modes = std::array::from_fn(|server| self.ensemble.mode(server));
            let view = View { at: now(), modes, possible: self.is_possible(modes) };
            let mut history = self.history.lock().unwrap();
            if history.views.last().is_none_or(|last| (last.modes, last.possible) != (view.modes, view.possible)) {
                history.views.push(view);
            }
            drop(history);
            wait::pass(Duration::from_millis(80));
        }
    }

    /// Upgrades one host after the other, mostly a leader.
    fn keep_upgrading(&self, mut dice: Dice) {
        while !self.finished.load(Ordering::Relaxed) {
            let holder = self.holder().filter(|_| dice.percent(70));
            let host = holder.unwrap_or_else(|| dice.below(self.hosts.len()));
            if self.hosts[host].is_up() {
                let upgrade = self.hosts[host].upgrade(self.holder() == Some(host));
                self.upgrades.lock().unwrap().extend(upgrade);
            }
            wait::pass(dice.between(Duration::ZERO, Duration::from_millis(100)));
        }
    }

    pub fn upgrades_done(&self) -> usize {
        self.upgrades.lock().unwrap().iter().filter(|upgrade| upgrade.done.is_some()).count()
    }

    /// Whoever leads, with what must not change.
    pub fn seats(&self) -> Option<Vec<Seat>> {
        let candidates = self.operator.candidates()?;
        let leaders = self.tails.iter().filter_map(Tail::running);
        let seat = |entry: Entry| {
            let own = candidates.iter().filter(|(id, ..)| *id == entry.id);
            let candidates = own.map(|(_, name, session)| (name.clone(), *session)).collect();
            Seat { token: entry.token, pid: entry.pid, host: entry.id, candidates }
        };
        Some(leaders.map(seat).collect())
    }

    /// How long no write has succeeded.
    pub fn writes_silent_for(&self) -> Duration {
        now().saturating_sub(*self.last_write.lock().unwrap())
    }

    fn try_writes(&self) {
        while !self.finished.load(Ordering::Relaxed) {
            self.operator.write_on(|| {
                *self.last_write.lock().unwrap() = now();
                wait::pass(Duration::from_millis(300));
                !self.finished.load(Ordering::Relaxed)
            });
        }
    }

    fn is_possible(&self, modes: [Mode; SERVERS]) -> bool {
        let Some(leader) = modes.iter().position(|&mode| mode == Mode::Leader) else { return false };
        let follows = |server: usize| {
            modes[server] == Mode::Follower && self.ensemble.is_well(server) && self.network.passes(leader, server)
        };
        let quorum: Vec<usize> = (0..SERVERS).filter(|&server| server == leader || follows(server)).collect();
        let reaches = |host: usize| {
            // A client may try any of its servers, so all have to be good.
            reach(host).all(|server| quorum.contains(&server) && self.network.passes(Self::node_of(host), server))
        };
        let up =
            self.ensemble.is_well(leader) && 2 * quorum.len() > SERVERS && self.writes_silent_for() < WRITE_SILENCE;
        up && (0..self.hosts.len()).any(|host| self.hosts[host].is_up() && reaches(host))
    }
}

impl Running {
    fn keep(world: Arc<World>, upgrades: Option<Dice>) -> Self {
        let fourth = upgrades.map(|dice| {
            let world = Arc::clone(&world);
            std::thread::spawn(move || or_end(|| world.keep_upgrading(dice)))
        });
        let threads = [World::keep_hosts, World::watch_servers, World::try_writes].map(|work: fn(&World)| {
            let world = Arc::clone(&world);
            std::thread::spawn(move || or_end(|| work(&world)))
        });
        Self { world, threads: threads.into_iter().chain(fourth).collect() }
    }
}

/// Without this work the rest would go on for ever, and prove nothing. What was started is cleaned up after this process, too.
#[expect(clippy::disallowed_methods, reason = "no destructor may wait for the rest")]
fn or_end(work: impl FnOnce()) {
    let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) else { return };
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    // Past the test harness, which would keep it to itself.
    writeln!(std::io::stderr(), "chaos: what keeps the hosts and servers has failed: {}", text.unwrap_or_default())
        .ok();
    std::process::exit(101);
}

impl Drop for Running {
    fn drop(&mut self) {
        self.world.finished.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

/// The first three hosts know one server each, their own, as if they shared a machine; the others know all.
fn reach(host: usize) -> std::ops::Range<usize> {
    if host < SERVERS { host..host + 1 } else { 0..SERVERS }
}

fn setup(settings: &Settings, directory: &Path) -> Setup {
    let witness = subject::example("witness");
    assert!(witness.exists(), "the witness is not built: cargo build --example witness");
    let installed = directory.join("installed");
    fs::create_dir(&installed).unwrap();
    Setup {
        programs: Programs::of(&settings.program, directory),
        installed,
        witness,
        diary: directory.join("diary"),
        logs: settings.report.clone(),
        session_timeout: settings.session_timeout,
        priority: 0,
        election: settings.election.clone(),
        base: "/zk-leader-run/chaos".to_owned(),
    }
}
