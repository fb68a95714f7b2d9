//! Elections that are closed: with the identity of their hosts, as a reader, and without either.

use super::operator::{Said, ctl, ctl_at};
use super::server;
use crate::support::{Admin, Election, Running, wait};

const HOSTS: (&str, &str) = ("digest:hosts:secret", "hosts:secret");

/// An election that is led, for those with its identity, and readers if there are any.
fn led(acl: &str) -> (Election, Running) {
    let servers = server().connect_string();
    let election = Election::seen_by(Admin::known_as(&servers, HOSTS.1), &servers);
    let leader = election.steady_host("a").option("--acl", acl).env("ZK_LEADER_RUN_AUTH", HOSTS.0).spawn();
    election.diary.until_started(1);
    (election, leader)
}

fn as_host(words: &[&str]) -> Said {
    ctl_at(&server().connect_string(), words, &[("ZK_LEADER_RUN_AUTH", HOSTS.0)])
}

fn as_stranger(words: &[&str]) -> Said {
    ctl_at(&server().connect_string(), words, &[])
}

#[test]
fn an_operator_with_the_identity_of_the_hosts_sees_and_orders_and_opens_nothing() {
    let (election, _leader) = led("creator");
    let name = election.name.as_str();
    assert_eq!(as_host(&["status", name]).code, 0);
    let said = as_host(&["disable", name, "--reason", "test", "--wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(election.admin.acl(&election.path("control")), election.admin.acl(&election.path("term")));
    assert_eq!(as_host(&["enable", name, "--wait"]).code, 0);
    let said = as_host(&["doctor", name]);
    assert!(said.code == 0 && said.output.contains("only those whom the ACLs name"), "{said:?}");
    // What is made under a closed election belongs to those who own it.
    let token = election.term().mzxid.to_string();
    let own = format!("/own-{name}");
    let said = as_host(&["put", "--fenced", "--create", "--token", &token, "--name", name, &own, "x"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(election.admin.acl(&own), election.admin.acl(&election.path("term")));
}

#[test]
fn a_stranger_is_told_what_is_missing() {
    let (election, _leader) = led("creator");
    let name = election.name.as_str();
    let base = election.path("");
    let refusal = format!(
        "ZooKeeper refuses it: we may not read {}: its ACL does not give us right r",
        base.trim_end_matches('/')
    );
    let token = election.term().mzxid.to_string();
    let questions: [(&[&str], i32); 6] = [
        (&["status", name], 2),
        (&["token-check", &token, name], 2),
        (&["history", name], 77),
        (&["handover", name], 77),
        (&["disable", name, "--reason", "test"], 77),
        (&["enable", name], 77),
    ];
    for (words, code) in questions {
        let said = as_stranger(words);
        assert_eq!(said.code, code, "{words:?}: {said:?}");
        assert!(said.error.contains("ZooKeeper refuses it") && said.error.contains("--auth-file"), "{said:?}");
    }
    assert!(as_stranger(&["status", name]).error.contains(&refusal), "{refusal}");
    assert!(!election.admin.exists(&election.path("control")));
}

#[test]
fn a_reader_sees_and_orders_nothing() {
    let (election, _leader) = led("creator,world:anyone:r");
    let name = election.name.as_str();
    let said = as_stranger(&["status", name]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = as_stranger(&["disable", name, "--reason", "test"]);
    assert_eq!(said.code, 77, "{said:?}");
    assert!(said.error.contains("ZooKeeper refuses it"), "{said:?}");
    assert!(!election.admin.exists(&election.path("control")));
}

/// Who may not change an ACL is shown it without its hashes: a copy of that would be nobody's.
#[test]
fn an_operator_who_may_not_see_the_whole_acl_creates_nothing_and_orders_where_a_host_has() {
    let (election, _leader) = led("creator,digest:ops:w4PIv8/Wzcq4qj4/MfEQ8pvUSS4=:cdrw");
    let name = election.name.as_str();
    let as_ops =
        |words: &[&str]| ctl_at(&server().connect_string(), words, &[("ZK_LEADER_RUN_AUTH", "digest:ops:secret")]);
    let said = as_ops(&["disable", name, "--reason", "test"]);
    let path = election.path("term");
    let sentence =
        format!("we may not create a znode with the ACL of {path}: its ACL does not give us right a; give us ");
    assert!(said.code == 77 && said.error.contains(&sentence), "{said:?}");
    assert!(!election.admin.exists(&election.path("control")));
    for orders in [["disable", name, "--reason", "by a host"].as_slice(), &["enable", name]] {
        assert_eq!(as_host(orders).code, 0);
    }
    let said = as_ops(&["disable", name, "--reason", "test", "--wait"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn list_names_elections_that_may_not_be_read() {
    let (closed, _leader) = led("creator");
    let open = Election::on(&server().connect_string());
    open.prepare();
    let said = as_stranger(&["list", "-o", "plain"]);
    let line = said.output.lines().find(|line| line.starts_with(&format!("{}\t", closed.name)));
    assert!(said.code == 0 && line.is_some_and(|line| line.ends_with("no permission")), "{said:?}");
    let said = as_stranger(&["list", "--json"]).json();
    let found = said["elections"].as_array().unwrap().iter().find(|one| one["name"] == *closed.name).cloned();
    assert_eq!(found.unwrap()["state"], "no permission");
}

/// Its base is open, and its record is not.
#[test]
fn an_election_that_may_be_read_in_part_is_neither_left_out_nor_told_as_idle() {
    let servers = server().connect_string();
    let election = Election::seen_by(Admin::known_as(&servers, HOSTS.1), &servers);
    let root = format!("/part-{}", election.name);
    for below in ["lease", "term", "election", "members"] {
        election.admin.create_all(&format!("{root}/job/{below}"));
    }
    election.admin.set_acl(&format!("{root}/job/lease"), "auth", "", "cdrwa");
    let said = as_stranger(&["list", "--path", &root, "-o", "plain"]);
    assert!(said.code == 0 && said.output.ends_with("no permission\n"), "{said:?}");
    let said = as_stranger(&["drain", "one", "--root", &root, "--wait"]);
    assert!(said.code == 2 && said.output.contains("one may lead job, which we may not read"), "{said:?}");
}

/// The servers and the session are examined all the same.
#[test]
fn the_doctor_tells_what_it_has_found_before_it_may_not_read_the_election() {
    let (closed, _leader) = led("creator");
    let said = as_stranger(&["doctor", &closed.name]);
    let parts = ["is a standalone server", "timeouts from ", "WRONG  election  ZooKeeper refuses it", "--auth-file"];
    assert!(said.code == 77 && parts.iter().all(|part| said.output.contains(part)), "{said:?}");
    let json = as_stranger(&["doctor", &closed.name, "--json"]).json();
    assert_eq!(
        (&json["reason"], json["findings"].as_array().is_some_and(|all| all.len() > 2)),
        (&"forbidden".into(), true)
    );
    // Without a name, too.
    let chroot = format!("/closed-{}", closed.name);
    let only = format!("{chroot}/zk-leader-run/job");
    closed.admin.create_all(&only);
    closed.admin.set_acl(&only, "auth", "", "cdrwa");
    let said = ctl_at(&format!("{}{chroot}", server().connect_string()), &["doctor"], &[]);
    assert!(said.code == 77 && said.output.contains("WRONG  election  ZooKeeper refuses it"), "{said:?}");
}

/// It is led, and nobody takes part in the other one, which we may read.
#[test]
fn where_an_election_may_not_be_read_no_drain_is_said_to_stop_nothing() {
    let servers = server().connect_string();
    let election = Election::seen_by(Admin::known_as(&servers, HOSTS.1), &servers);
    let root = format!("/shut-{}", election.name);
    for below in ["lease", "term"] {
        election.admin.create_all(&format!("{root}/open/{below}"));
    }
    election.admin.set(&format!("{root}/open/lease"), r#"{"v":1,"state":"free","lease_ms":5}"#);
    let leader = election.steady_host("a").without("--name").option("--path", &format!("{root}/job"));
    let _leader = leader.option("--acl", "creator").env("ZK_LEADER_RUN_AUTH", HOSTS.0).spawn();
    election.diary.until_started(1);
    let said = as_stranger(&["drain", "one", "--root", &root]);
    let why = "one may lead job, which we may not read; give us credentials that may (--auth-file), or look there\n";
    assert!(said.code == 0 && said.output.contains(why), "{said:?}");
    assert!(!said.output.contains("stops nothing"), "{said:?}");
}

/// Only the hosts of those that may be read can be named.
#[test]
fn a_mistyped_host_is_told_also_where_an_election_may_not_be_read() {
    let servers = server().connect_string();
    let election = Election::seen_by(Admin::known_as(&servers, HOSTS.1), &servers);
    let root = format!("/shut-{}", election.name);
    for name in ["opened", "shut"] {
        for below in ["lease", "term", "election", "members"] {
            election.admin.create_all(&format!("{root}/{name}/{below}"));
        }
    }
    election.admin.set(&format!("{root}/opened/lease"), r#"{"v":1,"state":"free","lease_ms":5}"#);
    election.admin.create(&format!("{root}/opened/members/a"), r#"{"v":1,"id":"a","host":"one"}"#);
    election.admin.set_acl(&format!("{root}/shut"), "auth", "", "cdrwa");
    let drain = ["drain", "onne", "--root", &root, "--wait"];
    let sentence = format!(
        "No host called onne takes part in the elections that we may read (these take part: one); whether it takes part in shut is \
         not known. The drain is stored for that name: if it is mistyped, zk-leaderctl undrain onne --root {root} removes it\n"
    );
    let said = as_stranger(&drain[..4]);
    assert!(said.code == 0 && said.output.ends_with(&sentence), "{said:?}");
    let said = as_stranger(&drain);
    assert!(said.code == 2 && said.error.ends_with(&sentence), "{said:?}");
    assert!(!said.output.contains("leads none"), "{said:?}");
    // It may be a host of the other one.
    assert!(election.admin.exists(&format!("{root}/drains/onne")));
    let object = as_stranger(&[&drain[..], &["--json"]].concat()).json();
    assert_eq!((&object["state"], &object["reason"]), (&"unknown".into(), &"no-such-host".into()), "{object}");
}

/// The hosts of each have an identity of their own, and the operator forgot his.
#[test]
fn of_elections_that_may_not_be_read_drain_does_not_say_that_the_host_leads_none() {
    let servers = server().connect_string();
    let election = Election::seen_by(Admin::known_as(&servers, HOSTS.1), &servers);
    let root = format!("/shut-{}", election.name);
    for (name, acl) in [("opened", ("world", "anyone")), ("shut", ("auth", ""))] {
        let base = format!("{root}/{name}");
        for below in ["lease", "term", "election"] {
            election.admin.create_all(&format!("{base}/{below}"));
        }
        election.admin.set(&format!("{base}/lease"), r#"{"v":1,"state":"free","lease_ms":5}"#);
        let members = format!("{base}/members");
        election.admin.create_all(&members);
        election.admin.create(&format!("{members}/a"), r#"{"v":1,"id":"a","host":"one"}"#);
        election.admin.set_acl(&base, acl.0, acl.1, "cdrwa");
    }
    let drain = ["drain", "one", "--root", &root, "--wait"];
    let opened = format!("{root}/opened/lease");
    let leads = r#"{"v":1,"state":"held","lease_ms":60000,"holder":{"id":"a","host":"one","pid":1}}"#;
    election.admin.set(&opened, leads);
    let said = std::thread::scope(|scope| {
        let asked = scope.spawn(|| as_stranger(&drain));
        wait::until("it is drained", || election.admin.exists(&format!("{root}/drains/one")));
        // Something else is told in between.
        wait::pass(wait::SETTLED);
        election.admin.set(&opened, r#"{"v":1,"state":"free","lease_ms":5}"#);
        asked.join().unwrap()
    });
    assert!(said.output.contains("one still leads opened\n"), "{said:?}");
    let why = "one may lead shut, which we may not read; give us credentials that may (--auth-file), or look there";
    assert!(said.code == 2 && said.output.matches(why).count() == 1, "once: {said:?}");
    assert!(said.output.ends_with("one leads none of those that we may read\n"), "{said:?}");
    assert!(said.output.contains("of 2 elections below"), "{said:?}");
    assert!(!said.output.contains("leads no election any more"), "{said:?}");
    let object = as_stranger(&[&drain[..], &["--json"]].concat()).json();
    assert_eq!((&object["state"], &object["no_permission_in"]), (&"unknown".into(), &vec!["shut"].into()), "{object}");
    // The drains of others are no election.
    election.admin.set_acl(&format!("{root}/drains"), "auth", "", "cdrwa");
    let said = as_host(&drain);
    assert!(said.code == 0 && said.output.ends_with("one leads no election any more\n"), "{said:?}");
}

/// For all that is known, it stands.
#[test]
fn a_drain_that_may_not_be_read_any_more_is_not_said_to_be_taken_back() {
    let election = Election::on(&server().connect_string());
    let root = format!("/hidden-{}", election.name);
    for below in ["lease", "term", "election", "members"] {
        election.admin.create_all(&format!("{root}/job/{below}"));
    }
    let (lease, drain) = (format!("{root}/job/lease"), format!("{root}/drains/one"));
    let held = r#"{"v":1,"state":"held","lease_ms":60000,"holder":{"id":"a","host":"one","pid":1}}"#;
    election.admin.set(&lease, held);
    election.admin.create(&format!("{root}/job/members/a"), r#"{"v":1,"id":"a","host":"one"}"#);
    let said = std::thread::scope(|scope| {
        let asked = scope.spawn(|| ctl(&["drain", "one", "--root", &root, "--wait"]));
        wait::until("it is drained", || election.admin.exists(&drain));
        election.admin.set_acl(&drain, "world", "anyone", "wda");
        election.admin.set(&lease, r#"{"v":1,"state":"free","lease_ms":5}"#);
        asked.join().unwrap()
    });
    assert!(said.code == 0 && said.output.ends_with("one leads no election any more\n"), "{said:?}");
}

/// They may be for the hosts alone.
#[test]
fn of_drains_that_may_not_be_read_the_doctor_tells_nobody_to_delete_them() {
    let election = Election::seen_by(Admin::known_as(&server().connect_string(), HOSTS.1), &server().connect_string());
    let (root, doctor) = (format!("/drains-{}", election.name), |path: &str| as_stranger(&["doctor", "--path", path]));
    let base = format!("{root}/job");
    for path in
        [&format!("{base}/lease"), &format!("{base}/term"), &format!("{base}/election"), &format!("{root}/drains")]
    {
        election.admin.create_all(path);
    }
    election.admin.set(&format!("{base}/lease"), r#"{"v":1,"state":"free","lease_ms":5}"#);
    election.admin.set_acl(&format!("{root}/drains"), "auth", "", "cdrwa");
    let said = doctor(&base);
    assert!(said.code == 0 && said.output.contains("which hosts are drained is not known"), "{said:?}");
    assert!(said.output.contains("--auth-file") && !said.output.contains("delete it"), "{said:?}");

    election.admin.set_acl(&format!("{root}/drains"), "world", "anyone", "cdrwa");
    election.admin.create(&format!("{root}/drains/one"), "no drain");
    let said = doctor(&base);
    let remedy = format!("so one is not drained; zk-leaderctl undrain one --root {root} deletes it");
    assert!(said.code == 1 && said.output.contains(&remedy), "{said:?}");
    assert_eq!(as_stranger(&["undrain", "one", "--root", &root]).code, 0);
    assert_eq!(doctor(&base).code, 0);
}

/// As `setAcl -R` leaves it.
#[test]
fn a_secret_of_vouch_that_others_may_read_is_told_by_the_hosts_and_the_doctor_and_made_anew() {
    let servers = server().connect_string();
    let election = Election::seen_by(Admin::known_as(&servers, HOSTS.1), &servers);
    let vouching = |id: &str| {
        let host = election.steady_host(id).option("--acl", "creator,world:anyone:r").flag("--vouch");
        host.env("ZK_LEADER_RUN_AUTH", HOSTS.0).spawn()
    };
    let _leader = vouching("a");
    election.diary.until_started(1);
    let vouch = election.path("vouch");
    let closed = election.admin.acl(&vouch);
    for doctor in [as_host(&["doctor", &election.name]), as_stranger(&["doctor", &election.name])] {
        assert!(doctor.code == 0 && doctor.output.contains("only those whom the ACLs name"), "{doctor:?}");
    }
    election.admin.set_acl(&vouch, "world", "anyone", "r");
    let warned = format!("world:anyone:r may read {vouch}");
    for doctor in [as_host(&["doctor", &election.name]), as_stranger(&["doctor", &election.name])] {
        assert!(doctor.code == 1 && doctor.output.contains(&warned), "{doctor:?}");
    }
    let next = vouching("b");
    next.until_logged("Others than the hosts may read the secret");
    // The remedy.
    election.admin.delete(&vouch);
    wait::until("there is another one", || election.admin.find_acl(&vouch).is_some_and(|acl| acl == closed));
    assert_eq!(as_host(&["doctor", &election.name]).code, 0);
}

#[test]
fn the_doctor_says_what_everyone_may_change() {
    let (election, _leader) = led("creator");
    election.admin.set_acl(&election.path("election"), "world", "anyone", "cdrwa");
    let said = as_host(&["doctor", &election.name]);
    let open = format!("everyone may change {};", election.path("election"));
    assert!(said.code == 0 && said.output.contains(&open), "{said:?}");
}

/// Whoever may give a drain stops commands. Everyone may create elections beside ours, and their hosts must read their drains.
#[test]
fn below_a_closed_root_everyone_may_read_drains_and_only_its_owners_give_them() {
    let servers = server().connect_string();
    let election = Election::seen_by(Admin::known_as(&servers, HOSTS.1), &servers);
    let root = format!("/owned-{}", election.name);
    let host = election.steady_host("a").without("--name").option("--path", &format!("{root}/job"));
    let mut host = host.option("--acl", "creator").env("ZK_LEADER_RUN_AUTH", HOSTS.0).command(&["true"]).spawn();
    assert_eq!(host.code(), 0, "{}", host.log());
    assert!(election.admin.acl(&root).contains(&"world:anyone:cr".to_owned()), "others may come beside it");
    let said = as_host(&["drain", "one", "--root", &root]);
    assert_eq!(said.code, 0, "{said:?}");
    for path in ["drains", "drains/one"].map(|below| format!("{root}/{below}")) {
        let acl = election.admin.acl(&path);
        let (all, owners): (Vec<_>, Vec<_>) = acl.iter().partition(|entry| entry.starts_with("world:"));
        assert_eq!(all, ["world:anyone:r"], "what everyone may do at {path}");
        assert!(matches!(owners[..], [only] if only.starts_with("digest:hosts:")), "{path}: {acl:?}");
    }
}
