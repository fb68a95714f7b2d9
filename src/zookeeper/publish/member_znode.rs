//! Our own znode below `<base>/members`: ephemeral, written on each change, so that operators see the participants.
//!
//! A restarted process may find the znode of its predecessor. If that process certainly does not exist any more, its
//! znode is replaced; otherwise it disappears with its session. If it stays for longer than its session could outlive
//! its process, a living participant has our id. The znode of a process that may live is never deleted (two
//! participants that delete each other's would never stop, T19).

use std::fs;
use std::future::pending;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::zookeeper::client::connection::{Error, EventType, MultiError, Stat};
use crate::zookeeper::client::requests::ANY_VERSION;

use crate::clock;
use crate::core::event::Event;
use crate::core::time::{Timestamp, millis};
use crate::zookeeper::client::ensure_path::parent;
use crate::zookeeper::client::error::{Part, PathAccess, RequestError, Right};
use crate::zookeeper::election::session::contact::Contact;
use crate::zookeeper::publish::MemberStatus;
use crate::zookeeper::schema::member::{MEMBERS, Member};
use crate::zookeeper::schema::settings::Settings;
use crate::zookeeper::schema::vouching;

/// A dead session expires after its timeout and two ticks; a tick is at most half of the shortest timeout.
const TIMEOUTS_OF_THE_DEAD: u32 = 2;
const SLACK: Duration = Duration::from_secs(1);

/// The state of our znode in this session.
#[derive(Debug, Default)]
pub(crate) struct OwnMember {
    is_ours: bool,
    /// The czxid of another participant's znode in our place, and when we first saw it.
    other: Option<(i64, Timestamp)>,
    /// When it has stayed for too long.
    until: Option<Timestamp>,
    /// That a living participant has our id was reported.
    told: bool,
}

impl OwnMember {
    /// How long until another one must be gone: then it is looked for again, whatever was said before.
    pub fn look_again_in(&self, now: Timestamp) -> Option<Duration> {
        self.until.filter(|_| self.other.is_some() && !self.told).map(|until| now.until(until))
    }
}

/// Writes the znode, or finds out whose it is.
pub(crate) async fn put(
    contact: &Contact,
    own: &mut OwnMember,
    status: &MemberStatus,
    drained: bool,
) -> Result<(), RequestError> {
    let data = member(contact, status, drained).written();
    let path = path(contact);
    if own.is_ours {
        match contact.client.set_data(&path, &data, None).await {
            Err(Error::NoNode) => own.is_ours = false,
            written => {
                return written.map(drop).map_err(|error| RequestError::from(error).without(Right::Write, &path));
            }
        }
    }
    match contact.client.create(&path, &data, &contact.shared.settings.acl.ephemeral()).await {
        Ok(_) => {
            *own = OwnMember { is_ours: true, ..OwnMember::default() };
            Ok(())
        }
        Err(Error::NoNode) => {
            directory(contact).await?;
            Err(RequestError::unknown("the members' directory is new"))
        }
        Err(Error::NodeExists) => find(contact, own, &path, &data).await,
        Err(error) => Err(RequestError::from(error).without(Right::Create, parent(&path))),
    }
}

/// Resolves when our znode, which was just written, is deleted, as by an operator who cleans up, or written by somebody else:
/// that uses up the watch.
pub(crate) async fn disturbed(
    contact: &Contact,
    status: &MemberStatus,
    drained: bool,
) -> Result<impl Future<Output = ()> + use<>, RequestError> {
    let path = path(contact);
    let read = contact.client.get_and_watch_data(&path).await;
    let (found, _, watcher) = read.map_err(|error| RequestError::from(error).without(Right::Read, &path))?;
    if found != member(contact, status, drained).written() {
        return Err(RequestError::unknown("our member was written by somebody else at once"));
    }
    Ok(async move {
        if !matches!(watcher.changed().await, EventType::NodeDeleted | EventType::NodeDataChanged) {
            pending::<()>().await;
        }
    })
}

fn path(contact: &Contact) -> String {
    format!("{}/{MEMBERS}/{}", contact.shared.paths.base, contact.shared.settings.id)
}

/// Only under a base with a term: a base with children and without a record looks like one that has lost it.
async fn directory(contact: &Contact) -> Result<(), RequestError> {
    let paths = &contact.shared.paths;
    let mut multi = contact.client.multi();
    multi.check(&paths.term, ANY_VERSION);
    multi.create(&format!("{}/{MEMBERS}", paths.base), b"", &contact.shared.settings.acl.persistent());
    match multi.commit().await {
        Ok(_) | Err(MultiError::OperationFailed { source: Error::NodeExists, .. }) => Ok(()),
        Err(error) => {
            let steps = [
                PathAccess(Part::Other, Right::Read, &paths.term),
                PathAccess(Part::Other, Right::Create, &paths.base),
            ];
            Err(RequestError::of_multi(&error, &steps))
        }
    }
}

/// The znode exists: it is ours (a lost reply, our last session), our predecessor's, or a living participant's.
async fn find(contact: &Contact, own: &mut OwnMember, path: &str, fresh: &[u8]) -> Result<(), RequestError> {
    let (data, stat) = contact.client.get_data(path).await?;
    let other = Member::read(&data).unwrap_or_default();
    let is_ours = stat.ephemeral_owner == contact.id();
    // Others read an address only where a member is new.
    let has_moved = other.vouch != Member::read(fresh).unwrap_or_default().vouch;
    if is_ours && !has_moved {
        own.is_ours = true;
        return Err(RequestError::unknown("our member was there already"));
    }
    if is_ours || other.instance == instance(contact) || has_died((&other, &stat), &contact.shared.settings) {
        replace(contact, path, stat.version, fresh).await?;
        *own = OwnMember { is_ours: true, ..OwnMember::default() };
        return Ok(());
    }
    let now = clock::now().lease;
    let timeout = Duration::from_millis(other.session_ms).max(contact.negotiated);
    let limit = timeout * TIMEOUTS_OF_THE_DEAD + SLACK;
    let (id, host, pid) = (&contact.shared.settings.id, &other.host, other.pid);
    let since = match own.other {
        Some((czxid, since)) if czxid == stat.czxid => since,
        _ => {
            let limit = limit.as_secs();
            tracing::warn!(
                id,
                host,
                pid,
                "Another participant has our id; if it is still there in {limit}s, this process ends with status 64, unless it leads; \
                 give each its own with --id"
            );
            now
        }
    };
    own.other = Some((stat.czxid, since));
    own.until = Some(since.after(limit));
    if now >= since.after(limit) && !std::mem::replace(&mut own.told, true) {
        tracing::error!(id, host, pid, "Another live participant has our id; give each its own with --id");
        contact.shared.tell(Event::IdTaken);
    }
    Err(RequestError::unknown("another one has our id"))
}

/// Whether the process that wrote this member certainly does not exist any more. None of ours writes one that outlives its session.
fn has_died((other, stat): (&Member, &Stat), settings: &Settings) -> bool {
    let is_of_here = !other.pid_namespace.is_empty() && other.pid_namespace == settings.pid_namespace;
    let pid = i32::try_from(other.pid).ok().and_then(Pid::from_raw);
    let is_gone = |pid| other.pid == settings.pid || test_kill_process(pid) == Err(Errno::SRCH) || is_zombie(pid);
    stat.ephemeral_owner == 0 || is_of_here && other.id == settings.id && pid.is_some_and(is_gone)
}

/// It has ended, and its parent has not heard of it yet (`proc_pid_stat(5)`).
fn is_zombie(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// Puts ours in the place of the znode of a session that nobody uses any more, if it has not changed.
async fn replace(contact: &Contact, path: &str, version: i32, fresh: &[u8]) -> Result<(), RequestError> {
    let mut multi = contact.client.multi();
    multi.delete(path, Some(version));
    multi.create(path, fresh, &contact.shared.settings.acl.ephemeral());
    let directory = parent(path);
    let steps = [PathAccess(Part::Other, Right::Delete, directory), PathAccess(Part::Other, Right::Create, directory)];
    match multi.commit().await {
        Ok(_) => {
            tracing::debug!(path, "The member that was there was replaced");
            Ok(())
        }
        Err(error) => Err(RequestError::of_multi(&error, &steps)),
    }
}

fn member(contact: &Contact, status: &MemberStatus, drained: bool) -> Member {
    let settings = &contact.shared.settings;
    Member {
        v: 1,
        id: settings.id.clone(),
        host: settings.host.clone(),
        pid: settings.pid,
        pid_namespace: settings.pid_namespace.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        about: settings.about.clone(),
        protection: status.protection.to_owned(),
        role: status.role.to_owned(),
        phase: status.phase.to_owned(),
        since: status.since,
        eligible: status.why_not.is_empty(),
        why_not: status.why_not.clone(),
        drained,
        token: status.token,
        left: status.left,
        session_ms: millis(contact.negotiated),
        instance: instance(contact),
        vouch: settings.vouch.map(|vouch| vouch.address.to_string()).unwrap_or_default(),
    }
}

fn instance(contact: &Contact) -> String {
    vouching::instance_text(contact.shared.settings.instance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::testing::{settings, stat};

    /// Larger than the kernel's largest (`PID_MAX_LIMIT`).
    const NOBODY: u32 = 1 << 30;

    #[test]
    fn a_member_is_dead_only_if_its_process_could_be_looked_for_and_was_not_found() {
        let settings = Settings { pid: NOBODY + 1, pid_namespace: "boot pid:[7]".into(), ..settings() };
        let dead = Member {
            id: settings.id.clone(),
            pid: NOBODY,
            pid_namespace: settings.pid_namespace.clone(),
            ..Member::default()
        };
        let ephemeral = Stat { ephemeral_owner: 1, ..stat() };
        let died = |member: &Member, settings: &Settings| has_died((member, &ephemeral), settings);
        assert!(died(&dead, &settings));
        assert!(has_died((&Member::default(), &Stat { ephemeral_owner: 0, ..stat() }), &settings), "it is persistent");
        assert!(died(&Member { pid: settings.pid, ..dead.clone() }, &settings), "its number is ours now");
        for may_live in [
            Member { pid: std::process::id(), ..dead.clone() },
            Member { pid: 0, ..dead.clone() },
            Member { pid: u32::MAX, ..dead.clone() },
            Member { id: "another".into(), ..dead.clone() },
            Member { pid_namespace: "boot pid:[8]".into(), ..dead.clone() },
            Member { pid_namespace: String::new(), ..dead.clone() },
        ] {
            assert!(!died(&may_live, &settings), "{may_live:?}");
        }
        let unknown = Settings { pid_namespace: String::new(), ..settings };
        assert!(!died(&Member { pid_namespace: String::new(), ..dead }, &unknown));
    }

    /// It was said when.
    #[test]
    fn another_participant_with_our_id_is_looked_for_when_it_must_be_gone() {
        let at = |seconds| Timestamp::ZERO.after(Duration::from_secs(seconds));
        let seen = || OwnMember { other: Some((5, at(0))), until: Some(at(11)), ..OwnMember::default() };
        assert_eq!(seen().look_again_in(at(4)), Some(Duration::from_secs(7)));
        assert_eq!(seen().look_again_in(at(12)), Some(Duration::ZERO));
        assert_eq!(OwnMember { told: true, ..seen() }.look_again_in(at(12)), None);
        assert_eq!(OwnMember::default().look_again_in(at(4)), None);
    }

    #[test]
    fn a_process_that_has_ended_is_dead_though_its_parent_has_not_heard_of_it() {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let ended = waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        assert!(ended.unwrap().is_some());
        assert!(is_zombie(Pid::from_child(&child)) && !is_zombie(rustix::process::getpid()));
        child.wait().unwrap();
    }
}
