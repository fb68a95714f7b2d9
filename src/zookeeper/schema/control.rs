//! Operator orders in `<base>/control`: the election is disabled, or the leader is to hand over. Each order has an id.
//!
//! An order's time counts from the write that gave it, by `ZooKeeper`'s clock (`mtime`). A later write for another order
//! keeps that time in `since`.
//!
//! Orders only stop and delay; none can let a second command run.

pub mod drain;
pub mod moment;
pub mod remedy;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::moment::moment;
use crate::zookeeper::schema::json::{self, SchemaError, VERSION};

/// The name of the znode below the base.
pub const CONTROL: &str = "control";

/// The JSON of the znode. Unknown fields are ignored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
pub struct Orders {
    pub v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Disabled>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
}

/// The election is disabled: no host may run the command.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
pub struct Disabled {
    /// Unique for each order.
    pub order: String,
    #[serde(default)]
    pub reason: String,
    /// The operator, for status reports.
    #[serde(default)]
    pub by: String,
    /// For how long; `None`: until it is withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// When it was given, in milliseconds since 1970; `None`: with the last write of the znode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
}

/// The leader of one term stops and goes to the end of the queue.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
pub struct Handover {
    pub order: String,
    /// The fencing token of the term that is to end. The order is void for every other term.
    pub token: i64,
    /// The id of the next leader; `None`: the next in the queue. Until it leads, the others stand back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The leader stops now. Before that, the others make room for the target.
    #[serde(default)]
    pub stop: bool,
    #[serde(default)]
    pub by: String,
    pub for_ms: u64,
    /// As in `Disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
}

/// The end of an order without one.
const UNTIL_ENDED: &str = "until somebody ends it";

impl Disabled {
    pub fn lasts(&self) -> Option<Duration> {
        self.for_ms.map(Duration::from_millis)
    }

    /// Operator, end, reason, and what ends it before in the election with this base.
    pub fn said(&self, base: &str) -> String {
        format!(
            "Disabled by {} {}: {:?}; no host runs the command meanwhile; {} ends it",
            self.by,
            self.end(),
            self.reason,
            remedy::about_election("enable", base)
        )
    }

    /// `until 2026-11-21 03:00:00 UTC`, `until somebody ends it`.
    pub fn end(&self) -> String {
        match (self.ends_at(), self.lasts()) {
            (Some(end), _) => format!("until {}", moment(end)),
            (None, Some(length)) => format!("for {}", span(length)),
            (None, None) => UNTIL_ENDED.to_owned(),
        }
    }

    /// By `ZooKeeper`'s clock; `None`: it has no limit, or its start is not known.
    pub fn ends_at(&self) -> Option<i64> {
        ends_at(self.since, self.for_ms?)
    }
}

impl Handover {
    pub fn lasts(&self) -> Duration {
        Duration::from_millis(self.for_ms)
    }

    /// Operator, target and time limit.
    pub fn said(&self) -> String {
        let to = self.to.as_deref().unwrap_or("the next in line");
        format!("Handover to {to} requested by {}, within {}", self.by, span(self.lasts()))
    }

    /// Operator, end and target, of one order among others.
    pub fn ordered(&self) -> String {
        let end = self
            .ends_at()
            .map_or_else(|| format!("for {}", span(self.lasts())), |end| format!("until {}", moment(end)));
        let to = self.to.as_deref().unwrap_or("the next in line");
        format!("the order of {} {end} to hand over to {to}", self.by)
    }

    /// By `ZooKeeper`'s clock; `None`: its start is not known.
    pub fn ends_at(&self) -> Option<i64> {
        ends_at(self.since, self.for_ms)
    }
}

/// Whole seconds, from one second on.
fn span(length: Duration) -> humantime::FormattedDuration {
    let whole = Duration::from_secs((length.as_millis().saturating_add(500) / 1000).try_into().unwrap_or(u64::MAX));
    humantime::format_duration(if whole.is_zero() { length } else { whole })
}

fn ends_at(since: Option<i64>, for_ms: u64) -> Option<i64> {
    Some(since?.saturating_add(i64::try_from(for_ms).unwrap_or(i64::MAX)))
}

impl Orders {
    /// An empty znode orders nothing.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be parsed; then it orders nothing.
    pub fn read(data: &[u8]) -> Result<Self, SchemaError> {
        if data.is_empty() {
            return Ok(Self::default());
        }
        let orders: Self = json::read(data, |orders: &Self| orders.v)?;
        let ids =
            [orders.disabled.as_ref().map(|order| &order.order), orders.handover.as_ref().map(|order| &order.order)];
        if ids.iter().flatten().any(|id| id.is_empty()) { Err(SchemaError::OrderWithoutId) } else { Ok(orders) }
    }

    /// Orders without a start were given by the last write of the znode.
    pub fn date(&mut self, written_at: i64) {
        self.disabled.iter_mut().for_each(|order| order.since = order.since.or(Some(written_at)));
        self.handover.iter_mut().for_each(|order| order.since = order.since.or(Some(written_at)));
    }

    /// Whether any of them ends by itself.
    pub fn has_limit(&self) -> bool {
        self.ends().next().is_some()
    }

    /// Without those that have lapsed.
    #[must_use]
    pub fn in_force(&self, now: i64) -> Self {
        let lasts = |end: Option<i64>| end.is_none_or(|end| now < end);
        Self {
            v: self.v,
            disabled: self.disabled.clone().filter(|order| lasts(order.ends_at())),
            handover: self.handover.clone().filter(|order| lasts(order.ends_at())),
        }
    }

    /// The same, given now for the rest of their time.
    #[must_use]
    pub fn as_of(&self, now: i64) -> Self {
        let rest = |end: i64| u64::try_from(end.saturating_sub(now)).unwrap_or(0);
        let mut orders = self.clone();
        if let Some(order) = &mut orders.disabled {
            (order.for_ms, order.since) = (order.ends_at().map(rest), Some(now));
        }
        if let Some(order) = &mut orders.handover {
            (order.for_ms, order.since) = (order.ends_at().map_or(order.for_ms, rest), Some(now));
        }
        orders
    }

    /// The time until the first of them lapses.
    pub fn lapses_in(&self, now: i64) -> Option<Duration> {
        let left = self.ends().min()?.saturating_sub(now);
        Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    fn ends(&self) -> impl Iterator<Item = i64> {
        let ends =
            [self.disabled.as_ref().and_then(Disabled::ends_at), self.handover.as_ref().and_then(Handover::ends_at)];
        ends.into_iter().flatten()
    }

    pub fn written(&self) -> Vec<u8> {
        json::written(&Self { v: VERSION, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_were_written() {
        let orders = Orders {
            v: 1,
            disabled: Some(Disabled {
                order: "1".into(),
                reason: "r".into(),
                by: "me".into(),
                for_ms: Some(5),
                since: None,
            }),
            handover: Some(Handover {
                order: "2".into(),
                token: 7,
                to: Some("b".into()),
                for_ms: 9,
                ..Handover::default()
            }),
        };
        assert_eq!(Orders::read(&orders.written()), Ok(orders));
        assert_eq!(Orders::read(b""), Ok(Orders::default()));
        assert_eq!(Orders::read(br#"{"v":1,"colour":"red"}"#).unwrap().disabled, None);
    }

    #[test]
    fn an_order_counts_from_the_write_that_gave_it_and_not_from_a_later_one() {
        let order = Disabled { order: "1".into(), for_ms: Some(1000), ..Disabled::default() };
        let mut orders = Orders { disabled: Some(order), ..Orders::default() };
        assert!(orders.in_force(i64::MAX).disabled.is_some(), "it is not known since when");
        orders.date(5000);
        orders.date(5900);
        assert_eq!(orders.lapses_in(5900), Some(Duration::from_millis(100)));
        let rest = orders.as_of(5900).disabled.unwrap();
        assert_eq!((rest.for_ms, rest.ends_at()), (Some(100), Some(6000)));
        assert!(orders.in_force(5999).disabled.is_some() && orders.in_force(6000).disabled.is_none());
        let for_ever = Disabled { order: "1".into(), ..Disabled::default() };
        let mut orders = Orders { disabled: Some(for_ever), ..Orders::default() };
        orders.date(5000);
        assert!(!orders.has_limit() && orders.in_force(i64::MAX) == orders);
    }

    #[test]
    fn who_has_disabled_it_and_until_when_is_told() {
        let order = Disabled { reason: "CHG-1".into(), by: "root@adm".into(), ..Disabled::default() };
        let said = |for_ms, since| Disabled { for_ms, since, ..order.clone() }.said("/zk-leader-run/nightly");
        let rest = ": \"CHG-1\"; no host runs the command meanwhile; zk-leaderctl enable nightly ends it";
        let until = "Disabled by root@adm until 2026-11-21 03:00:00 UTC";
        assert_eq!(said(Some(3_600_000), Some(1_795_226_400_000)), format!("{until}{rest}"));
        assert_eq!(said(Some(3_600_000), None), format!("Disabled by root@adm for 1h{rest}"));
        assert_eq!(said(None, Some(5)), format!("Disabled by root@adm until somebody ends it{rest}"));
    }

    #[test]
    fn what_is_no_order_says_why() {
        for text in ["x", "[]", "{}", r#"{"v":2}"#, r#"{"v":1,"disabled":true}"#, r#"{"v":1,"disabled":{"order":""}}"#]
        {
            assert!(Orders::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
