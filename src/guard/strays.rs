//! The dead among our children that nobody waits for. PID 1 of a container is given every process that is orphaned there, also
//! what never belonged to the command's tree (`docker exec`); nobody else can reap these (`pid_namespaces(7)`).
//!
//! Never: a signal; a guard, whose end its handle reads.

use std::io;

use super::children::Children;
use super::sys;

/// Reaps every dead child that is no guard.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn reap(guards: &[i32]) -> io::Result<()> {
    let children = Children::of_this_process()?.list()?;
    for pid in children.into_iter().filter(|pid| !guards.contains(pid)) {
        // It lives, or somebody was faster.
        let _ = sys::reap(pid);
    }
    Ok(())
}
