//! The page of `--dry-run`: every name and every margin that follow from the settings, and their effect in an outage.
//! Nothing is connected or written.

mod service;
mod vouching;

use std::fmt::Write as _;
use std::time::Duration;

use self::service::Rows;
use crate::config::Config;
use crate::config::auxiliary::Auxiliary;
use crate::core::lease::{connection_timeout, lease_for, wait_for};
use crate::core::settings::{Contain, Guarantee, OnExit, OnLoss, OnPause};
use crate::core::time::Timestamp;
use crate::observe::systemd::ReadyOn;
use crate::observe::words::printable;
use crate::observe::words::{length, signal};
use crate::zookeeper::schema::recipe;

pub fn text(config: &Config) -> String {
    let sections = [
        ("Election", election(config)),
        ("Lease, if the ensemble grants the session timeout that is asked for", lease(config)),
        ("In an outage", outage(config)),
        ("While ZooKeeper is away, if the others vouch (--vouch)", vouching::rows(config)),
        ("Take-over by the next in line", take_over(config)),
        ("Command", command(config)),
        ("Monitoring", watching(config)),
        ("Auxiliary commands", auxiliary_commands(config)),
    ];
    let mut page = String::new();
    for (heading, rows) in sections.into_iter().filter(|(_, rows)| !rows.is_empty()) {
        writeln!(page, "{heading}").ok();
        for (name, value) in rows {
            writeln!(page, "  {name:<25} {value}").ok();
        }
        page.push('\n');
    }
    if let Some(file) = &config.file {
        writeln!(page, "Note: settings were read from {}", printable(&file.path)).ok();
    }
    for notice in &config.notices {
        writeln!(page, "Note: {notice}").ok();
    }
    page + "Nothing was connected, written or started (--dry-run).\n"
}

fn election(config: &Config) -> Rows {
    let chroot = config.chroot.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
    let leaders = match config.leaders.count {
        1 => "one at a time".to_owned(),
        most => format!("up to {most} at a time, in slots 0 to {}", most - 1),
    };
    let wait = match config.wait {
        None => "for ever".to_owned(),
        Some(Duration::ZERO) => format!("only if free now, else status {}", config.conflict_exit_code),
        Some(wait) => format!("{}, then status {}", length(wait), config.conflict_exit_code),
    };
    let reach =
        config.connect_timeout.map_or_else(|| "for ever".into(), |limit| format!("{}, then status 69", length(limit)));
    let candidates = config.wishes.is_shared.then(|| format!("{}, with those of other libraries", config.election));
    let rows = vec![
        ("name", config.name.clone()),
        ("id", config.id.clone()),
        ("servers", config.servers.clone()),
        ("chroot", chroot),
        ("path", config.base.to_string()),
        ("recipe", recipe::text(config.recipe).to_owned()),
        ("leaders", leaders),
        ("priority", priority(config)),
        ("reach the ensemble", reach),
        ("wait for leadership", wait),
    ];
    rows.into_iter().chain(candidates.map(|text| ("candidates", text))).collect()
}

fn priority(config: &Config) -> String {
    let priority = match config.leaders.priority {
        rank if config.leaders.spreads => format!("{rank}, the rank of this host in this election"),
        priority => priority.to_string(),
    };
    match config.leaders.preempt_after {
        None => priority,
        Some(Duration::ZERO) => format!("{priority}; a lower leader is asked to hand over at once"),
        Some(after) => {
            format!("{priority}; a lower leader is asked to hand over after {} as next in line", length(after))
        }
    }
}

fn lease(config: &Config) -> Rows {
    let timing = &config.requested_timing;
    let drift = wait_for(timing.lease).saturating_sub(timing.lease);
    let longest = lease_for(config.session_timeout, None, true);
    let is_half = config.wishes.is_shared && timing.lease == longest;
    let lease = format!("{}{}", length(timing.lease), if is_half { ", half of the session timeout" } else { "" });
    let counts =
        if timing.needs_two_writes() { "the last renewal but one that was acknowledged" } else { "each renewal" };
    let guarantee = match config.guarantee {
        Guarantee::AtMostOne if config.wishes.is_shared => {
            "at-most-one among hosts of zk-leader-run; beside other libraries, best effort and no proof"
        }
        Guarantee::AtMostOne => "at-most-one: no two commands ever run at once",
        Guarantee::AtLeastOne => "at-least-one: in an outage, two commands may run at once",
    };
    vec![
        ("guarantee", guarantee.to_owned()),
        ("session timeout", length(config.session_timeout)),
        ("lease", lease),
        ("margin for clock drift", format!("{}, 1 % of the lease", length(drift))),
        ("margin for scheduling", length(2 * timing.slack)),
        ("usable", format!("{}, the lease less both margins; from the sending of {counts}", length(timing.usable()))),
        ("renewal interval", length(timing.renewal_interval)),
        (
            "connection timeout",
            format!("{}, a fifth of the session timeout", length(connection_timeout(config.session_timeout))),
        ),
    ]
}

fn outage(config: &Config) -> Rows {
    let timing = &config.requested_timing;
    let deadlines = timing.deadlines(Timestamp::ZERO);
    let after = |instant| Timestamp::ZERO.until(instant);
    let last = "after the last acknowledged renewal was sent";
    let since = if timing.needs_two_writes() { "after the last acknowledged renewal but one was sent" } else { last };
    let stop_at = length(after(deadlines.stop_at));
    let stop = if timing.reserve.is_zero() {
        "not sent: no time is reserved for it".to_owned()
    } else {
        format!("{stop_at} {since} (stop reserve {})", length(timing.reserve))
    };
    let grace = match config.wishes.grace {
        None => "all that the lease allows".to_owned(),
        Some(Duration::ZERO) => "none: the command is stopped as soon as contact is lost".to_owned(),
        Some(grace) => format!("{}, then the command is stopped", length(grace)),
    };
    let meanwhile = match config.on_pause {
        OnPause::Run => "keeps running".to_owned(),
        OnPause::Freeze => "is frozen, with its whole tree".to_owned(),
        OnPause::Signal { pause, resume: None } => format!("is sent {}", signal(pause)),
        OnPause::Signal { pause, resume: Some(resume) } => {
            format!("is sent {}, and {} when contact is back", signal(pause), signal(resume))
        }
    };
    vec![
        ("contact is lost", format!("{} {last}", length(after(timing.contact_lost_at(Timestamp::ZERO))))),
        ("the command", meanwhile),
        ("grace", grace),
        ("stop signal", stop),
        ("SIGKILL to the tree", format!("{} {since}", length(after(deadlines.kill_at)))),
        ("longest tolerated outage", length(timing.longest_outage())),
    ]
}

fn take_over(config: &Config) -> Rows {
    let lease = config.requested_timing.lease;
    let crash = match config.guarantee {
        Guarantee::AtMostOne => format!(
            "at most the session timeout ({}) and two server ticks, the wait for the lease ({}) included",
            length(config.session_timeout),
            length(wait_for(lease))
        ),
        Guarantee::AtLeastOne => format!(
            "at most the session timeout ({}) and two server ticks; the lease is not waited for",
            length(config.session_timeout)
        ),
    };
    let mut rows = vec![("after a release", "milliseconds".to_owned()), ("after a host's crash", crash)];
    if !config.service.takeover_delay.is_zero() {
        let delay = length(config.service.takeover_delay);
        rows.push(("takeover delay", format!("{delay} more after a leader that did not release")));
    }
    rows
}

fn command(config: &Config) -> Rows {
    let contain = match config.contain {
        Contain::Auto => "auto: a cgroup where we may make one, else subreaper",
        Contain::Subreaper => "subreaper",
        Contain::Cgroup => "cgroup",
        Contain::PidNamespace => "pid-namespace",
        Contain::ProcessGroup => "process-group",
    };
    let stop = match config.stop_timeout {
        Duration::ZERO => "SIGKILL at once".to_owned(),
        limit => format!("{}, then SIGKILL after {}", signal(config.stop_signal), length(limit)),
    };
    let ended = match config.on_exit {
        OnExit::Exit => "release, and exit with its status".to_owned(),
        OnExit::Rejoin => "release, and go to the end of the queue".to_owned(),
        OnExit::Restart => service::restarts(&config.service.restart),
    };
    let lost = match config.on_loss {
        OnLoss::Rejoin => "go to the end of the queue",
        OnLoss::Exit => "exit with status 76",
    };
    let words: Vec<_> = config.command.iter().map(|word| shell_word(&word.to_string_lossy())).collect();
    let mut rows = vec![
        ("command", words.join(" ")),
        ("terminal", if config.foreground { "the command's (--foreground)" } else { "not the command's" }.to_owned()),
        ("runs", service::runs(config.once.as_ref())),
        ("containment", contain.to_owned()),
        ("a requested stop", stop),
        ("when it ends by itself", ended),
        ("when leadership is lost", lost.to_owned()),
    ];
    rows.extend(service::rows(&config.service, config.on_exit));
    rows
}

fn watching(config: &Config) -> Rows {
    let http = config.monitoring.http.as_ref();
    let ready = match config.monitoring.ready_on {
        ReadyOn::Contending => "told when we are in line for leadership",
        ReadyOn::Leading => "told when the command runs",
    };
    vec![
        ("http", http.map_or_else(|| "not served".to_owned(), |address| printable(&address.to_string()))),
        ("ready, under systemd", ready.to_owned()),
    ]
}

fn auxiliary_commands(config: &Config) -> Rows {
    let mut rows = Rows::new();
    if let Some((health, settings)) = &config.auxiliary.health {
        let every = format!("every {}, killed after {}", length(settings.interval), length(health.timeout));
        let failures = settings.failures;
        rows.push((
            "health command",
            format!("{}; {every}; unhealthy after {failures} failures in a row", printable(&health.command)),
        ));
        if !settings.grace.is_zero() {
            rows.push(("health grace", format!("for {} after a start of the command", length(settings.grace))));
        }
    }
    if let Some(eligible) = &config.auxiliary.eligible {
        let limit = length(eligible.timeout);
        rows.push(("eligibility command", format!("{}; killed after {limit}", printable(&eligible.command))));
    }
    if let Some(fence) = &config.auxiliary.fence {
        let limit = length(fence.timeout);
        let when = "before the command, after a term that did not end cleanly";
        rows.push(("fence command", format!("{}; {when}; killed after {limit}", printable(&fence.command))));
    }
    rows.extend(steps(config));
    if let Some(hook) = &config.auxiliary.hook {
        let delay = "the last ones delay our exit by at most that";
        rows.push(("hook", format!("{}; killed after {}; {delay}", printable(&hook.command), length(hook.timeout))));
    }
    rows
}

fn steps(config: &Config) -> Rows {
    let Auxiliary { before_start, after_stop, .. } = &config.auxiliary;
    let steps = [
        ("before the first start", before_start, "if it fails, the command is not started"),
        ("after the stop", after_stop, "the release waits for it"),
    ];
    let given = steps.into_iter().filter_map(|(name, step, then)| Some((name, step.as_ref()?, then)));
    let row =
        |command: &str, limit| format!("{}; killed after {}, or with the lease", printable(command), length(limit));
    given.map(|(name, step, then)| (name, format!("{}; {then}", row(&step.command, step.timeout)))).collect()
}

/// A word quoted for a shell.
fn shell_word(word: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_./:=,@%+".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", printable(&word.replace('\'', "'\\''")))
    }
}
