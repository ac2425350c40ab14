use proptest::prelude::*;

use super::*;
use crate::scheme::testing::{self, Text, does_not_fit, uuid, vectors};

fn parse(text: &str) -> Result<Uuid, Error> {
    testing::parse::<Ulid>(text)
}

fn text(raw: Uuid) -> String {
    testing::text::<Ulid>(raw)
}

#[test]
fn the_implementations_vectors_hold() {
    let vectors = vectors("ulid");
    let mut done = 0;
    for vector in vectors["vectors"].as_array().unwrap() {
        let str = |field: &str| vector[field].as_str().unwrap();
        let list = |field: &str| -> Vec<String> {
            let list = vector[field].as_array().unwrap().iter();
            list.map(|item| item.as_str().unwrap().to_owned()).collect()
        };
        match str("op") {
            "decode_time" | "max valid" => {
                let raw = parse(str("ulid")).unwrap();
                let parts = Ulid::unpack(&raw).unwrap();
                assert_eq!(parts.unix_ts_ms, vector["unix_ms"].as_u64().unwrap());
                assert_eq!(text(Ulid::pack(parts).unwrap()), str("ulid"));
            }
            "parse strict ok" => assert_eq!(text(parse(str("ulid")).unwrap()), str("ulid")),
            "monotonic same ms" => {
                let sequence = list("sequence");
                for pair in sequence.windows(2) {
                    let next = Ulid::successor(parse(&pair[0]).unwrap()).unwrap();
                    assert_eq!(text(next), pair[1]);
                }
            }
            // Their factory holds the last time and adds one.
            "monotonic with clock moved backwards (keeps last time)" => {
                let sequence = list("sequence");
                for pair in sequence[..4].windows(2) {
                    let next = Ulid::successor(parse(&pair[0]).unwrap()).unwrap();
                    assert_eq!(text(next), pair[1]);
                }
                assert!(sequence.is_sorted_by(|a, b| parse(a).unwrap() < parse(b).unwrap()));
            }
            "increment carry" => {
                let next = Ulid::successor(parse(str("from")).unwrap()).unwrap();
                assert_eq!(text(next), str("to"));
            }
            "increment overflow must fail" => {
                assert!(vector["to"].is_null());
                let error = Ulid::successor(parse(str("from")).unwrap()).unwrap_err();
                assert!(error.is_overflow());
                assert_eq!(
                    error.to_string(),
                    "01BX5ZZKBKZZZZZZZZZZZZZZZZ has no successor in its millisecond: its random \
                     part is used up; make a ULID of the next millisecond"
                );
            }
            "parse must fail" => assert!(parse(str("ulid")).unwrap_err().is_parse()),
            "parse" => {
                for ok in list("ok") {
                    assert_eq!(text(parse(&ok).unwrap()), ok);
                }
                for over in list("overflow") {
                    for error in [
                        parse(&over).unwrap_err(),
                        Ulid::parse_lenient(&over).unwrap_err(),
                    ] {
                        let message = error.to_string();
                        assert!(message.contains("the first character is at most 7"));
                    }
                }
            }
            other => panic!("{other}"),
        }
        done += 1;
    }
    assert_eq!(done, 9);
}

#[test]
fn a_ulid_is_a_uuids_bytes() {
    let vectors = vectors("ulid");
    let pairs = vectors["uuid_pairs"]["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 4);
    for pair in pairs {
        let (ulid, uuid) = (pair[0].as_str().unwrap(), uuid(&pair[1]));
        assert_eq!(parse(ulid).unwrap(), uuid);
        assert_eq!(text(uuid), ulid);
    }
}

#[test]
fn version_7_is_refused_unless_the_bits_say_so() {
    let v7: Uuid = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f".parse().unwrap();
    let ulid = parse(&text(v7)).unwrap();
    assert_eq!(Ulid::to_uuid_v7(ulid).unwrap(), v7);
    let error = Ulid::to_uuid_v7(parse("01ARYZ6S41TSV4RRFFQ69G5FAV").unwrap()).unwrap_err();
    assert!(error.is_conversion());
    assert_eq!(
        error.to_string(),
        "01ARYZ6S41TSV4RRFFQ69G5FAV is no UUID of version 7: it has random bits in the place of \
         version and variant, which would be lost; store its bytes as they are, or make a new key \
         for its time"
    );
}

#[test]
fn there_is_one_text_and_a_lenient_reader() {
    let canonical = "01ARYZ6S41TSV4RRFFQ69G5FAV";
    for other in [
        "01aryz6s41tsv4rrffq69g5fav",
        "o1aryz6s4itsv4rrffq69g5fav",
        "OLARYZ6S4LTSV4RRFFQ69G5FAV",
    ] {
        let error = parse(other).unwrap_err();
        assert!(error.is_parse());
        assert_eq!(
            error.to_string(),
            format!(
                "expected a ULID, 26 characters of 0-9 and A-Z without I, L, O, U, found \
                 {other:?} (a character outside the alphabet); `Ulid::parse_lenient` reads it"
            )
        );
        assert_eq!(Ulid::parse_lenient(other).unwrap().to_string(), canonical);
    }
    for neither in [
        "",
        "01ARYZ6S41TSV4RRFFQ69G5FA",
        "01ARYZ6S41TSV4RRFFQ69G5FAVV",
        "01ARYZ6S41TSV4RRFFQ69G5FAU",
        "01ARYZ6S41TSV4RRFFQ69G5FA-",
        " 1ARYZ6S41TSV4RRFFQ69G5FAV",
        "01ARYZ6S41TSV4RRFFQ69G5Fé",
    ] {
        assert!(parse(neither).unwrap_err().is_parse(), "{neither}");
        let error = Ulid::parse_lenient(neither).unwrap_err();
        assert!(error.is_parse() && !error.to_string().contains("lenient"));
    }
}

#[test]
fn the_lenient_reader_refuses_hostile_text_by_its_length() {
    for length in [100, 1 << 20] {
        let error = Ulid::parse_lenient(&"0".repeat(length)).unwrap_err();
        assert!(error.is_parse() && error.to_string().len() < 250);
    }
}

#[test]
fn a_prefix_makes_it_a_type_id() {
    let raw = parse("01ARYZ6S41TSV4RRFFQ69G5FAV").unwrap();
    let text = "user_01aryz6s41tsv4rrffq69g5fav";
    assert_eq!(Text::<Ulid>(raw, Some("user")).to_string(), text);
    assert_eq!(Ulid::parse_text(Some("user"), text).unwrap(), raw);
}

#[test]
fn parts_have_their_bits() {
    let highest = Parts {
        unix_ts_ms: (1 << 48) - 1,
        random: (1 << 80) - 1,
    };
    assert_eq!(Ulid::pack(highest).unwrap(), Uuid::max());
    assert_eq!(text(Uuid::max()), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    let parts = |unix_ts_ms, random| Parts { unix_ts_ms, random };
    does_not_fit::<Ulid, _>([
        (parts(1 << 48, 0), "unix_ts_ms 281474976710656", 48),
        (parts(0, 1 << 80), "random 1208925819614629174706176", 80),
    ]);
}

proptest! {
    /// Against the crate `ulid`.
    #[test]
    fn as_the_crate_does(value: u128, text in "[0-9A-Za-z]{26}|[0-9A-HJKMNP-TV-Z]{26}") {
        let (ours, theirs) = (Uuid::from_u128(value), ulid::Ulid(value));
        prop_assert_eq!(self::text(ours), theirs.to_string());
        prop_assert_eq!(parse(&theirs.to_string()).unwrap(), ours);
        let parts = Ulid::unpack(&ours).unwrap();
        prop_assert_eq!(parts.unix_ts_ms, theirs.timestamp_ms());
        prop_assert_eq!(parts.random, theirs.random());
        prop_assert_eq!(Ulid::pack(parts).unwrap(), ours);
        let successor = Ulid::successor(ours).ok().map(|raw| raw.as_u128());
        prop_assert_eq!(successor, theirs.increment().ok().map(|ulid| ulid.0));
        // The crate reads lower case, not i, l, o; and cuts off what is more than 128 bits.
        let theirs = ulid::Ulid::from_string(&text).ok().map(|ulid| ulid.0);
        let ours = parse(&text.to_ascii_uppercase()).ok().map(|raw| raw.as_u128());
        if text.as_bytes()[0] <= b'7' {
            prop_assert_eq!(ours, theirs);
        } else {
            prop_assert_eq!(ours, None);
        }
    }

    #[test]
    fn what_the_lenient_reader_takes_has_a_canonical_text(text in "\\PC{0,30}|[0-9A-Za-z]{26}") {
        if let Ok(key) = Ulid::parse_lenient(&text) {
            prop_assert_eq!(parse(&key.to_string()).unwrap(), key.into_raw());
        }
    }

    #[test]
    fn texts_sort_as_keys(a: u128, b: u128) {
        let [a, b] = [a, b].map(Uuid::from_u128);
        prop_assert_eq!(text(a).cmp(&text(b)), Ulid::cmp(&a, &b));
    }
}
