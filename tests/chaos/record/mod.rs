//! Every request on lease records and terms, with its answer, as it passed the servers' own cables; and a judge of them that is
//! not ours.
//!
//! Never: a change of what passes.

mod history;
mod judge;
mod laws;
mod losses;
mod packet;
mod protocol;
mod stream;
mod tap;

pub use history::{Exchange, given_back, write};
pub use judge::{Tokens, Verdict, judge};
pub use losses::{differing, losses};
pub use tap::Tap;
