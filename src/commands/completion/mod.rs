//! What the ensemble knows of a word that is being typed: names of elections, hosts, ids.
//!
//! Never: a word on standard error, a wait of seconds, or a connection to servers that nobody has named.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::runtime::Builder;

use super::{CommandContext, path_of};
use crate::cli::completion::{Completion, Wanted};
use crate::config::ctl::Asked;
use crate::zookeeper::admin::Tries;
use crate::zookeeper::admin::fleet;
use crate::zookeeper::admin::view::{self, ElectionView};

/// Somebody waits at a keyboard.
pub const LIMIT: Duration = Duration::from_millis(1500);

/// The hosts of so many elections are the hosts of all.
const ELECTIONS: usize = 50;

/// One value in each line, sorted; nothing if there is no answer in time.
pub fn values(completion: &Completion, asked: &Asked) -> String {
    if !asked.is_connect_given {
        return String::new();
    }
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return String::new() };
    let found = runtime.block_on(async { tokio::time::timeout(LIMIT, found(completion.wanted, asked)).await });
    runtime.shutdown_background();
    let found = found.ok().flatten().unwrap_or_default();
    // A znode may have the name of an option, which the shell would type.
    let is_word = |value: &str| !value.starts_with('-') && !value.contains(char::is_control);
    let is_fit = |value: &&String| value.starts_with(&completion.prefix) && is_word(value);
    found.iter().filter(is_fit).flat_map(|value| [value, "\n"]).collect()
}

async fn found(wanted: Wanted, asked: &Asked) -> Option<BTreeSet<String>> {
    let context = CommandContext::connect(asked, Tries::Twice).await.ok()?;
    let root = path_of(asked);
    let found = match wanted {
        Wanted::Participant => participants(&view::election(&context.client, &context.base().await.ok()?).await.ok()??),
        Wanted::Election => elections(&context).await?.into_iter().collect(),
        Wanted::DrainedHost => {
            let drains = view::drains(&context.client, root, &mut Vec::new()).await.ok()?;
            drains.into_iter().map(|drain| drain.host).collect()
        }
        Wanted::Host => {
            let mut names = elections(&context).await?;
            names.truncate(ELECTIONS);
            let all = fleet::all(&context.client, root, names).await.ok()?;
            all.elections.iter().flat_map(|(_, election)| hosts(election)).collect()
        }
    };
    context.client.close().await;
    Some(found)
}

async fn elections(context: &CommandContext<'_>) -> Option<Vec<String>> {
    Some(fleet::elections(&context.client, path_of(context.asked)).await.ok()??.names)
}

fn hosts(election: &ElectionView) -> Vec<String> {
    election.members().map(|member| member.host.clone()).collect()
}

/// Their ids, and the hosts that have only one of them.
fn participants(election: &ElectionView) -> BTreeSet<String> {
    let mut times = BTreeMap::new();
    for host in hosts(election) {
        *times.entry(host).or_insert(0) += 1;
    }
    let hosts = times.into_iter().filter(|(_, times)| *times == 1).map(|(host, _)| host);
    election.members().map(|member| member.id.clone()).chain(hosts).collect()
}
