//! What the leader decides of a request: `PrepRequestProcessor`, in the order of its checks.

use std::collections::BTreeSet;

use super::acl;
use super::protocol::{ADMIN, ANY_VERSION, Acl, CREATE, Code, CreateMode, DELETE, Id, Op, READ, Request, WRITE};
use super::state::{Entry, State, Step, Txn};
use super::tree::parent_of;

/// Of these nothing can be deleted.
const SPECIAL: [&str; 4] = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];

/// What the request comes to, where `state` has seen every transaction that was decided before. `entry` tells who asks
/// and under which zxid.
pub fn prepare(state: &State, request: &Request, who: &[Id], entry: &Entry) -> Txn {
    let decided = match request {
        Request::Write(op) => prepare_op(state, op, who).map(Txn::Step),
        Request::Multi(ops) => Ok(prepare_multi(state, ops, who, entry)),
        Request::SetAcl { path, acl, version } => prepare_acl(state, path, acl, *version, who),
        Request::Close => Ok(Txn::CloseSession { paths: state.tree.paths_owned_by(entry.session) }),
        _ => Err(Code::BadArguments),
    };
    decided.unwrap_or_else(Txn::Error)
}

/// All of it on a copy, or nothing. A copy costs much: what no operation can see of another one needs none.
fn prepare_multi(state: &State, ops: &[Op], who: &[Id], entry: &Entry) -> Txn {
    let mut copy = if are_independent(ops) { None } else { Some(state.clone()) };
    let mut steps = Vec::new();
    for (failed, op) in ops.iter().enumerate() {
        match prepare_op(copy.as_ref().unwrap_or(state), op, who) {
            Ok(step) => {
                if let Some(copy) = &mut copy {
                    copy.step(&step, entry, &mut Vec::new());
                }
                steps.push(step);
            }
            Err(code) => {
                let mut codes = vec![Code::RuntimeInconsistent; ops.len()];
                codes[..failed].fill(Code::Ok);
                codes[failed] = code;
                return Txn::Aborted(codes);
            }
        }
    }
    Txn::Multi(steps)
}

/// Only checks and new data, of different znodes.
fn are_independent(ops: &[Op]) -> bool {
    let path = |op: &Op| match op {
        Op::SetData { path, .. } | Op::Check { path, .. } => Some(path.clone()),
        Op::Create { .. } | Op::Delete { .. } => None,
    };
    let paths: Option<BTreeSet<_>> = ops.iter().map(path).collect();
    paths.is_some_and(|paths| paths.len() == ops.len())
}

fn prepare_op(state: &State, op: &Op, who: &[Id]) -> Result<Step, Code> {
    match op {
        Op::Create { path, data, acl, mode } => prepare_create(state, path, data, acl, *mode, who),
        Op::Delete { path, version } => {
            if SPECIAL.contains(&path.as_str()) || !path.contains('/') || path.contains('\0') {
                return Err(Code::BadArguments);
            }
            acl::check(&state.tree.node(parent_of(path))?.acl, DELETE, who)?;
            let node = state.tree.node(path)?;
            check_version(node.version, *version)?;
            if node.children.is_empty() { Ok(Step::Delete { path: path.clone() }) } else { Err(Code::NotEmpty) }
        }
        Op::SetData { path, data, version } => {
            validate(path)?;
            let node = state.tree.node(path)?;
            acl::check(&node.acl, WRITE, who)?;
            check_version(node.version, *version)?;
            Ok(Step::SetData { path: path.clone(), data: data.clone() })
        }
        Op::Check { path, version } => {
            validate(path)?;
            let node = state.tree.node(path)?;
            acl::check(&node.acl, READ, who)?;
            check_version(node.version, *version)?;
            Ok(Step::Check)
        }
    }
}

fn prepare_create(
    state: &State,
    path: &str,
    data: &[u8],
    acl: &[Acl],
    mode: CreateMode,
    who: &[Id],
) -> Result<Step, Code> {
    if !path.contains('/') || path.contains('\0') {
        return Err(Code::BadArguments);
    }
    let fixed = acl::fix_up(acl, who)?;
    let parent = state.tree.node(parent_of(path))?;
    acl::check(&parent.acl, CREATE, who)?;
    let path = if mode.is_sequential() { format!("{path}{:010}", parent.created_children) } else { path.to_owned() };
    validate(&path)?;
    if state.tree.node(&path).is_ok() {
        return Err(Code::NodeExists);
    }
    if parent.owner != 0 {
        return Err(Code::NoChildrenForEphemerals);
    }
    Ok(Step::Create { path, data: data.to_vec(), acl: fixed, is_ephemeral: mode.is_ephemeral() })
}

fn prepare_acl(state: &State, path: &str, acl: &[Acl], version: i32, who: &[Id]) -> Result<Txn, Code> {
    validate(path)?;
    let fixed = acl::fix_up(acl, who)?;
    let node = state.tree.node(path)?;
    acl::check(&node.acl, ADMIN, who)?;
    check_version(node.aversion, version)?;
    Ok(Txn::SetAcl { path: path.to_owned(), acl: fixed })
}

fn check_version(present: i32, expected: i32) -> Result<(), Code> {
    if expected == ANY_VERSION || expected == present { Ok(()) } else { Err(Code::BadVersion) }
}

/// `PathUtils.validatePath`.
fn validate(path: &str) -> Result<(), Code> {
    let names = path.strip_prefix('/').ok_or(Code::BadArguments)?;
    let is_bad = |name: &str| name.is_empty() || name == "." || name == "..";
    let has_control = names.chars().any(|letter| letter < '\u{20}' || ('\u{7f}'..='\u{9f}').contains(&letter));
    if has_control || (!names.is_empty() && names.split('/').any(is_bad)) {
        return Err(Code::BadArguments);
    }
    Ok(())
}
