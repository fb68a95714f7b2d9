//! What operators order in `<base>/control`: nobody may run, or the leader is to hand over. Each order has an id of its own,
//! so that each contender counts its time from its own first sight of that very order.
//!
//! Never: an order that could let a second one run; orders only stop and delay.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The name of the znode below the base.
pub const CONTROL: &str = "control";

const VERSION: u32 = 1;

/// The JSON of the znode. Unknown fields are ignored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
pub struct Orders {
    pub v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Disabled>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
}

/// Nobody may run the command.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
pub struct Disabled {
    /// Tells this order from every other.
    pub order: String,
    #[serde(default)]
    pub reason: String,
    /// Who gave it, for people.
    #[serde(default)]
    pub by: String,
    /// For how long; `None`: until it is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
}

/// The leader of one term is to stop and stand at the end of the queue.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
pub struct Handover {
    pub order: String,
    /// The term that is to end; the order is void for every other one.
    pub token: i64,
    /// Who is to lead next; `None`: whoever is next in line. The others stand back meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The leader is to stop. Before that, the others make room for the target.
    #[serde(default)]
    pub stop: bool,
    #[serde(default)]
    pub by: String,
    /// For how long.
    pub for_ms: u64,
}

impl Disabled {
    pub fn lasts(&self) -> Option<Duration> {
        self.for_ms.map(Duration::from_millis)
    }
}

impl Handover {
    pub fn lasts(&self) -> Duration {
        Duration::from_millis(self.for_ms)
    }
}

impl Orders {
    /// An empty znode orders nothing.
    ///
    /// # Errors
    /// What is wrong with it; then it orders nothing.
    pub fn read(data: &[u8]) -> Result<Self, String> {
        if data.is_empty() {
            return Ok(Self::default());
        }
        let orders: Self = serde_json::from_slice(data).map_err(|error| error.to_string())?;
        let ids =
            [orders.disabled.as_ref().map(|order| &order.order), orders.handover.as_ref().map(|order| &order.order)];
        match orders.v {
            VERSION if ids.iter().flatten().any(|id| id.is_empty()) => Err("it has an order without an id".to_owned()),
            VERSION => Ok(orders),
            other => Err(format!("its format is version {other}")),
        }
    }

    pub fn written(&self) -> Vec<u8> {
        serde_json::to_vec(&Self { v: VERSION, ..self.clone() }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_were_written() {
        let orders = Orders {
            v: 1,
            disabled: Some(Disabled { order: "1".into(), reason: "r".into(), by: "me".into(), for_ms: Some(5) }),
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
    fn what_is_no_order_says_why() {
        for text in ["x", "[]", "{}", r#"{"v":2}"#, r#"{"v":1,"disabled":true}"#, r#"{"v":1,"disabled":{"order":""}}"#]
        {
            assert!(Orders::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
