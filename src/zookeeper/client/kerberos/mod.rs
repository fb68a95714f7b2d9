//! Logins by Kerberos: SASL GSSAPI with MIT's library, which finds tickets and keys by its usual variables
//! (`kerberos(7)`: `KRB5CCNAME`, `KRB5_CLIENT_KTNAME`).
//!
//! That library blocks: it asks a key distribution centre, for 18 s and more if that is silent. Every call that may
//! reach it runs on a thread of its own (`blocking_thread`), so the supervisor's loop, its signals and deadlines are not delayed.

mod blocking_thread;
mod mechanism;
mod principal;
mod ticket_renewal;

use std::future::Future;
use std::time::Duration;

use libgssapi::credential::{Cred, CredUsage};
use libgssapi::error::Error;
use libgssapi::name::Name;
use libgssapi::oid::{GSS_MECH_KRB5, GSS_NT_HOSTBASED_SERVICE, OidSet};
use tokio::time::timeout;
use zookeeper_client::{Client, SaslOptions};

use crate::zookeeper::client::address::Address;
use crate::zookeeper::client::task::Task;
pub use principal::{Complaint, Ourselves, Principal};

/// Opens a session, or takes one up, and keeps the tickets for these servers fresh while it lasts.
pub(crate) async fn open<O>(
    principal: &Principal,
    servers: &str,
    opening: impl FnOnce() -> O + Send + 'static,
    takes_up: bool,
) -> (Result<Client, zookeeper_client::Error>, Option<Task>)
where
    O: Future<Output = Result<Client, zookeeper_client::Error>>,
{
    let hosts = servers.split(',').map(|server| Address::of(server).host.to_owned()).collect();
    blocking_thread::open(opening, ticket_renewal::keep(principal.clone(), hosts), takes_up).await
}

/// The client library's options for a login by Kerberos.
pub(crate) fn options(servers: &Principal) -> Result<SaslOptions, zookeeper_client::Error> {
    if !mechanism::is_known() {
        // A linker may drop an object that is never called by name.
        let complaint = "this build lacks its own part of Kerberos, and would hand tickets on without it";
        return Err(zookeeper_client::Error::UnexpectedError(complaint.to_owned()));
    }
    let options = SaslOptions::gssapi().with_username(servers.service.clone());
    Ok(match &servers.host {
        Some(host) => options.with_hostname(host.clone()).into(),
        None => options.into(),
    })
}

/// Tries the first step of a login to this server. `None`: it works.
pub async fn complaint(servers: &Principal, host: &str, patience: Duration) -> Option<Complaint> {
    let (service, host) = (servers.service.clone(), servers.host_or(host).to_owned());
    let trial = blocking_thread::call(move || {
        let began = mechanism::context(&service, &host).and_then(|mut context| context.step(None, None).map(drop));
        began.err().map(|error| judge(&service, &host, error))
    });
    let passing = |text: String| Some(Complaint { text, is_final: false });
    match timeout(patience, trial).await {
        Ok(Ok(complaint)) => complaint,
        Ok(Err(error)) => passing(format!("there is no thread for a login by Kerberos: {error}")),
        Err(_) => passing(format!("Kerberos' key distribution centre does not answer; {ASK}")),
    }
}

/// The principal that we log in as.
///
/// # Errors
///
/// There is neither a ticket nor a key to get one with; or no answer in time.
pub async fn ourselves(patience: Duration) -> Result<Ourselves, String> {
    let asked = blocking_thread::call(|| {
        let info = credentials().and_then(|credentials| credentials.info()).map_err(words)?;
        Ok(Ourselves { name: info.name.to_string(), lifetime: info.lifetime })
    });
    match timeout(patience, asked).await {
        Ok(Ok(ourselves)) => ourselves,
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

fn credentials() -> Result<Cred, Error> {
    let mut mechanisms = OidSet::new()?;
    mechanisms.add(&GSS_MECH_KRB5)?;
    Cred::acquire(None, None, CredUsage::Initiate, Some(&mechanisms))
}

fn name_of(service: &str, host: &str) -> Result<Name, Error> {
    Name::new(format!("{service}@{host}").as_bytes(), Some(&GSS_NT_HOSTBASED_SERVICE))
}

/// Errors that may pass by themselves: no server that could refuse was reached. Numbers of `krb5_err.et`.
const PASSING: [i32; 3] = [
    -1_765_328_228, // KRB5_KDC_UNREACH
    -1_765_328_230, // KRB5_REALM_UNKNOWN: while names cannot be resolved
    -1_765_328_164, // KRB5_REALM_CANT_RESOLVE
];

/// Those that pass when this host's clock is set.
const BY_THE_CLOCK: [i32; 2] = [
    -1_765_328_347, // KRB5KRB_AP_ERR_SKEW
    -1_765_328_351, // KRB5KRB_AP_ERR_TKT_NYV
];

const ASK: &str = "is it reached from here, and right in krb5.conf?";

fn judge(service: &str, host: &str, error: Error) -> Complaint {
    let number = i32::from_ne_bytes(error.minor.to_ne_bytes());
    let is_by_the_clock = BY_THE_CLOCK.contains(&number);
    let is_final = !PASSING.contains(&number) && !is_by_the_clock;
    let said = words(error);
    let remedy = if is_by_the_clock {
        "set this host's clock"
    } else if !is_final {
        ASK
    } else if said.starts_with("Server") {
        "see --kerberos-server, the names in --connect, and dns_canonicalize_hostname in krb5.conf"
    } else {
        "get a ticket (kinit, KRB5CCNAME), or name a client's keytab in KRB5_CLIENT_KTNAME"
    };
    Complaint { text: format!("no login by Kerberos to {service}/{host}: {said}; {remedy}"), is_final }
}

/// The mechanism's message if there is one: that of the GSSAPI says little.
fn words(error: Error) -> String {
    let text = error.to_string();
    match text.split_once(" (").and_then(|(_, rest)| rest.strip_suffix(')')) {
        Some(words) if error.minor != 0 => words.to_owned(),
        _ => text,
    }
}
