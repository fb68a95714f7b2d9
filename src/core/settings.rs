//! The user's options that change a decision of the machine.

use std::time::Duration;

use super::restart::Rules;

/// `--guarantee`: the behaviour in a partition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Guarantee {
    /// Two commands never run at once; sometimes none runs.
    #[default]
    AtMostOne,
    /// The command runs on through a disconnect; sometimes two run.
    AtLeastOne,
}

/// `--recipe`: how candidates queue. All but the last use one ephemeral sequential znode each; the lowest is first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Recipe {
    /// Names of Curator's `LeaderLatch` (also `curator-latch`).
    #[default]
    Sequential,
    /// Names of Curator's `LeaderSelector` and `InterProcessMutex`.
    CuratorLock,
    /// Names of kazoo's `Election` and `Lock`.
    Kazoo,
    /// Names of `ZooKeeper`'s `LeaderElectionSupport`.
    JavaLes,
    /// One ephemeral znode for all; the candidate that creates it is first.
    Single,
}

/// `--on-exit`: what follows when the command ends by itself while we lead.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnExit {
    /// Release the record and exit with the command's status.
    #[default]
    Exit,
    /// Release the record and go to the end of the queue.
    Rejoin,
    /// Keep leading and start it again.
    Restart,
}

/// Options for services, and for jobs with time limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    pub restart: Rules,
    /// `--stand-back`: how long this process stays out of the queue after it resigned.
    pub stand_back: Duration,
    /// `--timeout`: the maximum duration of a run.
    pub timeout: Option<Duration>,
    /// `--start-deadline`: how long after the start of this process the command may first be started.
    pub start_deadline: Option<Duration>,
    /// `--takeover-delay`: added to the wait for a holder that did not release.
    pub takeover_delay: Duration,
}

impl Default for Service {
    fn default() -> Self {
        Self {
            restart: Rules::default(),
            stand_back: Duration::from_secs(60),
            timeout: None,
            start_deadline: None,
            takeover_delay: Duration::ZERO,
        }
    }
}

/// What must be done in a term before the first start of the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Preparations {
    /// `--fence-cmd`, if the last term did not end cleanly.
    pub fences: bool,
    /// `--slot`, `--once-per`: write a run marker.
    pub marks: bool,
}

/// A step around the command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StepKind {
    /// `--before-start`: before the first start of a term. If it fails, this process does not lead.
    BeforeStart,
    /// `--after-stop`: at the end of a term, when the tree is empty, before the release.
    AfterStop,
}

/// SIGTERM comes this long before SIGKILL to a step, or to another auxiliary command: a second, but at most a tenth of its time.
pub fn notice_of(allowed: Duration) -> Duration {
    (allowed / 10).min(Duration::from_secs(1))
}

/// How long each step around the command may take; `None`: there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StepLimits {
    /// `--before-start-timeout`.
    pub before_start: Option<Duration>,
    /// `--after-stop-timeout`.
    pub after_stop: Option<Duration>,
}

/// `--on-loss`: what follows when leadership is lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnLoss {
    /// Contend again.
    #[default]
    Rejoin,
    /// End the process.
    Exit,
}

/// `--on-pause` and `--on-resume`: what happens to the command when contact is lost and restored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnPause {
    /// It keeps running.
    #[default]
    Run,
    /// The whole tree is frozen, then thawed.
    Freeze,
    /// It receives a signal, and optionally another on resume.
    Signal { pause: i32, resume: Option<i32> },
}

/// `--contain`: what keeps the command's tree together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Contain {
    /// A cgroup if we may create one, else the subreaper.
    #[default]
    Auto,
    /// Every orphan becomes a child of the guard.
    Subreaper,
    /// A cgroup v2 that we create.
    Cgroup,
    /// A PID namespace with our own init.
    PidNamespace,
    /// The command's process group without a subreaper; daemons escape it. Not offered on the command line: it exists
    /// for the test that shows that the other kinds can fail.
    ProcessGroup,
}
