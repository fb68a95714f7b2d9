//! When to log that the servers refuse a request, such as for a quota: once it repeats, then every minute.

use std::time::Duration;

use crate::core::event::Request;
use crate::core::time::Timestamp;

/// So many in succession are told at once.
const SEVERAL: u32 = 3;
const MINUTE: Duration = Duration::from_secs(60);

/// The refusals since a request of that kind last succeeded. The default: none.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    last: Option<Request>,
    since: Option<Timestamp>,
    count: u32,
    told: Option<Timestamp>,
}

impl Refusals {
    /// A request was carried out or refused. Whether a line is due, the first one after `patience` at the latest. Requests of
    /// other kinds may succeed meanwhile: one can read where one cannot write.
    pub fn note(&mut self, request: Request, is_refused: bool, now: Timestamp, patience: Duration) -> bool {
        if !is_refused {
            if self.last == Some(request) {
                *self = Self::default();
            }
            return false;
        }
        self.last = Some(request);
        self.count = self.count.saturating_add(1);
        let since = *self.since.get_or_insert(now);
        let is_due = match self.told {
            Some(told) => told.until(now) >= MINUTE,
            None => self.count >= SEVERAL || since.until(now) >= patience,
        };
        if is_due {
            self.told = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_once_it_repeats_and_then_every_minute() {
        let mut refusals = Refusals::default();
        let at = |seconds: u64| Timestamp::ZERO.after(Duration::from_secs(seconds));
        let mut note =
            |request, is_refused, second| refusals.note(request, is_refused, at(second), Duration::from_secs(8));
        let told: Vec<_> = (0_u64..=130)
            .filter(|second| {
                assert!(!note(Request::Look, false, *second), "a success is not told");
                note(Request::TakeOver, true, *second)
            })
            .collect();
        assert_eq!(told, [2, 62, 122], "though the looks between them succeed");
        assert!(!note(Request::TakeOver, false, 190) && !note(Request::TakeOver, true, 200), "it is another matter");
        assert!(note(Request::TakeOver, true, 208), "twice in the session timeout");
    }
}
