//! A process that SIGKILL does not end, as far as its parent can see: it is reaped by its tracer first, who takes his time
//! (`ptrace(2)`). It stands for one in uninterruptible sleep.

use std::sync::mpsc;
use std::thread::JoinHandle;

use nix::sys::ptrace;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

/// Holds a process until it is dropped.
pub struct Tracer {
    lets_go: Option<mpsc::Sender<()>>,
    // The one thread that may wait for what it traces.
    thread: Option<JoinHandle<()>>,
}

impl Tracer {
    pub fn of(pid: i32) -> Self {
        let (lets_go, told) = mpsc::channel::<()>();
        let (seized, is_seized) = mpsc::channel();
        let pid = Pid::from_raw(pid);
        let thread = std::thread::spawn(move || {
            seized.send(ptrace::seize(pid, ptrace::Options::empty())).unwrap();
            told.recv().ok();
            waitpid(pid, None).ok();
        });
        is_seized.recv().unwrap().unwrap();
        Self { lets_go: Some(lets_go), thread: Some(thread) }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        drop(self.lets_go.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
