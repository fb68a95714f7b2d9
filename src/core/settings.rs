//! The choices of the user that change what a machine decides.
//!
//! Never: text; what was typed is the business of `cli`, and how it is said of `observe`.

use std::time::Duration;

use super::restart::Rules;

/// `--guarantee`: which of two evils a partition may bring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Guarantee {
    /// No two commands ever run at once; sometimes none does.
    #[default]
    AtMostOne,
    /// The command runs on through a disconnect; sometimes two do.
    AtLeastOne,
}

/// `--recipe`: how the candidates line up. All but the last: one ephemeral sequential znode each; the lowest is first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Recipe {
    /// Named as by Curator's `LeaderLatch`: `curator-latch`, too.
    #[default]
    Sequential,
    /// Named as by Curator's `LeaderSelector` and `InterProcessMutex`.
    CuratorLock,
    /// Named as by kazoo's `Election` and `Lock`.
    Kazoo,
    /// Named as by `ZooKeeper`'s `LeaderElectionSupport`.
    JavaLes,
    /// One ephemeral znode for all; whoever creates it is first.
    Single,
}

/// `--on-exit`: what follows when the command ends by itself while we lead.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnExit {
    /// Release, and exit with the command's status.
    #[default]
    Exit,
    /// Release, and go to the end of the queue.
    Rejoin,
    /// Go on leading, and start it again.
    Restart,
}

/// What belongs to a service, or to a job with limits on its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    pub restart: Rules,
    /// `--stand-back`: how long another host has its turn after we resigned.
    pub stand_back: Duration,
    /// `--timeout`: how long a run may take.
    pub timeout: Option<Duration>,
    /// `--start-deadline`: how long after our own start the command may still be started for the first time.
    pub start_deadline: Option<Duration>,
    /// `--takeover-delay`: how much longer than its lease a holder that did not release is waited for.
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

/// What must be done in a term before the command is started for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Preparations {
    /// `--fence-cmd`, if the last term did not end cleanly.
    pub fences: bool,
    /// `--slot`, `--once-per`: a marker is written.
    pub marks: bool,
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

/// `--on-pause` and `--on-resume`: what the command is told when contact is lost, and when it is restored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnPause {
    /// Nothing; it keeps running.
    #[default]
    Run,
    /// The whole tree is frozen, and thawed.
    Freeze,
    /// It is sent a signal, and perhaps another.
    Signal { pause: i32, resume: Option<i32> },
}

/// `--contain`: what keeps the command's tree together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Contain {
    /// A cgroup where we may make one, else the subreaper.
    #[default]
    Auto,
    /// Every orphan becomes a child of the guard.
    Subreaper,
    /// A cgroup v2 of our own.
    Cgroup,
    /// A PID namespace whose init is ours.
    PidNamespace,
    /// What the peers do: the command's process group, and no subreaper; daemons escape it. Not offered on the command
    /// line: it is for the test that shows that the others can fail.
    ProcessGroup,
}
