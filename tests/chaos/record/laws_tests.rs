//! A history that keeps the laws is accepted. The same one, in which one host writes what it must not, and every server still does
//! as it is told, is refused, and the law is named.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::history::Exchange;
use super::super::judge::judge;
use super::super::protocol::{Outcome, Reply, Request, Stat};
use super::*;

const SECOND: Nanos = 1_000_000_000;
const LEASE: Nanos = 2 * SECOND;

/// One write: when, from which host, what.
#[derive(Clone)]
struct Write {
    at: Nanos,
    host: &'static str,
    ops: Vec<Op>,
}

fn lease(state: &str, nonce: &str, more: &Value) -> String {
    let mut json = json!({
        "v": 1, "state": state, "lease_ms": LEASE / 1_000_000, "holder": { "nonce": nonce, "candidate": format!("of-{nonce}") },
    });
    json.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json.to_string()
}

fn set(name: &str, data: String, version: i32) -> Op {
    Op::Set { path: format!("/job/{name}"), data, version }
}

fn check(name: &str, version: i32) -> Op {
    Op::Check { path: format!("/job/{name}"), version }
}

fn take_over(nonce: &str, more: &Value, (term, record): (i32, i32)) -> Vec<Op> {
    let leader = json!({ "v": 1, "lease_ms": 2000, "leader": { "nonce": nonce } }).to_string();
    let candidate = check(&format!("election/of-{nonce}"), -1);
    vec![candidate, set("term", leader, term), set("lease", lease("held", nonce, more), record)]
}

fn renew(nonce: &str, token: i64, (term, record): (i32, i32)) -> Vec<Op> {
    let record = set("lease", lease("held", nonce, &json!({ "token": token })), record);
    vec![check(&format!("election/of-{nonce}"), -1), check("term", term), record]
}

fn free(nonce: &str, token: i64, (term, record): (i32, i32)) -> Vec<Op> {
    vec![check("term", term), set("lease", lease("free", nonce, &json!({ "token": token })), record)]
}

const A: &str = "aaaaaaaaaaaaaaaa-1";
const B: &str = "bbbbbbbbbbbbbbbb-1";
const C: &str = "cccccccccccccccc-1";

/// The zxid of the write with this number.
fn zxid(number: usize) -> i64 {
    100 + i64::try_from(number).unwrap()
}

/// A leads and is cut off; B takes over, waits and leads; it releases, and C leads.
fn good() -> Vec<Write> {
    let create = |name: &str, data: &str| Op::Create { path: format!("/job/{name}"), data: data.to_owned() };
    let nobody = json!({ "v": 1, "state": "free", "lease_ms": 2000, "holder": null }).to_string();
    let waits = json!({ "waiting_on": zxid(2), "waiting_for": A });
    let write = |at: Nanos, host, ops| Write { at: at * SECOND / 10, host, ops };
    vec![
        write(1, "a", vec![create("lease", &nobody), create("term", "{}")]),
        write(2, "a", take_over(A, &json!({}), (0, 0))),
        write(3, "a", renew(A, zxid(1), (1, 1))),
        write(10, "b", take_over(B, &waits, (1, 2))),
        write(24, "b", renew(B, zxid(3), (2, 3))),
        write(25, "b", free(B, zxid(3), (2, 4))),
        write(26, "c", take_over(C, &json!({}), (2, 5))),
        write(27, "c", renew(C, zxid(6), (3, 6))),
    ]
}

/// Every server does as it is told.
fn carried_out(writes: &[Write]) -> Vec<Exchange> {
    let mut versions: BTreeMap<String, (i64, i64, i32)> = BTreeMap::new();
    let mut done = |number: usize, op: &Op| {
        let zxid = zxid(number);
        match op {
            Op::Create { path, .. } => {
                versions.insert(path.clone(), (zxid, zxid, 0));
                Outcome::Done
            }
            Op::Set { path, .. } => {
                let known = versions.get_mut(path).unwrap();
                *known = (known.0, zxid, known.2 + 1);
                Outcome::Stat(Stat { czxid: known.0, mzxid: known.1, version: known.2 })
            }
            Op::Read { .. } | Op::Check { .. } | Op::Delete { .. } => Outcome::Done,
        }
    };
    let exchange = |(number, write): (usize, &Write)| Exchange {
        server: "z0".to_owned(),
        connection: 1,
        host: write.host.to_owned(),
        asked: write.at,
        answered: Some(write.at + 1),
        request: Request { ops: write.ops.clone(), is_multi: true },
        reply: Some(Reply { zxid: zxid(number), outcomes: write.ops.iter().map(|op| done(number, op)).collect() }),
    };
    writes.iter().enumerate().map(exchange).collect()
}

fn problems(writes: &[Write]) -> Vec<String> {
    judge(&carried_out(writes), &BTreeMap::new()).problems
}

#[track_caller]
fn refused(law: Law, tamper: impl FnOnce(&mut Vec<Write>)) {
    let mut writes = good();
    tamper(&mut writes);
    let problems = problems(&writes);
    assert!(matches!(problems.as_slice(), [one] if one.contains(law.broken())), "{problems:#?}");
}

#[test]
fn what_the_design_allows_is_accepted() {
    assert_eq!(problems(&good()), Vec::<String>::new());
    // A, whose tree is empty, frees the record of B, which waits for it.
    let mut freed = good();
    freed.truncate(4);
    freed.push(Write { at: 11 * SECOND / 10, host: "a", ops: free(A, zxid(1), (2, 3)) });
    freed.push(Write { at: 12 * SECOND / 10, host: "c", ops: take_over(C, &json!({}), (2, 4)) });
    assert_eq!(problems(&freed), Vec::<String>::new());
    // B takes its own record over again, and waits for nobody.
    let mut again = good();
    again.truncate(5);
    again.push(Write { at: 25 * SECOND / 10, host: "b", ops: take_over("bbbbbbbbbbbbbbbb-2", &json!({}), (2, 4)) });
    assert_eq!(problems(&again), Vec::<String>::new());
}

/// A leads; the record is lost, and B makes it anew; A was killed, and its releaser, who has seen its tree end, frees it with this token.
fn made_anew(token: i64) -> Vec<Write> {
    let unknown = json!({ "v": 1, "state": "held", "lease_ms": 2000, "holder": null, "token": null }).to_string();
    let anew = vec![check("term", 1), Op::Create { path: "/job/lease".to_owned(), data: unknown }];
    let lost = Op::Delete { path: "/job/lease".to_owned(), version: -1 };
    let write = |at: Nanos, host, ops| Write { at: at * SECOND / 10, host, ops };
    let freed = free("0000000000000000-0", token, (1, 0));
    let mut writes = good();
    writes.truncate(3);
    writes.extend([write(5, "b", vec![lost]), write(6, "b", anew), write(7, "a", freed)]);
    writes.push(write(8, "c", take_over(C, &json!({}), (1, 1))));
    writes
}

#[test]
fn a_record_made_anew_is_freed_by_the_releaser_of_the_last_term_alone() {
    assert_eq!(problems(&made_anew(zxid(1))), Vec::<String>::new());
    let problems = problems(&made_anew(zxid(0)));
    assert!(matches!(problems.as_slice(), [one] if one.contains(Law::Holder.broken())), "{problems:#?}");
}

#[test]
fn a_write_whatever_the_versions_is_refused() {
    refused(Law::Conditional, |writes| writes[3].ops = take_over(B, &json!({ "waiting_on": zxid(2) }), (1, -1)));
    refused(Law::Conditional, |writes| writes[4].ops = renew(B, zxid(3), (-1, 3)));
    refused(Law::Conditional, |writes| writes[5].ops = free(B, zxid(3), (2, -1)));
    refused(Law::Conditional, |writes| drop(writes[5].ops.remove(0)));
}

#[test]
fn a_lease_without_a_look_at_its_candidate_is_refused() {
    for number in [3, 4] {
        refused(Law::Candidate, |writes| drop(writes[number].ops.remove(0)));
    }
}

#[test]
fn a_take_over_that_leaves_the_term_is_refused() {
    refused(Law::Term, |writes| {
        writes.truncate(4);
        writes[3].ops[1] = check("term", 1);
    });
    // The term names another leader.
    refused(Law::Term, |writes| {
        writes.truncate(4);
        writes[3].ops[1] = set("term", json!({ "leader": { "nonce": A } }).to_string(), 1);
    });
}

#[test]
fn a_record_that_another_one_renews_or_frees_is_refused() {
    refused(Law::Holder, |writes| writes[7].host = "b");
    refused(Law::Holder, |writes| writes[5].host = "c");
    // With a nonce, or the token, of another term.
    refused(Law::Holder, |writes| writes[5].ops = free(C, zxid(3), (2, 4)));
    refused(Law::Holder, |writes| writes[5].ops = free(B, zxid(1), (2, 4)));
    // What is free is not renewed.
    refused(Law::Holder, |writes| {
        writes.truncate(6);
        writes.push(Write { at: 26 * SECOND / 10, host: "b", ops: renew(B, zxid(3), (2, 5)) });
    });
}

#[test]
fn a_lease_before_the_last_one_is_over_is_refused() {
    refused(Law::Wait, |writes| writes[4].at = 22 * SECOND / 10);
    refused(Law::Wait, |writes| {
        writes.truncate(4);
        writes[3].ops = take_over(B, &json!({}), (1, 2));
    });
}

#[test]
fn a_token_of_two_hosts_is_refused() {
    let judged = |tokens: &[(i64, &str)]| {
        let tokens = tokens.iter().map(|(token, host)| (*token, (*host).to_owned())).collect();
        judge(&carried_out(&good()), &BTreeMap::from([("/job".to_owned(), tokens)])).problems
    };
    assert_eq!(judged(&[(zxid(1), "a"), (zxid(1), "a"), (zxid(3), "b")]), Vec::<String>::new());
    assert_eq!(judged(&[(zxid(1), "a"), (zxid(1), "b")]).len(), 1);
}
