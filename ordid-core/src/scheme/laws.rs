//! These laws hold for every scheme of the catalogue that counts.

use core::marker::PhantomData;
use std::collections::HashSet;

use crate::{
    clock::{ManualClock, Timestamp},
    entropy::SeededEntropy,
    generator::{Generator, OrderedGenerator, Overflow, Policy, Rollback, Slotted},
    key::{Generated, RawKey, Scheme},
    layout::Comparison,
    scheme::*,
};

use self::snowflake::SnowflakeNode;

const START: u64 = 1_645_557_742_000;

/// A test for each scheme of the list that counts.
macro_rules! laws {
    ($($name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $($text:literal),+;)+) => {
        $(laws!(@test $name [$($kind)+] $scheme);)+
    };
    (@test $name:ident [counted] $scheme:ty) => { laws!(@obeys $name $scheme, [()]); };
    (@test $name:ident [random_node] $scheme:ty) => {
        laws!(@obeys $name $scheme, [UuidNode::RANDOM]);
    };
    // Node first: there are no ranges by time over all nodes.
    (@test $name:ident [random_node_first] $scheme:ty) => {
        laws!(@obeys $name $scheme, [UuidNode::RANDOM]);
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
fn schemes_that_count_have_ranges_by_time_unless_the_node_is_first() {
    let mut without = Vec::new();
    macro_rules! ask {
        ($($name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $($text:literal),+;)+) => {
            $(ask!(@one [$($kind)+] $scheme);)+
        };
        (@one [drawn($bits:literal)] $scheme:ty) => {};
        (@one [by_period($bits:literal)] $scheme:ty) => {};
        (@one [reserved] $scheme:ty) => {};
        (@one [read_only] $scheme:ty) => {};
        (@one [$($kind:tt)+] $scheme:ty) => {
            if !ByTime::<$scheme>::IS {
                without.push(<$scheme as Scheme>::NAME);
            }
        };
    }
    crate::__for_each_scheme! { ask }
    assert_eq!(without, ["uuid_create_sequential", "uuid_short"]);
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
}

/// What holds also where keys are not ordered by time over all nodes.
fn counts<S: Slotted + Layout>(node: S::Node) {
    keys_rise_and_come_apart::<S>(node);
    any_bits_make_a_key::<S>(node);
    keys_rise_while_the_clock_is_held::<S>(node);
    a_step_back_beyond_the_bound_is_an_error::<S>(node);
    one_seed_gives_the_same_keys::<S>(node);
    local_blocks_are_unique_and_rise::<S>(node);
}

/// A time that the scheme has, with a day before it.
fn start<S: Slotted>() -> u64 {
    let epoch = u64::try_from(S::SCALE.epoch_unix_millis()).unwrap_or(0);
    START.max(epoch + 86_400_000)
}

type Scripted<S> = OrderedGenerator<S, ManualClock, SeededEntropy>;

fn scripted<S: Slotted>(node: S::Node, seed: u64, policy: Policy) -> Scripted<S> {
    let clock = ManualClock::at_unix_millis(start::<S>());
    OrderedGenerator::with_node(node, clock, SeededEntropy::new(seed), policy)
}

fn rises<S: Scheme>(keys: &[S::Raw]) {
    for pair in keys.windows(2) {
        assert!(
            S::cmp(&pair[0], &pair[1]).is_lt(),
            "{} does not rise: {:?}, {:?}",
            S::NAME,
            pair[0],
            pair[1]
        );
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
        struct Text<S: Scheme>(S::Raw);
        impl<S: Scheme> std::fmt::Display for Text<S> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                S::write_text(self.0, None, f)
            }
        }
        let text = Text::<S>(*raw).to_string();
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
    let policy = Policy {
        rollback: Rollback::ERROR,
        overflow: Overflow::Error,
    };
    let generator = scripted::<S>(node, 3, policy);
    let mut keys = vec![generator.try_generate().unwrap().into_raw()];
    generator
        .clock()
        .set_unix_millis(start::<S>() - 8 * 3_600_000);
    assert!(generator.try_generate().unwrap_err().is_clock());
    generator.clock().set_unix_millis(start::<S>() + 4_000);
    keys.push(generator.try_generate().unwrap().into_raw());
    rises::<S>(&keys);
}

fn one_seed_gives_the_same_keys<S: Slotted>(node: S::Node) {
    let [left, right] = [(); 2].map(|()| {
        let generator = scripted::<S>(node, 4, Policy::DEFAULT);
        [(); 20].map(|()| generator.try_generate().unwrap().into_raw())
    });
    assert_eq!(left, right);
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

/// Reads `tests/vectors/NAME.json`.
pub(super) fn vectors(name: &str) -> serde_json::Value {
    let file = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Checks a scheme's orders by its keys, most significant byte first. Of the rules only the first
/// is one of keys that do not have 16 bytes.
pub(super) fn assert_orders<S: Scheme, const N: usize>(keys: &[[u8; N]]) {
    assert!(keys.is_sorted_by(|left, right| left < right));
    for comparison in Comparison::ALL {
        assert_eq!(
            S::ORDERS.contains(comparison),
            comparison == Comparison::Bytes
        );
    }
}
