//! An upgrade in place: the supervisor's process executes a new program, and the guard remains its child. The guard
//! notices nothing: its socket stays open, and its pidfd of the supervisor stays unready (`execve(2)` keeps the process).
//! Its reports wait in the socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use serde::{Deserialize, Serialize};

use super::{Error, Handle, Processes, Settings, Spawned, fork_of_command};
use crate::guard::command::terminal::Terminal;
use crate::guard::contain::{self, Containment, known};
use crate::guard::sys;

/// A guard, for the next program of the supervisor's process. Numbers of descriptors count only there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandedOver {
    socket: i32,
    guard: i32,
    guard_pidfd: i32,
    sentinel: i32,
    containment: contain::HandedOver,
    has_terminal: bool,
    born_with: Vec<i32>,
}

/// Takes possession of a descriptor that the program before this one left open.
///
/// # Errors
/// If it is not open.
pub fn take_descriptor(number: i32) -> io::Result<std::os::fd::OwnedFd> {
    Ok(sys::take_descriptor(number)?)
}

/// Forks a guard of this program beside the guard of the program before, which is the first of `earlier`. It starts the
/// next command; until then it has nothing to do.
///
/// # Errors
/// As [`super::fork`]; also if the tree would be contained in another way than before.
pub fn fork_next(settings: Settings, earlier: &mut [Option<Spawned>]) -> Result<Spawned, Error> {
    let before = earlier.first().and_then(Option::as_ref);
    let (contained, born_with) = before.map(|guard| (guard.containment.word(), guard.born_with.clone())).unzip();
    let next = fork_of_command(settings, earlier)?;
    match contained {
        Some(word) if word != next.containment.word() => {
            let complaint = format!("the containment would be {} instead of {word}", next.containment.word());
            Err(io::Error::other(complaint).into())
        }
        // Our children of today are the guards of the program before, too.
        _ => Ok(Spawned { born_with: born_with.unwrap_or_default(), ..next }),
    }
}

impl Handle {
    /// The guard, and the descriptors that must stay open. `None`: it cannot be handed over, because it or the sentinel
    /// has ended.
    pub fn hand_over(&mut self) -> Option<(HandedOver, Vec<BorrowedFd<'_>>)> {
        let (guard, pidfd, sentinel) = self.processes.hand_over()?;
        let containment = self.containment.hand_over()?;
        let descriptors = [Some(self.socket.as_fd()), Some(pidfd), self.containment.descriptors()];
        let state = HandedOver {
            socket: self.socket.as_raw_fd(),
            guard,
            guard_pidfd: pidfd.as_raw_fd(),
            sentinel,
            containment,
            has_terminal: self.terminal.is_some(),
            born_with: self.born_with.iter().filter_map(|child| child.id().ok().flatten()).collect(),
        };
        Some((state, descriptors.into_iter().flatten().collect()))
    }
}

impl Spawned {
    /// Goes on with the guard of the program before this one.
    ///
    /// # Errors
    /// If a descriptor is not open, or a file of the cgroup cannot be opened.
    pub fn take_up(state: HandedOver) -> io::Result<Self> {
        let HandedOver { socket, guard, guard_pidfd, sentinel, containment, has_terminal, born_with } = state;
        Ok(Self {
            processes: Processes::take_up(guard, sys::take_descriptor(guard_pidfd)?, sentinel),
            socket: sys::take_descriptor(socket)?,
            containment: Containment::take_up(containment)?,
            // Its seal lets no other program write. Guard and sentinel keep it; without both, it ends by itself.
            lease_file: None,
            lease_file_lack: None,
            terminal: has_terminal.then(Terminal::of_this_group).flatten(),
            born_with: known(&born_with)?,
            withheld: None,
        })
    }

    /// The guards that are forked beside this one close this open descriptor; they execute no program, which would do that.
    #[must_use]
    pub fn withholding(self, descriptor: Option<i32>) -> Self {
        Self { withheld: descriptor, ..self }
    }
}
