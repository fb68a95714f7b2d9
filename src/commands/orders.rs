//! Writing orders: read, changed, and written on condition of what was read, under an election that exists.
//!
//! Never: another operator's order lost; a znode under a base that is not an election's.

pub(super) mod following;
pub(super) mod interrupt;
pub(super) mod replacing;

use std::io::Write as _;
use std::time::Duration;

use tokio::time::sleep;

use self::following::may_pass;

use super::{CommandContext, CommandError};
use crate::clock;
use crate::config::ctl::OutputFormat;
use crate::core::time::{Timestamp, milliseconds};
use crate::observe::words::printable;
use crate::zookeeper::admin::view::ElectionView;
use crate::zookeeper::admin::{ANY_VERSION, AdminError, Before, Written};
use crate::zookeeper::schema::control::{CONTROL, Orders};
use crate::zookeeper::schema::json::SchemaError;

/// Another operator may write at the same time.
pub(super) const TRIES: usize = 10;

/// Between two looks at what becomes of an order.
const PAUSE: Duration = Duration::from_millis(50);

/// Writes an order. From then on it may stand, which is told to whoever ends without an answer.
pub(super) async fn sent(
    context: &CommandContext<'_>,
    may_stand: &str,
    write: impl Future<Output = Result<Written, AdminError>>,
) -> Result<Written, CommandError> {
    context.stands(may_stand);
    let outcome = write.await.map_err(CommandError::from);
    if !matches!(outcome, Ok(Written::Done)) {
        context.standing.take();
    }
    outcome.map_err(|failure| {
        if !may_pass(&failure) {
            return failure;
        }
        let sentence = format!("{}; {may_stand}", failure.sentence.trim_end_matches("; try again"));
        CommandError { sentence, ..failure }
    })
}

/// Changes the orders. `may_stand` is told if no answer comes; `None`: the caller tells what stands.
pub(super) async fn change(
    context: &CommandContext<'_>,
    election: &ElectionView,
    may_stand: Option<&str>,
    mut change: impl FnMut(&mut Orders),
) -> Result<(), CommandError> {
    rewrite(context, election, may_stand, |orders| {
        let before = orders.clone();
        change(orders);
        *orders != before
    })
    .await
}

/// `ZooKeeper`'s time of day, whatever our clock says: that of a write of the orders as they are. Who may give orders may do that.
pub(super) async fn time(context: &CommandContext<'_>, election: &ElectionView) -> Result<Option<i64>, CommandError> {
    rewrite(context, election, None, |_| true).await?;
    Ok(written_at(context, election).await)
}

/// The time of the last write of the orders; `None`: it cannot be read.
pub(super) async fn written_at(context: &CommandContext<'_>, election: &ElectionView) -> Option<i64> {
    let found = context.client.read(&format!("{}/{CONTROL}", election.base)).await;
    found.ok().flatten().map(|znode| znode.facts.changed_at)
}

/// Writes the orders if `change` says so. Unreadable ones are void, and are replaced.
async fn rewrite(
    context: &CommandContext<'_>,
    election: &ElectionView,
    may_stand: Option<&str>,
    mut change: impl FnMut(&mut Orders) -> bool,
) -> Result<(), CommandError> {
    let path = format!("{}/{CONTROL}", election.base);
    let Some(slot) = election.slots.first() else {
        return Err(CommandError::not_known(format!("{} has no term", election.base)));
    };
    for _ in 0..TRIES {
        let found = context.client.read(&path).await?;
        let read = found.as_ref().map(|znode| Orders::read(&znode.data));
        if let Some(Err(SchemaError::Version(version))) = read {
            return Err(CommandError::not_known(format!(
                "{path} has format {version}, of a newer zk-leaderctl: use that one"
            )));
        }
        let is_unreadable = matches!(read, Some(Err(_)));
        let mut orders = read.and_then(Result::ok).unwrap_or_default();
        // This write must not prolong what was ordered before.
        if let Some(znode) = &found {
            orders.date(znode.facts.changed_at);
        }
        if !change(&mut orders) && !is_unreadable {
            return Ok(());
        }
        let before = found.map_or(Before::Missing, |znode| Before::There(Some(znode.facts.version)));
        let data = orders.written();
        let write = context.client.write((&slot.term_path, ANY_VERSION), &path, &data, before);
        let outcome = match may_stand {
            Some(may_stand) => sent(context, may_stand, write).await?,
            None => write.await?,
        };
        if outcome == Written::Done {
            return Ok(());
        }
    }
    Err(CommandError::not_known("others change the orders all the time, or the election was deleted; try again"))
}

/// `ZooKeeper`'s time of day, by our own count since one of its writes: our clock may be fast.
pub(super) struct ServerClock {
    written_at: i64,
    known_at: Timestamp,
}

impl ServerClock {
    /// The time of a write that is done. `None`: it cannot be read, and our own clock stands for it.
    pub fn since(written_at: Option<i64>) -> Self {
        Self { written_at: written_at.unwrap_or_else(clock::time_of_day), known_at: clock::now().lease }
    }

    /// Never later than it is there.
    pub fn now(&self) -> i64 {
        self.written_at.saturating_add(milliseconds(self.known_at.until(clock::now().lease)))
    }
}

/// Looks again and again, until a limit.
pub(super) struct Patience {
    until: Timestamp,
    since: Timestamp,
}

impl Patience {
    pub fn new(limit: Duration) -> Self {
        let since = clock::now().lease;
        Self { until: since.after(limit), since }
    }

    /// Waits a little. `false`: the limit is reached.
    pub async fn wait(&self) -> bool {
        sleep(PAUSE).await;
        self.lasts()
    }

    /// Whether the limit is not reached.
    pub fn lasts(&self) -> bool {
        clock::now().lease < self.until
    }

    pub fn passed(&self) -> Duration {
        self.since.until(clock::now().lease)
    }
}

/// Says what happens while it happens, each thing once; not to programs.
pub(super) struct Progress {
    format: OutputFormat,
    last: String,
}

impl Progress {
    pub fn new(format: OutputFormat) -> Self {
        Self { format, last: String::new() }
    }

    pub fn tell(&mut self, sentence: &str) {
        if self.last != sentence {
            sentence.clone_into(&mut self.last);
            if self.format.is_table() {
                // A reader that is gone is no reason to stop.
                let mut output = std::io::stdout();
                writeln!(output, "{}", printable(sentence)).and_then(|()| output.flush()).ok();
            }
        }
    }
}
