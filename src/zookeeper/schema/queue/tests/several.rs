//! Several slots and priorities: who may take which slot, and whether every candidate that must know is woken.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::super::*;
use super::LATCH;

fn named(number: u32, priority: i16) -> String {
    format!("{}{number:010}", LATCH.prefix(Uuid::from_u128(u128::from(number)), priority))
}

fn held_by(name: &str, token: i64) -> Holder {
    Holder::Candidate { name: name.to_owned(), token }
}

fn stand(children: &[String], own: &str, holders: &[Holder]) -> (Place, Option<usize>) {
    let standing = standing(LATCH, children, own, &[], holders).unwrap();
    (standing.place, standing.slot)
}

#[test]
fn a_priority_is_read_from_where_we_write_it_and_from_nowhere_else() {
    for said in [1, 999, -1, -999] {
        let name = named(7, said);
        assert_eq!((LATCH.priority(&name), LATCH.position(&name)), (said, Some(Position::Number(7))), "{name}");
    }
    assert_eq!(LATCH.priority(&named(7, 0)), 0);
    assert_eq!(named(7, 0), "_c_00000000-0000-0000-0000-000000000007-latch-0000000007");
    let uuid = Uuid::from_u128(7);
    for strange in ["-p5", "-p5x-latch-1", "-q5-latch-1", "-p-latch-1", "-p99999-latch-1"] {
        assert_eq!(LATCH.priority(&format!("_c_{uuid}{strange}")), 0, "{strange}");
    }
    assert_eq!(LATCH.priority("x-p5-latch-0000000001"), 0);
    assert!(LATCH.is_of(&named(7, 3), uuid) && LATCH.is_of(&named(7, 0), uuid) && !LATCH.is_of(&named(8, 3), uuid));
}

#[test]
fn a_free_slot_goes_before_one_whose_holder_is_gone() {
    let (first, second) = (named(5, 0), named(6, 0));
    let children = [second.clone(), first.clone()];
    let holders = [held_by("gone", 9), Holder::Nobody, Holder::Lost];
    assert_eq!(stand(&children, &first, &holders), (Place::First, Some(1)));
    assert_eq!(stand(&children, &second, &holders), (Place::First, Some(0)));
}

#[test]
fn a_holder_keeps_its_slot_and_two_behind_the_slots_are_next() {
    let names: Vec<_> = (1..=6).map(|number| named(number, 0)).collect();
    let holders = [held_by(&names[1], 9), held_by(&names[0], 8)];
    let at = |index: usize| stand(&names, &names[index], &holders);
    assert_eq!((at(0), at(1)), ((Place::First, Some(1)), (Place::First, Some(0))));
    assert_eq!((at(2), at(3)), ((Place::Next, None), (Place::Next, None)));
    assert_eq!((at(4).0, at(5).0), (Place::Behind(4), Place::Behind(5)));
    let watched = |index: usize| standing(LATCH, &names, &names[index], &[], &holders).unwrap().before.len();
    assert_eq!([0, 1, 2, 3, 4, 5].map(watched), [0, 0, 2, 3, 2, 2]);
}

#[test]
fn a_candidate_that_two_records_name_holds_the_one_of_the_later_term() {
    let (twice, other) = (named(1, 0), named(2, 0));
    let children = [twice.clone(), other.clone()];
    let holders = [held_by(&twice, 5), held_by(&twice, 9)];
    assert_eq!(stand(&children, &twice, &holders), (Place::First, Some(1)));
    assert_eq!(stand(&children, &other, &holders), (Place::First, Some(0)));
}

#[test]
fn the_higher_waits_less_and_never_before_a_holder() {
    let (holder, low, high, equal) = (named(1, 0), named(2, 0), named(3, 5), named(4, 5));
    let children = [low.clone(), equal.clone(), holder.clone(), high.clone()];
    let order = |holders: &[Holder]| {
        let mut names = children.to_vec();
        let rank = |own: &String| {
            let standing = standing(LATCH, &children, own, &[], holders).unwrap();
            match standing.place {
                Place::First => 0,
                Place::Next => 1,
                Place::Behind(count) => count,
            }
        };
        names.sort_by_key(rank);
        names
    };
    let expected = [&holder, &high, &equal, &low].map(String::clone);
    assert_eq!(order(&[held_by(&holder, 1)]), expected);
    assert_eq!(order(&[Holder::Unknown]), expected, "whoever wrote a record without a candidate knew no priorities");
    assert_eq!(order(&[Holder::Nobody])[0], high);
    assert_eq!(order(&[held_by("gone", 1)])[..2], [high, equal]);
}

proptest! {
    #[test]
    fn whatever_is_seen_each_slot_has_one_taker_and_each_taker_one_slot(
        priorities in proptest::collection::vec(-2i16..3, 1..12),
        holders in proptest::collection::vec((0u32..16, 0i64..9), 1..6),
    ) {
        let children: Vec<_> = (0..).zip(&priorities).map(|(number, priority)| named(number, *priority)).collect();
        let holder = |(of, token): (u32, i64)| match (of, children.get(of as usize)) {
            (_, Some(name)) => held_by(name, token),
            (12 | 13, _) => Holder::Nobody,
            (14, _) => Holder::Unknown,
            (15, _) => Holder::Lost,
            _ => held_by("gone", token),
        };
        let holders: Vec<_> = holders.into_iter().enumerate()
            .map(|(slot, (of, token))| holder((of, 10 * token + i64::try_from(slot).unwrap()))).collect();
        let standings: Vec<_> = children.iter().map(|own| standing(LATCH, &children, own, &[], &holders).unwrap()).collect();
        let slots: Vec<_> = standings.iter().filter_map(|standing| standing.slot).collect();
        prop_assert_eq!(slots.len(), children.len().min(holders.len()));
        prop_assert_eq!(slots.iter().collect::<BTreeSet<_>>().len(), slots.len());
        prop_assert!(standings.iter().all(|standing| (standing.place == Place::First) == standing.slot.is_some()));
    }

    #[test]
    fn as_many_lead_as_can_whoever_comes_and_goes_and_nobody_wakes_a_herd(
        slots in 1usize..5,
        deeds in proptest::collection::vec((0u8..4, any::<u8>(), -1i16..2), 1..60),
    ) {
        let mut hall = Hall::new(slots);
        for (deed, which, priority) in deeds {
            hall.woken_at_once = 0;
            match deed {
                0 | 1 => hall.joins(priority),
                2 => hall.leaves(usize::from(which), true),
                _ => hall.leaves(usize::from(which), false),
            }
            hall.settle();
            prop_assert_eq!(hall.leading(), hall.children.len().min(slots), "{:?}", hall);
            // Two behind the slots for each priority, each woken once by the departure and once by the take-over.
            prop_assert!(hall.woken_at_once <= 2 * 2 * 3, "{} of {:?}", hall.woken_at_once, hall);
        }
    }
}

/// Candidates that look only when they are woken.
#[derive(Debug)]
struct Hall {
    children: Vec<String>,
    holders: Vec<Holder>,
    watches: BTreeMap<String, Vec<String>>,
    woken: VecDeque<String>,
    woken_at_once: usize,
    zxid: i64,
}

impl Hall {
    fn new(slots: usize) -> Self {
        let holders = vec![Holder::Nobody; slots];
        let (children, watches, woken) = (Vec::new(), BTreeMap::new(), VecDeque::new());
        Self { children, holders, watches, woken, woken_at_once: 0, zxid: 0 }
    }

    fn joins(&mut self, priority: i16) {
        self.zxid += 1;
        let name = named(u32::try_from(self.zxid).unwrap(), priority);
        self.children.push(name.clone());
        self.woken.push_back(name);
    }

    fn leaves(&mut self, which: usize, cleanly: bool) {
        if self.children.is_empty() {
            return;
        }
        let name = self.children.remove(which % self.children.len());
        self.watches.remove(&name);
        for holder in
            self.holders.iter_mut().filter(|holder| matches!(holder, Holder::Candidate { name: of, .. } if *of == name))
        {
            if cleanly {
                *holder = Holder::Nobody;
            }
        }
        self.changed(&name);
    }

    fn changed(&mut self, name: &str) {
        for (watcher, watched) in &mut self.watches {
            if watched.iter().any(|watched| watched == name) {
                watched.retain(|watched| watched != name);
                self.woken.push_back(watcher.clone());
                self.woken_at_once += 1;
            }
        }
    }

    fn settle(&mut self) {
        while let Some(name) = self.woken.pop_front() {
            if let Some(standing) = standing(LATCH, &self.children, &name, &[], &self.holders) {
                self.acts(&name, standing);
            }
        }
    }

    fn acts(&mut self, name: &str, standing: Standing) {
        self.watches.insert(name.to_owned(), standing.before);
        let Some(slot) = standing.slot else { return };
        if matches!(&self.holders[slot], Holder::Candidate { name: of, .. } if of == name) {
            return;
        }
        self.zxid += 1;
        self.holders[slot] = held_by(name, self.zxid);
        if self.holders.len() > 1 {
            self.changed(name);
        }
    }

    fn leading(&self) -> usize {
        let living =
            |holder: &&Holder| matches!(holder, Holder::Candidate { name, .. } if self.children.contains(name));
        self.holders.iter().filter(living).count()
    }
}

/// The first in the queue must have been told: it was next before, or held the record.
#[test]
fn a_record_that_nobody_holds_seats_nobody() {
    let (leader, high, plain) = (named(1, 5), named(2, 5), named(3, 0));
    let children = [leader.clone(), high.clone(), plain.clone()];
    assert_eq!(stand(&children, &leader, &[Holder::Lost]), (Place::First, Some(0)));
    assert_eq!(stand(&children[1..], &high, &[Holder::Lost]), (Place::First, Some(0)));
    assert_eq!(stand(&children[1..], &plain, &[Holder::Lost]), (Place::Next, None));
}

/// Two candidates of higher priority came between; the first in the queue is told of the end all the same.
#[test]
fn whoever_follows_a_holder_that_knows_no_priorities_watches_it() {
    let (holder, plain, high, higher) = (named(1, 0), named(2, 0), named(3, 5), named(4, 7));
    let children = [holder.clone(), plain.clone(), high.clone(), higher.clone()];
    let before = |own: &str| standing(LATCH, &children, own, &[], &[Holder::Unknown]).unwrap().before;
    assert_eq!(before(&plain), [high.clone(), higher, holder.clone()]);
    assert_eq!(before(&holder), [""; 0]);
    assert_eq!(stand(&children[1..], &plain, &[Holder::Unknown]), (Place::First, Some(0)));
}

#[test]
fn only_the_next_in_line_outranks_and_only_one_leader_of_lower_priority() {
    let (leader, equal, high, higher) = (named(1, 2), named(2, 2), named(3, 5), named(4, 7));
    let outranks = |children: &[&String], own: &str, holders: &[Holder]| {
        let children: Vec<_> = children.iter().map(|name| (*name).clone()).collect();
        standing(LATCH, &children, own, &[], holders).unwrap().outranks
    };
    let holders = [held_by(&leader, 9)];
    assert!(outranks(&[&leader, &high], &high, &holders));
    assert!(outranks(&[&leader, &equal, &high], &high, &holders));
    assert!(!outranks(&[&leader, &equal], &equal, &holders), "an equal");
    assert!(!outranks(&[&leader, &high, &higher], &high, &holders), "not next");
    assert!(!outranks(&[&leader, &high], &leader, &holders), "the leader itself");
    assert!(!outranks(&[&leader, &high], &high, &[held_by("gone", 9)]));
    assert!(
        !outranks(&[&leader, &high], &high, &[Holder::Nobody])
            && !outranks(&[&leader, &high], &high, &[Holder::Unknown])
    );
    assert!(!outranks(&[&leader, &equal, &high], &high, &[held_by(&leader, 9), held_by(&equal, 8)]), "which of two?");
}
