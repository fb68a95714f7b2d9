//! token-check and put --fenced: only the newest token counts, by the word of a quorum.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, mpsc};
use std::thread;

use super::failures::NOBODY;
use super::operator::{ctl, ctl_at, process};
use super::{election, link, server};
use crate::support::proxy::request;
use crate::support::{Election, Ensemble, Proxy, wait};

#[test]
fn only_the_newest_token_is_valid() {
    let election = election();
    election.prepare();
    let check = |token: i64| ctl(&["token-check", &token.to_string(), &election.name]).code;
    let old = election.term().mzxid;
    assert_eq!((check(old), check(old - 1), check(old + 1_000_000)), (0, 1, 1));
    election.prepare();
    assert_eq!((check(old), check(election.term().mzxid)), (1, 0));
}

#[test]
fn no_token_is_valid_where_nobody_has_ever_led() {
    let election = election();
    for path in ["term", "election", "members"] {
        election.admin.create_all(&election.path(path));
    }
    let said = ctl(&["token-check", "5", &election.name]);
    let sentence = "5 is not the newest token: none was given yet\n";
    assert_eq!((said.code, said.output.as_str(), said.error.as_str()), (1, sentence, ""));
}

#[test]
fn a_fenced_write_is_done_under_the_newest_token_and_no_other() {
    let election = election();
    election.prepare();
    let own = format!("/own-{}", election.name);
    election.admin.create(&own, "0");
    let old = election.term().mzxid.to_string();
    let other = self::election();
    other.prepare();
    let of_other = other.term().mzxid;
    let put = |token: &str, path: &str, value: &str, more: &[&str]| {
        let words = [&["put", "--fenced", "--name", &election.name, "--token", token, path, value], more].concat();
        ctl(&words).code
    };
    assert_eq!(put(&old, &own, "1", &[]), 0);
    assert_eq!(election.admin.read(&own), "1");
    election.prepare();
    assert_eq!(put(&old, &own, "2", &[]), 1, "it was deposed");
    assert_eq!(election.admin.read(&own), "1");

    let new = election.term().mzxid.to_string();
    let below = format!("{own}/below");
    assert_eq!(put(&new, &below, "3", &[]), 2, "it does not exist");
    assert_eq!(put(&old, &below, "3", &["--create"]), 1);
    assert!(!election.admin.exists(&below));
    assert_eq!(put(&new, &below, "-4", &["--create"]), 0);
    assert_eq!(election.admin.read(&below), "-4");
    for ours in ["lease", "term", "election/x"] {
        assert_eq!(put(&new, &election.path(ours), "5", &["--create"]), 64, "{ours} belongs to the election");
        assert_eq!(put(&new, &other.path(ours), "5", &["--create"]), 64, "{ours} belongs to another election");
    }
    let base_of_other = other.path("");
    assert_eq!(put(&new, base_of_other.trim_end_matches('/'), "5", &[]), 64, "it is no znode of ours either");
    assert_eq!(other.term().mzxid, of_other);
    for slot in ["slots/0/term", "slots/0/lease"] {
        other.admin.create_all(&other.path(slot));
    }
    let of_slot = other.path("slots/0/term");
    let said = ctl(&["put", "--fenced", "--name", &election.name, "--token", &new, &of_slot, "5"]);
    let owner = format!("{of_slot} belongs to the election {};", other.path("").trim_end_matches('/'));
    assert!(said.code == 64 && said.error.contains(&owner), "{said:?}");
}

#[test]
fn the_command_of_a_leader_finds_its_token_and_its_election_in_its_environment() {
    let election = election();
    election.prepare();
    let own = format!("/own-{}", election.name);
    let (token, path) = (election.term().mzxid.to_string(), format!("/zk-leader-run/{}", election.name));
    let variables = [("ZK_LEADER_TOKEN", token.as_str()), ("ZK_LEADER_PATH", path.as_str())];
    let servers = server().connect_string();
    let said = ctl_at(&servers, &["put", "--fenced", "--create", &own, "value"], &variables);
    assert_eq!((said.code, election.admin.read(&own)), (0, "value".to_owned()), "{said:?}");
    assert_eq!(ctl_at(&servers, &["token-check", &token], &variables).code, 0);
}

/// A session that waited for a slow program would run out.
#[test]
fn the_value_is_read_before_any_server_is_asked() {
    let mut put = process(NOBODY, &["put", "--fenced", "--token", "7", "--name", "a", "/b"], &[]);
    let too_large = std::fs::File::open("/dev/zero").unwrap();
    let output = put.stdin(too_large).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(64) && error.contains("the value is larger than"), "{error}");
}

/// A follower that is cut off answers reads for five seconds (`syncLimit`): what it says of the term may be out of date.
#[test]
fn no_token_is_valid_by_the_word_of_one_server() {
    let ensemble = Ensemble::of(3);
    let leader = wait::for_some("there is a leader", || ensemble.leader());
    let follower = (leader + 1) % 3;
    let others = [leader, (leader + 2) % 3].map(|server| ensemble.server(server));
    let election = Election::on(&ensemble.connect_string());
    election.prepare();
    let token = election.term().mzxid.to_string();
    let link = Proxy::to(ensemble.server(follower).address());
    let check = || ctl_at(&link.connect_string(), &["token-check", &token, &election.name], &[]);
    assert_eq!(check().code, 0);
    let before = link.forwarded().len();

    let (opened, is_opened) = mpsc::channel();
    let (cut_off, is_cut_off) = mpsc::channel();
    let mut is_first = true;
    link.tamper(move |reply| {
        if std::mem::take(&mut is_first) {
            opened.send(()).unwrap();
            is_cut_off.recv().unwrap();
        }
        reply
    });
    let said = thread::scope(|scope| {
        let said = scope.spawn(check);
        // Its session; from here on the follower is alone.
        is_opened.recv().unwrap();
        for server in others {
            server.pause();
        }
        cut_off.send(()).unwrap();
        said.join().unwrap()
    });
    for server in others {
        server.resume();
    }
    assert_eq!(said.code, 2, "{said:?}");
    let reads = [request::GET_DATA, request::GET_CHILDREN2];
    let asked = link.forwarded().split_off(before);
    assert!(asked.iter().filter(|kind| reads.contains(kind)).count() > 2, "it answers no reads: {asked:?}");
}

/// A link to a server that is cut off from the others, and goes on answering: what it says of a lease record is what it said
/// the first time. Whether it has, and whether it is back.
fn server_behind() -> (Proxy, Arc<AtomicBool>, Arc<AtomicBool>) {
    const LENGTH: usize = 4;
    // xid, zxid, error.
    const HEADER: usize = LENGTH + 16;
    let (link, has_answered, is_back) = (link(), Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (answered, back) = (Arc::clone(&has_answered), Arc::clone(&is_back));
    let mut first = None;
    link.tamper(move |reply| {
        if back.load(SeqCst) || !String::from_utf8_lossy(&reply).contains(r#""state":"held""#) {
            return reply;
        }
        answered.store(true, SeqCst);
        let said: &Vec<u8> = first.get_or_insert_with(|| reply[HEADER..].to_vec());
        let mut stale = reply[..HEADER].to_vec();
        stale.extend(said);
        let length = u32::try_from(stale.len() - LENGTH).unwrap().to_be_bytes();
        stale[..LENGTH].copy_from_slice(&length);
        stale
    });
    (link, has_answered, is_back)
}

/// `disable --wait` by that server, of a command that takes its time. `meanwhile`: once the host has heard of it.
fn disabled_by_a_server_behind(meanwhile: impl FnOnce(&Proxy)) {
    let election = election();
    let host = election.host("a").witness(&election.diary, &["ignore-term"]).option("--stop-timeout", "6s").spawn();
    election.diary.until_started(1);
    let (link, _, is_back) = server_behind();
    thread::scope(|scope| {
        let disabled = scope.spawn(|| {
            let said = ctl_at(&link.connect_string(), &["disable", &election.name, "--wait"], &[]);
            (said, election.diary.somebody_lives())
        });
        host.until_logged("Disabled by");
        meanwhile(&link);
        // It renews its lease until then, unseen from there.
        wait::until("the command has ended, or is said to have", || {
            disabled.is_finished() || !election.diary.somebody_lives()
        });
        is_back.store(true, SeqCst);
        let (said, somebody_lives) = disabled.join().unwrap();
        assert!(said.code == 0 && said.output.ends_with("no command runs\n") && !somebody_lives, "{said:?}");
    });
}

#[test]
fn no_command_is_said_to_have_ended_by_the_word_of_one_server() {
    disabled_by_a_server_behind(|_| {});
}

/// Who hears no answer to the question whether the lease is over would else start the command by hand, beside the other one.
#[test]
fn no_command_is_said_to_have_ended_where_the_others_do_not_answer() {
    disabled_by_a_server_behind(|link| {
        // The order was written before; of what is left only the check is a multi.
        link.drop_next_reply_to(&[request::MULTI]);
        link.wait_until_dropped(1);
    });
}

/// Its candidate and its member are gone, and others vouch for it, or it has just come back.
#[test]
fn no_host_is_said_to_lead_nothing_by_the_word_of_one_server() {
    let election = election();
    election.prepare();
    let root = format!("/behind-{}", election.name);
    let base = format!("{root}/job");
    for below in ["lease", "term", "election"] {
        election.admin.create_all(&format!("{base}/{below}"));
    }
    let record = |renewed: u32| {
        format!(
            r#"{{"v":1,"state":"held","lease_ms":2000,"guarantee":"at-most-one","renewed":{renewed},
            "holder":{{"id":"a","host":"one","pid":1}}}}"#
        )
    };
    election.admin.set(&format!("{base}/lease"), &record(0));
    let (link, has_answered, _) = server_behind();
    let said = thread::scope(|scope| {
        let words = ["drain", "one", "--root", &root, "--wait", "--timeout", "6s"];
        let servers = link.connect_string();
        let said = scope.spawn(move || ctl_at(&servers, &words, &[]));
        wait::until("that server has said who leads", || has_answered.load(SeqCst));
        election.admin.set(&format!("{base}/lease"), &record(1));
        said.join().unwrap()
    });
    assert!(said.code == 2 && said.output.contains("one still leads job"), "{said:?}");
}
