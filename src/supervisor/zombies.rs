//! Reaps zombies that this process did not start: children that it inherited (`job & exec zk-leader-run …`), their
//! orphans, and as PID 1 every orphan in the container. The guard and the sentinel reap the command's orphans. A failed
//! attempt is repeated.

use std::io;
use std::time::Duration;

use futures_util::StreamExt;
use signal_hook::consts::SIGCHLD;
use signal_hook_tokio::Signals;

use crate::guard::processes::zombies;

/// From a failed attempt to the next one.
const PAUSE: Duration = Duration::from_millis(250);

/// Runs as long as the runtime. `guards` and their parents are reaped elsewhere.
///
/// # Errors
/// If SIGCHLD cannot be caught.
pub(super) fn adopt(guards: Vec<i32>) -> io::Result<()> {
    let mut deaths = Signals::new([SIGCHLD])?;
    tokio::spawn(async move {
        let mut is_loss_told = false;
        // Some children may have died before SIGCHLD was caught.
        let mut goes_on = true;
        while goes_on {
            reap(&guards).await;
            if !is_loss_told && guards.iter().any(|&pid| zombies::was_killed(pid)) {
                is_loss_told = true;
                tracing::error!(
                    "A sentinel, the parent of a guard, was killed. Until this process is restarted, processes of the \
                     command may outlive the lease if guard and supervisor are killed or stopped together"
                );
            }
            goes_on = deaths.next().await.is_some();
        }
    });
    Ok(())
}

async fn reap(guards: &[i32]) {
    let mut has_complained = false;
    while let Err(error) = zombies::reap(guards) {
        if !std::mem::replace(&mut has_complained, true) {
            tracing::warn!("Cannot reap dead child processes: {error}; retrying");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
