//! `doctor`: faults of the ensemble and of an election, and advice, each with a remedy.
//!
//! Never: a znode written; a finding without a remedy.

mod access;
mod contents;
mod leadership;
mod servers;
mod vouching;

use std::time::Duration;

use serde_json::{Value, json};

use super::output::{Cell, Output, Tone, with};
use super::overdue;
use super::{Answer, CommandContext, CommandError, NO_ELECTION, NOT_KNOWN, UNREACHABLE, open, session_timeout};
use crate::clock;
use crate::config::ctl::Asked;
use crate::config::error::quoted;
use crate::core::lease::{Timing, Wishes};
use crate::exit::Status;
use crate::observe::words;
use crate::zookeeper::admin::view::{self, ElectionView};
use crate::zookeeper::admin::{AdminClient, AdminError, Tries};

const HEALTHY: u8 = 0;
const FINDINGS: u8 = 1;

/// How often each kind of round trip is measured.
const ROUND_TRIPS: usize = 15;

/// Session timeouts that no ensemble would grant (a tick is two seconds by default), tried in this order. A short one leaves little
/// time to connect, which a slow network or disk needs.
const LITTLE: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(4)];
const MUCH: [Duration; 2] = [Duration::from_secs(24 * 3600); 2];

/// A renewal should be answered this many times within its interval.
const ROUND_TRIPS_PER_RENEWAL: u32 = 20;

/// Session timeouts that are advised, in whole seconds.
const SHORTEST_ADVISED: u64 = 2;
const LONGEST_ADVISED: u64 = 120;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Grade {
    Good,
    Advice,
    Wrong,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Finding {
    grade: Grade,
    what: &'static str,
    said: String,
}

fn good(what: &'static str, said: impl Into<String>) -> Finding {
    Finding { grade: Grade::Good, what, said: said.into() }
}

fn advice(what: &'static str, said: impl Into<String>) -> Finding {
    Finding { grade: Grade::Advice, what, said: said.into() }
}

fn wrong(what: &'static str, said: impl Into<String>) -> Finding {
    Finding { grade: Grade::Wrong, what, said: said.into() }
}

pub(super) async fn answer(asked: &Asked, output: Output) -> Result<Answer, CommandError> {
    let client = match open(asked, session_timeout(asked), Tries::Twice).await {
        Err(error) if error.word == UNREACHABLE => return Ok(about_servers_only(asked, &error, &output).await),
        opened => opened?,
    };
    let mut findings = servers::findings(asked).await;
    findings.extend(access::login(asked).await);
    let limits = limits(asked).await;
    let context = CommandContext::of(asked, client, output);
    let found = examine(&context, limits, &mut findings).await;
    context.client.close().await;
    let status = match found {
        Err(error) => return Ok(cut_short(findings, ("election", &error), &output)),
        Ok(Found::NoElection) => NOT_KNOWN,
        Ok(Found::Examined) if findings.iter().any(|finding| finding.grade == Grade::Wrong) => FINDINGS,
        Ok(Found::Examined) => HEALTHY,
    };
    Ok(Answer { text: written(&findings, &output), status })
}

/// Without an ensemble, which server is missing, and why.
async fn about_servers_only(asked: &Asked, error: &CommandError, output: &Output) -> Answer {
    cut_short(servers::findings(asked).await, ("ensemble", error), output)
}

/// What was found before the ensemble could not be asked any more, or refused to answer.
fn cut_short(mut findings: Vec<Finding>, (what, error): (&'static str, &CommandError), output: &Output) -> Answer {
    findings.push(wrong(what, error.sentence.clone()));
    let text = if output.format.is_object() {
        // What every other command says, too.
        output.object(&with(error.object(), "findings", objects(&findings)))
    } else {
        written(&findings, output)
    };
    Answer { text, status: error.status }
}

/// Whether there was an election to examine.
enum Found {
    /// Of none by name, or of the one that was named.
    Examined,
    /// The one that was named does not exist.
    NoElection,
}

async fn examine(
    context: &CommandContext<'_>,
    limits: Result<Limits, CommandError>,
    findings: &mut Vec<Finding>,
) -> Result<Found, CommandError> {
    findings.push(match &limits {
        Ok(limits) => good("session", limits.said()),
        Err(error) => advice("session", format!("which timeouts are granted is not known: {}", error.sentence)),
    });
    let base = context.base().await;
    let mut election = match &base {
        Ok(base) => view::election(&context.client, base).await?,
        Err(_) => None,
    };
    overdue::mark(context, election.iter_mut()).await?;
    let trips = round_trips(&context.client, election.as_ref()).await?;
    findings.extend(timings(&trips, limits.unwrap_or(Limits::UNKNOWN), election.as_ref()));
    match (base, election) {
        (Ok(_), Some(election)) => {
            findings.extend(contents::findings(&election));
            findings.extend(leadership::programs(&election));
            findings.extend(leadership::no_standby(&election));
            findings.extend(vouching::findings(&election));
            findings.extend(leadership::findings(context, &election).await?);
            findings.extend(access::findings(&context.client, &election).await?);
            if let Some(Err(complaint)) = view::history(&context.client, &election.base).await? {
                findings
                    .push(wrong("history", format!("cannot be read: {complaint}; delete it, it is only for people")));
            }
        }
        (Ok(base), None) => {
            let sentence = context.no_election(&base).await.sentence;
            findings.push(wrong("election", format!("{sentence}{}", others(context, &base).await)));
            return Ok(Found::NoElection);
        }
        // None was named, and there is not exactly one.
        (Err(error), _) if error.status == Status::Usage.code() || error.word == NO_ELECTION => {
            findings.push(advice("election", error.sentence));
        }
        (Err(error), _) => return Err(error),
    }
    Ok(Found::Examined)
}

/// Those that are there: the end of a sentence.
async fn others(context: &CommandContext<'_>, base: &str) -> String {
    const MOST: usize = 10;
    let names: Vec<_> = context.beside(base).await.iter().take(MOST).map(|name| quoted(name)).collect();
    if names.is_empty() { String::new() } else { format!(", such as {}", names.join(", ")) }
}

/// The session timeouts that the ensemble grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Limits {
    shortest: Duration,
    longest: Duration,
}

impl Limits {
    const UNKNOWN: Self = Self { shortest: Duration::ZERO, longest: Duration::MAX };

    fn said(self) -> String {
        let (shortest, longest) = (words::length(self.shortest), words::length(self.longest));
        format!(
            "timeouts from {shortest} to {longest} are granted (tick {} by default)",
            words::length(self.shortest / 2)
        )
    }
}

/// A server says what it grants when it is asked for too little and for too much.
async fn limits(asked: &Asked) -> Result<Limits, CommandError> {
    let shortest = granted(asked, &LITTLE).await?;
    let longest = granted(asked, &MUCH).await?;
    Ok(Limits { shortest, longest })
}

/// The session timeout granted for the first of these with which a session is opened.
async fn granted(asked: &Asked, wanted: &[Duration]) -> Result<Duration, CommandError> {
    let mut outcome = Err(CommandError::not_known("nothing was asked for"));
    for wanted in wanted {
        outcome = open(asked, *wanted, Tries::Twice).await;
        if outcome.is_ok() {
            break;
        }
    }
    let client = outcome?;
    let granted = client.session_timeout();
    client.close().await;
    Ok(granted)
}

/// Typical lengths: the median.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RoundTrips {
    read: Duration,
    /// A check that a quorum agrees on; `None` without an election to check.
    commit: Option<Duration>,
}

async fn round_trips(client: &AdminClient, election: Option<&ElectionView>) -> Result<RoundTrips, CommandError> {
    let slot = election.and_then(|election| election.slots.first());
    let term = slot.and_then(|slot| Some((slot.term_path.as_str(), slot.term?.version)));
    let (mut reads, mut commits) = (Vec::new(), Vec::new());
    for _ in 0..ROUND_TRIPS {
        let asked_at = clock::now().lease;
        match client.read("/").await {
            // A refusal takes as long.
            Ok(_) | Err(AdminError::Forbidden(_)) => {}
            Err(error) => return Err(error.into()),
        }
        reads.push(asked_at.until(clock::now().lease));
        if let Some((path, version)) = term {
            let asked_at = clock::now().lease;
            client.has_version(path, version).await?;
            commits.push(asked_at.until(clock::now().lease));
        }
    }
    Ok(RoundTrips { read: median(&mut reads).unwrap_or_default(), commit: median(&mut commits) })
}

fn median(lengths: &mut [Duration]) -> Option<Duration> {
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied()
}

fn timings(trips: &RoundTrips, limits: Limits, election: Option<&ElectionView>) -> Vec<Finding> {
    let wishes = Wishes::NONE;
    let slowest = trips.commit.unwrap_or(trips.read).max(trips.read);
    let commit = trips.commit.map_or_else(String::new, |commit| format!(", a commit {}", words::length(commit)));
    let mut findings = vec![good("speed", format!("a read takes {}{commit}", words::length(trips.read)))];
    let fits = |session: Duration| {
        Timing::new(session, &wishes).is_ok_and(|timing| slowest * ROUND_TRIPS_PER_RENEWAL <= timing.renewal_interval)
    };
    let mut choices = (SHORTEST_ADVISED..=LONGEST_ADVISED).map(Duration::from_secs);
    let suggested = choices.find(|choice| *choice >= limits.shortest && *choice <= limits.longest && fits(*choice));
    findings.push(match suggested {
        Some(shortest) => good(
            "timings",
            format!(
                "the shortest --session-timeout that fits these servers is {}; the default is 15s",
                words::length(shortest)
            ),
        ),
        None => wrong("timings", "no session timeout up to 2m fits; the network or a server's disk is too slow"),
    });
    let leases = election.into_iter().flat_map(|election| &election.slots).filter_map(|slot| slot.lease.as_ref());
    for (lease, _) in leases.filter(|(lease, _)| lease.is_held() && lease.holder.is_some()) {
        let length = Duration::from_millis(lease.lease_ms);
        if !fits(length.max(limits.shortest)) {
            let text = format!("the leader's lease of {} is short for answers this slow", words::length(length));
            findings.push(advice("timings", format!("{text}; raise --session-timeout on every host")));
        }
    }
    findings
}

fn objects(findings: &[Finding]) -> Value {
    let object =
        |finding: &Finding| json!({ "grade": word(finding.grade).0, "what": finding.what, "said": finding.said });
    findings.iter().map(object).collect()
}

fn written(findings: &[Finding], output: &Output) -> String {
    if output.format.is_object() {
        return output.object(&json!({ "v": 1, "findings": objects(findings) }));
    }
    let rows: Vec<_> = findings
        .iter()
        .map(|finding| {
            let (word, tone) = word(finding.grade);
            vec![Cell::new(word, tone), Cell::from(finding.what), Cell::from(&finding.said)]
        })
        .collect();
    output.table(&["", "WHAT", "FINDING"], &rows)
}

const fn word(grade: Grade) -> (&'static str, Tone) {
    match grade {
        Grade::Good => ("good", Tone::Good),
        Grade::Advice => ("note", Tone::Warning),
        Grade::Wrong => ("WRONG", Tone::Bad),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_session_timeout_is_the_first_whole_second_that_fits() {
        let said = |shortest: u64, longest: u64, commit_ms: u64| {
            let limits = Limits { shortest: Duration::from_millis(shortest), longest: Duration::from_millis(longest) };
            let commit = Some(Duration::from_millis(commit_ms));
            let said = timings(&RoundTrips { read: Duration::from_millis(1), commit }, limits, None).remove(1).said;
            let said =
                said.strip_prefix("the shortest --session-timeout that fits these servers is ").unwrap_or("none");
            said.split(';').next().unwrap_or_default().to_owned()
        };
        // Two ticks, of half a second, two, three, ten and twenty.
        assert_eq!(
            [1_000, 4_000, 6_000, 20_000, 40_000].map(|least| said(least, 400_000, 2)),
            ["2s", "4s", "6s", "20s", "40s"]
        );
        assert_eq!(said(2_500, 60_000, 2), "3s", "2s is below what is granted");
        assert_eq!(said(2_000, 40_000, 40), "7s", "20 answers within an eighth");
        assert_eq!(said(2_000, 6_000, 40), "none");
        assert_eq!(said(2_000, 400_000, 260), "none", "a renewal comes every 5 s at the latest");
    }
}
