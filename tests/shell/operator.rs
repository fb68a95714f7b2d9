//! An operator: the real `zk-leaderctl` on a host of its own.

use std::ffi::OsString;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;
use zk_leader_run::commands;
use zk_leader_run::config::ctl::{self, Asked, Question};
use zk_leader_run::config::source::process_environment::ProcessEnvironment;
use zk_leader_run::core::settings::Recipe;
use zk_leader_run::zookeeper::client::acl::Acl;
use zk_leader_run::zookeeper::client::requests::{Ensemble as _, Request};

use crate::link::Life;
use crate::process::{Clock, Process};
use crate::script::BASE;
use crate::strike::Act;
use crate::world::World;

/// Of strangers.
const SESSION: Duration = Duration::from_secs(4);

/// What names the election, or for a drain the root above it.
fn typed(question: &Question) -> Asked {
    static OF_ONE: OnceLock<Asked> = OnceLock::new();
    static OF_ALL: OnceLock<Asked> = OnceLock::new();
    let load = |words: &[&str]| {
        let options = ["zk-leaderctl", "--connect", "memory:1", "--json", "--connect-timeout", "5s"];
        let loaded = ctl::load(options.iter().chain(words).map(OsString::from), &ProcessEnvironment::default());
        loaded.unwrap_or_else(|_| panic!("it is well typed"))
    };
    match question {
        Question::Drain { .. } | Question::Undrain { .. } => OF_ALL.get_or_init(|| load(&["drain", "host0"])).clone(),
        _ => OF_ONE.get_or_init(|| load(&["--path", BASE, "status"])).clone(),
    }
}

impl World {
    /// Asks and waits for the answer: the exit status, and what was printed.
    pub async fn ask(&self, question: Question) -> (u8, String) {
        let process = Process::new(self.script.hosts.len(), self.next_instance(), &Clock::new(0), &self.oracle);
        let life = Life::new(&self.wires, &process);
        let asked = typed(&question);
        let asked = Asked { access: life.access(), question, ..asked };
        self.wires.note(|| format!("operator: {:?}", asked.question));
        if let Question::Enable { .. } = asked.question {
            self.enabled.set(self.enabled.get() + 1);
        }
        let (status, text) = process.task(commands::ask(&asked)).await;
        self.wires.note(|| format!("operator: {status} {text}"));
        (status, text)
    }

    pub async fn asks_json(&self, question: Question) -> Option<Value> {
        serde_json::from_str(&self.ask(question).await.1).ok()
    }

    /// As with `zkCli.sh`.
    pub async fn delete(&self, path: String) {
        let process = Process::new(self.script.hosts.len(), self.next_instance(), &Clock::new(0), &self.oracle);
        let life = Life::new(&self.wires, &process);
        if let Ok(link) = life.open(SESSION, None).await {
            drop(link.send(Request::Delete { path, version: None }).await);
        }
    }

    /// A candidate that is named as another library names its own, for ever.
    pub async fn stand_in_line(&self) {
        let process = Process::new(self.script.hosts.len(), self.next_instance(), &Clock::new(0), &self.oracle);
        let (life, uuid) = (Life::new(&self.wires, &process), Uuid::from_u128(process.instance.into()));
        let name = match self.script.recipe {
            Recipe::CuratorLock => format!("_c_{uuid}-lock-"),
            Recipe::Kazoo => format!("{}__lock__", uuid.simple()),
            Recipe::Single => "leader".to_owned(),
            _ => format!("_c_{uuid}-latch-"),
        };
        let is_sequential = self.script.recipe != Recipe::Single;
        let with = if is_sequential { Acl::open().ephemeral_sequential() } else { Acl::open().ephemeral() };
        if let Ok(link) = life.open(SESSION, None).await {
            let (path, data) = (format!("{BASE}/election/{name}"), b"a stranger".to_vec());
            drop(link.send(Request::Create { path, data, with }).await);
            std::future::pending::<()>().await;
        }
    }

    pub async fn act(&self, act: Act) {
        let question = match act {
            Act::Enable => Question::Enable { wait: None },
            Act::Disable { lasts, wait } => Question::Disable { reason: "a test".to_owned(), lasts, wait },
            Act::Handover { to, wait, within } => {
                let to = to.and_then(|host| self.running.borrow()[host].as_ref().map(|running| running.id.clone()));
                Question::Handover { to, wait, within }
            }
            Act::Drain { host, lasts, force } => Question::Drain {
                host: format!("host{host}"),
                reason: "a test".to_owned(),
                lasts: Some(lasts),
                force,
                wait: None,
            },
        };
        let enabled = self.enabled.get();
        let (status, text) = self.ask(question).await;
        let trees = self.oracle.live();
        let is_in_force = enabled == self.enabled.get();
        if let (Act::Disable { lasts: None, wait: Some(_) }, 0, true, [host, ..]) =
            (act, status, is_in_force, &trees[..])
        {
            self.oracle.fail(&format!("`disable --wait` answers {text}, and a tree of host {host} lives"));
        }
    }
}
