use proptest::prelude::*;

use super::*;
use crate::generator::Policy;
use crate::{
    clock::ManualClock,
    entropy::SeededEntropy,
    generator::{Generator, Overflow, Rollback},
    key::{Generated, StaticScheme as _},
    layout::Comparison,
};

const START: u64 = 1_645_557_742_000;

fn text<S: Scheme>(raw: S::Raw) -> String {
    Generated::<S>::new(raw).to_string()
}

fn parse<S: Scheme>(text: &str) -> Result<S::Raw, Error> {
    S::parse_text(None, text)
}

struct Prefixed<S: Scheme>(S::Raw);

impl<S: Scheme> fmt::Display for Prefixed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        S::write_text(self.0, Some("user"), f)
    }
}

fn scripted<S: Slotted<Node = ()>>(
    policy: Policy,
) -> OrderedTextGenerator<S, ManualClock, SeededEntropy> {
    let clock = ManualClock::at_unix_millis(START);
    OrderedTextGenerator::new(clock, SeededEntropy::new(7), policy)
}

/// Published by the author of the form; 0176a4572508 is 2020-12-27T13:15:43.240Z.
#[test]
fn published_keys_are_read_and_written() {
    let raw = Uuid::from_u128(0x0176_a457_2508_c7f3_3a17_98b9_2987_7e79);
    assert_eq!(text::<OrderedText22>(raw), "0NQ_LnK8m~Cv5uYuAOTzUG");
    assert_eq!(
        parse::<OrderedText22>("0NQ_LnK8m~Cv5uYuAOTzUG").unwrap(),
        raw
    );
    let parts = OrderedText22::unpack(&raw).unwrap();
    assert_eq!(parts.unix_ts_ms, 1_609_074_943_240);
    assert_eq!(parts.random, 0xc7f3_3a17_98b9_2987_7e79);

    let raw = Uuid::from_u128(0x0176_a443_c009_11ba_5f92_5edb_1df2_d7a5);
    assert_eq!(text::<OrderedText22Push>(raw), "-MPZFw-83QdUZ_vQ6UAMdF");
    assert_eq!(
        parse::<OrderedText22Push>("-MPZFw-83QdUZ_vQ6UAMdF").unwrap(),
        raw
    );
    // Neither is of the other's alphabet.
    assert!(parse::<OrderedText22>("-MPZFw-83QdUZ_vQ6UAMdF").is_err());
    assert_eq!(
        parse::<OrderedText22Push>("0NQ_LnK8m~Cv5uYuAOTzUG")
            .unwrap_err()
            .to_string(),
        "expected 22 characters of -, 0-9, A-Z, _, a-z, found \"0NQ_LnK8m~Cv5uYuAOTzUG\""
    );
}

#[test]
fn each_key_has_one_text() {
    // The last character carries two bits; these carry more.
    for text in ["0NQ_LnK8m~Cv5uYuAOTzUH", "0NQ_LnK8m~Cv5uYuAOTzU~"] {
        assert!(parse::<OrderedText22>(text).unwrap_err().is_parse());
        assert!(parse::<OrderedText22Time64>(text).unwrap_err().is_parse());
    }
    assert!(parse::<OrderedText22Push>("-MPZFw-83QdUZ_vQ6UAMdG").is_err());
    let texts: std::collections::HashSet<_> = (0..64_u8)
        .filter_map(|last| {
            let last = *b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"
                .get(usize::from(last))?;
            let text = format!("0NQ_LnK8m~Cv5uYuAOTzU{}", char::from(last));
            parse::<OrderedText22>(&text).ok()
        })
        .collect();
    assert_eq!(texts.len(), 4);
}

#[test]
fn the_ends_of_each_form() {
    let least = "0".repeat(22);
    assert_eq!(text::<OrderedText22>(Uuid::nil()), least);
    assert_eq!(text::<OrderedText22Push>(Uuid::nil()), "-".repeat(22));
    assert_eq!(text::<OrderedText22>(Uuid::max()), "~".repeat(21) + "l");
    assert_eq!(text::<OrderedText22Push>(Uuid::max()), "z".repeat(21) + "k");
    let max = Key192::from_bytes([0xff; 24]);
    assert_eq!(text::<OrderedText32>(max), "~".repeat(32));
    assert_eq!(text::<OrderedText32Push>(max), "z".repeat(32));

    let pack = |unix_ts_ms, random| OrderedText22::pack(Parts22 { unix_ts_ms, random });
    assert_eq!(pack((1 << 48) - 1, (1 << 80) - 1).unwrap(), Uuid::max());
    let error = pack(1 << 48, 0).unwrap_err();
    assert!(error.is_layout());
    assert_eq!(
        error.to_string(),
        "unix_ts_ms 281474976710656 does not fit: scheme ordered_text_22 has 48 bits for it"
    );
    assert_eq!(
        pack(0, 1 << 80).unwrap_err().to_string(),
        "random 1208925819614629174706176 does not fit: scheme ordered_text_22 has 80 bits for it"
    );
}

#[test]
fn sixty_four_bits_of_time_are_read_although_no_clock_gets_there() {
    let key = OrderedText22Time64::pack(Parts22Time64 {
        unix_time_ms: 0x0123_4567_89ab_cdef,
        random: 7,
    })
    .unwrap();
    assert_eq!(key.to_string(), "01234567-89ab-cdef-0000-000000000007");
    assert_eq!(OrderedText22Time64::timestamp(&key), None);
    let moment = OrderedText22Time64::inspect(&key).unwrap().moment.unwrap();
    assert_eq!(moment.unix_nanos, 0x0123_4567_89ab_cdef_i128 * 1_000_000);
    let last = OrderedText32::pack(Parts32 {
        unix_time_ms: u64::MAX,
        random: u128::MAX,
    })
    .unwrap();
    assert_eq!(last, Key192::from_bytes([0xff; 24]));
    assert_eq!(OrderedText32::timestamp(&last), None);
    let moment = OrderedText32::inspect(&last).unwrap().moment.unwrap();
    assert_eq!(moment.unix_nanos, i128::from(u64::MAX) * 1_000_000);
    let early = OrderedText32::pack(Parts32 {
        unix_time_ms: START,
        random: 0,
    })
    .unwrap();
    let early = OrderedText32::timestamp(&early).unwrap();
    assert_eq!(early.as_unix_millis(), START);
}

#[test]
fn a_prefix_makes_type_ids_of_128_bits_and_stands_before_the_text_of_192() {
    let raw = Uuid::from_u128(0x0189_0a5d_ac96_774b_bcce_b302_099a_8057);
    let type_id = "user_01h455vb4pex5vsknk084sn02q";
    assert_eq!(Prefixed::<OrderedText22>(raw).to_string(), type_id);
    assert_eq!(
        OrderedText22Time64Push::parse_text(Some("user"), type_id).unwrap(),
        raw
    );
    let key = Key192::from_bytes([0x96; 24]);
    let text = Prefixed::<OrderedText32Push>(key).to_string();
    assert_eq!(text, format!("user_{}", "_dPL".repeat(8)));
    assert_eq!(
        OrderedText32Push::parse_text(Some("user"), &text).unwrap(),
        key
    );
    let error = OrderedText32Push::parse_text(Some("post"), &text).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("expected the prefix \"post\", found \"user\" in \"user_")
    );
}

fn hostile_is_refused<S: Scheme>() {
    for filler in ["0", "_", "~"] {
        let hostile = filler.repeat(1 << 20);
        for prefix in [None, Some("user")] {
            let error = S::parse_text(prefix, &hostile).unwrap_err();
            let message = error.to_string();
            assert!(error.is_parse() && message.len() < 250, "{message}");
            assert!(message.contains("1048576 bytes"), "{message}");
        }
    }
}

#[test]
fn hostile_text_is_refused_by_its_length() {
    hostile_is_refused::<OrderedText22>();
    hostile_is_refused::<OrderedText22Push>();
    hostile_is_refused::<OrderedText22Time64>();
    hostile_is_refused::<OrderedText32>();
    hostile_is_refused::<OrderedText32Push>();
}

/// The counter and the fresh bits below it, of keys of one millisecond.
fn counter_rises_above_fresh_bits<S: Slotted<Node = ()>>(random: impl Fn(S::Raw) -> u128) {
    let generator = scripted::<S>(Policy {
        rollback: Rollback::ERROR,
        overflow: Overflow::Error,
    });
    let mut keys = Vec::new();
    let put = |key: Generated<S>| keys.push(key.into_raw());
    generator.try_fill_with(131_072, put).unwrap();
    assert!(generator.try_generate().unwrap_err().is_overflow());
    assert!(keys.is_sorted_by(|a, b| a < b));
    assert!(keys.is_sorted_by_key(|raw| text::<S>(*raw)));
    let counter = |raw: &S::Raw| random(*raw) >> S::RANDOM_BITS;
    let first = counter(&keys[0]);
    assert!(first > 0 && first >> S::SEED_BITS == 0);
    for (key, count) in keys.iter().zip(first..) {
        assert_eq!(counter(key), count);
        assert_eq!(S::timestamp(key).unwrap().as_unix_millis(), START);
    }
    for bit in 0..S::RANDOM_BITS {
        let ones = keys[..10_000]
            .iter()
            .filter(|key| random(**key) >> bit & 1 == 1);
        // Seven standard deviations of 50 around 5,000: all bits are drawn.
        let ones = ones.count();
        assert!((4_650..5_350).contains(&ones), "{bit}: {ones}");
    }
}

#[test]
fn a_millisecond_has_131072_keys_and_then_the_policy_acts() {
    counter_rises_above_fresh_bits::<OrderedText22>(|raw| {
        OrderedText22::unpack(&raw).unwrap().random
    });
    counter_rises_above_fresh_bits::<OrderedText22Time64Push>(|raw| {
        OrderedText22Time64Push::unpack(&raw).unwrap().random.into()
    });
    counter_rises_above_fresh_bits::<OrderedText32>(|raw| {
        OrderedText32::unpack(&raw).unwrap().random
    });
}

fn rules_that_keys_rise_under<S: Slotted<Node = (), Raw = Uuid>>() -> Vec<Comparison> {
    let generator = scripted::<S>(Policy::DEFAULT);
    let keys: Vec<Uuid> = (0..2_000)
        .map(|step| {
            generator.clock().set_unix_millis(START + step / 8 * 77_777);
            generator.try_generate().unwrap().into_raw()
        })
        .collect();
    let rises = |rule: &Comparison| keys.is_sorted_by_key(|raw| rule.sort_key(raw.as_bytes()));
    Comparison::ALL.into_iter().filter(rises).collect()
}

#[test]
fn keys_rise_as_bytes_and_under_no_other_rule() {
    for rule in Comparison::ALL {
        let declared = rule == Comparison::Bytes;
        assert_eq!(OrderedText22::ORDERS.contains(rule), declared);
        assert_eq!(OrderedText22Time64::ORDERS.contains(rule), declared);
        assert_eq!(OrderedText32::ORDERS.contains(rule), declared);
    }
    let bytes = [Comparison::Bytes];
    assert_eq!(rules_that_keys_rise_under::<OrderedText22>(), bytes);
    assert_eq!(rules_that_keys_rise_under::<OrderedText22Push>(), bytes);
    // In MariaDB's `UUID` as long as the counter, which begins with a zero in the place of the
    // variant, does not carry. That is not for long enough to be declared.
    let lucky = [Comparison::Bytes, Comparison::MariaDbUuid];
    assert_eq!(rules_that_keys_rise_under::<OrderedText22Time64>(), lucky);
}

#[test]
fn a_counter_that_carries_sorts_elsewhere_in_mariadb() {
    let at = |unix_time_ms, random| {
        OrderedText22Time64::pack(Parts22Time64 {
            unix_time_ms,
            random,
        })
        .unwrap()
    };
    let earlier = at(0x0176_a457_1008, 0x8000_ffff_ffff_ffff);
    let later = at(0x0176_a457_1009, 0x8000_0000_0000_0000);
    let key = |raw: Uuid| Comparison::MariaDbUuid.sort_key(raw.as_bytes());
    assert!(earlier < later && key(earlier) > key(later));
}

#[test]
fn one_seed_gives_the_same_keys_on_every_machine() {
    fn first<S: Slotted<Node = ()>>() -> String {
        let generator = scripted::<S>(Policy::DEFAULT);
        generator.try_generate().unwrap().to_string()
    }
    let keys = [
        first::<OrderedText22>(),
        first::<OrderedText22Time64>(),
        first::<OrderedText32Push>(),
    ];
    assert_eq!(
        keys,
        [
            "0NxYtcblJ~48yT3jnXaKoG",
            "0001VnBYUR1FxGZqpEwA6G",
            "---0UmAXTQ--------3zl1EMFvgcOKBo"
        ]
    );
}

#[test]
fn each_has_a_process_wide_generator() {
    assert!(OrderedText22::generate().into_raw() < OrderedText22::generate().into_raw());
    assert!(OrderedText22Push::generate().into_raw() < OrderedText22Push::generate().into_raw());
    assert!(OrderedText32::generate().into_raw() < OrderedText32::generate().into_raw());
}

proptest! {
    #[test]
    fn keys_come_back_and_sort_as_text(a: [u8; 24], b: [u8; 24]) {
        let [u, v] = [a, b].map(|bytes| Uuid::from_slice(&bytes[..16]).unwrap());
        prop_assert_eq!(OrderedText22::pack(OrderedText22::unpack(&u).unwrap()).unwrap(), u);
        let parts = OrderedText22Time64::unpack(&u).unwrap();
        prop_assert_eq!(OrderedText22Time64::pack(parts).unwrap(), u);
        prop_assert_eq!(parse::<OrderedText22>(&text::<OrderedText22>(u)).unwrap(), u);
        prop_assert_eq!(parse::<OrderedText22Push>(&text::<OrderedText22Push>(u)).unwrap(), u);
        let order = u.cmp(&v);
        prop_assert_eq!(text::<OrderedText22>(u).cmp(&text::<OrderedText22>(v)), order);
        prop_assert_eq!(text::<OrderedText22Push>(u).cmp(&text::<OrderedText22Push>(v)), order);

        let [k, l] = [a, b].map(Key192::from_bytes);
        prop_assert_eq!(OrderedText32::pack(OrderedText32::unpack(&k).unwrap()).unwrap(), k);
        prop_assert_eq!(parse::<OrderedText32>(&text::<OrderedText32>(k)).unwrap(), k);
        prop_assert_eq!(parse::<OrderedText32Push>(&text::<OrderedText32Push>(k)).unwrap(), k);
        let order = k.cmp(&l);
        prop_assert_eq!(text::<OrderedText32>(k).cmp(&text::<OrderedText32>(l)), order);
        prop_assert_eq!(text::<OrderedText32Push>(k).cmp(&text::<OrderedText32Push>(l)), order);
        prop_assert_eq!(k.to_string().parse::<Key192>().unwrap(), k);
    }

    #[test]
    fn parsing_is_total_and_canonical(text in "\\PC{0,40}|[-0-9A-Z_a-z~]{22}|[-0-9A-Z_a-z~]{32}") {
        if let Ok(raw) = parse::<OrderedText22>(&text) {
            prop_assert_eq!(self::text::<OrderedText22>(raw), &text[..]);
        }
        if let Ok(raw) = parse::<OrderedText22Push>(&text) {
            prop_assert_eq!(self::text::<OrderedText22Push>(raw), &text[..]);
        }
        if let Ok(raw) = parse::<OrderedText32Push>(&text) {
            prop_assert_eq!(self::text::<OrderedText32Push>(raw), &text[..]);
        }
    }
}
