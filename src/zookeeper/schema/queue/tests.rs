mod several;

use proptest::prelude::*;

use super::*;
use crate::core::settings::Recipe;

const US: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);
const FREE: [Holder; 1] = [Holder::Nobody];

const LATCH: Names = Names { recipe: Recipe::Sequential, is_shared: false };

fn name(uuid: Uuid, sequence: &str) -> String {
    format!("{}{sequence}", LATCH.prefix(uuid, 0))
}

fn stand(children: &[&str], own: &str) -> Option<Standing> {
    let children: Vec<String> = children.iter().map(ToString::to_string).collect();
    standing(LATCH, &children, own, &[US], &FREE)
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
    let foreign =
        ["foo", "n_0000000001", "config", "é-latch-é", "latch-", "x-lock-0000000001", "latch-00000000 1", "💥latch-1"];
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
    assert_eq!(super::own(LATCH, &children, US), [children[2].clone(), children[0].clone()]);
}

#[test]
fn the_line_keeps_its_order_when_the_counter_runs_over() {
    let numbers =
        ["0000000000", "2147483646", "2147483647", "-2147483648", "-2147483647", "-000000001", "2147483648123456789"];
    let positions: Vec<_> = numbers.iter().map(|number| LATCH.position(&name(OTHER, number))).collect();
    assert!(positions.iter().all(Option::is_some), "{positions:?}");
    assert!(positions.is_sorted());
}

#[test]
fn candidates_with_one_number_have_an_order_all_the_same() {
    let (ours, theirs) = (name(US, "-2147483648"), name(OTHER, "-2147483648"));
    assert_eq!(stand(&[&ours, &theirs], &ours).unwrap().place, Place::First);
    let children = [ours, theirs.clone()];
    assert_eq!(standing(LATCH, &children, &theirs, &[OTHER], &FREE).unwrap().place, Place::Next);
}

proptest! {
    #[test]
    fn exactly_one_of_any_candidates_is_first(sequences in proptest::collection::vec(0u32..50, 1..20)) {
        let uuids: Vec<_> = (0..sequences.len() as u128).map(Uuid::from_u128).collect();
        let children: Vec<_> =
            uuids.iter().zip(&sequences).map(|(uuid, at)| name(*uuid, &format!("{at:010}"))).collect();
        let places = uuids.iter().zip(&children).map(|(uuid, own)| standing(LATCH, &children, own, &[*uuid], &FREE).unwrap().place);
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
        let candidates: Vec<_> = children.iter().filter(|name| LATCH.position(name).is_some()).collect();
        let standings: Vec<_> = candidates.iter().map(|own| standing(LATCH, &children, own, &[], &FREE).unwrap()).collect();
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
