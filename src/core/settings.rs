//! The choices of the user that change what a machine decides.
//!
//! Never: text; what was typed is the business of `cli`, and how it is said of `observe`.

/// `--guarantee`: which of two evils a partition may bring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Guarantee {
    /// No two commands ever run at once; sometimes none does.
    #[default]
    AtMostOne,
    /// The command runs on through a disconnect; sometimes two do.
    AtLeastOne,
}

/// `--recipe`: how the candidates line up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Recipe {
    /// One ephemeral sequential znode each; the lowest is first.
    #[default]
    Sequential,
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
