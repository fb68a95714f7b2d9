//! What settings mean, and which layer of them wins.

use super::*;

#[test]
fn an_option_wins_over_its_variable_and_a_variable_over_the_default() {
    let twin = [("ZK_LEADER_RUN_STOP_TIMEOUT", "20s")];
    let stop_timeout = |typed: &[&str], variables: &[(&str, &str)]| parse(typed, variables).unwrap().stop_timeout;
    assert_eq!(stop_timeout(&["true"], &[]), Duration::from_secs(10));
    assert_eq!(stop_timeout(&["true"], &twin), Duration::from_secs(20));
    assert_eq!(stop_timeout(&["--stop-timeout", "30s", "true"], &twin), Duration::from_secs(30));
    assert_eq!(stop_timeout(&["--stop-timeout", "10s", "true"], &twin), Duration::from_secs(10));
    assert_eq!(stop_timeout(&["--stop-timeout", "3s", "--stop-timeout", "4s", "true"], &[]), Duration::from_secs(4));
    assert_eq!(stop_timeout(&["true"], &[("ZK_LEADER_RUN_STOP_TIMEOUT", "")]), Duration::from_secs(10));
    assert!(parse(&["true"], &[("ZK_LEADER_RUN_FOREGROUND", "yes")]).unwrap().foreground);
    assert!(!parse(&["true"], &[("ZK_LEADER_RUN_FOREGROUND", "0")]).unwrap().foreground);
    assert!(parse(&["--foreground", "true"], &[("ZK_LEADER_RUN_FOREGROUND", "0")]).unwrap().foreground);
}

#[test]
fn an_unknown_variable_that_resembles_no_other_is_worth_a_notice_and_no_more() {
    let variables =
        [("ZK_LEADER_RUN_SERVICE_HOST", "10.0.0.1"), ("ZK_LEADER_RUN_PORT", "tcp"), ("ZK_LEADER_TOKEN", "7")];
    assert_eq!(
        parse(&["true"], &variables).unwrap().notices,
        [
            "the variable 'ZK_LEADER_RUN_SERVICE_HOST' is unknown and ignored",
            "the variable 'ZK_LEADER_RUN_PORT' is unknown and ignored"
        ]
    );
}

#[test]
fn without_options_the_defaults_of_the_contract_hold() {
    let config = parse(&["/bin/true"], &[]).unwrap();
    assert_eq!((config.servers.as_str(), config.chroot.as_ref()), ("127.0.0.1:2181", None));
    assert_eq!((config.name.as_str(), config.base.as_str()), ("true", "/zk-leader-run/true"));
    assert_eq!((config.id.as_str(), config.recipe), ("host:4711", Recipe::Sequential));
    assert_eq!((config.wait, config.connect_timeout), (None, None));
    assert_eq!(config.conflict_exit_code, Status::TemporaryFailure.code());
    assert_eq!(config.session_timeout, Duration::from_secs(15));
    assert_eq!((config.guarantee, config.wishes.max_pause), (Guarantee::AtMostOne, None));
    assert_eq!((config.on_pause, config.wishes.frozen_while_paused), (OnPause::Run, false));
    assert_eq!((config.wishes.lease, config.wishes.reserve, config.wishes.grace), (None, None, None));
    assert_eq!((config.contain, config.foreground, config.dry_run), (Contain::Auto, false, false));
    assert_eq!((config.stop_signal, config.stop_timeout), (15, Duration::from_secs(10)));
    assert_eq!((config.on_exit, config.on_loss), (OnExit::Exit, OnLoss::Rejoin));
    assert!(config.notices.is_empty());
}

/// The path counts as a whole, and the id not at all.
#[test]
fn a_spread_priority_is_the_rank_of_this_host_in_this_election() {
    let leaders = |typed: &[&str]| parse(&[&["--priority", "spread"], typed].concat(), &[]).unwrap().leaders;
    let rank = i16::try_from(zk_leader_run::core::spread::rank("/a/b/c", "host")).unwrap();
    for typed in [["-z", "z", "--path", "/a/b/c", "true"], ["-z", "z/a", "--path", "/b/c", "true"]] {
        assert_eq!((leaders(&typed).priority, leaders(&typed).spreads), (rank, true), "{typed:?}");
    }
    assert_eq!(leaders(&["--id", "x", "--path", "/a/b/c", "true"]).priority, rank);
    assert_ne!(leaders(&["--path", "/a/b/d", "true"]).priority, rank);
}

#[test]
fn meta_is_given_again_and_again_or_with_blanks() {
    let meta = |typed: &[&str], variables: &[(&str, &str)]| parse(typed, variables).unwrap().monitoring.meta;
    let both: Vec<_> = meta(&["--meta", "a=1", "--meta", "b=x=y", "true"], &[]).into_iter().collect();
    assert_eq!(both, [("a".into(), "1".into()), ("b".into(), "x=y".into())]);
    let variables = [("ZK_LEADER_RUN_META", " a=1  b=x=y ")];
    assert_eq!(meta(&["true"], &variables).into_iter().collect::<Vec<_>>(), both);
    assert!(meta(&["--meta", "a=2", "true"], &variables)["a"] == "2", "the option replaces the variable");
}

#[test]
fn settings_mean_what_they_say() {
    let config = parse(&["-z", "a,[::1]:7/c/d", "--path", "/p/q", "--id", "me", "--name", "n", "true"], &[]).unwrap();
    assert_eq!(config.servers, "a:2181,[::1]:7");
    assert_eq!(config.chroot.unwrap().as_str(), "/c/d");
    assert_eq!((config.base.as_str(), config.name.as_str(), config.id.as_str()), ("/p/q", "n", "me"));
    let config = parse(&["--on-pause", "usr1", "--on-resume", "SIGUSR2", "true"], &[]).unwrap();
    assert_eq!(config.on_pause, OnPause::Signal { pause: 10, resume: Some(12) });
    let config = parse(&["--on-pause=freeze", "--grace=0", "true"], &[]).unwrap();
    assert!(config.wishes.frozen_while_paused && config.wishes.grace == Some(Duration::ZERO));
    let config = parse(&["--guarantee", "at-least-one", "true"], &[]).unwrap();
    assert_eq!(config.wishes.max_pause, Some(Duration::from_secs(150)));
}

#[test]
fn who_will_not_wait_for_ever_does_not_try_the_ensemble_for_ever() {
    let connect_timeout = |typed: &[&str]| parse(typed, &[]).unwrap().connect_timeout;
    assert_eq!(connect_timeout(&["--wait", "0", "true"]), Some(Duration::from_secs(15)));
    assert_eq!(connect_timeout(&["--wait", "1m", "true"]), Some(Duration::from_secs(60)));
    assert_eq!(connect_timeout(&["--wait", "1m", "--connect-timeout", "5s", "true"]), Some(Duration::from_secs(5)));
}

#[test]
fn vouching_is_off_unless_it_is_asked_for() {
    let vouch = |typed: &[&str], variables: &[(&str, &str)]| parse(typed, variables).unwrap().vouch;
    assert_eq!(vouch(&["true"], &[]), None);
    let usual = Vouch { address: None, limit: Duration::from_secs(600) };
    assert_eq!(vouch(&["--vouch", "true"], &[]), Some(usual));
    assert_eq!(vouch(&["true"], &[("ZK_LEADER_RUN_VOUCH", "yes")]), Some(usual));
    for (typed, limit) in [("30s", 30), ("24h", 24 * 3600)] {
        let limit = Duration::from_secs(limit);
        assert_eq!(vouch(&["--vouch", "--vouch-limit", typed, "true"], &[]), Some(Vouch { limit, ..usual }));
    }
    for (typed, address) in [
        ("10.0.0.7", "10.0.0.7:0"),
        ("10.0.0.7:4711", "10.0.0.7:4711"),
        ("2001:db8::7", "[2001:db8::7]:0"),
        ("[2001:db8::7]", "[2001:db8::7]:0"),
        ("[2001:db8::7]:4711", "[2001:db8::7]:4711"),
    ] {
        let address = Some(address.parse().unwrap());
        assert_eq!(vouch(&["--vouch", "--vouch-address", typed, "true"], &[]), Some(Vouch { address, ..usual }));
    }
}

/// In force elsewhere: in records that were written, and in the agreement with the other hosts.
#[test]
fn an_upgrade_in_place_cannot_change_vouching() {
    let fixed = |typed: &[&str]| zk_leader_run::config::fixed::of(&parse(typed, &[]).unwrap());
    let changed = |typed: &[&str]| {
        let (before, after) = (fixed(&["--vouch", "true"]), fixed(typed));
        before
            .into_iter()
            .filter(|(name, value)| after.get(name) != Some(value))
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
    };
    assert_eq!(changed(&["--vouch", "--vouch-limit", "10m", "true"]), [""; 0]);
    assert_eq!(changed(&["--vouch", "--vouch-limit", "11m", "true"]), ["--vouch-limit"]);
    assert_eq!(changed(&["--vouch", "--vouch-address", "10.0.0.7", "true"]), ["--vouch-address"]);
    assert!(changed(&["true"]).contains(&"--vouch".to_owned()));
}

#[test]
fn options_end_at_the_command_or_at_two_dashes() {
    let command = |typed: &[&str]| parse(typed, &[]).unwrap().command;
    assert_eq!(command(&["--name", "n", "sh", "--name", "x", "-h"]), ["sh", "--name", "x", "-h"]);
    assert_eq!(command(&["--", "echo", "-c", "true"]), ["echo", "-c", "true"]);
    assert_eq!(command(&["echo", "--", "-x", ""]), ["echo", "--", "-x", ""]);
    assert_eq!(command(&["--", "echo", "--", "--help"]), ["echo", "--", "--help"]);
}

#[test]
fn settings_without_effect_are_worth_a_notice() {
    let notices = |typed: &[&str]| parse(typed, &[]).unwrap().notices.concat();
    assert!(
        notices(&["--on-pause", "freeze", "--stop-reserve", "1s", "true"]).contains("--stop-reserve has no effect")
    );
    let preempting = ["--slot", "night", "--priority", "1", "--preempt-after", "0", "true"];
    assert!(notices(&preempting).contains("--preempt-after has no effect with --slot"), "{}", notices(&preempting));
    assert_eq!(parse(&preempting, &[]).unwrap().leaders.preempt_after, None);
    let repeating = [&["--retry-failed"], &preempting[..]].concat();
    assert_eq!(parse(&repeating, &[]).unwrap().leaders.preempt_after, Some(Duration::ZERO));
    assert!(notices(&["--lease", "20s", "true"]).contains("--lease 20s is cut to the session timeout, 15s"));
}

#[test]
fn an_upgrade_in_place_cannot_change_how_long_a_command_may_outlive_its_lease() {
    let fixed = |pause| {
        let typed = ["--guarantee", "at-least-one", "--max-pause", pause, "true"];
        zk_leader_run::config::fixed::of(&parse(&typed, &[]).unwrap())
    };
    assert_ne!(fixed("1h").get("--max-pause"), fixed("2h").get("--max-pause"));
}
