//! Leaves out what a violation does not need.

use crate::script::Script;
use crate::wires::Log;
use crate::world::judge;

/// A script that fails may take long.
const TRIES: usize = 100;

/// The script without the faults that it fails without, too, as far as they are found in so many tries.
pub fn minimise(script: &Script) -> Script {
    let (mut least, mut tries) = (script.clone(), 0);
    loop {
        let before = least.strikes.len();
        for index in (0..least.strikes.len()).rev() {
            let mut fewer = least.clone();
            fewer.strikes.remove(index);
            tries += 1;
            if tries > TRIES {
                return least;
            }
            if judge(&fewer, Log::Nothing).violation.is_some() {
                least = fewer;
            }
        }
        if least.strikes.len() == before {
            return least;
        }
    }
}
