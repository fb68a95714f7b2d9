//! The client library's own task of one session, in our hands: its end is noticed even if it was a panic, and it can be
//! ended when a server keeps it from closing.
//!
//! Never: a task that outlives a session that was given up by more than the session timeout.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use spawns_core::{Spawn, Task};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// One task of the client library.
#[derive(Clone, Debug)]
pub(super) struct Service {
    task: AbortHandle,
    ended: watch::Receiver<()>,
}

/// Opens something whose client library spawns a task; that task, if it was spawned.
pub(super) async fn capture<T>(opening: impl Future<Output = T>) -> (T, Option<Service>) {
    let host = Host::default();
    let mut opening = pin!(opening);
    let opened = poll_fn(|context| {
        let _scope = spawns_core::enter(&host);
        opening.as_mut().poll(context)
    });
    let opened = opened.await;
    (opened, host.0.into_inner().unwrap_or_else(PoisonError::into_inner))
}

impl Service {
    fn of(future: impl Future<Output = ()> + Send + 'static) -> Self {
        let (running, ended) = watch::channel(());
        let task = tokio::spawn(async move {
            // Dropped with the task, however it ends.
            let _running = running;
            future.await;
        });
        Self { task: task.abort_handle(), ended }
    }

    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    pub async fn over(&mut self) {
        while self.ended.changed().await.is_ok() {}
    }

    /// Ends it if it has not ended by then.
    pub fn end_after(&self, limit: Duration) {
        let mut service = self.clone();
        tokio::spawn(async move {
            if timeout(limit, service.over()).await.is_err() {
                tracing::debug!("A session that could not be closed was let go");
                service.task.abort();
            }
        });
    }
}

/// Takes the client library's task instead of its own spawner.
#[derive(Default)]
struct Host(Mutex<Option<Service>>);

impl Spawn for Host {
    fn spawn(&self, task: Task) {
        let Task { future, .. } = task;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Service::of(Box::into_pin(future)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn service(task: impl Future<Output = ()> + Send + 'static) -> Service {
        let ((), service) = capture(async { drop(spawns_core::spawn(task)) }).await;
        service.unwrap()
    }

    #[tokio::test]
    async fn the_end_of_a_task_is_noticed_even_if_it_was_a_panic() {
        for task in [true, false] {
            let mut service = service(async move { assert!(task, "a bug of the client library") }).await;
            service.over().await;
            assert!(service.is_over());
        }
    }

    #[tokio::test]
    async fn a_task_that_does_not_end_is_ended() {
        let mut service = service(std::future::pending()).await;
        assert!(timeout(Duration::from_millis(20), service.over()).await.is_err());
        service.end_after(Duration::from_millis(1));
        service.over().await;
    }

    #[tokio::test]
    async fn nothing_spawned_is_nothing_captured() {
        assert!(capture(async {}).await.1.is_none());
    }
}
