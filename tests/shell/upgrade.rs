//! An upgrade in place: the real one, but for `execve(2)` and the program that is asked. Instead of that, the supervisor's
//! future is dropped at that instant, with all its tasks and connections, and the next one begins with the document.

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::sleep;
use zk_leader_run::core::machine;
use zk_leader_run::core::settings::StepLimits;
use zk_leader_run::supervisor::upgrade::document::Document;
use zk_leader_run::supervisor::upgrade::{Settings, Simulated, YES};

use crate::faults::{candidates_of, told};
use crate::guard::{Descriptor, Guard, Temper};
use crate::host::Running;
use crate::memory::SessionId;
use crate::memory::rng::Rng;
use crate::oracle::Oracle;
use crate::script::Script;
use crate::strike::{Fault, Strike};
use crate::world::World;

/// By then everybody stands in line, if nothing befalls anybody.
const SETTLED: Duration = Duration::from_secs(4);

/// The program that takes over.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub answer: Answer,
    pub answers_after: Duration,
    /// From `execve(2)` to its first look at anything.
    pub starts_after: Duration,
    pub start: Start,
}

/// What it says when it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    Honest,
    /// Its settings are other ones.
    Unfit,
    /// It ends without a word.
    Nothing,
    Never,
}

/// What becomes of it when it is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    Well,
    /// It ends.
    Failed,
    /// It cannot be executed, and the program before it goes on.
    Impossible,
}

impl Program {
    pub const GOOD: Self = Self {
        answer: Answer::Honest,
        answers_after: Duration::from_millis(20),
        starts_after: Duration::from_millis(30),
        start: Start::Well,
    };

    pub fn draw(rng: &mut Rng) -> Self {
        let most = rng.pick(&[5, 50, 50, 300]);
        Self {
            answer: match rng.below(100) {
                0..85 => Answer::Honest,
                85..90 => Answer::Unfit,
                90..95 => Answer::Nothing,
                _ => Answer::Never,
            },
            answers_after: Duration::from_micros(rng.below(1_000 * most)),
            starts_after: Duration::from_micros(rng.below(1_000 * most)),
            start: match rng.below(100) {
                0..90 => Start::Well,
                90..95 => Start::Failed,
                _ => Start::Impossible,
            },
        }
    }
}

/// Adds upgrades to some scripts, by dice of their own, and makes others of nothing else.
pub fn draw(script: Script) -> Script {
    let mut rng = Rng::new(script.seed, 0x5550);
    match rng.below(100) {
        0..8 => only_upgrades(script, &mut rng),
        8..50 => with_upgrades(script, &mut rng),
        _ => script,
    }
}

fn with_upgrades(mut script: Script, rng: &mut Rng) -> Script {
    for _ in 0..rng.between(1, 4) {
        let at = Duration::from_micros(rng.below(script.healed_at.as_micros() as u64));
        let (is_at_leader, host) = (rng.chance(60), rng.below(script.hosts.len() as u64) as usize);
        let program = Program::draw(rng);
        let mut faults = vec![(Duration::ZERO, Fault::Upgrade { host, program })];
        let length = 2 * (program.answers_after + program.starts_after) + 8 * script.latency[1];
        for _ in 0..rng.below(3) {
            let mut fault = Fault::draw(rng, script.hosts.len(), script.servers, script.session_timeout);
            fault.host().into_iter().for_each(|other| *other = host);
            let fault = rng.pick(&[fault, fault, fault, Fault::Upgrade { host, program }, Fault::Sigterm { host }]);
            faults.push((Duration::from_micros(rng.below(length.as_micros() as u64)), fault));
        }
        script.strikes.push(Strike { at, is_at_leader, faults });
    }
    script.strikes.sort_by_key(|strike| strike.at);
    script
}

/// All of them good or refused, at any instant, again and again; connections are reset besides.
fn only_upgrades(mut script: Script, rng: &mut Rng) -> Script {
    for host in &mut script.hosts {
        host.temper = Temper { ends: 0, starts_slowly: 0, ..host.temper };
        (host.steps, host.has_health, host.has_eligible) = (StepLimits::default(), false, false);
    }
    let last = script.healed_at.max(SETTLED * 2);
    let mut strikes: Vec<_> = std::iter::repeat_with(|| {
        let at = SETTLED + Duration::from_micros(rng.below(last.saturating_sub(SETTLED).as_micros() as u64));
        let host = rng.below(script.hosts.len() as u64) as usize;
        let program = Program { start: rng.pick(&[Start::Well, Start::Well, Start::Impossible]), ..Program::draw(rng) };
        let reset = Duration::from_micros(rng.below(300_000));
        let faults = vec![(Duration::ZERO, Fault::Upgrade { host, program }), (reset, Fault::Reset { host })];
        let many = 1 + usize::from(rng.chance(30));
        Strike { at, is_at_leader: rng.chance(70), faults: faults.into_iter().take(many).collect() }
    })
    .take(8)
    .collect();
    strikes.sort_by_key(|strike| strike.at);
    Script { strikes, healed_at: last, has_upgrades_only: true, ..script }
}

/// What the next program is given.
pub struct Executed {
    pub program: Program,
    document: File,
    guard: Guard,
}

impl Executed {
    /// What the program before has left behind, if that was not in vain.
    pub fn open(self, machine: &machine::Settings) -> Option<(Box<Document>, Guard)> {
        let document = Document::read(self.document).expect("it was read before");
        let is_fit = document.check(machine, &fixed(self.program)).is_ok();
        (is_fit && self.program.start == Start::Well).then(|| (Box::new(document), self.guard))
    }

    /// `Err`: it was a panic.
    pub fn caught(panic: Box<dyn Any + Send>) -> Self {
        *panic.downcast().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

fn fixed(program: Program) -> BTreeMap<String, String> {
    let path = if program.answer == Answer::Unfit { "/another" } else { "/path" };
    BTreeMap::from([("--path".to_owned(), path.to_owned())])
}

/// What stands at the path of a host's program.
pub struct Installed {
    running: Rc<Running>,
    oracle: Arc<Oracle>,
    machine: machine::Settings,
    session_timeout: Duration,
    /// Of the command; the next one takes the place of the first.
    guards: Vec<Descriptor>,
    /// The one that is executed is the one that was asked.
    asked: Cell<Program>,
}

impl fmt::Debug for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "installed for {:?}", self.running.process.instance)
    }
}

impl Installed {
    pub fn new(
        running: &Rc<Running>,
        oracle: &Arc<Oracle>,
        machine: &machine::Settings,
        session_timeout: Duration,
        guards: Vec<Descriptor>,
    ) -> Self {
        let (machine, asked) = (*machine, Cell::new(running.installed.get()));
        Self { running: Rc::clone(running), oracle: Arc::clone(oracle), machine, session_timeout, guards, asked }
    }

    pub fn settings(self) -> Settings {
        let program = Ok(PathBuf::from("/proc/self/exe"));
        let (arguments, fixed) = (Vec::new(), fixed(Program::GOOD));
        Settings { program, arguments, fixed, file: None, simulated: Some(Box::new(self)) }
    }

    fn rehearse(&self, document: File) -> String {
        let document = Document::read(document).expect("it was written a moment before");
        match document.check(&self.machine, &fixed(self.asked.get())) {
            Ok(()) => YES.to_owned(),
            Err(unfit) if self.asked.get().answer == Answer::Unfit => format!("{unfit:?}"),
            Err(unfit) => panic!("a program cannot take over from itself: {unfit:?}"),
        }
    }
}

impl Simulated for Installed {
    fn answer(&self, document: File) -> BoxFuture<'static, io::Result<String>> {
        let program = self.running.installed.get();
        self.asked.set(program);
        let (answer, is_dumb) = (self.rehearse(document), program.answer == Answer::Nothing);
        Box::pin(async move {
            sleep(program.answers_after).await;
            if program.answer == Answer::Never {
                std::future::pending::<()>().await;
            }
            Ok(if is_dumb { String::new() } else { answer })
        })
    }

    fn replace(&self, document: File) -> io::Error {
        let program = self.asked.get();
        let Some(guard) = self.guards.iter().find_map(Descriptor::open).filter(|_| program.start != Start::Impossible)
        else {
            return io::ErrorKind::ExecutableFileBusy.into();
        };
        self.running.execute(&self.oracle, program.starts_after, self.session_timeout);
        resume_unwind(Box::new(Executed { program, document, guard }))
    }
}

/// Each command that lives; each candidate with its session; what is told of members and terms.
type Present = (Vec<(usize, i64, u64)>, Vec<(String, SessionId)>, Vec<(String, Value)>);

impl World {
    /// Until all faults are over.
    pub async fn look_on(&self) {
        let (oracle, healed_at) = (&self.oracle, self.script.healed_at);
        if self.script.has_upgrades_only {
            oracle.watches(SETTLED).await;
            let before = self.present();
            oracle.watches(healed_at).await;
            let after = self.present();
            if before != after || before.0.is_empty() {
                oracle.fail(&format!("nothing but upgrades, and of {before:x?} is left {after:x?}"));
            }
        }
        oracle.watches(healed_at).await;
    }

    fn present(&self) -> Present {
        let hosts = 0..self.script.hosts.len();
        let of = |host| self.network(|network, _| candidates_of(&network.ensemble, host));
        (self.oracle.commands(), hosts.flat_map(of).collect(), self.network(|network, _| told(&network.ensemble)))
    }
}
