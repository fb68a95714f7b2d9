//! Holds the ensemble in memory against real servers: the same script, the same transcript.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::{Message, OpReply, Reply, SessionId, Stat, Version, Zxid};
use crate::script::{Memory, Real, Step, Transcript, run};
use crate::support::Ensemble;

/// What the servers are that `tests/versions.sh` names, or else the installed ones.
pub fn version() -> Version {
    match std::env::var("ZOOKEEPER_VERSION").as_deref() {
        Ok("3.9" | "3.9.5") => Version::V3_9,
        Ok(other) => panic!("no ensemble in memory is like ZooKeeper {other}"),
        Err(_) => Version::V3_8,
    }
}

/// The two transcripts of a script, if they differ.
pub fn difference(servers: &Ensemble, steps: &[Step]) -> Option<String> {
    static SCRIPTS: AtomicU64 = AtomicU64::new(0);
    let base = format!("/t{}", SCRIPTS.fetch_add(1, Ordering::Relaxed));
    let real = plain(run(&mut Real::new(servers), steps, &base));
    let memory = plain(run(&mut Memory::new(version(), servers.servers().len()), steps, &base));
    let at = (0..steps.len()).find(|at| real[*at] != memory[*at])?;
    let script: Vec<String> = steps[..=at].iter().map(|step| format!("  {step:?}")).collect();
    let (real, memory) = (&real[at], &memory[at]);
    Some(format!("after\n{}\nreal   {real:#?}\nmemory {memory:#?}", script.join("\n")))
}

#[track_caller]
pub fn assert_same(servers: &Ensemble, steps: &[Step]) {
    if let Some(difference) = difference(servers, steps) {
        panic!("{difference}");
    }
}

/// Without what must differ: times, passwords, xids, where zxids start, ids of sessions, orders that mean nothing.
fn plain(mut transcript: Transcript) -> Transcript {
    let messages = || transcript.iter().flat_map(BTreeMap::values).flatten();
    let first = messages().find_map(|message| match message {
        Message::Reply { zxid, .. } if *zxid > 0 => Some(*zxid),
        _ => None,
    });
    let sessions: Vec<SessionId> = messages().fold(Vec::new(), |mut sessions, message| {
        match message {
            Message::Connected { session, .. } if !sessions.contains(session) => sessions.push(*session),
            _ => {}
        }
        sessions
    });
    let renaming = Renaming { first: first.unwrap_or_default(), sessions };
    for message in transcript.iter_mut().flat_map(BTreeMap::values_mut).flatten() {
        renaming.rename(message);
    }
    // A client that received nothing.
    for step in &mut transcript {
        step.retain(|_, messages| !messages.is_empty());
    }
    transcript
}

struct Renaming {
    first: Zxid,
    sessions: Vec<SessionId>,
}

impl Renaming {
    fn rename(&self, message: &mut Message) {
        match message {
            Message::Connected { session, password, .. } => {
                *session = self.session(*session);
                password.clear();
            }
            Message::Reply { xid, zxid, result } => {
                *xid = 0;
                self.zxid(zxid);
                if let Ok(reply) = result {
                    self.reply(reply);
                }
            }
            Message::Event { zxid, .. } => self.zxid(zxid),
            Message::Expired | Message::Closed => {}
        }
    }

    fn reply(&self, reply: &mut Reply) {
        match reply {
            Reply::Created { stat, .. } | Reply::Stat(stat) | Reply::Data { stat, .. } => self.stat(stat),
            Reply::Children { names, stat } => {
                names.sort();
                self.stat(stat);
            }
            Reply::Acl { acl, stat } => {
                acl.sort();
                self.stat(stat);
            }
            Reply::Ephemerals(paths) => paths.sort(),
            Reply::Multi(replies) => {
                for reply in replies {
                    if let OpReply::Created { stat: Some(stat), .. } | OpReply::Set(stat) = reply {
                        self.stat(stat);
                    }
                }
            }
            Reply::Done => {}
        }
    }

    fn stat(&self, stat: &mut Stat) {
        for zxid in [&mut stat.czxid, &mut stat.mzxid, &mut stat.pzxid] {
            self.zxid(zxid);
        }
        (stat.ctime, stat.mtime) = (0, i64::from(stat.mtime != stat.ctime && stat.version == 0));
        stat.ephemeral_owner = self.session(stat.ephemeral_owner);
    }

    /// 0 and -1 are no zxids.
    fn zxid(&self, zxid: &mut Zxid) {
        if *zxid > 0 {
            *zxid = *zxid - self.first + 1_000_000;
        }
    }

    fn session(&self, session: SessionId) -> SessionId {
        match self.sessions.iter().position(|known| *known == session) {
            Some(at) => at as SessionId + 1,
            None => session,
        }
    }
}
