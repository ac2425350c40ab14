//! One key type for every scheme of the derive, and what each of them promises.

use std::{collections::HashSet, str::FromStr};

use ordid::{
    Error, KeyType, StaticScheme, TypedKey,
    clock::{Clock, SystemClock, Timestamp},
    coordination::{CoordinationFailure, Segment, SegmentOrder},
    entropy::ThreadEntropy,
    generator::{Generator, OrderedGenerator, Policy, SegmentGenerator, Slotted},
    key::{Key192, ObjectId, PushId, Scheme},
    scheme::{
        Compact, FromName, Instagram, Snowflake, Spread, SpreadKey, TimeOrdered,
        compact::{CompactNeed, Need},
        counted::Counted,
        snowflake::{Discord, SnowflakeLayout, SnowflakeNode, Sonyflake, Twitter},
        spread,
    },
};
use uuid::Uuid;

/// What is derived, beside `KeyType`.
trait Derived:
    TypedKey + FromStr<Err = Error> + TryFrom<Self::Raw, Error = Error> + Into<Self::Raw>
{
}

impl<K> Derived for K where
    K: TypedKey + FromStr<Err = Error> + TryFrom<Self::Raw, Error = Error> + Into<Self::Raw>
{
}

/// Derives a key type for each scheme of the catalogue, and tests it. Layouts of `snowflake` are tested
/// below.
macro_rules! schemes {
    ($($name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $($text:literal),+;)+) => {
        $(schemes!(@test [$($kind)+] $name $raw);)+
    };
    (@test [layout] $name:ident $raw:ident) => {};
    (@test [read_only] $name:ident $raw:ident) => {};
    (@test $kind:tt $name:ident $raw:ident) => {
        mod $name {
            use super::*;

            #[derive(KeyType)]
            #[ordid(scheme = $name)]
            pub struct Key($raw);

            #[test]
            fn keeps_its_promises() {
                assert_eq!(<<Key as KeyType>::Scheme as Scheme>::NAME, stringify!($name));
                schemes!(@run $kind);
            }
        }
    };
    (@run [counted]) => { has_ranges(rises::<Key>()) };
    (@run [spread]) => { spreads_by_time(spreads(made::<Key>())) };
    (@run [spread_node]) => { drop(spreads(made_with_a_node::<Key>(&with_node(last())))) };
    (@run [random_node]) => { has_ranges(rises::<Key>()) };
    (@run [random_node_first]) => { drop(rises_in_one_generator::<Key>()) };
    (@run [snowflake_node]) => { rises_with_a_node::<Key>(&with_node(last())) };
    (@run [node($example:expr, $last:expr)]) => { rises_with_a_node::<Key>(&with_node($last)) };
    (@run [drawn($bits:literal)]) => { is_random::<Key>() };
    (@run [by_period($bits:literal)]) => { is_random::<Key>() };
    (@run [named]) => { is_of_its_name::<Key>() };
    (@run [reserved]) => { counts::<Key, _>() };
}

ordid_core::__for_each_scheme! { schemes }

/// The last node of a layout.
fn last<L: SnowflakeLayout>() -> SnowflakeNode<L> {
    SnowflakeNode::new(SnowflakeNode::<L>::COUNT - 1).expect("the last node")
}

/// How many keys are made one by one, how many are filled in, and how many are reserved.
const ONE_BY_ONE: usize = 1_000;
const FILLED: usize = 1_500;
const RESERVED: usize = 500;

fn now() -> Timestamp {
    SystemClock.now()
}

/// What holds of every key type, whoever makes its keys.
fn holds_of_all<K: Derived>(keys: &[K]) {
    for key in keys {
        let text = key.to_string();
        assert_eq!(text.parse().as_ref(), Ok(key), "{text}");
        for other in [format!(" {text}"), format!("{text} "), format!("x_{text}")] {
            assert!(other.parse::<K>().is_err_and(|error| error.is_parse()));
        }
        assert_eq!(format!("{key:?}"), format!("{}({text})", K::NAME));
        assert_eq!(K::try_from(key.to_raw()).as_ref(), Ok(key));
        let raw: K::Raw = (*key).into();
        assert_eq!(raw, key.to_raw());
    }
    let raw: HashSet<K::Raw> = keys.iter().map(|key| key.to_raw()).collect();
    assert_eq!(raw.len(), keys.len(), "none twice");
}

/// The time in a key is that of its making, to the second: the coarsest layouts know no more.
fn holds_of_times<K: Derived>(keys: &[K], before: Timestamp) {
    let (before, after) = (before.as_unix_millis(), now().as_unix_millis());
    for key in keys {
        let millis = key.timestamp().expect("a time").as_unix_millis();
        assert!(
            (before - 1_000..=after + 1_000).contains(&millis),
            "{key:?} of {millis}, made from {before} to {after}"
        );
    }
}

fn made<K: Derived<Scheme: StaticScheme>>() -> Vec<K> {
    let mut keys: Vec<K> = (0..ONE_BY_ONE).map(|_| K::generate()).collect();
    let mut filled = vec![keys[0]; FILLED];
    K::fill(&mut filled);
    keys.extend(filled);
    let mut reserved = K::reserve(RESERVED).expect("room for so few");
    keys.extend(reserved.by_ref());
    assert!(reserved.next().is_none());
    keys.push(K::generate());
    assert_eq!(keys.len(), ONE_BY_ONE + FILLED + RESERVED + 1);
    holds_of_all(&keys);
    keys
}

/// A scheme with a generator for the process, whose keys rise.
fn rises<K: Derived<Scheme: StaticScheme>>() -> Vec<K> {
    let keys = rises_in_one_generator::<K>();

    let millis = 1_645_557_742_000;
    let time = Timestamp::from_unix_millis(millis).expect("the year 2022");
    let older = K::generate_at(time).expect("a time that every layout has");
    assert!(older < keys[0]);
    let found = older.timestamp().expect("a time").as_unix_millis();
    assert!(found.abs_diff(millis) <= 3, "{found}");
    keys
}

/// The keys were made just now: they are in the range of this minute and in no other, and the ranges of
/// minutes meet.
fn has_ranges<K: Derived<Scheme: TimeOrdered>>(keys: Vec<K>) {
    const MINUTE: u64 = 60_000;
    let now = now().as_unix_millis();
    // Not the last minute alone, in case that a new one has begun.
    let at = |minutes: u64| {
        let millis = now - now % MINUTE - 2 * MINUTE + minutes * MINUTE;
        Timestamp::from_unix_millis(millis).expect("about now")
    };
    let range = |from, to| K::range(at(from)..at(to)).expect("a time that the scheme has");
    let all = range(0, 4);
    assert!(keys.iter().all(|key| all.contains(key)));
    let minutes: Vec<_> = (0..4).map(|minute| range(minute, minute + 1)).collect();
    assert!(minutes.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert_eq!((minutes[0].start, minutes[3].end), (all.start, all.end));
    for key in &keys {
        assert_eq!(
            minutes.iter().filter(|range| range.contains(key)).count(),
            1
        );
    }
    assert!(range(2, 2).is_empty());
    let late = K::range(at(0)..Timestamp::MAX).map(|range| range.contains(&keys[0]));
    assert!(late.unwrap_or_else(|error| error.is_clock()));
}

/// As [`rises`], where the node comes before the time: keys of another node are anywhere.
fn rises_in_one_generator<K: Derived<Scheme: StaticScheme>>() -> Vec<K> {
    let before = now();
    let keys = made::<K>();
    assert!(keys.is_sorted_by(|a, b| a < b));
    holds_of_times(&keys, before);
    keys
}

/// A scheme with a generator for the process, and without an order.
fn is_random<K: Derived<Scheme: StaticScheme>>() {
    let keys = made::<K>();
    assert!(!keys.is_sorted());
    assert!(keys.iter().all(|key| key.timestamp().is_none()));
}

/// Computed by Python: `reduce(uuid.uuid5, parts, namespace)`, and the same with SHA-256 of `hashlib`.
#[test]
fn named_keys_are_those_of_another_program() {
    type V5 = uuid_v5::Key;
    type V8 = uuid_v8_sha256::Key;
    let namespace: Uuid = "5d3a1f0e-52a5-4a6b-9a0c-0d2f6d1c7f11".parse().unwrap();
    let one = ["shop 7"];
    assert_eq!(
        [
            V5::named(namespace, one).to_string(),
            V8::named(namespace, one).to_string()
        ],
        [
            "2f2d651f-ac35-51d8-a453-b8ea34464838",
            "91451b52-d678-82f1-aa5b-4b50188a4f82"
        ]
    );
    for (parts, v5, v8) in [
        (
            ["shop 7", "4711"],
            "769a76cb-63ed-5c38-aabf-0780e7adfd7f",
            "9cc4a8d0-9856-8a39-8f60-21c34348b1b1",
        ),
        (
            ["shop 74", "711"],
            "010fe908-085b-52a2-bc75-2dcab473ff47",
            "0eed72ae-a6e4-8b02-97f0-0a87316382f1",
        ),
        (
            ["é", ""],
            "9120a23e-9b04-5e37-b200-2b90f00dfbd7",
            "0ff4786c-443e-8d55-930e-d12e80828570",
        ),
    ] {
        assert_eq!(V5::named(namespace, parts).to_string(), v5);
        assert_eq!(V8::named(namespace, parts).to_string(), v8);
    }
}

/// A scheme that makes keys of names, in no order.
fn is_of_its_name<K: Derived<Raw = Uuid, Scheme: FromName>>() {
    let named = |number: i32| K::named(Uuid::NAMESPACE_OID, [number.to_string()]);
    let keys: Vec<K> = (0..1_000).map(named).collect();
    assert!(keys.iter().copied().eq((0..1_000).map(named)));
    assert!(!keys.is_sorted());
    assert!(keys.iter().all(|key| key.timestamp().is_none()));
    holds_of_all(&keys);
    // A key is a namespace, too.
    let of = |parts: &[&str]| {
        let of = |namespace: Uuid, part: &&str| K::named(namespace, [part]).to_raw();
        parts.iter().fold(Uuid::NAMESPACE_OID, of)
    };
    assert_eq!(
        K::named(Uuid::NAMESPACE_OID, ["ab", "c"]).to_raw(),
        of(&["ab", "c"])
    );
    let mut parts = [
        of(&["abc"]),
        of(&["ab", "c"]),
        of(&["a", "bc"]),
        of(&["", "abc"]),
        of(&["abc", ""]),
        of(&["a", "b", "c"]),
    ];
    parts.sort_unstable();
    assert!(parts.is_sorted_by(|a, b| a < b), "none twice: {parts:?}");
}

fn with_node<S: Slotted>(node: S::Node) -> OrderedGenerator<S, SystemClock, ThreadEntropy> {
    OrderedGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT)
}

/// A scheme whose generators are made with a node.
fn rises_with_a_node<K>(generator: &OrderedGenerator<K::Scheme, SystemClock, ThreadEntropy>)
where
    K: Derived<Scheme: Slotted>,
{
    let keys = made_with_a_node::<K>(generator);
    assert!(keys.is_sorted_by(|a, b| a < b));
}

/// Keys that take turns over the buckets, and rise in each.
fn spreads<K: Derived<Scheme: Spread>>(keys: Vec<K>) -> Vec<K> {
    let before = now();
    let count = usize::from(<K::Scheme as Scheme>::BUCKETS);
    let mut buckets = vec![Vec::new(); count];
    for key in &keys {
        buckets[usize::from(key.bucket())].push(*key);
    }
    let even = keys.len() / count;
    for bucket in &buckets {
        assert!(bucket.is_sorted_by(|a, b| a < b));
        assert!(
            bucket.len() > even / 2 && bucket.len() < even * 2,
            "{even} {}",
            bucket.len()
        );
    }
    assert_eq!(spread::merge(buckets, false, |key| *key), keys);
    let (from, to) = (
        before.as_unix_millis() - 60_000,
        before.as_unix_millis() + 60_000,
    );
    let [from, to] =
        [from, to].map(|millis| Timestamp::from_unix_millis(millis).expect("about now"));
    let ranges = K::ranges(from..to).expect("a time that the scheme has");
    assert_eq!(ranges.len(), count);
    for key in &keys {
        let range = &ranges[usize::from(key.bucket())];
        assert!(range.contains(key));
        assert_eq!(ranges.iter().filter(|range| range.contains(key)).count(), 1);
    }
    keys
}

/// Keys for times before, which are in the range of their time.
fn spreads_by_time<K: Derived<Scheme: Spread + StaticScheme>>(_keys: Vec<K>) {
    let millis = 1_645_557_742_000;
    let [time, next] =
        [millis, millis + 1].map(|it| Timestamp::from_unix_millis(it).expect("2022"));
    let key = K::generate_at(time).expect("a time that the layout has");
    assert_eq!(key.timestamp(), Some(time));
    let ranges = K::ranges(time..next).expect("a time that the layout has");
    assert!(ranges[usize::from(key.bucket())].contains(&key));
}

/// Keys of a scheme whose generators are made with a node.
fn made_with_a_node<K>(
    generator: &OrderedGenerator<K::Scheme, SystemClock, ThreadEntropy>,
) -> Vec<K>
where
    K: Derived<Scheme: Slotted>,
{
    let before = now();
    let of_raw = |raw| K::from_raw(raw).expect("what a generator makes is of the scheme");
    let mut keys: Vec<K> = Vec::new();
    for _ in 0..ONE_BY_ONE {
        keys.push(generator.try_generate_key().expect("a key"));
    }
    let fill = generator.try_fill_with(FILLED, |key| keys.push(K::from_generated(key)));
    fill.expect("so many keys");
    for key in generator.reserve(RESERVED).expect("room for so few") {
        keys.push(of_raw(key.expect("a claimed key").into_raw()));
    }
    let block = generator.local_block();
    for _ in 0..100 {
        keys.push(block.try_generate_key().expect("a key"));
    }
    assert_eq!(keys.len(), ONE_BY_ONE + FILLED + RESERVED + 100);
    holds_of_all(&keys);
    holds_of_times(&keys, before);

    // Nothing in these keys is drawn, so none can be made beside the order.
    let error = generator.generate_at(before).expect_err("no such key");
    assert!(error.is_unsupported(), "{error}");
    keys
}

/// Numbers of a count: those that were reserved, in their order, and no others.
fn counts<K, O>()
where
    K: Derived<Scheme = Counted<O>, Raw = i64>,
    O: SegmentOrder,
{
    let segment = Segment::<O>::new(1_001, 1_300, 2).expect("a segment");
    let generator = SegmentGenerator::of(segment);
    let mut keys: Vec<K> = Vec::new();
    for _ in 0..100 {
        keys.push(generator.try_generate_key().expect("a key"));
    }
    let fill = generator.try_fill_with(1_000, |key| keys.push(K::from_generated(key)));
    fill.expect("so many keys");
    for key in generator.reserve(200).expect("room for so few") {
        keys.push(K::from_generated(key.expect("a claimed key")));
    }
    let numbers = keys.iter().map(|key| (*key).into());
    assert!(numbers.eq((0..1_300).map(|step: i64| 1_001 + 2 * step)));
    holds_of_all(&keys);
    assert!(keys.iter().all(|key| key.timestamp().is_none()));
    assert!(K::try_from(-1).expect_err("a sign").is_layout());
    let error = generator.try_generate().expect_err("no number is left");
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::Unavailable)
    );
}

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = Sonyflake))]
struct SonyflakeId(i64);

/// Steps of 10 milliseconds: each end is that of its step, so no key is in two ranges or in none.
#[test]
fn ranges_of_coarse_times_are_of_whole_steps() {
    let at = |millis: u64| Timestamp::from_unix_millis(1_645_557_742_000 + millis).unwrap();
    let range = |from, to| SonyflakeId::range(at(from)..at(to)).unwrap();
    assert_eq!(range(3, 17), range(0, 10));
    assert!(range(3, 9).is_empty());
    let [first, second] = [range(0, 10), range(10, 20)];
    assert_eq!(first.end, second.start);
    let keys = u64::try_from(i64::from(second.start) - i64::from(first.start));
    assert_eq!(keys, Ok(1 << 24), "8 bits of sequence, 16 of node");
    let error = SonyflakeId::range(Timestamp::MIN..at(0)).unwrap_err();
    assert!(error.is_clock(), "{error}");
}

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = Twitter), prefix = "tweet")]
struct TweetId(i64);

/// A user's type of a preset's name is told from it by a path.
mod own {
    pub enum Discord {}

    impl ordid::scheme::snowflake::SnowflakeLayout for Discord {
        const NAME: &'static str = "own_discord";
        const EPOCH_UNIX_MILLIS: i64 = 1_704_067_200_000;
        const TIME_BITS: u32 = 40;
        const NODE_BITS: u32 = 3;
        const SEQUENCE_BITS: u32 = 10;
    }
}

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = own::Discord))]
struct OwnId(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = Discord))]
struct MessageId(i64);

enum Orders {}

impl CompactNeed for Orders {
    const NAME: &'static str = "compact_orders";
    const NEED: Need = Need {
        from_unix_millis: 1_704_067_200_000,
        years: 30,
        ids_per_second: 10_000,
        nodes: 4,
    };
}

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = ordid::scheme::Compact<Orders>), prefix = "ord")]
struct OrderId(i64);

#[test]
fn layouts_are_presets_by_name_or_types_by_path() {
    fn rises<K, L>(name: &str)
    where
        L: SnowflakeLayout,
        K: Derived<Scheme = Snowflake<L>, Raw = i64>,
    {
        assert_eq!(<K::Scheme as Scheme>::NAME, name);
        let last = SnowflakeNode::<L>::new(SnowflakeNode::<L>::COUNT - 1).expect("the last node");
        rises_with_a_node::<K>(&with_node(last));
    }
    rises::<SonyflakeId, Sonyflake>("sonyflake");
    rises::<TweetId, Twitter>("snowflake");
    rises::<OwnId, own::Discord>("own_discord");
    rises::<MessageId, Discord>("discord");
    rises::<OrderId, Compact<Orders>>("compact_orders");
    fn is_of<K: KeyType<Scheme = S>, S: Scheme>() {}
    is_of::<snowflake::Key, Snowflake<Twitter>>();
    is_of::<instagram::Key, Instagram>();
}

#[test]
fn raw_keys_of_another_version_are_refused() {
    /// Refuses all but those of this version, by a message that names key type and scheme.
    fn only<K: Derived<Raw = Uuid>>(version: usize) {
        let scheme = <K::Scheme as Scheme>::NAME;
        assert!(<K::Scheme as Scheme>::EXPECTED.contains(&format!("version {version}")));
        let versions = [1, 2, 3, 4, 5, 6, 7, 8, 15].map(|version| {
            let variant: u128 = 0b10 << 62;
            (
                version,
                Uuid::from_u128(0x0123 << 112 | version << 76 | variant | 0x77),
            )
        });
        for (found, raw) in [(0, Uuid::nil()), (15, Uuid::max())]
            .iter()
            .chain(&versions)
        {
            let taken = K::try_from(*raw);
            if *found == version as u128 {
                assert_eq!(taken.expect("its own version").to_raw(), *raw);
                continue;
            }
            let error = taken.expect_err("another version");
            assert!(error.is_layout(), "{error}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("not a `{}`: scheme {scheme} expects ", K::NAME)));
            assert!(text.ends_with(&raw.to_string()), "{text}");
        }
    }
    only::<comb_efcore::Key>(4);
    only::<comb_nhibernate::Key>(4);
    only::<comb_rt_binary::Key>(4);
    only::<comb_rt_legacy::Key>(4);
    only::<comb_rt_postgresql::Key>(4);
    only::<comb_rt_sql::Key>(4);
    only::<uuid_v1::Key>(1);
    only::<uuid_v4::Key>(4);
    only::<uuid_v4_clustered::Key>(4);
    only::<uuid_v4_clustered_compat::Key>(4);
    only::<uuid_v6::Key>(6);
    only::<uuid_v7::Key>(7);
    only::<uuid_v7_sub_millis::Key>(7);
    only::<uuid_v7_unguessable::Key>(7);
    only::<uuid_v8_sql_server::Key>(8);
    // Of version 6 by the digit, but of no RFC's variant.
    let version_6 = uuid_v6::Key::generate().to_raw();
    assert!(uuid_v1_rearranged::Key::try_from(version_6).is_err_and(|error| error.is_layout()));
    let rearranged = uuid_v1_rearranged::Key::generate().to_raw();
    assert!(uuid_v6::Key::try_from(rearranged).is_err_and(|error| error.is_layout()));
}

#[test]
fn raw_keys_of_another_layout_are_refused() {
    fn refuses<K: Derived<Raw = i64>>(raw: i64) {
        let error = K::try_from(raw).expect_err("not of the layout");
        assert!(error.is_layout());
        let found = format!(", found the number {raw}");
        assert!(error.to_string().ends_with(&found), "{error}");
        assert!(raw.to_string().parse::<K>().is_err());
    }
    refuses::<snowflake::Key>(-1);
    refuses::<instagram::Key>(i64::MIN);
    refuses::<SonyflakeId>(-1);
    let bits = Snowflake::<Compact<Orders>>::BITS;
    assert!(bits < 63);
    refuses::<OrderId>(1 << bits);
    assert!(OrderId::try_from((1 << bits) - 1).is_ok());
}

/// Where the scheme has no mark in its keys, every raw key is one.
#[test]
fn schemes_without_a_mark_take_every_raw_key() {
    fn takes<K: Derived>(raw: impl IntoIterator<Item = K::Raw>) {
        for raw in raw {
            let key = K::try_from(raw).expect("any raw key");
            assert_eq!(key.to_raw(), raw);
            let text = key.to_string();
            assert_eq!(text.parse().as_ref(), Ok(&key), "{text}");
        }
    }
    let uuids = [Uuid::nil(), Uuid::from_u128(0x4000 << 64), Uuid::max()];
    takes::<newid::Key>(uuids);
    takes::<sequential_guid_as_binary::Key>(uuids);
    takes::<sequential_guid_as_string::Key>(uuids);
    takes::<sequential_guid_at_end::Key>(uuids);
    takes::<ulid::Key>(uuids);
    takes::<ordered_text_22::Key>(uuids);
    takes::<ordered_text_22_push::Key>(uuids);
    takes::<object_id::Key>([0, 255].map(|byte| ObjectId::from_bytes([byte; 12])));
    takes::<push_id::Key>([0, 255].map(|byte| PushId::from_bytes([byte; 15])));
    takes::<uuid_short::Key>([0, u64::MAX]);
    takes::<percona_64::Key>([0, u64::MAX]);
}

#[test]
fn texts_have_the_scheme_s_own_form() {
    fn has<K: Derived<Scheme: StaticScheme>>(length: usize) {
        let (first, second) = (K::generate(), K::generate());
        let texts = [first, second].map(|key| key.to_string());
        assert!(texts.iter().all(|text| text.len() == length), "{texts:?}");
        assert!(texts.is_sorted_by(|a, b| a < b), "{texts:?}");
    }
    has::<uuid_v7::Key>(36);
    has::<ulid::Key>(26);
    has::<object_id::Key>(24);
    has::<push_id::Key>(20);
    has::<ordered_text_22::Key>(22);
    has::<ordered_text_22_push::Key>(22);
    has::<ordered_text_22_time64::Key>(22);
    has::<ordered_text_22_time64_push::Key>(22);
    has::<ordered_text_32::Key>(32);
    has::<ordered_text_32_push::Key>(32);
}

macro_rules! prefixed {
    ($($scheme:ident $key:ident($raw:ty): $value:expr, $text:literal;)+) => {
        #[test]
        fn a_prefix_goes_before_every_kind_of_raw_key() {
            $({
                #[derive(KeyType)]
                #[ordid(scheme = $scheme, prefix = "ord")]
                struct $key($raw);

                #[derive(KeyType)]
                #[ordid(scheme = $scheme, prefix = "cus")]
                struct Other($raw);

                let key = $key::try_from($value).expect("a key of the scheme");
                assert_eq!(key.to_string(), $text);
                holds_of_all(&[key]);
                let other = Other::from_raw(key.to_raw()).expect("the same value").to_string();
                let error = other.parse::<$key>().expect_err("another prefix");
                assert!(error.is_parse());
                let text = error.to_string();
                assert!(text.contains("\"ord\"") && text.contains("\"cus\""), "{text}");
                let (_, bare) = $text.split_once('_').expect("a prefix");
                assert!(bare.parse::<$key>().is_err_and(|error| error.is_parse()));
            })+
        }
    };
}

// The values that the other texts are known of: TypeID's specification, ObjectId's, Firebase's.
prefixed! {
    uuid_v7 V7(Uuid): Uuid::from_u128(0x0189_0a5d_ac96_774b_bcce_b302_099a_8057),
        "ord_01h455vb4pex5vsknk084sn02q";
    ulid Ulid(Uuid): Uuid::from_u128(0x0189_0a5d_ac96_774b_bcce_b302_099a_8057),
        "ord_01h455vb4pex5vsknk084sn02q";
    ordered_text_22 Text(Uuid): Uuid::from_u128(0x0189_0a5d_ac96_774b_bcce_b302_099a_8057),
        "ord_01h455vb4pex5vsknk084sn02q";
    object_id Object(ObjectId): "56e1fc72e0c917e9c4714161".parse::<ObjectId>().expect("an ObjectId"),
        "ord_56e1fc72e0c917e9c4714161";
    push_id Push(PushId): "-JhLeOlGIEjaIOFHR0xd".parse::<PushId>().expect("a push id"),
        "ord_-JhLeOlGIEjaIOFHR0xd";
    ordered_text_32 Wide(Key192): Key192::from_bytes([0; 24]),
        "ord_00000000000000000000000000000000";
    snowflake Tweet(i64): 759_517_997_340_696_579_i64, "ord_759517997340696579";
    uuid_short Short(u64): 92_395_783_831_158_784_u64, "ord_92395783831158784";
}
