//! The only file with `unsafe`: system calls that nix and rustix lack or cannot express, each behind a safe function. And
//! those that several processes of the guard make in the same way.
#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

use std::ffi::{CStr, c_int};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::sys::signal::{SigEvent, SigevNotify, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, send, socketpair};
use nix::sys::timer::Timer;
use nix::time::ClockId;
use nix::unistd::{ForkResult, Pid};

use crate::core::guard_messages::ChildStatus;

/// `fork(2)`. Fails with `EBUSY` if there is more than one thread: the child would hold their locks for ever.
pub fn fork() -> Result<ForkResult, Errno> {
    refuse_threads()?;
    // SAFETY: there is one thread, so the child may do all that the parent may.
    unsafe { nix::unistd::fork() }
}

/// `fork(2)` into new namespaces. Like [`fork`], but without the handlers of `pthread_atfork(3)`, which one thread does
/// not need.
pub fn fork_into(namespaces: CloneFlags) -> Result<ForkResult, Errno> {
    refuse_threads()?;
    let flags = libc::c_long::from(namespaces.bits() | libc::SIGCHLD);
    let zero: libc::c_long = 0;
    // The flags come first; on one architecture second (`clone(2)`).
    let (first, second) = if cfg!(target_arch = "s390x") { (zero, flags) } else { (flags, zero) };
    // SAFETY: clone(2) without CLONE_VM and with a null stack is fork; there is one thread, and no pointer is passed.
    let pid = unsafe { libc::syscall(libc::SYS_clone, first, second, zero, zero, zero) };
    forked(pid)
}

/// `fork(2)` into a cgroup v2, given by its directory (`CLONE_INTO_CGROUP`, Linux 5.7). Joining later takes the kernel
/// some 10 ms (it waits for every other fork and exit of the machine); this takes no time. Otherwise like
/// [`fork_into`].
pub fn fork_into_cgroup(directory: BorrowedFd<'_>) -> Result<ForkResult, Errno> {
    refuse_threads()?;
    // SAFETY: clone_args is a C struct of integers, and all zeros ask for nothing.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
    arguments.cgroup = u64::try_from(directory.as_raw_fd()).map_err(|_| Errno::EBADF)?;
    // SAFETY: without CLONE_VM and with a null stack it is fork; there is one thread; `arguments` lives during the call.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>()) };
    forked(pid)
}

/// `<linux/sched.h>`; libc's constant does not fit its own type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

fn forked(pid: libc::c_long) -> Result<ForkResult, Errno> {
    match c_int::try_from(Errno::result(pid)?).unwrap_or(c_int::MAX) {
        0 => Ok(ForkResult::Child),
        pid => Ok(ForkResult::Parent { child: Pid::from_raw(pid) }),
    }
}

fn refuse_threads() -> Result<(), Errno> {
    if has_one_thread()? { Ok(()) } else { Err(Errno::EBUSY) }
}

/// `/proc/self/task` has two links of its own and one for each thread.
pub fn has_one_thread() -> Result<bool, Errno> {
    Ok(nix::sys::stat::stat("/proc/self/task")?.st_nlink == 3)
}

/// `_exit(2)`: no destructors and no `atexit(3)` handlers, which belong to the process that forked us.
pub fn exit(code: c_int) -> ! {
    // SAFETY: _exit does not return and touches no memory.
    unsafe { libc::_exit(code) }
}

/// `kill(2)` with any signal number. nix has no names for real-time signals.
pub fn kill(pid: i32, signal: c_int) -> Result<(), Errno> {
    // SAFETY: no pointer is passed.
    Errno::result(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// `pidfd_send_signal(2)` with any signal number.
pub fn kill_by_pidfd(process: BorrowedFd<'_>, signal: c_int) -> Result<(), Errno> {
    let (info, flags) = (std::ptr::null::<libc::siginfo_t>(), 0);
    // SAFETY: no siginfo_t is passed: the kernel fills in what kill(2) would.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, info, flags) };
    Errno::result(sent).map(drop)
}

/// The size of the kernel's signal set in bytes; MIPS has 128 signals.
const SIGNAL_SET: usize = if cfg!(any(target_arch = "mips", target_arch = "mips64")) { 16 } else { 8 };

/// Blocks every signal that can be blocked, including those that libc reserves: `pthread_sigmask(3)` leaves them out,
/// and without a handler they end a process.
pub fn block_every_signal() -> Result<(), Errno> {
    let all = [u8::MAX; SIGNAL_SET];
    let unwanted: *mut u8 = std::ptr::null_mut();
    // SAFETY: `all` is as long as the kernel reads, and a null pointer asks for no answer.
    let done =
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, all.as_ptr(), unwanted, SIGNAL_SET) };
    Errno::result(done).map(drop)
}

/// Resets every signal to its default disposition: `execve(2)` keeps ignored signals, and Rust ignores SIGPIPE.
pub fn default_every_signal() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: SIG_DFL is not a handler. SIGKILL, SIGSTOP and those that libc reserves are refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // libc's reserved signals are inherited, too. All zeros are SIG_DFL without flags in every layout of the kernel's
    // structure.
    let default = [0_u64; 8];
    for signal in 32..libc::SIGRTMIN() {
        // SAFETY: `default` is longer than the structure that is read, and nothing is written.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), 0_usize, SIGNAL_SET) };
    }
}

/// Ignores every signal that can be ignored, and discards pending ones (`signal(7)`); `execve(2)` keeps that.
pub fn ignore_every_signal() {
    (1..=libc::SIGRTMAX()).for_each(ignore);
}

pub fn ignore(signal: c_int) {
    // SAFETY: SIG_IGN is no handler. SIGKILL, SIGSTOP and those that libc keeps for itself are refused.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Resets SIGCHLD to its default: if it is inherited as ignored, children end without a status (`wait(2)`).
pub fn default_sigchld() {
    // SAFETY: SIG_DFL is no handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// The children that `waitid(2)` is asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Child {
    Any,
    Pid(i32),
}

/// A child that has ended, left unreaped so that its id is not reused. `ECHILD`: no such child.
pub fn peek(child: Child) -> Result<Option<(i32, ChildStatus)>, Errno> {
    wait(child, libc::WEXITED | libc::WNOWAIT)
}

/// Reaps one child if it has ended.
pub fn reap(pid: i32) -> Result<Option<(i32, ChildStatus)>, Errno> {
    wait(Child::Pid(pid), libc::WEXITED)
}

/// The most that are reaped before a loop looks at its clock and its orders again: others may die as fast as they are reaped.
pub const REAPED_AT_ONCE: usize = 256;

/// Reaps dead children until it meets this one, which is left. Returns whether there may be more.
pub fn reap_others(kept: Option<i32>) -> bool {
    for _ in 0..REAPED_AT_ONCE {
        match peek(Child::Any) {
            Ok(Some((pid, _))) if Some(pid) != kept => drop(reap(pid)),
            _ => return false,
        }
    }
    true
}

/// The signal that stopped this child since the last call.
pub fn stopped_by(pid: i32) -> Option<c_int> {
    match wait(Child::Pid(pid), libc::WSTOPPED) {
        Ok(Some((_, ChildStatus::Signaled(signal)))) => Some(signal.into()),
        _ => None,
    }
}

/// nix's `waitid` cannot report a child killed by a real-time signal (it has no name for it); rustix's omits the pid.
fn wait(child: Child, options: c_int) -> Result<Option<(i32, ChildStatus)>, Errno> {
    let (kind, id) = match child {
        Child::Any => (libc::P_ALL, 0),
        Child::Pid(pid) => (libc::P_PID, libc::id_t::try_from(pid).map_err(|_| Errno::ECHILD)?),
    };
    // SAFETY: siginfo_t is a C struct of integers and unions of them; all zeros are a valid value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: `info` is valid for writing during the call.
    let done = unsafe { libc::waitid(kind, id, &raw mut info, options | libc::WNOHANG | libc::__WALL) };
    Errno::result(done)?;
    // SAFETY: waitid filled in the fields of SIGCHLD, or left the zeros.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    // Exit codes and signal numbers have eight bits.
    let value = u8::try_from(status & 0xff).unwrap_or_default();
    let status =
        if info.si_code == libc::CLD_EXITED { ChildStatus::Exited(value) } else { ChildStatus::Signaled(value) };
    Ok((pid != 0).then_some((pid, status)))
}

/// Overwrites the command line inherited from the process that forked us, as far as there is room: `ps(1)` shows it and
/// `pkill -f` matches it. Best effort.
pub fn overwrite_command_line(name: &CStr) {
    let line = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which is in parentheses: `arg_start` and `arg_end`, fields 48 and 49 (`proc_pid_stat(5)`).
    let fields = line.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let mut bounds = fields.skip(45).map_while(|field| field.parse::<usize>().ok());
    let (Some(start), Some(end)) = (bounds.next(), bounds.next()) else { return };
    let room = end.saturating_sub(start);
    if start == 0 || room == 0 {
        return;
    }
    let arguments = std::ptr::with_exposed_provenance_mut::<u8>(start);
    let length = name.count_bytes().min(room - 1);
    // SAFETY: the kernel reports that our arguments are there. They are writable, and this process does not read them
    // any more.
    unsafe {
        arguments.write_bytes(0, room);
        arguments.copy_from_nonoverlapping(name.as_ptr().cast(), length);
    }
}

/// Closes every close-on-exec descriptor except `keep`. Only for a process that never returns to the owners of those
/// descriptors.
pub fn close_on_exec_now(keep: &[BorrowedFd<'_>]) {
    let Ok(listing) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<c_int> = listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| keep.iter().all(|kept| kept.as_raw_fd() != *fd)) {
        // SAFETY: fcntl with F_GETFD takes no pointer. The listing's own descriptor is closed by now: EBADF.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        if flags != -1 && flags & libc::FD_CLOEXEC != 0 {
            // SAFETY: the owners of these descriptors are in frames to which this process never returns.
            unsafe { libc::close(fd) };
        }
    }
}

/// Takes possession of a descriptor that the program before this one, in the same process, left open for it. It is closed
/// on the next `execve(2)`.
pub fn take_descriptor(number: c_int) -> Result<OwnedFd, Errno> {
    if number <= libc::STDERR_FILENO {
        return Err(Errno::EBADF);
    }
    // SAFETY: fcntl with F_SETFD takes no pointer; of a descriptor that is not open it says EBADF.
    Errno::result(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and the program before has named it to us once: nothing else here owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Maps a file of eight words, for writing, for as long as this process lives.
pub fn map_words(file: BorrowedFd<'_>) -> Result<&'static [AtomicU64; 8], Errno> {
    let (nowhere, size) = (std::ptr::null_mut(), size_of::<[AtomicU64; 8]>());
    let (rights, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: the kernel chooses a place where nothing else is.
    let area = unsafe { libc::mmap(nowhere, size, rights, shared, file.as_raw_fd(), 0) };
    if area == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    // SAFETY: the area begins a page, is never unmapped, and any bits are valid. Other processes write words of it only
    // by atomic stores; a file that is shorter than the area kills this process, and no more.
    Ok(unsafe { &*area.cast::<[AtomicU64; 8]>() })
}

/// A socket that keeps records apart; nobody waits at either end.
pub fn socket_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
}

/// Sends a record, or fails; does not wait.
pub fn send_now(socket: &impl AsRawFd, record: &[u8]) -> Result<usize, Errno> {
    send(socket.as_raw_fd(), record, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL)
}

/// Whether a record that was not sent may be sent later: the socket has no room, or our cgroup, to which its buffers count, no memory.
pub fn may_pass(errno: Errno) -> bool {
    matches!(errno, Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM)
}

/// Readable when a child has ended or was stopped, if SIGCHLD is blocked.
pub fn deaths() -> Result<SignalFd, Errno> {
    SignalFd::with_flags(&Signal::SIGCHLD.into(), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

/// Kills this process when it expires, even one that is stopped.
pub fn lethal_timer() -> Result<Timer, Errno> {
    let lethal = SigEvent::new(SigevNotify::SigevSignal { signal: Signal::SIGKILL, si_value: 0 });
    Timer::new(ClockId::CLOCK_BOOTTIME, lethal)
}

pub fn errno_of(error: std::io::Error) -> Errno {
    Errno::try_from(error).unwrap_or(Errno::EIO)
}

#[cfg(test)]
pub mod tests {
    use std::process::Command;

    use super::*;

    /// Whether this is a process of its own, which has no other children. If not, the test of this name runs in one.
    pub fn is_alone(name: &str) -> bool {
        const ALONE: &str = "ZK_LEADER_RUN_TEST_ALONE";
        if std::env::var_os(ALONE).is_some() {
            return true;
        }
        let mut alone = Command::new(std::env::current_exe().unwrap());
        assert!(alone.args(["--exact", name, "--nocapture"]).env(ALONE, "1").status().unwrap().success());
        false
    }

    pub fn leave_dead(count: usize) {
        let dead = (0..count).map(|_| Command::new("true").spawn().unwrap().id().cast_signed());
        for pid in dead.collect::<Vec<_>>() {
            while peek(Child::Pid(pid)) == Ok(None) {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_limited_number_is_reaped_at_once() {
        if !is_alone("guard::sys::tests::a_limited_number_is_reaped_at_once") {
            return;
        }
        leave_dead(REAPED_AT_ONCE + 1);
        assert!(reap_others(None), "there was one more");
        assert!(matches!(peek(Child::Any), Ok(Some(_))), "it is left to the next time");
        assert!(!reap_others(None));
        assert_eq!(peek(Child::Any), Err(Errno::ECHILD));
    }
}
