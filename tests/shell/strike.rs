//! What befalls hosts, servers, links and the network between the hosts.

use std::time::Duration;

use crate::memory::network::Direction;
use crate::memory::rng::Rng;
use crate::upgrade::Program;

/// What happens at an instant, and after it, to one host.
#[derive(Clone, Debug)]
pub struct Strike {
    pub at: Duration,
    /// Whoever leads then, instead of the host that the faults name.
    pub is_at_leader: bool,
    /// Each so long after the first.
    pub faults: Vec<(Duration, Fault)>,
}

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// `server` `None`: all of them. `way` `None`: both.
    Cut {
        host: usize,
        server: Option<usize>,
        way: Option<Direction>,
        length: Duration,
    },
    Reset {
        host: usize,
    },
    /// The servers end its sessions, as after a pause of their leader.
    Expire {
        host: usize,
    },
    /// An operator deletes its candidates.
    Delete {
        host: usize,
    },
    Lose {
        host: usize,
        way: Direction,
    },
    /// The next reply is lost, and all later ones of its connection, which stays.
    Mute {
        host: usize,
    },
    Slow {
        host: usize,
        latency: Duration,
        length: Duration,
    },
    ServerDown {
        server: usize,
        length: Duration,
    },
    ServerPaused {
        server: usize,
        length: Duration,
    },
    ServerIsolated {
        server: usize,
        length: Duration,
    },
    ServerLags {
        server: usize,
        lag: Duration,
        length: Duration,
    },
    /// As many servers that no quorum is left.
    NoQuorum {
        length: Duration,
    },
    Sigterm {
        host: usize,
    },
    /// This program is installed, and the supervisor is asked to execute it.
    Upgrade {
        host: usize,
        program: Program,
    },
    /// The supervisor dies; its guard does not.
    Crash {
        host: usize,
    },
    /// `guard`: which of them.
    GuardDies {
        host: usize,
        guard: usize,
    },
    /// Supervisor and guard die; the sentinel does not.
    BothDie {
        host: usize,
    },
    /// Nothing of it is left, and nobody is told.
    PowerLoss {
        host: usize,
    },
    SupervisorStops {
        host: usize,
        length: Duration,
    },
    GuardStops {
        host: usize,
        guard: usize,
        length: Duration,
    },
    BothStop {
        host: usize,
        length: Duration,
    },
    /// Every process of the host stands still.
    HostStops {
        host: usize,
        length: Duration,
    },
    /// The same, and its clocks say so.
    Suspend {
        host: usize,
        length: Duration,
    },
    /// SIGKILL has no effect on its command.
    Unkillable {
        host: usize,
        length: Duration,
    },
    /// All servers are down.
    Outage {
        length: Duration,
    },
    /// Nothing that `host` sends reaches the other one directly.
    Silence {
        host: usize,
        other: usize,
        length: Duration,
    },
    /// The host neither hears the others nor do they hear it, but for the servers.
    Unheard {
        host: usize,
        length: Duration,
    },
    /// An operator deletes this znode below the base.
    DeleteBelow {
        name: &'static str,
    },
    /// A contender of another library stands in line, and leaves without a word.
    Stranger {
        length: Duration,
    },
    Operator(Act),
}

/// What an operator types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    Disable {
        lasts: Option<Duration>,
        wait: Option<Duration>,
    },
    Enable,
    /// `to`: a host, if its participant is known.
    Handover {
        to: Option<usize>,
        wait: bool,
        within: Duration,
    },
    Drain {
        host: usize,
        lasts: Duration,
        force: bool,
    },
}

impl Strike {
    pub fn draw(rng: &mut Rng, hosts: usize, servers: usize, session_timeout: Duration, healed_at: Duration) -> Self {
        let at = Duration::from_micros(rng.below(healed_at.as_micros() as u64));
        let fault = Fault::draw(rng, hosts, servers, session_timeout);
        let after = fault.fades(rng, session_timeout);
        let faults = std::iter::once((Duration::ZERO, fault)).chain(after).collect();
        Self { at, is_at_leader: rng.chance(40), faults }
    }

    /// What only those feel who vouch for one another.
    pub fn draw_vouched(rng: &mut Rng, hosts: usize, session_timeout: Duration, healed_at: Duration) -> Self {
        let at = Duration::from_micros(rng.below(healed_at.as_micros() as u64));
        let fault = Fault::draw_vouched(rng, hosts, session_timeout);
        Self { at, is_at_leader: rng.chance(40), faults: vec![(Duration::ZERO, fault)] }
    }

    /// An upgrade of a host that vouches or is vouched for, and beside it an outage, and what operators do to it or another one.
    pub fn at_an_exchange(rng: &mut Rng, hosts: usize, session_timeout: Duration, healed_at: Duration) -> Self {
        let at = Duration::from_micros(rng.below(healed_at.as_micros() as u64));
        let soon = |rng: &mut Rng| Duration::from_micros(rng.below(300_000));
        let host = rng.below(hosts as u64) as usize;
        let length = session_timeout * rng.between(1, 40) as u32 / 10;
        // Some operators have their answer by then.
        let outage = (soon(rng) * rng.pick(&[1, 4]), Fault::Outage { length });
        let program = Program::draw(rng);
        let upgrades = if rng.chance(50) { 0..hosts } else { host..host + 1 };
        let upgrades = upgrades.map(|host| Fault::Upgrade { host, program });
        let mut faults: Vec<_> = upgrades.map(|upgrade| (soon(rng), upgrade)).collect();
        let late = if rng.chance(30) { length } else { Duration::ZERO };
        faults.extend(rng.chance(80).then_some(outage));
        for _ in 0..rng.between(1, 2) {
            let host = rng.below(hosts as u64) as usize;
            let lasts = Duration::from_secs(rng.between(1, 10));
            let fault = match rng.below(6) {
                0 | 1 => Fault::Sigterm { host },
                2 => Fault::Operator(Act::Drain { host, lasts, force: rng.chance(30) }),
                3 => Fault::Operator(Act::Disable { lasts: Some(lasts), wait: None }),
                _ => {
                    let to = rng.chance(30).then_some(host);
                    Fault::Operator(Act::Handover { to, wait: rng.chance(50), within: lasts })
                }
            };
            faults.push((soon(rng) + late, fault));
        }
        Self { at, is_at_leader: false, faults }
    }

    /// The last answers reach the leader late, then none, and its candidate is gone: only its deadlines and the wait of its
    /// successor keep their trees apart.
    pub fn late(rng: &mut Rng, session_timeout: Duration) -> Self {
        let latency = session_timeout * rng.pick(&[15, 20, 25, 30]) / 100;
        let slow = Fault::Slow { host: 0, latency, length: session_timeout * 10 };
        let cut = Fault::Cut { host: 0, server: None, way: None, length: session_timeout * 10 };
        let cut_at = session_timeout + session_timeout * rng.below(100) as u32 / 100;
        let gone_at = cut_at + session_timeout * rng.below(100) as u32 / 100;
        let gone = rng.pick(&[Fault::Expire { host: 0 }, Fault::Delete { host: 0 }]);
        let faults = vec![(Duration::ZERO, slow), (cut_at, cut), (gone_at, gone)];
        Self { at: Duration::from_secs(4), is_at_leader: true, faults }
    }
}

impl Fault {
    /// A link that has become slow may be cut before it is fast again: the last renewals were answered late. Its
    /// candidate may be gone before its lease is over.
    fn fades(&self, rng: &mut Rng, session_timeout: Duration) -> Vec<(Duration, Self)> {
        let Self::Slow { host, latency, length } = *self else { return Vec::new() };
        if rng.chance(40) {
            return Vec::new();
        }
        let cut = Self::Cut { host, server: None, way: None, length: length + session_timeout };
        let cut_at = Duration::from_micros(rng.below(length.as_micros() as u64)).max(latency * 4);
        let gone_at = cut_at + session_timeout * rng.below(100) as u32 / 100;
        let gone = rng.pick(&[None, Some(Self::Expire { host }), Some(Self::Delete { host })]);
        std::iter::once((cut_at, cut)).chain(gone.map(|gone| (gone_at, gone))).collect()
    }

    /// The host that it strikes.
    pub fn host(&mut self) -> Option<&mut usize> {
        match self {
            Self::Cut { host, .. }
            | Self::Reset { host }
            | Self::Expire { host }
            | Self::Delete { host }
            | Self::Lose { host, .. }
            | Self::Mute { host }
            | Self::Slow { host, .. }
            | Self::Sigterm { host }
            | Self::Upgrade { host, .. }
            | Self::Crash { host }
            | Self::GuardDies { host, .. }
            | Self::BothDie { host }
            | Self::PowerLoss { host }
            | Self::SupervisorStops { host, .. }
            | Self::GuardStops { host, .. }
            | Self::BothStop { host, .. }
            | Self::HostStops { host, .. }
            | Self::Suspend { host, .. }
            | Self::Unkillable { host, .. }
            | Self::Silence { host, .. }
            | Self::Unheard { host, .. } => Some(host),
            Self::ServerDown { .. }
            | Self::ServerPaused { .. }
            | Self::ServerIsolated { .. }
            | Self::ServerLags { .. }
            | Self::NoQuorum { .. }
            | Self::Outage { .. }
            | Self::DeleteBelow { .. }
            | Self::Stranger { .. }
            | Self::Operator(_) => None,
        }
    }

    pub fn draw(rng: &mut Rng, hosts: usize, servers: usize, session_timeout: Duration) -> Self {
        let (host, server) = (rng.below(hosts as u64) as usize, rng.below(servers as u64) as usize);
        let timeout = session_timeout.as_millis() as u64;
        let length = if rng.chance(50) { rng.below(timeout) } else { rng.below(3 * timeout) };
        let length = Duration::from_millis(length);
        let way = rng.pick(&[Direction::Up, Direction::Down]);
        match rng.below(44) {
            0..4 => {
                let (way, server) = (rng.pick(&[None, Some(way)]), rng.pick(&[None, Some(server)]));
                Self::Cut { host, server, way, length }
            }
            4..7 => Self::Reset { host },
            7..11 => Self::Lose { host, way },
            11 => Self::Slow { host, latency: session_timeout / rng.pick(&[2, 4, 10]), length },
            12 | 13 => Self::ServerDown { server, length },
            14 => Self::ServerPaused { server, length },
            15 => Self::ServerIsolated { server, length },
            16 => Self::ServerLags { server, lag: Duration::from_millis(rng.below(1_000)), length },
            17 => Self::NoQuorum { length },
            18 | 19 => Self::Slow { host, latency: session_timeout * rng.pick(&[10, 20, 30]) / 100, length },
            20..28 => Self::of_process(rng, host, length),
            28..34 => Self::of_host(rng, host, length),
            34 => Self::Expire { host },
            36 => Self::Stranger { length },
            35 => Self::Delete { host },
            37 => Self::Mute { host },
            _ => Self::Operator(Act::draw(rng, hosts)),
        }
    }

    /// Outages of a tenth of a lease to twelve leases, and what is said meanwhile.
    fn draw_vouched(rng: &mut Rng, hosts: usize, session_timeout: Duration) -> Self {
        let tenths = rng.pick(&[1, 5, 10, 20, 40, 80, 120]);
        let length = session_timeout * rng.between(1, tenths) as u32 / 10;
        let (host, other) = (rng.below(hosts as u64) as usize, rng.below(hosts as u64) as usize);
        match rng.below(10) {
            0..5 => Self::Outage { length },
            5 | 6 => Self::Silence { host, other, length },
            7 | 8 => Self::Unheard { host, length },
            _ => Self::DeleteBelow { name: rng.pick(&["lease", "lease", "vouch"]) },
        }
    }

    fn of_process(rng: &mut Rng, host: usize, length: Duration) -> Self {
        let any = rng.below(6) as usize;
        let guard = rng.pick(&[0, 0, any]);
        match rng.below(8) {
            0 | 1 => Self::Sigterm { host },
            2 => Self::Crash { host },
            3 => Self::GuardDies { host, guard },
            4 => Self::BothDie { host },
            5 => Self::SupervisorStops { host, length },
            6 => Self::GuardStops { host, guard, length },
            _ => Self::BothStop { host, length },
        }
    }

    fn of_host(rng: &mut Rng, host: usize, length: Duration) -> Self {
        match rng.below(4) {
            0 => Self::PowerLoss { host },
            1 => Self::HostStops { host, length },
            2 => Self::Suspend { host, length },
            _ => Self::Unkillable { host, length },
        }
    }
}

impl Act {
    fn draw(rng: &mut Rng, hosts: usize) -> Self {
        let seconds = |rng: &mut Rng, most| Duration::from_secs(rng.between(1, most));
        match rng.below(6) {
            0 => Self::Disable { lasts: None, wait: rng.chance(50).then(|| seconds(rng, 30)) },
            1 => Self::Disable { lasts: Some(seconds(rng, 20)), wait: None },
            2 => Self::Enable,
            _ => {
                let to = rng.chance(50).then(|| rng.below(hosts as u64) as usize);
                Self::Handover { to, wait: rng.chance(50), within: seconds(rng, 10) }
            }
        }
    }
}
