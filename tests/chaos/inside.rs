//! Faults inside a server, by Byteman: a rule is on while a file in the server's home is there, and leaves a mark where it struck.
//!
//! Never: a fault that goes on for longer than one delay after its file is gone.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const AGENT: &str = "/usr/share/java/byteman.jar";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inside {
    /// Each sync of the log takes 0.7 s.
    SlowLog,
    /// Each write waits for 0.4 s before it is applied.
    SlowCommits,
    /// Half of the answers are lost, after the commit.
    LostAnswers,
    /// A leader takes its followers for synced, whatever they say.
    Blind,
}

impl Inside {
    const ALL: [Self; 4] = [Self::SlowLog, Self::SlowCommits, Self::LostAnswers, Self::Blind];

    pub fn name(self) -> &'static str {
        match self {
            Self::SlowLog => "slow logs",
            Self::SlowCommits => "slow commits",
            Self::LostAnswers => "answers lost in the server",
            Self::Blind => "cut a blind ZK leader off",
        }
    }

    /// Class, method, condition and action.
    fn rule(self) -> [&'static str; 4] {
        match self {
            Self::SlowLog => ["persistence.FileTxnLog", "commit()", "TRUE", "delay(700)"],
            Self::SlowCommits => ["quorum.CommitProcessor", "processWrite", "TRUE", "delay(400)"],
            Self::LostAnswers => ["NIOServerCnxn", "sendResponse", "java.lang.Math.random() < 0.5", "return 0"],
            Self::Blind => ["quorum.LearnerHandler", "synced", "TRUE", "return true"],
        }
    }

    pub fn switch_on(self, home: &Path) {
        fs::remove_dir(home.join(format!("struck-{self:?}"))).ok();
        fs::write(home.join(format!("on-{self:?}")), "").unwrap();
    }

    pub fn has_struck(self, home: &Path) -> bool {
        home.join(format!("struck-{self:?}")).exists()
    }

    fn is_on(self, home: &Path) -> bool {
        home.join(format!("on-{self:?}")).exists()
    }
}

/// Whether Byteman is here (`apt-get install --no-install-recommends libbyteman-java`), and wanted (not `CHAOS_INSIDE=no`).
pub fn is_possible() -> bool {
    Path::new(AGENT).exists() && std::env::var("CHAOS_INSIDE").as_deref() != Ok("no")
}

pub fn is_any_on(home: &Path) -> bool {
    Inside::ALL.into_iter().any(|inside| inside.is_on(home))
}

pub fn switch_off(home: &Path) {
    for inside in Inside::ALL {
        fs::remove_file(home.join(format!("on-{inside:?}"))).ok();
    }
}

/// Writes the rules of this server; what its Java has to be told.
pub fn agent(home: &Path) -> Option<String> {
    if !is_possible() {
        return None;
    }
    let mut rules = String::new();
    for inside in Inside::ALL {
        let [class, method, condition, action] = inside.rule();
        let file = |name: &str| format!("new java.io.File(\"{}/{name}-{inside:?}\")", home.display());
        writeln!(rules, "RULE {inside:?}\nCLASS org.apache.zookeeper.server.{class}\nMETHOD {method}\nAT ENTRY")
            .unwrap();
        writeln!(rules, "BIND on:java.io.File = {}; struck:java.io.File = {}", file("on"), file("struck")).unwrap();
        writeln!(rules, "IF on.exists() AND {condition}\nDO struck.mkdir(); {action}\nENDRULE").unwrap();
    }
    let script = home.join("rules.btm");
    fs::write(&script, rules).unwrap();
    Some(format!("-javaagent:{AGENT}=script:{},boot:{AGENT}", script.display()))
}
