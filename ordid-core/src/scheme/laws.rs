//! These laws hold for every scheme of the catalogue that counts.

use core::marker::PhantomData;
use std::collections::HashSet;

use proptest::prelude::*;
use uuid::Uuid;

use super::{snowflake::SnowflakeNode, testing::*};
use crate::{
    clock::{Clock as _, Timestamp},
    generator::{Generator, Overflow, Policy, Slotted},
    key::{Generated, RawKey, Scheme, StaticScheme},
    layout::Comparison,
    scheme::*,
};

/// A test for each scheme of the list that counts.
macro_rules! laws {
    ($($name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $($text:literal),+;)+) => {
        $(laws!(@test $name [$($kind)+] $scheme);)+
    };
    (@test $name:ident [counted] $scheme:ty) => { laws!(@obeys $name $scheme, [()]); };
    (@test $name:ident [spread] $scheme:ty) => { laws!(@obeys $name $scheme, [()]); };
    (@test $name:ident [spread_node] $scheme:ty) => {
        laws!(@obeys $name $scheme, [first(), last()]);
    };
    (@test $name:ident [random_node] $scheme:ty) => {
        laws!(@obeys $name $scheme, [UuidNode::RANDOM, given()]);
    };
    // Node first: there are no ranges by time over all nodes.
    (@test $name:ident [random_node_first] $scheme:ty) => {
        laws!(@obeys $name $scheme, [UuidNode::RANDOM, given()]);
    };
    (@test $name:ident [snowflake_node] $scheme:ty) => {
        laws!(@obeys $name $scheme, [first(), last()]);
    };
    (@test $name:ident [layout] $scheme:ty) => {
        laws!(@obeys $name $scheme, [first(), last()]);
    };
    (@test $name:ident [node($example:expr, $last:expr)] $scheme:ty) => {
        laws!(@obeys $name $scheme, [$last]);
    };
    (@test $name:ident [drawn($bits:literal)] $scheme:ty) => {};
    (@test $name:ident [by_period($bits:literal)] $scheme:ty) => {};
    (@test $name:ident [named] $scheme:ty) => {};
    (@test $name:ident [reserved] $scheme:ty) => {};
    (@test $name:ident [read_only] $scheme:ty) => {};
    (@obeys $name:ident $scheme:ty, [$($node:expr),+]) => {
        #[test]
        fn $name() {
            assert_eq!(<$scheme as Scheme>::NAME, stringify!($name));
            $(
                counts::<$scheme>($node);
                (ByTime::<$scheme>::OBEYS)($node);
            )+
        }
    };
}

crate::__for_each_scheme! { laws }

const fn given() -> UuidNode {
    UuidNode::danger_exact([2, 0, 0, 0, 0, 7])
}

fn first<L: snowflake::SnowflakeLayout>() -> SnowflakeNode<L> {
    SnowflakeNode::new(0).unwrap()
}

fn last<L: snowflake::SnowflakeLayout>() -> SnowflakeNode<L> {
    SnowflakeNode::new(SnowflakeNode::<L>::COUNT - 1).unwrap()
}

/// This type checks the schemes that have ranges by time; the other schemes have nothing to check.
/// The compiler finds the constant of this type before that of the trait, if the scheme has it.
struct ByTime<S>(PhantomData<S>);

impl<S: Slotted + TimeOrdered> ByTime<S> {
    const OBEYS: fn(S::Node) = |node| {
        ranges_by_time_meet_without_overlap::<S>();
        keys_for_given_times_are_in_their_ranges::<S>(node);
        a_start_above_a_key_is_above_it_or_an_error::<S>(node);
    };
    const IS: bool = true;
}

trait NotByTime<S: Slotted> {
    const OBEYS: fn(S::Node) = |_| {};
    const IS: bool = false;
}

impl<S: Slotted> NotByTime<S> for ByTime<S> {}

/// Whoever forgets `TimeOrdered` for a scheme would lose its tests.
#[test]
fn schemes_that_count_have_ranges_by_time_unless_a_node_or_a_bucket_is_first() {
    let mut without = Vec::new();
    macro_rules! ask {
        ($($name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $($text:literal),+;)+) => {
            $(ask!(@one [$($kind)+] $scheme);)+
        };
        (@one [drawn($bits:literal)] $scheme:ty) => {};
        (@one [by_period($bits:literal)] $scheme:ty) => {};
        (@one [named] $scheme:ty) => {};
        (@one [reserved] $scheme:ty) => {};
        (@one [read_only] $scheme:ty) => {};
        (@one [$($kind:tt)+] $scheme:ty) => {
            if !ByTime::<$scheme>::IS {
                without.push(<$scheme as Scheme>::NAME);
            }
        };
    }
    crate::__for_each_scheme! { ask }
    let expected = [
        "uuid_v7_spread",
        "uuid_create_sequential",
        "snowflake_spread",
        "uuid_short",
    ];
    assert_eq!(without, expected);
}

/// A layout that is made for a need.
#[test]
fn compact_orders() {
    let node = SnowflakeNode::new(2).unwrap();
    obeys::<Snowflake<Compact<compact::tests::Orders>>>(node);
}

/// As the scheme whose keys it makes, with a node.
#[test]
fn object_id_legacy() {
    use super::object_id::{HostAndProcess, ObjectIdLegacy};

    assert_eq!(ObjectIdLegacy::NAME, super::ObjectIdScheme::NAME);
    obeys::<ObjectIdLegacy>(HostAndProcess::new(0xff_ffff, u16::MAX).unwrap());
}

/// Layouts of numbers, and of other layouts with another epoch.
#[test]
fn snowflakes_written_down() {
    fn obey<L: snowflake::SnowflakeLayout>() {
        let last = snowflake::SnowflakeNode::<L>::COUNT - 1;
        obeys::<Snowflake<L>>(snowflake::SnowflakeNode::new(last).unwrap());
    }
    obey::<snowflake::Since<snowflake::Bits<41, 10, 12>, 1_609_459_200_000>>();
    obey::<snowflake::Since<snowflake::Bits<32, 1, 12, 1_000>, 1_609_459_200_000>>();
    obey::<snowflake::Since<snowflake::Bits<39, 16, 8, 10>, 1_609_459_200_000>>();
    obey::<snowflake::Since<snowflake::Sonyflake, 1_609_459_200_000>>();
    obey::<snowflake::Since<snowflake::Yitter, 1_609_459_200_000>>();
    obey::<Compact<compact::Needs<1_609_459_200_000, 20, 1_000, 4>>>();
}

/// Where the node comes from changes nothing of the laws.
#[test]
fn with_node() {
    use super::node::{DangerExact, Fixed, Random, WithNode};

    obeys::<WithNode<super::UuidV1, Random>>(Random);
    obeys::<WithNode<super::UuidV1, DangerExact<7>>>(DangerExact);
    obeys::<WithNode<super::UuidV1Rearranged, Fixed<0x0100_0000_0007>>>(Fixed);
    obeys::<WithNode<super::UuidV6, Random>>(Random);
    obeys::<WithNode<super::UuidV6, Fixed<0x0100_0000_0007>>>(Fixed);
    obeys::<WithNode<super::UuidV6, DangerExact<0xffff_ffff_ffff>>>(DangerExact);
    counts::<WithNode<super::UuidCreateSequential, Fixed<0x0100_0000_0007>>>(Fixed);
}

fn obeys<S: Slotted + TimeOrdered>(node: S::Node) {
    counts::<S>(node);
    ranges_by_time_meet_without_overlap::<S>();
    keys_for_given_times_are_in_their_ranges::<S>(node);
    a_start_above_a_key_is_above_it_or_an_error::<S>(node);
}

/// What holds also where keys are not ordered by time over all nodes.
fn counts<S: Slotted + Layout>(node: S::Node) {
    keys_rise_and_come_apart::<S>(node);
    a_key_for_a_time_has_this_time_or_is_an_error::<S>(node);
    any_bits_make_a_key::<S>(node);
    keys_rise_while_the_clock_is_held::<S>(node);
    a_step_back_beyond_the_bound_is_an_error::<S>(node);
    keys_rise_exactly_where_declared::<S>(node);
    one_seed_gives_the_same_keys::<S>(node);
    local_blocks_are_unique_and_rise::<S>(node);
}

/// A time that the scheme has, with a day before it.
fn start<S: Slotted>() -> u64 {
    let epoch = u64::try_from(S::SCALE.epoch_unix_millis()).unwrap_or(0);
    START.max(epoch + 86_400_000)
}

fn scripted<S: Slotted>(node: S::Node, seed: u64, policy: Policy) -> Scripted<S> {
    scripted_with(node, start::<S>(), seed, policy)
}

/// The keys of each bucket, in the order in which they were made: one list, for schemes without buckets.
fn by_bucket<S: Scheme>(keys: &[S::Raw]) -> Vec<Vec<S::Raw>> {
    let mut buckets = vec![Vec::new(); usize::from(S::BUCKETS)];
    for key in keys {
        buckets[usize::from(S::bucket(key))].push(*key);
    }
    buckets
}

fn rises<S: Scheme>(keys: &[S::Raw]) {
    for bucket in by_bucket::<S>(keys) {
        for pair in bucket.windows(2) {
            assert!(
                S::cmp(&pair[0], &pair[1]).is_lt(),
                "{} does not rise: {:?}, {:?}",
                S::NAME,
                pair[0],
                pair[1]
            );
        }
    }
    let distinct: HashSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len(), "{} repeats", S::NAME);
}

/// The lowest and highest key of a time, as a pair of it.
fn bounds<S: TimeOrdered>(millis: u64) -> (S::Raw, S::Raw) {
    let timestamp = Timestamp::from_unix_millis(millis).unwrap();
    S::bounds_at(timestamp).unwrap()
}

fn is_within<S: Scheme>(raw: &S::Raw, (lowest, highest): &(S::Raw, S::Raw)) -> bool {
    S::cmp(lowest, raw).is_le() && S::cmp(raw, highest).is_le()
}

fn keys_rise_and_come_apart<S: Slotted + Layout>(node: S::Node) {
    let generator = scripted::<S>(node, 1, Policy::DEFAULT);
    let mut keys = Vec::new();
    for step in 0..400 {
        for _ in 0..10 {
            keys.push(generator.try_generate().unwrap().into_raw());
        }
        generator
            .try_fill_with(10, |key| keys.push(key.into_raw()))
            .unwrap();
        let reserved = generator.reserve(5).unwrap();
        keys.extend(reserved.map(|key| key.unwrap().into_raw()));
        generator.clock().set_unix_millis(start::<S>() + step * 3);
        generator
            .clock()
            .set_nanos(u32::try_from(step).unwrap() * 2_471);
    }
    rises::<S>(&keys);
    for raw in &keys {
        assert!(S::check(raw));
        assert!(Generated::<S>::check(*raw, S::NAME).is_ok());
        let parts = S::unpack(raw).unwrap();
        assert_eq!(S::pack(parts).unwrap(), *raw, "{} {parts:?}", S::NAME);
        let inspection = S::inspect(raw).unwrap();
        assert_eq!(inspection.scheme, S::NAME);
        let moment = inspection.moment.expect("a scheme that counts has a time");
        assert_eq!(moment.timestamp(), S::timestamp(raw));
        // Within the ten seconds that the counter may run ahead.
        let early = i128::from(start::<S>()) * 1_000_000 - i128::from(moment.tick_nanos);
        let late = i128::from(start::<S>() + 11_200) * 1_000_000 + i128::from(moment.tick_nanos);
        assert!((early..late).contains(&moment.unix_nanos), "{moment:?}");
        let text = text::<S>(*raw);
        assert_eq!(S::parse_text(None, &text).unwrap(), *raw);
        assert_eq!(S::read_text(None, &text), Some(*raw));
    }
}

fn any_bits_make_a_key<S: Slotted>(node: S::Node) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for fill in 0..1_000_u32 {
        let mut bytes = <S::Raw as RawKey>::Bytes::default();
        for byte in bytes.as_mut() {
            // Marsaglia's xorshift64, and before it the extremes.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = match fill {
                0 => 0,
                1 => 0xff,
                _ => state.to_be_bytes()[0],
            };
        }
        let raw = <S::Raw as RawKey>::from_bytes(bytes);
        assert_eq!(raw.to_bytes().as_ref(), bytes.as_ref());
        let key = S::coerce(raw);
        assert!(S::check(&key), "{} makes {key:?} of {raw:?}", S::NAME);
        assert_eq!(S::coerce(key), key);
    }
    let made = scripted::<S>(node, 7, Policy::DEFAULT).try_generate();
    let made = made.unwrap().into_raw();
    assert_eq!(S::coerce(made), made);
}

fn keys_rise_while_the_clock_is_held<S: Slotted>(node: S::Node) {
    let generator = scripted::<S>(node, 2, Policy::DEFAULT);
    let mut keys = Vec::new();
    for millis in [0, 5_000, 4_999, 1, 5_001, 5_000, 20_000] {
        generator.clock().set_unix_millis(start::<S>() + millis);
        keys.extend((0..7).map(|_| generator.try_generate().unwrap().into_raw()));
    }
    rises::<S>(&keys);
}

fn a_step_back_beyond_the_bound_is_an_error<S: Slotted>(node: S::Node) {
    let generator = scripted::<S>(node, 3, STRICT);
    let mut keys = vec![generator.try_generate().unwrap().into_raw()];
    generator
        .clock()
        .set_unix_millis(start::<S>() - 8 * 3_600_000);
    assert!(generator.try_generate().unwrap_err().is_clock());
    generator.clock().set_unix_millis(start::<S>() + 4_000);
    keys.push(generator.try_generate().unwrap().into_raw());
    rises::<S>(&keys);
}

/// Under the declared rules the keys are in the order they were made, and under no other.
fn keys_rise_exactly_where_declared<S: Slotted>(node: S::Node) {
    // These hold for the keys of one generator that makes few of them, not of all: see
    // `uuid_v1::tests` and `ordered_text::tests`.
    let by_chance = |rule| match S::NAME {
        "uuid_v1" | "ordered_text_22_time64" | "ordered_text_22_time64_push" => {
            rule == Comparison::MariaDbUuid
        }
        _ => false,
    };
    let keys = keys_over_time(&scripted::<S>(node, 7, Policy::DEFAULT), start::<S>());
    rises::<S>(&keys);
    let buckets = by_bucket::<S>(&keys);
    let uuid = |key: &S::Raw| Uuid::from_slice(key.to_bytes().as_ref()).ok();
    let bytes: Option<Vec<Vec<Uuid>>> = buckets
        .iter()
        .map(|keys| keys.iter().map(uuid).collect())
        .collect();
    for rule in Comparison::ALL {
        let declared = S::ORDERS.contains(rule) || by_chance(rule);
        match &bytes {
            Some(buckets) => {
                let holds = buckets.iter().all(|keys| descents(rule, keys) == 0);
                assert_eq!(holds, declared, "{} by {rule:?}", S::NAME);
            }
            // The other rules are of 16 bytes.
            None => {
                assert_eq!(
                    declared,
                    rule == Comparison::Bytes,
                    "{} by {rule:?}",
                    S::NAME
                );
                let is_below =
                    |a: &S::Raw, b: &S::Raw| a.to_bytes().as_ref() < b.to_bytes().as_ref();
                let is_sorted = |keys: &Vec<S::Raw>| keys.is_sorted_by(is_below);
                assert!(buckets.iter().all(is_sorted), "{}", S::NAME);
            }
        }
    }
}

fn one_seed_gives_the_same_keys<S: Slotted>(node: S::Node) {
    let [left, right] = [(); 2].map(|()| {
        let generator = scripted::<S>(node, 4, Policy::DEFAULT);
        [(); 20].map(|()| next(&generator))
    });
    assert_eq!(left, right);
}

/// However far ahead of the clock the key is, and in whatever part of a unit of time the clock stands.
fn a_start_above_a_key_is_above_it_or_an_error<S: Slotted + TimeOrdered>(node: S::Node) {
    let (mut held, mut refused) = (0, 0);
    let gaps = [0, 1, 4_000].into_iter().chain(7_900..=10_100);
    for (part, millis) in [0, 1, 500, 999].into_iter().flat_map(|part| {
        let thinned = gaps
            .clone()
            .filter(move |gap| gap % 97 == part % 97 || *gap > 9_990);
        thinned.map(move |gap| (part, part + gap))
    }) {
        let ahead = scripted_with::<S>(node, start::<S>() + millis, 6, Policy::DEFAULT);
        let newest = next(&ahead);
        let Some(_) = S::timestamp(&newest) else {
            return;
        };
        let generator = scripted_with::<S>(node, start::<S>() + part, 7, Policy::DEFAULT);
        match generator.start_above(&newest) {
            Err(error) => {
                assert!(error.is_clock(), "{error}");
                refused += 1;
            }
            Ok(()) => {
                let first = next(&generator);
                let what = format!("{}: clock at {part}, key at {millis}", S::NAME);
                assert_eq!(generator.events().clock_followed, 0, "{what}");
                assert!(S::cmp(&newest, &first).is_lt(), "{what}");
                held += 1;
            }
        }
    }
    assert!(held > 8 && refused > 8, "{}: {held}, {refused}", S::NAME);
}

fn local_blocks_are_unique_and_rise<S: Slotted>(node: S::Node) {
    let generator = scripted::<S>(node, 5, Policy::DEFAULT);
    let blocks = [generator.local_block(), generator.local_block()];
    let mut all = HashSet::new();
    for block in &blocks {
        let keys = [(); 300].map(|()| block.try_generate().unwrap().into_raw());
        rises::<S>(&keys);
        all.extend(keys);
    }
    assert_eq!(all.len(), 600);
}

fn ranges_by_time_meet_without_overlap<S: Slotted + TimeOrdered>() {
    // A minute: longer than any scheme's step.
    let times = [0, 60_000, 3_600_000, 86_400_000].map(|ahead| bounds::<S>(start::<S>() + ahead));
    for (lowest, highest) in &times {
        assert!(S::cmp(lowest, highest).is_le());
        assert!(S::check(lowest) && S::check(highest));
    }
    for pair in times.windows(2) {
        assert!(S::cmp(&pair[0].1, &pair[1].0).is_lt());
    }
}

/// Up to the last time that there is, which no layout may wrap around.
fn a_key_for_a_time_has_this_time_or_is_an_error<S: Slotted>(node: S::Node) {
    let generator = scripted::<S>(node, 7, Policy::DEFAULT);
    let last = Timestamp::MAX.as_unix_millis();
    for millis in (0..=256).map(|part| last / 256 * part).chain([last]) {
        let timestamp = Timestamp::from_unix_millis(millis).unwrap();
        if let Ok(key) = generator.generate_at(timestamp) {
            let made = S::timestamp(&key.into_raw());
            let before = made.and_then(|made| millis.checked_sub(made.as_unix_millis()));
            // No scheme has a longer unit of time than a minute.
            let is_same = before.is_some_and(|before| before < 60_000);
            assert!(is_same, "{}: {made:?} for {timestamp}", S::NAME);
        }
    }
}

fn keys_for_given_times_are_in_their_ranges<S: Slotted + TimeOrdered>(node: S::Node) {
    let generator = scripted::<S>(node, 6, Policy::DEFAULT);
    let timestamp = Timestamp::from_unix_millis(start::<S>() + 123_456).unwrap();
    let mut all = HashSet::new();
    for _ in 0..100 {
        match generator.generate_at(timestamp) {
            Ok(key) => {
                let raw = key.into_raw();
                assert!(is_within::<S>(&raw, &bounds::<S>(start::<S>() + 123_456)));
                assert!(all.insert(raw), "{} repeats", S::NAME);
            }
            Err(error) => assert!(!S::is_drawn(node) && error.is_unsupported()),
        }
    }
    let made = generator.try_generate().unwrap().into_raw();
    let at = S::timestamp(&made).unwrap().as_unix_millis();
    assert!(is_within::<S>(&made, &bounds::<S>(at)));
}

/// A test for all schemes with a generator for the process.
macro_rules! process_wide_keys {
    ($($name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $($text:literal),+;)+) => {
        $(process_wide_keys!(@one [$($kind)+] $scheme);)+
    };
    (@one [counted] $scheme:ty) => { process_wide_keys_rise::<$scheme>(); };
    (@one [spread] $scheme:ty) => { process_wide_keys_rise::<$scheme>(); };
    (@one [random_node] $scheme:ty) => { process_wide_keys_rise::<$scheme>(); };
    (@one [random_node_first] $scheme:ty) => { process_wide_keys_rise::<$scheme>(); };
    (@one [$($kind:tt)+] $scheme:ty) => {};
}

#[test]
fn process_wide_keys_rise_over_all_ways_to_make_them() {
    crate::__for_each_scheme! { process_wide_keys }
}

fn process_wide_keys_rise<S: StaticScheme>() {
    let mut keys = vec![S::generate().into_raw()];
    S::fill_with(100, |key| keys.push(key.into_raw()));
    keys.extend(S::reserve(10).unwrap().map(Generated::into_raw));
    assert_eq!(keys.len(), 111);
    keys.push(S::generate().into_raw());
    rises::<S>(&keys);
    assert!(keys.iter().all(S::check));
    let now = crate::clock::SystemClock.now().as_unix_millis();
    for key in &keys {
        let at = S::timestamp(key).unwrap().as_unix_millis();
        assert!(at.abs_diff(now) < 60_000, "{} {key:?}", S::NAME);
    }
    let time = Timestamp::from_unix_millis(START).unwrap();
    let past = S::generate_at(time).unwrap().into_raw();
    assert_eq!(S::timestamp(&past), Some(time), "{}", S::NAME);
}

/// Computed by this code once; it pins the PRF, the order of draws and the layouts.
#[test]
fn one_seed_gives_the_same_keys_on_every_machine() {
    fn makes<S: Slotted>(generator: &Scripted<S>, texts: &[&str]) {
        on_its_own_thread(|| {
            for expected in texts {
                assert_eq!(text::<S>(next(generator)), *expected, "{}", S::NAME);
            }
        });
    }
    fn of_seed_7<S: Slotted<Node = ()>>(texts: &[&str]) {
        makes(&testing::scripted::<S>(), texts);
    }
    makes::<UuidV7>(
        &scripted_with((), START, 42, Policy::DEFAULT),
        &[
            "017f22e2-79b0-7016-a47a-8d74395d5ba1",
            "017f22e2-79b0-7016-a47a-8d756d71b708",
        ],
    );
    of_seed_7::<UuidV7Unguessable>(&[
        "017f22e2-79b0-74ff-8423-d743bb286553",
        "017f22e2-79b0-74ff-8509-3e3ae3ba0bb7",
    ]);
    let sub_millis = testing::scripted::<UuidV7SubMillis>();
    sub_millis.clock().set_nanos(123_456);
    makes(
        &sub_millis,
        &[
            "017f22e2-79b0-71f9-8008-f5d0eeca1954",
            "017f22e2-79b0-71f9-8042-4f8eb8ee82ed",
        ],
    );
    of_seed_7::<UuidV8SqlServer>(&[
        "5586b23b-743d-8245-93fc-017f22e279b0",
        "bba03bae-e393-8046-93fc-017f22e279b0",
    ]);
    of_seed_7::<CombNHibernate>(&[
        "6528bb43-d723-4070-958d-ae44013f40e8",
        "0bbae33a-3e09-4071-958d-ae44013f40e8",
    ]);
    of_seed_7::<CombRtSql>(&["6528bb43-d723-4045-93fc-017f22e279b0"]);
    of_seed_7::<CombRtPostgreSql>(&["017f22e2-79b0-44ff-8452-3d743bb28655"]);
    of_seed_7::<CombRtBinary>(&["e2227f01-b079-4f4f-8452-3d743bb28655"]);
    of_seed_7::<CombEfCore>(&[
        "335586b2-3b74-4d23-eb00-08d9f638a666",
        "7bbba03b-aee3-4309-eb01-08d9f638a666",
    ]);
    of_seed_7::<SequentialGuidAsString>(&["3a02350f-51b0-4ff1-148f-5d0eeca1954c"]);
    of_seed_7::<SequentialGuidAsBinary>(&["0f35023a-b051-f14f-148f-5d0eeca1954c"]);
    of_seed_7::<SequentialGuidAtEnd>(&["4c95a1ec-0e5d-8f14-4ff1-3a02350f51b0"]);
    of_seed_7::<OrderedText22>(&["0NxYtcblJ~48yT3jnXaKoG"]);
    of_seed_7::<OrderedText22Time64>(&["0001VnBYUR1FxGZqpEwA6G"]);
    of_seed_7::<OrderedText32Push>(&["---0UmAXTQ0EwGPCkLERkHEMFvgcOKBo"]);
    let in_2016 = 1_469_918_176_385;
    makes::<Ulid>(
        &scripted_at((), in_2016),
        &["01ARYZ6S418H8MHXEGXV51JN6D", "01ARYZ6S418H8R4KWEQ3Q85VFD"],
    );
    makes::<FirebasePushId>(
        &scripted_at((), in_2016),
        &["-KNxwqH0G447xS2imW_J", "-KNxwqH0G451IsusvcAh"],
    );
}

/// Schemes with a counter of 18 bits, which begins with a zero, above fresh random bits.
#[test]
fn a_millisecond_has_131072_keys_and_then_the_policy_acts() {
    /// `random` is the counter and the bits below it.
    fn has_131072_keys<S: Slotted<Node = ()>>(random: impl Fn(&S::Raw) -> u128) {
        let generator = scripted::<S>((), 7, STRICT);
        let keys = many(&generator, 131_072);
        assert!(generator.try_generate().unwrap_err().is_overflow());
        rises::<S>(&keys);
        assert!(keys.is_sorted_by_key(|raw| text::<S>(*raw)));
        let counter = |raw: &S::Raw| random(raw) >> S::RANDOM_BITS;
        let first = counter(&keys[0]);
        assert!(first > 0 && first >> S::SEED_BITS == 0);
        for (key, count) in keys.iter().zip(first..) {
            assert_eq!(counter(key), count);
            assert_eq!(S::timestamp(key).unwrap().as_unix_millis(), START);
        }
        let ones = ones::<64>(keys[..10_000].iter().map(random));
        for (bit, ones) in ones[..S::RANDOM_BITS as usize].iter().enumerate() {
            // Seven standard deviations of 50 around 5,000: all bits are drawn.
            assert!((4_650..5_350).contains(ones), "{} {bit}: {ones}", S::NAME);
        }

        let overflow = Overflow::Wait;
        let generator = scripted::<S>((), 7, Policy { overflow, ..STRICT });
        generator.try_fill_with(131_072, |_| ()).unwrap();
        let next = S::timestamp(&next(&generator)).unwrap();
        assert_eq!(next.as_unix_millis(), START + 1);
        assert_eq!(generator.events().counter_waits, 1);
    }
    has_131072_keys::<UuidV7Unguessable>(|raw| {
        let parts = UuidV7Unguessable::unpack(raw).unwrap();
        u128::from(parts.counter) << 56 | u128::from(parts.random)
    });
    has_131072_keys::<Ulid>(|raw| Ulid::unpack(raw).unwrap().random);
    has_131072_keys::<FirebasePushId>(|raw| FirebasePushId::unpack(raw).unwrap().random);
    has_131072_keys::<OrderedText22>(|raw| OrderedText22::unpack(raw).unwrap().random);
    has_131072_keys::<OrderedText22Time64Push>(|raw| {
        OrderedText22Time64Push::unpack(raw).unwrap().random.into()
    });
    on_its_own_thread(|| {
        has_131072_keys::<OrderedText32>(|raw| OrderedText32::unpack(raw).unwrap().random);
    });
}

/// Calls a function for every scheme.
macro_rules! for_every_scheme {
    (
        { $law:ident $arguments:tt }
        $($name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $($text:literal),+;)+
    ) => {
        $($law::<$scheme> $arguments;)+
    };
}

fn any_value_comes_apart_or_is_refused<S: Layout>(bytes: [u8; 24]) {
    let mut own = <S::Raw as RawKey>::Bytes::default();
    let length = own.as_ref().len();
    own.as_mut().copy_from_slice(&bytes[..length]);
    let raw = <S::Raw as RawKey>::from_bytes(own);
    match S::unpack(&raw) {
        Ok(parts) => {
            assert!(S::check(&raw), "{} {raw:?}", S::NAME);
            assert_eq!(S::pack(parts).unwrap(), raw, "{}", S::NAME);
        }
        Err(error) => {
            assert!(error.is_layout() && !S::check(&raw), "{} {raw:?}", S::NAME);
            assert!(S::inspect(&raw).unwrap_err().is_layout());
            assert_eq!(S::timestamp(&raw), None, "{}", S::NAME);
        }
    }

    let key = S::coerce(raw);
    let coerced = key.to_bytes();
    let bits = own.as_ref().iter().zip(coerced.as_ref());
    let changed: u32 = bits.map(|(from, to)| (from ^ to).count_ones()).sum();
    // Version and variant, in bytes 6 to 8, or bits above a number.
    assert!(changed <= 7 || coerced.as_ref().len() == 8, "{}", S::NAME);
    let parts = S::unpack(&key).unwrap();
    assert_eq!(S::pack(parts).unwrap(), key, "{}", S::NAME);
    let inspection = S::inspect(&key).unwrap();
    assert_eq!(inspection.scheme, S::NAME);
    let timestamp = inspection.moment.and_then(|moment| moment.timestamp());
    assert_eq!(timestamp, S::timestamp(&key), "{}", S::NAME);
    for prefix in [None, Some("user")] {
        let text = Text::<S>(key, prefix).to_string();
        assert_eq!(S::parse_text(prefix, &text).unwrap(), key, "{}", S::NAME);
        assert_eq!(S::read_text(prefix, &text), Some(key), "{}", S::NAME);
    }
}

fn each_key_has_one_text<S: Scheme>(text: &str) {
    for prefix in [None, Some("a")] {
        let parsed = S::parse_text(prefix, text).ok();
        assert_eq!(S::read_text(prefix, text), parsed, "{}", S::NAME);
        if let Some(raw) = parsed {
            assert_eq!(Text::<S>(raw, prefix).to_string(), text, "{}", S::NAME);
        }
    }
}

fn hostile_text_is_refused_by_its_length<S: Scheme>() {
    for filler in ["0", "-", "_", "~"] {
        for length in [84, 100, 1 << 20] {
            for prefix in [None, Some("user")] {
                let error = S::parse_text(prefix, &filler.repeat(length)).unwrap_err();
                let message = error.to_string();
                assert!(error.is_parse() && message.len() < 250, "{message}");
                let is_shortened = message.contains(&format!("{length} bytes"));
                assert!(is_shortened || length == 84, "{}: {message}", S::NAME);
            }
        }
    }
}

#[test]
fn every_scheme_refuses_hostile_text_by_its_length() {
    crate::__for_each_scheme! { for_every_scheme { hostile_text_is_refused_by_its_length() } }
}

proptest! {
    #[test]
    fn every_scheme_takes_any_value_apart_or_refuses_it(bytes: [u8; 24]) {
        crate::__for_each_scheme! {
            for_every_scheme { any_value_comes_apart_or_is_refused(bytes) }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Texts of each length and alphabet, and any others.
    #[test]
    fn every_scheme_writes_what_it_reads(
        text in "\\PC{0,40}|(a_)?[-0-9A-Z_a-z~]{18,22}|[-0-9A-Z_a-z]{22}|[0-9A-Z_a-z~]{22}\
            |[-0-9A-Z_a-z]{32}|[0-9A-Z_a-z~]{32}|[0-9A-Za-z]{26}|(a_)?[0-7][0-9A-HJKMNP-TV-Z]{25}\
            |(a_)?[0-7][0-9a-hjkmnp-tv-z]{25}|[0-9a-fA-F]{24}|[0-9a-f]{24}|-?[0-9]{1,20}\
            |[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-fA-F]{12}",
    ) {
        crate::__for_each_scheme! { for_every_scheme { each_key_has_one_text(&text) } }
    }
}
