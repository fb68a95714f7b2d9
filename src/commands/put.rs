//! `put --fenced`: writes a znode of the user's on condition that a token is the newest, in one transaction.
//!
//! Never: a write without the condition; one into the znodes of an election.

use std::io::Read as _;

use serde_json::json;

use super::token_check::{Found, find};
use super::{Answer, CommandContext, CommandError};
use crate::config::ZnodePath;
use crate::config::ctl::{Question, Value};
use crate::zookeeper::admin::fleet;
use crate::zookeeper::admin::{Before, Written};

const WRITTEN: u8 = 0;
const FENCED_OFF: u8 = 1;

/// `jute.maxbuffer`, which a server takes by default, less some room.
const LARGEST: u64 = 1_000_000;

pub(super) async fn answer(
    context: &CommandContext<'_>,
    token: i64,
    znode: &ZnodePath,
    value: &[u8],
    create: bool,
) -> Result<Answer, CommandError> {
    let (base, slots) = context.slots().await?;
    let path = znode.as_str();
    // Of whichever election it is, the token or the lease may be at stake.
    let is_own = path == base || path.starts_with(&format!("{base}/"));
    let owner = if is_own { Some(base.clone()) } else { fleet::owner_of(&context.client, path).await? };
    if let Some(owner) = owner {
        return Err(CommandError::usage(format!("{path} belongs to the election {owner}; write to a znode of yours")));
    }
    let mut found = find(&slots, token);
    if matches!(found, Found::Unseen { .. }) {
        // The server that we ask may be behind.
        context.client.catch_up(&base).await?;
        found = find(&context.slots().await?.1, token);
    }
    let Found::Newest { term_path, version } = found else { return Ok(told(context, token, path, false)) };
    let exists = context.client.read(path).await?.is_some();
    if !exists && !create {
        return Err(CommandError::not_known(format!("{path} does not exist; add --create to create it")));
    }
    let before = if exists { Before::There(None) } else { Before::Missing };
    match context.client.write((&term_path, version), path, value, before).await? {
        Written::Done => Ok(told(context, token, path, true)),
        Written::Conflict if context.client.has_version(&term_path, version).await? => Err(CommandError::not_known(
            format!("{path} was not written: it, or its parent, does not exist (or was created just now)"),
        )),
        Written::Conflict => Ok(told(context, token, path, false)),
    }
}

fn told(context: &CommandContext<'_>, token: i64, path: &str, written: bool) -> Answer {
    let text = match (context.output.format.is_object(), written) {
        (true, _) => context.output.object(&json!({ "v": 1, "znode": path, "token": token, "written": written })),
        (_, true) => format!("{path} was written under token {token}\n"),
        (_, false) => format!("{path} was not written: {token} is not the newest token\n"),
    };
    Answer { text, status: if written { WRITTEN } else { FENCED_OFF } }
}

/// What `put` is to write. Call it before a session is opened: while standard input is awaited, nothing keeps one alive.
pub(super) fn value(question: &Question) -> Result<Vec<u8>, CommandError> {
    let Question::Put { value, .. } = question else { return Ok(Vec::new()) };
    let mut bytes = Vec::new();
    match value {
        Value::Given(given) => bytes.clone_from(given),
        Value::StandardInput => {
            let read = std::io::stdin().take(LARGEST + 1).read_to_end(&mut bytes);
            read.map_err(|error| CommandError::usage(format!("standard input cannot be read: {error}")))?;
        }
    }
    let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= LARGEST);
    if fits { Ok(bytes) } else { Err(CommandError::usage(format!("the value is larger than {LARGEST} bytes"))) }
}
