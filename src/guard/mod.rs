//! The second process: parent and subreaper of the command, and holder of its kill deadline, so that a stopped, hung or
//! dead supervisor cannot keep a command alive. Its own parent is the [`sentinel`], which is left when both are killed.
//!
//! It acts on orders, on deadlines and on the supervisor's death, and on nothing else: every signal that can be blocked
//! is.
//!
//! Never: a thread; `ZooKeeper`; a log line.

pub mod briefing;
pub mod command;
pub mod contain;
pub mod handle;
pub mod policy;
mod poll_loop;
mod prerequisites;
pub mod probe;
pub mod processes;
pub mod protocol;
mod releaser;
mod sentinel;
mod sys;
mod tree;

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::errno::Errno;
use nix::sys::prctl::{set_child_subreaper, set_name};
use nix::unistd::{Pid, setpgid};

use command::directory::Directory;
use command::launch::Launch;
use contain::Containment;
use poll_loop::{GuardExit, PollLoop};
use processes::children::Children;
use releaser::Releaser;
use sys::errno_of;
use tree::Tree;

/// What the guard is forked with.
struct Guard {
    launch: Launch,
    stop_signal: i32,
    containment: Containment,
    socket: OwnedFd,
    supervisor: OwnedFd,
    releaser: Option<Releaser>,
}

impl Guard {
    /// What remains in the process that has forked it.
    fn into_containment(self) -> Containment {
        self.containment
    }
}

/// `sysexits(3)`: internal software error.
const EX_SOFTWARE: i32 = 70;

/// The guard process, from its fork, with every signal blocked, to its end. A panic ends it like SIGKILL would: the
/// kernel kills the command, and the sentinel the rest.
fn run(mut guard: Guard) -> ! {
    let releaser = guard.releaser.take();
    let directory = Directory::leave();
    guard.launch.stand_in(directory.clone());
    let status = match catch_unwind(AssertUnwindSafe(|| keep_watch(guard))) {
        Ok(Ok(farewell)) => match releaser.zip(farewell.release) {
            Some((releaser, grant)) => {
                // Paths that it was given may be relative. If it cannot be entered, the releaser says what it misses.
                let _ = directory.enter();
                releaser.replace_this_process(&grant) as i32
            }
            None => 0,
        },
        Ok(Err(_)) | Err(_) => EX_SOFTWARE,
    };
    sys::exit(status)
}

fn keep_watch(guard: Guard) -> Result<GuardExit, Errno> {
    // A group of its own: Ctrl-C and the signals of a shell's job control are not for it. Not a session of its own:
    // it shall be able to hand the terminal over.
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    set_name(c"zk-leader-guard")?;
    set_child_subreaper(guard.containment.adopts_orphans())?;
    let children = Children::of_this_thread().map_err(|error| errno_of(&error))?;
    let tree = Tree::new(guard.launch, guard.stop_signal, guard.containment, children);
    PollLoop::new(tree, guard.socket, guard.supervisor)?.run()
}
