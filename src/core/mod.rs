//! The pure decisions: std, and serde's derives for what one program hands over to the next; no I/O, clock, logging or
//! async.
pub mod action;
pub mod backoff;
pub mod event;
pub mod guard_messages;
pub mod health;
pub mod hooks;
pub mod lease;
pub mod machine;
pub mod operator_orders;
pub mod preemption;
pub mod restart;
pub mod settings;
pub mod spread;
pub mod time;
pub mod vouching;
