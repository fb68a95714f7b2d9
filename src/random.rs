//! The only source of identifiers that nobody else has.

use std::cell::Cell;

use uuid::Uuid;

thread_local! {
    static SIMULATED: Cell<Option<fn() -> u128>> = const { Cell::new(None) };
}

/// From now on, [`uuid()`] makes the identifiers of this thread of what `source` gives: for tests that replay a run exactly.
/// `None`: they are random.
pub fn simulate(source: Option<fn() -> u128>) {
    SIMULATED.set(source);
}

/// Bytes that nobody can guess.
pub fn bytes<const LENGTH: usize>() -> [u8; LENGTH] {
    // Two bytes of each are not all random: they say of which kind it is.
    let of_one = |uuid: Uuid| uuid.into_bytes().into_iter().enumerate().filter(|(at, _)| ![6, 8].contains(at));
    let mut random = std::iter::repeat_with(uuid).flat_map(of_one);
    std::array::from_fn(|_| random.next().map_or(0, |(_, byte)| byte))
}

/// An identifier that no other process draws.
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub fn uuid() -> Uuid {
    SIMULATED.get().map_or_else(Uuid::new_v4, |source| Uuid::from_u128(source()))
}
