//! The names of candidates in each recipe, and their order.
//!
//! In a directory of our own the sequence number decides, and children without one are ignored. In a directory shared
//! with other libraries we follow their rule exactly, because all contenders must agree on the first. Curator compares
//! the text after the last recipe name (`latch-`, `lock-`), or the whole name where there is none
//! (`StandardLockInternalsDriver`). kazoo knows the names of its locks and compares their last digits as text
//! (`Lock._get_predecessor`); readers' locks count as in its write lock. `LeaderElectionSupport` skips two characters
//! and compares integers.
//!
//! Names come from other programs: no code here may index into one without a check.

use uuid::Uuid;

use crate::core::settings::Recipe;

/// The name of the single recipe's candidate, below the election directory.
pub(crate) const SINGLE: &str = "leader";
const CURATOR: &str = "_c_";
const PRIORITY_MARK: &str = "-p";
/// Length of a UUID with its hyphens.
const UUID_LENGTH: usize = 36;
const KAZOO_MARKS: [&str; 2] = ["__lock__", "__rlock__"];
/// `LeaderElectionSupport` skips the first two characters without looking at them.
const JAVA_LES: &str = "n_";
const DIGITS: usize = 10;

/// How the candidates of one directory are named and ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Names {
    pub recipe: Recipe,
    /// Candidates of other libraries are in the same directory.
    pub is_shared: bool,
}

/// The position that follows from the name alone. All positions in one directory are of one variant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Position {
    Number(i64),
    /// In UTF-16, as Java compares. Python's digits compare alike.
    Text(Vec<u16>),
}

/// Whether a library names its candidates so.
pub(crate) fn is_of_a_library(name: &str) -> bool {
    let number = name.strip_prefix(JAVA_LES).unwrap_or_default();
    let is_numbered = number.len() == DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
    name.starts_with(CURATOR) || KAZOO_MARKS.iter().any(|mark| name.contains(mark)) || is_numbered
}

impl Names {
    /// The name of a candidate without its sequence number.
    pub fn prefix(self, uuid: Uuid, priority: i16) -> String {
        match self.recipe {
            Recipe::Sequential if priority != 0 => format!("{CURATOR}{uuid}{PRIORITY_MARK}{priority}-latch-"),
            Recipe::Sequential => format!("{CURATOR}{uuid}-latch-"),
            Recipe::CuratorLock => format!("{CURATOR}{uuid}-lock-"),
            Recipe::Kazoo => format!("{}__lock__", uuid.simple()),
            Recipe::JavaLes => JAVA_LES.to_owned(),
            Recipe::Single => SINGLE.to_owned(),
        }
    }

    /// Whether our candidates have our UUID in their names.
    pub fn carry_uuids(self) -> bool {
        self.recipe != Recipe::JavaLes
    }

    pub(crate) fn is_of(self, name: &str, uuid: Uuid) -> bool {
        let (rest, mark) = match self.recipe {
            Recipe::Kazoo => (name.strip_prefix(&uuid.simple().to_string()), "__"),
            Recipe::JavaLes => (None, ""),
            _ => (name.strip_prefix(CURATOR).and_then(|rest| rest.strip_prefix(&uuid.to_string())), "-"),
        };
        rest.is_some_and(|rest| rest.starts_with(mark))
    }

    /// The number between the UUID and `latch-`; 0 if there is none.
    pub(crate) fn priority(self, name: &str) -> i16 {
        let said = || {
            let rest = name.strip_prefix(CURATOR)?.get(UUID_LENGTH..)?.strip_prefix(PRIORITY_MARK)?;
            rest.split_once("-latch-")?.0.parse().ok()
        };
        let counts = self.recipe == Recipe::Sequential && !self.is_shared;
        counts.then(said).flatten().unwrap_or(0)
    }

    /// `None`: not a candidate.
    pub(crate) fn position(self, name: &str) -> Option<Position> {
        match self.recipe {
            _ if !self.is_shared => self.number(name).map(Position::Number),
            Recipe::Sequential => Some(Position::of(name.rsplit_once("latch-").map_or(name, |(_, tail)| tail))),
            Recipe::CuratorLock => Some(Position::of(name.rsplit_once("lock-").map_or(name, |(_, tail)| tail))),
            Recipe::Kazoo => kazoo_tail(name).map(Position::of),
            Recipe::JavaLes => after_two(name)?.parse::<i32>().ok().map(|number| Position::Number(number.into())),
            Recipe::Single => None,
        }
    }

    /// Whether the name has the form of this recipe.
    pub(crate) fn fits(self, name: &str) -> bool {
        self.number(name).is_some() || self.is_shared && self.recipe == Recipe::Kazoo && self.position(name).is_some()
    }

    /// The number in a name. It goes on growing when the server's counter overflows.
    fn number(self, name: &str) -> Option<i64> {
        let after = |mark: &str| name.rsplit_once(mark).map(|(_, tail)| tail);
        sequence(match self.recipe {
            Recipe::Sequential => after("latch-"),
            Recipe::CuratorLock => after("lock-"),
            Recipe::Kazoo => after("__lock__"),
            Recipe::JavaLes => name.strip_prefix(JAVA_LES),
            Recipe::Single => None,
        }?)
    }
}

impl Position {
    fn of(text: &str) -> Self {
        Self::Text(text.encode_utf16().collect())
    }
}

/// Ten digits, perhaps after a minus, at the very end and right after the recipe's name.
fn kazoo_tail(name: &str) -> Option<&str> {
    let is_tail = |tail: &&str| {
        let digits = tail.strip_prefix('-').unwrap_or(tail);
        digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    KAZOO_MARKS.iter().find_map(|mark| name.rsplit_once(mark).map(|(_, tail)| tail).filter(is_tail))
}

fn after_two(name: &str) -> Option<&str> {
    let (at, _) = name.char_indices().nth(JAVA_LES.len())?;
    name.get(at..)
}

/// The value of a sequence number: ten digits; a minus and up to ten digits after the int32 counter overflowed; or the
/// nineteen digits of a 64-bit counter (ZOOKEEPER-4706).
fn sequence(digits: &str) -> Option<i64> {
    let number: i64 = digits.parse().ok()?;
    let canonical = match u64::try_from(number) {
        Ok(_) if digits.len() == DIGITS || digits.len() == 19 => number,
        Err(_) if digits.len() >= DIGITS => i64::from(u32::from_ne_bytes(i32::try_from(number).ok()?.to_ne_bytes())),
        _ => return None,
    };
    digits.bytes().skip(usize::from(number < 0)).all(|digit| digit.is_ascii_digit()).then_some(canonical)
}

#[cfg(test)]
mod tests;
