//! Makes a failing script short enough to be read.

use crate::script::Script;
use crate::verdict::judge;

/// Without every step that it fails without.
pub fn shortest(script: Script) -> Script {
    let mut shortest = script;
    if judge(&shortest, false).violation.is_none() {
        return shortest;
    }
    let mut index = 0;
    while index < shortest.steps.len() {
        let mut shorter = shortest.clone();
        shorter.steps.remove(index);
        if judge(&shorter, false).violation.is_some() {
            shortest = shorter;
            index = 0;
        } else {
            index += 1;
        }
    }
    shortest
}
