//! What is told about us in `ZooKeeper`, for people: our part in the election, and each term of ours.
//!
//! Never: a decision; a wait.

use crate::core::action::{Action, PhaseName, Transition, Why};
use crate::core::machine::{Bars, Snapshot};
use crate::core::order::Takeover;
use crate::observe::words;
use crate::zookeeper::publish::MemberStatus;
use crate::zookeeper::schema::history::Term;

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    account: MemberStatus,
    /// The term that is ours now.
    term: Option<Term>,
    /// Why its command was ended.
    ending: Option<Why>,
}

/// What is to be told now.
#[derive(Debug, Default)]
pub(super) struct News {
    pub account: Option<MemberStatus>,
    pub terms: Vec<Term>,
}

impl Reporter {
    /// After a turn of the machine; `now` is the time of day.
    pub fn turn(&mut self, now: i64, snapshot: &Snapshot, bars: Bars, actions: &[Action]) -> News {
        let mut news = News::default();
        let account = account(snapshot, bars, self.account.since);
        if account != self.account {
            let since = if account.phase == self.account.phase { self.account.since } else { now };
            self.account = MemberStatus { since, ..account };
            news.account = Some(self.account.clone());
        }
        for action in actions {
            if let Action::Announce(transition) = action {
                news.terms.extend(self.ended(now, transition));
            }
        }
        news.terms.extend(self.began(now, snapshot));
        news
    }

    fn began(&mut self, now: i64, snapshot: &Snapshot) -> Option<Term> {
        let grant = snapshot.tenure.map(|held| held.grant)?;
        if self.term.as_ref().is_some_and(|term| term.token == grant.token) {
            return None;
        }
        let takeover = match grant.takeover {
            Takeover::First => "first",
            Takeover::Clean => "clean",
            Takeover::Unclean => "unclean",
        };
        let (token, term, takeover) = (grant.token, grant.term, takeover.to_owned());
        self.ending = None;
        self.term = Some(Term { token, slot: grant.slot.0, term, since: now, takeover, ..Term::default() });
        self.term.clone()
    }

    fn ended(&mut self, now: i64, transition: &Transition) -> Option<Term> {
        let Transition { from, to, why, .. } = *transition;
        if matches!(from, PhaseName::Leading | PhaseName::Paused | PhaseName::Preparing | PhaseName::Waiting)
            && matches!(to, PhaseName::Stopping | PhaseName::Releasing)
        {
            self.ending = Some(why);
        }
        if !matches!(to, PhaseName::Following | PhaseName::Done) {
            return None;
        }
        let term = self.term.take()?;
        let ending = words::reason_code(self.ending.take().unwrap_or(why));
        let ended = if why == Why::Released { ending.to_owned() } else { format!("{ending}, not released") };
        Some(Term { until: Some(now), ended: Some(ended), ..term })
    }
}

fn account(snapshot: &Snapshot, bars: Bars, since: i64) -> MemberStatus {
    let role = if snapshot.tenure.is_some() { "leader" } else { "follower" };
    let token = snapshot.tenure.map(|held| held.grant.token);
    let why_not = [
        (bars.unhealthy, "unhealthy"),
        (bars.ineligible, "not eligible by its own command"),
        (bars.handing_over, "makes room for a handover"),
        (bars.stand_back_until.is_some(), "stands back after it has resigned"),
    ];
    let why_not = why_not.into_iter().filter(|(is, _)| *is).map(|(_, why)| why).collect();
    MemberStatus { role, phase: words::phase(snapshot.phase), since, why_not, token }
}
