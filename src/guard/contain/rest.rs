//! The processes that a command leaves behind: kept for a moment, or told to stop. No function here waits.

use std::collections::BTreeSet;
use std::io;

use super::init::Init;
use super::{Look, Message, Walk, known};
use crate::guard::processes::children::Children;

/// The most of our adopted children that are looked at for the first time in one look.
const SEEN_AT_ONCE: usize = 256;

/// What becomes of them.
#[derive(Debug)]
pub enum Rest {
    /// The command lives, or all are killed.
    Ignored,
    Kept,
    Stopped(Stopped),
}

/// Who has heard of the stop.
#[derive(Debug)]
pub struct Stopped {
    told: Walk,
    /// The adopted children that were looked at since all were told.
    adopted: BTreeSet<i32>,
    /// Some could not be found or told yet, for lack of time, descriptors or memory.
    is_partial: bool,
    /// The init of the namespace has told all. Whom it would tell is noted before.
    init_tells: bool,
}

impl Rest {
    /// All are to be told.
    pub fn stopped() -> Self {
        Self::Stopped(Stopped { told: Walk::default(), adopted: BTreeSet::new(), is_partial: true, init_tells: false })
    }

    pub fn is_partial(&self) -> bool {
        matches!(self, Self::Stopped(Stopped { is_partial: true, .. }))
    }
}

impl Stopped {
    /// Tells those that nobody has told: all at first; later those whose parent forked them and ended while the others were told.
    /// `ours` are the ids of our children without the command. Returns whether the init is to tell all now.
    pub fn tell(
        &mut self,
        children: &Children,
        ours: &[i32],
        init: Option<&Init>,
        signals: [i32; 2],
        look: &Look,
    ) -> bool {
        let is_noting = init.is_some() && !self.init_tells;
        if !is_noting && (init.is_some() || !self.is_partial) {
            self.tell_orphans(ours, init, signals, look);
            return false;
        }
        let message = if is_noting { Message::Nothing } else { Message::Stop(signals) };
        let outcome = self.told.go_on(message, children, look);
        self.is_partial = outcome.is_err();
        // Those that were adopted meanwhile are looked at next.
        look.cut_if(outcome.is_ok());
        // One that could not be noted may hear of it twice.
        self.init_tells |= is_noting && !is_cut(&outcome);
        is_noting && self.init_tells
    }

    fn tell_orphans(&mut self, ours: &[i32], init: Option<&Init>, signals: [i32; 2], look: &Look) {
        let adopted = &mut self.adopted;
        let of_us = || {
            let new = unseen(ours, adopted);
            look.cut_if(new.len() == SEEN_AT_ONCE);
            known(&new)
        };
        let outcome = self.told.tell_orphans(|| init.map_or_else(of_us, Init::children), signals, look);
        self.is_partial = outcome.is_err() && !is_cut(&outcome);
    }
}

/// Whether there was too little time.
fn is_cut(outcome: &io::Result<()>) -> bool {
    outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut)
}

/// A limited number of those that were not seen before: now they are.
fn unseen(children: &[i32], seen: &mut BTreeSet<i32>) -> Vec<i32> {
    let (old, mut new): (Vec<i32>, Vec<i32>) = children.iter().partition(|pid| seen.contains(pid));
    new.truncate(SEEN_AT_ONCE);
    *seen = old.into_iter().chain(new.iter().copied()).collect();
    new
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::core::time::Timestamp;
    use crate::guard::sys;

    /// Each look is over before it has begun: one step. What each of them told, up to the last one.
    fn cut_looks(mut tell: impl FnMut(&Look) -> bool) -> Vec<bool> {
        let mut told = Vec::new();
        while told.len() < 100 {
            let mut look = Look::begin();
            look.end_at(Some(Timestamp::ZERO));
            told.push(tell(&look));
            if !look.was_cut() {
                break;
            }
        }
        told
    }

    /// They take no harm from the signal.
    fn shells() -> [Child; 2] {
        [(); 2].map(|()| {
            let shell = Command::new("sh")
                .args(["-c", "echo; read -r line"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn();
            let mut shell = shell.unwrap();
            shell.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
            shell
        })
    }

    fn end(shells: [Child; 2]) {
        for mut shell in shells {
            shell.kill().unwrap();
            shell.wait().unwrap();
        }
    }

    const SIGNALS: [i32; 2] = [libc::SIGCONT, libc::SIGCONT];

    /// Else the children of a process that lives would be told, and it may need them.
    #[test]
    fn a_look_at_orphans_that_was_cut_is_not_followed_by_one_that_tells_all() {
        let (shells, all) = (shells(), Children::OfThread(File::open("/proc/thread-self/children").unwrap()));
        let ours = shells.each_ref().map(|shell| shell.id().cast_signed());
        let mut stopped =
            Stopped { told: Walk::default(), adopted: BTreeSet::new(), is_partial: false, init_tells: false };
        let mut partial = Vec::new();
        let looks = cut_looks(|look| {
            let told = stopped.tell(&all, &ours, None, SIGNALS, look);
            partial.push(stopped.is_partial);
            told
        });
        end(shells);
        assert!((2..100).contains(&looks.len()), "{looks:?}");
        assert!(!partial.contains(&true), "{partial:?}");
    }

    #[test]
    fn the_init_tells_all_when_the_last_of_them_is_noted() {
        let (shells, all) = (shells(), Children::OfThread(File::open("/proc/thread-self/children").unwrap()));
        let init = Init::of(shells[0].id().cast_signed(), sys::socket_pair().unwrap().0);
        let Rest::Stopped(mut stopped) = Rest::stopped() else { unreachable!() };
        let mut is_told = false;
        let looks = cut_looks(|look| {
            let tells = !is_told && stopped.tell(&all, &[], Some(&init), SIGNALS, look);
            is_told |= tells;
            tells
        });
        end(shells);
        let told = looks.iter().position(|tells| *tells);
        assert!(told.is_some_and(|place| place > 1), "{looks:?}");
    }

    #[test]
    fn a_crowd_that_is_adopted_at_once_is_seen_bit_by_bit_to_the_last_one() {
        let crowd: Vec<i32> = (1..=600).collect();
        let mut seen = BTreeSet::from([700]);
        let looks: Vec<_> = (0..4).map(|_| unseen(&crowd, &mut seen)).collect();
        assert_eq!(looks.iter().map(Vec::len).collect::<Vec<_>>(), [SEEN_AT_ONCE, SEEN_AT_ONCE, 88, 0]);
        assert_eq!(looks.concat(), crowd);
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), crowd, "an id that is gone may be another one's");
    }
}
