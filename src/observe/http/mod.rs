//! `--http`: tells load balancers, orchestrators and people who leads, from the lease and never from memory.
//!
//! ```text
//! loop's turn ──Status──▶ Feed ──read at the moment of asking──▶ answers ──▶ server ──▶ whoever asks
//! ```
//!
//! Never: a request that holds up the supervisor's loop; a setting that can be changed from outside.

mod address;
mod answers;
mod server;

pub use address::{Address, Listener};
pub use answers::Identity;
pub use server::{HttpState, serve};
