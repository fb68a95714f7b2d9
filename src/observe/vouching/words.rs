//! The lines about hosts that vouch.

use std::time::Duration;

use crate::observe::words::length;
use crate::zookeeper::schema::control::moment::moment;
use crate::zookeeper::schema::vouching::Neighbourhood;

/// One line of the log. Hosts are told by their instances.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// `ZooKeeper` is away, and the command lives on their promises; until then (milliseconds since 1970) at most.
    Away { by: Vec<u64>, until: i64 },
    /// It is back, and the command has lived.
    Back { after: Duration },
    /// One that is needed has promised nothing for so long. `left`: until the command is stopped for it; `None`: `ZooKeeper` is
    /// there.
    Lacking { instance: u64, since: Duration, refuses: bool, left: Option<Duration> },
    /// Contact with `ZooKeeper` is lost, and the command cannot live on promises, as these have given none of late. It is stopped
    /// then, unless they do or `ZooKeeper` is back.
    Paused { lacking: Vec<u64>, until: i64 },
    /// It promises again.
    Answers { instance: u64 },
    /// Nobody else could take over, or vouch.
    Alone { limit: Duration },
    /// On a standby: the leader's command may live by the promises of this host. `is_away`: `ZooKeeper` is, as far as this host knows; else
    /// that leader alone is cut off. Until then (milliseconds since 1970) at most.
    HoldsBack { leader: u64, is_away: bool, until: i64 },
    /// It does not any more.
    HeldBack { leader: u64 },
}

impl Line {
    pub fn log(&self, names: &Neighbourhood) {
        let said = self.sentence(names);
        match self {
            Self::Away { .. } => tracing::warn!(why = "vouched-for", "{said}"),
            Self::Back { .. } => tracing::info!(why = "contact-restored", "{said}"),
            Self::Paused { .. } | Self::Lacking { .. } => tracing::warn!(why = "not-vouched-for", "{said}"),
            Self::Answers { .. } => tracing::info!(why = "vouched-for", "{said}"),
            Self::Alone { .. } => tracing::info!(why = "nobody-to-vouch", "{said}"),
            Self::HoldsBack { .. } => tracing::warn!(why = "vouches", "{said}"),
            Self::HeldBack { .. } => tracing::info!(why = "vouches-no-more", "{said}"),
        }
    }

    pub fn sentence(&self, names: &Neighbourhood) -> String {
        match self {
            Self::Away { by, until } if by.is_empty() => {
                let until = moment(*until);
                format!(
                    "The command runs on without ZooKeeper, as no other host with --vouch is in line, until {until} at \
                     most; bring ZooKeeper back before then"
                )
            }
            Self::Away { by, until } => {
                let by: Vec<_> = by.iter().map(|instance| id(names, *instance)).collect();
                let (by, until) = (by.join(", "), moment(*until));
                format!(
                    "The command runs on without ZooKeeper, vouched for by {by}, until {until} at most; bring ZooKeeper \
                     back before then, and kill or restart none of these hosts"
                )
            }
            Self::Back { after } => format!("ZooKeeper is back after {}; the command ran on", whole(*after)),
            Self::Lacking { instance, since, refuses, left } => {
                lacking(&place(names, *instance), *since, *refuses, *left)
            }
            Self::Paused { lacking, until } => {
                let lacking: Vec<_> = lacking.iter().map(|instance| place(names, *instance)).collect();
                let (hosts, until) = (lacking.join(", "), moment(*until));
                let promise = if lacking.len() == 1 { "promises" } else { "promise" };
                format!(
                    "The command is stopped at {until}, unless ZooKeeper is back by then or {hosts} {promise} to hold back: let UDP \
                     pass between them and this host"
                )
            }
            Self::Answers { instance } => format!("{} vouches for the command again", place(names, *instance)),
            Self::Alone { limit } => alone(*limit),
            Self::HoldsBack { leader, is_away, until } => holds_back(&id(names, *leader), *is_away, *until),
            Self::HeldBack { leader } => {
                format!("The command of {} does not live by the promises of this host any more", id(names, *leader))
            }
        }
    }
}

fn alone(limit: Duration) -> String {
    let limit = length(limit);
    format!(
        "no other host with --vouch is in line; in an outage of ZooKeeper the command runs on for {limit} at most, and a \
         host that comes then waits for that long; start a second one with --vouch"
    )
}

/// A host that is stopped by SIGTERM says that it is gone, and is needed no more.
fn holds_back(leader: &str, is_away: bool, until: i64) -> String {
    let until = moment(until);
    // Where it reaches ZooKeeper and we do not, it asks us all the same, and the limit counts from its last write.
    let (cut_off, later) = if is_away {
        ("ZooKeeper is away", format!(" (later, if {leader} reaches ZooKeeper meanwhile)"))
    } else {
        ("it is cut off from ZooKeeper", String::new())
    };
    format!(
        "The command of {leader} may live by the promises of this host, until {until} at most{later}, because {cut_off}: if this host has \
         to go, stop zk-leader-run by SIGTERM (systemctl stop) first, and wait until it has ended; a crash or kill -9 here may stop that \
         command"
    )
}

/// What the silence or refusal of this host leads to, and where to look.
fn lacking(host: &str, since: Duration, refuses: bool, left: Option<Duration>) -> String {
    let (lacks, remedy) = if refuses {
        (
            "has refused to hold back",
            "it is stopping, or saw in ZooKeeper that this host is cut off or replaced; look at its log, and whether this \
             host reaches ZooKeeper",
        )
    } else {
        ("has not answered", "look whether that host is well, and let UDP pass between it and this host")
    };
    let end = match left {
        Some(left) => format!("unless that changes, the command is stopped in {}", whole(left)),
        None => "in an outage of ZooKeeper the command would be stopped for it".to_owned(),
    };
    format!("{host} {lacks} for {}; {end}: {remedy}", whole(since))
}

/// In whole seconds.
fn whole(time: Duration) -> String {
    if time < Duration::from_secs(1) { "0s".to_owned() } else { length(Duration::from_secs(time.as_secs())) }
}

/// Its id.
pub(super) fn id(names: &Neighbourhood, instance: u64) -> String {
    names.of(instance).map_or_else(|| format!("instance {instance:016x}"), |host| host.id.clone())
}

/// Its id and where it is asked.
fn place(names: &Neighbourhood, instance: u64) -> String {
    let known = names.of(instance).map(|host| format!("{} ({})", host.id, host.address));
    known.unwrap_or_else(|| id(names, instance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_away_itself_does_not_know_when_the_leader_wrote_last() {
        let said = |is_away| holds_back("a", is_away, 1_795_229_940_000);
        let (alone, everybody) = (said(false), said(true));
        assert!(alone.contains("until 2026-11-21 02:59:00 UTC at most, because it is cut off"), "{alone}");
        assert!(everybody.contains(" at most (later, if a reaches ZooKeeper meanwhile), because"), "{everybody}");
    }
}
