//! Passes each part its settings from a [`Config`]. Checks and defaults are in `config`.

mod network;

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io;
use std::iter::once;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::prctl::{set_dumpable, set_name};
use nix::unistd::gethostname;

use crate::config::Config;
use crate::config::auxiliary::Auxiliary;
use crate::config::error::{ConfigError, quoted};
use crate::config::fixed;
use crate::config::load::{REJOINED, RELEASER};
use crate::config::source::process_environment::ProcessEnvironment;
use crate::core::guard_messages::Slot;
use crate::core::machine;
use crate::core::settings::{Guarantee, Preparations, Service, StepLimits};
use crate::guard::command::environment::Identity;
use crate::guard::contain::Containment;
use crate::guard::handle;
use crate::observe::http::{Identity as Shown, Listener};
use crate::observe::log::{Format, Owner, journald};
use crate::observe::systemd::{self, Socket};
use crate::observe::waiting::Manner;
use crate::random;
use crate::supervisor::Observers;
use crate::supervisor::standstill::Memory;
use crate::supervisor::upgrade::exec;
use crate::supervisor::{auxiliary, upgrade};
use crate::vouching::{self, Network as _};
use crate::zookeeper;
use crate::zookeeper::client::connect::Access;
use crate::zookeeper::election::release_orphaned::Orphaned;
use crate::zookeeper::schema::member::About;
use crate::zookeeper::schema::settings::Vouch;

pub use self::network::{Hindrance, network, tell_lost_socket};

/// Once secrets are in our memory, only root may read it: no core dump, and no access to `/proc`, which shows the
/// variables too (`PR_SET_DUMPABLE(2const)`). Children inherit this until they execute a program, so the command is not
/// affected. Returns a notice where the kernel refuses that.
pub fn keep_secrets(access: &Access) -> Option<String> {
    let error = access.holds_secrets().then(|| set_dumpable(false).err()).flatten()?;
    Some(format!(
        "the kernel does not hide the secrets of this process ({error}): any process of the same user may read them, and a core dump \
         holds them; allow prctl(PR_SET_DUMPABLE)"
    ))
}

pub fn guard(config: &Config) -> handle::Settings {
    handle::Settings {
        command: config.command.clone(),
        identity: identity(config),
        stop_signal: config.stop_signal,
        contain: config.contain,
        foreground: config.foreground,
        releaser: releaser(config),
    }
}

/// The identity in the log's lines. The releaser speaks for the participant whose supervisor was killed: its own pid is another.
pub fn log_owner(config: &Config) -> Owner {
    let orphan = orphaned().and_then(|_| std::env::var("ZK_LEADER_ID").ok());
    Owner { election: config.name.clone(), id: orphan.unwrap_or_else(|| config.id.clone()) }
}

fn identity(config: &Config) -> Identity {
    Identity { id: config.id.clone(), path: config.base.as_str().to_owned() }
}

pub fn auxiliary_commands(config: &Config) -> auxiliary::Settings {
    let Auxiliary { hook, health, eligible, fence, before_start, after_stop, .. } = config.auxiliary.clone();
    let eligible = eligible.map(|command| (command, config.service.stand_back));
    auxiliary::Settings { identity: identity(config), hook, health, eligible, fence, before_start, after_stop }
}

/// Under at-least-one, a process tree does not prove that the wait was over, so the releaser must not free the record. And it would
/// read what came through a pipe for ever, or in vain.
fn releaser(config: &Config) -> Option<Vec<OsString>> {
    // Typed options come after those of the file, and override them.
    let from_file = config.file.as_ref().map(|file| file.options.clone()).unwrap_or_default();
    let arguments = from_file.into_iter().chain(std::env::args_os().skip(1));
    let safe = config.guarantee == Guarantee::AtMostOne && !config.secrets_read_once;
    safe.then(|| once(OsString::from(RELEASER)).chain(arguments).collect())
}

/// The orphaned term, if this process was started as a releaser: by a guard, under this name and with the environment
/// of its command.
pub fn orphaned() -> Option<Orphaned> {
    let name = std::env::args_os().next()?;
    let variable = |name| std::env::var(name).ok();
    let (token, candidate) = (variable("ZK_LEADER_TOKEN")?.parse().ok()?, variable("ZK_LEADER_CANDIDATE")?);
    let session = u64::from_str_radix(variable("ZK_LEADER_SESSION")?.strip_prefix("0x")?, 16).ok()?;
    let session = i64::from_ne_bytes(session.to_ne_bytes());
    let slot = Slot(variable("ZK_LEADER_SLOT")?.parse().ok()?);
    (name == RELEASER).then_some(Orphaned { slot, token, candidate, session })
}

/// How this program was started.
#[derive(Debug)]
pub enum Start {
    Usual,
    /// Asked whether it could take over, with a trial document as its standard input.
    Asked,
    /// By an earlier version in this process. The document is open as this descriptor.
    TakesOver(i32),
    /// By itself in this process, after a standstill. Its memory is open as this descriptor.
    Rejoins(i32),
}

/// How this program was started, and its arguments, the program's name first.
pub fn start() -> (Start, Vec<OsString>) {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == upgrade::QUESTION) {
        arguments.remove(1);
        return (Start::Asked, arguments);
    }
    if let Some((memory, _)) = rejoined() {
        return (Start::Rejoins(memory), arguments);
    }
    let name = arguments.first().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(upgrade::NAME));
    (name.and_then(|number| number.parse().ok()).map_or(Start::Usual, Start::TakesOver), arguments)
}

/// A program that is asked answers for the process that asks, its parent: the default id has the process id.
pub fn process_environment(start: &Start) -> ProcessEnvironment {
    let own = ProcessEnvironment::of_this_process();
    match start {
        Start::Asked => ProcessEnvironment { pid: std::os::unix::process::parent_id(), ..own },
        Start::Usual | Start::TakesOver(_) | Start::Rejoins(_) => own,
    }
}

/// For an upgrade of this process. The path is read now: after an upgrade of the package, the kernel no longer tells it.
pub fn upgrade(config: &Config) -> upgrade::Settings {
    upgrade::Settings {
        program: own_path(),
        arguments: std::env::args_os().skip(1).collect(),
        fixed: fixed::of(config),
        file: config.file.as_ref().map(|file| file.path.clone()),
        simulated: None,
    }
}

/// As we were called, or found in `PATH`: it may be a link that an upgrade of the package changes.
fn own_path() -> io::Result<PathBuf> {
    if let Some((_, path)) = rejoined() {
        return Ok(path);
    }
    let executed = std::env::current_exe()?;
    let is_ours = |path: &PathBuf| std::fs::canonicalize(path).is_ok_and(|path| path == executed);
    Ok(called_as().into_iter().find(is_ours).unwrap_or(executed))
}

/// Where the program that we were called by may stand.
fn called_as() -> Vec<PathBuf> {
    let Some(name) = std::env::args_os().next() else { return Vec::new() };
    let has_folder = name.as_bytes().contains(&b'/');
    let searched = std::env::var_os("PATH").filter(|_| !has_folder).unwrap_or_default();
    let places = std::env::split_paths(&searched).map(|folder| folder.join(&name));
    places.filter_map(|place| std::path::absolute(place).ok()).collect()
}

/// Whether this process id has led before, and lost leadership together with its guard.
pub fn has_rejoined() -> bool {
    rejoined().is_some()
}

/// The descriptor of the memory, and the path at which newer versions are looked for.
fn rejoined() -> Option<(i32, PathBuf)> {
    let name = std::env::args_os().next()?;
    let name = name.as_bytes().strip_prefix(REJOINED.as_bytes())?;
    let colon = name.iter().position(|byte| *byte == b':')?;
    let (number, path) = (std::str::from_utf8(name.get(..colon)?).ok()?, name.get(colon + 1..)?);
    Some((number.parse().ok()?, OsStr::from_bytes(path).into()))
}

/// Executes this program again in this process, with the same arguments and the settings of the file that it has read.
/// Returns only on failure. Newer versions are looked for at `path`: the kernel tells it no longer once the file was replaced.
pub fn start_anew(config: &Config, path: &Path, mut memory: Memory) -> io::Error {
    memory.file = config.file.as_ref().map(|file| (file.path.clone(), file.options.clone()));
    let files = memory.write().and_then(|memory| {
        let program = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open("/proc/self/exe")?;
        Ok((memory, program))
    });
    let (memory, program) = match files {
        Ok(files) => files,
        Err(error) => return error,
    };
    let mut name = OsString::from(format!("{REJOINED}{}:", memory.as_raw_fd()));
    name.push(path);
    exec::replace(&program, name, std::env::args_os().skip(1).collect(), &[memory.as_fd()])
}

/// Replaces `exe`, the name that `/proc/self/exe` gives the process.
pub fn keep_name() {
    if has_rejoined() || matches!(start().0, Start::TakesOver(_)) {
        // Else it keeps `exe`.
        set_name(c"zk-leader-run").ok();
    }
}

pub fn machine(config: &Config, instance: u64) -> machine::Settings {
    // An earlier program of this process has counted them.
    let is_first = !has_rejoined() && !matches!(start().0, Start::TakesOver(_));
    machine::Settings {
        wishes: config.wishes,
        guarantee: config.guarantee,
        on_pause: config.on_pause,
        on_exit: config.on_exit,
        on_loss: config.on_loss,
        // They limit only the first election.
        wait: config.wait.filter(|_| is_first),
        connect_timeout: config.connect_timeout.filter(|_| is_first),
        stop_timeout: config.stop_timeout,
        service: Service { start_deadline: config.service.start_deadline.filter(|_| is_first), ..config.service },
        preparations: Preparations { fences: config.auxiliary.fence.is_some(), marks: config.once.is_some() },
        steps: StepLimits {
            before_start: config.auxiliary.before_start.as_ref().map(|step| step.timeout),
            after_stop: config.auxiliary.after_stop.as_ref().map(|step| step.timeout),
        },
        vouch: config.vouch.map(|vouch| vouch.limit),
        instance,
    }
}

/// `network`: where other hosts ask this one.
pub fn ensemble(config: &Config, instance: u64, network: Option<&vouching::Socket>) -> zookeeper::Settings {
    let vouch = config.vouch.zip(network);
    zookeeper::Settings {
        servers: config.servers.clone(),
        chroot: config.chroot.as_ref().map(|chroot| chroot.as_str().to_owned()).unwrap_or_default(),
        access: config.access.clone(),
        session_timeout: config.session_timeout,
        lease: config.wishes.lease,
        base: config.base.as_str().to_owned(),
        election: config.election.as_str().to_owned(),
        acl: config.acl.clone(),
        is_shared: config.wishes.is_shared,
        recipe: config.recipe,
        guarantee: config.guarantee,
        max_pause: config.wishes.max_pause,
        leaders: config.leaders.count,
        priority: config.leaders.priority,
        id: config.id.clone(),
        host: host(),
        pid: std::process::id(),
        pid_namespace: pid_namespace().unwrap_or_default(),
        instance,
        vouch: vouch.map(|(vouch, network)| Vouch { address: network.address(), limit: vouch.limit }),
        once: config.once.clone(),
        about: About::default(),
    }
}

/// What others are told about us, besides.
pub fn about(config: &Config, containment: &Containment) -> About {
    let program = config.command.first().and_then(|program| Path::new(program).file_name());
    About {
        contain: containment.word().to_owned(),
        program: program.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        meta: config.monitoring.meta.clone(),
    }
}

/// The boot and the PID namespace of this process.
fn pid_namespace() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.to_str()?))
}

fn host() -> String {
    gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}

/// Opens the sockets for monitoring: after the fork of the guard, which must not inherit them, and before we contend.
/// `goes_on`: a command runs already, or this process has rejoined, and another one in its place would not know what it knows. So we do
/// without what is refused.
///
/// # Errors
///
/// An address cannot be listened at.
pub fn observers(config: &Config, about: About, goes_on: bool) -> Result<Observers, ConfigError> {
    let http = config.monitoring.http.as_ref().map(|address| {
        Listener::bind(address).map_err(|error| {
            let complaint = format!(
                "{} cannot be listened at: {error}; write another address, or 127.0.0.1:0 for any free port",
                quoted(&address.to_string())
            );
            ConfigError::new(network::of_address(&error), "--http", complaint)
        })
    });
    let http = match http.transpose() {
        Err(refusal) if goes_on => {
            tracing::error!("{}; going on without it", refusal.sentence);
            None
        }
        http => http?,
    };
    if config.log_format == Format::Journald && !journald::is_there() && !goes_on {
        let complaint = "'journald' is not running here; write human or json";
        return Err(ConfigError::configuration("--log-format", complaint));
    }
    let path = config.chroot.iter().chain([&config.base]).map(ToString::to_string).collect();
    let identity =
        Shown { name: config.name.clone(), id: config.id.clone(), path, host: host(), pid: std::process::id(), about };
    let manner = Manner::of(config.log_format, config.log_level);
    Ok(Observers { identity, manner, http, systemd: systemd(config) })
}

/// The settings that systemd passes in our environment (`sd_notify(3)`, `sd_watchdog_enabled(3)`).
fn systemd(config: &Config) -> Option<systemd::Settings> {
    let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty())?;
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    let watchdog = number("WATCHDOG_USEC").filter(|micros| *micros > 0 && is_ours).map(Duration::from_micros);
    let Auxiliary { hook, after_stop, .. } = &config.auxiliary;
    let last = [hook, after_stop].into_iter().flatten().map(|last| last.timeout).sum();
    match Socket::to(&name) {
        Ok(socket) => Some(systemd::Settings {
            socket,
            ready_on: config.monitoring.ready_on,
            watchdog,
            stop_limit: config.stop_timeout.saturating_add(last),
        }),
        Err(error) => {
            tracing::warn!("NOTIFY_SOCKET {} cannot be used: {error}", quoted(&name.to_string_lossy()));
            None
        }
    }
}

/// Marks the records of this process; never zero.
pub fn instance() -> u64 {
    let (high, low) = random::uuid().as_u64_pair();
    (high ^ low).max(1)
}
