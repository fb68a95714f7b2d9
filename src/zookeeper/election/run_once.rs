//! The marker of a run. It is written before the command starts, in one multi that is conditional on our candidate, our
//! term and the markers as read; it is completed just before the record is released. Old markers are deleted in the
//! background.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use crate::zookeeper::client::connection::{Error, MultiError, MultiResult, PendingMulti, Stat};
use tokio::time::timeout;

use crate::background;
use crate::core::action::{Conditions, Entry};
use crate::core::event::{Candidacy, Event};
use crate::zookeeper::client::error::{Part, PathAccess, RequestError, Right, if_there_at};
use crate::zookeeper::client::requests::ANY_VERSION;
use crate::zookeeper::election::read::{Answer, ROUNDS, too_many_rounds};
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::schema::control::moment::moment;
use crate::zookeeper::schema::once::{Once, Per};
use crate::zookeeper::schema::run_marker::{self, Caller, Marker, OpenRun, Run, Verdict};

/// Time limit for deleting old markers, which takes two round trips; the session is not closed before. The next run goes on with it.
const TRIM_LIMIT: Duration = Duration::from_secs(1);

/// The two markers as read: the slot's, with its path, and the last run's.
struct Found {
    slot: Option<(String, Marker)>,
    last: Marker,
}

impl Found {
    /// The marker that counts: the slot's, or without a slot the last run's.
    fn marker(&self) -> &Marker {
        self.slot.as_ref().map_or(&self.last, |(_, marker)| marker)
    }

    /// The run that the slot's marker tells of, or of one of ours that never began, the run before it.
    fn before(&self, caller: &Caller) -> Option<Run> {
        let (_, marker) = self.slot.as_ref()?;
        marker.clone().history().into_iter().find(|run| !run_marker::never_began(run, caller))
    }
}

/// Reads the markers, and writes ours unless the run is a duplicate. `is_first`: this process has started nothing yet.
pub(crate) async fn mark(
    contact: Arc<Contact>,
    candidacy: Candidacy,
    conditions: Conditions,
    entry: Entry,
    is_first: bool,
) -> Result<Answer, RequestError> {
    let shared = &contact.shared;
    let Some(once) = shared.settings.once.as_ref() else {
        return Ok(Event::Marked { candidacy, is_fresh: true }.into());
    };
    let caller = Caller { nonce: entry.nonce, is_first, joined_ms: shared.joined_ms() };
    for _ in 0..ROUNDS {
        let Some(found) = look(&contact, once).await? else {
            create_runs(&contact).await?;
            continue;
        };
        report_unreadable(&found);
        match run_marker::judge(found.marker(), once, caller) {
            Verdict::Ours => shared.open_run(adopt(found, conditions)),
            Verdict::Duplicate => {
                report_duplicate(found.marker(), once, &caller);
                return Ok(Event::Marked { candidacy, is_fresh: false }.into());
            }
            Verdict::Go => {
                report_earlier(&found, &caller);
                let run = Run::new(once, entry.nonce, entry.token.unwrap_or_default(), &shared.settings);
                match write(&contact, (candidacy, conditions), run, found, &caller).await? {
                    Some(open) => shared.open_run(open),
                    None => continue,
                }
            }
        }
        if matches!(once.per, Per::Slot(_)) {
            background::spawn(trim(Arc::clone(&contact), once.keep_slots));
        }
        return Ok(Event::Marked { candidacy, is_fresh: true }.into());
    }
    Err(too_many_rounds())
}

/// Completes the marker if there is one whose run has ended, or takes it back if its run never began. Sent at once, before any later request of this session.
pub(crate) fn close(contact: &Contact) -> impl Future<Output = ()> + Send + use<'_> {
    let closing = contact.shared.ended_run().and_then(|open| send_end(contact, &open));
    async move {
        match closing {
            None => return,
            Some(sent) => match sent.await {
                Ok(_) => {}
                Err(MultiError::RequestFailed { source }) => {
                    return tracing::debug!(%source, "The end of the run was perhaps not written down");
                }
                // Its version is another: an earlier attempt without a reply wrote it, or another program did.
                Err(MultiError::OperationFailed { source: Error::BadVersion | Error::NoNode, .. }) => {
                    tracing::debug!("The end of the run was not written down now");
                }
                Err(error) => {
                    let error = RequestError::of_multi(&error, &[]);
                    tracing::warn!(
                        "How this run ended cannot be written down, and others take it for interrupted: {error}"
                    );
                }
            },
        }
        contact.shared.close_run();
    }
}

fn send_end<'a>(contact: &'a Contact, open: &OpenRun) -> Option<PendingMulti<'a>> {
    let [of_slot, of_last] = open.outcome()?;
    let paths = &contact.shared.paths;
    let mut multi = contact.client.multi();
    multi.check(&paths.term, open.term);
    if let Some((path, version)) = &open.slot {
        multi.set(path, &of_slot, Some(*version));
    }
    multi.set(&paths.last_run, &of_last, Some(open.last));
    Some(multi.commit())
}

/// `None`: the directory for markers does not exist.
async fn look(contact: &Contact, once: &Once) -> Result<Option<Found>, RequestError> {
    let paths = &contact.shared.paths;
    let last = contact.client.get_data(&paths.last_run);
    let slot = match &once.per {
        Per::Slot(key) => {
            let path = paths.run(&run_marker::slot_name(key));
            let read = contact.client.get_data(&path);
            Some((path, read))
        }
        Per::Period(_) => None,
    };
    let Some(last) = marker(&paths.last_run, last.await)? else { return Ok(None) };
    let slot = match slot {
        Some((path, read)) => {
            let marker = marker(&path, read.await)?.unwrap_or(Marker::Missing);
            Some((path, marker))
        }
        None => None,
    };
    Ok(Some(Found { slot, last }))
}

fn marker(path: &str, read: Result<(Vec<u8>, Stat), Error>) -> Result<Option<Marker>, RequestError> {
    Ok(if_there_at(path, read)?.map(|(data, stat)| Marker::read(&data, &stat)))
}

/// Creates the directory and the marker of the last run, which states that there was none. A peer may be faster.
async fn create_runs(contact: &Contact) -> Result<(), RequestError> {
    let (client, paths) = (&contact.client, &contact.shared.paths);
    let (nothing, options) = (run_marker::encode(None, &[]), contact.shared.settings.acl.persistent());
    let directory = client.create(&paths.runs, &[], &options);
    let last = client.create(&paths.last_run, &nothing, &options);
    for (created, parent) in [(directory.await, &paths.base), (last.await, &paths.runs)] {
        match created {
            Ok(_) | Err(Error::NodeExists) => {}
            Err(error) => return Err(RequestError::from(error).without(Right::Create, parent)),
        }
    }
    Ok(())
}

/// `None`: a marker has changed since it was read.
async fn write(
    contact: &Contact,
    (candidacy, conditions): (Candidacy, Conditions),
    run: Run,
    found: Found,
    caller: &Caller,
) -> Result<Option<OpenRun>, RequestError> {
    let paths = &contact.shared.paths;
    let candidate = contact.shared.znode(contact.number, candidacy)?;
    let candidate = paths.candidate(&candidate.name);
    let mut multi = contact.client.multi();
    multi.check(&candidate, ANY_VERSION);
    multi.check(&paths.term, conditions.term);
    let before = found.before(caller);
    let of_slot = found.slot.as_ref().map(|(path, marker)| match marker.version() {
        Some(_) => (Right::Write, path.clone()),
        None => (Right::Create, paths.runs.clone()),
    });
    let slot = found.slot.map(|(path, marker)| {
        // It is told again if this run never begins, also by a program that has lost the reply.
        let data = run_marker::encode(Some(&run), before.as_slice());
        if let Some(version) = marker.version() {
            multi.set(&path, &data, Some(version));
            return (path, version.wrapping_add(1));
        }
        multi.create(&path, &data, &contact.shared.settings.acl.persistent());
        (path, 0)
    });
    let version = found.last.version();
    let mut earlier = found.last.history();
    earlier.retain(|run| !run_marker::never_began(run, caller));
    multi.set(&paths.last_run, &run_marker::encode(Some(&run), &earlier), version);
    let Some(stat) = written(multi.commit().await, (&candidate, of_slot), contact)? else { return Ok(None) };
    let (started_ms, last) = (stat.mtime, stat.version);
    tracing::info!(slot = run.slot, started = time(started_ms), "Run was marked");
    let (term, end, is_withdrawn) = (conditions.term, None, false);
    Ok(Some(OpenRun { run, started_ms, term, slot, last, earlier, before, end, is_withdrawn }))
}

/// `None`: a marker has changed since it was read.
fn written(
    results: Result<Vec<MultiResult>, MultiError>,
    (candidate, of_slot): (&str, Option<(Right, String)>),
    contact: &Contact,
) -> Result<Option<Stat>, RequestError> {
    let paths = &contact.shared.paths;
    let conditional =
        [PathAccess(Part::Candidate, Right::Read, candidate), PathAccess(Part::Term, Right::Read, &paths.term)];
    let of_slot = of_slot.as_ref().map(|(right, path)| PathAccess(Part::Other, *right, path));
    match results {
        Ok(results) => match results.last() {
            Some(MultiResult::SetData { stat }) => Ok(Some(*stat)),
            _ => Err(RequestError::unknown("the server's answer to a multi has another shape")),
        },
        Err(MultiError::OperationFailed { index, source: Error::NodeExists | Error::BadVersion | Error::NoNode })
            if index >= conditional.len() =>
        {
            Ok(None)
        }
        Err(error) => {
            let steps: Vec<_> = conditional.into_iter().chain(of_slot).collect();
            Err(RequestError::of_multi(&error, &steps).without(Right::Write, &paths.last_run))
        }
    }
}

/// Our own marker, whose reply was lost.
fn adopt(found: Found, conditions: Conditions) -> OpenRun {
    let run = found.marker().run().cloned().unwrap_or_default();
    let started_ms = run.started_ms.unwrap_or_default();
    tracing::debug!("Marker of our run was found again after a lost reply");
    // The newest entry of a history is the run itself.
    let before = found.slot.as_ref().and_then(|(_, marker)| marker.clone().history().into_iter().nth(1));
    let slot = found.slot.and_then(|(path, marker)| Some((path, marker.version()?)));
    let last = found.last.version().unwrap_or_default();
    let earlier = found.last.history().into_iter().skip(1).collect();
    let run = Run { started_ms: None, ..run };
    OpenRun { run, started_ms, term: conditions.term, slot, last, earlier, before, end: None, is_withdrawn: false }
}

fn report_unreadable(found: &Found) {
    for marker in found.slot.iter().map(|(_, marker)| marker).chain([&found.last]) {
        if let Marker::Unreadable { complaint, .. } = marker {
            tracing::warn!(%complaint, "Marker of a run could not be read; in doubt it counts as a run");
        }
    }
}

fn report_duplicate(marker: &Marker, once: &Once, caller: &Caller) {
    let Some(run) = marker.run() else {
        return tracing::info!("This call is a duplicate: there has been a run; nothing is run");
    };
    let what = match &once.per {
        Per::Slot(key) => format!("slot {key}"),
        Per::Period(_) => "this period".to_owned(),
    };
    let is_own = !caller.is_first && run.is_of(caller.nonce.instance);
    let who = if is_own { "Our own run is not repeated" } else { "This call is a duplicate" };
    let said = format!("{who}: {what} had {}; nothing is run", story(run));
    if is_own || run_marker::was_in_vain(run, caller) {
        tracing::warn!("{said}; --retry-failed runs it again");
    } else {
        tracing::info!("{said}");
    }
}

/// A run that never ended, and whose holder is gone, was missed, at least in part; one that failed has done it badly.
fn report_earlier(found: &Found, caller: &Caller) {
    for run in interrupted(found).filter(|run| !run_marker::never_began(run, caller)) {
        let (slot, by, host) = (&run.slot, &run.id, &run.host);
        tracing::warn!(slot, by, host, "A run was interrupted, or never began: {}", story(run));
    }
    if let Some(run) = found.last.run().filter(|run| run.ok == Some(false)) {
        let (slot, by, host) = (&run.slot, &run.id, &run.host);
        tracing::warn!(slot, by, host, "The last run failed: {}", story(run));
    }
}

/// The interrupted runs in `last`, and the slot's own run if that is another one.
fn interrupted(found: &Found) -> impl Iterator<Item = &Run> {
    let last = found.last.run();
    let slot = found.slot.as_ref().and_then(|(_, marker)| marker.run());
    let slot = slot.filter(|run| last.is_none_or(|last| last.nonce != run.nonce));
    last.into_iter().chain(slot).filter(|run| run.is_interrupted())
}

/// A run in a few words.
fn story(run: &Run) -> String {
    let start = run.started_ms.map_or_else(String::new, |at| format!(", started {}", moment(at)));
    let end = match (run.ok, run.status) {
        (None, _) => "without an end".to_owned(),
        (Some(true), _) => "ended well".to_owned(),
        (Some(false), Some(status)) => format!("failed with status {status}"),
        (Some(false), None) => "failed".to_owned(),
    };
    let end_at = run.ended_ms.map_or_else(String::new, |at| format!(" at {}", moment(at)));
    format!("a run by {} on {}{start}, {end}{end_at}", run.id, run.host)
}

/// For programs, by `ZooKeeper`'s clock. A marker may contain any number.
fn time(ms: i64) -> String {
    /// The last time that the formatter accepts; it panics at later ones.
    const END_OF_9999: u64 = 253_402_300_799_999;
    match u64::try_from(ms).unwrap_or_default() {
        ms @ 0..=END_OF_9999 => humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms)).to_string(),
        _ => "after the year 9999".to_owned(),
    }
}

/// Deletes the markers of the oldest slots beyond `keep`.
async fn trim(contact: Arc<Contact>, keep: usize) {
    if timeout(TRIM_LIMIT, delete_surplus(&contact, keep)).await.is_err() {
        tracing::debug!("Trimming of old slots was cut short; the next run goes on with it");
    }
}

async fn delete_surplus(contact: &Contact, keep: usize) {
    let (client, paths) = (&contact.client, &contact.shared.paths);
    let Ok((children, _)) = client.get_children(&paths.runs).await else { return };
    let slots: Vec<_> = children.into_iter().filter(|child| run_marker::is_slot(child)).collect();
    if slots.len() <= keep {
        return;
    }
    // All are sent before the first is awaited.
    let stats: Vec<_> = slots.iter().map(|slot| client.check_stat(&paths.run(slot))).collect();
    let (mut newest, mut trimmed) = (BTreeSet::new(), 0);
    for (slot, stat) in slots.into_iter().zip(stats) {
        let Ok(Some(stat)) = stat.await else { continue };
        let surplus = run_marker::surplus(&mut newest, (stat.mzxid, slot, stat.version), keep);
        if let Some((slot, version)) = surplus {
            // It is sent now. A marker that was written again meanwhile has another version, and stays.
            drop(client.delete(&paths.run(&slot), Some(version)));
            trimmed += 1;
        }
    }
    tracing::debug!(trimmed, "Old slots were trimmed");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_that_a_marker_may_hold_is_told_as_a_time() {
        assert_eq!(time(i64::MIN), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(253_402_300_799_999), "9999-12-31T23:59:59.999Z");
        for late in [253_402_300_800_000, i64::MAX] {
            assert_eq!(time(late), "after the year 9999");
        }
    }

    #[test]
    fn a_run_is_told_with_its_times_as_all_times_are() {
        let (started_ms, ended_ms) = (Some(1_795_226_400_000), Some(1_795_230_000_999));
        let run = Run { id: "a".into(), host: "h".into(), started_ms, ended_ms, ok: Some(true), ..Run::default() };
        let said = "a run by a on h, started 2026-11-21 02:00:00 UTC, ended well at 2026-11-21 03:00:00 UTC";
        assert_eq!(story(&run), said);
    }
}
