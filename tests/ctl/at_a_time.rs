//! Many elections below one root, and a network that is slow: they are read several at a time.

use super::operator::process;
use super::{election, link};
use crate::support::proxy::request::{GET_CHILDREN2, GET_DATA};
use crate::support::{Proxy, Subject, wait};

const ELECTIONS: usize = 20;
/// Of them at a time.
const AT_A_TIME: usize = 16;

/// How often `list` or `drain` has listed the children of an election or of what is below one.
fn listed(link: &Proxy, root: &str) -> usize {
    let about = format!("{root}/");
    link.requests().iter().filter(|request| request.kind == GET_CHILDREN2 && request.text.contains(&about)).count()
}

/// Each of them is asked for before any answer about one has come.
#[test]
fn elections_are_read_sixteen_at_a_time() {
    let (election, link) = (election(), link());
    let root = format!("/many-{}", election.name);
    let names: Vec<_> = (10..10 + ELECTIONS).map(|number| format!("job-{number}")).collect();
    for name in &names {
        election.admin.create_all(&format!("{root}/{name}/term"));
        election.admin.create(&format!("{root}/{name}/lease"), r#"{"v":1,"state":"free","lease_ms":1000}"#);
    }
    for words in [&["list", "-o", "plain", "--path", &root][..], &["drain", "nobody", "-o", "plain", "--root", &root]] {
        let before = listed(&link, &root);
        // Is it an election?
        link.hold_replies_about(&format!("{root}/"), &[GET_CHILDREN2]);
        let mut asked = Subject::start(process(&link.connect_string(), words, &[]));
        wait::until("elections are looked for", || listed(&link, &root) - before >= AT_A_TIME);
        wait::pass(wait::SETTLED);
        assert_eq!(listed(&link, &root) - before, AT_A_TIME);
        // What is in it?
        link.hold_replies_about(&format!("{root}/"), &[GET_DATA]);
        link.heal();
        wait::until("elections are read", || listed(&link, &root) - before >= ELECTIONS + AT_A_TIME);
        wait::pass(wait::SETTLED);
        assert_eq!(listed(&link, &root) - before, ELECTIONS + AT_A_TIME);
        link.heal();
        assert_eq!(asked.code(), 0, "{}", asked.log());
        let said = asked.output();
        let shown: Vec<_> = said.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert!(shown == names || said == "drained\n", "{said}");
    }
}

/// Of one election, the candidates and the members.
#[test]
fn the_znodes_of_many_hosts_are_read_many_at_a_time() {
    const HOSTS: usize = 100;
    const AT_A_TIME: usize = 64;
    let (election, link) = (election(), link());
    election.prepare();
    let (candidates, members) = (election.path("election/"), election.path("members/"));
    election.admin.create_all(&election.path("members"));
    for number in 0..HOSTS {
        let name = format!("_c_{}-latch-{number:010}", uuid::Uuid::from_u128(number as u128));
        election.admin.create(&format!("{candidates}{name}"), &format!("h{number}"));
        election.admin.create(&format!("{members}h{number}"), r#"{"v":1,"id":"a","host":"h"}"#);
    }
    let read = |below: &str| {
        let requests = link.requests();
        requests.iter().filter(|request| request.kind == GET_DATA && request.text.contains(below)).count()
    };
    link.hold_replies_about(&candidates, &[GET_DATA]);
    let mut asked = Subject::start(process(&link.connect_string(), &["status", "-o", "json", &election.name], &[]));
    for (below, next) in [(&candidates, Some(&members)), (&members, None)] {
        wait::until("many are asked for", || read(below) >= AT_A_TIME);
        wait::pass(wait::SETTLED);
        assert_eq!(read(below), AT_A_TIME);
        if let Some(next) = next {
            link.hold_replies_about(next, &[GET_DATA]);
        }
        link.heal();
    }
    let status = asked.code();
    let said: serde_json::Value = serde_json::from_str(&asked.output()).unwrap();
    assert_eq!((status, said["contenders"].as_array().unwrap().len()), (1, HOSTS));
}

/// It releases and leaves after its record was read, and the next one leads.
#[test]
fn leaders_that_change_while_they_are_looked_at_are_not_said_to_be_gone() {
    let (election, link) = (election(), link());
    election.prepare();
    let held =
        |id: &str| format!(r#"{{"v":1,"state":"held","lease_ms":600000,"holder":{{"id":"{id}","host":"h","pid":1}}}}"#);
    let candidate = |number| election.path(&format!("election/_c_{}-latch-{number:010}", uuid::Uuid::nil()));
    election.admin.set(&election.path("lease"), &held("b"));
    election.admin.create(&candidate(0), "b");
    link.hold_replies_about(&election.path("election"), &[GET_CHILDREN2]);
    let mut asked = Subject::start(process(&link.connect_string(), &["status", &election.name], &[]));
    let directory = election.path("election");
    wait::until("the line is asked for", || {
        let requests = link.requests();
        requests.iter().any(|request| request.kind == GET_CHILDREN2 && request.text.contains(&directory))
    });
    // The answer is on the way.
    wait::pass(wait::SETTLED);
    election.admin.delete(&candidate(0));
    election.admin.create(&candidate(1), "c");
    election.admin.set(&election.path("lease"), &held("c"));
    link.heal();
    let status = asked.code();
    let said = asked.output();
    assert!(status == 0 && said.contains("leader    c") && !said.contains("is gone"), "{said}");
}
