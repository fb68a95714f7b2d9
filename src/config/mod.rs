//! What the command line, the environment and the configuration file mean: plain, validated values. Whoever holds a
//! [`Config`] holds one that can work.
//!
//! Never: a check that is made again later; a type of the command-line parser.

pub mod access;
pub mod auxiliary;
mod build;
pub mod ctl;
mod election;
mod election_path;
pub mod error;
mod leaders;
mod lease;
pub mod load;
mod monitoring;
mod run_once;
mod service;
pub mod source;
mod timing;
mod value;

pub use self::build::{Config, FileRead};
pub use self::leaders::Leaders;
pub use self::monitoring::Monitoring;
pub use self::value::znode::ZnodePath;
