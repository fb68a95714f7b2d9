//! What the next program of this process must know of our candidate and our run.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Candidate, Shared, Znode};
use crate::core::event::{Candidacy, Nonce, SessionNumber};
use crate::core::operator_orders::Orders;
use crate::core::settings::Recipe;
use crate::zookeeper::schema::lease::PendingFence;
use crate::zookeeper::schema::run_marker::OpenRun;
use crate::zookeeper::schema::vouching::Neighbourhood;

/// See the module page.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    pub(crate) session: SessionNumber,
    pub(crate) candidacy: Candidacy,
    uuid: String,
    /// A standby of the single recipe has none.
    znode: Option<Znode>,
    former: Vec<String>,
    /// Of this process, before the program that is handed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<u64>,
    joined_ms: Option<i64>,
    run: Option<OpenRun>,
    carried: Option<(Nonce, Vec<PendingFence>)>,
    orders: Orders,
    /// An outage may follow at once. Holds the secret.
    neighbourhood: Neighbourhood,
}

impl Shared {
    /// The instances of earlier programs of this process, and when the process joined.
    pub fn recall(&self, earlier: Vec<u64>, joined_ms: Option<i64>) {
        self.earlier.get_or_init(|| earlier);
        if let Some(joined_ms) = joined_ms {
            self.joined_ms.get_or_init(|| joined_ms);
        }
    }

    /// `None`: no candidate of ours is known to exist in this session, though there should be one.
    pub fn hand_over(&self, session: SessionNumber) -> Option<Kept> {
        let known = self.lock().clone().filter(|known| known.session == session)?;
        let Candidate { candidacy, session, uuid, tried: _, znode, former } = known;
        if znode.is_none() && self.settings.recipe != Recipe::Single {
            return None;
        }
        Some(Kept {
            session,
            candidacy,
            uuid: uuid.to_string(),
            znode,
            former: former.iter().map(ToString::to_string).collect(),
            earlier: self.earlier.get().cloned().unwrap_or_default(),
            joined_ms: self.first_joined_ms(),
            run: self.lock_run().clone(),
            carried: self.pending_fences.hand_over(),
            orders: *self.orders.borrow(),
            neighbourhood: self.neighbourhood.borrow().clone(),
        })
    }

    /// # Errors
    /// If a name is none.
    pub fn take_up(&self, kept: Kept) -> Result<(), uuid::Error> {
        let Kept { session, candidacy, uuid, znode, former, earlier, joined_ms, run, carried, orders, neighbourhood } =
            kept;
        let former = former.iter().map(|uuid| uuid.parse()).collect::<Result<Vec<Uuid>, _>>()?;
        let uuid = uuid.parse()?;
        *self.lock() = Some(Candidate { candidacy, session, uuid, tried: true, znode, former });
        self.recall(earlier, joined_ms);
        *self.lock_run() = run;
        self.pending_fences.take_up(carried);
        self.orders.send_replace(orders);
        self.neighbourhood.send_replace(neighbourhood);
        self.reached();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use serde_json::Value;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::core::action::Conditions;
    use crate::core::guard_messages::{ChildStatus, Slot};
    use crate::core::operator_orders::{Disabled, Drain, Handover, Prospect, Target};
    use crate::zookeeper::election::fencing::Succession;
    use crate::zookeeper::schema::once::{Once, Per};
    use crate::zookeeper::schema::run_marker::Run;
    use crate::zookeeper::schema::vouching::{Neighbour, Secret};
    use crate::zookeeper::testing::{settings, stat};

    const SESSION: SessionNumber = SessionNumber(3);
    const NONCE: Nonce = Nonce { instance: 7, sending: 2 };

    fn shared() -> Shared {
        Shared::new(settings(), unbounded_channel().0)
    }

    /// A run that has ended, and whose end is not written down yet.
    fn run() -> OpenRun {
        let once = Once { per: Per::Slot("night".into()), retry_failed: false, keep_slots: 9 };
        let (slot, earlier) = (Some(("/runs/slot-night".into(), 4)), vec![Run::default()]);
        let run = Run::new(&once, NONCE, 40, &settings());
        let end = Some((ChildStatus::Exited(0), true));
        OpenRun {
            run,
            started_ms: 8,
            term: 5,
            slot,
            last: 6,
            earlier,
            before: Some(Run::default()),
            end,
            is_withdrawn: false,
        }
    }

    /// All that a program may know at that moment, though never all of it at once.
    fn full() -> Shared {
        let (shared, znode) = (shared(), Znode { name: "candidate".into(), czxid: 12 });
        let (candidacy, former) = (Candidacy(2), vec![Uuid::from_u128(1)]);
        let candidate = Candidate {
            candidacy,
            session: SESSION,
            uuid: Uuid::from_u128(2),
            tried: true,
            znode: Some(znode),
            former,
        };
        *shared.lock() = Some(candidate);
        shared.recall(vec![6], None);
        shared.joined(&stat());
        shared.open_run(run());
        let conditions = Conditions { slot: Slot(0), record: 1, term: 2 };
        let unfenced = PendingFence { id: "dead".into(), token: 39, ..PendingFence::default() };
        shared.pending_fences.note(vec![Succession { conditions, to_fence: vec![unfenced], lease_of: None }]);
        shared.pending_fences.take_over(NONCE, conditions);
        let lasts = Duration::from_secs(9);
        let handover = Handover { id: 6, lasts, token: 40, target: Target::Another, stop: true };
        let disabled = Some(Disabled { id: 5, lasts: Some(lasts) });
        shared.ordered(Orders { disabled, handover: Some(handover), ..Orders::default() });
        shared.drained(Some(Drain { id: 4, lasts: Some(lasts), has_others: true, force: false }));
        shared.asked_for(40);
        shared.foresee(Prospect { of: 6, newest: 40, has_target: true });
        let address = SocketAddr::from(([10, 0, 0, 1], 4711));
        shared.learn(|known| {
            (known.election, known.secret) = (Some(11), Secret::read(&[9; Secret::LENGTH]));
            known.note(std::iter::once(Neighbour { instance: 8, id: "b".into(), address }));
        });
        shared
    }

    fn lacks(value: &Value) -> bool {
        let fields = value.as_object().into_iter().flatten().map(|(_, field)| field);
        value.is_null() || value.as_array().is_some_and(Vec::is_empty) || fields.into_iter().any(lacks)
    }

    /// The candidate and the run, the leaders to fence, the orders, and the hosts that vouch with their secret.
    #[test]
    fn the_next_program_knows_all_that_this_one_knew() {
        let known = serde_json::to_value(full().hand_over(SESSION).unwrap()).unwrap();
        assert!(!lacks(&known), "it is forgotten when it is handed over: {known:#}");
        let next = shared();
        next.take_up(serde_json::from_value(known.clone()).unwrap()).unwrap();
        let again = serde_json::to_value(next.hand_over(SESSION).unwrap()).unwrap();
        assert_eq!(again, known, "it is forgotten when it is taken up");
        assert_eq!(next.pending_fences.carried(NONCE).len(), 1);
        assert!(next.lock().as_ref().is_some_and(|candidate| candidate.tried), "its create was sent");
    }
}
