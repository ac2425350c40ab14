//! Short ids of integer keys, by sqids.

use std::{collections::HashSet, sync::LazyLock};

use ordid::{
    Error, KeyType,
    key::short::{ShortKey, Sqids},
};
use proptest::{prop_assert_eq, proptest};

static SHORT: LazyLock<Sqids> = LazyLock::new(Sqids::default);

/// Short ids with a shuffled alphabet, which is from the documentation of sqids.
static SHUFFLED: LazyLock<Sqids> = LazyLock::new(|| {
    let alphabet = "k3G7QAe51FCsPW92uEOyq4Bg6Sp8YzVTmnU0liwDdHXLajZrfxNhobJIRcMvKt";
    let sqids = Sqids::builder().alphabet(alphabet.chars().collect());
    sqids.min_length(10).build().expect("62 letters")
});

/// Short ids where every text of 0 is blocked, as in `max_encoding_attempts` of the tests of sqids.
static BLOCKED: LazyLock<Sqids> = LazyLock::new(|| {
    let words = ["cab", "abc", "bca"].map(str::to_owned);
    let sqids = Sqids::builder().alphabet(vec!['a', 'b', 'c']).min_length(3);
    sqids
        .blocklist(HashSet::from(words))
        .build()
        .expect("three letters")
});

#[derive(KeyType)]
#[ordid(scheme = sequence, short = SHORT)]
struct CountedId(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(epoch = "2026-01-01", years = 20, ids_per_second = 1_000), prefix = "inv", short = SHUFFLED)]
struct InvoiceId(i64);

#[derive(KeyType)]
#[ordid(scheme = uuid_short, prefix = "", short = self::SHORT)]
struct UnsignedId(u64);

#[derive(KeyType)]
#[ordid(scheme = sequence, short = BLOCKED)]
struct BlockedId(i64);

fn counted(number: i64) -> CountedId {
    CountedId::from_raw(number).expect("a key")
}

/// Compares with `incremental_numbers` in the tests of sqids, which are the same in each language.
#[test]
fn short_ids_are_those_of_the_specification() {
    for (number, short) in [(0, "bM"), (1, "Uk"), (2, "gb"), (3, "Ef"), (9, "nJ")] {
        let id = counted(number);
        assert_eq!(id.to_short().as_deref(), Ok(short));
        assert_eq!(CountedId::from_short(short), Ok(id));
        // The key's own text is still the number.
        assert_eq!(id.to_string(), number.to_string());
    }
}

#[test]
fn a_short_id_has_the_prefix_of_its_key_type() {
    let id = InvoiceId::from_raw(281_474_976).expect("a key");
    let short = id.to_short().expect("a short id");
    assert_eq!((&short[..4], short.len()), ("inv_", 14));
    assert_eq!(InvoiceId::from_short(&short), Ok(id));
    for wrong in [
        &short[4..],
        &short[3..],
        "inv_",
        "inv",
        "",
        "inv__",
        "bil_Uk",
        &id.to_string(),
    ] {
        let error = InvoiceId::from_short(wrong).expect_err(wrong);
        assert!(error.is_parse(), "{error}");
        assert!(
            error
                .to_string()
                .contains("not a `InvoiceId`: expected a short id with the prefix \"inv\", found")
        );
    }
    // An empty prefix is the same as no prefix.
    let largest = UnsignedId::from_raw(u64::MAX).expect("a key");
    assert_eq!(
        UnsignedId::from_short(&largest.to_short().expect("a short id")),
        Ok(largest)
    );
}

#[test]
fn a_key_has_one_short_id() {
    let mut others = 0;
    // Tries all texts of two characters. Sqids decodes several of them to the same number.
    let letters = sqids_letters();
    for first in &letters {
        for second in &letters {
            let text = format!("{first}{second}");
            match CountedId::from_short(&text) {
                Ok(id) => assert_eq!(id.to_short(), Ok(text)),
                Err(error) => {
                    assert!(error.is_parse(), "{text}: {error}");
                    others += u32::from(SHORT.decode(&text).len() == 1);
                }
            }
        }
    }
    assert!(others > 1_000, "{others}");
    let error = CountedId::from_short("UkLWZ").expect_err("two numbers, or another text of one");
    assert!(error.is_parse(), "{error}");
    // Sqids never makes a blocked word, but decodes it.
    assert_eq!(
        CountedId::from_short("bb").map_err(|error| error.to_string()),
        Err("not a `CountedId`: expected a short id, found \"bb\", not canonical".to_owned())
    );
}

fn sqids_letters() -> Vec<char> {
    ('a'..='z').chain('A'..='Z').chain('0'..='9').collect()
}

#[test]
fn what_is_no_short_id_is_an_error() {
    let is_parse =
        |text: &str| CountedId::from_short(text).is_err_and(|error| Error::is_parse(&error));
    for text in [
        "",
        "_",
        "ü",
        "bM ",
        " bM",
        "bM\0",
        "\u{1f980}",
        "b",
        "JSwXFaosAN",
    ] {
        assert!(is_parse(text), "{text:?}");
    }
    assert!(is_parse(&"x".repeat(1 << 20)), "at once");
    // These numbers do not fit into i64, or into u64.
    let large = SHORT.encode(&[u64::MAX]).expect("a text");
    let error = CountedId::from_short(&large).expect_err("too large");
    assert!(
        error.to_string().ends_with("a number that is too large"),
        "{error}"
    );
    assert!(is_parse(&"9".repeat(20)));
    // This number is no key of the scheme.
    let long = SHUFFLED.encode(&[1 << 62]).expect("a text");
    let error = InvoiceId::from_short(&format!("inv_{long}")).expect_err("of no such time");
    assert!(error.is_layout(), "{error}");
}

#[test]
fn a_key_of_which_every_text_is_blocked_has_no_short_id() {
    let error = BlockedId::from_raw(0)
        .expect("a key")
        .to_short()
        .expect_err("blocked");
    assert!(error.is_conversion());
    assert_eq!(
        error.to_string(),
        "0 has no short id: it is negative, or each of its texts has a word that is left out"
    );
}

proptest! {
    #[test]
    fn every_short_id_is_read_again(counted: CountedId, invoice: InvoiceId, unsigned: UnsignedId) {
        prop_assert_eq!(CountedId::from_short(&counted.to_short().expect("a short id")), Ok(counted));
        prop_assert_eq!(InvoiceId::from_short(&invoice.to_short().expect("a short id")), Ok(invoice));
        prop_assert_eq!(UnsignedId::from_short(&unsigned.to_short().expect("a short id")), Ok(unsigned));
    }

    #[test]
    fn reading_never_panics(text: String) {
        let _ = CountedId::from_short(&text);
        let _ = InvoiceId::from_short(&format!("inv_{text}"));
    }
}
