//! Rule by rule: what one server does.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::compare::assert_same;
use crate::memory::{ADMIN, ALL, ANY_VERSION, Acl, CREATE, CreateMode, DELETE, READ, Request, WRITE};
use crate::random;
use crate::requests::{
    acl_of, ask, auth, check, children, close, come_back, create, create_as, create_for, creation, delete, deletion,
    exists, get, multi, open, reset, set, set_acl, setting, watch, watch_children, watch_data,
};
use crate::script::{Step, sync};
use crate::support::Ensemble;

/// One script at a time, or the zxids of several mix.
fn server() -> MutexGuard<'static, Ensemble> {
    static SERVER: Mutex<Option<&'static Mutex<Ensemble>>> = Mutex::new(None);
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let server = *server.get_or_insert_with(|| Box::leak(Box::new(Mutex::new(Ensemble::single()))));
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

#[track_caller]
fn holds(steps: impl IntoIterator<Item = Step>) {
    let start = [open(0), open(1), open(2), auth(2, "bob:secret"), create(0, "/t", "base")];
    let steps: Vec<Step> = start.into_iter().chain(steps).collect();
    assert_same(&server(), &steps);
}

#[test]
fn random_scripts_have_the_same_transcripts() {
    random::hold(&server(), 400);
}

#[test]
fn stats_tell_creations_changes_and_children() {
    holds([
        create(0, "/t/a", "one"),
        set(0, "/t/a", "longer", ANY_VERSION),
        set(1, "/t/a", "", 1),
        create(0, "/t/a/b", ""),
        create(1, "/t/a/c", ""),
        exists(1, "/t/a"),
        get(1, "/t/a"),
        children(1, "/t/a"),
        delete(0, "/t/a/b"),
        children(1, "/t/a"),
        children(0, "/zookeeper"),
        acl_of(0, "/zookeeper/config"),
        exists(0, "/zookeeper/config"),
        acl_of(0, "/t/a"),
    ]);
}

#[test]
fn impossible_requests_are_refused_for_the_same_reason_and_cost_a_zxid() {
    holds([
        create(0, "/t/a", ""),
        create(0, "/t/a", ""),
        create(0, "/t/none/a", ""),
        create_as(0, "/t/e", "", CreateMode::Ephemeral),
        create(0, "/t/e/child", ""),
        set(0, "/t/none", "", ANY_VERSION),
        set(0, "/t/a", "", 3),
        delete(0, "/t/none"),
        ask(0, Request::Write(deletion("/t/a", 3))),
        create(0, "/t/a/b", ""),
        delete(0, "/t/a"),
        delete(0, "/"),
        delete(0, "/zookeeper"),
        delete(0, "t"),
        create(0, "/t/", ""),
        create(0, "/t//a", ""),
        create(0, "/t/../a", ""),
        create(0, "t", ""),
        create(0, "/", ""),
        set(0, "/t/a/", "", ANY_VERSION),
        get(0, "/t/none"),
        exists(0, "/t/none"),
        children(0, "/t/none"),
        acl_of(0, "/t/none"),
        set_acl(0, "/t/none", Acl::open(), ANY_VERSION),
        exists(1, "/t"),
    ]);
}

#[test]
fn sequence_numbers_count_the_children_ever_created() {
    let next = |client| create_as(client, "/t/s-", "", CreateMode::PersistentSequential);
    holds([
        next(0),
        create(0, "/t/other", ""),
        next(1),
        delete(0, "/t/s-0000000000"),
        delete(0, "/t/other"),
        create_as(0, "/t/s-", "", CreateMode::EphemeralSequential),
        create_as(0, "/t/", "", CreateMode::EphemeralSequential),
        create(0, "/t/other", ""),
        create(0, "/t/other", ""),
        set(0, "/t", "", ANY_VERSION),
        next(2),
        multi(
            0,
            vec![
                creation("/t/m-", Acl::open(), CreateMode::PersistentSequential),
                creation("/t/m-", Acl::open(), CreateMode::EphemeralSequential),
                deletion("/t/other", ANY_VERSION),
                creation("/t/m-", Acl::open(), CreateMode::PersistentSequential),
            ],
        ),
        multi(
            0,
            vec![creation("/t/m-", Acl::open(), CreateMode::PersistentSequential), deletion("/t/none", ANY_VERSION)],
        ),
        next(0),
        children(0, "/t"),
    ]);
}

#[test]
fn multis_do_all_or_nothing_and_tell_what_failed() {
    let persistent = |path| creation(path, Acl::open(), CreateMode::Persistent);
    holds([
        multi(0, vec![persistent("/t/a"), setting("/t/a", "x", 0), check("/t/a", 1), persistent("/t/a/b")]),
        exists(0, "/t/a"),
        multi(0, vec![check("/t/a", 1), setting("/t/a", "y", 1), deletion("/t/a/b", 0), deletion("/t/a", 2)]),
        exists(0, "/t/a"),
        multi(0, vec![persistent("/t/a"), check("/t", 7), persistent("/t/b"), persistent("/t/c")]),
        multi(0, vec![persistent("/t/a"), persistent("/t/b"), persistent("/t/a")]),
        multi(0, vec![deletion("/t/none", ANY_VERSION), check("/t", ANY_VERSION)]),
        multi(0, vec![check("/t", ANY_VERSION), check("/t", 0)]),
        multi(0, vec![check("/t/none", ANY_VERSION)]),
        multi(0, vec![creation("/t/e", Acl::open(), CreateMode::Ephemeral), persistent("/t/e/child")]),
        multi(0, vec![persistent("/t/a"), deletion("/t/a", ANY_VERSION), persistent("/t/a")]),
        multi(0, vec![creation("/t/x", vec![], CreateMode::Persistent), persistent("/t/y")]),
        children(0, "/t"),
        exists(0, "/t"),
    ]);
}

#[test]
fn watches_fire_once_and_before_the_reply_that_shows_the_change() {
    holds([
        watch(0, "/t/a"),
        watch(1, "/t/a"),
        watch_children(0, "/t"),
        watch_children(1, "/t"),
        create(0, "/t/a", ""),
        create(0, "/t/b", ""),
        watch_data(0, "/t/a"),
        watch(0, "/t/a"),
        watch_data(1, "/t/a"),
        set(1, "/t/a", "x", ANY_VERSION),
        set(1, "/t/a", "y", ANY_VERSION),
        watch_data(0, "/t/a"),
        watch_children(0, "/t/a"),
        watch_children(0, "/t"),
        watch_children(1, "/t/a"),
        create(1, "/t/a/c", ""),
        watch_children(0, "/t/a"),
        delete(1, "/t/a/c"),
        watch_children(0, "/t/a"),
        delete(0, "/t/a"),
        watch_data(0, "/t/none"),
        watch_children(0, "/t/none"),
        watch(0, "/t/none"),
        create(1, "/t/none", ""),
    ]);
}

#[test]
fn every_operation_of_a_multi_fires_in_its_turn() {
    let persistent = |path| creation(path, Acl::open(), CreateMode::Persistent);
    holds([
        watch(0, "/t/a"),
        watch_children(0, "/t"),
        watch(1, "/t/b"),
        watch_data(1, "/t"),
        multi(
            0,
            vec![
                persistent("/t/a"),
                setting("/t/a", "x", ANY_VERSION),
                persistent("/t/b"),
                setting("/t", "x", ANY_VERSION),
                deletion("/t/a", ANY_VERSION),
            ],
        ),
        watch_children(0, "/t"),
        watch(1, "/t/a"),
        multi(1, vec![persistent("/t/a"), check("/t", 9)]),
        ask(1, sync()),
    ]);
}

#[test]
fn a_closed_session_takes_its_ephemeral_znodes_along() {
    let ephemeral = |client, path| create_as(client, path, "", CreateMode::Ephemeral);
    holds([
        ephemeral(1, "/t/a"),
        ephemeral(1, "/t/b"),
        ephemeral(2, "/t/c"),
        create(1, "/t/d", ""),
        ask(1, Request::GetEphemerals { prefix: "/".to_owned() }),
        ask(1, Request::GetEphemerals { prefix: "/t/b".to_owned() }),
        watch(0, "/t/a"),
        watch_data(0, "/t/b"),
        watch_children(0, "/t"),
        watch(1, "/t/a"),
        close(1),
        children(0, "/t"),
        exists(0, "/t/c"),
        open(1),
        children(1, "/t"),
        come_back(1, &[], &[], &[]),
    ]);
}

#[test]
fn a_session_that_is_closed_is_not_opened_again() {
    holds([close(1), come_back(1, &[], &[], &[]), close(0), come_back(0, &["/t"], &[], &[])]);
}

#[test]
fn a_session_that_comes_back_hears_what_it_missed() {
    holds([
        create(0, "/t/a", ""),
        create(0, "/t/b", ""),
        create(0, "/t/same", ""),
        create_as(1, "/t/e", "", CreateMode::Ephemeral),
        watch_data(1, "/t/a"),
        reset(1),
        set(0, "/t/a", "x", ANY_VERSION),
        delete(0, "/t/b"),
        create(0, "/t/c", ""),
        come_back(1, &["/t/a", "/t/b", "/t/same", "/t/e"], &["/t/c", "/t/none"], &["/t", "/t/b", "/t/same"]),
        set(0, "/t/same", "x", ANY_VERSION),
        create(0, "/t/none", ""),
        create(0, "/t/same/child", ""),
        delete(0, "/t/e"),
        // On the same server, while the server does not know that the old connection is gone.
        Step::Move { client: 1, to: 1, server: 0 },
        exists(1, "/t/e"),
    ]);
}

#[test]
fn each_request_takes_its_permission() {
    let kinds = [READ, WRITE, CREATE, DELETE, ADMIN, ALL, 0];
    let path = |at| format!("/t/p{at}");
    let mut steps = Vec::new();
    for (at, permissions) in kinds.into_iter().enumerate() {
        let acl = vec![Acl::new(permissions, "world", "anyone"), Acl::new(ALL, "auth", "")];
        steps.push(create_for(2, &path(at), acl));
        steps.push(create(2, &format!("{}/there", path(at)), ""));
    }
    for client in [1, 2] {
        for at in 0..kinds.len() {
            let path = path(at);
            steps.extend([
                watch(client, &path),
                watch_data(client, &path),
                watch_children(client, &path),
                acl_of(client, &path),
                multi(client, vec![check(&path, ANY_VERSION)]),
                set(client, &path, "x", ANY_VERSION),
                create(client, &format!("{path}/child"), ""),
                delete(client, &format!("{path}/child")),
                delete(client, &format!("{path}/there")),
                set_acl(client, &path, vec![Acl::new(READ, "world", "anyone")], ANY_VERSION),
                set_acl(2, &path, vec![Acl::new(ALL, "auth", ""), Acl::new(WRITE, "world", "anyone")], ANY_VERSION),
                set(2, &path, "for those who may read", ANY_VERSION),
                delete(client, &path),
            ]);
        }
    }
    holds(steps);
}

#[test]
fn acls_are_checked_completed_and_masked() {
    let one = |permissions, scheme, id| vec![Acl::new(permissions, scheme, id)];
    holds([
        create_for(1, "/t/auth", one(ALL, "auth", "")),
        create_for(2, "/t/auth", one(ALL, "auth", "")),
        acl_of(1, "/t/auth"),
        acl_of(2, "/t/auth"),
        exists(1, "/t/auth"),
        create_for(1, "/t/ip", one(ALL, "ip", "127.0.0.1")),
        get(1, "/t/ip"),
        create_for(1, "/t/net", one(ALL, "ip", "127.1.2.3/8")),
        get(1, "/t/net"),
        create_for(1, "/t/far", one(ALL, "ip", "10.0.0.0/8")),
        get(1, "/t/far"),
        create_for(1, "/t/x", one(ALL, "ip", "10.0.0.0/40")),
        create_for(1, "/t/x", one(ALL, "ip", "10.0.0")),
        create_for(1, "/t/x", one(ALL, "world", "me")),
        create_for(1, "/t/x", one(ALL, "digest", "nohash")),
        create_for(1, "/t/x", one(ALL, "unknown", "a:b")),
        create_for(1, "/t/x", vec![]),
        create_for(1, "/t/two", [one(READ, "world", "anyone"), one(READ, "world", "anyone")].concat()),
        acl_of(1, "/t/two"),
        create_for(1, "/t/digest", [one(READ, "world", "anyone"), one(ALL, "digest", "bob:hash")].concat()),
        acl_of(1, "/t/digest"),
        set_acl(1, "/t/two", Acl::open(), ANY_VERSION),
        set_acl(1, "/t/ip", Acl::open(), 4),
        set_acl(1, "/t/ip", one(READ | ADMIN, "world", "anyone"), 0),
        set_acl(1, "/t/ip", vec![], 1),
        set_acl(1, "/t/ip", Acl::open(), 1),
        exists(1, "/t/ip"),
        ask(1, Request::Auth { scheme: "ip".to_owned(), data: vec![] }),
        auth(1, "bob:secret"),
        get(1, "/t/auth"),
        ask(1, Request::Auth { scheme: "nonsense".to_owned(), data: vec![] }),
        get(1, "/t"),
    ]);
}

#[test]
fn events_reach_only_who_may_read_the_znode() {
    let secret = || vec![Acl::new(ALL, "auth", "")];
    holds([
        watch(1, "/t/a"),
        watch(2, "/t/a"),
        watch_children(1, "/t"),
        create_for(2, "/t/a", secret()),
        create(2, "/t/b", ""),
        watch_data(1, "/t/b"),
        watch_children(1, "/t/b"),
        set_acl(2, "/t/b", secret(), ANY_VERSION),
        set(2, "/t/b", "x", ANY_VERSION),
        create(2, "/t/b/child", ""),
        set_acl(2, "/t/b", Acl::open(), ANY_VERSION),
        set(2, "/t/b", "y", ANY_VERSION),
        delete(2, "/t/a"),
    ]);
}

#[test]
fn session_timeouts_are_negotiated() {
    // The last step of a script, before a short session can expire.
    for timeout_ms in [1, 399, 401, 7_000_000] {
        holds([Step::Open { client: 3, server: 0, timeout_ms }]);
    }
}

#[test]
fn a_session_is_not_opened_with_a_wrong_password() {
    let wrong = Step::Steal { client: 3, of: 1 };
    holds([create_as(1, "/t/e", "", CreateMode::Ephemeral), wrong, exists(1, "/t/e")]);
}
