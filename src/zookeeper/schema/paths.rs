//! Full paths of our znodes: chroot, base and the rest.

use crate::core::guard_messages::Slot;
use crate::zookeeper::client::ensure_path::parent;
use crate::zookeeper::schema::control::CONTROL;
use crate::zookeeper::schema::control::drain::DRAINS;
use crate::zookeeper::schema::history::HISTORY;
use crate::zookeeper::schema::member::MEMBERS;
use crate::zookeeper::schema::settings::Settings;
use crate::zookeeper::schema::vouching::VOUCH;

/// The directory of our own candidates.
pub(crate) const ELECTION: &str = "election";
const LEASE: &str = "lease";
const TERM: &str = "term";
const RUNS: &str = "runs";
const SLOTS: &str = "slots";

/// The persistent znodes of an election, below its base. `members`, `control` and `history` are made by those who write them.
pub(crate) const LAYOUT: [&str; 9] = [ELECTION, LEASE, TERM, SLOTS, VOUCH, RUNS, MEMBERS, CONTROL, HISTORY];

/// Full paths, the chroot included.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub base: String,
    pub election: String,
    /// With several leaders: a placeholder that is never free and holds their number.
    pub lease: String,
    pub term: String,
    /// The secret of the hosts that vouch for one another.
    pub vouch: String,
    /// The directory of the run markers.
    pub runs: String,
    pub last_run: String,
    /// What drains our host: the root is the parent of the base.
    pub drain: String,
    leaders: u16,
}

/// The record and the term of one slot.
#[derive(Clone, Debug)]
pub(crate) struct SlotPaths {
    /// The parent of both.
    pub home: String,
    pub lease: String,
    pub term: String,
}

impl SlotPaths {
    fn under(home: String) -> Self {
        Self { lease: format!("{home}/{LEASE}"), term: format!("{home}/{TERM}"), home }
    }
}

impl Paths {
    pub fn new(settings: &Settings) -> Self {
        let base = format!("{}{}", settings.chroot, settings.base);
        let election = format!("{}{}", settings.chroot, settings.election);
        let SlotPaths { home: base, lease, term } = SlotPaths::under(base);
        let vouch = format!("{base}/{VOUCH}");
        let runs = format!("{base}/{RUNS}");
        let leaders = settings.leaders;
        let drain = format!("{}/{DRAINS}/{}", parent(&base), settings.host);
        Self { drain, lease, term, last_run: format!("{runs}/last"), runs, base, election, vouch, leaders }
    }

    pub fn is_for_several(&self) -> bool {
        self.leaders > 1
    }

    /// From 0 on.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.leaders).map(Slot)
    }

    /// The parent of all slots, if there are several.
    pub fn home_of_slots(&self) -> String {
        format!("{}/{SLOTS}", self.base)
    }

    /// With one leader, its home is the base.
    pub fn of(&self, slot: Slot) -> SlotPaths {
        if self.is_for_several() { SlotPaths::under(format!("{}/{SLOTS}/{}", self.base, slot.0)) } else { self.plain() }
    }

    /// The record and the term in the base itself: the only slot's, or placeholders.
    pub fn plain(&self) -> SlotPaths {
        SlotPaths::under(self.base.clone())
    }

    /// Whether these children of a slot's home include the record and the term.
    pub fn has_record_and_term(children: &[String]) -> bool {
        [LEASE, TERM].iter().all(|name| children.iter().any(|child| child == name))
    }

    pub fn candidate(&self, name: &str) -> String {
        format!("{}/{name}", self.election)
    }

    /// The path of the run marker with this name.
    pub fn run(&self, name: &str) -> String {
        format!("{}/{name}", self.runs)
    }

    /// Whether the election directory is a child of the base, so that one multi can create both.
    pub fn election_is_inside(&self) -> bool {
        parent(&self.election) == self.base
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::testing::settings;

    #[test]
    fn the_chroot_is_a_part_of_every_path() {
        let chrooted = Settings { chroot: "/tenant/a".to_owned(), ..settings() };
        let paths = Paths::new(&chrooted);
        for path in [&paths.base, &paths.election, &paths.lease, &paths.term, &paths.candidate("x")] {
            assert!(path.starts_with("/tenant/a/"), "{path}");
        }
        assert_eq!(paths.drain, "/tenant/a/zk-leader-run/drains/host");
        assert!(paths.election_is_inside());
        let elsewhere = Settings { election: "/other/latch".to_owned(), ..settings() };
        assert!(!Paths::new(&elsewhere).election_is_inside());
    }

    /// The doctor knows an election of ours by them.
    #[test]
    fn every_name_below_a_base_is_in_the_layout() {
        let several = Settings { leaders: 3, ..settings() };
        let paths = Paths::new(&several);
        let of_slots = paths.home_of_slots();
        let made = [&paths.election, &paths.lease, &paths.term, &paths.vouch, &paths.runs, &paths.last_run, &of_slots];
        for path in made {
            let below = path.strip_prefix(&paths.base).and_then(|rest| rest.strip_prefix('/')).unwrap();
            let name = below.split('/').next().unwrap();
            assert!(LAYOUT.contains(&name), "{path}");
        }
    }
}
