use core::fmt;

use proptest::prelude::*;

use super::*;
use crate::generator::Policy;
use crate::{
    clock::ManualClock,
    entropy::SeededEntropy,
    generator::{Generator, Overflow, Rollback},
    key::RawKey as _,
};

const START: u64 = 1_469_918_176_385;

fn vectors() -> serde_json::Value {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/vectors/firebase_push.json"
    );
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// The number of twelve digits of six bits.
fn random_of(digits: &serde_json::Value) -> u128 {
    let digits = digits.as_array().unwrap();
    assert_eq!(digits.len(), 12);
    let push =
        |random, digit: &serde_json::Value| random << 6 | u128::from(digit.as_u64().unwrap());
    digits.iter().fold(0, push)
}

fn scripted(policy: Policy) -> PushIdGenerator<ManualClock, SeededEntropy> {
    let clock = ManualClock::at_unix_millis(START);
    PushIdGenerator::new(clock, SeededEntropy::new(7), policy)
}

#[test]
fn published_ids_tell_their_time() {
    let vectors = vectors();
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
    let vectors = vectors();
    let alphabet = vectors["alphabet"].as_str().unwrap();
    for (character, digit) in alphabet.chars().zip(0_u128..) {
        let id = PushId::from_fields(0, digit);
        assert_eq!(id.to_string(), format!("{}{character}", "-".repeat(19)));
    }
    assert_eq!(alphabet.len(), 64);
}

#[test]
fn the_successor_carries_and_never_wraps() {
    let vectors = vectors();
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
    let generator = scripted(Policy::DEFAULT);
    let before = generator.try_generate().unwrap().into_raw();
    generator.clock().set_unix_millis(START - 1);
    assert!(generator.try_generate().unwrap().into_raw() > before);
}

#[test]
fn a_millisecond_has_131072_ids_and_then_the_policy_acts() {
    let policy = |overflow| Policy {
        rollback: Rollback::ERROR,
        overflow,
    };
    let generator = scripted(policy(Overflow::Error));
    let mut ids = Vec::new();
    generator
        .try_fill_with(131_072, |id| ids.push(id.into_raw()))
        .unwrap();
    assert!(generator.try_generate().unwrap_err().is_overflow());
    assert!(ids.is_sorted_by(|a, b| a < b));
    assert!(ids.is_sorted_by_key(|id| id.to_string()));
    let counter = |id: &PushId| id.to_fields().1 >> 54;
    for (id, count) in ids.iter().zip(counter(&ids[0])..) {
        assert_eq!(id.timestamp().as_unix_millis(), START);
        assert_eq!(counter(id), count);
    }
    let mut ones = [0_u32; 54];
    for id in &ids[..10_000] {
        for (bit, ones) in ones.iter_mut().enumerate() {
            *ones += u32::from(id.to_fields().1 >> bit & 1 == 1);
        }
    }
    // Seven standard deviations of 50 around 5,000: all 54 bits are drawn.
    assert!(
        ones.iter().all(|ones| (4_650..5_350).contains(ones)),
        "{ones:?}"
    );

    let generator = scripted(policy(Overflow::Wait));
    generator.try_fill_with(131_072, |_| ()).unwrap();
    let next = generator.try_generate().unwrap().into_raw();
    assert_eq!(next.timestamp().as_unix_millis(), START + 1);
}

#[test]
fn parts_have_their_bits() {
    let pack = |unix_ts_ms, random| FirebasePushId::pack(Parts { unix_ts_ms, random });
    let highest = pack((1 << 48) - 1, (1 << 72) - 1).unwrap();
    assert_eq!(highest, PushId::from_bytes([0xff; 15]));
    assert_eq!(
        pack(1 << 48, 0).unwrap_err().to_string(),
        "unix_ts_ms 281474976710656 does not fit: scheme push_id has 48 bits for it"
    );
    assert_eq!(
        pack(0, 1 << 72).unwrap_err().to_string(),
        "random 4722366482869645213696 does not fit: scheme push_id has 72 bits for it"
    );
}

struct Prefixed(PushId, Option<&'static str>);

impl fmt::Display for Prefixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_text(self.1, f)
    }
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
        assert_eq!(Prefixed(id, prefix).to_string(), text);
        assert_eq!(PushId::parse_text(prefix, text).unwrap(), id);
    }
    assert_eq!(
        format!("{:>27}", Prefixed(id, Some("user"))),
        "  user_-JhLeOlGIEja_OFHR0x_"
    );
    let message = |prefix, text| {
        let error = PushId::parse_text(prefix, text).unwrap_err();
        assert!(error.is_parse());
        error.to_string()
    };
    assert_eq!(
        message(Some("user"), "post_-JhLeOlGIEja_OFHR0x_"),
        "expected the prefix \"user\", found \"post\" in \"post_-JhLeOlGIEja_OFHR0x_\""
    );
    assert_eq!(
        message(Some("a"), "a_b_-JhLeOlGIEja_OFHR0x_"),
        "expected the prefix \"a\", found \"a_b\" in \"a_b_-JhLeOlGIEja_OFHR0x_\""
    );
    assert_eq!(
        message(Some("user"), "-JhLeOlGIEja_OFHR0x_"),
        "expected the prefix \"user\", found \"\" in \"-JhLeOlGIEja_OFHR0x_\""
    );
    assert_eq!(
        message(Some("user"), "user_-JhLeOlGIEja_OFHR0x"),
        "expected 20 characters of -, 0-9, A-Z, _, a-z, found \"-JhLeOlGIEja_OFHR0x\""
    );
    assert_eq!(
        message(None, "user_-JhLeOlGIEja_OFHR0x_"),
        "expected 20 characters of -, 0-9, A-Z, _, a-z, found \"user_-JhLeOlGIEja_OFHR0x_\""
    );
}

#[test]
fn hostile_text_is_refused_by_its_length() {
    let hostile = "-".repeat(1 << 20);
    let underscores = "_".repeat(84);
    for (prefix, text) in [
        (None, &hostile),
        (Some("user"), &hostile),
        (Some("user"), &underscores),
    ] {
        let error = PushId::parse_text(prefix, text).unwrap_err();
        assert!(error.is_parse() && error.to_string().len() < 250);
    }
}

#[test]
fn one_seed_gives_the_same_ids_on_every_machine() {
    let generator = scripted(Policy::DEFAULT);
    let ids = [(); 2].map(|()| generator.try_generate().unwrap().to_string());
    assert_eq!(ids, ["-KNxwqH0G447xS2imW_J", "-KNxwqH0G451IsusvcAh"]);
}

#[test]
fn the_process_wide_generator_is_there() {
    use crate::key::StaticScheme as _;
    let [first, second] = [(); 2].map(|()| FirebasePushId::generate().into_raw());
    assert!(first < second);
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

    #[test]
    fn parsing_is_total_and_canonical(text in "\\PC{0,30}|(a_)?[-0-9A-Z_a-z]{18,22}") {
        for prefix in [None, Some("a")] {
            if let Ok(id) = PushId::parse_text(prefix, &text) {
                prop_assert_eq!(Prefixed(id, prefix).to_string(), &text[..]);
            }
        }
    }
}
