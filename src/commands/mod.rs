//! `zk-leaderctl`: one file for each subcommand. Each looks at an election once, and answers with a text and a status.
//!
//! Never: a wait without a limit; a znode written by a subcommand that only reads.

pub mod completion;
mod disable;
mod doctor;
mod drain;
mod enable;
mod handover;
mod history;
mod lease;
mod list;
mod orders;
mod output;
mod overdue;
mod put;
mod slot_state;
mod status;
mod token_check;
mod watch;

use std::cell::OnceCell;
use std::io::IsTerminal as _;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use self::orders::following::Standing;
use self::orders::interrupt::Interrupt;
use crate::background::{or_never, room_for_threads};
use crate::cli::ctl::PROGRAM;
use crate::cli::{EarlyExit, Stream};
use crate::clock;
use crate::config::ctl::{Asked, OutputFormat, Question, Selector};
use crate::config::error::{misspelt, quoted};
use crate::core::time::{in_millis, millis};
use crate::exit::Status;
use crate::observe::words;
use crate::zookeeper::admin::fleet::{self, Below};
use crate::zookeeper::admin::view::{self, ElectionView, SlotView};
use crate::zookeeper::admin::{AdminClient, AdminError, Destination, Tries};
use crate::zookeeper::client::ensure_path::parent;
use crate::zookeeper::schema::control::remedy;

/// The status where the ensemble could not be asked, or there is no such election.
const NOT_KNOWN: u8 = 2;

/// The status of an order that was not given.
const REFUSED: u8 = 1;

/// The statuses of an order that was given, by whether what is waited for has come.
const DONE: u8 = 0;
const NOT_DONE: u8 = 1;

/// As a shell tells a program that SIGINT has ended.
const INTERRUPTED: u8 = 130;

/// The word of an error where no server could be used.
const UNREACHABLE: &str = "unreachable";

/// The word of an error where there is no such election.
const NO_ELECTION: &str = "no-election";

/// T of our own session: it must only outlive the pauses between our requests.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The text for standard output, and the exit status.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Answer {
    text: String,
    status: u8,
}

/// Why there is no answer: one line on standard error.
#[derive(Clone, PartialEq, Eq, Debug)]
struct CommandError {
    sentence: String,
    status: u8,
    /// For programs: stable, to be matched on.
    word: &'static str,
}

impl CommandError {
    fn not_known(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), status: NOT_KNOWN, word: "not-known" }
    }

    fn usage(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), status: Status::Usage.code(), word: "usage" }
    }

    /// An order that is not given, as another one stands.
    fn refused(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), status: REFUSED, word: "refused" }
    }

    fn called(self, word: &'static str) -> Self {
        Self { word, ..self }
    }

    /// One object in place of the answer that a program expects.
    fn object(&self) -> Value {
        let state = if self.word == "refused" { "refused" } else { "unknown" };
        json!({ "v": 1, "state": state, "reason": self.word, "why": self.sentence })
    }

    /// For a question with the answers yes (0) and no (1), a refusal is "not known" (2).
    fn for_question(self, question: &Question) -> Self {
        let is_yes_or_no = matches!(question, Question::Status | Question::Watch | Question::TokenCheck { .. });
        if is_yes_or_no && self.status == Status::NoPermission.code() {
            Self { status: NOT_KNOWN, ..self }
        } else {
            self
        }
    }
}

impl From<AdminError> for CommandError {
    fn from(failure: AdminError) -> Self {
        match failure {
            AdminError::Unreachable(why) => {
                Self::not_known(format!("cannot reach ZooKeeper: {why}")).called(UNREACHABLE)
            }
            AdminError::Rejected(why) => Self {
                sentence: format!("cannot reach ZooKeeper: {why}"),
                status: Status::NoPermission.code(),
                word: UNREACHABLE,
            },
            AdminError::Forbidden(why) => Self {
                sentence: format!("ZooKeeper refuses it: {why}"),
                status: Status::NoPermission.code(),
                word: "forbidden",
            },
            AdminError::Refused(why) => {
                Self::not_known(format!("ZooKeeper refuses it: {why}")).called("refused-by-server")
            }
            AdminError::Unknown(why) => Self::not_known(format!("the ensemble gave no answer ({why}); try again")),
        }
    }
}

/// Everything that a subcommand needs.
struct CommandContext<'a> {
    asked: &'a Asked,
    client: AdminClient,
    output: output::Output,
    watched: overdue::Watched,
    standing: Standing,
    /// Once the only election is found, it is the one that is meant, whichever come later.
    only_one: OnceCell<String>,
}

impl<'a> CommandContext<'a> {
    async fn connect(asked: &'a Asked, tries: Tries) -> Result<Self, CommandError> {
        let (client, output) = (open(asked, session_timeout(asked), tries).await?, output_for(asked.format));
        Ok(Self::of(asked, client, output))
    }

    fn of(asked: &'a Asked, client: AdminClient, output: output::Output) -> Self {
        let (watched, standing, only_one) = (overdue::Watched::default(), Standing::default(), OnceCell::new());
        Self { asked, client, output, watched, standing, only_one }
    }

    /// An order was given: what must be told of it if we end before its end.
    fn stands(&self, order: impl Into<String>) {
        self.standing.replace(Some(order.into()));
    }

    /// The base of the election that was meant.
    async fn base(&self) -> Result<String, CommandError> {
        let root = match &self.asked.selector {
            Selector::Base(base) => return Ok(base.as_str().to_owned()),
            Selector::OnlyOneBelow(root) => root.as_str(),
        };
        if let Some(base) = self.only_one.get() {
            return Ok(base.clone());
        }
        let Below { names, closed, .. } = fleet::elections(&self.client, root).await?.unwrap_or_default();
        match names.as_slice() {
            [only] if !closed.is_empty() => {
                let (only, closed) = (quoted(only), closed.iter().map(|name| quoted(name)).collect::<Vec<_>>());
                let these = format!("which we may not read: {}", closed.join(", "));
                Err(CommandError::usage(format!("there is {only}, and there may be others, {these}; name one of them")))
            }
            [only] => Ok(self.only_one.get_or_init(|| format!("{root}/{only}")).clone()),
            [] => Err(CommandError::not_known(format!(
                "there is no election below {root}{}; say where with --path, or is it another ensemble?",
                self.in_chroot()
            ))
            .called(NO_ELECTION)),
            several => {
                let names: Vec<_> = several.iter().map(|name| quoted(name)).collect();
                Err(CommandError::usage(format!("there are several elections; name one of them: {}", names.join(", "))))
            }
        }
    }

    /// One look at it.
    async fn election(&self) -> Result<ElectionView, CommandError> {
        let base = self.base().await?;
        let election = view::election(&self.client, &base).await?;
        let Some(mut election) = election else { return Err(self.no_election(&base).await) };
        overdue::mark(self, std::iter::once(&mut election)).await?;
        Ok(election)
    }

    /// Its slots alone, and its base.
    async fn slots(&self) -> Result<(String, Vec<SlotView>), CommandError> {
        let base = self.base().await?;
        let slots = view::slots_of(&self.client, &base).await?;
        match slots {
            Some(slots) => Ok((base, slots)),
            None => Err(self.no_election(&base).await),
        }
    }

    /// What is below a root.
    async fn below(&self, root: &str) -> Result<Below, CommandError> {
        fleet::elections(&self.client, root).await?.ok_or_else(|| self.no_root(root))
    }

    fn no_root(&self, root: &str) -> CommandError {
        let place = self.in_chroot();
        CommandError::not_known(format!("{root}{place} does not exist; is it another path or ensemble?"))
            .called(NO_ELECTION)
    }

    async fn no_election(&self, base: &str) -> CommandError {
        let (place, list) = (self.in_chroot(), remedy::list_beside(base));
        let (name, names) = (base.rsplit('/').next().unwrap_or_default(), self.beside(base).await);
        let meant = misspelt(name, names.iter().map(String::as_str));
        let meant = meant.map_or_else(String::new, |meant| format!("did you mean {}? ", quoted(meant)));
        let sentence = format!("there is no election at {base}{place}; {meant}{list} shows those that there are");
        CommandError::not_known(sentence).called(NO_ELECTION)
    }

    /// The elections beside this base. What we may not read is named by nobody.
    async fn beside(&self, base: &str) -> Vec<String> {
        let root = parent(base);
        let below = if root.is_empty() { None } else { fleet::elections(&self.client, root).await.ok().flatten() };
        below.unwrap_or_default().names
    }

    fn in_chroot(&self) -> String {
        self.asked.chroot.as_ref().map_or_else(String::new, |chroot| format!(" in the chroot {chroot}"))
    }
}

/// The path of the election that was meant, or of the root.
fn path_of(asked: &Asked) -> &str {
    let (Selector::Base(path) | Selector::OnlyOneBelow(path)) = &asked.selector;
    path.as_str()
}

/// Asks the ensemble, prints the answer.
pub fn run(asked: &Asked) -> ExitCode {
    for notice in &asked.notices {
        EarlyExit { text: format!("{PROGRAM}: {}\n", words::printable(notice)), stream: Stream::Stderr, status: 0 }
            .print();
    }
    let interrupt = gives_an_order(&asked.question).then(Interrupt::held_back).flatten();
    let outcome = match runtime_for(&asked.question) {
        Ok(runtime) => {
            let outcome = runtime.block_on(answer(asked, interrupt));
            // A name that is still being resolved does not hold up our exit.
            runtime.shutdown_background();
            outcome.map_err(|error| error.for_question(&asked.question))
        }
        Err(error) => Err(error),
    };
    let stop = match outcome {
        Ok(Answer { text, status }) => EarlyExit { text, stream: Stream::Stdout, status },
        Err(error) if error.sentence.is_empty() => return by_interrupt(),
        Err(error) => {
            if asked.format.is_object() {
                let text = match asked.format {
                    OutputFormat::Json => words::printable_json(&format!("{}\n", error.object())),
                    format => output_for(format).object(&error.object()),
                };
                EarlyExit { text, stream: Stream::Stdout, status: error.status }.print();
            }
            let text = format!("{PROGRAM}: {}\n", words::printable(&error.sentence));
            EarlyExit { text, stream: Stream::Stderr, status: error.status }
        }
    };
    let status = stop.print();
    if stop.status == INTERRUPTED { by_interrupt() } else { status }
}

fn runtime_for(question: &Question) -> Result<Runtime, CommandError> {
    // The lease file is read without them.
    if !matches!(question, Question::Lease(_)) {
        room_for_threads().map_err(|error| CommandError::not_known(error.to_string()))?;
    }
    Builder::new_current_thread().enable_all().build().map_err(|error| CommandError::not_known(error.to_string()))
}

/// A shell must see by what we end.
fn by_interrupt() -> ExitCode {
    Interrupt::die();
    ExitCode::from(INTERRUPTED)
}

/// Whether it gives an order, which may stand when it ends.
const fn gives_an_order(question: &Question) -> bool {
    matches!(
        question,
        Question::Handover { .. } | Question::Disable { .. } | Question::Enable { .. } | Question::Drain { .. }
    )
}

/// The exit status, and the text for standard output or, if there is no answer, for standard error.
pub fn ask(asked: &Asked) -> Pin<Box<dyn Future<Output = (u8, String)> + '_>> {
    Box::pin(async {
        match Box::pin(answer(asked, None)).await.map_err(|error| error.for_question(&asked.question)) {
            Ok(Answer { text, status }) => (status, text),
            Err(CommandError { sentence, status, .. }) => (status, sentence),
        }
    })
}

/// If it ends before what it waits for, it says what stands.
async fn answer(asked: &Asked, interrupt: Option<Interrupt>) -> Result<Answer, CommandError> {
    let standing = Standing::default();
    let interrupted = or_never(interrupt.map(Interrupt::came));
    let outcome = tokio::select! {
        outcome = answered(asked, &standing) => outcome,
        () = interrupted => {
            let ended = match asked.question {
                Question::Disable { wait: None, .. }
                | Question::Enable { wait: None }
                | Question::Drain { wait: None, .. } => "interrupted",
                _ => "the waiting ended",
            };
            let sentence = standing.take().map_or_else(String::new, |order| format!("{ended}; {order}"));
            return Err(CommandError { sentence, status: INTERRUPTED, word: "interrupted" });
        }
    };
    outcome.map_err(|failure| match standing.take() {
        Some(order) => {
            CommandError { sentence: format!("{}; only the waiting ended: {order}", failure.sentence), ..failure }
        }
        None => failure,
    })
}

async fn answered(asked: &Asked, standing: &Standing) -> Result<Answer, CommandError> {
    match asked.question {
        Question::Lease(ref question) => return lease::answer(question, output_for(asked.format)),
        Question::Doctor => return doctor::answer(asked, output_for(asked.format)).await,
        Question::Watch => return watch::for_ever(asked, status::Watch).await,
        Question::List { watch: true } => return watch::for_ever(asked, list::Watch::default()).await,
        Question::History { watch: true, lines } => {
            return watch::for_ever(asked, history::Watch::of(lines)).await;
        }
        _ => {}
    }
    let value = put::value(&asked.question)?;
    let context = CommandContext::connect(asked, Tries::UntilLimit).await?;
    let context = CommandContext { standing: Standing::clone(standing), ..context };
    let answer = match &asked.question {
        Question::Status => status::answer(&context).await,
        Question::List { .. } => list::answer(&context).await,
        Question::History { lines, .. } => history::answer(&context, *lines).await,
        Question::Handover { to, wait, within } => handover::answer(&context, to.as_deref(), *wait, *within).await,
        Question::Disable { reason, lasts, wait } => disable::answer(&context, reason, *lasts, *wait).await,
        Question::Enable { wait } => enable::answer(&context, *wait).await,
        Question::Drain { host, reason, lasts, force, wait } => {
            drain::drain(&context, host, (reason, *lasts, *force), *wait).await
        }
        Question::Undrain { host } => drain::undrain(&context, host).await,
        Question::TokenCheck { token } => token_check::answer(&context, *token).await,
        Question::Put { token, znode, create, .. } => put::answer(&context, *token, znode, &value, *create).await,
        Question::Doctor | Question::Watch | Question::Lease(_) => Err(CommandError::not_known("asked twice")),
    };
    context.client.close().await;
    answer
}

/// Long enough to use all of `--connect-timeout` for one server (`Pace::connection`).
fn session_timeout(asked: &Asked) -> Duration {
    SESSION_TIMEOUT.max(asked.limit * 5 / 3)
}

async fn open(asked: &Asked, session_timeout: Duration, tries: Tries) -> Result<AdminClient, CommandError> {
    let destination = Destination {
        servers: asked.servers.clone(),
        chroot: asked.chroot.as_ref().map(|chroot| chroot.as_str().to_owned()).unwrap_or_default(),
        access: asked.access.clone(),
        limit: asked.limit,
        session_timeout,
        tries,
    };
    let began = clock::now().lease;
    AdminClient::open(&destination).await.map_err(|failure| match failure {
        AdminError::Unreachable(why) => {
            // More time would change nothing where it was not used up.
            let is_late = began.until(clock::now().lease) >= asked.limit;
            let (within, more) = if is_late {
                (format!(" within {}", words::length(asked.limit)), ", or raise --connect-timeout")
            } else {
                (String::new(), "")
            };
            let remedy = if asked.is_connect_given {
                format!("check --connect and the network{more}")
            } else {
                "that is the default; name the servers by --connect, ZK_LEADER_RUN_CONNECT or the configuration file"
                    .to_owned()
            };
            CommandError::not_known(format!("cannot reach ZooKeeper{within}: {why}; {remedy}")).called(UNREACHABLE)
        }
        other => other.into(),
    })
}

fn output_for(format: OutputFormat) -> output::Output {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    let coloured = format.is_table() && std::io::stdout().is_terminal() && !no_colour && !dumb;
    output::Output { format, coloured, now: clock::time_of_day() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs match on them.
    #[test]
    fn every_word_for_a_missing_answer_is_in_the_documents() {
        let documents = include_str!("../../docs/json.md");
        let begin = documents.find("## No answer").expect("they tell of it");
        let sentence = documents[begin..].split("## Orders").next().unwrap_or_default();
        let why = String::new;
        let failures = [
            AdminError::Unreachable,
            AdminError::Rejected,
            AdminError::Forbidden,
            AdminError::Refused,
            AdminError::Unknown,
        ]
        .map(|it| it(why()));
        let failures = failures.map(CommandError::from).into_iter();
        for error in failures.chain([CommandError::usage(""), CommandError::not_known("").called(NO_ELECTION)]) {
            assert!(sentence.contains(&format!("`{}`", error.word)), "{} is missing in: {sentence}", error.word);
        }
    }
}
