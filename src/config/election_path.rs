//! An election that other libraries take part in, too.
//!
//! Never: a znode of ours among their candidates that is no candidate.

use crate::config::error::Refusal;
use crate::config::source::setting::Given;
use crate::config::value::znode::{self, ZnodePath};
use crate::core::settings::Recipe;

/// Where `<base>` keeps candidates of its own.
pub const OWN: &str = "election";

/// What `--election-path` costs.
pub const BEST_EFFORT: &str = "--election-path: contenders of other libraries do not wait until the command is dead; it is \
                               stopped half of a session timeout early, which is best effort and no proof";

/// The directory of `--election-path`. Other libraries would take our other znodes for contenders, so these lie apart.
pub fn election(given: &Given, base: &ZnodePath, recipe: Recipe) -> Result<ZnodePath, Refusal> {
    let election = znode::path(given)?;
    if recipe == Recipe::Single {
        let complaint = "has no line of candidates with --recipe single; write the recipe of those who contend there, such as \
                         curator-latch, curator-lock or kazoo";
        return Err(given.conflicting(complaint));
    }
    if base.is_within(&election) || election.is_within(base) && election != base.join(OWN) {
        let complaint = format!(
            "and the election's own znodes in {base} must lie apart, because other libraries take every znode for a contender; \
             write another --path"
        );
        return Err(given.conflicting(complaint));
    }
    Ok(election)
}
