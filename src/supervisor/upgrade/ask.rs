//! Asks the new program whether it can take over. It is started with our arguments and a trial document, connects to no
//! server, and answers in one line.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

/// The first argument of a program that is asked. A program that does not know it complains and does nothing.
pub const QUESTION: &str = "--can-take-over";

/// The answer of a program that can.
pub const YES: &str = "can take over\n";

/// How long the new program may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Longer answers are cut.
const LONGEST_ANSWER: u64 = 2048;

/// Kills the program when it is dropped.
struct Asked(OwnedFd);

impl Drop for Asked {
    fn drop(&mut self) {
        // It has ended already, unless it took too long.
        pidfd_send_signal(&self.0, Signal::KILL).ok();
    }
}

/// # Errors
/// Why it cannot take over, as a part of a sentence.
pub async fn ask(program: &File, arguments: Vec<OsString>, document: OwnedFd) -> Result<(), String> {
    let (reads, writes) = pipe2(OFlag::O_CLOEXEC).map_err(cannot_be_started)?;
    // The descriptor, not the path: what is executed later is what has answered.
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_fd().as_raw_fd()));
    command.arg0("zk-leader-run").arg(QUESTION).args(arguments);
    command.stdin(Stdio::from(document)).stdout(Stdio::from(writes)).stderr(Stdio::null());
    let child = command.spawn().map_err(cannot_be_started)?;
    // It cannot have been reaped: that is done by another task of this thread.
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("it cannot be started")?;
    let asked = Asked(pidfd_open(pid, PidfdFlags::empty()).map_err(cannot_be_started)?);
    // It holds our end of the pipe.
    drop(command);
    let answer = heed(read(reads)).await;
    drop(asked);
    answer
}

/// Waits for the answer.
///
/// # Errors
/// See [`ask`].
pub async fn heed(answer: impl Future<Output = io::Result<String>>) -> Result<(), String> {
    match timeout(LIMIT, answer).await {
        Err(_) => Err(format!("the new program gave no answer within {LIMIT:?}")),
        Ok(Err(error)) => Err(format!("the new program's answer cannot be read: {error}")),
        Ok(Ok(answer)) if answer == YES => Ok(()),
        Ok(Ok(answer)) if answer.trim().is_empty() => {
            Err("the new program does not say that it can take over".to_owned())
        }
        Ok(Ok(answer)) => Err(format!("the new program refuses: {}", answer.trim())),
    }
}

fn cannot_be_started(error: impl Into<io::Error>) -> String {
    format!("the new program cannot be started: {}", error.into())
}

async fn read(pipe: OwnedFd) -> io::Result<String> {
    let mut answer = Vec::new();
    Receiver::from_owned_fd(pipe)?.take(LONGEST_ANSWER).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
