//! The settings that an upgrade in place may not change, because they are in force elsewhere: in `ZooKeeper`, in the
//! guard, in the running command, or in the agreement with the other hosts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Debug;

use super::Config;

/// By the option's name.
pub type Fixed = BTreeMap<String, String>;

/// Their values now. An upgrade from a program that writes one in another way is refused.
pub fn of(config: &Config) -> Fixed {
    let Config { name, base, election, id, recipe, guarantee, contain, foreground, stop_signal, .. } = config;
    let command: Vec<_> = config.command.iter().map(OsString::as_os_str).collect();
    let chroot = config.chroot.as_ref().map(ToString::to_string).unwrap_or_default();
    let settings: [(&str, &dyn Debug); 22] = [
        ("--connect (its chroot)", &chroot),
        ("--name", name),
        ("--path", &base.as_str()),
        ("--election-path", &config.wishes.is_shared.then_some(election.as_str())),
        ("--id", id),
        ("--acl", &config.acl),
        ("--recipe", recipe),
        ("--guarantee", guarantee),
        ("--leaders", &config.leaders.count),
        ("--priority", &config.leaders.priority),
        ("--session-timeout", &config.session_timeout),
        ("--lease", &config.wishes.lease),
        ("--slot or --once-per", &config.once.as_ref().map(|once| &once.per)),
        ("--retry-failed", &config.once.as_ref().map(|once| once.retry_failed)),
        ("--contain", contain),
        ("--foreground", foreground),
        ("--stop-signal", stop_signal),
        ("--max-pause", &config.wishes.max_pause),
        ("--vouch", &config.vouch.is_some()),
        ("--vouch-address", &config.vouch.map(|vouch| vouch.address)),
        ("--vouch-limit", &config.vouch.map(|vouch| vouch.limit)),
        ("the command", &command),
    ];
    settings.into_iter().map(|(option, value)| (option.to_owned(), format!("{value:?}"))).collect()
}
