//! Short words for the steps of scripts.

use crate::memory::{ANY_VERSION, Acl, CreateMode, Op, Request};
use crate::script::Step;

/// In milliseconds; no script takes as long.
pub const SESSION: u64 = 60_000;

pub fn open(client: usize) -> Step {
    open_at(client, 0)
}

pub fn open_at(client: usize, server: usize) -> Step {
    Step::Open { client, server, timeout_ms: SESSION }
}

pub fn ask(client: usize, request: Request) -> Step {
    Step::Ask { client, request }
}

pub fn auth(client: usize, login: &str) -> Step {
    ask(client, Request::Auth { scheme: "digest".to_owned(), data: login.as_bytes().to_vec() })
}

pub fn creation(path: &str, acl: Vec<Acl>, mode: CreateMode) -> Op {
    Op::Create { path: path.to_owned(), data: b"new".to_vec(), acl, mode }
}

pub fn create(client: usize, path: &str, data: &str) -> Step {
    create_as(client, path, data, CreateMode::Persistent)
}

pub fn create_as(client: usize, path: &str, data: &str, mode: CreateMode) -> Step {
    let op = Op::Create { path: path.to_owned(), data: data.as_bytes().to_vec(), acl: Acl::open(), mode };
    ask(client, Request::Write(op))
}

pub fn create_for(client: usize, path: &str, acl: Vec<Acl>) -> Step {
    ask(client, Request::Write(creation(path, acl, CreateMode::Persistent)))
}

pub fn set(client: usize, path: &str, data: &str, version: i32) -> Step {
    ask(client, Request::Write(setting(path, data, version)))
}

pub fn setting(path: &str, data: &str, version: i32) -> Op {
    Op::SetData { path: path.to_owned(), data: data.as_bytes().to_vec(), version }
}

pub fn deletion(path: &str, version: i32) -> Op {
    Op::Delete { path: path.to_owned(), version }
}

pub fn check(path: &str, version: i32) -> Op {
    Op::Check { path: path.to_owned(), version }
}

pub fn delete(client: usize, path: &str) -> Step {
    ask(client, Request::Write(deletion(path, ANY_VERSION)))
}

pub fn multi(client: usize, ops: Vec<Op>) -> Step {
    ask(client, Request::Multi(ops))
}

pub fn exists(client: usize, path: &str) -> Step {
    ask(client, Request::Exists { path: path.to_owned(), watch: false })
}

pub fn watch(client: usize, path: &str) -> Step {
    ask(client, Request::Exists { path: path.to_owned(), watch: true })
}

pub fn get(client: usize, path: &str) -> Step {
    ask(client, Request::GetData { path: path.to_owned(), watch: false })
}

pub fn watch_data(client: usize, path: &str) -> Step {
    ask(client, Request::GetData { path: path.to_owned(), watch: true })
}

pub fn children(client: usize, path: &str) -> Step {
    ask(client, Request::GetChildren { path: path.to_owned(), watch: false })
}

pub fn watch_children(client: usize, path: &str) -> Step {
    ask(client, Request::GetChildren { path: path.to_owned(), watch: true })
}

pub fn acl_of(client: usize, path: &str) -> Step {
    ask(client, Request::GetAcl { path: path.to_owned() })
}

pub fn set_acl(client: usize, path: &str, acl: Vec<Acl>, version: i32) -> Step {
    ask(client, Request::SetAcl { path: path.to_owned(), acl, version })
}

pub fn close(client: usize) -> Step {
    ask(client, Request::Close)
}

pub fn reset(client: usize) -> Step {
    Step::Reset { client }
}

/// Comes back to server 0, and watches again.
pub fn come_back(client: usize, data: &[&str], exists: &[&str], children: &[&str]) -> Step {
    let all = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    Step::Return { client, server: 0, data: all(data), exists: all(exists), children: all(children) }
}
