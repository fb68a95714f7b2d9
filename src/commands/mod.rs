//! `zk-leaderctl`: one file for each subcommand. Each looks at an election once, and answers with a text and a status.
//!
//! Never: a wait without a limit; a znode written by a subcommand that only reads.

mod disable;
mod doctor;
mod handover;
mod history;
mod list;
mod ordering;
mod paper;
mod put;
mod status;
mod token_check;
mod verdict;
mod watch;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::Builder;

use crate::cli::ctl::PROGRAM;
use crate::cli::{EarlyExit as Stop, Stream};
use crate::clock;
use crate::config::ctl::{Asked, Format, Place, Question};
use crate::config::error::quoted;
use crate::exit::Status;
use crate::observe::words;
use crate::zookeeper::admin::view::{self, Election};
use crate::zookeeper::admin::{Destination, Failure, Visit};

/// The status where the ensemble could not be asked, or there is no such election.
const NOT_KNOWN: u8 = 2;

/// T of our own session: it must only outlive the pauses between our requests.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// What is said on standard output, and the exit status.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Answer {
    text: String,
    status: u8,
}

/// Why there is no answer: one line on standard error.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Excuse {
    sentence: String,
    status: u8,
}

impl Excuse {
    fn not_known(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), status: NOT_KNOWN }
    }

    fn usage(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), status: Status::Usage.code() }
    }

    /// Of two answers, yes and no, a refusal is neither.
    fn for_question(self, question: &Question) -> Self {
        let is_yes_or_no = matches!(question, Question::Status | Question::Watch | Question::TokenCheck { .. });
        if is_yes_or_no && self.status == Status::NoPermission.code() {
            Self { status: NOT_KNOWN, ..self }
        } else {
            self
        }
    }
}

impl From<Failure> for Excuse {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unreachable(why) => Self::not_known(format!("the ensemble was not reached ({why})")),
            Failure::Forbidden(why) => {
                Self { sentence: format!("ZooKeeper refuses it: {why}"), status: Status::NoPermission.code() }
            }
            Failure::Unknown(why) => Self::not_known(format!("the ensemble gave no answer ({why}); try again")),
        }
    }
}

/// Everything that a subcommand needs.
struct Desk<'a> {
    asked: &'a Asked,
    visit: Visit,
    paper: paper::Paper,
}

impl Desk<'_> {
    /// The base of the election that was meant.
    async fn base(&self) -> Result<String, Excuse> {
        let root = match &self.asked.place {
            Place::Base(base) => return Ok(base.as_str().to_owned()),
            Place::OnlyOneBelow(root) => root.as_str(),
        };
        let names = view::elections(&self.visit, root).await?;
        match names.as_slice() {
            [only] => Ok(format!("{root}/{only}")),
            [] => Err(Excuse::not_known(format!(
                "there is no election below {root}{}; say where with --path, or is it another ensemble?",
                self.in_chroot()
            ))),
            several => {
                let names: Vec<_> = several.iter().map(|name| quoted(name)).collect();
                Err(Excuse::usage(format!("there are several elections; name one of them: {}", names.join(", "))))
            }
        }
    }

    /// One look at it.
    async fn election(&self) -> Result<Election, Excuse> {
        let base = self.base().await?;
        let election = view::election(&self.visit, &base).await?;
        election.ok_or_else(|| self.no_election(&base))
    }

    fn no_election(&self, base: &str) -> Excuse {
        Excuse::not_known(format!(
            "there is no election at {base}{}; {PROGRAM} list shows those that there are",
            self.in_chroot()
        ))
    }

    fn in_chroot(&self) -> String {
        self.asked.chroot.as_ref().map_or_else(String::new, |chroot| format!(" in the chroot {chroot}"))
    }
}

/// Asks the ensemble, prints the answer.
pub fn run(asked: &Asked) -> ExitCode {
    let runtime = Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(answer(asked)).map_err(|excuse| excuse.for_question(&asked.question));
            // A name that is still being resolved does not hold up our exit.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(Excuse::not_known(error.to_string())),
    };
    let stop = match outcome {
        Ok(Answer { text, status }) => Stop { text, stream: Stream::Stdout, status },
        Err(Excuse { sentence, status }) => {
            Stop { text: format!("{PROGRAM}: {sentence}\n"), stream: Stream::Stderr, status }
        }
    };
    stop.print()
}

async fn answer(asked: &Asked) -> Result<Answer, Excuse> {
    if asked.question == Question::Doctor {
        return doctor::answer(asked, paper_for(asked.format)).await;
    }
    if asked.question == Question::Watch {
        return watch::for_ever(asked).await;
    }
    let visit = open(asked, SESSION_TIMEOUT).await?;
    let desk = Desk { asked, visit, paper: paper_for(asked.format) };
    let answer = match &asked.question {
        Question::Status => status::answer(&desk).await,
        Question::List => list::answer(&desk).await,
        Question::History => history::answer(&desk).await,
        Question::Handover { to, wait, within } => handover::answer(&desk, to.as_deref(), *wait, *within).await,
        Question::Disable { reason, lasts, wait } => disable::disable(&desk, reason, *lasts, *wait).await,
        Question::Enable { wait } => disable::enable(&desk, *wait).await,
        Question::TokenCheck { token } => token_check::answer(&desk, *token).await,
        Question::Put { token, znode, value, create } => put::answer(&desk, *token, znode, value, *create).await,
        Question::Doctor | Question::Watch => Err(Excuse::not_known("asked twice")),
    };
    desk.visit.close().await;
    answer
}

async fn open(asked: &Asked, session_timeout: Duration) -> Result<Visit, Excuse> {
    let destination = Destination {
        servers: asked.servers.clone(),
        chroot: asked.chroot.as_ref().map(|chroot| chroot.as_str().to_owned()).unwrap_or_default(),
        access: asked.access.clone(),
        limit: asked.limit,
        session_timeout,
    };
    Visit::open(&destination).await.map_err(|failure| match failure {
        Failure::Unreachable(why) => Excuse::not_known(format!(
            "no server of {} was reached within {} ({why}); check --connect and the network, or raise --connect-timeout",
            asked.servers,
            words::length(asked.limit)
        )),
        other => other.into(),
    })
}

fn paper_for(format: Format) -> paper::Paper {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    let coloured = format == Format::Table && std::io::stdout().is_terminal() && !no_colour && !dumb;
    paper::Paper { format, coloured, now: clock::time_of_day() }
}
