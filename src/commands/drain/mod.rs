//! `drain` and `undrain`: one znode for a host, which every supervisor there hears.
//!
//! Never: "leads none any more" while the host leads one, or before its supervisors have heard of the drain.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::orders::{Patience, Progress};
use super::slot_state;
use super::{Answer, CommandContext, CommandError};
use crate::config::ctl::{OutputFormat, Question, Selector};
use crate::observe::words;
use crate::random;
use crate::zookeeper::admin::Written;
use crate::zookeeper::admin::view::{self, ElectionView};
use crate::zookeeper::schema::control::drain::{DRAINS, Drain};
use crate::zookeeper::schema::control::remedy;

const DONE: u8 = 0;
const NOT_DONE: u8 = 1;

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
    /// It leads these, and hands over or is about to.
    led: Vec<String>,
    /// It leads these, has heard of the drain, and nobody else could.
    stays: Vec<String>,
}

async fn drained(order: &Drained<'_>, wait: Option<Duration>) -> Result<Answer, CommandError> {
    let before = look(order).await?;
    let Drained { context, root, host, drain } = order;
    if let Some(whole) = before.is_id_on.as_ref().filter(|_| before.shared == 0) {
        let remedy = remedy::about_host("drain", whole, root);
        let sentence = format!("{host} is a participant on {whole}, and a drain is for the whole host: {remedy}");
        return Err(CommandError::usage(sentence));
    }
    let written_at = write(order).await?;
    let mut progress = Progress::new(context.output.format);
    let end = match (written_at, drain.lasts()) {
        (None, Some(length)) => format!("for {}", words::length(length)),
        (written_at, _) => drain.end(written_at.unwrap_or_default()),
    };
    let part = format!("{} of {} elections below {root}", before.shared, before.elections);
    progress.tell(&format!("{host} is drained {end}; it takes part in {part}"));
    if before.shared == 0 && !before.hosts.is_empty() {
        let hosts: Vec<_> = before.hosts.iter().cloned().collect();
        progress.tell(&format!("is that its name? These hosts take part: {}", listed(&hosts)));
    }
    let Some(limit) = wait else {
        return Ok(told(order, &before, "drained", DONE, String::new()));
    };
    let patience = Patience::new(limit);
    loop {
        let fleet = look(order).await?;
        if fleet.led.is_empty() {
            return Ok(settled(order, &fleet));
        }
        progress.tell(&waits_for(host, &fleet));
        if !patience.wait().await {
            let text = format!(
                "{host} still leads {} after {}; it may be cut off, or run an older version\n",
                listed(&fleet.led),
                words::length(limit)
            );
            return Ok(told(order, &fleet, "leading", NOT_DONE, text));
        }
    }
}

fn waits_for(host: &str, fleet: &Fleet) -> String {
    let stays = match fleet.stays.as_slice() {
        [] => String::new(),
        stays => format!("; it stays leader of {}, which no other host could lead", listed(stays)),
    };
    format!("{host} still leads {}{stays}", listed(&fleet.led))
}

fn settled(order: &Drained<'_>, fleet: &Fleet) -> Answer {
    let host = order.host;
    if fleet.stays.is_empty() {
        return told(order, fleet, "idle", DONE, format!("{host} leads no election any more\n"));
    }
    let text = format!(
        "{host} still leads {}, which no other host could lead; start one elsewhere, or {} stops it\n",
        listed(&fleet.stays),
        order.drain.forced(host, order.root)
    );
    told(order, fleet, "leading", NOT_DONE, text)
}

/// At most ten by name.
fn listed(names: &[String]) -> String {
    const MOST: usize = 10;
    let first = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{first} and {} more", names.len() - MOST) } else { first }
}

async fn look(order: &Drained<'_>) -> Result<Fleet, CommandError> {
    let Drained { context, root, host, .. } = order;
    let Some(all) = view::elections(&context.client, root).await? else {
        let chroot = context.in_chroot();
        return Err(CommandError::not_known(format!("{root}{chroot} does not exist; is it another path or ensemble?")));
    };
    let mut fleet = Fleet { elections: all.names.len(), ..Fleet::default() };
    // Those that are closed to us are left out.
    for (name, seen) in view::all(&context.client, root, all.names).await?.elections {
        let members = || seen.members.values().map(|(member, _)| member);
        fleet.hosts.extend(members().map(|member| member.host.clone()));
        let same_id = members().find(|member| member.id == *host).map(|member| member.host.clone());
        fleet.is_id_on = same_id.or(fleet.is_id_on);
        fleet.shared += usize::from(members().any(|member| member.host == *host));
        if !leads(&seen, host) {
            continue;
        }
        let has_heard = members().filter(|member| member.host == *host).all(|member| member.drained);
        let is_alone = !order.drain.force && !members().any(|member| member.can_replace(host));
        if is_alone && has_heard { fleet.stays.push(name) } else { fleet.led.push(name) }
    }
    Ok(fleet)
}

fn leads(election: &ElectionView, host: &str) -> bool {
    election.slots.iter().filter_map(|slot| slot_state::leader(slot, election)).any(|holder| holder.host == host)
}

/// The directory may have been created beforehand, with an ACL of its own. When it was written, if that can be read.
async fn write(order: &Drained<'_>) -> Result<Option<i64>, CommandError> {
    let Drained { context, root, host, drain } = order;
    let (client, directory) = (&context.client, format!("{root}/{DRAINS}"));
    if client.children(&directory).await?.is_none() {
        client.create_below(root, &directory, b"").await?;
    }
    let (path, data) = (format!("{directory}/{host}"), drain.written());
    for _ in 0..TRIES {
        let written = match client.read(&path).await? {
            Some(_) => client.overwrite(&path, &data).await?,
            None => client.create_below(&directory, &path, &data).await?,
        };
        if written == Written::Done {
            return Ok(client.read(&path).await.ok().flatten().map(|znode| znode.facts.changed_at));
        }
    }
    Err(CommandError::not_known(format!("others write {path} all the time; try again")))
}

async fn undrained(context: &CommandContext<'_>, root: &str, host: &str) -> Result<Answer, CommandError> {
    let was = context.client.delete(&format!("{root}/{DRAINS}/{host}")).await? == Written::Done;
    let text = match context.output.format {
        OutputFormat::Json | OutputFormat::Yaml => {
            context.output.object(&json!({ "v": 1, "host": host, "state": "undrained", "was": was }))
        }
        OutputFormat::Plain => "undrained\n".to_owned(),
        OutputFormat::Table | OutputFormat::Wide if was => format!("{host} is not drained any more\n"),
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
                "only_candidate_in": fleet.stays,
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
