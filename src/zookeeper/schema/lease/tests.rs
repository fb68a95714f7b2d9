//! The records that we write, and how we read those of others.

use proptest::prelude::*;

use super::*;
use crate::zookeeper::testing::{settings, stat};

const ENTRY: Entry = Entry {
    nonce: Nonce { instance: 0xfeed_0000_0000_0001, sending: 7 },
    token: Some(9_007_199_254_740_993),
    lease: Duration::from_secs(15),
    waiting_on: None,
    vouching: None,
};

const CANDIDATE: &str = "_c_1-latch-0000000003";

fn of(lease: Duration) -> Longest {
    Longest { lease, vouched: None }
}

fn read(data: &[u8]) -> Parsed {
    parse(Slot(0), data, &stat(), &settings())
}

#[test]
fn what_a_holder_writes_is_what_its_peers_read() {
    for (data, is_held) in [
        (held(&ENTRY, CANDIDATE, Vec::new(), &Neighbourhood::default(), &settings()), true),
        (released(&ENTRY, &settings()), false),
    ] {
        let parsed = read(&data);
        assert_eq!(parsed.lease.as_ref().err(), None);
        assert_eq!((parsed.record.held, parsed.record.nonce), (is_held, ENTRY.nonce));
        assert_eq!((parsed.record.lease, parsed.record.agrees), (ENTRY.lease, true));
        assert_eq!(parsed.holder().and_then(|holder| holder.candidate.as_deref()), is_held.then_some(CANDIDATE));
        assert_eq!((parsed.record.version, parsed.record.mzxid), (stat().version, stat().mzxid));
    }
}

#[test]
fn the_json_is_the_documented_one() {
    let text = String::from_utf8(held(&ENTRY, CANDIDATE, Vec::new(), &Neighbourhood::default(), &settings())).unwrap();
    let expected = concat!(
        r#"{"v":1,"state":"held","holder":{"id":"host:1","host":"host","pid":1,"nonce":"feed000000000001-7","#,
        r#""candidate":"_c_1-latch-0000000003"},"#,
        r#""lease_ms":15000,"token":9007199254740993,"guarantee":"at-most-one","recipe":"sequential","leaders":1}"#
    );
    assert_eq!(text, expected);
    let text = String::from_utf8(term(ENTRY.nonce, of(ENTRY.lease), &settings())).unwrap();
    let expected =
        r#"{"v":1,"leader":{"id":"host:1","host":"host","pid":1,"nonce":"feed000000000001-7"},"lease_ms":15000}"#;
    assert_eq!(text, expected);
}

#[test]
fn a_holder_that_waits_says_on_which_version_and_is_held_for_whoever_does_not_know_that() {
    let last_run = LastRun { mzxid: stat().mzxid - 1, nonce: Nonce { instance: 0xfeed_0000_0000_0002, sending: 3 } };
    let waiting = held(
        &Entry { waiting_on: Some(last_run), ..ENTRY },
        CANDIDATE,
        Vec::new(),
        &Neighbourhood::default(),
        &settings(),
    );
    let text = String::from_utf8(waiting.clone()).unwrap();
    assert!(text.contains(r#""state":"held""#) && text.contains(r#""lease_ms":15000,"waiting_on":76,"#), "{text}");
    assert!(text.contains(r#""waiting_for":"feed000000000002-3","#), "{text}");
    let record = read(&waiting).record;
    assert!(record.held);
    assert_eq!((record.waiting_on, record.last_run_under()), (Some(last_run), stat().mzxid - 1));
    let record = read(&held(&ENTRY, CANDIDATE, Vec::new(), &Neighbourhood::default(), &settings())).record;
    assert_eq!((record.waiting_on, record.last_run_under()), (None, stat().mzxid));
}

#[test]
fn nobody_waits_for_a_version_that_is_yet_to_come_nor_for_a_free_record() {
    for waiting_on in [0, -1, stat().mzxid, stat().mzxid + 1, i64::MAX] {
        let text = format!(r#"{{"v":1,"state":"held","lease_ms":5,"waiting_on":{waiting_on}}}"#);
        assert_eq!(read(text.as_bytes()).record.last_run_under(), stat().mzxid, "{text}");
    }
    let text = format!(r#"{{"v":1,"state":"held","lease_ms":5,"waiting_on":{}}}"#, stat().mzxid - 1);
    let nobody = LastRun { mzxid: stat().mzxid - 1, nonce: Nonce::UNKNOWN };
    assert_eq!(read(text.as_bytes()).record.waiting_on, Some(nobody), "an earlier version does not say for whom");
    let text = text.replace("held", "free");
    assert_eq!(read(text.as_bytes()).record.waiting_on, None);
}

#[test]
fn unknown_fields_are_ignored_and_missing_choices_agree() {
    let parsed = read(br#"{"v":1,"state":"held","lease_ms":5,"colour":"red","holder":{"nonce":"?","shoe":44}}"#);
    assert_eq!(parsed.lease.as_ref().err(), None);
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
        let Parsed { record, lease, .. } = read(text.as_bytes());
        assert!(lease.is_err(), "{text}");
        assert!(record.held && record.agrees, "{text}");
        assert_eq!((record.lease, record.nonce), (LEASE_LONGEST, Nonce::UNKNOWN), "{text}");
    }
}

#[test]
fn no_lease_is_longer_than_any_that_is_allowed() {
    let parsed = read(br#"{"v":1,"state":"held","lease_ms":18446744073709551615}"#);
    assert_eq!(parsed.record.lease, LEASE_LONGEST);
    assert_eq!(longest_of_term(br#"{"v":1,"lease_ms":18446744073709551615}"#), Some(of(LEASE_LONGEST)));
}

#[test]
fn a_fraction_of_a_millisecond_makes_a_lease_longer_and_never_shorter() {
    let entry = Entry { lease: Duration::from_micros(1_500), ..ENTRY };
    assert_eq!(
        read(&held(&entry, CANDIDATE, Vec::new(), &Neighbourhood::default(), &settings())).record.lease,
        Duration::from_millis(2)
    );
    assert_eq!(longest_of_term(&term(entry.nonce, of(entry.lease), &settings())), Some(of(Duration::from_millis(2))));
}

#[test]
fn a_term_that_cannot_be_read_has_no_lease() {
    for text in ["", "{}", r#"{"v":1,"lease_ms":0}"#, r#"{"v":9,"lease_ms":5}"#] {
        assert_eq!(longest_of_term(text.as_bytes()), None, "{text}");
    }
    assert_eq!(longest_of_term(&term_of_nobody(of(ENTRY.lease))), Some(of(ENTRY.lease)));
}

fn vouching() -> Vouching {
    Vouching { limit: Duration::from_micros(600_000_500), roster: [0xb, 0xc].into_iter().collect() }
}

#[test]
fn a_record_on_promises_says_whom_it_needs_where_they_are_and_for_how_long() {
    let mut known = Neighbourhood::default();
    known.note([Neighbour { instance: 0xb, id: "b".into(), address: "[::1]:7".parse().unwrap() }].into_iter());
    let entry = Entry { vouching: Some(vouching()), ..ENTRY };
    let data = held(&entry, CANDIDATE, Vec::new(), &known, &settings());
    let text = String::from_utf8(data.clone()).unwrap();
    let named = r#"[{"instance":"000000000000000b","id":"b","address":"[::1]:7"},{"instance":"000000000000000c"}]"#;
    assert!(text.ends_with(&format!(r#","vouch_ms":600001,"roster":{named}}}"#)), "{text}");
    let parsed = read(&data);
    let limit = Duration::from_millis(600_001);
    assert_eq!(parsed.record.vouching, Some(Vouching { limit, ..vouching() }));
    let lease = parsed.lease.unwrap();
    assert_eq!((lease.neighbours().collect::<Vec<_>>(), lease.longest()), (known.neighbours, limit));
    let waiting = Entry { waiting_on: Some(LastRun { mzxid: 3, nonce: Nonce::UNKNOWN }), ..entry };
    let waiting = read(&held(&waiting, CANDIDATE, Vec::new(), &Neighbourhood::default(), &settings()));
    let text = String::from_utf8(released(&entry, &settings())).unwrap();
    assert_eq!((waiting.record.vouching, waiting.lease.unwrap().longest()), (None, ENTRY.lease));
    assert!(!text.contains("vouch") && !text.contains("roster"), "{text}");
}

#[test]
fn no_content_beside_a_limit_makes_the_wait_shorter() {
    let limit = Duration::from_secs(600);
    for beside in [
        r#""waiting_on":0"#,
        r#""waiting_on":-1"#,
        r#""waiting_on":3"#,
        r#""roster":[{"instance":"+00000000000000b"}]"#,
        r#""roster":[{"instance":"000000000000000b"},{"instance":"c"}]"#,
    ] {
        let parsed = read(format!(r#"{{"v":1,"state":"held","lease_ms":5,"vouch_ms":600000,{beside}}}"#).as_bytes());
        assert_eq!(parsed.record.vouching, Some(Vouching { limit, roster: Roster::EMPTY }), "{beside}");
        assert_eq!(parsed.lease.unwrap().longest(), limit, "{beside}");
    }
}

#[test]
fn a_limit_that_is_no_number_makes_a_record_and_a_term_unreadable() {
    for no_number in ["null", "-1", "1.5", r#""x""#] {
        let text = format!(r#"{{"v":1,"state":"held","lease_ms":5,"vouch_ms":{no_number}}}"#);
        assert!(read(text.as_bytes()).lease.is_err(), "{text}");
        assert_eq!(longest_of_term(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn a_record_on_promises_without_a_limit_cannot_be_read_and_is_waited_for_as_such() {
    let text = r#"{"v":1,"state":"held","lease_ms":5,"guarantee":"at-most-one, vouched"}"#;
    let mut parsed = read(text.as_bytes());
    assert_eq!(parsed.lease.as_ref().err(), Some(&SchemaError::NoLimit));
    assert!(parsed.record.held && parsed.record.lease == LEASE_LONGEST);
    parsed.count_as_lost(Some(LIMIT_LONGEST));
    assert_eq!(parsed.record.vouching.map(|vouching| vouching.limit), Some(LIMIT_LONGEST));
    assert!(read(text.replace("held", "free").as_bytes()).lease.is_ok(), "nobody waits for it");
}

#[test]
fn a_limit_that_is_shorter_than_the_lease_makes_no_wait_shorter() {
    let lease = read(br#"{"v":1,"state":"held","lease_ms":9,"vouch_ms":5}"#).lease.unwrap();
    assert_eq!(lease.longest(), Duration::from_millis(9));
}

/// They compare the text with "at-most-one" and "at-least-one", byte by byte.
#[test]
fn older_versions_refuse_a_record_on_promises_and_newer_ones_take_it_for_at_most_one() {
    let entry = Entry { vouching: Some(vouching()), ..ENTRY };
    let longest = Longest { vouched: Some(Duration::from_secs(1)), ..of(ENTRY.lease) };
    let held = held(&entry, CANDIDATE, Vec::new(), &Neighbourhood::default(), &settings());
    for data in [held, held_by_unknown(longest, &settings())] {
        let parsed = read(&data);
        assert!(parsed.record.agrees && parsed.record.vouching.is_some());
        assert_eq!(parsed.lease.unwrap().guarantee.as_deref(), Some("at-most-one, vouched"));
        let other = Settings { guarantee: Guarantee::AtLeastOne, ..settings() };
        assert!(!parse(Slot(0), &data, &stat(), &other).record.agrees);
    }
    let plain = read(&held_by_unknown(of(ENTRY.lease), &settings()));
    assert_eq!((plain.record.vouching, plain.lease.unwrap().guarantee.as_deref()), (None, Some("at-most-one")));
}

#[test]
fn a_term_keeps_the_limit_rounded_up_and_never_longer_than_any_may_be() {
    let longest = Longest { vouched: Some(Duration::from_micros(1_500)), ..of(ENTRY.lease) };
    let rounded = Some(Longest { vouched: Some(Duration::from_millis(2)), ..longest });
    assert_eq!(longest_of_term(&term(ENTRY.nonce, longest, &settings())), rounded);
    assert_eq!(longest_of_term(&term_of_nobody(longest)), rounded);
    let absurd = longest_of_term(br#"{"v":1,"lease_ms":5,"vouch_ms":18446744073709551615}"#);
    assert_eq!(absurd.and_then(|longest| longest.vouched), Some(LIMIT_LONGEST));
}

#[test]
fn a_record_that_cannot_be_read_counts_with_the_limit_of_its_term_and_names_nobody() {
    let mut parsed = read(b"garbage");
    assert_eq!(parsed.record.vouching, None);
    parsed.count_as_lost(Some(LIMIT_LONGEST));
    assert_eq!(parsed.record.vouching, Some(Vouching { limit: LIMIT_LONGEST, roster: Roster::EMPTY }));
}

#[test]
fn a_nonce_is_read_back_or_is_nobodys() {
    assert_eq!(parse_nonce(&nonce_text(ENTRY.nonce)), Some(ENTRY.nonce));
    for text in ["", "-", "1-1", "000000000000000g-1", "0000000000000001-", "0000000000000001-x", "\u{e9}-1"] {
        assert_eq!(parse_nonce(text), None, "{text}");
    }
}

/// Values of every type, some of them the ones that we write.
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

/// Our fields in any order and number, each with any value.
fn likenesses() -> impl Strategy<Value = String> {
    let name = proptest::sample::select(vec![
        "v",
        "state",
        "lease_ms",
        "waiting_on",
        "waiting_for",
        "holder",
        "leader",
        "token",
        "guarantee",
        "recipe",
        "leaders",
        "vouch_ms",
        "roster",
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
        let Parsed { record, lease, .. } = read(data.as_bytes());
        assert!(lease.is_err() && record.held);
    }
}

#[test]
fn a_field_that_is_said_twice_is_held_and_waited_for() {
    let parsed = read(br#"{"v":1,"state":"held","state":"free","lease_ms":5}"#);
    assert!(parsed.lease.is_err() && parsed.record.held);
}

proptest! {
    #[test]
    fn whatever_resembles_a_record_is_waited_for_unless_it_says_that_it_is_free(data in likenesses()) {
        let Parsed { record, lease, .. } = read(data.as_bytes());
        prop_assert!(record.lease <= LEASE_LONGEST);
        prop_assert!(lease.is_ok() || (record.held && record.lease == LEASE_LONGEST));
        prop_assert!(record.held || data.contains(r#""state":"free""#));
        prop_assert!(!record.held || record.lease > Duration::ZERO);
        prop_assert!(longest_of_term(data.as_bytes()).is_none_or(|longest| !longest.lease.is_zero()
            && longest.lease <= LEASE_LONGEST
            && longest.vouched.is_none_or(|limit| limit <= LIMIT_LONGEST)));
    }

    #[test]
    fn garbage_is_held_and_waited_for(data: Vec<u8>) {
        let Parsed { record, lease, .. } = read(&data);
        prop_assert!(lease.is_err() && record.held);
        prop_assert_eq!(record.lease, LEASE_LONGEST);
        prop_assert_eq!(longest_of_term(&data), None);
    }

    #[test]
    fn a_damaged_record_is_never_free_for_nothing(at in 0usize..200, byte: u8) {
        let mut data = held(&ENTRY, CANDIDATE, Vec::new(), &Neighbourhood::default(), &settings());
        let at = at % data.len();
        data[at] = byte;
        let record = read(&data).record;
        prop_assert!(record.held);
        prop_assert!(record.lease > Duration::ZERO && record.lease <= LEASE_LONGEST);
    }
}

#[test]
fn only_under_at_most_one_a_command_dies_in_time() {
    let dies = |guarantee: &str| {
        let record = format!(r#"{{"v":1,"state":"held","lease_ms":15000,"vouch_ms":9,"guarantee":"{guarantee}"}}"#);
        Lease::read(record.as_bytes()).unwrap().dies_in_time()
    };
    assert!(dies("at-most-one") && dies("at-most-one, vouched"));
    assert!(!dies("at-least-one") && !dies("at-most-two"));
}
