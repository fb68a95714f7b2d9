//! One connection to an ensemble, without elections: sessions, credentials, ACLs, errors, and why a server refuses us.
//! The only user of the `zookeeper-client` crate.

pub mod acl;
pub mod address;
pub mod connect;
pub(crate) mod connection;
pub(crate) mod diagnose;
pub(crate) mod ensure_path;
pub(crate) mod error;
pub mod four_letter;
#[cfg_attr(not(feature = "kerberos"), path = "kerberos/absent.rs")]
pub mod kerberos;
pub(crate) mod outage;
pub mod requests;
pub(crate) mod resolve;
pub mod session_key;
mod socket;
pub(crate) mod task;
#[cfg_attr(not(feature = "tls"), path = "tls/absent.rs")]
pub mod tls;
