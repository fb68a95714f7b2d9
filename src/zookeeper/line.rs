//! The order of the candidates, from their names alone: who is first, who stands just before us, who does not belong here.
//!
//! Names and order are those of Curator's `LeaderLatch`: `_c_<uuid>-latch-` and the server's sequence number.
//! The number is the parent's int32 counter. It runs over to the negative after 2^31 creations (T23); read as unsigned it
//! goes on growing, so the line keeps its order. Candidates with one number (a 3.8 server that ran over hands out the
//! same one for ever) are ordered by name. Peers need not see the same order to be safe: the lease record decides.
//!
//! Never: an index into a name that somebody else chose.

use uuid::Uuid;

use crate::core::event::Place;

/// How many candidates before ours are watched: with two, the next in line knows that it is.
const WATCHED: usize = 2;

const MARK: &str = "latch-";
const PREFIX: &str = "_c_";

/// The one candidate of the single recipe, below the election directory.
pub(super) const SEAT: &str = "leader";

/// The name of a candidate without its sequence number.
pub(super) fn prefix(uuid: Uuid) -> String {
    format!("{PREFIX}{uuid}-{MARK}")
}

/// What the children of the election directory mean to one of the candidates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Standing {
    pub place: Place,
    /// At most two, the nearest first.
    pub before: Vec<String>,
    /// Children that are no candidates at all.
    pub foreign: Vec<String>,
    /// Other candidates of ours: a create whose reply was lost and that came late, or one of an earlier candidacy.
    pub doubles: Vec<String>,
}

/// Where the candidate `own` stands, if all with one of these UUIDs are ours; `None` if it is not among the children.
pub(super) fn standing(children: &[String], own: &str, uuids: &[Uuid]) -> Option<Standing> {
    let prefixes: Vec<String> = uuids.iter().copied().map(prefix).collect();
    let is_double = |child: &str| prefixes.iter().any(|prefix| child.starts_with(prefix));
    let ours = (position(own)?, own);
    children.iter().find(|child| *child == own)?;
    let (mut before, mut foreign, mut doubles) = (Vec::new(), Vec::new(), Vec::new());
    for child in children.iter().filter(|child| *child != own) {
        match position(child) {
            None => foreign.push(child.clone()),
            Some(_) if is_double(child) => doubles.push(child.clone()),
            Some(position) if (position, child.as_str()) < ours => before.push((position, child.clone())),
            Some(_) => {}
        }
    }
    before.sort_unstable();
    let place = match before.len() {
        0 => Place::First,
        1 => Place::Next,
        count => Place::Behind(u32::try_from(count).unwrap_or(u32::MAX)),
    };
    let before = before.into_iter().rev().take(WATCHED).map(|(_, name)| name).collect();
    Some(Standing { place, before, foreign, doubles })
}

/// All candidates, the first in line first, and the children that are none. The seat of the single recipe is a candidate.
pub(super) fn ordered(children: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut line, mut foreign) = (Vec::new(), Vec::new());
    for child in children {
        match position(child) {
            Some(position) => line.push((position, child.clone())),
            None if child == SEAT => line.push((0, child.clone())),
            None => foreign.push(child.clone()),
        }
    }
    line.sort_unstable();
    (line.into_iter().map(|(_, name)| name).collect(), foreign)
}

/// The children that carry our UUID, the first in line first.
pub(super) fn own(children: &[String], uuid: Uuid) -> Vec<String> {
    let prefix = prefix(uuid);
    let mut own: Vec<_> = children
        .iter()
        .filter(|child| child.starts_with(&prefix))
        .filter_map(|child| Some((position(child)?, child.clone())))
        .collect();
    own.sort_unstable();
    own.into_iter().map(|(_, name)| name).collect()
}

/// What the sequence number after the last `latch-` says: ten digits, a minus and up to ten digits after the int32 counter
/// ran over, or the nineteen digits of a 64-bit counter (ZOOKEEPER-4706). `None`: not a candidate.
fn position(name: &str) -> Option<u64> {
    let (_, digits) = name.rsplit_once(MARK)?;
    let number: i64 = digits.parse().ok()?;
    let canonical = match u64::try_from(number) {
        Ok(number) if digits.len() == 10 || digits.len() == 19 => number,
        Err(_) if digits.len() >= 10 => u64::from(i32::try_from(number).ok()?.cast_unsigned()),
        _ => return None,
    };
    digits.bytes().skip(usize::from(number < 0)).all(|digit| digit.is_ascii_digit()).then_some(canonical)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const US: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    fn name(uuid: Uuid, sequence: &str) -> String {
        format!("{}{sequence}", prefix(uuid))
    }

    fn stand(children: &[&str], own: &str) -> Option<Standing> {
        let children: Vec<String> = children.iter().map(ToString::to_string).collect();
        standing(&children, own, &[US])
    }

    #[test]
    fn the_lowest_number_is_first_and_the_two_just_before_us_are_named() {
        let own = name(US, "0000000012");
        let others: Vec<_> = ["0000000009", "0000000010", "0000000011", "0000000013"].map(|at| name(OTHER, at)).into();
        let at = |count: usize| {
            let mut children: Vec<&str> = others.iter().take(count).map(String::as_str).collect();
            children.extend([own.as_str(), others[3].as_str()]);
            stand(&children, &own).unwrap()
        };
        assert_eq!((at(0).place, at(0).before), (Place::First, vec![]));
        assert_eq!((at(1).place, at(1).before), (Place::Next, vec![others[0].clone()]));
        assert_eq!(at(2).place, Place::Behind(2));
        assert_eq!((at(3).place, at(3).before), (Place::Behind(3), vec![others[2].clone(), others[1].clone()]));
    }

    #[test]
    fn without_our_candidate_there_is_no_place() {
        assert_eq!(stand(&[&name(OTHER, "0000000001")], &name(US, "0000000002")), None);
        assert_eq!(stand(&[], &name(US, "0000000002")), None);
    }

    #[test]
    fn foreign_children_neither_count_nor_break_anything() {
        let own = name(US, "0000000002");
        let foreign = [
            "foo",
            "n_0000000001",
            "config",
            "é-latch-é",
            "latch-",
            "x-lock-0000000001",
            "latch-00000000 1",
            "💥latch-1",
        ];
        let mut children = vec![own.as_str()];
        children.extend(foreign);
        let standing = stand(&children, &own).unwrap();
        assert_eq!((standing.place, standing.foreign.len()), (Place::First, foreign.len()));
    }

    #[test]
    fn a_second_candidate_of_ours_does_not_stand_before_us() {
        let (own, double) = (name(US, "0000000005"), name(US, "0000000004"));
        let standing = stand(&[&own, &double], &own).unwrap();
        assert_eq!((standing.place, standing.doubles), (Place::First, vec![double]));
    }

    #[test]
    fn our_own_are_found_in_their_order() {
        let children = [name(US, "0000000007"), name(OTHER, "0000000001"), name(US, "0000000003")];
        assert_eq!(super::own(&children, US), [children[2].clone(), children[0].clone()]);
    }

    #[test]
    fn the_line_keeps_its_order_when_the_counter_runs_over() {
        let numbers = [
            "0000000000",
            "2147483646",
            "2147483647",
            "-2147483648",
            "-2147483647",
            "-000000001",
            "2147483648123456789",
        ];
        let positions: Vec<_> = numbers.iter().map(|number| position(&name(OTHER, number))).collect();
        assert!(positions.iter().all(Option::is_some), "{positions:?}");
        assert!(positions.is_sorted());
    }

    #[test]
    fn candidates_with_one_number_have_an_order_all_the_same() {
        let (ours, theirs) = (name(US, "-2147483648"), name(OTHER, "-2147483648"));
        assert_eq!(stand(&[&ours, &theirs], &ours).unwrap().place, Place::First);
        let children = [ours, theirs.clone()];
        assert_eq!(standing(&children, &theirs, &[OTHER]).unwrap().place, Place::Next);
    }

    proptest! {
        #[test]
        fn exactly_one_of_any_candidates_is_first(sequences in proptest::collection::vec(0u32..50, 1..20)) {
            let uuids: Vec<_> = (0..sequences.len() as u128).map(Uuid::from_u128).collect();
            let children: Vec<_> =
                uuids.iter().zip(&sequences).map(|(uuid, at)| name(*uuid, &format!("{at:010}"))).collect();
            let places = uuids.iter().zip(&children).map(|(uuid, own)| standing(&children, own, &[*uuid]).unwrap().place);
            let places: Vec<_> = places.collect();
            prop_assert_eq!(places.iter().filter(|place| **place == Place::First).count(), 1);
            prop_assert!(places.iter().filter(|place| **place == Place::Next).count() <= 1);
        }

        #[test]
        fn a_line_of_any_names_has_one_first_and_no_panic(
            names in proptest::collection::hash_set("(_c_.{0,40})?(latch-){0,2}[-+]?[0-9]{0,25}|.{0,50}", 0..20),
            length in 0_usize..100_000,
        ) {
            let enormous = format!("{}latch-{}", "é".repeat(length), "9".repeat(length));
            let children: Vec<_> = names.into_iter().chain([enormous]).collect();
            let candidates: Vec<_> = children.iter().filter(|name| position(name).is_some()).collect();
            let standings: Vec<_> = candidates.iter().map(|own| standing(&children, own, &[]).unwrap()).collect();
            let first = standings.iter().filter(|standing| standing.place == Place::First).count();
            prop_assert_eq!(first, usize::from(!candidates.is_empty()));
            for standing in standings {
                prop_assert_eq!(standing.foreign.len() + candidates.len(), children.len());
                prop_assert!(standing.before.len() <= WATCHED && standing.doubles.is_empty());
            }
        }

        #[test]
        fn no_name_of_a_stranger_causes_a_panic(stranger: String) {
            let own = name(US, "0000000001");
            let marked = format!("latch-{stranger}");
            prop_assert!(stand(&[&own, &stranger, &marked], &own).is_some());
        }
    }
}
