//! In the place of `kerberos` in a build without it: whoever asks for a login by it is refused before.
//!
//! Never: a login.

use std::future::Future;
use std::time::Duration;

use zookeeper_client::{Client, Error};

use super::principal::Principal;
use super::service::{self, Service};

pub use super::principal::{Complaint, Ourselves};

#[expect(clippy::unused_async, reason = "as with Kerberos")]
pub async fn complaint(_servers: &Principal, _host: &str, _patience: Duration) -> Option<Complaint> {
    None
}

#[expect(clippy::unused_async, reason = "as with Kerberos")]
pub async fn ourselves(_patience: Duration) -> Result<Ourselves, String> {
    Err("this build cannot do Kerberos".to_owned())
}

pub(super) async fn open<O>(
    _principal: &Principal,
    _servers: &str,
    opening: impl FnOnce() -> O,
) -> (Result<Client, Error>, Option<Service>)
where
    O: Future<Output = Result<Client, Error>>,
{
    service::capture(opening()).await
}
