//! What a leader and one who waits cost while nothing happens.

use std::io;
use std::time::Duration;

use crate::contender::{Election, Host, Kind};
use crate::processes::{Usage, private_memory, usage};
use crate::setting::{CALM, IDLE_SESSION, Setting};
use crate::wait;

/// Of one host: all its processes but the command.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cost {
    /// In MiB, not shared with any other process.
    pub memory: f64,
    /// Of one processor, in percent.
    pub cpu: f64,
    /// Each second.
    pub wakeups: f64,
}

pub struct Footprint {
    pub kind: Kind,
    pub leader: Cost,
    pub standby: Cost,
}

const SETTLED: Duration = Duration::from_secs(4);
const OBSERVED: Duration = Duration::from_secs(12);

/// The processes of one kind's two hosts.
struct Hosts<'a> {
    kind: Kind,
    leader: Vec<i32>,
    standby: Vec<i32>,
    _alive: (Host, Host, Election<'a>),
}

impl<'a> Hosts<'a> {
    fn start(setting: &'a Setting, kind: Kind) -> io::Result<Self> {
        let election = Election::new(kind, "idle", setting, IDLE_SESSION, "")?;
        let leader = election.spawn()?;
        let command = election.until_started(1).pid;
        let standby = election.spawn()?;
        election.until_in_line(2);
        wait::pass(CALM);
        let (of_leader, of_standby) = (leader.processes(command), standby.processes(command));
        Ok(Self { kind, leader: of_leader, standby: of_standby, _alive: (leader, standby, election) })
    }

    fn usage(&self) -> [Usage; 2] {
        [sum(&self.leader), sum(&self.standby)]
    }
}

/// All kinds at the same time.
pub fn footprints(setting: &Setting) -> io::Result<Vec<Footprint>> {
    let all = Kind::PROGRAMS.iter().map(|&kind| Hosts::start(setting, kind)).collect::<io::Result<Vec<_>>>()?;
    wait::pass(SETTLED);
    let before: Vec<_> = all.iter().map(Hosts::usage).collect();
    wait::pass(OBSERVED);
    let after: Vec<_> = all.iter().map(Hosts::usage).collect();
    let footprint = |((hosts, before), after): ((&Hosts, [Usage; 2]), [Usage; 2])| Footprint {
        kind: hosts.kind,
        leader: cost(&hosts.leader, before[0], after[0]),
        standby: cost(&hosts.standby, before[1], after[1]),
    };
    Ok(all.iter().zip(before).zip(after).map(footprint).collect())
}

fn sum(pids: &[i32]) -> Usage {
    let add = |sum: Usage, of: Usage| Usage { cpu: sum.cpu + of.cpu, wakeups: sum.wakeups + of.wakeups };
    pids.iter().map(|pid| usage(*pid)).fold(Usage::default(), add)
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn cost(pids: &[i32], before: Usage, after: Usage) -> Cost {
    let memory: u64 = pids.iter().map(|pid| private_memory(*pid)).sum();
    Cost {
        memory: memory as f64 / f64::from(1 << 20),
        cpu: 100.0 * after.cpu.saturating_sub(before.cpu).as_secs_f64() / OBSERVED.as_secs_f64(),
        wakeups: after.wakeups.saturating_sub(before.wakeups) as f64 / OBSERVED.as_secs_f64(),
    }
}
