//! What belongs to an earlier candidacy, or to another session, is not taken for ours.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::mpsc::unbounded_channel;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use super::*;
use crate::zookeeper::client::error::Refusal;
use crate::zookeeper::testing::settings;

const SESSION: SessionNumber = SessionNumber(1);
const FIRST: Candidacy = Candidacy(1);
const SECOND: Candidacy = Candidacy(2);

fn shared() -> Shared {
    Shared::new(settings(), unbounded_channel().0)
}

fn entered(shared: &Shared, candidacy: Candidacy, name: &str) -> Candidate {
    let candidate = shared.candidate(SESSION, candidacy).unwrap();
    let known = Candidate { tried: true, znode: Some(Znode { name: name.to_owned(), czxid: 7 }), ..candidate };
    shared.remember(&known);
    known
}

#[test]
fn what_comes_late_of_an_earlier_candidacy_does_not_take_the_place_of_the_later_one() {
    let shared = shared();
    let first = entered(&shared, FIRST, "first");
    let second = entered(&shared, SECOND, "second");
    assert_eq!(second.former, [first.uuid]);
    shared.remember(&first);
    assert_eq!(shared.own(SESSION), Some(("second".to_owned(), second.uuid)));
    assert!(shared.candidate(SESSION, FIRST).is_err() && shared.znode(SESSION, FIRST).is_err());
}

#[test]
fn a_candidate_is_ours_in_its_session_and_candidacy_only() {
    let shared = shared();
    let first = entered(&shared, FIRST, "first");
    assert_eq!((shared.last_znode(FIRST), shared.last_znode(SECOND)), (first.znode, None));
    assert!(shared.znode(SESSION, FIRST).is_ok() && shared.own(SESSION).is_some());
    let later = SessionNumber(2);
    assert!(shared.znode(later, FIRST).is_err() && shared.own(later).is_none());
    assert_eq!(shared.candidate(later, FIRST).unwrap().znode, None);
}

/// A request to hand over is no znode that the orders are read from.
#[test]
fn orders_that_are_read_leave_what_others_have_asked_for() {
    let shared = shared();
    let drain = Drain { id: 4, lasts: None, has_others: true, force: false };
    shared.asked_for(40);
    shared.drained(Some(drain));
    shared.ordered(Orders::default());
    assert_eq!((shared.orders.borrow().asked_for, shared.orders.borrow().drain), (Some(40), Some(drain)));
    shared.drained(None);
    assert_eq!((shared.orders.borrow().asked_for, shared.orders.borrow().drain), (Some(40), None));
}

/// How often something is logged as a warning.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        self.0.fetch_add(usize::from(*event.metadata().level() == tracing::Level::WARN), Ordering::Relaxed);
    }
}

/// The servers are asked in the background.
#[test]
fn why_contact_was_lost_is_not_told_when_it_is_back() {
    let (shared, warnings) = (shared(), Warnings::default());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(warnings.clone()), || {
        let told = || {
            shared.report_outage("refused".to_owned(), false);
            warnings.0.load(Ordering::Relaxed)
        };
        shared.begin_outage();
        assert_eq!([told(), told()], [1, 1]);
        shared.reached();
        assert_eq!(told(), 1, "it is back");
        shared.begin_outage();
        assert_eq!(told(), 2, "another outage");
    });
}

#[test]
fn each_refusal_aside_is_logged_once_and_again_after_a_success() {
    let (shared, warnings) = (shared(), Warnings::default());
    let (first, second) = (RequestError::Forbidden(Refusal::SomeRight), RequestError::Forbidden(Refusal::Acl));
    let logged = |times: usize| {
        for _ in 0..times {
            shared.report_aside("one", &first);
            shared.report_aside("another", &second);
        }
        warnings.0.load(Ordering::Relaxed)
    };
    tracing::subscriber::with_default(tracing_subscriber::registry().with(warnings.clone()), || {
        assert_eq!(logged(3), 2);
        shared.report_aside("one", &second);
        assert_eq!(logged(0), 3, "it is refused for another reason");
        shared.succeeded_aside("another");
        shared.report_aside("another", &second);
        assert_eq!(logged(0), 4, "it is refused again");
    });
}
