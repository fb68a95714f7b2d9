//! The answers on one connection, and those that do not come.
//!
//! A server answers the requests of a connection in their order: once a later request has its answer, that to an
//! earlier one will not come any more. Then only this request has an unknown fate. If nothing comes at all, the
//! connection is useless.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::zookeeper::client::requests::{Error, Pending};

/// See the module page.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    numbers: Arc<watch::Sender<Numbers>>,
    /// Notified when a request found no answer in time.
    silent: Arc<Notify>,
    were_missed: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Numbers {
    /// How many requests were sent.
    sent: u64,
    /// The last of them that has its answer.
    answered: u64,
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
        let mut number = 0;
        self.numbers.send_if_modified(|numbers| {
            numbers.sent += 1;
            number = numbers.sent;
            false
        });
        number
    }

    fn answered(&self, number: u64) {
        self.numbers.send_if_modified(|numbers| {
            let is_newest = number > numbers.answered;
            numbers.answered = numbers.answered.max(number);
            is_newest
        });
    }

    /// Waits until a later request has its answer.
    async fn is_overtaken(&self, number: u64) {
        let mut numbers = self.numbers.subscribe();
        // The sender lives as long as this does.
        drop(numbers.wait_for(|numbers| numbers.answered > number).await);
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
