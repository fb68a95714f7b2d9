//! `drain` and `undrain`: one znode for a host, which every supervisor there hears.
//!
//! Never: "leads none any more" while the host leads one, or may lead one that we may not read, or before its supervisors
//! have heard of the drain.

mod fleet;
mod leading;
mod next;
mod report;
mod stopping;

use std::time::Duration;

use serde_json::json;

use self::fleet::Fleet;
use super::orders::following::{self, Given, Step, gone};
use super::orders::replacing::Present;
use super::orders::{Patience, Progress, ServerClock, TRIES, sent};
use super::{Answer, CommandContext, CommandError, DONE, NOT_DONE, NOT_KNOWN, millis, path_of};
use crate::clock;
use crate::observe::words;
use crate::random;
use crate::zookeeper::admin::{ANY_VERSION, AdminClient, Before, Written, Znode, view};
use crate::zookeeper::schema::control::drain::{DRAINS, Drain};
use crate::zookeeper::schema::control::remedy;

/// Who has just handed over is in no election for a moment.
const LINES_UP_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn drain(
    context: &CommandContext<'_>,
    host: &str,
    (reason, lasts, force): (&str, Option<Duration>, bool),
    wait: Option<Duration>,
) -> Result<Answer, CommandError> {
    let (order, by) = (random::uuid().to_string(), context.asked.by.clone());
    let drain = Drain { v: 1, order, reason: reason.to_owned(), by, for_ms: lasts.map(millis), force };
    let root = path_of(context.asked);
    let clock = &ServerClock::since(None);
    drained(&Drained { context, root, host, drain: &drain, clock, until: None, replaced: None }, wait).await
}

struct Drained<'a> {
    context: &'a CommandContext<'a>,
    root: &'a str,
    host: &'a str,
    drain: &'a Drain,
    clock: &'a ServerClock,
    /// Once it is written: by `ZooKeeper`'s clock.
    until: Option<i64>,
    /// The drain in force before.
    replaced: Option<&'a Present>,
}

async fn drained(order: &Drained<'_>, wait: Option<Duration>) -> Result<Answer, CommandError> {
    let (members, elections) = fleet::members(order).await?;
    let Drained { context, root, host, drain, .. } = order;
    if let Some(whole) = members.is_id_on.as_ref().filter(|_| members.shared == 0) {
        let remedy = remedy::about_host("drain", whole, root);
        let sentence = format!("{host} is a participant on {whole}, and a drain is for the whole host: {remedy}");
        return Err(CommandError::usage(sentence));
    }
    let given = Given::now(drain.lasts());
    let (written_at, replaced) = write(order).await?;
    let until = written_at.and_then(|written_at| drain.ends_at(written_at));
    let clock = &ServerClock::since(written_at);
    let order = &Drained { clock, until, replaced: replaced.as_ref(), ..*order };
    let mut progress = Progress::new(context.output.format);
    if let Some(replaced) = &replaced {
        progress.tell(&format!("this replaces {}", replaced.said()));
    }
    let end = match (written_at, drain.lasts()) {
        (_, None) => format!("until somebody ends it ({})", remedy::about_host("undrain", host, root)),
        (None, Some(length)) => format!("for {}", words::length(length)),
        (written_at, _) => drain.end(written_at.unwrap_or_default()),
    };
    let part = format!("{} of {} elections below {root}", members.shared, members.elections);
    progress.tell(&format!("{host} is drained {end}; it takes part in {part}"));
    context.stands(format!("{host} stays drained; {} takes it back", remedy::about_host("undrain", host, root)));
    let before = fleet::judged(order, (members, elections), &mut Vec::new()).await?;
    if !before.closed.is_empty() {
        progress.tell(&report::closed(host, &before));
    }
    let Some(limit) = wait else {
        if let Some(said) = report::not_waited_for(order, &before) {
            progress.tell(&said);
        }
        return Ok(told(order, &before, "drained", DONE, ""));
    };
    until_it_leads_none((order, &given), limit, &before, &mut progress).await
}

async fn until_it_leads_none(
    (order, given): (&Drained<'_>, &Given),
    limit: Duration,
    before: &Fleet,
    progress: &mut Progress,
) -> Result<Answer, CommandError> {
    let (patience, mut seen, mut is_known) = (Patience::new(limit), Vec::new(), before.shared > 0);
    following::until(order.context, &patience, progress, async |context, progress| {
        let order = &Drained { context, ..*order };
        let fleet = fleet::judged(order, fleet::members(order).await?, &mut seen).await?;
        if !stands(context, order, given).await {
            let list = remedy::list_below(order.root);
            let text = gone("drain", order.drain.for_ms.is_some(), &list);
            return Ok(Step::Done(Ok(told(order, &fleet, "undrained", NOT_DONE, &text))));
        }
        is_known |= fleet.may_have_it();
        if !is_known {
            let unknown = CommandError::not_known(report::nobody_of_that_name(order, &fleet)).called("no-such-host");
            if patience.passed() < LINES_UP_WITHIN.min(limit / 2) {
                return Ok(Step::NotYet(Err(unknown)));
            }
            order.context.standing.take();
            return Err(unknown);
        }
        let may_lead = !fleet.led.is_empty() || !fleet.next.is_empty();
        if !may_lead && fleet.unknown.is_empty() && fleet.perhaps.is_empty() {
            if !fleet.closed.is_empty() && fleet.closed != before.closed {
                progress.tell(&report::closed(order.host, &fleet));
            }
            return Ok(Step::Done(Ok(settled(order, &fleet))));
        }
        progress.tell(&report::waits_for(order.host, &fleet));
        let leads = may_lead || !fleet.stays.is_empty();
        let (state, status) = if leads { ("leading", NOT_DONE) } else { ("unknown", NOT_KNOWN) };
        Ok(Step::NotYet(Ok(told(order, &fleet, state, status, &report::unfinished(order, &fleet, limit)))))
    })
    .await?
}

/// Whether this drain, or another one that took its place, is in force. In doubt it is.
async fn stands(context: &CommandContext<'_>, order: &Drained<'_>, given: &Given) -> bool {
    let path = format!("{}/{DRAINS}/{}", order.root, order.host);
    let Ok(found) = context.client.read(&path).await else { return true };
    let is_ours = |znode: &Znode| Drain::read(&znode.data).is_ok_and(|drain| drain.order == order.drain.order);
    let now = Some(order.clock.now());
    let is_in_force = |znode: &Znode| present(znode).is_some_and(|present| present.stands_at(now));
    found.is_some_and(|znode| if is_ours(&znode) { given.lasts() } else { is_in_force(&znode) })
}

fn settled(order: &Drained<'_>, fleet: &Fleet) -> Answer {
    let host = order.host;
    if fleet.stays.is_empty() {
        return match fleet.closed.as_slice() {
            [] => told(order, fleet, "idle", DONE, &format!("{host} leads no election any more")),
            _ => told(order, fleet, "unknown", NOT_KNOWN, &format!("{host} leads none of those that we may read")),
        };
    }
    told(order, fleet, "leading", NOT_DONE, &report::stays_in(order, &fleet.stays))
}

/// The directory may have been created beforehand, with an ACL of its own. When it was written, if that can be read, and the drain
/// in force that it replaces: that one ends no later, or the new one is refused.
async fn write(order: &Drained<'_>) -> Result<(Option<i64>, Option<Present>), CommandError> {
    let Drained { context, root, host, drain, .. } = order;
    let (client, directory) = (&context.client, format!("{root}/{DRAINS}"));
    if client.children(&directory).await?.is_none() {
        client.write((root, ANY_VERSION), &directory, b"", Before::MissingForAll).await?;
    }
    let (path, data) = (format!("{directory}/{host}"), drain.written());
    let undrain = remedy::about_host("undrain", host, root);
    let list = remedy::list_below(root);
    let may_stand = format!("{host} may be drained by now: {list} tells, and {undrain} takes it back");
    for _ in 0..TRIES {
        let found = client.read(&path).await?;
        let present = found.as_ref().and_then(present);
        let may_lapse = present.as_ref().is_some_and(Present::may_lapse);
        let time = if may_lapse { time(client, &directory).await } else { None };
        let now = time.unwrap_or_else(clock::time_of_day);
        if let Some(present) = present.as_ref().filter(|present| present.stands_at(Some(now))) {
            present.gives_way(now, drain.lasts(), drain.force, &undrain)?;
        }
        let write = async {
            match found {
                Some(znode) => client.overwrite(&path, &data, znode.facts.version).await,
                None => client.write((&directory, ANY_VERSION), &path, &data, Before::MissingForAll).await,
            }
        };
        let written = sent(context, &may_stand, write).await?;
        if written == Written::Done {
            let written_at = client.read(&path).await.ok().flatten().map(|znode| znode.facts.changed_at);
            return Ok((written_at, present.filter(|present| present.stands_at(written_at))));
        }
    }
    Err(CommandError::not_known(format!("others write {path} all the time; try again")))
}

/// `ZooKeeper`'s time of day, whatever our clock says: that of a write of this znode as it is. `None`: it is not known, as where we
/// may not write that.
async fn time(client: &AdminClient, path: &str) -> Option<i64> {
    let znode = client.read(path).await.ok()??;
    client.overwrite(path, &znode.data, znode.facts.version).await.ok()?;
    Some(client.read(path).await.ok()??.facts.changed_at)
}

/// The drain of this znode, whether it has lapsed or not.
fn present(znode: &Znode) -> Option<Present> {
    Drain::read(&znode.data).ok().map(|drain| Present::drain(&drain, znode.facts.changed_at))
}

pub(super) async fn undrain(context: &CommandContext<'_>, host: &str) -> Result<Answer, CommandError> {
    let root = path_of(context.asked);
    let directory = format!("{root}/{DRAINS}");
    let path = format!("{directory}/{host}");
    let (ended, was) = deleted(context, (&directory, &path)).await?;
    let said = ended.as_ref().map_or_else(String::new, |ended| format!("; this ends {}", ended.said()));
    let ended = ended.filter(|_| was).as_ref().map(Present::json);
    let object = json!({ "v": 1, "host": host, "root": root, "state": "undrained", "was": was, "ended": ended });
    let text = if was {
        format!("{host} is not drained any more below {root}{said}")
    } else {
        format!("{host} was not drained below {root}; {}", others_drained(context, root).await?)
    };
    Ok(Answer { text: context.output.told(&object, "undrained", &text), status: DONE })
}

/// The drain that was in force, and whether there was one at all. One that another operator gives meanwhile is read first.
async fn deleted(
    context: &CommandContext<'_>,
    (directory, path): (&str, &str),
) -> Result<(Option<Present>, bool), CommandError> {
    for _ in 0..TRIES {
        // Who may delete it may perhaps not read it.
        let znode = context.client.read(path).await.ok().flatten();
        let stood = znode.as_ref().and_then(present);
        let may_lapse = stood.as_ref().is_some_and(Present::may_lapse);
        let now = if may_lapse { time(&context.client, directory).await } else { None };
        let version = znode.as_ref().map(|znode| znode.facts.version);
        let was = context.client.delete(path, version).await? == Written::Done;
        if was || version.is_none() {
            return Ok((stood.filter(|stood| stood.stands_at(now)), was));
        }
    }
    Err(CommandError::not_known(format!("{path} kept changing; try again")))
}

/// So that a typing mistake is seen.
async fn others_drained(context: &CommandContext<'_>, root: &str) -> Result<String, CommandError> {
    if matches!(context.client.children(root).await, Ok(None)) {
        return Err(context.no_root(root));
    }
    let mut unreadable = Vec::new();
    let drains = view::drains(&context.client, root, &mut unreadable).await?;
    let hosts: Vec<_> = drains.into_iter().filter(|drain| drain.is_in_force).map(|drain| drain.host).collect();
    let paths: Vec<_> = unreadable.into_iter().map(|znode| znode.path).collect();
    let drained = match (hosts.as_slice(), paths.as_slice()) {
        ([], []) => "no host is".to_owned(),
        ([], _) => "whether another host is, is not known".to_owned(),
        (hosts, _) => format!("these are: {}", report::listed(hosts)),
    };
    let unread = if paths.is_empty() { String::new() } else { format!("; {} cannot be read", report::listed(&paths)) };
    Ok(drained + &unread)
}

fn told(order: &Drained<'_>, fleet: &Fleet, state: &str, status: u8, text: &str) -> Answer {
    let object = json!({
        "v": 1,
        "host": order.host,
        "root": order.root,
        "state": state,
        "until": order.until,
        "replaced": order.replaced.map(Present::json),
        "elections": fleet.elections,
        "takes_part_in": fleet.shared,
        "leads": fleet.led,
        "leads_next": fleet.next,
        "only_candidate_in": fleet.alone,
        "lease_unreadable_in": fleet.unknown,
        "not_known_in": fleet.perhaps.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "no_permission_in": fleet.closed,
    });
    Answer { text: order.context.output.told(&object, state, text), status }
}
