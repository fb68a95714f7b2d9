//! What is broken, when, and for how long: a plan that depends on nothing but its seed.
//!
//! Never: a look at the world; whom a fault hits is decided when it strikes.

use std::time::Duration;

use super::dice::Dice;
use super::inside::Inside;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    CutHost,
    CutHostFromItsServer,
    DeafHost,
    MuteHost,
    SlowHost,
    LossyHost,
    ResetHost,
    LoseReplies,
    CutNeighbours,
    CutItsServer,
    CutItsServerOneWay,
    Split,
    CutLeader,
    CutLeaderOneWay,
    LossyServers,
    KillLeader,
    KillItsServer,
    KillItsServerAndCut,
    KillAllServers,
    Outage,
    PauseLeader,
    PauseItsServer,
    PauseAllServers,
    SlowLogs,
    SlowCommits,
    LoseAnswers,
    CutBlindLeader,
    KillSupervisor,
    PauseSupervisor,
    KillGuard,
    PauseGuard,
    KillBoth,
    PauseBoth,
    PauseHost,
    FreezeHost,
    Terminate,
    TerminateTwice,
    Upgrade,
    KillTaker,
    DeleteCandidate,
    DeleteElection,
    DeleteLease,
    DeleteBase,
}

use Kind::{
    CutBlindLeader, CutHost, CutHostFromItsServer, CutItsServer, CutItsServerOneWay, CutLeader, CutLeaderOneWay,
    CutNeighbours, DeafHost, DeleteBase, DeleteCandidate, DeleteElection, DeleteLease, FreezeHost, KillAllServers,
    KillBoth, KillGuard, KillItsServer, KillItsServerAndCut, KillLeader, KillSupervisor, KillTaker, LoseAnswers,
    LoseReplies, LossyHost, LossyServers, MuteHost, Outage, PauseAllServers, PauseBoth, PauseGuard, PauseHost,
    PauseItsServer, PauseLeader, PauseSupervisor, ResetHost, SlowCommits, SlowHost, SlowLogs, Split, Terminate,
    TerminateTwice, Upgrade,
};

/// One deck of faults, each as often as it is written here. Those that take a holder by surprise while another may take
/// over come first in number.
const DECK: [(Kind, u8); 43] = [
    (CutHost, 3),
    (CutHostFromItsServer, 2),
    (DeafHost, 2),
    (MuteHost, 2),
    (SlowHost, 1),
    (LossyHost, 1),
    (ResetHost, 1),
    (LoseReplies, 3),
    (CutNeighbours, 1),
    (CutItsServer, 3),
    (CutItsServerOneWay, 2),
    (Split, 2),
    (CutLeader, 2),
    (CutLeaderOneWay, 1),
    (LossyServers, 1),
    (KillLeader, 2),
    (KillItsServer, 2),
    (KillItsServerAndCut, 2),
    (KillAllServers, 1),
    (Outage, 1),
    (PauseLeader, 3),
    (PauseItsServer, 2),
    (PauseAllServers, 1),
    (SlowLogs, 2),
    (SlowCommits, 2),
    (LoseAnswers, 2),
    (CutBlindLeader, 2),
    (KillSupervisor, 3),
    (PauseSupervisor, 3),
    (KillGuard, 2),
    (PauseGuard, 2),
    (KillBoth, 3),
    (PauseBoth, 4),
    (PauseHost, 2),
    (FreezeHost, 2),
    (Terminate, 2),
    (TerminateTwice, 1),
    (Upgrade, 3),
    (KillTaker, 2),
    (DeleteCandidate, 3),
    (DeleteElection, 2),
    (DeleteLease, 2),
    (DeleteBase, 1),
];

/// Any two may come at once, and these often: the holder does not hear, and its place is taken away behind its back.
const DEAFENING: [Kind; 7] =
    [CutHost, DeafHost, PauseSupervisor, PauseBoth, CutHostFromItsServer, PauseHost, FreezeHost];
const UNDERMINING: [Kind; 7] =
    [DeleteCandidate, DeleteElection, DeleteLease, KillLeader, PauseLeader, CutLeader, DeleteCandidate];

impl Kind {
    #[expect(clippy::too_many_lines, reason = "one arm for each kind")]
    pub fn name(self) -> &'static str {
        match self {
            CutHost => "cut host off",
            CutHostFromItsServer => "cut host from its server",
            DeafHost => "host hears nothing",
            MuteHost => "host is not heard",
            SlowHost => "slow link",
            LossyHost => "lossy link",
            ResetHost => "reset connections",
            LoseReplies => "lose replies, reset",
            CutNeighbours => "cut host from other hosts",
            CutItsServer => "cut its server off",
            CutItsServerOneWay => "its server hears no peer",
            Split => "minority: host + its server",
            CutLeader => "cut ZK leader off",
            CutLeaderOneWay => "ZK leader hears no peer",
            LossyServers => "lossy server links",
            KillLeader => "kill ZK leader",
            KillItsServer => "kill its server",
            KillItsServerAndCut => "kill its server, cut host",
            KillAllServers => "kill all servers",
            Outage => "outage of servers for leases",
            PauseLeader => "stop ZK leader",
            PauseItsServer => "stop its server",
            PauseAllServers => "stop all servers",
            SlowLogs | SlowCommits | LoseAnswers | CutBlindLeader => self.inside().map_or("", Inside::name),
            KillSupervisor => "kill supervisor",
            PauseSupervisor => "stop supervisor",
            KillGuard => "kill guard",
            PauseGuard => "stop guard",
            KillBoth => "kill supervisor + guard",
            PauseBoth => "stop supervisor + guard",
            PauseHost => "stop whole host",
            FreezeHost => "freeze whole host",
            Terminate => "SIGTERM",
            TerminateTwice => "SIGTERM twice",
            Upgrade => "upgrade",
            KillTaker => "kill taker while it waits",
            DeleteCandidate => "delete candidate",
            DeleteElection => "delete election/",
            DeleteLease => "delete lease",
            DeleteBase => "delete whole base",
        }
    }

    /// It strikes and is over; the world goes on by itself.
    pub fn is_a_blow(self) -> bool {
        matches!(
            self,
            KillSupervisor
                | KillGuard
                | KillBoth
                | KillTaker
                | Terminate
                | TerminateTwice
                | Upgrade
                | DeleteCandidate
                | DeleteElection
                | DeleteLease
                | DeleteBase
                | LoseReplies
                | ResetHost
        )
    }

    /// What goes on inside servers meanwhile.
    pub fn inside(self) -> Option<Inside> {
        match self {
            SlowLogs => Some(Inside::SlowLog),
            SlowCommits => Some(Inside::SlowCommits),
            LoseAnswers => Some(Inside::LostAnswers),
            CutBlindLeader => Some(Inside::Blind),
            _ => None,
        }
    }

    /// The whole host stands still, its clock apart, and what runs on it is neither dead nor running. Not so when all of its
    /// processes are stopped: the kernel goes on, and kills.
    pub fn suspends_the_host(self) -> bool {
        self == FreezeHost
    }
}

/// One thing to break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    pub kind: Kind,
    pub also: Option<Kind>,
    /// At the present holder, or at anybody.
    pub at_holder: bool,
    pub length: Duration,
    /// From the healing to the next fault, or to a command that runs and then the next fault.
    pub rest: Duration,
    pub waits_for_a_holder: bool,
}

/// The plans of seven seeds in a row have every kind, however short they are.
pub const WEEK: u64 = 7;

/// So many faults, for a session timeout of T.
pub fn plan(seed: u64, dice: &mut Dice, count: usize, session_timeout: Duration) -> Vec<Fault> {
    let is_due = |index: usize| u64::try_from(index).unwrap() % WEEK == seed % WEEK;
    let due = DECK.iter().enumerate().filter(|(index, _)| is_due(*index)).map(|(_, (kind, _))| *kind);
    let mut kinds: Vec<Kind> = due.collect();
    while kinds.len() < count {
        let mut deck: Vec<Kind> = whole_deck().collect();
        dice.shuffle(&mut deck);
        kinds.extend(deck);
    }
    kinds.truncate(count);
    dice.shuffle(&mut kinds);
    kinds.into_iter().map(|kind| throw(dice, kind, session_timeout)).collect()
}

fn whole_deck() -> impl Iterator<Item = Kind> {
    DECK.iter().flat_map(|&(kind, count)| std::iter::repeat_n(kind, count.into()))
}

fn throw(dice: &mut Dice, kind: Kind, session_timeout: Duration) -> Fault {
    let any: Vec<Kind> = whole_deck().filter(|also| *also != kind).collect();
    let also = match kind {
        _ if DEAFENING.contains(&kind) && dice.percent(40) => dice.pick(&UNDERMINING),
        _ if dice.percent(25) => dice.pick(&any),
        _ => None,
    };
    let short = Duration::from_millis(100)..=session_timeout / 2;
    // Who is stopped has to be stopped for longer than a lease to do harm.
    let stops = matches!(kind, PauseBoth | PauseHost | FreezeHost | PauseSupervisor);
    let (shortest, longest) = if stops { (11, 20) } else { (8, 17) };
    let long = session_timeout * shortest / 10..=session_timeout * longest / 10;
    let range = if kind == Outage {
        session_timeout..=session_timeout * 4
    } else if kind.is_a_blow() || dice.percent(if stops { 15 } else { 35 }) {
        short
    } else {
        long
    };
    Fault {
        kind,
        also,
        at_holder: dice.percent(97),
        length: dice.between(*range.start(), *range.end()),
        rest: dice.between(Duration::from_millis(50), Duration::from_millis(700)),
        waits_for_a_holder: dice.percent(75),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Duration = Duration::from_secs(2);

    fn of(seed: u64, count: usize) -> Vec<Fault> {
        plan(seed, &mut Dice::new(seed), count, T)
    }

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_one_another() {
        assert_eq!(of(7, 100), of(7, 100));
        assert_ne!(of(7, 100), of(8, 100));
    }

    #[test]
    fn every_kind_strikes_within_a_week_of_short_runs_and_alone_in_a_long_one() {
        let week: Vec<Fault> = (700..700 + WEEK).flat_map(|seed| of(seed, 20)).collect();
        let long = of(1, DECK.len() + whole_deck().count());
        for (kind, _) in DECK {
            assert!(week.iter().any(|fault| fault.kind == kind), "{kind:?}");
            assert!(long.iter().any(|fault| fault.kind == kind), "{kind:?}");
        }
    }

    #[test]
    fn at_least_four_fifths_aim_at_the_holder_and_a_fifth_come_two_at_a_time() {
        let faults = of(1, 1000);
        let aimed = faults.iter().filter(|fault| fault.at_holder).count();
        assert!(aimed * 5 >= faults.len() * 4, "{aimed} of {}", faults.len());
        let compound = faults.iter().filter(|fault| fault.also.is_some_and(|also| also != fault.kind)).count();
        assert!(compound * 5 >= faults.len(), "{compound} of {}", faults.len());
    }

    #[test]
    fn some_faults_outlast_the_session_and_some_do_not() {
        let faults = of(1, 500);
        assert!(faults.iter().any(|fault| fault.length > T + T / 2));
        assert!(faults.iter().any(|fault| !fault.kind.is_a_blow() && fault.length < T / 4));
    }
}
