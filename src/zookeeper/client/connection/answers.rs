//! The answers on one connection, and those that do not come.
//!
//! A server answers the requests of a connection in their order: once a later request has its answer, that to an
//! earlier one will not come any more. Then only this request has an unknown fate. If nothing comes at all, the
//! connection is useless.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::zookeeper::client::requests::{Error, Pending};

/// See the module page.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    numbers: Arc<Numbers>,
    /// Notified when a request found no answer in time.
    silent: Arc<Notify>,
    were_missed: Arc<AtomicBool>,
}

#[derive(Default, Debug)]
struct Numbers {
    /// How many requests were sent.
    sent: AtomicU64,
    /// The last of them that has its answer.
    answered: AtomicU64,
    /// Notifies all when that changes. In the order in which they wait, unlike `tokio::sync::watch`: the simulator replays it.
    changed: Notify,
}

impl Answers {
    /// A request was sent, and this is its reply.
    pub fn awaited<'a, T: Send + 'a>(&self, reply: Pending<'a, T>, limit: Duration) -> Pending<'a, T> {
        let (answers, number) = (self.clone(), self.sent());
        Box::pin(async move {
            let known = async {
                tokio::select! {
                    // Its own reply first: it was delivered before that to a later request.
                    biased;
                    reply = reply => {
                        answers.answered(number);
                        reply
                    }
                    () = answers.is_overtaken(number) => {
                        tracing::debug!("The answer to a request was lost");
                        Err(Error::Timeout)
                    }
                }
            };
            timeout(limit, known).await.unwrap_or_else(|_| {
                answers.were_missed.store(true, Ordering::Relaxed);
                answers.silent.notify_one();
                Err(Error::Timeout)
            })
        })
    }

    pub fn silence(&self) -> Arc<Notify> {
        Arc::clone(&self.silent)
    }

    pub fn were_missed(&self) -> bool {
        self.were_missed.load(Ordering::Relaxed)
    }

    fn sent(&self) -> u64 {
        self.numbers.sent.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn answered(&self, number: u64) {
        if self.numbers.answered.fetch_max(number, Ordering::Relaxed) < number {
            self.numbers.changed.notify_waiters();
        }
    }

    /// Waits until a later request has its answer.
    async fn is_overtaken(&self, number: u64) {
        loop {
            let changed = self.numbers.changed.notified();
            if self.numbers.answered.load(Ordering::Relaxed) > number {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::FutureExt as _;
    use tokio::sync::oneshot;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn request(answers: &Answers) -> (oneshot::Sender<()>, Pending<'static, ()>) {
        let (server, reply) = oneshot::channel();
        (server, answers.awaited(Box::pin(async { reply.await.map_err(|_| Error::ConnectionLoss) }), LIMIT))
    }

    #[tokio::test]
    async fn an_answer_that_was_overtaken_is_lost_and_nothing_else_is() {
        let answers = Answers::default();
        let [(_lost, mut first), (second_server, second), (_later, mut third)] =
            [request(&answers), request(&answers), request(&answers)];
        assert!(first.as_mut().now_or_never().is_none());
        second_server.send(()).unwrap();
        assert_eq!(second.await, Ok(()));
        assert_eq!(first.await, Err(Error::Timeout));
        assert!(third.as_mut().now_or_never().is_none() && !answers.were_missed());
    }

    #[tokio::test]
    async fn an_answer_that_came_is_not_lost_though_a_later_one_is_looked_at_first() {
        let answers = Answers::default();
        let [(first_server, first), (second_server, second)] = [request(&answers), request(&answers)];
        first_server.send(()).unwrap();
        second_server.send(()).unwrap();
        assert_eq!((second.await, first.await), (Ok(()), Ok(())));
    }

    #[tokio::test]
    async fn a_connection_without_any_answer_is_silent() {
        let answers = Answers::default();
        let reply = answers.awaited::<()>(Box::pin(pending()), Duration::from_millis(1));
        assert_eq!(reply.await, Err(Error::Timeout));
        answers.silence().notified().await;
        assert!(answers.were_missed());
    }
}
