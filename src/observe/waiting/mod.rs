//! Tells people about a long wait: on a terminal by a line that is redrawn every second, elsewhere by rare lines in the log.
//!
//! The machine knows only its neighbours in line, not a new leader far ahead. So this reads for itself: every few seconds on a
//! terminal, else only when a line is due.
//!
//! Never: a line while a command may run; anything that the supervisor waits for.

mod words;

use std::time::Duration;

use tokio::time::timeout;
use tracing::level_filters::LevelFilter;

use self::words::Known;
use super::console;
use super::liveness::Feed;
use super::log::Format;
use super::status::Status;
use crate::clock;
use crate::core::action::PhaseName;
use crate::core::time::Timestamp;
use crate::zookeeper::publish::leader_query::{LeaderQuery, LeaderReport};

const REDRAWN_EVERY: Duration = Duration::from_secs(1);
/// A survey is three small reads.
const REDRAWS_PER_SURVEY: u32 = 3;

/// How people are told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    OnTerminal,
    InLog,
}

impl Manner {
    /// A line to be redrawn goes with lines for people on a terminal; who wants warnings only wants none.
    pub fn of(format: Format, level: LevelFilter) -> Self {
        let wanted = format == Format::Human && level >= LevelFilter::INFO;
        if wanted && console::has_terminal() { Self::OnTerminal } else { Self::InLog }
    }
}

/// Whether a host in this phase waits. The line must be gone before anything else of it is carried out.
pub fn waits(phase: PhaseName) -> bool {
    matches!(phase, PhaseName::Following | PhaseName::Waiting)
}

/// Runs for as long as the feed does.
pub async fn report_waits(manner: Manner, feed: Feed, surveyor: LeaderQuery) {
    let mut reporter = WaitReporter { feed, surveyor, survey: None, is_told: false };
    while reporter.until_waiting().await {
        match manner {
            Manner::OnTerminal => reporter.draw().await,
            Manner::InLog => reporter.log().await,
        }
    }
}

struct WaitReporter {
    feed: Feed,
    surveyor: LeaderQuery,
    survey: Option<LeaderReport>,
    /// That we were not asked to vouch.
    is_told: bool,
}

impl WaitReporter {
    /// `false`: there is nothing to wait for any more.
    async fn until_waiting(&mut self) -> bool {
        while !waits(self.phase()) {
            if !self.feed.turned().await {
                return false;
            }
        }
        true
    }

    /// Until the wait is over.
    async fn draw(&mut self) {
        let since = clock::now().lease;
        let mut redraws = 0;
        while self.sits_through(REDRAWN_EVERY).await {
            if redraws % REDRAWS_PER_SURVEY == 0 {
                self.survey = self.surveyor.look().await;
            }
            redraws = redraws.wrapping_add(1);
            if waits(self.phase()) {
                console::show(&self.known().line(waited(since), clock::time_of_day()));
            }
        }
    }

    /// Until the wait is over.
    async fn log(&mut self) {
        let (since, mut told) = (clock::now().lease, 0);
        loop {
            if !self.sits_through(words::due_after(told).saturating_sub(waited(since))).await {
                return;
            }
            self.survey = self.surveyor.look().await;
            if !waits(self.phase()) {
                return;
            }
            let waited_ms = super::words::millis(Duration::from_secs(waited(since).as_secs()));
            let still = if told == 0 { "Waiting" } else { "Still waiting" };
            tracing::info!(waited_ms, "{still}: {}", self.known().sentence(clock::time_of_day()));
            told = words::next_line(told, waited(since));
        }
    }

    /// Lets time pass, or less if something is to be told at once; `false` if the wait was over before.
    async fn sits_through(&mut self, length: Duration) -> bool {
        self.is_told &= self.feed.status().snapshot.unasked_until.is_some();
        let is_told = self.is_told;
        let over = async {
            while self.feed.turned().await {
                let status = self.feed.status();
                let snapshot = status.snapshot;
                if !waits(snapshot.phase) {
                    return false;
                }
                // It has just left the line, with its session.
                if !is_told && status.in_contact() && snapshot.unasked_until.is_some() {
                    return true;
                }
            }
            false
        };
        timeout(length, over).await.unwrap_or(true)
    }

    fn known(&mut self) -> Known {
        let Status { snapshot, silent_since, .. } = self.feed.status();
        self.is_told = snapshot.unasked_until.is_some();
        let silent = silent_since.map(waited).unwrap_or_default();
        let survey = self.survey.clone().filter(|_| silent_since.is_none());
        let of_election = (self.surveyor.servers(), silent, self.surveyor.base());
        Known::new(clock::now().observer, &snapshot, survey, of_election)
    }

    fn phase(&self) -> PhaseName {
        self.feed.status().snapshot.phase
    }
}

fn waited(since: Timestamp) -> Duration {
    since.until(clock::now().lease)
}
