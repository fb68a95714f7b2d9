//! Counters and the histogram of the events and actions since the start of this process.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::core::action::{Action, PhaseName, Transition, Why};
use crate::core::event::{Event, Request};
use crate::core::guard_messages::{Cause, Order, Report};
use crate::core::time::Now;
use crate::observe::words;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Buckets in seconds: from a server on this host to the longest lease.
const LATENCIES: [f64; 14] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

const ACKNOWLEDGED: Labels<1> = [("outcome", "acknowledged")];
const DENIED: Labels<1> = [("outcome", "denied")];
const UNANSWERED: Labels<1> = [("outcome", "unanswered")];

const AUXILIARY_OUTCOMES: [&str; 5] = ["succeeded", "failed", "timed-out", "stopped", "guard-gone"];

#[derive(Debug)]
pub(super) struct Counters {
    transitions: Family<Labels<3>, Counter>,
    renewals: Family<Labels<1>, Counter>,
    renewal_latency: Histogram,
    sessions_opened: Counter,
    sessions_lost: Counter,
    contact_losses: Counter,
    reconnects: Counter,
    starts: Counter,
    restarts: Counter,
    ends: Family<Labels<1>, Counter>,
    stuck_reports: Counter,
    auxiliary: Family<Labels<2>, Counter>,
    /// The token of the last start: a second start with the same token is a restart.
    last_token: AtomicI64,
    /// The next contact is no contact that was lost.
    takes_session_up: AtomicBool,
}

impl Counters {
    pub fn register(registry: &mut Registry) -> Self {
        let counters = Self {
            transitions: Family::default(),
            renewals: Family::default(),
            renewal_latency: Histogram::new(LATENCIES),
            sessions_opened: Counter::default(),
            sessions_lost: Counter::default(),
            contact_losses: Counter::default(),
            reconnects: Counter::default(),
            starts: Counter::default(),
            restarts: Counter::default(),
            ends: Family::default(),
            stuck_reports: Counter::default(),
            auxiliary: Family::default(),
            last_token: AtomicI64::new(0),
            takes_session_up: AtomicBool::new(false),
        };
        let mut add = |name: &str, help: &str, counter: &Counter| registry.register(name, help, counter.clone());
        add("sessions_opened", "ZooKeeper sessions that were established", &counters.sessions_opened);
        add("sessions_lost", "ZooKeeper sessions that expired or were given up", &counters.sessions_lost);
        add("contact_losses", "Times that the connection to ZooKeeper was lost", &counters.contact_losses);
        add("reconnects", "Times that it came back within the same session", &counters.reconnects);
        add("command_starts", "Starts of the command", &counters.starts);
        add("command_restarts", "Starts of the command after the first one of a term", &counters.restarts);
        add(
            "stuck_reports",
            "Reports that processes survive SIGKILL: the first within five seconds, then one every five seconds",
            &counters.stuck_reports,
        );
        let (transitions, renewals) = (counters.transitions.clone(), counters.renewals.clone());
        registry.register("transitions", "Changes of phase, by their reason", transitions);
        registry.register("renewals", "Renewals of the lease, by their outcome", renewals);
        let ends = "Ends of the command's process tree, by their cause; ordered: it was ended under its lease; deadline: it ran \
                    until its lease was over, and the guard killed it before another host could start its own";
        registry.register("command_ends", ends, counters.ends.clone());
        let auxiliary = "Runs of hooks, steps, and health, eligibility and fence commands, by how they ended";
        registry.register("auxiliary_commands", auxiliary, counters.auxiliary.clone());
        let latency = "From the sending of a renewal to the news of its acknowledgement";
        registry.register_with_unit("renewal_latency", latency, Unit::Seconds, counters.renewal_latency.clone());
        counters.begin_at_zero();
        counters
    }

    /// Starts every series at zero: `increase()` misses the first event of a series that begins with it.
    fn begin_at_zero(&self) {
        for outcome in [ACKNOWLEDGED, DENIED, UNANSWERED] {
            drop(self.renewals.get_or_create(&outcome));
        }
        for cause in [Cause::ItsOwn, Cause::Ordered, Cause::Deadline, Cause::SupervisorGone] {
            drop(self.ends.get_or_create(&ended_by(cause)));
        }
        for (from, to, why) in alarming() {
            drop(self.transitions.get_or_create(&changed(from, to, why)));
        }
    }

    /// Starts the series of this auxiliary command.
    pub fn expect_auxiliary(&self, command: &'static str) {
        for outcome in AUXILIARY_OUTCOMES {
            drop(self.auxiliary.get_or_create(&[("command", command), ("outcome", outcome)]));
        }
    }

    pub fn auxiliary_ended(&self, command: &'static str, outcome: &'static str) {
        count(&self.auxiliary.get_or_create(&[("command", command), ("outcome", outcome)]));
    }

    pub fn report_stuck(&self) {
        count(&self.stuck_reports);
    }

    /// The next start with this token is a restart.
    pub fn resume(&self, token: i64) {
        self.last_token.store(token, Ordering::Relaxed);
    }

    pub fn take_session_up(&self) {
        self.takes_session_up.store(true, Ordering::Relaxed);
    }

    /// `lapsed`: the lease of our term is over.
    pub fn on_event(&self, now: Now, event: &Event, lapsed: bool) {
        match *event {
            Event::Connected { .. } => count(&self.sessions_opened),
            Event::SessionOver { .. } => count(&self.sessions_lost),
            Event::ContactLost { .. } => count(&self.contact_losses),
            Event::ContactRestored { .. } if self.takes_session_up.swap(false, Ordering::Relaxed) => {}
            Event::ContactRestored { .. } => count(&self.reconnects),
            Event::Renewed { sent_at, .. } => {
                count(&self.renewals.get_or_create(&ACKNOWLEDGED));
                self.renewal_latency.observe(sent_at.until(now.lease).as_secs_f64());
            }
            Event::Denied { request: Request::Renew, .. } => count(&self.renewals.get_or_create(&DENIED)),
            Event::Unanswered { request: Request::Renew, .. } => count(&self.renewals.get_or_create(&UNANSWERED)),
            Event::Guard(Report::TreeEnded { cause, .. }) => {
                count(&self.ends.get_or_create(&ended_by(as_it_ended(cause, lapsed))));
            }
            Event::Guard(Report::Stuck { .. }) => count(&self.stuck_reports),
            _ => {}
        }
    }

    pub fn on_action(&self, action: &Action) {
        match *action {
            Action::Guard(Order::Start { grant, .. }) => {
                count(&self.starts);
                if self.last_token.swap(grant.token, Ordering::Relaxed) == grant.token {
                    count(&self.restarts);
                }
            }
            Action::Announce(Transition { from, to, why, .. }) => {
                count(&self.transitions.get_or_create(&changed(from, to, why)));
            }
            _ => {}
        }
    }
}

fn count(counter: &Counter) {
    counter.inc();
}

/// The changes of phase that the alerts count.
fn alarming() -> impl Iterator<Item = (PhaseName, PhaseName, Why)> {
    use PhaseName::{Following, Leading, Paused, Preparing, Releasing, Stopping, Vouched, Waiting};
    let elected = [Following, Waiting, Preparing].map(|from| (from, Leading, Why::Elected));
    let cut_off = [Leading, Vouched].map(|from| (from, Paused, Why::ContactLost));
    let resigns = |to| [Leading, Vouched, Paused].map(|from| (from, to, Why::CrashLoop));
    // A run that --timeout has stopped counts, too.
    let late = (Stopping, Releasing, Why::CrashLoop);
    // Without a lease that still lasts, there is nothing to release.
    let resigns = [Releasing, Stopping, Following].into_iter().flat_map(resigns);
    elected.into_iter().chain(cut_off).chain(resigns).chain([late])
}

fn changed(from: PhaseName, to: PhaseName, why: Why) -> Labels<3> {
    [("from", words::phase(from)), ("to", words::phase(to)), ("why", words::reason_code(why))]
}

/// A guard tells who began the stop. The command may have obeyed long before its lease was over, or not at all.
fn as_it_ended(cause: Cause, lapsed: bool) -> Cause {
    match cause {
        Cause::Ordered | Cause::Deadline if lapsed => Cause::Deadline,
        Cause::Ordered | Cause::Deadline => Cause::Ordered,
        Cause::ItsOwn | Cause::SupervisorGone => cause,
    }
}

fn ended_by(cause: Cause) -> Labels<1> {
    let cause = match cause {
        Cause::ItsOwn => "own",
        Cause::Ordered => "ordered",
        Cause::Deadline => "deadline",
        Cause::SupervisorGone => "supervisor-gone",
    };
    [("cause", cause)]
}
