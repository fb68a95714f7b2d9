//! Whose the znodes are that we create: all of them, and their ancestors.

use super::{election, server};
use crate::support::{Admin, Election, Subject, wait};

/// Everyone, but nobody may change it.
const NO_ADMIN: &str = "world:anyone:cdrw";

/// A path below roots that no other test has.
fn base_of(election: &Election) -> String {
    format!("/acl-{}/jobs/nightly", election.name)
}

fn host(election: &Election, id: &str) -> Subject {
    election.steady_host(id).without("--name").option("--path", &base_of(election))
}

/// The paths of a znode and all below it.
pub(super) fn tree(election: &Election, path: &str) -> Vec<String> {
    let children = election.admin.children(path);
    let below = children.iter().flat_map(|child| tree(election, &format!("{path}/{child}")));
    std::iter::once(path.to_owned()).chain(below).collect()
}

#[test]
fn everything_that_is_created_has_the_acl_that_was_asked_for() {
    let recipes: [&[(&str, &str)]; 3] = [&[("--slot", "noon")], &[("--recipe", "single")], &[("--leaders", "2")]];
    for (recipe, mut expected) in recipes.into_iter().zip([
        vec!["/runs/last", "/runs/slot-noon"],
        vec!["/election/leader"],
        vec!["/slots/0/lease", "/slots/0/term", "/slots/1/lease", "/slots/1/term"],
    ]) {
        let election = election();
        let base = base_of(&election);
        let options = recipe.iter().chain(&[("--acl", NO_ADMIN)]);
        let host = options.fold(host(&election, "a"), |host, (option, value)| host.option(option, value)).spawn();
        expected.extend(["/election", "/lease", "/term", "/members/a", "/history"]);
        let seen = wait::held_within(wait::LIMIT, || {
            let tree = tree(&election, &base);
            expected.iter().all(|below| tree.contains(&format!("{base}{below}")))
        });
        assert!(seen, "{expected:?} are not all there: {:?}\n{}", tree(&election, &base), host.log());
        for path in tree(&election, &base) {
            assert_eq!(election.admin.acl(&path), [NO_ADMIN], "{path} of {recipe:?}");
        }
        let shared = [NO_ADMIN, "world:anyone:cr"];
        for ancestor in [format!("/acl-{}", election.name), format!("/acl-{}/jobs", election.name)] {
            assert_eq!(election.admin.acl(&ancestor), shared, "{ancestor}: elections of others may come beside ours");
        }
    }
}

#[test]
fn without_the_option_everyone_may_do_everything() {
    let election = election();
    let _host = host(&election, "a").spawn();
    election.diary.until_started(1);
    let root = format!("/acl-{}", election.name);
    for path in tree(&election, &root) {
        assert_eq!(election.admin.acl(&path), ["world:anyone:cdrwa"], "{path}");
    }
}

/// Hosts that share this election's identity.
const LOGIN: &str = "digest:hosts:secret";

fn with(host: Subject, login: &str) -> Subject {
    host.env("ZK_LEADER_RUN_AUTH", login)
}

#[test]
fn hosts_that_share_an_identity_share_an_election_that_is_theirs_alone() {
    let servers = server().connect_string();
    let election = Election::seen_by(Admin::known_as(&servers, "hosts:secret"), &servers);
    let contender = |id| with(host(&election, id).option("--acl", "creator"), LOGIN).spawn();
    let leader = contender("a");
    election.diary.until_started(1);
    let _next = contender("b");
    let base = base_of(&election);
    wait::until("both stand in line", || election.admin.children(&format!("{base}/election")).len() == 2);
    leader.kill();
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
    for path in tree(&election, &base) {
        let acl = election.admin.acl(&path);
        let [only] = acl.as_slice() else { panic!("{path}: {acl:?}") };
        assert!(only.starts_with("digest:hosts:") && only.ends_with(":cdrwa"), "{path}: {acl:?}");
    }
}

#[test]
fn an_acl_that_shuts_us_out_is_refused_and_nothing_is_created() {
    let election = election();
    // Of others:secret, which is not ours.
    let acl = "digest:others:Ig15yQ+WGAZ3uyRGYyWmGpG0fmI=";
    let mut host = with(host(&election, "a").option("--acl", acl), LOGIN).spawn();
    assert_eq!(host.code(), 77, "{}", host.log());
    let base = base_of(&election);
    assert!(
        host.log().contains(&format!("we may not create a child of {base}: its ACL does not give us right c")),
        "{}",
        host.log()
    );
    assert!(!election.admin.exists(&base), "nothing was created");
}

#[test]
fn znodes_that_exist_keep_their_acl_and_that_is_said() {
    let election = election();
    assert_eq!(host(&election, "a").command(&["true"]).spawn().code(), 0);
    let host = with(host(&election, "b").option("--acl", "creator"), LOGIN).spawn();
    host.until_logged("Others than --acl says may change a znode");
    host.until_logged("intruder=world:anyone:cdrwa");
    for decisive in ["election", "lease", "term"] {
        host.until_logged(&format!("path={}/{decisive} ", base_of(&election)));
    }
    election.diary.until_started(1);
}
