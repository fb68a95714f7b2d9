//! Single replies that a link loses, or delivers late, while the connection lives and everything else passes.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::traffic::Request;
use super::{Proxy, wait};

#[derive(Clone, Copy, Debug)]
enum Fate {
    Lost,
    Late(Duration),
}

/// Which requests are meant.
#[derive(Debug)]
struct Order {
    kind: i32,
    path: String,
    fate: Fate,
}

/// Shared by all connections of a link.
#[derive(Default, Debug)]
pub struct Fates {
    order: Mutex<Option<Order>>,
    /// By connection and xid.
    due: Mutex<HashMap<(usize, i32), Fate>>,
    lost: AtomicUsize,
}

impl Fates {
    /// A request passes: what becomes of its reply? One order loses one reply.
    pub fn decide(&self, connection: usize, xid: i32, request: &Request) {
        let mut order = self.order.lock().unwrap();
        let is_meant = |order: &&mut Order| order.kind == request.kind && request.text.contains(&order.path);
        let Some(fate) = order.as_mut().filter(is_meant).map(|order| order.fate) else { return };
        if matches!(fate, Fate::Lost) {
            *order = None;
        }
        self.due.lock().unwrap().insert((connection, xid), fate);
    }

    /// Whether this reply is to be delivered, when it is.
    pub async fn delivers(&self, connection: usize, frame: &[u8]) -> bool {
        let Some(xid) = frame.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes) else {
            return true;
        };
        let fate = self.due.lock().unwrap().remove(&(connection, xid));
        match fate {
            None => true,
            Some(Fate::Late(by)) => {
                tokio::time::sleep(by).await;
                true
            }
            Some(Fate::Lost) => {
                self.lost.fetch_add(1, Ordering::SeqCst);
                false
            }
        }
    }
}

impl Proxy {
    /// Loses the reply to the next request of this type that names this path, and nothing else.
    pub fn lose_only_the_reply_to(&self, kind: i32, path: &str) {
        *self.fates().order.lock().unwrap() = Some(Order { kind, path: path.to_owned(), fate: Fate::Lost });
    }

    /// Waits until that many replies were lost so.
    #[track_caller]
    pub fn wait_until_lost(&self, count: usize) {
        wait::until("the link lost the reply", || self.fates().lost.load(Ordering::SeqCst) >= count);
    }

    /// Delivers every reply to a request of this type that names this path so much later, and all that stand behind it.
    pub fn delay_replies_to(&self, kind: i32, path: &str, by: Duration) {
        *self.fates().order.lock().unwrap() = Some(Order { kind, path: path.to_owned(), fate: Fate::Late(by) });
    }
}
