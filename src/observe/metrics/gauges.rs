//! Gauges: computed from the status at the moment of reading.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::core::action::PhaseName;
use crate::core::time::Now;
use crate::observe::status::{Role, Status};
use crate::observe::words;

const PHASES: [PhaseName; 9] = [
    PhaseName::Following,
    PhaseName::Waiting,
    PhaseName::Preparing,
    PhaseName::Leading,
    PhaseName::Vouched,
    PhaseName::Paused,
    PhaseName::Stopping,
    PhaseName::Releasing,
    PhaseName::Done,
];

type Seconds = Gauge<f64, AtomicU64>;

#[derive(Debug, Default)]
pub(super) struct Gauges {
    phase: Family<[(&'static str, &'static str); 1], Gauge>,
    leader: Gauge,
    standby: Gauge,
    ready: Gauge,
    connected: Gauge,
    disabled: Gauge,
    command: Gauge,
    token: Gauge,
    term: Gauge,
    before: Gauge,
    lease_remaining: Seconds,
    lease: Seconds,
    phase_age: Seconds,
}

impl Gauges {
    pub fn register(registry: &mut Registry) -> Self {
        let gauges = Self::default();
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program itself", version);
        registry.register("phase", "1 for the present phase, 0 for every other", gauges.phase.clone());
        let mut add = |name: &str, help: &str, gauge: &Gauge| registry.register(name, help, gauge.clone());
        add("leader", "1 while the lease is valid and the command runs", &gauges.leader);
        add("standby", "1 while in line for leadership, and connected", &gauges.standby);
        add("ready", "1 while connected and contending", &gauges.ready);
        add("connected", "1 while the ZooKeeper session answers", &gauges.connected);
        add("disabled", "1 while an operator's order keeps every host from running the command", &gauges.disabled);
        add("command_running", "1 while the command runs, with a valid lease or while it is stopped", &gauges.command);
        add("token", "Fencing token of our term; 0 without one", &gauges.token);
        add("term", "Number of our term; 0 without one", &gauges.term);
        add("others_before", "Contenders before us in line; -1 while we are not in line", &gauges.before);
        let mut add = |name: &str, help: &str, gauge: &Seconds| {
            registry.register_with_unit(name, help, Unit::Seconds, gauge.clone());
        };
        add(
            "lease_remaining",
            "How long our lease still runs unless it is renewed; 0 without one",
            &gauges.lease_remaining,
        );
        add("lease", "How long one renewal gives; 0 without a session", &gauges.lease);
        add("phase_age", "How long the present phase has lasted", &gauges.phase_age);
        gauges
    }

    pub fn read(&self, status: &Status, now: Now) {
        for phase in PHASES {
            let labels = [("phase", words::phase(phase))];
            self.phase.get_or_create(&labels).set(i64::from(phase == status.snapshot.phase));
        }
        let (role, held) = (status.role(now), status.snapshot.held_term);
        self.leader.set(i64::from(role == Role::Leader));
        self.standby.set(i64::from(role == Role::Standby));
        self.ready.set(i64::from(status.is_ready(now)));
        self.connected.set(i64::from(status.in_contact()));
        self.disabled.set(i64::from(status.snapshot.disabled));
        self.command.set(i64::from(status.command.is_some()));
        self.token.set(held.map_or(0, |held| held.grant.token));
        self.term.set(held.map_or(0, |held| i64::from(held.grant.term)));
        self.before.set(status.others_before().map_or(-1, i64::from));
        self.lease_remaining.set(status.lease_left(now).as_secs_f64());
        self.lease.set(status.snapshot.timing.map_or(0.0, |timing| timing.lease.as_secs_f64()));
        self.phase_age.set(status.since.until(now.lease).as_secs_f64());
    }
}
