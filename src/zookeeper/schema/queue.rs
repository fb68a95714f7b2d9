//! The order of the candidates, from their names and the records alone: which candidate may take which slot, which ones
//! stand just before ours, and which children are not candidates.
//!
//! Names are those of the recipe ([`super::candidate_name`]). By default they are those of Curator's `LeaderLatch`:
//! `_c_<uuid>-latch-` and the server's sequence number, with `--priority` `_c_<uuid>-p<N>-latch-`. Present holders
//! stand first, then higher priorities, then lower numbers. The number is the parent's int32 counter, which overflows
//! to negative values after 2^31 creations (T23); read as unsigned it goes on growing, so the order stays. Candidates
//! with equal numbers (a 3.8 server whose counter overflowed assigns the same one for ever) are ordered by name. Peers
//! need not see the same order for safety: the lease records decide.
//!
//! In a directory shared with other libraries the name alone decides, because they do not read our record.

use std::cmp::Reverse;

use uuid::Uuid;

use crate::core::event::Place;
use crate::zookeeper::schema::candidate_name::{Names, Position, SINGLE};

/// How many candidates before ours are watched. With two, the next in the queue knows that it is next.
const WATCHED: usize = 2;

/// The holder in a slot's record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    /// The record is free.
    Nobody,
    /// The record is held and names no candidate: a version without priorities wrote it.
    Unknown,
    /// The record counts as held, but has no holder: it was lost and created again, or cannot be read.
    Lost,
    /// The candidate, and the fencing token of the slot's term.
    Candidate { name: String, token: i64 },
}

/// What the children of the election directory mean to one of the candidates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Standing {
    pub place: Place,
    /// How many stand before it, holders included.
    pub rank: usize,
    /// It is next, and the only holder's priority is lower.
    pub outranks: bool,
    /// If it may take a slot: its own slot, or one that no candidate before it will take.
    pub slot: Option<usize>,
    /// The candidates whose departure it must learn of, nearest first.
    pub before: Vec<String>,
    /// Children that are not named like candidates. Most are ignored; Curator's recipes count them all.
    pub foreign: Vec<String>,
    /// Our other candidates: from a create whose reply was lost, or from an earlier candidacy.
    pub doubles: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Candidate<'a> {
    name: &'a str,
    priority: i16,
    position: Position,
}

/// The place of the candidate `own`. All names with one of these UUIDs are ours; `holders` has one entry for each slot.
/// `None` if it is not among the children.
pub(crate) fn standing(
    names: Names,
    children: &[String],
    own: &str,
    uuids: &[Uuid],
    holders: &[Holder],
) -> Option<Standing> {
    let is_double = |child: &str| child != own && uuids.iter().any(|uuid| names.is_of(child, *uuid));
    let foreign = children.iter().filter(|child| !names.fits(child)).cloned().collect();
    let (mut line, mut doubles) = (Vec::new(), Vec::new());
    for child in children {
        match names.position(child) {
            None => {}
            Some(_) if is_double(child) => doubles.push(child.clone()),
            Some(position) => line.push(Candidate { name: child, priority: names.priority(child), position }),
        }
    }
    let seated = |slot| seated(&line, holders, slot).filter(|_| !names.is_shared);
    let seated: Vec<_> = (0..holders.len()).map(seated).collect();
    let is_seated = |name: &str| seated.contains(&Some(name));
    let order =
        |one: &Candidate| (!is_seated(one.name), Reverse(one.priority), one.position.clone(), one.name.to_owned());
    line.sort_by_cached_key(order);
    let rank = line.iter().position(|candidate| candidate.name == own)?;
    let seat = seated.iter().position(|name| *name == Some(own));
    let slot = seat.or_else(|| vacant(&seated, holders, rank)).filter(|_| rank < holders.len());
    let place = place(rank, holders.len());
    let outranks = place == Place::Next && outranks(&line, holders, own);
    // A candidate that may start knows enough. The next two watch all before them, because the departure of any of
    // those makes room.
    let watched = if rank < holders.len() + WATCHED { rank } else { WATCHED };
    let before = line.iter().take(rank).rev().take(watched).map(|candidate| candidate.name.to_owned());
    let mut before: Vec<_> = if slot.is_some() { Vec::new() } else { before.collect() };
    // The successor of a holder without priorities is the next without a priority, however many stand before it.
    let supposed = seated.first().copied().flatten().filter(|_| holders == [Holder::Unknown] && slot.is_none());
    if let Some(name) = supposed.filter(|name| names.priority(own) == 0 && !before.iter().any(|known| known == name)) {
        before.push(name.to_owned());
    }
    Some(Standing { place, rank, outranks, slot, before, foreign, doubles })
}

/// The living candidate that holds the slot. Two records may name one candidate (the reply to a take-over was lost, and
/// it took another slot): it holds the slot with the later term.
fn seated<'a>(line: &[Candidate<'a>], holders: &[Holder], slot: usize) -> Option<&'a str> {
    match holders.get(slot)? {
        // The writer knew no priorities, and was the first without them.
        Holder::Unknown if holders.len() == 1 => {
            let plain = line.iter().filter(|candidate| candidate.priority == 0);
            plain.min_by_key(|candidate| (&candidate.position, candidate.name)).map(|candidate| candidate.name)
        }
        Holder::Nobody | Holder::Unknown | Holder::Lost => None,
        Holder::Candidate { name, token } => {
            let later = |other: &Holder| matches!(other, Holder::Candidate { name: same, token: of } if same == name && of > token);
            let living = line.iter().find(|candidate| candidate.name == name)?;
            (!holders.iter().any(later)).then_some(living.name)
        }
    }
}

/// Whether the one leader's priority is lower than that of `own`. With several leaders there is no preemption.
fn outranks(line: &[Candidate], holders: &[Holder], own: &str) -> bool {
    let priority = |name: &str| line.iter().find(|candidate| candidate.name == name).map(|found| found.priority);
    match holders {
        [Holder::Candidate { name, .. }] => priority(name).is_some_and(|leading| Some(leading) < priority(own)),
        _ => false,
    }
}

/// The slot for the candidate with this rank, which holds none. Waiting candidates take the vacant slots in their
/// order, free ones first.
fn vacant(seated: &[Option<&str>], holders: &[Holder], rank: usize) -> Option<usize> {
    let mut vacant: Vec<_> = (0..seated.len()).filter(|slot| seated.get(*slot) == Some(&None)).collect();
    vacant.sort_by_key(|slot| holders.get(*slot) != Some(&Holder::Nobody));
    vacant.get(rank.checked_sub(seated.len() - vacant.len())?).copied()
}

fn place(rank: usize, slots: usize) -> Place {
    match rank {
        rank if rank < slots => Place::First,
        rank if rank < slots + WATCHED.min(slots) => Place::Next,
        rank => Place::Behind(u32::try_from(rank).unwrap_or(u32::MAX)),
    }
}

/// All candidates in the order of the queue, given the holders; and the children that are not named like candidates.
/// The znode of the single recipe is a candidate.
pub(crate) fn ordered(names: Names, children: &[String], holders: &[&str]) -> (Vec<String>, Vec<String>) {
    let is_seat = |child: &str| child == SINGLE && !names.is_shared;
    let foreign = children.iter().filter(|child| !names.fits(child) && !is_seat(child)).cloned().collect();
    let place = |child: &String| {
        let position = names.position(child).or(is_seat(child).then_some(Position::Number(0)))?;
        let is_holder = holders.contains(&child.as_str()) && !names.is_shared;
        Some((!is_holder, Reverse(names.priority(child)), position, child.clone()))
    };
    let mut line: Vec<_> = children.iter().filter_map(place).collect();
    line.sort_unstable();
    (line.into_iter().map(|(.., name)| name).collect(), foreign)
}

/// The children with our UUID, in the order of the queue.
pub(crate) fn own(names: Names, children: &[String], uuid: Uuid) -> Vec<String> {
    let own: Vec<_> = children.iter().filter(|child| names.is_of(child, uuid)).cloned().collect();
    in_order(names, &own)
}

/// The candidates, ordered by their names alone.
pub(crate) fn in_order(names: Names, children: &[String]) -> Vec<String> {
    let mut line: Vec<_> = children.iter().filter_map(|child| Some((names.position(child)?, child.clone()))).collect();
    line.sort_unstable();
    line.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests;
