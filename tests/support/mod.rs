//! The test kit: real servers, a network that can be broken, and a pair of hands inside `ZooKeeper`.
//!
//! ```ignore
//! let ensemble = Ensemble::of(3);                        // three real servers, gone when dropped
//! let proxy = Proxy::to(ensemble.server(0).address());   // connect the subject to proxy.connect_string()
//! let admin = Admin::to(&ensemble.connect_string());     // list, read, create, set, delete
//! proxy.stall();                                         // black hole; heal() delivers what was held back
//! wait::until("the lease record is free", || admin.read("/base/lease").contains("free"));
//! ```
//!
//! Never: a skipped test. Without java and `ZooKeeper` a test is red, with one line of help.
#![allow(dead_code, unused_imports, reason = "each suite uses its own part of the kit")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

pub mod addresses;
pub mod admin;
pub mod apart;
pub mod diary;
pub mod documents;
pub mod election;
pub mod ensemble;
pub mod fates;
pub mod golden;
pub mod http;
pub mod impostor;
pub mod kdc;
pub mod notified;
pub mod packages;
pub mod peer;
pub mod pki;
pub mod ports;
pub mod proxy;
pub mod resources;
pub mod standalone;
pub mod subject;
pub mod systemd_box;
pub mod tamper;
pub mod terminal;
pub mod tracer;
pub mod traffic;
pub mod units;
pub mod wait;

pub use admin::Admin;
pub use diary::Diary;
pub use election::Election;
pub use ensemble::Ensemble;
pub use impostor::Impostor;
pub use notified::Notified;
pub use peer::Peer;
pub use proxy::Proxy;
pub use subject::{Running, Subject};
pub use systemd_box::SystemdBox;
