//! The command line, the environment and the configuration file as validated values. No later code checks a [`Config`]
//! again.

pub mod access;
pub mod auxiliary;
mod build;
pub mod ctl;
mod election;
mod election_path;
pub mod error;
pub mod fixed;
mod leaders;
mod lease;
pub mod load;
mod monitoring;
mod run_once;
mod service;
pub mod source;
pub mod timing;
mod value;

pub use self::build::{Config, FileRead};
pub use self::lease::vouching::Vouch;
pub use self::monitoring::Monitoring;
pub use self::value::znode::ZnodePath;
