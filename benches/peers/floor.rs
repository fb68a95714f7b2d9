//! The floor: a contender by hand, with the same requests as ours and nothing else. No second process, no lease that is renewed,
//! no tree that is proven empty, no safety; only what an election, a record and a term cost on the wire, then fork and exec.
//!
//! `floor ADDRESS BASE COMMAND…`. SIGTERM to it ends the command, then it releases.

use std::io;
use std::process::{Child, Command};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use crate::jute::{Connection, EVENT, Fields, request};

const SESSION_TIMEOUT: Duration = Duration::from_secs(60);
/// As long as a lease record of ours.
const RECORD: [u8; 320] = [b' '; 320];
const ANY_VERSION: i32 = -1;

struct Contender<'a> {
    connection: Connection,
    base: &'a str,
    candidate: String,
    /// Of the term and of the record.
    versions: [i32; 2],
}

pub fn run(arguments: &[String]) -> io::Result<()> {
    let [address, base, command @ ..] = arguments else {
        return Err(io::Error::other("floor ADDRESS BASE COMMAND…"));
    };
    let connection = Connection::open(address, SESSION_TIMEOUT)?;
    let mut contender = Contender { connection, base, candidate: String::new(), versions: [0; 2] };
    contender.wait_for_turn()?;
    contender.take_over()?;
    let mut child = Command::new(&command[0]).args(&command[1..]).spawn()?;
    end(&mut child)?;
    contender.release()
}

/// The znodes that a contender expects.
pub fn prepare(connection: &mut Connection, base: &str) -> io::Result<()> {
    connection.make(&format!("{base}/election"), b"")?;
    connection.make(&format!("{base}/term"), b"{}")?;
    connection.make(&format!("{base}/lease"), &RECORD)
}

fn end(child: &mut Child) -> io::Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGCHLD);
    // Not before the command was forked, which would inherit it.
    signals.thread_block()?;
    while child.try_wait()?.is_none() {
        if signals.wait()? == Signal::SIGTERM {
            kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM)?;
        }
    }
    Ok(())
}

impl Contender<'_> {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }

    /// The candidate and the first look in one round; then one look after each departure of the one before us.
    fn wait_for_turn(&mut self) -> io::Result<()> {
        let prefix = self.path("election/_c_00000000-0000-0000-0000-000000000000-latch-");
        self.connection.ask(request::CREATE, &Fields::default().create(&prefix, b"floor", true));
        self.ask_for_all();
        self.connection.send()?;
        self.candidate = self.connection.hear()?.ok()?.text();
        while let Some(before) = self.look()? {
            let watched = Fields::default().text(&self.path(&format!("election/{before}"))).flag(true);
            if self.connection.call(request::EXISTS, &watched)?.error == 0 {
                self.wait_for_event()?;
            }
            self.ask_for_all();
            self.connection.send()?;
        }
        Ok(())
    }

    fn ask_for_all(&mut self) {
        for book in ["term", "lease"] {
            let path = self.path(book);
            self.connection.ask(request::GET_DATA, &Fields::default().text(&path).flag(false));
        }
        let election = self.path("election");
        self.connection.ask(request::GET_CHILDREN, &Fields::default().text(&election).flag(false));
    }

    /// Who is before us.
    fn look(&mut self) -> io::Result<Option<String>> {
        let term = self.connection.hear()?.ok()?.version_of_data();
        let record = self.connection.hear()?.ok()?.version_of_data();
        self.versions = [term, record];
        let mut children = self.connection.hear()?.ok()?.children();
        children.sort();
        let ours = children.iter().position(|child| self.candidate.ends_with(child.as_str()));
        let ours = ours.ok_or_else(|| io::Error::other("our candidate is gone"))?;
        Ok(ours.checked_sub(1).map(|before| children[before].clone()))
    }

    fn wait_for_event(&mut self) -> io::Result<()> {
        self.connection.stream().set_read_timeout(Some(SESSION_TIMEOUT / 3))?;
        loop {
            match self.connection.hear() {
                Ok(reply) if reply.xid == EVENT => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.connection.ping()?,
                Err(error) => return Err(error),
            }
        }
        self.connection.stream().set_read_timeout(None)
    }

    fn take_over(&mut self) -> io::Result<()> {
        let check = Fields::default().text(&self.candidate).int(ANY_VERSION);
        let set = |path: &str, version| Fields::default().text(path).bytes(&RECORD).int(version);
        let multi = Fields::default()
            .operation(request::CHECK, &check)
            .operation(request::SET_DATA, &set(&self.path("term"), self.versions[0]))
            .operation(request::SET_DATA, &set(&self.path("lease"), self.versions[1]));
        self.connection.call(request::MULTI, &multi.end())?.ok().map(drop)
    }

    fn release(mut self) -> io::Result<()> {
        let check = Fields::default().text(&self.path("term")).int(self.versions[0] + 1);
        let delete = Fields::default().text(&self.candidate).int(ANY_VERSION);
        let free = Fields::default().text(&self.path("lease")).bytes(&RECORD).int(self.versions[1] + 1);
        let multi = Fields::default()
            .operation(request::CHECK, &check)
            .operation(request::DELETE, &delete)
            .operation(request::SET_DATA, &free);
        self.connection.call(request::MULTI, &multi.end())?.ok()?;
        self.connection.close()
    }
}
