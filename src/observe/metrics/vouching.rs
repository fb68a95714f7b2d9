//! What is measured of hosts that vouch for the leader. Nothing of it is shown without `--vouch`.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::core::action::PhaseName;
use crate::core::time::Now;
use crate::observe::status::Status;
use crate::observe::vouching::oldest_promise;

type Nothing = [(&'static str, &'static str); 0];
type Seconds = Family<Nothing, Gauge<f64, AtomicU64>>;

/// A family without a member is not shown.
#[derive(Debug, Default)]
pub(super) struct VouchMetrics {
    vouched: Family<Nothing, Gauge>,
    ready: Family<Nothing, Gauge>,
    needed: Family<Nothing, Gauge>,
    answer_age: Seconds,
    limit_left: Seconds,
    dropped: Family<[(&'static str, &'static str); 1], Counter>,
}

impl VouchMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let mut add = |name: &str, help: &str, family: &Family<Nothing, Gauge>| {
            registry.register(name, help, family.clone());
        };
        add("vouched", "1 while the command lives on promises, because ZooKeeper is away", &metrics.vouched);
        let ready =
            "1 while we lead, and an outage of ZooKeeper would be lived through: all who are needed have promised";
        add("vouch_ready", ready, &metrics.ready);
        add("vouch_needed", "Hosts whose promises we need; 0 while we do not lead", &metrics.needed);
        let mut add = |name: &str, help: &str, family: &Seconds| {
            registry.register_with_unit(name, help, Unit::Seconds, family.clone());
        };
        let age = "Age of the oldest promise that we need; 0 if we need none";
        add("vouch_answer_age", age, &metrics.answer_age);
        let left =
            "Until the command is killed at --vouch-limit, unless a renewal is acknowledged; 0 while we do not lead";
        add("vouch_limit_left", left, &metrics.limit_left);
        let dropped = "Datagrams that were not believed, by the reason";
        registry.register("vouch_datagrams_dropped", dropped, metrics.dropped.clone());
        metrics
    }

    pub fn read(&self, status: &Status, now: Now) {
        let Some(vouched) = status.snapshot.vouching else { return };
        let leads = vouched.leads.as_ref();
        let is_ready = leads.is_some_and(|leads| leads.is_ready(now.lease));
        let needed = leads.map_or(0, |leads| leads.needed().count());
        self.vouched.get_or_create(&[]).set(i64::from(status.snapshot.phase == PhaseName::Vouched));
        self.ready.get_or_create(&[]).set(i64::from(is_ready));
        self.needed.get_or_create(&[]).set(i64::try_from(needed).unwrap_or(i64::MAX));
        let age = leads.and_then(|leads| oldest_promise(leads, now));
        self.answer_age.get_or_create(&[]).set(age.unwrap_or_default());
        let left = leads.map_or(0.0, |leads| now.lease.until(leads.limit_at).as_secs_f64());
        self.limit_left.get_or_create(&[]).set(left);
    }

    /// So many datagrams were dropped for this reason, in all.
    pub fn dropped(&self, why: &'static str, total: u64) {
        let counter = self.dropped.get_or_create(&[("why", why)]);
        counter.inc_by(total.saturating_sub(counter.get()));
    }
}
