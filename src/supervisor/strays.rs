//! As PID 1: reaps what is orphaned in the container and is not of the command's tree, whose orphans are the guard's.
//!
//! Never: as any other process; there nobody's children become ours but the guards'.

use std::io;

use futures_util::StreamExt;
use signal_hook::consts::SIGCHLD;
use signal_hook_tokio::Signals;

use crate::guard::strays;

const INIT: u32 = 1;

/// Goes on for as long as the runtime does.
///
/// # Errors
/// When SIGCHLD cannot be caught.
pub(super) fn adopt(guards: Vec<i32>) -> io::Result<()> {
    if std::process::id() != INIT {
        return Ok(());
    }
    let mut deaths = Signals::new([SIGCHLD])?;
    tokio::spawn(async move {
        while deaths.next().await.is_some() {
            if let Err(error) = strays::reap(&guards) {
                tracing::warn!("Orphans of the container were not reaped: {error}");
            }
        }
    });
    Ok(())
}
