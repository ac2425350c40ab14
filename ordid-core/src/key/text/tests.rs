use proptest::prelude::*;

use super::*;
use crate::key::RawKey as _;

/// `(text, prefix, uuid)` of the TypeID specification 0.3.0, spec/valid.json.
fn vectors() -> serde_json::Value {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/typeid.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn type_id(prefix: &str, raw: Uuid) -> String {
    struct TypeId<'a>(&'a str, Uuid);
    impl fmt::Display for TypeId<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.1.write_text(Some(self.0), f)
        }
    }
    TypeId(prefix, raw).to_string()
}

/// Key types check their prefix at compile time; whoever calls the trait may pass any.
#[test]
fn a_prefix_that_is_too_long_does_not_panic() {
    let prefix = "p".repeat(1_000);
    let text = type_id(&prefix, Uuid::max());
    assert_eq!(text.len(), 1_000 + 1 + 26);
    assert_eq!(parse_type_id(&prefix, &text).unwrap(), Uuid::max());
}

#[test]
fn the_specs_valid_type_ids_are_read_and_written() {
    let vectors = vectors();
    let valid = vectors["valid"].as_array().unwrap();
    assert_eq!(valid.len(), 9);
    for case in valid {
        let [text, prefix, uuid] = [0, 1, 2].map(|i| case[i].as_str().unwrap());
        let uuid: Uuid = uuid.parse().unwrap();
        assert_eq!(parse_type_id(prefix, text).unwrap(), uuid, "{text}");
        assert_eq!(type_id(prefix, uuid), text);
    }
}

#[test]
fn the_specs_invalid_type_ids_are_refused() {
    let vectors = vectors();
    let invalid = vectors["invalid"].as_array().unwrap();
    assert_eq!(invalid.len(), 21);
    for case in invalid {
        let text = case[1].as_str().unwrap();
        // Read with whatever prefix the text claims, where that prefix can be declared at all.
        let claimed = text.rsplit_once('_').map_or("", |(prefix, _)| prefix);
        let declared = std::panic::catch_unwind(|| check_prefix(claimed)).is_ok();
        assert!(!declared || parse_type_id(claimed, text).is_err(), "{text}");
        // And with prefixes that key types do declare.
        for prefix in ["", "prefix", "pre", "fix", "prefix_underscore"] {
            let error = parse_type_id(prefix, text).unwrap_err();
            assert!(error.is_parse(), "{prefix} {text}");
        }
    }
}

#[test]
fn prefixes_follow_the_rule() {
    let ok = |prefix: &'static str| std::panic::catch_unwind(|| check_prefix(prefix)).is_ok();
    for good in [
        "",
        "a",
        "ab",
        "a_b",
        "a__b",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk",
    ] {
        assert!(ok(good), "{good}");
    }
    for bad in [
        "_",
        "_a",
        "a_",
        "A",
        "a1",
        "a-b",
        "ä",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl",
    ] {
        assert!(!ok(bad), "{bad}");
    }
}

#[test]
fn a_prefix_mismatch_names_both() {
    let error = parse_type_id("user", "post_01h455vb4pex5vsknk084sn02q").unwrap_err();
    assert!(error.is_parse());
    assert_eq!(
        error.to_string(),
        "expected the prefix \"user\", found \"post\" in \"post_01h455vb4pex5vsknk084sn02q\""
    );
    let error = parse_type_id("user", "01h455vb4pex5vsknk084sn02q").unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected the prefix \"user\", found no prefix in \"01h455vb4pex5vsknk084sn02q\""
    );
    let error = parse_type_id("user", "_01h455vb4pex5vsknk084sn02q").unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected the prefix \"user\", found \"\" in \"_01h455vb4pex5vsknk084sn02q\""
    );
}

#[test]
fn overflow_and_foreign_letters_are_refused() {
    for suffix in [
        "8zzzzzzzzzzzzzzzzzzzzzzzzz",
        "01h455vb4pex5vsknk084sn02u",
        "01H455VB4PEX5VSKNK084SN02Q",
    ] {
        assert!(
            parse_type_id("", suffix).unwrap_err().is_parse(),
            "{suffix}"
        );
    }
    let error = parse_type_id("", "8zzzzzzzzzzzzzzzzzzzzzzzzz").unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("(more than 128 bits: the first character is at most 7)")
    );
}

#[test]
fn a_megabyte_of_text_is_refused_with_a_short_message() {
    let hostile = "z".repeat(1 << 20);
    for error in [
        parse_type_id("user", &hostile).unwrap_err(),
        parse_hyphenated(hostile.as_bytes()).unwrap_err(),
        parse_ordered22::<Tilde>(hostile.as_bytes()).unwrap_err(),
        parse_ordered22::<Push>(hostile.as_bytes()).unwrap_err(),
        parse_ordered::<Push, 15, PUSH_ID>(hostile.as_bytes()).unwrap_err(),
        parse_ordered::<Tilde, 24, ORDERED_32>(hostile.as_bytes()).unwrap_err(),
        parse_ulid(hostile.as_bytes()).unwrap_err(),
        parse_ulid_lenient(hostile.as_bytes()).unwrap_err(),
        strip_prefix(Some("user"), PUSH_ID, &hostile).unwrap_err(),
    ] {
        let message = error.to_string();
        assert!(
            message.len() < 250 && message.contains("1048576 bytes"),
            "{message}"
        );
    }
}

/// Published samples of the 22-character form, by its author.
#[test]
fn ordered_text_matches_the_published_sample() {
    let raw = Uuid::from_u128(0x0176_a457_2508_c7f3_3a17_98b9_2987_7e79);
    assert_eq!(&encode_ordered22::<Tilde>(raw), b"0NQ_LnK8m~Cv5uYuAOTzUG");
    assert_eq!(
        parse_ordered22::<Tilde>(b"0NQ_LnK8m~Cv5uYuAOTzUG").unwrap(),
        raw
    );
}

#[test]
fn each_key_has_one_canonical_text() {
    // The last character carries two bits: those with more are a second text for the same key.
    assert!(parse_ordered22::<Tilde>(b"0NQ_LnK8m~Cv5uYuAOTzUH").is_err());
    let upper = b"0176A457-2508-C7F3-3A17-98B929877E79";
    let error = parse_hyphenated(upper).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("(upper case is not canonical: convert it with `lower()`)")
    );
    for form in [
        "0176a4572508c7f33a1798b929877e79",
        "{0176a457-2508-c7f3-3a17-98b929877e79}",
    ] {
        assert!(parse_hyphenated(form.as_bytes()).is_err());
    }
}

proptest! {
    #[test]
    fn texts_come_back_and_sort_as_bytes(a: u128, b: u128) {
        let (a, b) = (Uuid::from_u128(a), Uuid::from_u128(b));
        prop_assert_eq!(parse_hyphenated(&encode_hyphenated(a)).unwrap(), a);
        prop_assert_eq!(parse_ordered22::<Tilde>(&encode_ordered22::<Tilde>(a)).unwrap(), a);
        prop_assert_eq!(parse_type_id("ord", &type_id("ord", a)).unwrap(), a);
        prop_assert_eq!(encode_hyphenated(a).cmp(&encode_hyphenated(b)), a.cmp(&b));
        prop_assert_eq!(encode_ordered22::<Tilde>(a).cmp(&encode_ordered22::<Tilde>(b)), a.cmp(&b));
        prop_assert_eq!(type_id("ord", a).cmp(&type_id("ord", b)), a.cmp(&b));
    }

    #[test]
    fn what_is_read_prints_the_same(text in "[ -~]{0,40}|[0-9a-z_]{20,31}|[0-9A-Z_a-z~]{22}") {
        if let Ok(raw) = parse_ordered22::<Tilde>(text.as_bytes()) {
            prop_assert_eq!(&encode_ordered22::<Tilde>(raw)[..], text.as_bytes());
        }
        if let Ok(raw) = parse_type_id("", &text) {
            prop_assert_eq!(type_id("", raw), text);
        }
    }
}
