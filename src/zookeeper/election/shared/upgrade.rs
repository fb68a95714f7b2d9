//! What the next program of this process must know of our candidate and our run.

use std::sync::PoisonError;

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
    joined_ms: Option<i64>,
    run: Option<OpenRun>,
    carried: Option<(Nonce, Vec<PendingFence>)>,
    orders: Orders,
    /// An outage may follow at once. Holds the secret.
    neighbourhood: Neighbourhood,
}

impl Shared {
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
            joined_ms: self.joined_ms.get().copied(),
            run: self.lock_run().clone(),
            carried: self.pending_fences.hand_over(),
            orders: *self.orders.borrow(),
            neighbourhood: self.neighbourhood.borrow().clone(),
        })
    }

    /// # Errors
    /// If a name is none.
    pub fn take_up(&self, kept: Kept) -> Result<(), uuid::Error> {
        let Kept { session, candidacy, uuid, znode, former, joined_ms, run, carried, orders, neighbourhood } = kept;
        let former = former.iter().map(|uuid| uuid.parse()).collect::<Result<Vec<Uuid>, _>>()?;
        let uuid = uuid.parse()?;
        *self.lock() = Some(Candidate { candidacy, session, uuid, tried: true, znode, former });
        if let Some(joined_ms) = joined_ms {
            self.joined_ms.get_or_init(|| joined_ms);
        }
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = run;
        self.pending_fences.take_up(carried);
        self.orders.send_replace(orders);
        self.neighbourhood.send_replace(neighbourhood);
        self.reached();
        Ok(())
    }
}
