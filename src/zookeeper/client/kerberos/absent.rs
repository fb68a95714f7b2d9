//! Replaces `kerberos` in a build without it. The configuration refuses `--kerberos` there.

mod principal;

use std::future::Future;
use std::time::Duration;

use zookeeper_client::{Client, Error};

use crate::zookeeper::client::task::{self, Task};

pub use principal::{Complaint, Ourselves, Principal};

#[expect(clippy::unused_async, reason = "as with Kerberos")]
pub async fn complaint(_servers: &Principal, _host: &str, _patience: Duration) -> Option<Complaint> {
    None
}

#[expect(clippy::unused_async, reason = "as with Kerberos")]
pub async fn ourselves(_patience: Duration) -> Result<Ourselves, String> {
    Err("this build cannot do Kerberos".to_owned())
}

pub(crate) async fn open<O>(
    _principal: &Principal,
    _servers: &str,
    opening: impl FnOnce() -> O,
    _takes_up: bool,
) -> (Result<Client, Error>, Option<Task>)
where
    O: Future<Output = Result<Client, Error>>,
{
    task::capture(opening()).await
}
