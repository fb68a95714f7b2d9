//! The lines that systemd has not been sent yet.
//!
//! Never: READY twice; a number that changes by itself in STATUS.

use std::fmt::Write as _;
use std::time::Duration;

use crate::core::time::Now;
use crate::observe::status::{Role, Status};

/// `--ready-on`: when a unit of `Type=notify` counts as started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReadyOn {
    /// In line for leadership: a standby is a unit that runs.
    #[default]
    Contending,
    /// The command runs.
    Leading,
}

/// Closing the session, the last hooks, a busy host: on top of what the tree may take to end.
const REST: Duration = Duration::from_secs(15);

/// See the module's page.
#[derive(Debug)]
pub(super) struct News {
    ready_on: ReadyOn,
    stop_limit: Duration,
    ready: bool,
    stopping: bool,
    reloading: bool,
    said: String,
}

impl News {
    pub fn new(ready_on: ReadyOn, stop_limit: Duration) -> Self {
        Self { ready_on, stop_limit, ready: false, stopping: false, reloading: false, said: String::new() }
    }

    /// The lines to be sent; none if nothing has changed.
    pub fn of(&mut self, status: &Status, now: Now) -> String {
        let mut news = String::new();
        let ready = match self.ready_on {
            ReadyOn::Contending => status.place().is_some(),
            ReadyOn::Leading => status.role(now) == Role::Leader,
        };
        if ready && !std::mem::replace(&mut self.ready, true) {
            news += "READY=1\n";
        }
        match status.upgrading {
            Some(since) if !std::mem::replace(&mut self.reloading, true) => {
                writeln!(news, "RELOADING=1\nMONOTONIC_USEC={}", since.as_micros()).ok();
            }
            // An upgrade that succeeds is answered by the next program.
            None if std::mem::replace(&mut self.reloading, false) && self.ready => news += "READY=1\n",
            _ => {}
        }
        if status.snapshot.is_ending && !std::mem::replace(&mut self.stopping, true) {
            let limit = self.stop_limit.max(status.lease_left(now)).saturating_add(REST);
            writeln!(news, "STOPPING=1\nEXTEND_TIMEOUT_USEC={}", limit.as_micros()).ok();
        }
        let said = status.sentence();
        if said != self.said {
            writeln!(news, "STATUS={said}").ok();
            self.said = said;
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::action::PhaseName;
    use crate::observe::status::tests::{at, leading};

    const NOW: Duration = Duration::from_secs(100);

    fn example() -> Status {
        leading(at(NOW), at(NOW + Duration::from_secs(5)).lease)
    }

    fn following() -> Status {
        let mut status = example();
        (status.snapshot.phase, status.snapshot.held_term, status.command) = (PhaseName::Following, None, None);
        status
    }

    #[test]
    fn a_standby_is_ready_once_and_every_change_is_told_once() {
        let mut news = News::new(ReadyOn::Contending, Duration::ZERO);
        let mut status = following();
        status.snapshot.view = None;
        assert_eq!(news.of(&status, at(NOW)), "STATUS=following, not in line\n");
        assert_eq!(news.of(&following(), at(NOW)), "READY=1\nSTATUS=following, first in line\n");
        assert_eq!(news.of(&following(), at(NOW)), "");
        assert_eq!(news.of(&example(), at(NOW)), "STATUS=leading, token 9\n");
        assert_eq!(news.of(&following(), at(NOW)), "STATUS=following, first in line\n");
    }

    #[test]
    fn who_is_to_be_ready_when_it_leads_is_not_before() {
        let mut news = News::new(ReadyOn::Leading, Duration::ZERO);
        assert!(!news.of(&following(), at(NOW)).contains("READY"));
        let mut starting = example();
        starting.command = None;
        assert!(!news.of(&starting, at(NOW)).contains("READY"), "the command does not run yet");
        assert_eq!(news.of(&example(), at(NOW)), "READY=1\n");
    }

    #[test]
    fn an_upgrade_is_told_with_its_time_and_that_it_was_refused() {
        let mut news = News::new(ReadyOn::Contending, Duration::ZERO);
        news.of(&example(), at(NOW));
        let under_way = Status { upgrading: Some(Duration::from_millis(1500)), ..example() };
        assert_eq!(news.of(&under_way, at(NOW)), "RELOADING=1\nMONOTONIC_USEC=1500000\n");
        assert_eq!(news.of(&under_way, at(NOW)), "");
        assert_eq!(news.of(&example(), at(NOW)), "READY=1\n");
    }

    #[test]
    fn a_stop_is_told_once_with_the_time_that_it_may_take() {
        let mut news = News::new(ReadyOn::Contending, Duration::from_secs(600));
        news.of(&example(), at(NOW));
        let mut ending = example();
        (ending.snapshot.phase, ending.snapshot.is_ending) = (PhaseName::Stopping, true);
        let told = news.of(&ending, at(NOW));
        assert_eq!(told, "STOPPING=1\nEXTEND_TIMEOUT_USEC=615000000\nSTATUS=stopping, token 9\n");
        ending.snapshot.phase = PhaseName::Done;
        assert_eq!(news.of(&ending, at(NOW)), "STATUS=done, token 9\n");
    }
}
