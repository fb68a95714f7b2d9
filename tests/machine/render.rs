//! Actions as text.

use std::time::Duration;

use zk_leader_run::core::action::{Action, Conditions, Entry, Transition};
use zk_leader_run::core::guard_messages::{Deadlines, Order, Slot};
use zk_leader_run::core::time::{Stamp, Timestamp};

pub fn seconds<C: Copy>(at: Stamp<C>) -> String {
    length(Duration::from_nanos(at.as_nanos()))
}

pub fn length(duration: Duration) -> String {
    format!("{:.3}s", duration.as_secs_f64())
}

/// `LeaseEnding` → `lease-ending`.
pub fn words(name: &impl std::fmt::Debug) -> String {
    let mut words = String::new();
    for letter in format!("{name:?}").chars() {
        if letter.is_uppercase() && words.chars().last().is_some_and(char::is_lowercase) {
            words.push('-');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

#[expect(clippy::too_many_lines, reason = "one arm for each action")]
pub fn action(action: &Action) -> String {
    match action {
        Action::Connect { session } => format!("connect session={}", session.0),
        Action::Enter { candidacy } => format!("enter candidacy={}", candidacy.0),
        Action::Look { candidacy } => format!("look candidacy={}", candidacy.0),
        Action::Observe { candidacy, slot } => format!("observe candidacy={}{}", candidacy.0, of(*slot)),
        Action::TakeOver { candidacy, conditions, entry, longest } => {
            let term = if *longest > entry.lease { format!(" longest={}", length(*longest)) } else { String::new() };
            written("take-over", candidacy.0, *conditions, entry) + &term
        }
        Action::Renew { candidacy, conditions, entry } => written("renew", candidacy.0, *conditions, entry),
        Action::Mark { candidacy, conditions, entry, is_first } => {
            written(if *is_first { "mark" } else { "mark again" }, candidacy.0, *conditions, entry)
        }
        Action::EndRun { status, ok } => format!("end-run {status:?} ok={ok}"),
        Action::WithdrawRun => "withdraw-run".to_string(),
        Action::Release { candidacy, conditions, entry, keeps_candidate: false } => {
            written("release", candidacy.0, *conditions, entry)
        }
        Action::Release { candidacy, conditions, entry, keeps_candidate: true } => {
            written("release, keeping our place,", candidacy.0, *conditions, entry)
        }
        Action::Ask { to, question } => {
            format!("ask {to} token={} seq={} lease={}", question.token, question.seq, length(question.lease))
        }
        Action::Reply { reply } => {
            let word = if reply.promises { "promise" } else { "refuse" };
            format!("{word} leader={} token={} seq={}", reply.leader, reply.token, reply.seq)
        }
        Action::LeaveServer => "leave-server".to_string(),
        Action::ForgetTerms => "forget-terms".to_string(),
        Action::Fence { grant } => format!("fence token={}", grant.token),
        Action::EndFence => "end-fence".to_string(),
        Action::RunStep { step, grant, why, deadlines } => {
            format!("run {} {} token={} why={}", words(step), until(deadlines), grant.token, words(why))
        }
        Action::ExtendStep { step, deadlines } => format!("extend {} {}", words(step), until(deadlines)),
        Action::StopStep { step, by } => format!("stop {} by={}", words(step), seconds(*by)),
        Action::SkipStep { step } => format!("skip {}", words(step)),
        Action::Guard(order) => ordered(order),
        Action::EndGuard => "end-guard".to_string(),
        Action::EndOrphans => "end-orphans".to_string(),
        Action::Announce(Transition { from, to, why, lease_left, next_in, .. }) => {
            let left = lease_left.map_or(String::new(), |left| format!(", lease left {}", length(left)));
            let left = left + &next_in.map_or(String::new(), |next_in| format!(", next in {}", length(next_in)));
            format!("{} -> {} ({}{left})", words(from), words(to), words(why))
        }
        Action::Exit(reason) => format!("exit {}", words(reason)),
    }
}

fn written(what: &str, candidacy: u32, conditions: Conditions, entry: &Entry) -> String {
    let Conditions { slot, record, term } = conditions;
    let (sending, lease) = (entry.nonce.sending, length(entry.lease));
    let slot = of(slot);
    let waiting = entry.waiting_on.map_or(String::new(), |last| format!(" waiting-on={}", last.mzxid));
    let vouching = entry.vouching.map_or(String::new(), |vouching| {
        let roster: Vec<_> = vouching.roster.iter().map(|instance| instance.to_string()).collect();
        format!(" vouch-limit={} roster={}", length(vouching.limit), roster.join("+"))
    });
    format!(
        "{what} candidacy={candidacy}{slot} record={record} term={term} nonce={sending} lease={lease}{waiting}{vouching}"
    )
}

/// Said only where there are several.
fn of(slot: Slot) -> String {
    if slot == Slot(0) { String::new() } else { format!(" slot={}", slot.0) }
}

fn ordered(order: &Order) -> String {
    match order {
        Order::Start { run, deadlines, grant } => {
            let (until, takeover) = (until(deadlines), words(&grant.takeover));
            format!("guard: start run={} {until} token={} term={} {takeover}", run.0, grant.token, grant.term)
        }
        Order::Extend { run, deadlines } => format!("guard: extend run={} {}", run.0, until(deadlines)),
        Order::Stop { run, by } => format!("guard: stop run={} by={}", run.0, seconds(*by)),
        Order::Kill { run } => format!("guard: kill run={}", run.0),
        Order::Signal { run, signal } => format!("guard: signal run={} {signal}", run.0),
        Order::Freeze { run } => format!("guard: freeze run={}", run.0),
        Order::Thaw { run } => format!("guard: thaw run={}", run.0),
        Order::Retire { run } => format!("guard: retire run={}", run.0),
        Order::Pause { run } => format!("guard: pause run={}", run.0),
        Order::Resume { run } => format!("guard: resume run={}", run.0),
    }
}

fn until(deadlines: &Deadlines) -> String {
    format!("stop-at={} kill-at={}", seconds(deadlines.stop_at), seconds(deadlines.kill_at))
}

pub fn deadline(at: Option<Timestamp>) -> String {
    at.map_or("never".to_string(), seconds)
}
