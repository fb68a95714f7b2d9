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
