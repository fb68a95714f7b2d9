//! Chaos: three real `ZooKeeper` servers and several hosts in network namespaces of their own, broken in every way that a
//! seed thinks of, mostly where it hurts; the commands' own diaries tell whether the promise was kept.
//!
//! A seed is drawn for each run, and told: `CHAOS_SEEDS=n` runs it again. `make chaos SEEDS=1-3 FAULTS=170` runs more.
//! `CHAOS_PROGRAM` puts another build to the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

mod calm;
mod checker;
mod dice;
mod ensemble;
mod fault;
mod host;
mod inside;
mod lab;
mod nemesis;
mod network;
mod operator;
mod outage;
mod record;
mod report;
mod settings;
#[path = "../support/mod.rs"]
mod support;
mod tail;
mod timeline;
mod upgrade;
mod world;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use calm::Calm;
use checker::{Evidence, Findings};
use dice::Dice;
use fault::Fault;
use host::{Host, Life};
use nemesis::{Nemesis, Strike};
use operator::Leftovers;
use record::{Exchange, Tokens, Verdict};
use report::Report;
use settings::Settings;
use support::diary::{self, now};
use support::wait;
use timeline::Timeline;
use upgrade::Upgrade;
use world::{History, SERVERS, World};

/// Everything that is known about one run when it is over.
struct Story {
    findings: Findings,
    strikes: Vec<Strike>,
    rescues: usize,
    leftovers: Leftovers,
    verdict: Verdict,
    calms: Vec<Calm>,
    upgrades: Vec<Upgrade>,
    history: History,
    lives: Vec<Life>,
    began: Duration,
    ended: Duration,
}

#[test]
fn no_two_commands_ever_run_at_once_whatever_breaks() {
    let (mut violations, mut sabotage) = (Vec::new(), None);
    for settings in Settings::of_this_run() {
        let story = run(&settings);
        tell(&settings, &story);
        violations.extend(
            story.findings.violations().into_iter().map(|text| format!("CHAOS_SEEDS={}: {text}", settings.seed)),
        );
        violations.extend(
            story.leftovers.candidates.iter().map(|name| format!("CHAOS_SEEDS={}: left {name}", settings.seed)),
        );
        if story.verdict.losses.is_empty() {
            let problems = story.verdict.problems.iter();
            violations.extend(problems.map(|text| format!("CHAOS_SEEDS={}: {text}", settings.seed)));
        }
        if story.findings.yes == 0 {
            violations.push(format!("CHAOS_SEEDS={}: no lease file ever said yes", settings.seed));
        }
        sabotage = settings.control;
    }
    match sabotage {
        None => assert!(violations.is_empty(), "{violations:#?}"),
        Some(name) => assert!(!violations.is_empty(), "sabotaged by {name}, and not caught: the chaos is too tame"),
    }
}

fn run(settings: &Settings) -> Story {
    fs::remove_dir_all(&settings.report).ok();
    fs::create_dir_all(&settings.report).unwrap();
    let running = World::start(settings);
    let world = &running.world;
    let started = wait::held_within(2 * wait::LIMIT, || world.holder().is_some());
    assert!(started, "no command ever ran; see {}", settings.report.display());

    let began = now();
    let mut dice = Dice::new(settings.seed);
    let plan = fault::plan(settings.seed, &mut dice, settings.faults, settings.session_timeout);
    let mut nemesis = Nemesis::new(world, dice);
    let calms = strike_out(&mut nemesis, &plan, world, settings.upgrades);
    let recovered = nemesis.makes_peace();
    let (strikes, rescues) = nemesis.account();
    let ended = now();
    let leftovers = bring_to_an_end(world);
    assert!(recovered, "all is healed, and no command runs; see {}", settings.report.display());

    let diaries: Vec<_> = world.tails.iter().map(|tail| diary::entries_of(tail.path())).collect();
    let jobs = world.jobs();
    let history = std::mem::take(&mut *world.history.lock().unwrap());
    let longest_lease = world.hosts.iter().map(Host::lease).max().unwrap();
    let heard = heard(world);
    let evidence = Evidence {
        diaries: &diaries,
        jobs: &jobs,
        given_back: &heard.as_deref().map(record::given_back).unwrap_or_default(),
        strikes: &strikes,
        history: &history,
        calms: &calms,
        longest_lease,
        began,
        ended,
    };
    let mut findings = checker::judge(&evidence);
    let verdict = judge_the_record(heard, world, settings, &findings);
    if !verdict.losses.is_empty() {
        // With acknowledged writes, the markers of jobs are lost, too.
        findings.repeated.clear();
    }
    let lives = world.hosts.iter().flat_map(Host::journal).collect();
    let upgrades = world.upgrades.lock().unwrap().clone();
    Story { findings, strikes, rescues, leftovers, verdict, calms, upgrades, history, lives, began, ended }
}

/// One fault after the other; between them a calm time, if there are upgrades.
fn strike_out(nemesis: &mut Nemesis, plan: &[Fault], world: &World, upgrades: usize) -> Vec<Calm> {
    let mut calms = Vec::new();
    for (number, fault) in (1..).zip(plan) {
        nemesis.strike(fault);
        if upgrades > 0 {
            calms.extend(calm::calm(world, upgrades * number / plan.len()));
        }
    }
    calms
}

/// Everything that was asked of the lease records and their terms; or how many connections were not heard as a whole.
fn heard(world: &World) -> Result<Vec<Exchange>, usize> {
    world.tap.lock().unwrap().take().unwrap().finish()
}

/// By a judge that is not ours.
fn judge_the_record(
    heard: Result<Vec<Exchange>, usize>,
    world: &World,
    settings: &Settings,
    findings: &Findings,
) -> Verdict {
    let exchanges = match heard {
        Ok(exchanges) => exchanges,
        Err(missed) => {
            let problems = vec![format!("{missed} connections were not heard as a whole: there is nothing to judge")];
            return Verdict { problems, ..Verdict::default() };
        }
    };
    record::write(&settings.report.join("record.jsonl"), &exchanges);
    let mut tokens: BTreeMap<String, Tokens> = BTreeMap::new();
    for run in &findings.runs {
        tokens.entry(world.operator.records(run.slot)).or_default().push((run.token, run.host.clone()));
    }
    let logs = (0..SERVERS).map(|index| fs::read_to_string(settings.report.join(format!("z{index}.log"))).unwrap());
    let logs: Vec<String> = logs.collect();
    let (losses, differing) = (record::losses(&logs, &exchanges), record::differing(&logs));
    Verdict { losses, differing, ..record::judge(&exchanges, &tokens) }
}

/// Everyone is asked to stop; what is there after that should not be.
fn bring_to_an_end(world: &World) -> Leftovers {
    world.hosts.iter().for_each(Host::retire);
    wait::until("every supervisor has ended", || world.hosts.iter().all(Host::is_retired));
    wait::held_within(Duration::from_secs(3), || {
        world.look_for_orphans();
        world.hosts.iter().all(|host| host.orphans().is_empty())
    });
    // A candidate of a session that was never closed lives for T and two ticks.
    let mut leftovers = Leftovers::default();
    wait::held_within(Duration::from_secs(8), || {
        leftovers = world.operator.leftovers().unwrap_or_default();
        leftovers.candidates.is_empty() && !leftovers.record.is_empty()
    });
    leftovers
}

fn tell(settings: &Settings, story: &Story) {
    let Story { findings, strikes, rescues, lives, leftovers, verdict, upgrades, calms, .. } = story;
    let rescues = *rescues;
    let report = Report { settings, findings, strikes, rescues, lives, leftovers, verdict, upgrades, calms };
    report.print();
    let json = serde_json::to_string_pretty(&report.json()).unwrap();
    fs::write(settings.report.with_extension("json"), json).unwrap();
    let timeline = Timeline {
        title: format!(
            "Chaos, seed {}: {} faults, T = {:?}",
            settings.seed,
            story.strikes.len(),
            settings.session_timeout
        ),
        began: story.began,
        ended: story.ended,
        hosts: (0..settings.hosts).map(|index| format!("h{index}")).collect(),
        lives: &story.lives,
        views: &story.history.views,
        strikes: &story.strikes,
        findings: &story.findings,
    };
    fs::write(settings.report.with_extension("svg"), timeline.svg()).unwrap();
}
