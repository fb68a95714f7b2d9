//! `drain` and `undrain`: one znode for a host, which every supervisor there hears.
//!
//! Never: "leads none any more" while the host leads one, or may lead one that we may not read, or before its supervisors
//! have heard of the drain.

mod next;
mod stopping;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::orders::following::{self, Given, Step, gone};
use super::orders::replacing::Present;
use super::orders::{Patience, Progress};
use super::{Answer, CommandContext, CommandError};
use super::{disable, slot_state};
use crate::clock;
use crate::config::ctl::{OutputFormat, Question, Selector};
use crate::core::time::Sighting;
use crate::observe::words;
use crate::random;
use crate::zookeeper::admin::view::{self, Below, ElectionView, SlotView};
use crate::zookeeper::admin::{Written, Znode};
use crate::zookeeper::schema::control::drain::{DRAINS, Drain};
use crate::zookeeper::schema::control::remedy;
use crate::zookeeper::schema::lease::Lease;

const DONE: u8 = 0;
const NOT_DONE: u8 = 1;

/// Who has just handed over is in no election for a moment.
const LINES_UP_WITHIN: Duration = Duration::from_secs(5);

/// Another operator may write at the same time.
const TRIES: usize = 10;

pub(super) async fn answer(context: &CommandContext<'_>) -> Result<Answer, CommandError> {
    let (Selector::Base(root) | Selector::OnlyOneBelow(root)) = &context.asked.selector;
    match &context.asked.question {
        Question::Drain { host, reason, lasts, force, wait } => {
            let drain = Drain {
                v: 1,
                order: random::uuid().to_string(),
                reason: reason.clone(),
                by: context.asked.by.clone(),
                for_ms: lasts.map(|lasts| u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX)),
                force: *force,
            };
            drained(&Drained { context, root: root.as_str(), host, drain: &drain }, *wait).await
        }
        Question::Undrain { host } => undrained(context, root.as_str(), host).await,
        _ => Err(CommandError::not_known("not a question about a drain")),
    }
}

struct Drained<'a> {
    context: &'a CommandContext<'a>,
    root: &'a str,
    host: &'a str,
    drain: &'a Drain,
}

/// The elections below the root, from the host's side.
#[derive(Debug, Default)]
struct Fleet {
    elections: usize,
    /// The host takes part in them.
    shared: usize,
    /// Everyone who takes part is on one of these.
    hosts: BTreeSet<String>,
    /// The host's name is the id of a participant on this one.
    is_id_on: Option<String>,
    /// A record names it: it may be gone, and is no typing mistake.
    is_named: bool,
    /// Its command may run in these: it hands over or is about to, or is gone and its lease must run out.
    led: Vec<String>,
    /// Those of them in which it says that it is stopping its command.
    stopping: Vec<String>,
    /// Those of them in which it lets a run end that no other host would repeat.
    lets_end: Vec<String>,
    /// Those of them in which its lease must run out, and why.
    runs_out: Vec<String>,
    /// The lease records of these cannot be read, so that it may lead them.
    unknown: Vec<String>,
    /// It will lead these next: whoever leads them now gives way, and nobody else could.
    next: Vec<String>,
    /// It leads these, has heard of the drain, and nobody else could.
    stays: Vec<String>,
    /// We may not read these, so that it may lead them.
    closed: Vec<String>,
}

impl Fleet {
    /// Who takes part in this election.
    fn note_hosts(&mut self, election: &ElectionView, host: &str) {
        let members = || election.members.values().map(|(member, _)| member);
        self.hosts.extend(members().map(|member| member.host.clone()));
        let same_id = members().find(|member| member.id == host).map(|member| member.host.clone());
        self.is_id_on = same_id.or(self.is_id_on.take());
        self.shared += usize::from(members().any(|member| member.host == host));
        let leases = election.slots.iter().filter_map(|slot| slot.lease.as_ref()).map(|(lease, _)| lease);
        let mut last = leases.filter(|lease| lease.is_held()).filter_map(Lease::last_to_run);
        self.is_named |= last.any(|leader| leader.host == host);
    }
}

async fn drained(order: &Drained<'_>, wait: Option<Duration>) -> Result<Answer, CommandError> {
    let before = look(order, &mut Vec::new()).await?;
    let Drained { context, root, host, drain } = order;
    if let Some(whole) = before.is_id_on.as_ref().filter(|_| before.shared == 0) {
        let remedy = remedy::about_host("drain", whole, root);
        let sentence = format!("{host} is a participant on {whole}, and a drain is for the whole host: {remedy}");
        return Err(CommandError::usage(sentence));
    }
    let given = Given::now(drain.lasts());
    let (written_at, replaced) = write(order).await?;
    let mut progress = Progress::new(context.output.format);
    if let Some(replaced) = replaced {
        progress.tell(&format!("this replaces {}", replaced.said()));
    }
    let end = match (written_at, drain.lasts()) {
        (_, None) => format!("until somebody runs: {}", remedy::about_host("undrain", host, root)),
        (None, Some(length)) => format!("for {}", words::length(length)),
        (written_at, _) => drain.end(written_at.unwrap_or_default()),
    };
    let part = format!("{} of {} elections below {root}", before.shared, before.elections);
    progress.tell(&format!("{host} is drained {end}; it takes part in {part}"));
    if !before.closed.is_empty() {
        progress.tell(&closed(host, &before));
    }
    let Some(limit) = wait else {
        if before.shared == 0 {
            progress.tell(&nobody_of_that_name(order, &before));
        }
        return Ok(told(order, &before, "drained", DONE, String::new()));
    };
    context.stands(format!("{host} stays drained; {} takes it back", remedy::about_host("undrain", host, root)));
    until_it_leads_none((order, &given), limit, before.shared > 0, &mut progress).await
}

async fn until_it_leads_none(
    (order, given): (&Drained<'_>, &Given),
    limit: Duration,
    mut is_known: bool,
    progress: &mut Progress,
) -> Result<Answer, CommandError> {
    let (patience, mut seen) = (Patience::new(limit), Vec::new());
    following::until(order.context, &patience, progress, async |context, progress| {
        let fleet = look(&Drained { context, ..*order }, &mut seen).await?;
        if !stands(context, order, given).await {
            let list = format!("zk-leaderctl list --path {}", order.root);
            let text = gone("drain", order.drain.for_ms.is_some(), &list);
            return Ok(Step::Done(Ok(told(order, &fleet, "undrained", NOT_DONE, text))));
        }
        is_known |= fleet.shared > 0 || fleet.is_named || !fleet.closed.is_empty();
        if !is_known {
            let unknown = CommandError::not_known(nobody_of_that_name(order, &fleet)).called("no-such-host");
            if patience.passed() < LINES_UP_WITHIN.min(limit / 2) {
                return Ok(Step::NotYet(Err(unknown)));
            }
            order.context.standing.take();
            return Err(unknown);
        }
        if fleet.led.is_empty() && fleet.unknown.is_empty() && fleet.next.is_empty() {
            return Ok(Step::Done(Ok(settled(order, &fleet))));
        }
        progress.tell(&waits_for(order.host, &fleet));
        Ok(Step::NotYet(Ok(told(order, &fleet, "leading", NOT_DONE, unfinished(order, &fleet, limit)))))
    })
    .await?
}

/// Whether this drain, or another one that took its place, is in force. In doubt it is.
async fn stands(context: &CommandContext<'_>, order: &Drained<'_>, given: &Given) -> bool {
    let path = format!("{}/{DRAINS}/{}", order.root, order.host);
    let Ok(found) = context.client.read(&path).await else { return true };
    let is_ours = |znode: &Znode| Drain::read(&znode.data).is_ok_and(|drain| drain.order == order.drain.order);
    found.is_some_and(|znode| if is_ours(&znode) { given.lasts() } else { present(&znode).is_some() })
}

fn nobody_of_that_name(order: &Drained<'_>, fleet: &Fleet) -> String {
    let hosts: Vec<_> = fleet.hosts.iter().cloned().collect();
    let hosts =
        if hosts.is_empty() { "nobody takes part".to_owned() } else { format!("these take part: {}", listed(&hosts)) };
    let remedy = remedy::about_host("undrain", order.host, order.root);
    format!(
        "No host is called {} ({hosts}). The drain is stored for that name and stops nothing now; {remedy} removes it",
        order.host
    )
}

fn waits_for(host: &str, fleet: &Fleet) -> String {
    let stays = match fleet.stays.as_slice() {
        [] => String::new(),
        stays => format!("; it stays leader of {}, which no other host could lead", listed(stays)),
    };
    format!("{}{stays}", may_lead(host, fleet))
}

fn may_lead(host: &str, fleet: &Fleet) -> String {
    let part = |names: &[String], text: &dyn Fn(String) -> String| (!names.is_empty()).then(|| text(listed(names)));
    let is_now = !fleet.led.is_empty();
    let led = part(&fleet.led, &|names| format!("{host} still leads {names}"));
    let who = if is_now { "it" } else { host };
    let next = part(&fleet.next, &|names| format!("{who} will lead {names} next: no other host can"));
    let who = if is_now || next.is_some() { "it".to_owned() } else { format!("{host} is drained; it") };
    let unknown = part(&fleet.unknown, &|names| {
        format!(
            "{who} may lead {names}, whose lease record is missing or cannot be read (zk-leaderctl doctor says why)"
        )
    });
    [led, next, unknown].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// No wait opens them.
fn closed(host: &str, fleet: &Fleet) -> String {
    let remedy = "give us credentials that may (--auth-file), or look there";
    format!("{host} may lead {}, which we may not read; {remedy}", listed(&fleet.closed))
}

fn unfinished(order: &Drained<'_>, fleet: &Fleet, limit: Duration) -> String {
    let (what, length) = (may_lead(order.host, fleet), words::length(limit));
    if fleet.led.is_empty() && fleet.unknown.is_empty() {
        return format!("{what} ({length} have passed); {}\n", remedy_for_the_only_one(order));
    }
    let forced = order.drain.forced(order.host, order.root);
    let why = stopping::why_not_yet(fleet, &forced);
    format!("{what} after {length}; {why}\n")
}

fn settled(order: &Drained<'_>, fleet: &Fleet) -> Answer {
    let host = order.host;
    let closed = if fleet.closed.is_empty() { String::new() } else { format!("{}\n", closed(host, fleet)) };
    if fleet.stays.is_empty() {
        return match fleet.closed.as_slice() {
            [] => told(order, fleet, "idle", DONE, format!("{host} leads no election any more\n")),
            _ => told(order, fleet, "unknown", NOT_DONE, closed),
        };
    }
    let text = format!(
        "{host} still leads {}, which no other host could lead; {}\n{closed}",
        listed(&fleet.stays),
        remedy_for_the_only_one(order)
    );
    told(order, fleet, "leading", NOT_DONE, text)
}

fn remedy_for_the_only_one(order: &Drained<'_>) -> String {
    format!("start one elsewhere, or {} stops it", order.drain.forced(order.host, order.root))
}

/// At most ten by name.
fn listed(names: &[String]) -> String {
    const MOST: usize = 10;
    let first = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{first} and {} more", names.len() - MOST) } else { first }
}

/// The records that were seen, with the first time of each, are kept from one look to the next.
async fn look(order: &Drained<'_>, seen_at: &mut Vec<(i64, Sighting)>) -> Result<Fleet, CommandError> {
    let Drained { context, root, host, .. } = order;
    let Some(all) = view::elections(&context.client, root).await? else {
        let chroot = context.in_chroot();
        return Err(CommandError::not_known(format!("{root}{chroot} does not exist; is it another path or ensemble?")));
    };
    refuse_one_election(&all, order)?;
    let (mut fleet, found) = (Fleet::default(), view::all(&context.client, root, all.names).await?);
    fleet.closed.extend(all.closed.into_iter().chain(found.closed));
    fleet.elections = found.elections.len() + fleet.closed.len();
    for (name, seen) in found.elections {
        let members = || seen.members.values().map(|(member, _)| member);
        fleet.note_hosts(&seen, host);
        if seen.slots.iter().any(|slot| slot.lease.is_none() && !seen.was_never_led(slot)) {
            fleet.unknown.push(name);
            continue;
        }
        let is_over = !leads(&seen, host, clock::now().observer, seen_at);
        if is_over && disable::first_unconfirmed(context, may_run_under(&seen, host)).await.is_none() {
            if next::leads_next(&seen, host) {
                fleet.next.push(name);
            }
            continue;
        }
        let mut own = members().filter(|member| member.host == *host).peekable();
        // A host that is gone hears nothing.
        let has_heard = own.peek().is_some() && own.all(|member| member.drained);
        let is_alone = !order.drain.force && !members().any(|member| member.can_replace(host));
        if is_alone && has_heard {
            fleet.stays.push(name);
            continue;
        }
        fleet.stopping.extend(stopping::stops(&seen, host).then(|| name.clone()));
        fleet.lets_end.extend((!order.drain.force && stopping::lets_end(&seen, host)).then(|| name.clone()));
        fleet.runs_out.extend(stopping::runs_out(&seen, host).map(|why| format!("in {name}, {why}")));
        fleet.led.push(name);
    }
    Ok(fleet)
}

/// Of a root that is the base of an election, with none below: an order there would reach nobody.
fn refuse_one_election(below: &Below, order: &Drained<'_>) -> Result<(), CommandError> {
    let Drained { root, host, .. } = order;
    if !below.is_election || !below.names.is_empty() {
        return Ok(());
    }
    let what = format!("{root} is one election, and a drain is for all below a root");
    Err(CommandError::usage(match root.rsplit_once('/') {
        Some((parent, _)) if !parent.is_empty() => format!("{what}: {}", remedy::about_host("drain", host, parent)),
        _ => format!("{what}; none reaches an election directly below /"),
    }))
}

/// Whether its command may run. It may have lost its session or its candidate alone: its lease must run out first, also where
/// another one has taken the record and waits. Whoever still stops has a command, even if another one leads by now.
fn leads(election: &ElectionView, host: &str, now: Sighting, seen: &mut Vec<(i64, Sighting)>) -> bool {
    let may_run = |slot: &SlotView| {
        let lease = slot.lease.as_ref();
        lives_on(host, slot, election)
            || lease.is_some_and(|(lease, facts)| !disable::is_over(lease, facts.mzxid, now, seen))
    };
    let is_led = may_run_under(election, host).any(may_run);
    is_led || election.members.values().any(|(member, _)| member.host == host && member.phase == "stopping")
}

/// The slots whose records say that a command may run on this host, now or after the wait of their holder, or do not say where.
fn may_run_under<'a>(election: &'a ElectionView, host: &'a str) -> impl Iterator<Item = &'a SlotView> {
    let may_run = move |(lease, _): &(Lease, _)| slot_state::may_run_on(host, lease);
    let is_concerned =
        move |slot: &&SlotView| lives_on(host, slot, election) || slot.lease.as_ref().is_some_and(may_run);
    election.slots.iter().filter(is_concerned)
}

fn lives_on(host: &str, slot: &SlotView, election: &ElectionView) -> bool {
    slot_state::leader(slot, election).is_some_and(|holder| holder.host == host)
}

/// The directory may have been created beforehand, with an ACL of its own. When it was written, if that can be read, and the drain
/// in force that it replaces: that one ends no later, or the new one is refused.
async fn write(order: &Drained<'_>) -> Result<(Option<i64>, Option<Present>), CommandError> {
    let Drained { context, root, host, drain } = order;
    let (client, directory) = (&context.client, format!("{root}/{DRAINS}"));
    if client.children(&directory).await?.is_none() {
        client.create_below(root, &directory, b"").await?;
    }
    let (path, data) = (format!("{directory}/{host}"), drain.written());
    for _ in 0..TRIES {
        let found = client.read(&path).await?;
        let present = found.as_ref().and_then(present);
        if let Some(present) = &present {
            present.gives_way(drain.lasts(), drain.force, &remedy::about_host("undrain", host, root))?;
        }
        let written = match found {
            Some(znode) => client.overwrite(&path, &data, znode.facts.version).await?,
            None => client.create_below(&directory, &path, &data).await?,
        };
        if written == Written::Done {
            let written_at = client.read(&path).await.ok().flatten().map(|znode| znode.facts.changed_at);
            return Ok((written_at, present));
        }
    }
    Err(CommandError::not_known(format!("others write {path} all the time; try again")))
}

/// The drain of this znode, if it is in force by our clock.
fn present(znode: &Znode) -> Option<Present> {
    let (drain, written_at) = (Drain::read(&znode.data).ok()?, znode.facts.changed_at);
    let is_in_force = drain.ends_at(written_at).is_none_or(|end| clock::time_of_day() < end);
    is_in_force.then(|| Present::drain(&drain, written_at))
}

async fn undrained(context: &CommandContext<'_>, root: &str, host: &str) -> Result<Answer, CommandError> {
    let path = format!("{root}/{DRAINS}/{host}");
    let ended = context.client.read(&path).await.ok().flatten().as_ref().and_then(present);
    let ended = ended.map_or_else(String::new, |ended| format!("; this ends {}", ended.said()));
    let was = context.client.delete(&path).await? == Written::Done;
    let text = match context.output.format {
        OutputFormat::Json | OutputFormat::Yaml => {
            context.output.object(&json!({ "v": 1, "host": host, "state": "undrained", "was": was }))
        }
        OutputFormat::Plain => "undrained\n".to_owned(),
        OutputFormat::Table | OutputFormat::Wide if was => format!("{host} is not drained any more{ended}\n"),
        OutputFormat::Table | OutputFormat::Wide => format!("{host} was not drained below {root}\n"),
    };
    Ok(Answer { text, status: DONE })
}

fn told(order: &Drained<'_>, fleet: &Fleet, state: &str, status: u8, text: String) -> Answer {
    let text = match order.context.output.format {
        OutputFormat::Json | OutputFormat::Yaml => {
            let object = json!({
                "v": 1,
                "host": order.host,
                "root": order.root,
                "state": state,
                "elections": fleet.elections,
                "takes_part_in": fleet.shared,
                "leads": fleet.led,
                "leads_next": fleet.next,
                "only_candidate_in": fleet.stays,
                "lease_unreadable_in": fleet.unknown,
                "no_permission_in": fleet.closed,
            });
            order.context.output.object(&object)
        }
        OutputFormat::Plain => format!("{state}\n"),
        OutputFormat::Table | OutputFormat::Wide => text,
    };
    Answer { text, status }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::admin::Facts;
    use crate::zookeeper::schema::member::Member;

    /// It is cut off from the servers, and its member and candidate are gone: others may vouch for it.
    #[test]
    fn a_host_that_is_gone_leads_until_its_lease_and_the_promises_for_it_have_run_out() {
        let mut seen = Vec::new();
        let mut leads = |host: &str, state: &str, seconds: u64| {
            let record = format!(
                r#"{{"v":1,"state":"{state}","lease_ms":15000,"vouch_ms":600000,"guarantee":"at-most-one, vouched",
                "holder":{{"id":"a","host":"db1","pid":1}}}}"#
            );
            let lease = Some((Lease::read(record.as_bytes()).unwrap(), Facts { mzxid: 9, ..Facts::default() }));
            let election =
                ElectionView { slots: vec![SlotView { lease, ..SlotView::default() }], ..ElectionView::default() };
            leads(&election, host, Sighting::ZERO.after(Duration::from_secs(seconds)), &mut seen)
        };
        assert!(leads("db1", "held", 0) && leads("db1", "held", 605) && !leads("db1", "held", 607));
        assert!(!leads("db2", "held", 0) && !leads("db1", "free", 0));
    }

    /// Another one has taken the record, and starts nothing before that lease is over.
    #[test]
    fn a_host_whose_lease_another_one_waits_for_leads_until_it_is_over_and_the_other_one_does_not() {
        let mut seen = Vec::new();
        let mut leads = |host: &str, rest: &str, seconds: u64| {
            let record = format!(r#"{{"v":1,"state":"held","lease_ms":15000,"guarantee":"at-most-one"{rest}}}"#);
            let lease = Some((Lease::read(record.as_bytes()).unwrap(), Facts { mzxid: 9, ..Facts::default() }));
            let election =
                ElectionView { slots: vec![SlotView { lease, ..SlotView::default() }], ..ElectionView::default() };
            leads(&election, host, Sighting::ZERO.after(Duration::from_secs(seconds)), &mut seen)
        };
        let holder = r#","holder":{"id":"b","host":"db2","pid":2,"nonce":"b0-1"},"waiting_on":5"#;
        let waiting =
            format!(r#"{holder},"waiting_for":"a0-3","unfenced":[{{"id":"a","host":"db1","pid":1,"nonce":"a0-3"}}]"#);
        assert!(leads("db1", &waiting, 0) && leads("db1", &waiting, 15) && !leads("db1", &waiting, 16));
        assert!(!leads("db2", &waiting, 0), "it gave way, and waited for the lease of another host");
        for nobody_knows_where in [holder, ""] {
            assert!(["db1", "db2"].iter().all(|host| leads(host, nobody_knows_where, 15)), "{nobody_knows_where}");
        }
    }

    #[test]
    fn a_host_that_still_stops_leads_even_if_another_one_holds_the_record() {
        let leads = |phase: &str| {
            let member = Member { host: "db1".into(), phase: phase.into(), ..Member::default() };
            let members = [("a".to_owned(), (member, Facts::default()))].into();
            let election = ElectionView { members, ..ElectionView::default() };
            leads(&election, "db1", Sighting::ZERO, &mut Vec::new())
        };
        assert!(leads("stopping") && !leads("following"));
    }

    #[test]
    fn an_election_whose_record_cannot_be_read_is_said_to_be_led_perhaps() {
        let fleet = |led: &[&str]| Fleet {
            led: led.iter().map(ToString::to_string).collect(),
            unknown: vec!["x".to_owned()],
            ..Fleet::default()
        };
        let unknown = "it may lead x, whose lease record is missing or cannot be read (zk-leaderctl doctor says why)";
        assert_eq!(waits_for("db1", &fleet(&[])), format!("db1 is drained; {unknown}"));
        assert_eq!(waits_for("db1", &fleet(&["a"])), format!("db1 still leads a; {unknown}"));
    }

    #[test]
    fn elections_that_we_may_not_read_are_named_with_what_to_do() {
        let fleet = Fleet { closed: vec!["a".to_owned(), "b".to_owned()], ..Fleet::default() };
        let said =
            "db1 may lead a, b, which we may not read; give us credentials that may (--auth-file), or look there";
        assert_eq!(closed("db1", &fleet), said);
    }

    #[test]
    fn what_stays_is_told_beside_what_is_waited_for() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let fleet = |led, stays| Fleet { led: names(led), stays: names(stays), ..Fleet::default() };
        assert_eq!(waits_for("db1", &fleet(&["a", "b"], &[])), "db1 still leads a, b");
        let one_left = waits_for("db1", &fleet(&["b"], &["a"]));
        assert_eq!(one_left, "db1 still leads b; it stays leader of a, which no other host could lead");
    }

    #[test]
    fn ten_are_listed_by_name_and_the_others_are_counted() {
        let names: Vec<_> = (1..=12).map(|number| number.to_string()).collect();
        assert_eq!(listed(&names[..2]), "1, 2");
        assert_eq!(listed(&names[..10]), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10");
        assert_eq!(listed(&names), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more");
    }
}
