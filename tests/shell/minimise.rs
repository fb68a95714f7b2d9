//! Leaves out what a violation does not need.

use crate::script::Script;
use crate::wires::Log;
use crate::world::judge;

/// The script without the faults and hosts that it fails without, too.
pub fn minimise(script: &Script) -> Script {
    let mut least = script.clone();
    loop {
        let before = least.strikes.len();
        for index in (0..least.strikes.len()).rev() {
            let mut fewer = least.clone();
            fewer.strikes.remove(index);
            if judge(&fewer, Log::Nothing).violation.is_some() {
                least = fewer;
            }
        }
        if least.strikes.len() == before {
            return least;
        }
    }
}
