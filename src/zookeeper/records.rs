//! The JSON of the lease record and of the term. What cannot be read counts as held for as long as any lease may be.
//!
//! Never: a panic or a shorter wait because of what somebody wrote into a znode.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use zookeeper_client::Stat;

use super::settings::Settings;
use crate::core::action::Entry;
use crate::core::event::{Nonce, Record};
use crate::core::lease::LEASE_LONGEST;
use crate::core::order::Slot;
use crate::core::settings::{Guarantee, Recipe};

const VERSION: u32 = 1;

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
enum State {
    Held,
    Free,
}

/// Who wrote it. A record of nobody has an empty one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
struct Holder {
    #[serde(default)]
    id: String,
    #[serde(default)]
    host: String,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    nonce: String,
    /// The name of its candidate: who holds a slot stands first in line, whatever the priorities of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    candidate: Option<String>,
}

#[derive(Serialize, Deserialize, Debug)]
struct LeaseJson {
    v: u32,
    state: State,
    #[serde(default)]
    holder: Option<Holder>,
    lease_ms: u64,
    /// Only of a holder that waits: the mzxid of the last version under which a command may have run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting_on: Option<i64>,
    #[serde(default)]
    token: Option<i64>,
    #[serde(default)]
    guarantee: Option<String>,
    #[serde(default)]
    recipe: Option<String>,
    #[serde(default)]
    leaders: Option<u16>,
}

#[derive(Serialize, Deserialize, Debug)]
struct TermJson {
    v: u32,
    #[serde(default)]
    leader: Option<Holder>,
    lease_ms: u64,
}

/// A record as it was read, and what was wrong with it.
#[derive(Debug)]
pub(super) struct Parsed {
    pub record: Record,
    /// The candidate of whoever holds it.
    pub candidate: Option<String>,
    /// The id of whoever holds it.
    pub id: Option<String>,
    /// In what its writer and we differ.
    pub disagreement: Option<String>,
    pub complaint: Option<String>,
}

/// Reads the lease record of a slot.
pub(super) fn parse(slot: Slot, data: &[u8], stat: &Stat, settings: &Settings) -> Parsed {
    let unreadable = Record {
        slot,
        version: stat.version,
        mzxid: stat.mzxid,
        held: true,
        waiting_on: None,
        lease: LEASE_LONGEST,
        nonce: Nonce::UNKNOWN,
        agrees: true,
    };
    match parse_lease(data) {
        Ok(json) => {
            let held = json.state == State::Held;
            let disagreement = disagreement(&json, settings);
            let record = Record {
                held,
                // Nobody waits for a version that is yet to come.
                waiting_on: json.waiting_on.filter(|&mzxid| held && 0 < mzxid && mzxid < stat.mzxid),
                lease: Duration::from_millis(json.lease_ms).min(LEASE_LONGEST),
                nonce: json.holder.as_ref().and_then(|holder| parse_nonce(&holder.nonce)).unwrap_or(Nonce::UNKNOWN),
                agrees: disagreement.is_none(),
                ..unreadable
            };
            let holder = json.holder.filter(|_| held).unwrap_or_default();
            let id = Some(holder.id).filter(|id| !id.is_empty());
            Parsed { record, candidate: holder.candidate, id, disagreement, complaint: None }
        }
        Err(complaint) => {
            Parsed { record: unreadable, candidate: None, id: None, disagreement: None, complaint: Some(complaint) }
        }
    }
}

/// The lease in a term; `None` if it cannot be read.
pub(super) fn lease_of_term(data: &[u8]) -> Option<Duration> {
    let json: TermJson = serde_json::from_slice(data).ok()?;
    let readable = json.v == VERSION && json.lease_ms > 0;
    readable.then(|| Duration::from_millis(json.lease_ms).min(LEASE_LONGEST))
}

/// The record that a take-over or a renewal of this candidate writes.
pub(super) fn held(entry: &Entry, candidate: &str, settings: &Settings) -> Vec<u8> {
    let holder = Holder { candidate: Some(candidate.to_owned()), ..holder(entry.nonce, settings) };
    encode(&LeaseJson {
        waiting_on: entry.waiting_on,
        ..lease_json(State::Held, Some(holder), entry.lease, entry.token, settings)
    })
}

/// The record that a release writes. It keeps the nonce, so that a lost reply can be told from somebody else's release.
pub(super) fn released(entry: &Entry, settings: &Settings) -> Vec<u8> {
    encode(&lease_json(State::Free, Some(holder(entry.nonce, settings)), entry.lease, entry.token, settings))
}

/// The record of a new base: nobody ever held it.
pub(super) fn never_held(own_lease: Duration, settings: &Settings) -> Vec<u8> {
    encode(&lease_json(State::Free, None, own_lease, None, settings))
}

/// The record that replaces a lost one: whoever held it may still run.
pub(super) fn held_by_unknown(lease: Duration, settings: &Settings) -> Vec<u8> {
    encode(&lease_json(State::Held, None, lease, None, settings))
}

/// The term that a take-over writes, with the longest lease that may run while it lasts.
pub(super) fn term(nonce: Nonce, longest: Duration, settings: &Settings) -> Vec<u8> {
    encode(&TermJson { v: VERSION, leader: Some(holder(nonce, settings)), lease_ms: milliseconds(longest) })
}

/// The term of a new base, or of one whose term was lost.
pub(super) fn term_of_nobody(lease: Duration) -> Vec<u8> {
    encode(&TermJson { v: VERSION, leader: None, lease_ms: milliseconds(lease) })
}

/// `<instance hex16>-<sending>`.
pub(super) fn nonce_text(nonce: Nonce) -> String {
    format!("{:016x}-{}", nonce.instance, nonce.sending)
}

fn parse_nonce(text: &str) -> Option<Nonce> {
    let (instance, sending) = text.split_once('-')?;
    let instance = u64::from_str_radix(instance, 16).ok().filter(|_| instance.len() == 16)?;
    Some(Nonce { instance, sending: sending.parse().ok()? })
}

fn parse_lease(data: &[u8]) -> Result<LeaseJson, String> {
    let json: LeaseJson = serde_json::from_slice(data).map_err(|error| error.to_string())?;
    match json {
        LeaseJson { v, .. } if v != VERSION => Err(format!("its format is version {v}")),
        LeaseJson { state: State::Held, lease_ms: 0, .. } => Err("it is held with a lease of 0 ms".to_owned()),
        json => Ok(json),
    }
}

/// What a record does not say, it does not contradict.
fn disagreement(json: &LeaseJson, settings: &Settings) -> Option<String> {
    let leaders = json.leaders.map(|leaders| leaders.to_string());
    let choices = [
        ("--leaders", leaders.as_deref(), settings.leaders.to_string().as_str()),
        ("--guarantee", json.guarantee.as_deref(), guarantee_text(settings.guarantee)),
        ("--recipe", json.recipe.as_deref(), recipe_text(settings.recipe)),
    ]
    .map(|(option, theirs, ours)| {
        theirs.filter(|theirs| *theirs != ours).map(|theirs| format!("{option} is {ours} here and {theirs} there"))
    });
    choices.into_iter().flatten().next()
}

fn lease_json(
    state: State,
    holder: Option<Holder>,
    lease: Duration,
    token: Option<i64>,
    settings: &Settings,
) -> LeaseJson {
    LeaseJson {
        v: VERSION,
        state,
        holder,
        lease_ms: milliseconds(lease),
        waiting_on: None,
        token,
        guarantee: Some(guarantee_text(settings.guarantee).to_owned()),
        recipe: Some(recipe_text(settings.recipe).to_owned()),
        leaders: Some(settings.leaders),
    }
}

fn holder(nonce: Nonce, settings: &Settings) -> Holder {
    Holder {
        id: settings.id.clone(),
        host: settings.host.clone(),
        pid: settings.pid,
        nonce: nonce_text(nonce),
        candidate: None,
    }
}

fn guarantee_text(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::AtMostOne => "at-most-one",
        Guarantee::AtLeastOne => "at-least-one",
    }
}

fn recipe_text(recipe: Recipe) -> &'static str {
    match recipe {
        Recipe::Sequential => "sequential",
        Recipe::Single => "single",
    }
}

/// Rounded up: a successor must never wait less than we may run.
fn milliseconds(lease: Duration) -> u64 {
    u64::try_from(lease.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Plain structs of numbers and strings; there is nothing in them that JSON could not say.
fn encode(json: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(json).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::zookeeper::testing::{settings, stat};

    const ENTRY: Entry = Entry {
        nonce: Nonce { instance: 0xfeed_0000_0000_0001, sending: 7 },
        token: Some(9_007_199_254_740_993),
        lease: Duration::from_secs(15),
        waiting_on: None,
    };

    const CANDIDATE: &str = "_c_1-latch-0000000003";

    fn read(data: &[u8]) -> Parsed {
        parse(Slot(0), data, &stat(), &settings())
    }

    #[test]
    fn what_a_holder_writes_is_what_its_peers_read() {
        for (data, is_held) in [(held(&ENTRY, CANDIDATE, &settings()), true), (released(&ENTRY, &settings()), false)] {
            let parsed = read(&data);
            assert_eq!(parsed.complaint, None);
            assert_eq!((parsed.record.held, parsed.record.nonce), (is_held, ENTRY.nonce));
            assert_eq!((parsed.record.lease, parsed.record.agrees), (ENTRY.lease, true));
            assert_eq!(parsed.candidate.as_deref(), is_held.then_some(CANDIDATE));
            assert_eq!((parsed.record.version, parsed.record.mzxid), (stat().version, stat().mzxid));
        }
    }

    #[test]
    fn the_json_is_the_documented_one() {
        let text = String::from_utf8(held(&ENTRY, CANDIDATE, &settings())).unwrap();
        let expected = concat!(
            r#"{"v":1,"state":"held","holder":{"id":"host:1","host":"host","pid":1,"nonce":"feed000000000001-7","#,
            r#""candidate":"_c_1-latch-0000000003"},"#,
            r#""lease_ms":15000,"token":9007199254740993,"guarantee":"at-most-one","recipe":"sequential","leaders":1}"#
        );
        assert_eq!(text, expected);
        let text = String::from_utf8(term(ENTRY.nonce, ENTRY.lease, &settings())).unwrap();
        let expected =
            r#"{"v":1,"leader":{"id":"host:1","host":"host","pid":1,"nonce":"feed000000000001-7"},"lease_ms":15000}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn a_holder_that_waits_says_on_which_version_and_is_held_for_whoever_does_not_know_that() {
        let waiting = held(&Entry { waiting_on: Some(stat().mzxid - 1), ..ENTRY }, CANDIDATE, &settings());
        let text = String::from_utf8(waiting.clone()).unwrap();
        assert!(text.contains(r#""state":"held""#) && text.contains(r#""lease_ms":15000,"waiting_on":76,"#), "{text}");
        let record = read(&waiting).record;
        assert!(record.held);
        assert_eq!((record.waiting_on, record.last_run_under()), (Some(stat().mzxid - 1), stat().mzxid - 1));
        let record = read(&held(&ENTRY, CANDIDATE, &settings())).record;
        assert_eq!((record.waiting_on, record.last_run_under()), (None, stat().mzxid));
    }

    #[test]
    fn nobody_waits_for_a_version_that_is_yet_to_come_nor_for_a_free_record() {
        for waiting_on in [0, -1, stat().mzxid, stat().mzxid + 1, i64::MAX] {
            let text = format!(r#"{{"v":1,"state":"held","lease_ms":5,"waiting_on":{waiting_on}}}"#);
            assert_eq!(read(text.as_bytes()).record.last_run_under(), stat().mzxid, "{text}");
        }
        let text = format!(r#"{{"v":1,"state":"free","lease_ms":5,"waiting_on":{}}}"#, stat().mzxid - 1);
        assert_eq!(read(text.as_bytes()).record.waiting_on, None);
    }

    #[test]
    fn unknown_fields_are_ignored_and_missing_choices_agree() {
        let parsed = read(br#"{"v":1,"state":"held","lease_ms":5,"colour":"red","holder":{"nonce":"?","shoe":44}}"#);
        assert_eq!(parsed.complaint, None);
        assert!(parsed.record.agrees);
        assert_eq!((parsed.record.nonce, parsed.record.lease), (Nonce::UNKNOWN, Duration::from_millis(5)));
    }

    #[test]
    fn another_guarantee_recipe_or_number_of_leaders_disagrees() {
        for other in [r#""guarantee":"at-least-one""#, r#""recipe":"single""#, r#""leaders":2"#, r#""recipe":"x""#] {
            let parsed = read(format!(r#"{{"v":1,"state":"free","lease_ms":5,{other}}}"#).as_bytes());
            assert!(!parsed.record.agrees, "{other}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_held_for_as_long_as_any_lease_may_be() {
        let unreadable = [
            "",
            "free",
            "{}",
            "[]",
            "null",
            r#"{"v":2,"state":"free","lease_ms":1}"#,
            r#"{"v":1,"state":"open","lease_ms":1}"#,
            r#"{"v":1,"state":"free"}"#,
            r#"{"v":1,"state":"free","lease_ms":-1}"#,
            r#"{"v":1,"state":"held","lease_ms":0}"#,
        ];
        for text in unreadable {
            let Parsed { record, complaint, .. } = read(text.as_bytes());
            assert!(complaint.is_some(), "{text}");
            assert!(record.held && record.agrees, "{text}");
            assert_eq!((record.lease, record.nonce), (LEASE_LONGEST, Nonce::UNKNOWN), "{text}");
        }
    }

    #[test]
    fn no_lease_is_longer_than_any_that_is_allowed() {
        let parsed = read(br#"{"v":1,"state":"held","lease_ms":18446744073709551615}"#);
        assert_eq!(parsed.record.lease, LEASE_LONGEST);
        assert_eq!(lease_of_term(br#"{"v":1,"lease_ms":18446744073709551615}"#), Some(LEASE_LONGEST));
    }

    #[test]
    fn a_fraction_of_a_millisecond_makes_a_lease_longer_and_never_shorter() {
        let entry = Entry { lease: Duration::from_micros(1_500), ..ENTRY };
        assert_eq!(read(&held(&entry, CANDIDATE, &settings())).record.lease, Duration::from_millis(2));
        assert_eq!(lease_of_term(&term(entry.nonce, entry.lease, &settings())), Some(Duration::from_millis(2)));
    }

    #[test]
    fn a_term_that_cannot_be_read_has_no_lease() {
        for text in ["", "{}", r#"{"v":1,"lease_ms":0}"#, r#"{"v":9,"lease_ms":5}"#] {
            assert_eq!(lease_of_term(text.as_bytes()), None, "{text}");
        }
        assert_eq!(lease_of_term(&term_of_nobody(ENTRY.lease)), Some(ENTRY.lease));
    }

    #[test]
    fn a_nonce_is_read_back_or_is_nobodys() {
        assert_eq!(parse_nonce(&nonce_text(ENTRY.nonce)), Some(ENTRY.nonce));
        for text in ["", "-", "1-1", "000000000000000g-1", "0000000000000001-", "0000000000000001-x", "\u{e9}-1"] {
            assert_eq!(parse_nonce(text), None, "{text}");
        }
    }

    /// Values of every type where ours stand, some of them ours.
    fn anything() -> impl Strategy<Value = String> {
        let scalar = prop_oneof![
            "-?[0-9]{1,25}(\\.[0-9]{1,3})?([eE][0-9]{1,4})?",
            any::<u64>().prop_map(|number| number.to_string()),
            any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
            proptest::sample::select(vec![
                "1",
                "null",
                "true",
                r#""held""#,
                r#""free""#,
                r#""at-most-one""#,
                r#""\ud800""#,
                "NaN",
                "",
            ])
            .prop_map(str::to_owned),
        ];
        scalar.prop_recursive(4, 16, 4, |inner| {
            let inner = proptest::collection::vec(inner, 0..4);
            prop_oneof![
                inner.clone().prop_map(|values| format!("[{}]", values.join(","))),
                inner.prop_map(|values| format!(r#"{{"nonce":{}}}"#, values.join(r#","pid":"#))),
            ]
        })
    }

    /// Our fields in any order and number, each with anything.
    fn likenesses() -> impl Strategy<Value = String> {
        let name = proptest::sample::select(vec![
            "v",
            "state",
            "lease_ms",
            "waiting_on",
            "holder",
            "leader",
            "token",
            "guarantee",
            "recipe",
            "leaders",
            "colour",
        ]);
        let good = r#""v":1,"state":"free","lease_ms":5"#;
        let fields = proptest::collection::vec((name, anything()), 0..6);
        (any::<bool>(), fields).prop_map(move |(good_first, fields)| {
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
            let fields = [if good_first { good.to_owned() } else { String::new() }, fields.join(",")];
            format!("{{{}}}", fields.join(if good_first && !fields[1].is_empty() { "," } else { "" }))
        })
    }

    #[test]
    fn a_value_that_is_nested_without_end_is_held_and_waited_for() {
        for opening in ["[", r#"{"a":"#] {
            let data = format!(r#"{{"v":1,"state":"free","lease_ms":5,"colour":{}"#, opening.repeat(100_000));
            let Parsed { record, complaint, .. } = read(data.as_bytes());
            assert!(complaint.is_some() && record.held);
        }
    }

    #[test]
    fn a_field_that_is_said_twice_is_held_and_waited_for() {
        let parsed = read(br#"{"v":1,"state":"held","state":"free","lease_ms":5}"#);
        assert!(parsed.complaint.is_some() && parsed.record.held);
    }

    proptest! {
        #[test]
        fn whatever_resembles_a_record_is_waited_for_unless_it_says_that_it_is_free(data in likenesses()) {
            let Parsed { record, complaint, .. } = read(data.as_bytes());
            prop_assert!(record.lease <= LEASE_LONGEST);
            prop_assert!(complaint.is_none() || (record.held && record.lease == LEASE_LONGEST));
            prop_assert!(record.held || data.contains(r#""state":"free""#));
            prop_assert!(!record.held || record.lease > Duration::ZERO);
            prop_assert!(lease_of_term(data.as_bytes()).is_none_or(|lease| !lease.is_zero() && lease <= LEASE_LONGEST));
        }

        #[test]
        fn garbage_is_held_and_waited_for(data: Vec<u8>) {
            let Parsed { record, complaint, .. } = read(&data);
            prop_assert!(complaint.is_some() && record.held);
            prop_assert_eq!(record.lease, LEASE_LONGEST);
            prop_assert_eq!(lease_of_term(&data), None);
        }

        #[test]
        fn a_damaged_record_is_never_free_for_nothing(at in 0usize..200, byte: u8) {
            let mut data = held(&ENTRY, CANDIDATE, &settings());
            let at = at % data.len();
            data[at] = byte;
            let record = read(&data).record;
            prop_assert!(record.held);
            prop_assert!(record.lease > Duration::ZERO && record.lease <= LEASE_LONGEST);
        }
    }
}
