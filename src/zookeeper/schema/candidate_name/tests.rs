//! Names as the libraries create them, in the order in which they compare them.

use proptest::prelude::*;

use super::*;
use crate::core::event::Place;
use crate::zookeeper::schema::queue::Holder;
use crate::zookeeper::schema::queue::{in_order, standing};

const US: Uuid = Uuid::from_u128(0x6a0b_7f0e_6a5f_4f7c_9d5b_2f1f_6f0c_9a11);
const LINES: [Recipe; 4] = [Recipe::Sequential, Recipe::CuratorLock, Recipe::Kazoo, Recipe::JavaLes];

fn own(recipe: Recipe) -> Names {
    Names { recipe, is_shared: false }
}

fn shared(recipe: Recipe) -> Names {
    Names { recipe, is_shared: true }
}

fn ordered(names: Names, children: &[&str]) -> Vec<String> {
    in_order(names, &children.iter().map(|&child| child.to_owned()).collect::<Vec<_>>())
}

#[test]
fn candidates_are_called_as_each_library_calls_its_own() {
    let cases = [
        (Recipe::Sequential, "_c_6a0b7f0e-6a5f-4f7c-9d5b-2f1f6f0c9a11-latch-"),
        (Recipe::CuratorLock, "_c_6a0b7f0e-6a5f-4f7c-9d5b-2f1f6f0c9a11-lock-"),
        (Recipe::Kazoo, "6a0b7f0e6a5f4f7c9d5b2f1f6f0c9a11__lock__"),
        (Recipe::JavaLes, "n_"),
    ];
    for (recipe, prefix) in cases {
        assert_eq!(own(recipe).prefix(US, 0), prefix);
        let name = format!("{prefix}0000000042");
        for names in [own(recipe), shared(recipe)] {
            assert!(names.fits(&name) && names.position(&name).is_some(), "{name}");
            assert_eq!(names.is_of(&name, US), names.carry_uuids(), "{name}");
            assert!(!names.is_of(&name, Uuid::nil()), "{name}");
        }
    }
}

#[test]
fn in_a_directory_of_our_own_the_number_counts_whatever_stands_before_it() {
    for recipe in LINES {
        let prefix = own(recipe).prefix(US, 0);
        let name = |digits: &str| format!("{prefix}{digits}");
        let line = ["0000000000", "2147483647", "-2147483648", "-000000001"].map(name);
        let scrambled: Vec<_> = [3, 1, 0, 2].map(|at: usize| line[at].clone()).into();
        assert_eq!(in_order(own(recipe), &scrambled), line);
        for foreign in ["foo", "config", "", "0", "é", &name(""), &name("00000000 1"), &name("000000001x")] {
            assert_eq!((own(recipe).position(foreign), own(recipe).fits(foreign)), (None, false), "{foreign}");
        }
    }
}

/// As `LockInternals.getSortedChildren`: text after the last recipe name, or the whole name.
#[test]
fn beside_curator_every_child_counts_and_text_is_compared() {
    for (recipe, mark) in [(Recipe::Sequential, "latch-"), (Recipe::CuratorLock, "lock-")] {
        let name = |digits: &str| format!("_c_{US}-{mark}{digits}");
        let line = ["", "!", &name("-2147483648"), &name("0000000007"), &name("0000000011"), "config", "x0000000001"];
        let line: Vec<_> = line.into_iter().filter(|name| !name.is_empty()).collect();
        let mut scrambled = line.clone();
        scrambled.reverse();
        assert_eq!(ordered(shared(recipe), &scrambled), line);
        assert_eq!(line.iter().filter(|name| shared(recipe).fits(name)).count(), 3);
    }
    // go-zookeeper's name has no hyphens in its UUID.
    let go = "_c_8eb60557ba51e0da67eefc47467d3f34-lock-0000000031";
    let ours = format!("_c_{US}-lock-0000000032");
    assert_eq!(ordered(shared(Recipe::CuratorLock), &[&ours, go]), [go, &ours]);
    // A lock among latches is compared by its whole name, and `_` sorts after the digits.
    assert_eq!(ordered(shared(Recipe::Sequential), &[go, &format!("_c_{US}-latch-0000000099")])[1], go);
    // Two recipe names in one name: the last one counts.
    assert_eq!(
        shared(Recipe::CuratorLock).position("lock-9-lock-0000000001"),
        shared(Recipe::CuratorLock).position("lock-0000000001")
    );
}

/// As `Lock._get_predecessor` and its pattern, with the names of its own test.
#[test]
fn beside_kazoo_only_its_locks_count_by_their_last_digits() {
    let go = "_c_8eb60557ba51e0da67eefc47467d3f34-lock-0000000031";
    let lock = "514e5a831836450cb1a56c741e990fd8__lock__0000000032";
    let reader = "514e5a831836450cb1a56c741e990fd8__rlock__0000000030";
    let over = "514e5a831836450cb1a56c741e990fd8__lock__-2147483648";
    let names = shared(Recipe::Kazoo);
    assert_eq!(ordered(names, &["hello", go, lock, "world", over, reader]), [over, reader, lock]);
    assert!([lock, reader, over].iter().all(|name| names.fits(name)) && !names.fits(go));
    for no in ["x__lock__1", "x__lock__000000001", "x__lock__00000000011x", "x__lock__--0000000001", "__lock__", "é__"]
    {
        assert_eq!(names.position(no), None, "{no}");
    }
    assert!(names.position("__lock__0000000001").is_some());
}

/// As `LeaderElectionSupport.toLeaderOffers`: `Integer.valueOf` of all but the first two characters.
#[test]
fn beside_leader_election_support_two_characters_are_skipped() {
    let names = shared(Recipe::JavaLes);
    let line = ["n_-2147483648", "n_0000000007", "x-0000000011", "éé0000000012"];
    assert_eq!(ordered(names, &[line[3], line[1], line[2], line[0], "n_", "n", "n_9999999999", "lock-1"]), line);
    assert!(names.fits(line[0]) && !names.fits(line[2]));
}

#[test]
fn beside_other_libraries_no_record_and_no_priority_puts_anyone_first() {
    let children: Vec<_> =
        ["-p9-latch-0000000002", "-latch-0000000001", "-latch-0000000003"].map(|rest| format!("_c_{US}{rest}")).into();
    let holder = [Holder::Candidate { name: children[2].clone(), token: 9 }];
    let stand = |own: &String| standing(shared(Recipe::Sequential), &children, own, &[], &holder).unwrap();
    assert_eq!((stand(&children[1]).place, stand(&children[1]).slot), (Place::First, Some(0)));
    assert_eq!((stand(&children[0]).place, stand(&children[0]).slot), (Place::Next, None));
    assert_eq!(stand(&children[2]).place, Place::Behind(2));
    assert_eq!(stand(&children[2]).before, [children[0].clone(), children[1].clone()]);
}

proptest! {
    #[test]
    fn every_line_of_any_names_has_one_first_and_no_panic(
        others in proptest::collection::hash_set("(_c_.{0,9})?(n_|(latch|lock)-|__r?lock__){0,2}[-+]?[0-9]{0,11}|.{0,20}", 0..12),
        recipe in 0_usize..4,
        is_shared: bool,
    ) {
        let names = Names { recipe: LINES[recipe], is_shared };
        let children: Vec<_> = others.into_iter().collect();
        let line = in_order(names, &children);
        let stand = |own: &String| standing(names, &children, own, &[US], &[Holder::Nobody]).unwrap();
        for (rank, own) in line.iter().enumerate() {
            let standing = stand(own);
            prop_assert_eq!((standing.rank, standing.slot), (rank, (rank == 0).then_some(0)));
            let before: Vec<_> = line[..rank].iter().rev().take(2).cloned().collect();
            prop_assert_eq!(standing.before, before);
        }
    }
}
