use proptest::prelude::*;

use super::*;
use crate::{key::RawKey as _, scheme::testing::*};

/// The number of twelve digits of six bits.
fn random_of(digits: &serde_json::Value) -> u128 {
    let digits = digits.as_array().unwrap();
    assert_eq!(digits.len(), 12);
    let push =
        |random, digit: &serde_json::Value| random << 6 | u128::from(digit.as_u64().unwrap());
    digits.iter().fold(0, push)
}

#[test]
fn published_ids_tell_their_time() {
    let vectors = vectors("firebase_push");
    let examples = vectors["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let text = example["id"].as_str().unwrap();
        let id: PushId = text.parse().unwrap();
        let millis = example["unix_ms"].as_u64().unwrap();
        assert_eq!(id.timestamp().as_unix_millis(), millis);
        assert_eq!(id.to_string(), text);
        let parts = FirebasePushId::unpack(&id).unwrap();
        assert_eq!(FirebasePushId::pack(parts).unwrap(), id);
        let inspection = FirebasePushId::inspect(&id).unwrap();
        assert_eq!(inspection.certainty, Certainty::Stated);
        assert_eq!(inspection.moment.unwrap().timestamp(), Some(id.timestamp()));
    }
}

#[test]
fn the_alphabet_is_the_originals() {
    let vectors = vectors("firebase_push");
    let alphabet = vectors["alphabet"].as_str().unwrap();
    for (character, digit) in alphabet.chars().zip(0_u128..) {
        let id = PushId::from_fields(0, digit);
        assert_eq!(id.to_string(), format!("{}{character}", "-".repeat(19)));
    }
    assert_eq!(alphabet.len(), 64);
}

#[test]
fn the_successor_carries_and_never_wraps() {
    let vectors = vectors("firebase_push");
    let mut done = 0;
    for case in vectors["derived_algorithm"].as_array().unwrap() {
        let Some(text) = case["id"].as_str() else {
            // The clock that steps back: see the generator's test.
            continue;
        };
        let id = FirebasePushId::pack(Parts {
            unix_ts_ms: case["now_ms"].as_u64().unwrap(),
            random: random_of(&case["rand"]),
        })
        .unwrap();
        assert_eq!(id.to_string(), text);
        match case["next"].as_str() {
            Some(next) => assert_eq!(id.successor().unwrap().to_string(), next),
            None => {
                let below: PushId = case["upstream_next"].as_str().unwrap().parse().unwrap();
                assert!(below < id, "the original's fault");
                let error = id.successor().unwrap_err();
                assert!(error.is_overflow());
                assert_eq!(
                    error.to_string(),
                    "-KNxwqH0zzzzzzzzzzzz has no successor in its millisecond: its random part is \
                     used up; make an id of the next millisecond"
                );
            }
        }
        done += 1;
    }
    assert_eq!(done, 3);
    let last = PushId::from_bytes([0xff; 15]);
    assert_eq!(last.to_string(), "z".repeat(20));
    assert!(last.successor().unwrap_err().is_overflow());
}

#[test]
fn a_clock_that_steps_back_does_not_take_the_ids_with_it() {
    let generator = scripted::<FirebasePushId>();
    let before = next(&generator);
    generator.clock().set_unix_millis(START - 1);
    assert!(next(&generator) > before);
}

#[test]
fn parts_have_their_bits() {
    let parts = |unix_ts_ms, random| Parts { unix_ts_ms, random };
    let highest = FirebasePushId::pack(parts((1 << 48) - 1, (1 << 72) - 1));
    assert_eq!(highest.unwrap(), PushId::from_bytes([0xff; 15]));
    does_not_fit::<FirebasePushId, _>([
        (parts(1 << 48, 0), "unix_ts_ms 281474976710656", 48),
        (parts(0, 1 << 72), "random 4722366482869645213696", 72),
    ]);
}

#[test]
fn a_prefix_stands_before_the_text_and_is_split_off_by_length() {
    // With `_` in the id itself, in the place where a TypeID's would be searched.
    let id: PushId = "-JhLeOlGIEja_OFHR0x_".parse().unwrap();
    for (prefix, text) in [
        (None, "-JhLeOlGIEja_OFHR0x_"),
        (Some(""), "-JhLeOlGIEja_OFHR0x_"),
        (Some("user"), "user_-JhLeOlGIEja_OFHR0x_"),
        (Some("a__b"), "a__b_-JhLeOlGIEja_OFHR0x_"),
    ] {
        assert_eq!(Text::<FirebasePushId>(id, prefix).to_string(), text);
        assert_eq!(PushId::parse_text(prefix, text).unwrap(), id);
    }
    assert_eq!(
        format!("{:>27}", Text::<FirebasePushId>(id, Some("user"))),
        "  user_-JhLeOlGIEja_OFHR0x_"
    );
    for (prefix, text, expected) in [
        (
            Some("user"),
            "post_-JhLeOlGIEja_OFHR0x_",
            "expected the prefix \"user\", found \"post\" in \"post_-JhLeOlGIEja_OFHR0x_\"",
        ),
        (
            Some("a"),
            "a_b_-JhLeOlGIEja_OFHR0x_",
            "expected the prefix \"a\", found \"a_b\" in \"a_b_-JhLeOlGIEja_OFHR0x_\"",
        ),
        (
            Some("user"),
            "-JhLeOlGIEja_OFHR0x_",
            "expected the prefix \"user\", found no prefix in \"-JhLeOlGIEja_OFHR0x_\"",
        ),
        (
            Some("user"),
            "JhLeO",
            "expected the prefix \"user\", found no prefix in \"JhLeO\"",
        ),
        // Another prefix or a part of the key: without the right length this is not known.
        (
            Some("user"),
            "post_JhLeO",
            "expected the prefix \"user\", found \"post_JhLeO\"",
        ),
        (
            Some("user"),
            "user_-JhLeOlGIEja_OFHR0x",
            "expected 20 characters of -, 0-9, A-Z, _, a-z, found \"-JhLeOlGIEja_OFHR0x\"",
        ),
        (
            None,
            "user_-JhLeOlGIEja_OFHR0x_",
            "expected 20 characters of -, 0-9, A-Z, _, a-z, found \"user_-JhLeOlGIEja_OFHR0x_\"",
        ),
    ] {
        let error = PushId::parse_text(prefix, text).unwrap_err();
        assert!(error.is_parse());
        assert_eq!(error.to_string(), expected);
    }
}

proptest! {
    #[test]
    fn ids_come_back_and_sort_as_text(a: [u8; 15], b: [u8; 15]) {
        let [a, b] = [a, b].map(PushId::from_bytes);
        prop_assert_eq!(a.to_string().parse::<PushId>().unwrap(), a);
        prop_assert_eq!(a.to_string().cmp(&b.to_string()), a.cmp(&b));
        let parts = FirebasePushId::unpack(&a).unwrap();
        prop_assert_eq!(FirebasePushId::pack(parts).unwrap(), a);
        if let Ok(next) = a.successor() {
            prop_assert!(next > a && next.timestamp() == a.timestamp());
        }
    }
}
