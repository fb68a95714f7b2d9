//! An upgrade in place: `SIGRTMIN+1` replaces this program by the one that now stands at its path, in this process, while
//! the command runs on.
//!
//! First the new program is asked: it reads our settings and a trial document, and says whether it can go on with them.
//! Then the lease is renewed, and in the next quiet moment the document is written and the program executed. Whatever
//! stands against that, nothing happens but one line that says why. The guard keeps its deadlines all the while: if the
//! new program fails after all, the guard ends the tree, as whenever a supervisor dies.

mod ask;
pub mod document;
pub(super) mod exchange;
pub mod exec;
pub(super) mod memory_file;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::future::pending;
use std::io;
use std::mem::take;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::clock;
use crate::core::action::ExitReason;
use crate::core::time::Timestamp;
use crate::supervisor::memory_limit::MemoryLimit;
use crate::zookeeper::client::session_key::SessionKey;
use document::Document;

pub use ask::{QUESTION, YES};

/// While a quiet moment is waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The name of a program that takes over, up to the number of the document's descriptor.
pub const NAME: &str = "zk-leader-run-upgraded:";

/// A new program that is a part of a simulation.
pub trait Simulated: fmt::Debug {
    /// What it answers to the trial document.
    fn answer(&self, document: File) -> BoxFuture<'static, io::Result<String>>;
    /// Executes it with the document. Returns only on failure.
    fn replace(&self, document: File) -> io::Error;
}

/// What stays the same in every upgrade of this process.
#[derive(Debug)]
pub struct Settings {
    /// Where this program stood when it was started; newer versions are looked for there.
    pub program: io::Result<PathBuf>,
    /// Without the program's name.
    pub arguments: Vec<OsString>,
    /// The settings that may not change, by name.
    pub fixed: BTreeMap<String, String>,
    /// The configuration file that was read, if any.
    pub file: Option<String>,
    /// Replaces the program at that path.
    pub simulated: Option<Box<dyn Simulated>>,
}

impl Settings {
    fn path(&self) -> PathBuf {
        self.program.as_ref().map_or_else(|_| PathBuf::new(), PathBuf::clone)
    }
}

/// For this process, whether it was upgraded before or not.
#[derive(Debug)]
pub struct Plan {
    settings: Settings,
    /// What the program before this one, in the same process, has handed over.
    before: Option<Box<Document>>,
    /// The new program forks guards before it limits itself.
    pub(super) limit: Option<MemoryLimit>,
    /// See [`super::SignalStream`].
    pub(super) had_terminal: bool,
}

impl Plan {
    pub fn new(settings: Settings, before: Option<Box<Document>>) -> Self {
        // The path stays that of the first program.
        let path = before.as_ref().map(|before| Ok(before.path.clone()));
        let settings = Settings { program: path.unwrap_or(settings.program), ..settings };
        let had_terminal = before.as_ref().is_some_and(|before| before.had_terminal);
        Self { settings, before, limit: None, had_terminal }
    }

    /// Where newer versions are looked for; empty if that is not known.
    pub fn path(&self) -> PathBuf {
        self.settings.path()
    }

    pub(super) fn split(self) -> (Upgrade, Option<Box<Document>>) {
        let Self { settings, before, limit, had_terminal } = self;
        let (until, patience) = (Timestamp::NEVER, Duration::ZERO);
        let upgrade =
            Upgrade { settings, limit, had_terminal, stage: Stage::Idle, until, patience, wants_renewal: false };
        (upgrade, before)
    }
}

/// See the module page.
pub struct Upgrade {
    settings: Settings,
    limit: Option<MemoryLimit>,
    had_terminal: bool,
    stage: Stage,
    /// The end of the wait for a quiet moment.
    until: Timestamp,
    /// The length of that wait.
    patience: Duration,
    /// Once in each wait: where renewals fail, those of the lease go on with their own pauses.
    wants_renewal: bool,
}

#[derive(Default)]
enum Stage {
    /// No upgrade is under way.
    #[default]
    Idle,
    /// The session's key is needed.
    Keyless(File),
    Fetching(File, BoxFuture<'static, io::Result<SessionKey>>),
    /// A quiet moment is needed for the trial document.
    Untried(File, SessionKey),
    Asking(File, SessionKey, BoxFuture<'static, Result<(), String>>),
    /// A quiet moment is needed for the exchange, after a renewal that was sent at this time or later.
    Agreed(File, SessionKey, Timestamp),
}

/// What the course of the upgrade needs next.
pub enum Need {
    Key,
    /// The document. A leader must have renewed its lease at this time or later.
    Document(SessionKey, Timestamp),
}

impl Upgrade {
    pub fn is_under_way(&self) -> bool {
        !matches!(self.stage, Stage::Idle)
    }

    /// The path of the program, the settings that may not change, and the configuration file.
    pub fn constants(&self) -> (PathBuf, BTreeMap<String, String>, Option<String>) {
        (self.settings.path(), self.settings.fixed.clone(), self.settings.file.clone())
    }

    /// An upgrade is asked for. It waits at most for `patience` for each quiet moment, and as long as it takes for a
    /// session. Asked for again meanwhile, it takes the program that stands at its path by then.
    pub fn begin(&mut self, patience: Duration, has_session: bool) {
        if self.is_under_way() && !matches!(self.stage, Stage::Keyless(_)) {
            return tracing::info!("An upgrade is under way already");
        }
        match self.open() {
            Ok(program) => {
                self.patience = patience;
                self.stage = Stage::Keyless(program);
                self.wait_for_quiet();
                if !has_session {
                    self.until = Timestamp::NEVER;
                    tracing::info!("The upgrade waits for a session with ZooKeeper");
                }
            }
            Err(why) => self.refuse(&why),
        }
    }

    /// The session that the key is of was replaced by another one, whose key is needed.
    pub fn begin_anew(&mut self) {
        if let Stage::Untried(program, _) | Stage::Agreed(program, ..) = take(&mut self.stage) {
            self.stage = Stage::Keyless(program);
            self.wait_for_quiet();
        }
    }

    fn open(&self) -> Result<File, String> {
        let unknown = |error: &io::Error| format!("the path of this program is not known: {error}");
        let path = self.settings.program.as_ref().map_err(unknown)?;
        // It is executed, and need not be readable.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path);
        opened.map_err(|error| format!("{}: {error}", path.display()))
    }

    fn wait_for_quiet(&mut self) {
        self.until = clock::now().lease.after(self.patience);
        self.wants_renewal = true;
    }

    /// Whether to renew the lease at once, if that is what the moment lacks.
    pub fn wants_renewal(&mut self) -> bool {
        take(&mut self.wants_renewal)
    }

    fn refuse(&mut self, why: &str) {
        self.stage = Stage::Idle;
        self.until = Timestamp::NEVER;
        tracing::warn!("Not upgraded: {} Version {} goes on", ended(why), env!("CARGO_PKG_VERSION"));
    }

    /// What is needed now, if anything.
    pub fn need(&self) -> Option<Need> {
        match &self.stage {
            Stage::Keyless(_) => Some(Need::Key),
            Stage::Untried(_, key) => Some(Need::Document(key.clone(), Timestamp::ZERO)),
            Stage::Agreed(_, key, since) => Some(Need::Document(key.clone(), *since)),
            Stage::Idle | Stage::Fetching(..) | Stage::Asking(..) => None,
        }
    }

    /// This is not the moment.
    pub fn not_now(&mut self, now: Timestamp, obstacle: &str) {
        if now >= self.until {
            self.refuse(obstacle);
        }
    }

    pub fn fetch(&mut self, key: impl Future<Output = io::Result<SessionKey>> + Send + 'static) {
        if let Stage::Keyless(program) = take(&mut self.stage) {
            self.stage = Stage::Fetching(program, Box::pin(key));
        }
    }

    /// The document is there: the new program is asked, or executed; then this does not return.
    pub fn go_on(&mut self, document: &Document, descriptors: &[BorrowedFd<'_>]) {
        let file = match document.write() {
            Ok(file) => file,
            Err(error) => return self.refuse(&format!("the state cannot be written: {error}")),
        };
        match take(&mut self.stage) {
            Stage::Untried(program, key) => match program.try_clone() {
                Ok(asked) => self.stage = Stage::Asking(program, key, self.ask(asked, file)),
                Err(error) => self.refuse(&error.to_string()),
            },
            Stage::Agreed(program, ..) => {
                tracing::info!("Handing over to the new program");
                self.limit.iter().for_each(MemoryLimit::lift);
                let error = self.replace(&program, file, descriptors);
                self.limit.iter().for_each(MemoryLimit::impose);
                self.refuse(&format!("the new program cannot be executed: {error}"));
            }
            stage => self.stage = stage,
        }
    }

    fn ask(&self, program: File, document: File) -> BoxFuture<'static, Result<(), String>> {
        if let Some(simulated) = &self.settings.simulated {
            return Box::pin(ask::heed(simulated.answer(document)));
        }
        let arguments = self.settings.arguments.clone();
        Box::pin(async move { ask::ask(&program, arguments, document.into()).await })
    }

    fn replace(&self, program: &File, document: File, descriptors: &[BorrowedFd<'_>]) -> io::Error {
        if let Some(simulated) = &self.settings.simulated {
            return simulated.replace(document);
        }
        let kept: Vec<_> = descriptors.iter().copied().chain([document.as_fd()]).collect();
        let name = format!("{NAME}{}", document.as_raw_fd()).into();
        exec::replace(program, name, self.settings.arguments.clone(), &kept)
    }

    /// Returns when the next step can be made, or the wait for a quiet moment is over. Cancel-safe.
    pub(super) async fn next(&mut self) {
        let rest = self.until;
        match &mut self.stage {
            Stage::Idle => pending().await,
            Stage::Fetching(_, key) => {
                let fetched = key.as_mut().await;
                let Stage::Fetching(program, _) = take(&mut self.stage) else { return };
                match fetched {
                    Ok(key) => {
                        self.stage = Stage::Untried(program, key);
                        self.wait_for_quiet();
                    }
                    Err(error) => self.refuse(&format!("the session cannot be handed over: {error}")),
                }
            }
            Stage::Asking(_, _, answer) => {
                let answer = answer.as_mut().await;
                let Stage::Asking(program, key, _) = take(&mut self.stage) else { return };
                match answer {
                    Ok(()) => {
                        self.stage = Stage::Agreed(program, key, clock::now().lease);
                        self.wait_for_quiet();
                    }
                    Err(why) => self.refuse(&why),
                }
            }
            Stage::Keyless(_) | Stage::Untried(..) | Stage::Agreed(..) => {
                // What ends meanwhile, as a check does, may wake nobody.
                tokio::time::sleep(clock::now().lease.until(rest).min(LOOK_AGAIN)).await;
            }
        }
    }
}

/// The process ends, and perhaps an upgrade is under way. After a standstill it is restarted, and makes the upgrade then.
pub(super) fn overtaken(is_under_way: bool, reason: ExitReason) {
    if is_under_way && reason != ExitReason::StoodStill {
        tracing::warn!("Not upgraded: this process ends first; its next start is by the new program");
    }
}

/// As a sentence: the new program may have answered with a question.
fn ended(why: &str) -> String {
    if why.ends_with(['.', '?', '!']) { why.to_owned() } else { format!("{why}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_asks_gets_no_full_stop() {
        assert_eq!(ended("no such option; did you mean stop-timeout?"), "no such option; did you mean stop-timeout?");
        assert_eq!(ended("it cannot be started"), "it cannot be started.");
    }

    /// No test waits for its end.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn upgrade() -> Upgrade {
        let program = Ok(PathBuf::from("/proc/self/exe"));
        let settings = Settings { program, arguments: Vec::new(), fixed: BTreeMap::new(), file: None, simulated: None };
        Plan::new(settings, None).split().0
    }

    fn after(pause: Duration) -> Timestamp {
        clock::now().lease.after(pause)
    }

    fn key() -> SessionKey {
        serde_json::from_str(r#"{"id":7,"password":[1],"negotiated":{"secs":4,"nanos":0}}"#).unwrap()
    }

    #[tokio::test]
    async fn it_waits_for_a_first_session_as_long_as_it_takes_and_then_for_a_quiet_moment() {
        let mut upgrade = upgrade();
        upgrade.begin(PATIENCE, false);
        upgrade.not_now(after(1_000 * PATIENCE), "there is no contact with ZooKeeper");
        assert!(matches!(upgrade.need(), Some(Need::Key)));
        upgrade.fetch(async { Ok(key()) });
        upgrade.next().await;
        upgrade.not_now(after(PATIENCE / 2), "a hook runs");
        assert!(matches!(upgrade.need(), Some(Need::Document(..))));
        upgrade.not_now(after(2 * PATIENCE), "a hook runs");
        assert!(!upgrade.is_under_way());
    }

    #[tokio::test]
    async fn it_asks_for_the_key_of_the_session_that_replaced_another() {
        let mut upgrade = upgrade();
        upgrade.begin(PATIENCE, true);
        upgrade.fetch(async { Ok(key()) });
        upgrade.next().await;
        upgrade.begin_anew();
        assert!(matches!(upgrade.need(), Some(Need::Key)) && upgrade.is_under_way());
        upgrade.not_now(after(2 * PATIENCE), "there is no contact with ZooKeeper");
        assert!(!upgrade.is_under_way(), "contact was lost for long");
    }

    /// Nothing else need happen by then: a host that waits in line has no other deadline.
    #[tokio::test]
    async fn it_wakes_the_loop_when_the_wait_for_a_quiet_moment_is_over() {
        let mut upgrade = upgrade();
        upgrade.begin(Duration::from_millis(20), true);
        let woken = tokio::time::timeout(PATIENCE, upgrade.next()).await;
        assert!(woken.is_ok(), "the refusal is late");
        upgrade.not_now(clock::now().lease, "a hook runs");
        assert!(!upgrade.is_under_way());
    }

    #[test]
    fn asked_again_while_it_waits_it_takes_the_newest_program() {
        let mut upgrade = upgrade();
        upgrade.begin(PATIENCE, false);
        upgrade.settings.program = Ok(PathBuf::from("/nowhere"));
        upgrade.begin(PATIENCE, true);
        assert!(!upgrade.is_under_way(), "there is none");
    }

    #[tokio::test]
    async fn it_waits_as_long_again_once_the_new_program_has_agreed() {
        let mut upgrade = upgrade();
        upgrade.begin(PATIENCE, true);
        let program = upgrade.open().unwrap();
        upgrade.stage = Stage::Asking(program, key(), Box::pin(async { Ok(()) }));
        upgrade.until = Timestamp::ZERO;
        upgrade.next().await;
        upgrade.not_now(after(PATIENCE / 2), "the lease is not renewed yet");
        assert!(upgrade.is_under_way(), "a slow answer cost the time for the renewal");
    }
}
