//! Counters of events and gauges of the present state, for Prometheus in the `OpenMetrics` text format.
//!
//! Counters take the events and actions of the supervisor's loop. Gauges are computed at the moment of reading, see
//! [`super::status`]. Only the labels `election` and `participant` have values from outside.

mod counters;
mod gauges;
mod vouching;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use self::counters::Counters;
use self::gauges::Gauges;
use self::vouching::VouchMetrics;
use super::status::Status;
use crate::core::action::Action;
use crate::core::event::Event;
use crate::core::time::Now;

/// The content type of `/metrics`.
pub const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const PREFIX: &str = "zk_leader_run";

/// See the module page.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    counters: Counters,
    gauges: Gauges,
    vouching: VouchMetrics,
}

impl Metrics {
    /// The metrics of one participant in the election `name`; both are labels of every metric.
    pub fn new(name: &str, participant: &str) -> Self {
        let labels = [("election", name), ("participant", participant)];
        let labels = labels.map(|(label, value)| (label.into(), value.to_owned().into()));
        let mut registry = Registry::with_prefix_and_labels(PREFIX, labels.into_iter());
        let (counters, gauges) = (Counters::register(&mut registry), Gauges::register(&mut registry));
        let vouching = VouchMetrics::register(&mut registry);
        Self { registry, counters, gauges, vouching }
    }

    /// Counts an event. `lapsed`: the lease of our term is over.
    pub fn on_event(&self, now: Now, event: &Event, lapsed: bool) {
        self.counters.on_event(now, event, lapsed);
    }

    /// An earlier program of this process has started the command under this token.
    pub fn resume(&self, token: i64) {
        self.counters.resume(token);
    }

    /// The session of an earlier program of this process is taken up.
    pub fn take_session_up(&self) {
        self.counters.take_session_up();
    }

    /// Counts an action of the machine.
    pub fn on_action(&self, action: &Action) {
        self.counters.on_action(action);
    }

    /// Announces that the auxiliary command of the option `command` will run.
    pub fn expect_auxiliary(&self, command: &'static str) {
        self.counters.expect_auxiliary(command.trim_start_matches('-'));
    }

    /// Processes of a step survive SIGKILL.
    pub fn report_stuck(&self) {
        self.counters.report_stuck();
    }

    /// Counts a run of it by its outcome.
    pub fn auxiliary_ended(&self, command: &'static str, outcome: &'static str) {
        self.counters.auxiliary_ended(command.trim_start_matches('-'), outcome);
    }

    /// So many datagrams of other hosts were dropped for this reason, in all.
    pub fn datagrams_dropped(&self, why: &'static str, total: u64) {
        self.vouching.dropped(why, total);
    }

    /// The text of all metrics now.
    pub fn text(&self, status: &Status, now: Now) -> String {
        self.gauges.read(status, now);
        self.vouching.read(status, now);
        let mut text = String::new();
        // Writing to a String does not fail.
        encode(&mut text, &self.registry).ok();
        text
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::action::{PhaseName, Transition, Why};
    use crate::core::event::{Candidacy, Request, SessionNumber};
    use crate::core::guard_messages::{Cause, ChildStatus, Order, Report, RunId};
    use crate::core::machine::{Held, Vouched, Vouchees};
    use crate::core::time::Sighting;
    use crate::core::vouching::Needed;
    use crate::observe::status::tests::{at, leading};

    const NOW: Duration = Duration::from_secs(100);

    fn lines(metrics: &Metrics, status: &Status, now: Now) -> Vec<String> {
        let labels = "{election=\"job\",participant=\"a\"";
        let text = metrics.text(status, now);
        assert!(text.ends_with("# EOF\n"));
        text.lines().map(|line| line.replace(&format!("{labels},"), "{").replace(&format!("{labels}}}"), "")).collect()
    }

    #[track_caller]
    fn assert_has(lines: &[String], line: &str) {
        assert!(lines.iter().any(|known| known == line), "no {line} in\n{}", lines.join("\n"));
    }

    #[test]
    fn gauges_are_judged_when_they_are_read() {
        let metrics = Metrics::new("job", "a");
        let status = leading(at(NOW), at(NOW + Duration::from_secs(5)).lease);
        let before = lines(&metrics, &status, at(NOW + Duration::from_secs(4)));
        for line in ["leader 1", "token 9", "term 3", "lease_remaining_seconds 2.0", "command_running 1", "ready 1"] {
            assert_has(&before, &format!("zk_leader_run_{line}"));
        }
        assert_has(&before, "zk_leader_run_phase{phase=\"leading\"} 1");
        assert_has(&before, "zk_leader_run_phase{phase=\"following\"} 0");
        let after = lines(&metrics, &status, at(NOW + Duration::from_secs(7)));
        for line in ["leader 0", "lease_remaining_seconds 0.0", "ready 0"] {
            assert_has(&after, &format!("zk_leader_run_{line}"));
        }
    }

    #[test]
    fn a_disabled_election_is_told_from_one_that_nobody_can_lead() {
        let metrics = Metrics::new("job", "a");
        let mut status = leading(at(NOW), at(NOW + Duration::from_secs(5)).lease);
        assert_has(&lines(&metrics, &status, at(NOW)), "zk_leader_run_disabled 0");
        status.snapshot.disabled = true;
        for why in [Why::Disabled, Why::Unhealthy, Why::Drained] {
            status.snapshot.barred = Some(why);
            assert_has(&lines(&metrics, &status, at(NOW)), "zk_leader_run_disabled 1");
        }
    }

    #[test]
    fn events_are_counted() {
        let metrics = Metrics::new("job", "a");
        let (candidacy, session, run) = (Candidacy(1), SessionNumber(1), RunId(1));
        let now = at(NOW);
        let renewed = Event::Renewed { candidacy, sent_at: now.lease.before(Duration::from_millis(20)), version: 1 };
        let status = ChildStatus::Signaled(9);
        for event in [
            Event::Connected { session, negotiated: NOW },
            renewed,
            Event::Unanswered { candidacy, request: Request::Renew },
            Event::Unanswered { candidacy, request: Request::Look },
            Event::ContactLost { session },
            Event::ContactRestored { session },
            Event::SessionOver { session },
            Event::Guard(Report::TreeEnded { run, status, cause: Cause::Deadline }),
        ] {
            metrics.on_event(now, &event, true);
        }
        let lines = lines(&metrics, &leading(now, now.lease), now);
        for line in [
            "sessions_opened_total 1",
            "sessions_lost_total 1",
            "contact_losses_total 1",
            "reconnects_total 1",
            "renewals_total{outcome=\"acknowledged\"} 1",
            "renewals_total{outcome=\"unanswered\"} 1",
            "renewals_total{outcome=\"denied\"} 0",
            "renewal_latency_seconds_bucket{le=\"0.025\"} 1",
            "renewal_latency_seconds_bucket{le=\"0.01\"} 0",
            "command_ends_total{cause=\"deadline\"} 1",
            "command_ends_total{cause=\"own\"} 0",
        ] {
            assert_has(&lines, &format!("zk_leader_run_{line}"));
        }
    }

    /// Whoever began the stop.
    #[test]
    fn a_command_that_was_ended_at_its_deadline_is_one_that_ran_until_its_lease_was_over() {
        let metrics = Metrics::new("job", "a");
        let (run, status, now) = (RunId(1), ChildStatus::Signaled(9), at(NOW));
        for (cause, lapsed) in [
            (Cause::Deadline, false),
            (Cause::Ordered, false),
            (Cause::Ordered, true),
            (Cause::Deadline, true),
            (Cause::ItsOwn, true),
        ] {
            metrics.on_event(now, &Event::Guard(Report::TreeEnded { run, status, cause }), lapsed);
        }
        let lines = lines(&metrics, &leading(now, now.lease), now);
        for (cause, count) in [("deadline", 2), ("ordered", 2), ("own", 1)] {
            assert_has(&lines, &format!("zk_leader_run_command_ends_total{{cause=\"{cause}\"}} {count}"));
        }
    }

    #[test]
    fn what_the_alerts_count_begins_at_zero() {
        let metrics = Metrics::new("job", "a");
        let lines = lines(&metrics, &leading(at(NOW), at(NOW).lease), at(NOW));
        for labels in [
            "from=\"following\",to=\"leading\",why=\"elected\"",
            "from=\"waiting\",to=\"leading\",why=\"elected\"",
            "from=\"preparing\",to=\"leading\",why=\"elected\"",
            "from=\"leading\",to=\"paused\",why=\"contact-lost\"",
            "from=\"leading\",to=\"releasing\",why=\"crash-loop\"",
            "from=\"leading\",to=\"stopping\",why=\"crash-loop\"",
            "from=\"paused\",to=\"following\",why=\"crash-loop\"",
            "from=\"stopping\",to=\"releasing\",why=\"crash-loop\"",
        ] {
            assert_has(&lines, &format!("zk_leader_run_transitions_total{{{labels}}} 0"));
        }
    }

    #[test]
    fn vouching_is_measured_with_the_option_and_absent_without() {
        let metrics = Metrics::new("job", "a");
        let now = at(NOW);
        let mut status = leading(now, now.lease);
        assert!(!metrics.text(&status, now).contains("vouch_"), "{}", metrics.text(&status, now));
        let ago = |seconds| now.lease.before(Duration::from_secs(seconds));
        let host = |instance, promised_at| Some(Needed { instance, promised_at, silent_since: Some(ago(7)) });
        let (written_at, recent) = (ago(100), Duration::from_secs(2));
        let limit = Duration::from_secs(600);
        let mut needed = [None; 8];
        (needed[0], needed[1]) = (host(1, Some(ago(1))), host(2, None));
        let leads = Some(Vouchees { needed, written_at, limit_at: written_at.after(limit), recent });
        status.snapshot.vouching = Some(Vouched { limit, promised_until: Sighting::ZERO, promised_to: None, leads });
        status.snapshot.phase = PhaseName::Vouched;
        metrics.datagrams_dropped("replay", 3);
        metrics.datagrams_dropped("replay", 5);
        let lines = lines(&metrics, &status, now);
        for line in [
            "vouched 1",
            "vouch_ready 0",
            "vouch_needed 2",
            "vouch_answer_age_seconds 7.0",
            "vouch_limit_left_seconds 500.0",
            "vouch_datagrams_dropped_total{why=\"replay\"} 5",
            "phase{phase=\"vouched\"} 1",
        ] {
            assert_has(&lines, &format!("zk_leader_run_{line}"));
        }
    }

    #[test]
    fn auxiliary_commands_are_counted_from_zero() {
        let metrics = Metrics::new("job", "a");
        metrics.expect_auxiliary("--hook");
        metrics.auxiliary_ended("--hook", "timed-out");
        let now = at(NOW);
        let lines = lines(&metrics, &leading(now, now.lease), now);
        for (outcome, count) in [("succeeded", 0), ("failed", 0), ("timed-out", 1), ("stopped", 0), ("guard-gone", 0)] {
            assert_has(
                &lines,
                &format!("zk_leader_run_auxiliary_commands_total{{command=\"hook\",outcome=\"{outcome}\"}} {count}"),
            );
        }
    }

    #[test]
    fn actions_are_counted() {
        let metrics = Metrics::new("job", "a");
        let now = at(NOW);
        let example = leading(now, now.lease);
        let Held { grant, deadlines } = example.snapshot.held_term.unwrap();
        for run in [1, 2].map(RunId) {
            metrics.on_action(&Action::Guard(Order::Start { run, deadlines: deadlines.unwrap(), grant }));
        }
        metrics.on_action(&Action::Announce(Transition {
            from: PhaseName::Leading,
            to: PhaseName::Paused,
            why: Why::ContactLost,
            token: None,
            grant: None,
            lease_left: None,
            next_in: None,
        }));
        let lines = lines(&metrics, &example, now);
        for line in [
            "command_starts_total 2",
            "command_restarts_total 1",
            "transitions_total{from=\"leading\",to=\"paused\",why=\"contact-lost\"} 1",
        ] {
            assert_has(&lines, &format!("zk_leader_run_{line}"));
        }
    }
}
