//! What `docs/migrating.md` tells people to do, done.

use super::{SupervisorConfig, stop};

/// A fleet of three of theirs becomes one of ours, the leader last; somebody leads before, between and after.
fn replace_host_by_host(recipe: &str, library: &str) {
    let company = SupervisorConfig::of(recipe, library);
    let mut theirs = vec![company.theirs("a")];
    company.until_led_by("a", 1);
    theirs.extend(["b", "c"].map(|id| company.theirs_in_line(id)));

    let mut ours = Vec::new();
    for host in theirs.iter_mut().rev() {
        host.stop();
        if host.id == "a" {
            company.until_led_by("ours-c", 2);
        }
        ours.push(company.ours(&format!("ours-{}", host.id)));
        company.until_candidates(3);
    }

    for (turn, (id, host)) in (2..).zip(["ours-c", "ours-b", "ours-a"].into_iter().zip(ours)) {
        company.until_led_by(id, turn);
        stop(host);
    }
    company.election.diary.assert_one_at_a_time();
    assert_eq!(company.candidates(), [""; 0]);
}

#[test]
fn a_fleet_of_leader_latches_is_replaced_host_by_host() {
    replace_host_by_host("curator-latch", "curator-latch");
}

#[test]
fn a_fleet_of_leader_selectors_is_replaced_host_by_host() {
    replace_host_by_host("curator-lock", "curator-selector");
}

#[test]
fn a_fleet_of_kazoo_elections_is_replaced_host_by_host() {
    replace_host_by_host("kazoo", "kazoo-election");
}

#[test]
fn a_fleet_of_go_zookeepers_locks_is_replaced_host_by_host() {
    replace_host_by_host("curator-lock", "go-lock");
}

/// Nobody of theirs is left: from their directory to our own, and so from best effort to the promise.
#[test]
fn a_fleet_of_ours_moves_to_a_directory_of_its_own() {
    let company = SupervisorConfig::of("curator-latch", "curator-latch");
    let election = &company.election;
    let own = |id| election.steady_host(id);
    let mut before = Vec::new();
    for id in ["a", "b"] {
        before.push(company.ours(id));
        company.until_candidates(before.len());
    }
    company.until_led_by("a", 1);

    // Too early: the election is led elsewhere.
    let mut hasty = own("c").spawn();
    assert_eq!(hasty.code(), 78);
    assert!(hasty.log().contains("--election-path"), "{}", hasty.log());

    before.into_iter().rev().for_each(stop);
    let first = own("c").spawn();
    company.until_led_by("c", 2);
    let second = own("d").spawn();
    election.until_candidates(2);
    stop(first);
    company.until_led_by("d", 3);
    stop(second);
    election.diary.assert_no_overlap();
    assert_eq!(company.candidates(), [""; 0]);
}
