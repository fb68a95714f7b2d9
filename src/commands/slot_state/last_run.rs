//! The newest run of a job that runs once for each scheduled time: between two runs nobody leads, and this is what people ask for.

use std::time::Duration;

use serde_json::{Value, json};

use crate::commands::output::{Cell, Output, Tone, moment};
use crate::commands::slot_state::{self, SlotState, WhyNobody};
use crate::observe::words;
use crate::zookeeper::admin::view::{ElectionView, SlotView};
use crate::zookeeper::schema::run_marker::Run;

/// How it ended, as far as that was stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// Its host leads, and has stored no end.
    Running,
    Succeeded,
    Failed,
    /// Its host is cut off or dead, and its lease, or the promises that it may live on, are not over; or its slot cannot be read.
    MayRun,
    /// Its host was lost with it, or stopped before its end.
    Interrupted,
}

fn end(run: &Run, election: &ElectionView) -> End {
    match run.ok {
        Some(true) => End::Succeeded,
        Some(false) => End::Failed,
        None => {
            let ends: Vec<_> = election.slots.iter().map(|slot| end_in(slot, run, election)).collect();
            let found = [End::Running, End::MayRun].into_iter().find(|end| ends.contains(end));
            found.unwrap_or(End::Interrupted)
        }
    }
}

/// Of a run without an end that was stored, as far as this slot tells.
fn end_in(slot: &SlotView, run: &Run, election: &ElectionView) -> End {
    use WhyNobody::{GaveWay, LeaseRunsOut};
    let is_its_term = slot.token() == run.token;
    match slot_state::of(slot, election) {
        SlotState::Led { .. } | SlotState::Waiting { .. } if is_its_term => End::Running,
        // A record that was lost may have been of that term.
        SlotState::CutOff { .. } if is_its_term || is_lost(slot) => End::MayRun,
        SlotState::Unknown => End::MayRun,
        SlotState::Nobody { why: LeaseRunsOut { .. } | GaveWay { is_over: false, .. } } if is_its_term => End::MayRun,
        SlotState::Overdue { .. } if is_its_term && !dies_in_time(slot) => End::MayRun,
        _ => End::Interrupted,
    }
}

fn is_lost(slot: &SlotView) -> bool {
    slot.lease.as_ref().is_none_or(|(lease, _)| lease.known_holder().is_none())
}

fn dies_in_time(slot: &SlotView) -> bool {
    slot.lease.as_ref().is_some_and(|(lease, _)| lease.dies_in_time())
}

/// Of the state of a job between two runs.
pub(in crate::commands) fn tone(election: &ElectionView) -> Tone {
    let is_well = |run| matches!(end(run, election), End::Running | End::Succeeded);
    if election.last_run.as_ref().is_none_or(is_well) { Tone::Faint } else { Tone::Bad }
}

/// Of a job that nobody leads.
pub(in crate::commands) fn in_short(election: &ElectionView, output: &Output) -> Option<String> {
    let run = election.last_run.as_ref()?;
    let word = match end(run, election) {
        End::Running | End::MayRun => return None,
        End::Succeeded => "ended well",
        End::Failed => "failed",
        End::Interrupted => "was interrupted",
    };
    let when = run.ended_ms.or(run.started_ms).map_or_else(String::new, |at| format!(" {} ago", output.age(at)));
    Some(format!("last run {word}{when}"))
}

/// For `status`.
pub(in crate::commands) fn fact(election: &ElectionView, output: &Output) -> Option<(&'static str, Cell)> {
    let run = election.last_run.as_ref()?;
    let ago = |at: i64| format!("{} ({} ago)", moment(at), output.age(at));
    let began = run.started_ms.map_or_else(String::new, |at| format!(", began {}", ago(at)));
    let after = || {
        let length = u64::try_from(run.ended_ms?.saturating_sub(run.started_ms?)).ok()?;
        let length = if length < 1_000 { length } else { length - length % 1_000 };
        Some(format!(", after {}", words::length(Duration::from_millis(length))))
    };
    let ended = run.ended_ms.map_or_else(String::new, |at| format!(" at {}{}", ago(at), after().unwrap_or_default()));
    let (said, tone) = match (end(run, election), run.status) {
        (End::Running, _) => (format!("it runs{began}"), Tone::Good),
        (End::Succeeded, _) => (format!("ended well{ended}"), Tone::Plain),
        (End::Failed, None) => (format!("could not be started{ended}"), Tone::Bad),
        (End::Failed, Some(0)) => (format!("was stopped before its end{ended}"), Tone::Bad),
        (End::Failed, Some(status)) => (format!("failed with status {status}{ended}"), Tone::Bad),
        (End::MayRun, _) => (format!("whether it runs is not known{began}"), Tone::Bad),
        (End::Interrupted, _) => (format!("was interrupted{began}"), Tone::Bad),
    };
    let slot = run.slot.as_ref().map_or_else(String::new, |slot| format!("{} ", output.part(slot)));
    let (id, host) = (output.part(&run.id), output.part(&run.host));
    Some(("last run", Cell::new(format!("{slot}on {id} (pid {} on {host}): {said}", run.pid), tone)))
}

pub(in crate::commands) fn as_json(election: &ElectionView) -> Value {
    let object = |run: &Run| {
        json!({
            "slot": run.slot, "id": run.id, "host": run.host, "pid": run.pid, "token": run.token,
            "since": run.started_ms, "until": run.ended_ms, "ok": run.ok, "status": run.status,
        })
    };
    election.last_run.as_ref().map_or(Value::Null, object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ctl::OutputFormat;
    use crate::zookeeper::admin::Facts;

    const OUTPUT: Output = Output { format: OutputFormat::Plain, coloured: false, now: 100_000 };

    fn said(run: Run) -> (Option<String>, String) {
        let election = ElectionView { last_run: Some(run), ..ElectionView::default() };
        let fact = fact(&election, &OUTPUT).map(|fact| format!("{:?}", fact.1)).unwrap_or_default();
        (in_short(&election, &OUTPUT), fact)
    }

    #[test]
    fn a_run_of_less_than_a_second_is_told_in_milliseconds() {
        let after = |length: i64| {
            let run =
                Run { ok: Some(true), started_ms: Some(10_000), ended_ms: Some(10_000 + length), ..Run::default() };
            said(run).1.split(", after ").nth(1).unwrap().split('"').next().unwrap().to_owned()
        };
        assert_eq!([after(7), after(1_007), after(61_999)], ["7ms", "1s", "1m1s"]);
    }

    /// Another one leads, or waits, meanwhile.
    #[test]
    fn a_run_without_an_end_goes_on_only_in_its_own_term() {
        let within = |token| {
            let last_run = Some(Run { token, ..Run::default() });
            tone(&ElectionView { last_run, ..slot_state::tests::waiting(&["n1"], Some("following")) })
        };
        let own = slot_state::tests::waiting(&["n1"], None).slots[0].token();
        assert_eq!([own, own + 1].map(within), [Tone::Faint, Tone::Bad]);
    }

    /// Else an operator repeats it beside itself.
    #[test]
    fn a_run_whose_host_is_cut_off_is_not_told_as_interrupted_while_its_lease_or_promises_last() {
        let within = |record: &str, overdue_since| {
            let lease = slot_state::tests::record(record);
            let slots = vec![SlotView { lease, overdue_since, ..SlotView::default() }];
            let election = ElectionView { last_run: Some(Run::default()), slots, ..ElectionView::default() };
            fact(&election, &OUTPUT).map(|fact| format!("{:?}", fact.1)).unwrap_or_default()
        };
        let held =
            r#""v":1,"state":"held","guarantee":"at-most-one","lease_ms":15000,"holder":{"id":"a","host":"h","pid":1}"#;
        let (plain, vouched) = (format!("{{{held}}}"), format!(r#"{{{held},"vouch_ms":3600000}}"#));
        for record in [plain.as_str(), &vouched, ""] {
            let said = within(record, None);
            assert!(said.contains("whether it runs is not known"), "{record}: {said}");
        }
        assert!(within(&plain, Some(1)).contains("was interrupted"), "its lease ran out");
        let later = SlotView {
            lease: slot_state::tests::record(&vouched),
            term: Some(Facts { mzxid: 9, ..Facts::default() }),
            ..SlotView::default()
        };
        let election = ElectionView { last_run: Some(Run::default()), slots: vec![later], ..ElectionView::default() };
        assert_eq!(end(&Run::default(), &election), End::Interrupted, "it was of an earlier term");
        assert!(within(r#"{"v":1,"state":"free","lease_ms":15000}"#, None).contains("was interrupted"));
    }

    #[test]
    fn how_the_last_run_ended_is_told_as_what_it_was() {
        let run = |ok: Option<bool>, status| {
            let (started_ms, ended_ms) = (Some(10_000), ok.is_some().then_some(40_000));
            let (slot, id, host) = (Some("noon".to_owned()), "a".to_owned(), "h".to_owned());
            Run { slot, id, host, pid: 7, started_ms, ended_ms, ok, status, ..Run::default() }
        };
        for (ok, status, short, long) in [
            (Some(true), Some(0), "last run ended well 1m ago", "noon on a (pid 7 on h): ended well at "),
            (Some(false), Some(3), "last run failed 1m ago", "failed with status 3 at "),
            (Some(false), Some(0), "last run failed 1m ago", "was stopped before its end at "),
            (Some(false), None, "last run failed 1m ago", "could not be started at "),
            (None, None, "last run was interrupted 1m30s ago", "was interrupted, began "),
        ] {
            let (in_short, fact) = said(run(ok, status));
            assert_eq!(in_short.as_deref(), Some(short));
            assert!(fact.contains(long), "{fact}");
            assert_eq!(ok.is_some(), fact.contains("(1m ago), after 30s"), "{fact}");
        }
    }
}
