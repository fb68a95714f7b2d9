//! Starts background tasks. In a simulation each is a part of the simulated process that starts it.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;

use tokio::task::AbortHandle;

/// A background task.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a simulation makes of a task.
pub type Wrap = fn(Task) -> Task;

thread_local! {
    static SIMULATED: Cell<Option<Wrap>> = const { Cell::new(None) };
}

/// From now on, [`spawn`] starts in this thread what `wrap` makes of a task: for tests that run this program in virtual
/// time. `None`: the task itself.
pub fn simulate(wrap: Option<Wrap>) {
    SIMULATED.set(wrap);
}

/// As [`tokio::spawn`]; the output is dropped.
pub fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> AbortHandle {
    match SIMULATED.get() {
        Some(wrap) => tokio::spawn(wrap(Box::pin(async { drop(task.await) }))).abort_handle(),
        None => tokio::spawn(task).abort_handle(),
    }
}
