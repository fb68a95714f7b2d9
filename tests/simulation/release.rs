//! The guard's last errand after its supervisor's death: frees the record of a tree that is known to be empty.

use zk_leader_run::core::action::{Conditions, Entry};
use zk_leader_run::core::guard_messages::Grant;

use crate::clock::Real;
use crate::ensemble::StoredRecord;
use crate::requests::is_of;
use crate::script::Mark;
use crate::world::{Occurrence, World};

#[derive(Clone, Copy, Debug)]
pub struct Releaser {
    instance: usize,
    grant: Grant,
    begun_at: Real,
    /// The record as it was read.
    read: Option<StoredRecord>,
}

impl Releaser {
    pub fn new(instance: usize, grant: Grant, begun_at: Real) -> Self {
        Self { instance, grant, begun_at, read: None }
    }
}

impl World {
    pub fn start_releaser(&mut self, releaser: Releaser) {
        // Under at-least-once the guard does not know that the wait was over.
        if self.is_at_most_once() {
            let host = self.instances[releaser.instance].host;
            let at = self.now + 2 * self.latency(host);
            self.push(at, Occurrence::Releases { releaser });
        }
    }

    pub fn releaser_works(&mut self, releaser: Releaser) {
        let host = self.instances[releaser.instance].host;
        let limit = self.timeout_of(releaser.instance).as_nanos() as Real;
        if self.now > releaser.begun_at + limit {
            return;
        }
        let again = |world: &mut Self, read, delay| {
            world.push(world.now + delay, Occurrence::Releases { releaser: Releaser { read, ..releaser } });
        };
        let delay = self.latency(host);
        if self.is_cut(host) || self.now < self.hosts[host].suspended_until {
            return again(self, None, limit / 5);
        }
        let Some(read) = releaser.read else {
            let ours = |record: &StoredRecord| record.held && is_of(record.nonce, releaser.instance);
            if let Some(record) = self.ensemble.state().record.filter(ours) {
                again(self, Some(record), delay);
            }
            return;
        };
        let conditions = Conditions { slot: releaser.grant.slot, record: read.version, term: releaser.grant.term };
        let entry = Entry {
            nonce: read.nonce,
            token: Some(releaser.grant.token),
            lease: read.lease,
            waiting_on: None,
            vouching: None,
        };
        // A record names the candidate of its last write.
        let (session, candidacy) = read.candidate.unwrap_or((releaser.grant.session as usize, 0));
        match self.ensemble.release(session, candidacy, conditions, entry, false) {
            Ok(()) => {
                self.note(|| format!("ensemble: freed by the releaser of instance {}", releaser.instance));
                self.oracle.freed(&self.instances, &self.hosts, releaser.instance, self.now, self.script.guarantee);
                self.mark(Mark::ReleaseApplied);
            }
            Err(_) => again(self, None, delay),
        }
    }
}
