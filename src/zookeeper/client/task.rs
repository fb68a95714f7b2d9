//! The client library's own task of one session. We see its end even after a panic, can end it when a server prevents
//! its close, and can keep it from connecting again. It outlives a session that was given up by at most the session
//! timeout.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use spawns_core::Spawn;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::background;
use crate::zookeeper::client::requests::{Link, State};

/// Keeps one connection alive: a task of the client library, or a simulated link.
#[derive(Clone, Debug)]
pub(crate) struct Task(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Spawned { task: AbortHandle, ended: watch::Receiver<()>, leash: Arc<Leash> },
    Simulated { link: Weak<dyn Link>, states: watch::Receiver<State> },
}

/// When the task stops being polled.
#[derive(Default)]
struct Leash(OnceLock<Box<dyn Fn() -> bool + Send + Sync>>);

impl Leash {
    fn holds(&self) -> bool {
        self.0.get().is_some_and(|lost| lost())
    }
}

impl fmt::Debug for Leash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leash").field(&self.0.get().is_some()).finish()
    }
}

/// Runs `opening`, and returns the task that the client library spawned meanwhile, if any.
pub(crate) async fn capture<T>(opening: impl Future<Output = T>) -> (T, Option<Task>) {
    let host = Host::default();
    let mut opening = pin!(opening);
    let opened = poll_fn(|context| {
        let _scope = spawns_core::enter(&host);
        opening.as_mut().poll(context)
    });
    let opened = opened.await;
    (opened, host.0.into_inner().unwrap_or_else(PoisonError::into_inner))
}

impl Task {
    fn of(future: impl Future<Output = ()> + Send + 'static) -> Self {
        let (running, ended) = watch::channel(());
        let leash = Arc::<Leash>::default();
        let held_by = Arc::clone(&leash);
        let task = tokio::spawn(async move {
            // Dropped with the task, however it ends.
            let _running = running;
            let mut future = pin!(future);
            poll_fn(|context| {
                let polled = if held_by.holds() { Poll::Pending } else { future.as_mut().poll(context) };
                // It has just reported the lost connection. It may have begun to connect, and has sent nothing.
                if held_by.holds() { Poll::Pending } else { polled }
            })
            .await;
        });
        Self(Kind::Spawned { task: task.abort_handle(), ended, leash })
    }

    pub(super) fn of_link(link: &Arc<dyn Link>) -> Self {
        Self(Kind::Simulated { link: Arc::downgrade(link), states: link.states() })
    }

    /// Stops the task as soon as the connection is lost. The caller must then [`Task::end`] it.
    pub fn stand_still_when(&self, lost: impl Fn() -> bool + Send + Sync + 'static) {
        match &self.0 {
            Kind::Spawned { leash, .. } => {
                let was_free = leash.0.set(Box::new(lost)).is_ok();
                debug_assert!(was_free, "one session, one leash");
            }
            // A simulated link never connects again by itself.
            Kind::Simulated { .. } => {}
        }
    }

    /// Ends it at once, without closing the session.
    pub fn end(&self) {
        match &self.0 {
            Kind::Spawned { task, .. } => task.abort(),
            Kind::Simulated { link, .. } => link.upgrade().iter().for_each(|link| link.abandon()),
        }
    }

    pub fn is_over(&self) -> bool {
        match &self.0 {
            Kind::Spawned { task, .. } => task.is_finished(),
            Kind::Simulated { states, .. } => states.has_changed().is_err() || *states.borrow() == State::Over,
        }
    }

    pub async fn over(&mut self) {
        match &mut self.0 {
            Kind::Spawned { ended, .. } => while ended.changed().await.is_ok() {},
            // An error: the link is gone.
            Kind::Simulated { states, .. } => drop(states.wait_for(|state| *state == State::Over).await),
        }
    }

    /// Ends it if it has not ended by then.
    pub fn end_after(&self, limit: Duration) {
        let mut task = self.clone();
        background::spawn(async move {
            if timeout(limit, task.over()).await.is_err() {
                tracing::debug!("A session that could not be closed was let go");
                task.end();
            }
        });
    }
}

/// Captures the client library's task instead of spawning it.
#[derive(Default)]
struct Host(Mutex<Option<Task>>);

impl Spawn for Host {
    fn spawn(&self, task: spawns_core::Task) {
        let spawns_core::Task { future, .. } = task;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Task::of(Box::into_pin(future)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn service(task: impl Future<Output = ()> + Send + 'static) -> Task {
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
    async fn a_task_that_has_lost_contact_does_nothing_more_until_it_is_ended() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let steps = Arc::new(AtomicUsize::new(0));
        let taken = Arc::clone(&steps);
        let mut service = service(async move {
            loop {
                taken.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        })
        .await;
        let seen = Arc::clone(&steps);
        service.stand_still_when(move || seen.load(Ordering::SeqCst) >= 3);
        while steps.load(Ordering::SeqCst) < 3 {
            tokio::task::yield_now().await;
        }
        assert!(timeout(Duration::from_millis(20), service.over()).await.is_err());
        assert_eq!(steps.load(Ordering::SeqCst), 3);
        service.end();
        service.over().await;
    }

    #[tokio::test]
    async fn nothing_spawned_is_nothing_captured() {
        assert!(capture(async {}).await.1.is_none());
    }
}
