//! Fixed scripts: upgrades in place and lost connections at every instant, and what strikes while a program takes over from another one.

use std::time::Duration;

use zk_leader_run::core::settings::{OnExit, Recipe, StepLimits};

use crate::direct::Weather;
use crate::guard::Temper;
use crate::script::{HostPlan, Script};
use crate::strike::{Act, Fault, Strike};
use crate::upgrade::{Answer, Program, Start};
use crate::wires::Log;
use crate::world::{Verdict, judge};

const SESSION: Duration = Duration::from_secs(4);
/// After it, the lease was renewed again and again.
const BEGIN: Duration = Duration::from_secs(5);
const HOST: HostPlan = HostPlan {
    stop_timeout: Duration::from_secs(1),
    on_exit: OnExit::Rejoin,
    temper: Temper { ends: 0, ignores_stop: 0, starts_slowly: 0 },
    steps: StepLimits { before_start: None, after_stop: None },
    has_hook: false,
    has_health: false,
    has_eligible: false,
    vouch: None,
    restarts_after: Duration::from_millis(500),
    drift_ppm: 0,
    kernel_rate: 100,
};

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Of three hosts whoever leads is struck, from [`BEGIN`] on.
fn script(faults: Vec<(Duration, Fault)>, has_upgrades_only: bool) -> Script {
    let last = faults.iter().map(|(after, _)| *after).max().unwrap_or_default();
    Script {
        seed: 2,
        servers: 3,
        hosts: vec![HOST; 3],
        session_timeout: SESSION,
        recipe: Recipe::Sequential,
        leaders: 1,
        is_cron: false,
        latency: [Duration::from_micros(200), millis(5)],
        strikes: vec![Strike { at: BEGIN, is_at_leader: true, faults }],
        healed_at: BEGIN + last + SESSION * 2,
        weather: Weather::default(),
        has_upgrades_only,
    }
}

fn run(script: &Script) -> Verdict {
    let verdict = judge(script, Log::Nothing);
    assert_eq!(verdict.violation, None, "{verdict:#?}");
    verdict
}

fn run_upgrades(faults: Vec<(Duration, Fault)>) -> (u64, u64) {
    run(&script(faults, true)).exchanges
}

fn upgrade(program: Program) -> Fault {
    Fault::Upgrade { host: 0, program }
}

/// An upgrade to a good program and, at any instant of it, `fault`.
fn struck_by(fault: Fault) -> Vec<Verdict> {
    let upgraded = (Duration::ZERO, upgrade(Program { starts_after: millis(60), ..Program::GOOD }));
    let instants = (0..160).step_by(8).map(millis);
    instants.map(|at| run(&script(vec![upgraded, (at, fault)], false))).collect()
}

/// Of all these runs: programs that were executed, and commands that lived on.
fn exchanges(verdicts: &[Verdict]) -> (u64, u64) {
    verdicts.iter().fold((0, 0), |(many, lived), verdict| (many + verdict.exchanges.0, lived + verdict.exchanges.1))
}

#[test]
fn a_command_lives_through_an_upgrade_at_any_instant_and_its_host_keeps_session_and_place() {
    // No multiple of the pause between two renewals.
    let upgrades = (0..24).map(|number| (number * millis(467), upgrade(Program::GOOD))).collect();
    assert_eq!(run_upgrades(upgrades), (24, 24));
}

#[test]
fn a_connection_that_is_lost_again_at_any_instant_pauses_the_command_no_longer() {
    for between in (0..60).step_by(3).map(millis) {
        let lost = |at| (at, Fault::Reset { host: 0 });
        let script = script(vec![lost(Duration::ZERO), lost(between)], true);
        // Then everything is as before, and soon: a quarter of a lease is far too late.
        run(&Script { healed_at: BEGIN + between + SESSION / 5, ..script });
    }
}

/// An order that ends by itself is known one round later: the ensemble is asked for the time. The operator has lost the servers, so that
/// the order stays.
#[test]
fn a_connection_that_is_lost_again_while_an_order_is_in_force_pauses_the_command_no_longer() {
    let handover = |to| Fault::Operator(Act::Handover { to: Some(to), wait: false, within: SESSION * 5 });
    let cut = Fault::Cut { host: 3, server: None, way: None, length: SESSION * 5 };
    let lost = |at| (at, Fault::Reset { host: 0 });
    for (to, between) in [1, 2].into_iter().flat_map(|to| (0..60).step_by(3).map(move |at| (to, millis(at)))) {
        let asked = vec![(Duration::ZERO, handover(to)), (millis(400), cut)];
        let asked = Strike { at: SESSION * 3 / 4, is_at_leader: false, faults: asked };
        let mut script = script(vec![lost(Duration::ZERO), lost(between)], true);
        script.strikes.insert(0, asked);
        run(&Script { healed_at: BEGIN + between + SESSION / 5, ..script });
    }
}

#[test]
fn every_host_of_every_recipe_is_upgraded_in_its_place() {
    for recipe in [Recipe::Sequential, Recipe::CuratorLock, Recipe::Kazoo, Recipe::Single] {
        let one = |host| (millis(900) * host as u32, Fault::Upgrade { host, program: Program::GOOD });
        let mut script = Script { recipe, ..script((0..3).map(one).collect(), true) };
        script.strikes[0].is_at_leader = false;
        assert_eq!(run(&script).exchanges, (3, 1), "{recipe:?}");
    }
}

#[test]
fn a_program_that_refuses_or_does_not_answer_or_cannot_be_executed_changes_nothing_and_the_next_one_takes_over() {
    let bad = [
        Program { answer: Answer::Unfit, ..Program::GOOD },
        Program { answer: Answer::Nothing, ..Program::GOOD },
        Program { answer: Answer::Never, ..Program::GOOD },
        Program { start: Start::Impossible, ..Program::GOOD },
    ];
    for bad in bad {
        assert_eq!(run_upgrades(vec![(Duration::ZERO, upgrade(bad))]), (0, 0), "{bad:?}");
        let then = vec![(Duration::ZERO, upgrade(bad)), (SESSION * 2, upgrade(Program::GOOD))];
        assert_eq!(run_upgrades(then), (1, 1), "{bad:?}");
    }
}

#[test]
fn a_program_that_ends_after_it_was_executed_takes_the_command_with_it_and_another_host_leads() {
    let failing = upgrade(Program { start: Start::Failed, ..Program::GOOD });
    let verdict = run(&script(vec![(Duration::ZERO, failing)], false));
    assert_eq!(verdict.exchanges, (1, 0));
    assert!(verdict.starts > 1, "{verdict:#?}");
}

#[test]
fn a_stop_at_any_instant_of_an_upgrade_is_obeyed_by_whichever_program_reads_it() {
    let (many, lived) = exchanges(&struck_by(Fault::Sigterm { host: 0 }));
    assert!((1..20).contains(&many) && lived == 0, "{many} {lived}");
}

#[test]
fn a_kill_or_the_end_of_the_session_at_any_instant_of_an_upgrade_ends_the_command_once() {
    for fault in [Fault::Crash { host: 0 }, Fault::BothDie { host: 0 }, Fault::Expire { host: 0 }] {
        let (many, lived) = exchanges(&struck_by(fault));
        assert!((1..=20).contains(&many) && lived == 0, "{fault:?}: {many} {lived}");
    }
}

#[test]
fn a_command_lives_though_a_connection_is_lost_or_the_process_stopped_or_upgraded_again_at_any_instant_of_an_upgrade() {
    let cut = Fault::Cut { host: 0, server: None, way: None, length: millis(300) };
    let stop = Fault::SupervisorStops { host: 0, length: millis(300) };
    for fault in [Fault::Reset { host: 0 }, Fault::ServerDown { server: 0, length: millis(300) }, cut, stop] {
        assert_eq!(exchanges(&struck_by(fault)), (20, 20), "{fault:?}");
    }
    let (many, lived) = exchanges(&struck_by(upgrade(Program::GOOD)));
    assert!(many > 20 && lived == many, "{many} {lived}");
}

/// All hosts are upgraded at once, and all vouch for the leader.
fn all_upgraded_then(faults: Vec<(Duration, Fault)>, hosts: usize) -> Script {
    let upgraded = (0..hosts).map(|host| (Duration::ZERO, Fault::Upgrade { host, program: Program::GOOD }));
    let plan = HostPlan { vouch: Some(SESSION * 8), ..HOST };
    let script = script(upgraded.chain(faults).collect(), true);
    let strikes = script.strikes.into_iter().map(|strike| Strike { is_at_leader: false, ..strike }).collect();
    Script { hosts: vec![plan; hosts], strikes, ..script }
}

/// Nothing is read or written any more: what the next programs need of their neighbours, they have been given.
#[test]
fn a_command_lives_on_promises_though_the_servers_are_away_from_any_instant_of_an_upgrade_of_all_hosts_on() {
    let mut all = Vec::new();
    for at in (0..160).step_by(16).map(millis) {
        let script = all_upgraded_then(vec![(at, Fault::Outage { length: SESSION * 4 })], 3);
        all.push(run(&Script { healed_at: script.healed_at + SESSION * 4, ..script }));
    }
    let (many, lived) = exchanges(&all);
    assert!(many > 15 && lived > 5, "{many} {lived}");
}

/// Both lose sight of one another when the standby, which alone sees the servers, is upgraded. The lease of the record is over by then.
#[test]
fn a_standby_keeps_its_promise_through_an_upgrade() {
    let alone = Fault::Cut { host: 0, server: None, way: None, length: SESSION * 4 };
    let silence = |host, other| (Duration::ZERO, Fault::Silence { host, other, length: SESSION * 4 });
    let mut script = all_upgraded_then(vec![silence(0, 1), silence(1, 0)], 2);
    script.has_upgrades_only = false;
    script.strikes[0].at = BEGIN + SESSION * 3 / 2;
    script.strikes.insert(0, Strike { at: BEGIN, is_at_leader: true, faults: vec![(Duration::ZERO, alone)] });
    let verdict = run(&Script { healed_at: BEGIN + SESSION * 7, ..script });
    assert_eq!(verdict.exchanges.0, 1, "{verdict:#?}");
}

/// The other host has left the line, as it does not see the servers, and vouches on. Then both lose sight of one another, in an upgrade
/// of the leader, and only the other one sees the servers again: it takes over when its promise is over.
#[test]
fn a_leader_that_was_upgraded_needs_the_promises_that_it_needed_before() {
    let mut exchanges = (0, 0);
    for (standby, at) in [0, 1].into_iter().flat_map(|standby| (0..160).step_by(16).map(move |at| (standby, at))) {
        let (leader, since) = (1 - standby, BEGIN + SESSION * 3 / 2);
        let cut = |host, length| Fault::Cut { host, server: None, way: None, length };
        let silence = |host, other| (Duration::ZERO, Fault::Silence { host, other, length: SESSION * 4 });
        let alone = (Duration::ZERO, cut(standby, SESSION * 3 / 2 + millis(200)));
        let exchange = (Duration::ZERO, Fault::Upgrade { host: leader, program: Program::GOOD });
        let then = vec![exchange, silence(0, 1), silence(1, 0), (millis(at), cut(leader, SESSION * 4))];
        let strike = |at, faults| Strike { at, is_at_leader: false, faults };
        let plan = HostPlan { vouch: Some(SESSION * 8), ..HOST };
        let script = Script {
            hosts: vec![plan; 2],
            strikes: vec![strike(BEGIN, vec![alone]), strike(since, then)],
            healed_at: since + SESSION * 5,
            ..script(Vec::new(), false)
        };
        let (many, lived) = run(&script).exchanges;
        exchanges = (exchanges.0 + many, exchanges.1 + lived);
    }
    assert!(exchanges.0 >= 8, "{exchanges:?}");
}

/// Whoever is asked again what he was asked before says nothing.
#[test]
fn a_leader_that_was_upgraded_goes_on_counting_its_questions() {
    let script = all_upgraded_then(vec![(millis(100), Fault::Outage { length: SESSION * 4 })], 3);
    let since = BEGIN + SESSION * 20;
    let strikes = script.strikes.iter().cloned().map(|strike| Strike { at: since, ..strike }).collect();
    let script = Script { strikes, healed_at: since + SESSION * 6, ..script };
    assert_eq!(run(&script).exchanges, (3, 1));
}

/// Both are upgraded, and then the servers are away. In most of these runs neither has asked or answered anything by then.
#[test]
fn a_host_that_was_upgraded_says_that_it_is_gone_and_a_leader_that_was_upgraded_hears_it() {
    for since in (0..500).step_by(50).map(|pause| BEGIN + millis(pause)) {
        let without = |host| {
            let faults =
                vec![(millis(110), Fault::Outage { length: SESSION * 4 }), (millis(120), Fault::Sigterm { host })];
            let script = all_upgraded_then(faults, 2);
            let strikes = script.strikes.iter().cloned().map(|strike| Strike { at: since, ..strike }).collect();
            let healed_at = since + SESSION * 6;
            run(&Script { strikes, healed_at, has_upgrades_only: false, ..script }).exchanges
        };
        let seen = [without(0), without(1)];
        assert!(seen.contains(&(2, 1)), "{since:?}: {seen:?}");
    }
}

/// The operator who asked for it loses the servers at any instant, so that the order stays. It keeps all but its target, and whoever has
/// obeyed it, out of the line; until 3 s after another term has begun, and then for good.
#[test]
fn a_host_that_has_obeyed_an_order_knows_that_after_an_upgrade() {
    let handover = |to| Fault::Operator(Act::Handover { to: Some(to), wait: false, within: SESSION * 5 });
    let lost = Fault::Cut { host: 3, server: None, way: None, length: SESSION * 5 };
    let strike = |at, faults| Strike { at, is_at_leader: false, faults };
    for asked_at in [millis(250), SESSION * 3 / 4] {
        let mut upgraded = 0;
        for (to, at) in (0..3).flat_map(|to| (0..1_200).step_by(40).map(move |at| (to, millis(at)))) {
            let asked = strike(asked_at, vec![(Duration::ZERO, handover(to)), (at, lost)]);
            let all = (0..3).map(|host| (Duration::ZERO, Fault::Upgrade { host, program: Program::GOOD }));
            let strikes = vec![asked, strike(BEGIN, all.collect())];
            let script = Script { strikes, healed_at: BEGIN + SESSION / 4, ..script(Vec::new(), true) };
            upgraded += run(&script).exchanges.0;
        }
        assert!(upgraded > 20, "{upgraded}");
    }
}

/// Its process would exit, and the next one of this host is named in no record. Cut off, its session is over before it is back.
#[test]
fn a_command_that_ends_in_an_outage_leaves_no_lease_that_the_next_process_waits_for() {
    let cut = Fault::Cut { host: 0, server: None, way: None, length: SESSION * 4 };
    for (seed, fault) in (0..16).zip([Fault::Outage { length: SESSION * 4 }, cut].into_iter().cycle()) {
        let temper = Temper { ends: 100, ..HOST.temper };
        let plan = HostPlan { vouch: Some(SESSION * 10), on_exit: OnExit::Exit, temper, ..HOST };
        let outage = script(vec![(Duration::ZERO, fault)], false);
        let verdict = run(&Script { seed: seed / 2, hosts: vec![plan], healed_at: BEGIN + SESSION * 4, ..outage });
        assert!(verdict.measured.healed < SESSION, "seed {seed}, {fault:?}: {:?}", verdict.measured);
    }
}

/// A term that has just begun is not in the history yet.
#[test]
fn a_term_is_told_however_early_its_leader_is_upgraded() {
    let upgrade_at = |at| {
        let mut script = script(vec![(Duration::ZERO, upgrade(Program::GOOD))], false);
        script.strikes[0].at = at;
        run(&script)
    };
    let (many, lived) = exchanges(&(0..160).step_by(16).map(millis).map(upgrade_at).collect::<Vec<_>>());
    assert!(many == 10 && lived == many, "{many} {lived}");
}
