//! `--election-path`: an election shared with other libraries. Only candidates are created there.

use crate::config::error::ConfigError;
use crate::config::source::setting::Setting;
use crate::config::value::znode::{self, ZnodePath};
use crate::core::settings::Recipe;
use crate::zookeeper::schema::paths::ELECTION;

/// The directory of our own candidates below `<base>`.
pub const OWN: &str = ELECTION;

/// The cost of `--election-path`.
pub const BEST_EFFORT: &str = "--election-path: contenders of other libraries do not wait until the command is dead; it is \
                               stopped half of a session timeout early, which is best effort and no proof";

/// The same with `--guarantee at-least-one`.
pub const RUNS_ON: &str = "--election-path: contenders of other libraries do not wait until the command is dead, and with \
                           --guarantee at-least-one it runs on beside theirs, without contact for --max-pause";

/// The directory of `--election-path`. Other libraries would take our other znodes for candidates, so those are
/// elsewhere.
pub fn election(setting: &Setting, base: &ZnodePath, recipe: Recipe) -> Result<ZnodePath, ConfigError> {
    let election = znode::path(setting)?;
    if recipe == Recipe::Single {
        let complaint = "has no line of candidates with --recipe single; write the recipe of those who contend there, such as \
                         curator-latch, curator-lock or kazoo";
        return Err(setting.refused(complaint));
    }
    if base.is_within(&election) || election.is_within(base) && election != base.join(OWN) {
        let complaint = format!(
            "and the election's own znodes in {base} must lie apart, because other libraries take every znode for a contender; \
             write another --path"
        );
        return Err(setting.refused(complaint));
    }
    Ok(election)
}
