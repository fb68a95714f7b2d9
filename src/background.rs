//! Starts background tasks, and waits for what may not be there. In a simulation each is a part of the simulated process that starts it.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::{io, thread};

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

/// The output of this future; without one, it never comes. For a branch of `select!` that is not always wanted.
pub async fn or_never<T>(future: Option<impl Future<Output = T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// As [`tokio::spawn`]; the output is dropped.
pub fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> AbortHandle {
    match SIMULATED.get() {
        Some(wrap) => tokio::spawn(wrap(Box::pin(async { drop(task.await) }))).abort_handle(),
        None => tokio::spawn(task).abort_handle(),
    }
}

/// The client library starts a thread, and to look a name up takes one: where there is no room both panic, or try again for ever.
///
/// # Errors
/// The limit, and what to do.
pub fn room_for_threads() -> io::Result<()> {
    const THREADS: usize = 2;
    let gate = Mutex::new(());
    thread::scope(|scope| {
        // All are there at the same time.
        let _closed = gate.lock();
        let mut threads = (0..THREADS).map(|_| thread::Builder::new().spawn_scoped(scope, || drop(gate.lock())));
        threads.try_for_each(|started| started.map(drop))
    })
    .map_err(|error| io::Error::new(error.kind(), no_thread(&error)))
}

/// The C library tries a second call if the kernel does not know the first one, but not if it is refused.
fn no_thread(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return format!(
            "no thread of ours can be started ({error}): a seccomp filter, such as that of an old container runtime, refuses \
             clone3; update the runtime or its profile"
        );
    }
    format!(
        "this host has no room for two more threads of ours ({error}); raise the limit of processes (ulimit -u, TasksMax= of \
         systemd) or of memory (ulimit -v), or end some"
    )
}
