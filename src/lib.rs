//! `zk-leader-run` runs a command only while this host is the elected leader in Apache `ZooKeeper`. The command's whole
//! process tree is dead before another host can start it.
//!
//! A function either decides or acts. The supervisor and its guard have the same structure: a pure machine
//! (`handle(now, event) -> actions`, `next_deadline()`) and a thin loop around it.
//!
//! ```text
//! ZooKeeper ──reply/watch──▶ zookeeper ──Event──▶ supervisor ──▶ core::machine::Machine::handle(now, event)
//! signals, guard's reports, timer at next_deadline ───▲                        │ actions
//!                                                     │                        ▼
//!  command's tree ◀── guard::tree ◀── guard::policy ◀─Order── guard::handle ◀── supervisor::effects
//!         └── exit ──▶ guard reaps all ──Report(TreeEnded, cause)──▶ supervisor
//! ```
//!
//! The library exists for the two binaries and their tests; it promises no API. The modules are listed in layer order;
//! imports point down only.
pub mod core;

pub mod background;
pub mod clock;
#[expect(
    clippy::let_underscore_must_use,
    reason = "a signal to a process that is gone has done its work; what lives on is seen, and tried again"
)]
pub mod guard;
pub mod random;
pub mod zookeeper;

pub mod vouching;

pub mod after_upgrade;
pub mod observe;
pub mod supervisor;

pub mod cli;
pub mod commands;
pub mod config;
pub mod dry_run;
pub mod exit;
pub mod wiring;
