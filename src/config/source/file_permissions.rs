//! Who else may use a file: write the configuration, which may name commands that we run, or read a secret.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use nix::unistd::{getegid, geteuid};

use crate::config::error::ConfigError;

/// The user and group of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    pub user: u32,
    pub group: u32,
}

impl Holder {
    pub fn of_this_process() -> Self {
        Self { user: geteuid().as_raw(), group: getegid().as_raw() }
    }
}

/// Owner and mode of a file (`stat(2)`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trust {
    pub user: u32,
    pub group: u32,
    pub mode: u32,
}

const ROOT: u32 = 0;
const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_ALL: u32 = 0o002;

impl Trust {
    pub fn of(file: &Metadata) -> Self {
        Self { user: file.uid(), group: file.gid(), mode: file.mode() }
    }

    /// Who besides us and root has a right: the owner, or a group that this bit of the mode gives it to.
    pub fn strangers(self, of_group: u32, us: Holder) -> Option<String> {
        match self {
            Self { user, .. } if user != ROOT && user != us.user => Some(format!("user {user}, who owns it,")),
            Self { group, mode, .. } if mode & of_group != 0 && group != ROOT && group != us.group => {
                Some(format!("group {group}"))
            }
            _ => None,
        }
    }

    /// Judges who may write the file besides us and root. A file that everybody may write is refused. A group or
    /// another owner gives a notice, because a deployment's user is a usual owner, and has another number inside a
    /// container.
    ///
    /// # Errors
    ///
    /// Everybody may write it.
    pub fn judge(self, file: &str, us: Holder) -> Result<Option<String>, ConfigError> {
        if self.mode & WRITABLE_BY_ALL != 0 {
            let complaint = "everybody can write to this file, which decides what runs here; chmod o-w it";
            return Err(ConfigError::configuration(file, complaint));
        }
        let strangers = self.strangers(WRITABLE_BY_GROUP, us);
        Ok(strangers.map(|strangers| format!("{file} decides what runs here, and {strangers} can write to it")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Holder = Holder { user: 1000, group: 100 };

    fn judged(user: u32, group: u32, mode: u32) -> Result<Option<String>, String> {
        Trust { user, group, mode }.judge("/etc/x.toml", US).map_err(|error| error.sentence)
    }

    #[test]
    fn our_own_file_and_roots_are_nobody_elses() {
        for (user, group, mode) in [(1000, 100, 0o664), (0, 0, 0o664), (0, 7, 0o644), (1000, 7, 0o600), (0, 100, 0o660)]
        {
            assert_eq!(judged(user, group, mode), Ok(None), "{user} {group} {mode:o}");
        }
    }

    #[test]
    fn a_file_that_everybody_may_write_is_refused() {
        let sentence = "/etc/x.toml: everybody can write to this file, which decides what runs here; chmod o-w it";
        assert_eq!(judged(0, 0, 0o646), Err(sentence.to_owned()));
        assert_eq!(judged(1000, 100, 0o100_666), Err(sentence.to_owned()));
    }

    #[test]
    fn another_owner_or_a_foreign_group_is_worth_a_notice() {
        let notice = |who| Ok(Some(format!("/etc/x.toml decides what runs here, and {who} can write to it")));
        assert_eq!(judged(1001, 100, 0o644), notice("user 1001, who owns it,"));
        assert_eq!(judged(0, 7, 0o664), notice("group 7"));
        assert_eq!(judged(1000, 7, 0o664), notice("group 7"));
    }
}
