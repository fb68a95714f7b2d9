//! The hosts that a record names as those who could take over.

use serde::{Deserialize, Serialize};

/// At most four instances, each once, the first in line first. Zero is no instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Roster([u64; Self::LONGEST]);

impl Roster {
    pub const LONGEST: usize = 4;
    pub const EMPTY: Self = Self([0; Self::LONGEST]);

    pub fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        self.0.into_iter().filter(|instance| *instance != 0)
    }

    pub fn names(&self, instance: u64) -> bool {
        instance != 0 && self.0.contains(&instance)
    }
}

/// The first ones, as many as there is room for.
impl FromIterator<u64> for Roster {
    fn from_iter<I: IntoIterator<Item = u64>>(instances: I) -> Self {
        let mut roster = Self::EMPTY;
        for instance in instances {
            let room = roster.0.iter_mut().find(|taken| **taken == 0 || **taken == instance);
            if let Some(room) = room {
                *room = instance;
            }
        }
        roster
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_the_first_four_each_once() {
        let roster: Roster = [7, 0, 5, 7, 6, 8, 9].into_iter().collect();
        assert_eq!(roster.iter().collect::<Vec<_>>(), [7, 5, 6, 8]);
        assert!(roster.names(8) && !roster.names(9) && !roster.names(0));
        assert!(!Roster::EMPTY.names(0));
    }
}
