//! Tells people about the hosts that vouch for the leader: on whom its command lives while `ZooKeeper` is away, until when,
//! and which of them would spoil that. It tells them on those hosts, too.
//!
//! Never: a judgement by another moment than the loop's last turn, as a loop that hangs has asked nobody.

mod standby;
mod state;
mod words;

use std::time::Duration;

use tokio::sync::watch;

use self::standby::Standby;
pub use self::state::{oldest_promise, state};
use self::words::Line;
use super::liveness::Feed;
use super::status::Status;
use crate::clock;
use crate::core::action::PhaseName;
use crate::core::machine::Vouchees;
use crate::core::time::{Timestamp, milliseconds};
use crate::core::vouching::Needed;
use crate::zookeeper::schema::vouching::Neighbourhood;

/// While `ZooKeeper` is there, a host that has promised nothing for so many times as long as a promise is recent is worth a
/// line: a lease.
const PATIENCE: u32 = 4;

/// A host that has left a question open for this part of that time does not answer. One that says no has at most one
/// question open, and only for as long as its answer takes.
const ANSWERS_WITHIN: u32 = 4;

/// Runs for as long as the feed does; not without `--vouch`.
pub async fn report(mut feed: Feed, neighbourhood: watch::Receiver<Neighbourhood>) {
    let (mut seen, mut standby) = (Seen::default(), Standby::default());
    while feed.status().snapshot.vouching.is_some() {
        let status = feed.status();
        let time_of_day = clock::time_of_day();
        let lines = seen.news(&status, time_of_day);
        for line in lines.into_iter().chain(standby.news(&status, time_of_day)) {
            line.log(&neighbourhood.borrow());
        }
        if !feed.turned().await {
            return;
        }
    }
}

/// What was told.
#[derive(Debug, Default)]
struct Seen {
    /// The sending of the last write before `ZooKeeper` was away; `None`: it is there.
    away_since: Option<Timestamp>,
    /// The instances of whose silence was told.
    silent: Vec<u64>,
    /// It was told what the command waits for.
    is_paused: bool,
    /// Since when nobody was needed, and whether that was told.
    alone: Option<(Timestamp, bool)>,
}

impl Seen {
    /// The lines that are due after this turn of the loop, which was about this time of day (milliseconds since 1970).
    fn news(&mut self, status: &Status, time_of_day: i64) -> Vec<Line> {
        let now = status.turned.lease;
        let Some((vouched, leads)) = status.snapshot.vouching.and_then(|vouched| Some((vouched, vouched.leads?)))
        else {
            *self = Self::default();
            return Vec::new();
        };
        let mut lines = Vec::new();
        match status.snapshot.phase {
            PhaseName::Vouched if self.away_since.is_none() => {
                *self = Self { away_since: Some(leads.written_at), ..Self::default() };
                let until = time_of_day.saturating_add(milliseconds(now.until(leads.limit_at)));
                lines.push(Line::Away { by: leads.needed().map(|host| host.instance).collect(), until });
            }
            PhaseName::Leading => {
                // A command that is restarted in an outage is led for a moment.
                if let Some(since) = self.away_since.take_if(|since| *since < leads.written_at) {
                    self.silent.clear();
                    lines.push(Line::Back { after: since.until(now) });
                }
                lines.extend(self.alone(now, &leads, vouched.limit));
            }
            // Of whom it lived on, those who are silent are told one by one.
            PhaseName::Paused if self.away_since.is_none() && !self.is_paused => {
                let has_promised = |host: &Needed| host.promised_at.is_some_and(|at| now < at.after(leads.recent));
                let lacking: Vec<_> =
                    leads.needed().filter(|host| !has_promised(host)).map(|host| host.instance).collect();
                let until = time_of_day.saturating_add(milliseconds(status.time_left(status.turned)));
                lines.extend((!lacking.is_empty()).then_some(Line::Paused { lacking, until }));
            }
            _ => {}
        }
        self.is_paused = status.snapshot.phase == PhaseName::Paused;
        match status.snapshot.phase {
            PhaseName::Leading => lines.extend(self.silence(now, &leads, PATIENCE * leads.recent, None)),
            PhaseName::Vouched | PhaseName::Paused if self.away_since.is_some() => {
                lines.extend(self.silence(now, &leads, leads.recent, Some(status.time_left(status.turned))));
            }
            _ => {}
        }
        lines
    }

    /// Whose silence, or refusal, begins or ends to be worth a line. `left`: until the command is stopped for it.
    fn silence(&mut self, now: Timestamp, leads: &Vouchees, patience: Duration, left: Option<Duration>) -> Vec<Line> {
        let mut lines = Vec::new();
        self.silent.retain(|instance| leads.needed().any(|host| host.instance == *instance));
        for host in leads.needed() {
            let (Needed { instance, silent_since, .. }, since) = (host, lacks_since(host));
            let lacks = since.filter(|since| since.until(now) >= patience);
            let known = self.silent.contains(&instance);
            match lacks {
                Some(since) if !known => {
                    self.silent.push(instance);
                    let refuses = silent_since.is_none_or(|silent| silent.until(now) < leads.recent / ANSWERS_WITHIN);
                    lines.push(Line::Lacking { instance, since: since.until(now), refuses, left });
                }
                None if known => {
                    self.silent.retain(|known| *known != instance);
                    lines.push(Line::Answers { instance });
                }
                _ => {}
            }
        }
        lines
    }

    /// A leader whom nobody could replace, for as long as one is waited for.
    fn alone(&mut self, now: Timestamp, leads: &Vouchees, limit: Duration) -> Option<Line> {
        if leads.needed().next().is_some() {
            self.alone = None;
            return None;
        }
        let (since, told) = *self.alone.get_or_insert((now, false));
        let is_due = !told && since.until(now) >= PATIENCE * leads.recent;
        self.alone = Some((since, told || is_due));
        is_due.then_some(Line::Alone { limit })
    }
}

/// Since when its promise is missing: the sending of the last question to which it said yes, or else of the first one.
pub(super) fn lacks_since(host: Needed) -> Option<Timestamp> {
    host.promised_at.or(host.silent_since)
}

#[cfg(test)]
mod tests;
