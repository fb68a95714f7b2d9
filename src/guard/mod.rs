//! The guard process: parent and subreaper of the command. It holds the kill deadline, so that a stopped, hung or dead
//! supervisor cannot keep a command alive. Its own parent is the sentinel, which ends the tree when both are killed.
//!
//! The guard acts only on orders, deadlines and the supervisor's death; it blocks every signal that can be blocked. It
//! has one thread and does not use `ZooKeeper` or the log.

pub mod briefing;
pub mod command;
pub mod contain;
pub mod handle;
pub mod lease_file;
mod outbox;
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

use std::io::{self, stderr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_child_subreaper, set_name};
use nix::unistd::{Pid, setpgid, write};

use command::directory::Directory;
use command::launch::Launch;
use contain::Containment;
use lease_file::LeaseFile;
use poll_loop::{GuardExit, PollLoop};
use processes::children::Children;
use releaser::Releaser;
use sys::errno_of;
use tree::Tree;

/// The parts that the guard is forked with.
struct Guard {
    launch: Launch,
    stop_signal: i32,
    containment: Containment,
    socket: OwnedFd,
    supervisor: OwnedFd,
    releaser: Option<Releaser>,
    lease_file: Option<LeaseFile>,
}

impl Guard {
    /// The parts that the forking process keeps.
    fn into_remains(self) -> (Containment, Option<LeaseFile>) {
        (self.containment, self.lease_file)
    }
}

/// `sysexits(3)`: internal software error.
const EX_SOFTWARE: i32 = 70;

/// The guard process, from its fork with every signal blocked to its end. A panic works like SIGKILL: the kernel kills
/// the command, and the sentinel kills the rest.
fn run(mut guard: Guard) -> ! {
    let releaser = guard.releaser.take();
    let directory = Directory::leave();
    guard.launch.stand_in(directory.clone());
    guard.launch.lease_file = guard.lease_file.as_ref().map(LeaseFile::path);
    let status = match catch_unwind(AssertUnwindSafe(|| keep_watch(guard))) {
        Ok(Ok(guard_exit)) => match releaser.zip(guard_exit.release) {
            Some((releaser, grant)) => {
                // Its path options may be relative. If the directory cannot be entered, the releaser reports the
                // missing files.
                let _ = directory.enter();
                let error = io::Error::from(releaser.replace_this_process(&grant));
                say(&format!(
                    "zk-leader-run: the supervisor was killed, and its lease cannot be released, so it runs out: {error}\n"
                ));
                EX_SOFTWARE
            }
            None => 0,
        },
        Ok(Err(errno)) => {
            let error = io::Error::from(errno);
            say(&format!("zk-leader-run: a guard process cannot go on: {error}{}\n", remedy_for(&error)));
            EX_SOFTWARE
        }
        Err(_) => EX_SOFTWARE,
    };
    sys::exit(status)
}

/// On standard error. Where there is no room for the line now, it is not said: nothing is waited for.
fn say(line: &str) {
    let errors = stderr();
    let mut fds = [PollFd::new(errors.as_fd(), PollFlags::POLLOUT)];
    if poll(&mut fds, PollTimeout::ZERO) == Ok(1) {
        let _ = write(&errors, line.as_bytes());
    }
}

/// What to do if a limit kept a process of ours from what it needs.
fn remedy_for(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EAGAIN) => {
            "; raise the limits of processes (ulimit -u, TasksMax= of systemd) and of pending signals (ulimit -i), or end some \
             processes"
        }
        Some(Errno::EMFILE) => "; raise the limit of open files (ulimit -n, LimitNOFILE= of systemd)",
        _ => "",
    }
}

fn keep_watch(guard: Guard) -> Result<GuardExit, Errno> {
    // A new group: Ctrl-C and the shell's job control must not reach the guard. Not a new session: the guard must be
    // able to hand the terminal over.
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    set_name(c"zk-leader-guard")?;
    set_child_subreaper(guard.containment.adopts_orphans())?;
    let children = Children::of_this_thread().map_err(errno_of)?;
    let tree = Tree::new(guard.launch, guard.stop_signal, guard.containment, children);
    PollLoop::new(tree, guard.lease_file, guard.socket, guard.supervisor)?.run()
}
