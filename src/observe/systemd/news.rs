//! The lines that systemd has not been sent yet.
//!
//! Never: a request for an upgrade without an answer; a number that changes by itself in STATUS.

use std::fmt::Write as _;
use std::time::Duration;

use crate::core::time::Now;
use crate::observe::status::{Role, Status, Upgrade};

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
    /// The requests for an upgrade that were told.
    requests: u32,
    /// RELOADING was told, and READY has to follow.
    reloading: bool,
    said: String,
}

impl News {
    pub fn new(ready_on: ReadyOn, stop_limit: Duration) -> Self {
        Self { ready_on, stop_limit, ready: false, stopping: false, requests: 0, reloading: false, said: String::new() }
    }

    /// The lines to be sent; none if nothing has changed.
    pub fn of(&mut self, status: &Status, now: Now) -> String {
        let mut news = String::new();
        let ready = match self.ready_on {
            ReadyOn::Contending => status.reached != Role::Neither,
            ReadyOn::Leading => status.reached == Role::Leader,
        };
        let is_first = ready && !std::mem::replace(&mut self.ready, true);
        // Each request, since `Type=notify-reload` waits for an answer that is younger than its own. The next program repeats
        // what may have been lost in the exchange. Before the first READY, systemd waits for that, and for no answer.
        let Upgrade { requests, requested_at, is_under_way } = status.upgrade;
        if std::mem::replace(&mut self.requests, requests) != requests && self.ready {
            self.reloading = true;
            writeln!(news, "RELOADING=1\nMONOTONIC_USEC={}", requested_at.as_micros()).ok();
        }
        // An upgrade that succeeds is answered by the next program.
        let is_over = !is_under_way && std::mem::replace(&mut self.reloading, false);
        if is_first || is_over {
            news += "READY=1\n";
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

    fn turned(mut status: Status) -> Status {
        status.reached = Role::Neither;
        status.on_turn(at(NOW), status.snapshot);
        status
    }

    fn example() -> Status {
        turned(leading(at(NOW), at(NOW + Duration::from_secs(5)).lease))
    }

    fn following() -> Status {
        let mut status = example();
        (status.snapshot.phase, status.snapshot.held_term, status.command) = (PhaseName::Following, None, None);
        turned(status)
    }

    #[test]
    fn a_standby_is_ready_once_and_every_change_is_told_once() {
        let mut news = News::new(ReadyOn::Contending, Duration::ZERO);
        let mut status = following();
        status.snapshot.view = None;
        assert_eq!(news.of(&turned(status), at(NOW)), "STATUS=following, not in line\n");
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
        assert!(!news.of(&turned(starting), at(NOW)).contains("READY"), "the command does not run yet");
        assert_eq!(news.of(&example(), at(NOW)), "READY=1\n");
    }

    #[test]
    fn an_upgrade_is_told_with_its_time_and_that_it_was_refused() {
        let mut news = News::new(ReadyOn::Contending, Duration::ZERO);
        news.of(&example(), at(NOW));
        let upgrade = |requests, millis, is_under_way| {
            let requested_at = Duration::from_millis(millis);
            Status { upgrade: Upgrade { requests, requested_at, is_under_way }, ..example() }
        };
        assert_eq!(news.of(&upgrade(1, 1500, true), at(NOW)), "RELOADING=1\nMONOTONIC_USEC=1500000\n");
        assert_eq!(news.of(&upgrade(1, 1500, true), at(NOW)), "");
        assert_eq!(news.of(&upgrade(2, 1600, true), at(NOW)), "RELOADING=1\nMONOTONIC_USEC=1600000\n", "asked again");
        assert_eq!(news.of(&upgrade(2, 1600, false), at(NOW)), "READY=1\n");
        assert_eq!(news.of(&upgrade(2, 1600, false), at(NOW)), "");
        let at_once = "RELOADING=1\nMONOTONIC_USEC=1700000\nREADY=1\n";
        assert_eq!(news.of(&upgrade(3, 1700, false), at(NOW)), at_once, "refused before anybody looked");
    }

    #[test]
    fn the_next_program_answers_for_the_one_before_as_soon_as_that_was_ready() {
        let upgrade = Upgrade { requests: 1, requested_at: Duration::from_millis(1500), is_under_way: false };
        let resumed = |reached| Status { reached, upgrade, ..following() };
        let mut news = News::new(ReadyOn::Leading, Duration::ZERO);
        assert!(news.of(&resumed(Role::Leader), at(NOW)).starts_with("RELOADING=1\nMONOTONIC_USEC=1500000\nREADY=1\n"));
        let mut news = News::new(ReadyOn::Leading, Duration::ZERO);
        assert!(!news.of(&resumed(Role::Standby), at(NOW)).contains("=1\n"), "its unit is being started yet");
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

    #[test]
    fn a_stop_may_take_as_long_as_the_lease() {
        let mut news = News::new(ReadyOn::Contending, Duration::from_secs(2));
        let mut ending = example();
        ending.snapshot.is_ending = true;
        let told = news.of(&turned(ending), at(NOW));
        assert!(told.contains("EXTEND_TIMEOUT_USEC=21000000\n"), "{told}");
    }
}
