//! The end of a run: what must hold once all faults are over.

use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::AbortHandle;
use tokio::time::sleep;
use zk_leader_run::config::ctl::Question;
use zk_leader_run::core::lease::{connection_timeout, silence_limit};

use crate::host::Running;
use crate::memory::network::Network;
use crate::oracle::Instance;
use crate::script::{BASE, SLOT, STAND_BACK, Script};
use crate::time;
use crate::world::World;

/// From the end of a tree that was stopped to the start of the next.
const HANDOVER: Duration = Duration::from_secs(1);
/// From when the servers serve again to the start of a command.
const BACK: Duration = Duration::from_secs(1);
/// Of one host in a session timeout in which nothing happens: a leader renews eight times, the next in line reads as often, and either
/// may look at everything once.
const QUIET: u64 = 60;
/// Percent of T: a connection that says nothing is lost after 40.
const NOTICED: u32 = 45;
const HISTORY: Question = Question::History { watch: false, lines: usize::MAX };
/// Of hosts far from the servers.
const DISTANT: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(200)];
/// What is published is up to date after this time.
const PUBLISHED: Duration = Duration::from_secs(2);

/// How long it took when all faults were over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Measured {
    /// From the end of the faults until somebody led.
    pub healed: Duration,
    /// From the end of one tree until the next one started, after an orderly stop.
    pub handed_over: Duration,
    /// From when servers that were all down serve again until somebody led.
    pub back: Duration,
}

impl World {
    pub async fn last_judgement(&self, strikes: Vec<AbortHandle>) -> Measured {
        let mut measured = Measured::default();
        let (oracle, healed_at) = (&self.oracle, self.script.healed_at);
        self.look_on().await;
        strikes.iter().for_each(AbortHandle::abort);
        self.heal();
        self.enable().await;
        if self.script.is_cron {
            self.some_slot_is_run().await;
        } else {
            measured.healed = self.somebody_leads(healed_at).await;
            self.restart_crippled();
            oracle.watches(time::elapsed() + self.script.heal_limit()).await;
            self.as_many_lead_as_can().await;
            if oracle.violation().is_none() {
                self.check_what_is_published().await;
            }
            if let (None, Some(leader)) = (oracle.violation(), oracle.leader()) {
                self.change_leaders(leader, &mut measured).await;
            }
        }
        oracle.watches(time::elapsed() + self.script.heal_limit()).await;
        if self.stays() {
            oracle.fail("an order to hand over stays after its time");
        }
        if oracle.violation().is_none() {
            self.stop_all().await;
        }
        measured
    }

    async fn enable(&self) {
        let mut by = time::elapsed() + self.script.heal_limit();
        if self.script.has_operator() {
            // What operators have sent has arrived.
            sleep(Duration::from_secs(1)).await;
            while self.ask(Question::Enable { wait: None }).await.0 != 0 {
                if time::elapsed() > by {
                    self.oracle.fail("`enable` has no success though all faults are over");
                    by = Duration::MAX;
                }
                sleep(Duration::from_secs(1)).await;
            }
            for host in 0..self.script.hosts.len() {
                self.ask(Question::Undrain { host: format!("host{host}") }).await;
            }
        }
    }

    /// A process whose check has lost its guard never leads again: somebody restarts it.
    fn restart_crippled(&self) {
        let running = self.running.borrow();
        let is_crippled = |running: &&Rc<Running>| running.guards().iter().any(|guard| guard.process.is_dead());
        running.iter().flatten().filter(is_crippled).for_each(|running| running.crash());
    }

    async fn somebody_leads(&self, healed_at: Duration) -> Duration {
        let oracle = &self.oracle;
        if !oracle.reaches(healed_at + self.script.heal_limit(), || oracle.leader().is_some()).await {
            oracle.fail("nobody leads though all faults are over");
        }
        time::elapsed().saturating_sub(healed_at)
    }

    /// And go on leading.
    async fn as_many_lead_as_can(&self) {
        let (oracle, wanted) = (&self.oracle, self.script.most_leaders());
        if !oracle.reaches(time::elapsed() + self.script.heal_limit(), || oracle.leaders().len() == wanted).await {
            return oracle.fail(&format!("{:?} lead, of {wanted} that could", oracle.leaders()));
        }
        let (before, since) = (oracle.commands(), time::elapsed().as_secs() + 1);
        oracle.watches(time::elapsed() + self.script.session_timeout).await;
        if oracle.commands() != before {
            oracle.fail(&format!("nothing happens, and in place of {before:?} {:?} lead", oracle.commands()));
        }
        let seconds = since..time::elapsed().as_secs();
        let asked = self.wires.with(|inner, _| inner.asked_in(self.script.hosts.len(), seconds));
        if asked > QUIET {
            oracle.fail(&format!("nothing happens, and one host sends {asked} requests in a session timeout"));
        }
    }

    /// From now on a command runs until it is stopped. Each process that ends is followed by one that joins the present slot.
    async fn some_slot_is_run(&self) {
        let (oracle, starts) = (&self.oracle, self.oracle.starts());
        let by = time::elapsed() + self.script.heal_limit() + 2 * SLOT;
        if !oracle.reaches(by, || oracle.starts() > starts || oracle.leader().is_some()).await {
            oracle.fail("no slot is run though all faults are over");
        }
    }

    async fn change_leaders(&self, leader: usize, measured: &mut Measured) {
        match self.script.seed % 4 {
            0 => measured.back = self.outage().await,
            3 if self.may_be_restarted() => self.restarted().await,
            _ if self.script.leaders > 1 => measured.handed_over = self.hand_over(leader).await,
            1 => self.ordered_handover().await,
            2 => self.disabled_for_a_while(leader).await,
            _ => measured.handed_over = self.hand_over(leader).await,
        }
    }

    /// All servers are down for a while: their sessions live on, and somebody leads as soon as they serve again. With
    /// `--on-pause freeze` no command runs meanwhile, unless promises keep it.
    async fn outage(&self) -> Duration {
        let (oracle, servers) = (&self.oracle, self.script.servers);
        let length = self.outage_length();
        self.wires.note(|| format!("all servers are down for {length:?}"));
        let (before, down_at) = (self.instances(), time::elapsed());
        let numbers: Vec<_> = oracle.commands().into_iter().map(|(.., number)| number).collect();
        self.network(|network, now| (0..servers).for_each(|server| network.ensemble.kill(server, now)));
        oracle.watches(down_at + self.script.session_timeout * NOTICED / 100).await;
        let mut run_on = oracle.run_on(&numbers);
        run_on.retain(|host| self.script.hosts[*host].vouch.is_none());
        if self.script.freezes() && !run_on.is_empty() {
            oracle.fail(&format!("commands of {run_on:?} run on without contact"));
        }
        oracle.watches(down_at + length).await;
        if self.instances() == before {
            self.check_that_promises_keep(&numbers);
        }
        self.network(|network, now| (0..servers).for_each(|server| network.ensemble.start(server, now)));
        let have_leader = || self.network(|network, _| network.ensemble.leader().is_some());
        oracle.reaches(time::elapsed() + self.script.heal_limit(), have_leader).await;
        let since = time::elapsed();
        self.wires.note(|| "the servers serve again".to_owned());
        let limit = self.soon(BACK);
        let runs = || oracle.commands().iter().any(|(.., number)| !oracle.run_on(&[*number]).is_empty());
        let mut is_led = oracle.reaches(since + limit, runs).await;
        // One that was told to stop before there was contact has until the end of its lease.
        if !is_led && oracle.is_stopping() {
            oracle.reaches(since + self.script.session_timeout, || !oracle.is_stopping()).await;
            is_led = oracle.reaches(time::elapsed() + limit, runs).await;
        }
        // Who has ended meanwhile could not close its session.
        if !is_led && self.instances() == before {
            oracle.fail(&format!("nobody leads {limit:?} after the servers serve again"));
        }
        time::elapsed().saturating_sub(since)
    }

    /// With promises, of up to twelve leases.
    fn outage_length(&self) -> Duration {
        let Script { seed, session_timeout, .. } = self.script;
        match self.script.hosts.iter().filter_map(|host| host.vouch).min() {
            None => session_timeout * (1 + (seed / 4 % 6) as u32) / 2,
            // The last write may be some renewals old, and the limit counts from it.
            Some(limit) => {
                let drawn = session_timeout * (1 + (seed / 4 % 120) as u32) / 10;
                drawn.min(limit.saturating_sub(session_timeout))
            }
        }
    }

    /// Nothing but the servers is away: of hosts that vouch for one another, every command runs on.
    fn check_that_promises_keep(&self, numbers: &[u64]) {
        let alive: Vec<_> = self.oracle.commands().into_iter().map(|(.., number)| number).collect();
        let is_kept = |number: &&u64| alive.contains(number);
        if self.script.hosts.iter().all(|host| host.vouch.is_some()) && !numbers.iter().all(|number| is_kept(&number)) {
            self.oracle.fail("nothing but the servers was away, and a command that lives on promises has ended");
        }
    }

    fn instances(&self) -> Vec<Option<Instance>> {
        let running = self.running.borrow();
        running.iter().map(|running| running.as_ref().map(|running| running.process.instance)).collect()
    }

    /// `limit` on an idle network, without steps, which take 0.2 s here.
    fn soon(&self, limit: Duration) -> Duration {
        limit + 30 * self.script.latency[1] + Duration::from_millis(400)
    }

    /// One server may lag behind, and the lease outlasts that.
    fn may_be_restarted(&self) -> bool {
        let Script { seed, servers, session_timeout, .. } = self.script;
        seed % 8 == 7 && servers > 1 && session_timeout >= Duration::from_secs(4)
    }

    /// The lease outlasts four answers of such a server: to a take-over, to the sync after its connection was lost, to a renewal on the
    /// version before the one whose answer was lost, and to the next one, which must come within L(1 - ρ) - 2G - L / 4. Each is two
    /// ways long besides, as are the new connection and two reads.
    fn lag(&self) -> Duration {
        (self.script.session_timeout / 8).saturating_sub(2 * self.script.latency[1])
    }

    /// All hosts are restarted while one server lags behind. Whoever leads first loses its connection at once, and leads on,
    /// whichever server it finds; its token is good at each of them. Nobody takes the lease from a holder that is there.
    async fn restarted(&self) {
        let (oracle, before) = (&self.oracle, self.oracle.newest_token());
        self.network(|network, now| {
            let lagging = (0..self.script.servers).find(|server| network.ensemble.leader() != Some(*server));
            if let Some(server) = lagging {
                network.ensemble.lag(server, self.lag(), now);
            }
        });
        (0..self.script.hosts.len()).for_each(|host| self.terminate(host));
        let first = || oracle.leaders().into_iter().find(|(_, token)| *token > before);
        if !oracle.reaches(time::elapsed() + self.script.heal_limit() * 2, || first().is_some()).await {
            return oracle.fail("nobody leads after a restart of all hosts");
        }
        let Some((host, token)) = first() else { return };
        self.network(|network, now| (0..self.script.servers).for_each(|server| network.reset(host, server, now)));
        let (status, text) = self.ask(Question::TokenCheck { token }).await;
        oracle.watches(time::elapsed() + self.script.session_timeout * 3 / 8).await;
        if !oracle.leaders().contains(&(host, token)) {
            oracle.fail(&format!("host {host} has lost its connection for a moment, and its term {token}"));
        } else if status == 1 {
            oracle.fail(&format!("`token-check` refuses the token {token} of a leader: {text}"));
        }
        oracle.watches(time::elapsed() + PUBLISHED).await;
        match self.asks_json(HISTORY).await {
            Some(history) => self.check_nobody_is_deposed(&history, before),
            None => oracle.fail("the history is not told"),
        }
    }

    fn check_nobody_is_deposed(&self, history: &Value, after: i64) {
        let terms = history["terms"].as_array().into_iter().flatten();
        let mut later = terms.filter(|term| term["token"].as_i64().is_some_and(|token| token > after));
        let is_deposed = |term: &&Value| term["ended"].as_str().is_some_and(|ended| ended.starts_with("deposed"));
        if let Some(term) = later.find(is_deposed) {
            self.oracle.fail(&format!("somebody has taken the lease from a holder that was there: {term}"));
        }
    }

    /// The leader is asked to stop: another host leads soon.
    async fn hand_over(&self, leader: usize) -> Duration {
        let oracle = &self.oracle;
        let many = oracle.leaders().len();
        self.wires.note(|| format!("host {leader} is asked to stop"));
        let is_mute = self.script.leaders == 1 && self.script.seed % 3 == 0;
        if is_mute {
            self.mute_others(leader);
        }
        self.terminate(leader);
        let by = time::elapsed() + self.script.stop_limit(leader);
        oracle.reaches(by, || oracle.leaders().len() < many).await;
        if oracle.leaders().len() >= many || self.script.hosts.len() <= many {
            return Duration::ZERO;
        }
        let mut limit = self.soon(HANDOVER);
        if is_mute {
            limit += silence_limit(self.script.session_timeout) + connection_timeout(self.script.session_timeout);
        }
        let ended = oracle.ended_at();
        if !oracle.reaches(ended + limit, || oracle.leaders().len() >= many).await {
            oracle.fail(&format!("nobody has taken over in {limit:?} after an orderly stop"));
        }
        // Who has asked nothing since does not know it yet, and could not close its session in time.
        self.network(Network::reset_mute);
        oracle.started_at().saturating_sub(ended)
    }

    /// The open connections of the other hosts carry nothing but pings and events, as after a proxy that has lost a reply: a
    /// request without an answer is given up, and another connection asked.
    fn mute_others(&self, leader: usize) {
        let others = (0..self.script.hosts.len()).filter(|host| *host != leader);
        self.network(|network, now| others.for_each(|host| network.mute(host, now)));
    }

    /// `handover --wait` is done when a new term has begun. Each order ends one term, and does not stay.
    async fn ordered_handover(&self) {
        let (oracle, starts, token) = (&self.oracle, self.oracle.starts(), self.oracle.newest_token());
        let wait = self.script.seed % 8 == 1;
        let within = Duration::from_secs(if wait { 30 } else { 6 });
        let (status, text) = self.ask(Question::Handover { to: None, wait, within }).await;
        if wait && status == 0 && oracle.newest_token() == token {
            oracle.fail(&format!("`handover --wait` answers {text}, and no term has begun"));
        }
        if wait && self.stays() {
            oracle.fail(&format!("`handover --wait` answers {status} {text}, and its order stays"));
        }
        let is_led_anew = || oracle.starts() > starts && oracle.leader().is_some();
        if status == 0 && !oracle.reaches(time::elapsed() + self.script.heal_limit(), is_led_anew).await {
            oracle.fail(&format!("`handover` answers {status} {text}, and nobody leads anew"));
        }
        let starts = oracle.starts();
        oracle.watches(time::elapsed() + within.min(Duration::from_secs(6)) + PUBLISHED).await;
        if status == 0 && (oracle.starts() != starts || oracle.leader().is_none()) {
            oracle
                .fail(&format!("after one `handover` ({text}) the next leader has to go, too: {:?}", oracle.leaders()));
        }
    }

    /// Whether the servers know an order to hand over.
    fn stays(&self) -> bool {
        self.network(|network, _| {
            let leader = network.ensemble.leader();
            let tree = leader.map(|leader| network.ensemble.tree(leader));
            let control = tree.and_then(|tree| tree.node(&format!("{BASE}/control")).ok());
            control.is_some_and(|control| String::from_utf8_lossy(&control.data).contains("\"handover\""))
        })
    }

    /// `disable --wait` is done when no command runs, none is started until `enable`, and then one is.
    async fn disabled_for_a_while(&self, leader: usize) {
        let (oracle, wait) = (&self.oracle, Some(Duration::from_secs(30)));
        if self.script.seed % 8 == 2 {
            // The order comes while another host takes over, far from the servers.
            self.set_latencies(DISTANT);
            self.terminate(leader);
            sleep(Duration::from_millis(self.script.seed / 8 * 37 % 1_200)).await;
        } else {
            self.refused_handover().await;
        }
        let disable = Question::Disable { reason: "a test".to_owned(), lasts: None, wait };
        let (status, text) = self.ask(disable).await;
        if status == 0 && !oracle.live().is_empty() {
            oracle.fail(&format!("`disable --wait` answers {text}, and a tree of {:?} lives", oracle.live()));
        }
        let starts = oracle.starts();
        oracle.watches(time::elapsed() + Duration::from_secs(5)).await;
        if status != 0 || oracle.leader().is_some() || oracle.starts() != starts {
            oracle.fail(&format!("disabled ({status} {text}), and a command is run: {:?}", oracle.leaders()));
        }
        self.set_latencies(self.script.latency);
        self.enable_again().await;
    }

    fn set_latencies(&self, latency: [Duration; 2]) {
        let (hosts, servers) = (self.script.hosts.len(), self.script.servers);
        let links = (0..hosts).flat_map(|host| (0..servers).map(move |server| (host, server)));
        self.network(|network, _| links.for_each(|(host, server)| network.set_latency(host, server, latency)));
    }

    async fn refused_handover(&self) {
        let disable = Question::Disable { reason: "a test".to_owned(), lasts: None, wait: None };
        let is_disabled = self.ask(disable).await.0 == 0;
        let within = Duration::from_secs(30);
        let (status, text) = self.ask(Question::Handover { to: None, wait: false, within }).await;
        if is_disabled && status == 0 {
            self.oracle.fail(&format!("`handover` answers {text} while disabled"));
        }
    }

    async fn enable_again(&self) {
        let oracle = &self.oracle;
        let (status, text) = self.ask(Question::Enable { wait: None }).await;
        let limit = self.soon(HANDOVER);
        if status != 0 || !oracle.reaches(time::elapsed() + limit, || oracle.leader().is_some()).await {
            oracle.fail(&format!("enabled ({status} {text}), and nobody leads after {limit:?}"));
        }
    }

    /// The status and the history tell who leads, and list each term once in order.
    async fn check_what_is_published(&self) {
        let before = self.oracle.leaders();
        sleep(PUBLISHED).await;
        let (status, history) = (self.asks_json(Question::Status).await, self.asks_json(HISTORY).await);
        let leaders = self.oracle.leaders();
        let (Some(status), Some(history)) = (status, history) else {
            return self.oracle.fail("status or history is not told");
        };
        self.check_stand_back(&history);
        if leaders != before || leaders.is_empty() {
            return;
        }
        for (host, token) in &leaders {
            if !is_told(&status, *host, *token) {
                self.oracle.fail(&format!("host {host} leads under {token}, and the status tells {status}"));
            }
            if !is_told(&history, *host, *token) {
                self.oracle.fail(&format!("host {host} leads under {token}, and the history tells {history}"));
            }
        }
    }

    /// A process whose command has failed too often gives others the time to lead.
    fn check_stand_back(&self, history: &Value) {
        let mut terms: Vec<&Value> = history["terms"].as_array().into_iter().flatten().collect();
        terms.sort_by_key(|term| term["token"].as_i64());
        for (index, term) in terms.iter().enumerate().filter(|(_, term)| term["ended"] == "crash-loop") {
            let next = terms[index + 1..].iter().find(|next| next["id"] == term["id"]).copied();
            let left = term["until"].as_i64().zip(next.and_then(|next| next["since"].as_i64()));
            if left.is_some_and(|(until, since)| since - until < STAND_BACK.as_millis() as i64 - 100) {
                self.oracle.fail(&format!("it does not stand back: {term}, then {}", next.unwrap_or(&Value::Null)));
            }
        }
    }

    /// All are asked to stop: they end, and leave no session behind.
    async fn stop_all(&self) {
        let oracle = &self.oracle;
        self.wires.note(|| "all are asked to stop".to_owned());
        self.is_final.set(true);
        (0..self.script.hosts.len()).for_each(|host| self.terminate(host));
        let longest = (0..self.script.hosts.len()).map(|host| self.script.stop_limit(host)).max().unwrap_or_default();
        let are_gone = || self.running.borrow().iter().flatten().next().is_none();
        if !oracle.reaches(time::elapsed() + longest, are_gone).await {
            oracle.fail("processes that were asked to stop live on");
        }
        sleep(Duration::from_secs(1)).await;
        let sessions = self.network(|network, _| {
            let ensemble = &network.ensemble;
            ensemble.leader().map(|leader| ensemble.sessions(leader).count())
        });
        if sessions != Some(0) {
            oracle.fail(&format!("{sessions:?} sessions are left open by processes that have ended"));
        }
    }
}

/// Whether it tells somewhere that this host has this term, as one that lasts.
fn is_told(told: &Value, host: usize, token: i64) -> bool {
    match told {
        Value::Object(fields) => {
            let is_it = fields.get("token").and_then(Value::as_i64) == Some(token);
            (is_it && told.to_string().contains(&format!("host{host}")))
                || fields.values().any(|field| is_told(field, host, token))
        }
        Value::Array(items) => items.iter().any(|item| is_told(item, host, token)),
        _ => false,
    }
}
