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

/// An identifier that no other process draws.
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub fn uuid() -> Uuid {
    SIMULATED.get().map_or_else(Uuid::new_v4, |source| Uuid::from_u128(source()))
}
