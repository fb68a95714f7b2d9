//! What is run: read from the environment, so that `make chaos SEEDS=… FAULTS=…` and a plain `cargo test` are one; and what
//! the seed draws besides the faults. Without `CHAOS_SEEDS` a seed is drawn, which the report tells.

use std::path::PathBuf;
use std::time::Duration;

use super::dice::Dice;
use super::fault::WEEK;

/// One run.
#[derive(Clone, Debug)]
pub struct Settings {
    pub seed: u64,
    pub faults: usize,
    /// So many upgrades beside the faults, and calm times between these; or none.
    pub upgrades: usize,
    pub hosts: usize,
    /// The shortest of them.
    pub session_timeout: Duration,
    pub election: Election,
    /// Our program, or a sabotaged build of it.
    pub program: PathBuf,
    /// The name of a sabotage: it must be caught.
    pub control: Option<String>,
    /// Where logs, JSON and SVG go; everything else is removed.
    pub report: PathBuf,
}

/// What the hosts are started with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Election {
    pub recipe: &'static str,
    pub leaders: usize,
    pub preempts: bool,
    /// Each call is for a job, as from cron.
    pub runs_once: bool,
    /// `--vouch-limit`, with `--vouch`.
    pub vouch: Option<Duration>,
    /// Every command runs until it is told to stop, and then ends.
    pub is_calm: bool,
    pub hosts: Vec<HostDraw>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostDraw {
    pub session_timeout: Duration,
    pub priority: i16,
}

impl Election {
    pub fn plain(hosts: usize, session_timeout: Duration) -> Self {
        let host = HostDraw { session_timeout, priority: 0 };
        Self {
            recipe: "sequential",
            leaders: 1,
            preempts: false,
            runs_once: false,
            vouch: None,
            is_calm: false,
            hosts: vec![host; hosts],
        }
    }

    /// Only what may be combined: a single seat has one leader and no ranks, a job has one leader.
    fn draw(seed: u64, hosts: usize, session_timeout: Duration) -> Self {
        let mut dice = Dice::new(seed ^ 0xE1EC_7104);
        let mut drawn = Self::plain(hosts, session_timeout);
        let is_single = dice.percent(20);
        let is_ranked = dice.percent(40) && !is_single;
        drawn.recipe = if is_single { "single" } else { "sequential" };
        drawn.runs_once = dice.percent(25);
        drawn.leaders = if dice.percent(35) && !is_single && !drawn.runs_once { 2 } else { 1 };
        drawn.preempts = dice.percent(70) && is_ranked && drawn.leaders == 1;
        let limit = session_timeout * dice.pick(&[3, 6, 20]).unwrap();
        drawn.vouch = (dice.percent(40) && !is_single && drawn.leaders == 1).then_some(limit);
        let timeouts = if dice.percent(40) { [2, 3, 4] } else { [2; 3] };
        for host in &mut drawn.hosts {
            host.session_timeout = session_timeout * dice.pick(&timeouts).unwrap() / 2;
            host.priority = if is_ranked { dice.pick(&[0, 0, 5, 9]).unwrap() } else { 0 };
        }
        drawn
    }

    /// Beside upgrades nobody gives way without a fault.
    fn fit_for(self, upgrades: usize) -> Self {
        if upgrades == 0 { self } else { Self { preempts: false, runs_once: false, ..self } }
    }

    /// In a few words.
    pub fn told(&self) -> String {
        let mut words = vec![self.recipe.to_owned()];
        let mut say = |is_so: bool, word: String| {
            if is_so {
                words.push(word);
            }
        };
        let distinct = |of: fn(&HostDraw) -> String| self.hosts.iter().map(of).collect::<Vec<_>>().join("/");
        say(self.leaders > 1, format!("{} leaders", self.leaders));
        let ranks = distinct(|host| host.priority.to_string());
        let preempting = if self.preempts { ", preempting" } else { "" };
        say(self.hosts.iter().any(|host| host.priority != 0), format!("priorities {ranks}{preempting}"));
        say(self.runs_once, "jobs that run once".to_owned());
        if let Some(limit) = self.vouch {
            say(true, format!("vouched for up to {} ms", limit.as_millis()));
        }
        let timeouts = distinct(|host| host.session_timeout.as_millis().to_string());
        let is_mixed = self.hosts.iter().any(|host| host.session_timeout != self.hosts[0].session_timeout);
        say(is_mixed, format!("T = {timeouts} ms"));
        words.join(", ")
    }
}

impl Settings {
    /// A scene of its own, without a plan.
    pub fn scene(name: &str, election: Election) -> Self {
        let template = Self::of_this_run().remove(0);
        let session_timeout = election.hosts[0].session_timeout;
        let report = template.report.with_file_name(name);
        Self { seed: 1, upgrades: 0, hosts: election.hosts.len(), session_timeout, election, report, ..template }
    }

    /// One for each seed of `CHAOS_SEEDS` (numbers and ranges such as `1-3`, with commas); `CHAOS_FAULTS` in each.
    pub fn of_this_run() -> Vec<Self> {
        let text = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
        let number = |name: &str, default: &str| text(name, default).parse().expect("it is a number");
        let program = text("CHAOS_PROGRAM", env!("CARGO_BIN_EXE_zk-leader-run"));
        let control = std::env::var("CHAOS_CONTROL").ok();
        let label = control.as_ref().map(|name| format!("{name}-")).unwrap_or_default();
        let beside = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("chaos");
        let reports = std::env::var_os("CHAOS_REPORTS").map_or(beside, PathBuf::from);
        let (hosts, upgrades) = (number("CHAOS_HOSTS", "5"), number("CHAOS_UPGRADES", "0"));
        let session_timeout = Duration::from_millis(text("CHAOS_T", "2000").parse().expect("milliseconds"));
        let run = |seed: u64| Self {
            seed,
            faults: number("CHAOS_FAULTS", "20"),
            upgrades,
            hosts,
            session_timeout,
            election: if control.is_some() {
                Election::plain(hosts, session_timeout)
            } else {
                Election::draw(seed, hosts, session_timeout).fit_for(upgrades)
            },
            program: std::fs::canonicalize(&program).unwrap_or_else(|error| panic!("{program}: {error}")),
            control: control.clone(),
            report: reports.join(format!("{label}seed-{seed}")),
        };
        let drawn = std::env::var("CHAOS_SEEDS").map_or_else(|_| vec![todays_seed()], |text| seeds(&text));
        drawn.into_iter().map(run).collect()
    }
}

/// Another one at every call. Its place in the week is that of the day, so that every kind of fault strikes within a week.
#[expect(clippy::disallowed_methods, reason = "decides nothing but what is tried")]
fn todays_seed() -> u64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let days = since_1970.as_secs() / (24 * 3600);
    u64::from(since_1970.subsec_micros()) * WEEK + days % WEEK
}

fn seeds(text: &str) -> Vec<u64> {
    let number = |text: &str| text.trim().parse::<u64>().expect("a seed is a number");
    let ranges = text.split(',').map(|part| part.split_once('-').unwrap_or((part, part)));
    ranges.flat_map(|(first, last)| number(first)..=number(last)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers_and_ranges() {
        assert_eq!(seeds("7"), [7]);
        assert_eq!(seeds("1-3,9"), [1, 2, 3, 9]);
    }

    #[test]
    fn every_kind_of_election_is_drawn() {
        let drawn: Vec<Election> = (0..100).map(|seed| Election::draw(seed, 5, Duration::from_secs(2))).collect();
        let share = |is_meant: &dyn Fn(&Election) -> bool| drawn.iter().filter(|one| is_meant(one)).count();
        assert!(share(&|one| one.recipe == "single") >= 10);
        assert!(share(&|one| one.leaders == 2) >= 10);
        assert!(share(&|one| one.runs_once) >= 10);
        assert!(share(&|one| one.preempts) >= 5);
        assert!(share(&|one| one.vouch.is_some()) >= 10);
        assert!(share(&|one| one.leaders == 2 && one.hosts.iter().any(|host| host.priority > 0)) >= 3);
        assert!(share(&|one| one.hosts.iter().any(|host| host.session_timeout > Duration::from_secs(3))) >= 10);
        assert!(share(&|one| *one == Election::plain(5, Duration::from_secs(2))) >= 5);
    }
}
