//! The environment of the command: our variables replace inherited ones, and variables that concern only us are not
//! passed on. The command must not be able to speak for us to systemd (T33), and a nested run must not take over our
//! options.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::core::guard_messages::Grant;

/// The values that stay the same from term to term.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// `--id`
    pub id: String,
    /// The base path of the election.
    pub path: String,
}

const OURS: [&str; 8] = [
    "ZK_LEADER_TOKEN",
    "ZK_LEADER_TERM",
    "ZK_LEADER_ID",
    "ZK_LEADER_PATH",
    "ZK_LEADER_CANDIDATE",
    "ZK_LEADER_SESSION",
    "ZK_LEADER_TAKEOVER",
    "ZK_LEADER_SLOT",
];

/// Set only if there is a lease file: one inherited from a run around ours is another lease.
const LEASE_FILE: &str = "ZK_LEADER_LEASE";

/// `sd_notify(3)`, `sd_watchdog_enabled(3)`, `sd_listen_fds(3)`, our own options, and the variables of our auxiliary
/// commands: a run inside a hook has its own term.
const NOT_PASSED_ON: [&str; 9] = [
    "WATCHDOG_",
    "LISTEN_",
    "ZK_LEADER_RUN_",
    "ZK_LEADER_EVENT",
    "ZK_LEADER_WHY",
    "ZK_LEADER_ROLE",
    "ZK_LEADER_MISSED",
    "ZK_LEADER_PREVIOUS_",
    LEASE_FILE,
];

/// The part of `inherited` that the command gets.
pub fn passed_on(inherited: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<CString> {
    inherited.into_iter().filter(|(name, _)| is_passed_on(name)).filter_map(variable).collect()
}

/// The part of `inherited` that the releaser gets: our options, too.
pub fn kept(inherited: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<CString> {
    let is_ours = |name: &OsStr| OURS.iter().any(|ours| name == *ours);
    inherited.into_iter().filter(|(name, _)| !is_ours(name)).filter_map(variable).collect()
}

fn variable((name, value): (OsString, OsString)) -> Option<CString> {
    CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
}

/// The variables that describe a term.
pub fn of_term(identity: &Identity, grant: &Grant) -> Vec<CString> {
    let values = [
        grant.token.to_string(),
        grant.term.to_string(),
        identity.id.clone(),
        identity.path.clone(),
        grant.candidate.as_str().to_owned(),
        format!("0x{:x}", grant.session),
        grant.takeover.word().to_owned(),
        grant.slot.0.to_string(),
    ];
    OURS.iter().zip(values).filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok()).collect()
}

/// The variable that names the lease file.
pub fn of_lease_file(path: &Path) -> Option<CString> {
    variable((OsString::from(LEASE_FILE), path.as_os_str().to_owned()))
}

/// The variables that every auxiliary command gets: our identity.
pub fn of_identity(identity: &Identity) -> Vec<CString> {
    let values = [("ZK_LEADER_ID", &identity.id), ("ZK_LEADER_PATH", &identity.path)];
    values.into_iter().filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok()).collect()
}

/// `variables`, then the inherited ones of other names.
pub fn told(variables: &[CString], inherited: &[CString]) -> Vec<CString> {
    let name = |variable: &CString| variable.as_bytes().split(|&byte| byte == b'=').next().map(<[u8]>::to_vec);
    let names: Vec<_> = variables.iter().map(name).collect();
    let kept = inherited.iter().filter(|variable| !names.contains(&name(variable)));
    variables.iter().chain(kept).cloned().collect()
}

fn is_passed_on(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let is_ours = OURS.iter().any(|ours| name == ours.as_bytes());
    let is_private = NOT_PASSED_ON.iter().any(|prefix| name.starts_with(prefix.as_bytes()));
    !is_ours && !is_private && name != b"NOTIFY_SOCKET"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::guard_messages::{CandidateName, Slot, Takeover};

    fn passed(names: &[&str]) -> Vec<String> {
        let variables = names.iter().map(|name| (OsString::from(name), OsString::from("x")));
        passed_on(variables).into_iter().map(|variable| variable.into_string().unwrap()).collect()
    }

    #[test]
    fn what_concerns_only_us_is_not_passed_on() {
        assert_eq!(passed(&["HOME", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]), ["HOME=x"]);
        assert_eq!(passed(&["LISTEN_FDS", "LISTEN_PID", "LISTENER", "ZK_LEADER_RUN_CONNECT"]), ["LISTENER=x"]);
        assert_eq!(
            passed(&["ZK_LEADER_TOKEN", "ZK_LEADER_PATH", "ZK_LEADER_LEASE", "ZK_LEADER_OTHER"]),
            ["ZK_LEADER_OTHER=x"]
        );
    }

    #[test]
    fn a_term_is_described_in_eight_variables() {
        let identity = Identity { id: "host:1".into(), path: "/zk-leader-run/job".into() };
        let candidate = CandidateName::new("_c_1-latch-0000000003").unwrap();
        let (takeover, slot) = (Takeover::Clean, Slot(2));
        let grant = Grant { token: 1 << 40, term: 3, session: 0x0010_0000_0000_00ab, takeover, slot, candidate };
        let variables: Vec<_> =
            of_term(&identity, &grant).into_iter().map(|variable| variable.into_string().unwrap()).collect();
        assert_eq!(
            variables,
            [
                "ZK_LEADER_TOKEN=1099511627776",
                "ZK_LEADER_TERM=3",
                "ZK_LEADER_ID=host:1",
                "ZK_LEADER_PATH=/zk-leader-run/job",
                "ZK_LEADER_CANDIDATE=_c_1-latch-0000000003",
                "ZK_LEADER_SESSION=0x100000000000ab",
                "ZK_LEADER_TAKEOVER=clean",
                "ZK_LEADER_SLOT=2",
            ]
        );
    }
}
