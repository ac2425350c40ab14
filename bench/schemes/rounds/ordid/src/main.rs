//! Every scheme of ordid: its generator, strict over all threads, by the clock that it reads.

use std::{hint::black_box, process::ExitCode};

use bench_common::round::{self, Maker};
use ordid::{
    clock::{Clock, CoarseClock, SystemClock, Timestamp},
    coordination::Grant,
    entropy::ThreadEntropy,
    generator::{
        AtCeiling, DefaultNode, Generator, GrantedGenerator, OrderedGenerator, Policy, Slotted,
    },
    key::{Key192, ObjectId, PushId, RawKey, Scheme},
    layout::Comparison,
    scheme::{
        self, Snowflake, UuidMask,
        compact::{Compact, CompactNeed, Need},
        snowflake::{
            BaiduUid, Discord, SnowflakeLayout, SnowflakeNode, Sonyflake, SonyflakeV2,
            WideSequence, Yitter,
        },
        uuid_v4::UuidV4Generator,
        uuid_v4_clustered::{ClusteredGenerator, Clusters},
    },
    uuid::Uuid,
};

/// A raw key as a number in the order of its bytes.
trait Number: RawKey {
    fn number(&self) -> u128;
}

impl Number for Uuid {
    #[inline]
    fn number(&self) -> u128 {
        self.as_u128()
    }
}

impl Number for i64 {
    #[inline]
    fn number(&self) -> u128 {
        u128::from(self.cast_unsigned())
    }
}

impl Number for u64 {
    #[inline]
    fn number(&self) -> u128 {
        u128::from(*self)
    }
}

impl Number for ObjectId {
    #[inline]
    fn number(&self) -> u128 {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *self.as_bytes();
        u128::from_be_bytes([0, 0, 0, 0, a, b, c, d, e, f, g, h, i, j, k, l])
    }
}

impl Number for PushId {
    #[inline]
    fn number(&self) -> u128 {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = *self.as_bytes();
        u128::from_be_bytes([0, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o])
    }
}

impl Number for Key192 {
    /// Its first 16 bytes hold time and count, which is where keys differ; the last are read too.
    #[inline]
    fn number(&self) -> u128 {
        let (first, last) = self.as_bytes().split_at(16);
        let last = last.try_into().map_or(0, u64::from_be_bytes);
        black_box(last);
        first.try_into().map_or(0, u128::from_be_bytes)
    }
}

/// The node of generators that have one.
const NODE: u8 = 5;

fn main() -> ExitCode {
    let mut makers = Vec::new();
    both::<scheme::CombEfCore>(&mut makers);
    both::<scheme::CombNHibernate>(&mut makers);
    both::<scheme::CombRtBinary>(&mut makers);
    both::<scheme::CombRtLegacy>(&mut makers);
    both::<scheme::CombRtPostgreSql>(&mut makers);
    both::<scheme::CombRtSql>(&mut makers);
    both::<scheme::ObjectIdScheme>(&mut makers);
    both::<scheme::OrderedText22>(&mut makers);
    both::<scheme::OrderedText22Push>(&mut makers);
    both::<scheme::OrderedText22Time64>(&mut makers);
    both::<scheme::OrderedText22Time64Push>(&mut makers);
    both::<scheme::OrderedText32>(&mut makers);
    both::<scheme::OrderedText32Push>(&mut makers);
    both::<scheme::FirebasePushId>(&mut makers);
    both::<scheme::SequentialGuidAsBinary>(&mut makers);
    both::<scheme::SequentialGuidAsString>(&mut makers);
    both::<scheme::SequentialGuidAtEnd>(&mut makers);
    both::<scheme::Ulid>(&mut makers);
    both::<scheme::UuidCreateSequential>(&mut makers);
    both::<scheme::UuidV1>(&mut makers);
    both::<scheme::UuidV1Rearranged>(&mut makers);
    both::<scheme::UuidV6>(&mut makers);
    both::<scheme::UuidV7>(&mut makers);
    both::<scheme::UuidV7SubMillis>(&mut makers);
    both::<scheme::UuidV7Unguessable>(&mut makers);
    both::<scheme::UuidV8SqlServer>(&mut makers);
    snowflake::<scheme::snowflake::Twitter>(&mut makers);
    snowflake::<BaiduUid<1_767_225_600>>(&mut makers);
    snowflake::<Discord>(&mut makers);
    snowflake::<Sonyflake>(&mut makers);
    snowflake::<SonyflakeV2>(&mut makers);
    snowflake::<WideSequence>(&mut makers);
    snowflake::<Yitter>(&mut makers);
    let shard = SnowflakeNode::new(NODE.into()).expect("it fits");
    with_node::<scheme::Instagram>(&mut makers, shard);
    with_node::<scheme::NewId>(&mut makers, [2, 0x42, 0xac, 0x11, 0, 2]);
    with_node::<scheme::Percona64>(&mut makers, 7);
    with_node::<scheme::UuidShort>(&mut makers, 7);

    snowflake::<Compact<Orders>>(&mut makers);
    makers.push(granted::<scheme::snowflake::Twitter>());
    makers.push(granted::<Sonyflake>());
    makers.push(granted::<WideSequence>());
    makers.push(masked(SystemClock, ""));
    makers.push(masked(CoarseClock, "-coarse"));

    makers.push(maker(UuidV4Generator::new(ThreadEntropy), ""));
    let clusters = Clusters::default();
    makers.push(maker(
        ClusteredGenerator::<scheme::UuidV4Clustered, _, _>::new(
            SystemClock,
            ThreadEntropy,
            clusters,
        ),
        "",
    ));
    makers.push(maker(
        ClusteredGenerator::<scheme::UuidV4ClusteredCompat, _, _>::new(
            SystemClock,
            ThreadEntropy,
            clusters,
        ),
        "",
    ));
    round::run(&makers)
}

/// As many ids a second as a busy shop's, and more than a burst makes.
enum Orders {}

impl CompactNeed for Orders {
    const NAME: &'static str = "compact";
    const NEED: Need = Need {
        from_unix_millis: 1_767_225_600_000, // 2026
        years: 20,
        ids_per_second: 10_000,
        nodes: 16,
    };
}

/// Makes a key of version 7 and its form for outside. The latter is kept by reference, as that of
/// `uuid47` has to be.
fn masked<C: Clock + 'static>(clock: C, suffix: &str) -> Maker {
    let keys = OrderedGenerator::<scheme::UuidV7, C, _>::with_node(
        (),
        clock,
        ThreadEntropy,
        Policy::DEFAULT,
    );
    let keys: &'static _ = Box::leak(Box::new(keys));
    let mask = UuidMask::new(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210);
    Maker::new(format!("masked{suffix}").leak(), Uuid::as_u128, move || {
        let mask = mask.clone();
        move || {
            let key = keys.try_generate().expect("the clock runs").into_raw();
            black_box(&mask.mask(&key).expect("it is of version 7"));
            key
        }
    })
}

fn snowflake<L: SnowflakeLayout>(makers: &mut Vec<Maker>) {
    let node = SnowflakeNode::new(NODE.into()).expect("every layout has as many");
    with_node::<Snowflake<L>>(makers, node);
}

/// The node by a grant, which lasts longer than the bench.
fn granted<L: SnowflakeLayout>() -> Maker {
    let now = SystemClock.now();
    let ceiling = now.as_unix_millis() + 24 * 60 * 60 * 1_000;
    let ceiling = Timestamp::from_unix_millis(ceiling).expect("a day from now is a time");
    let grant = Grant::new(NODE.into(), 1, now, ceiling).expect("it has a day");
    let keys = GrantedGenerator::<Snowflake<L>, _, _>::new(
        grant,
        SystemClock,
        ThreadEntropy,
        Policy::DEFAULT,
        AtCeiling::Error,
    );
    maker(keys.expect("the layout has the node"), "-granted")
}

/// A scheme that needs no node, with both clocks.
fn both<S: Slotted<Raw: Number, Node: DefaultNode>>(makers: &mut Vec<Maker>) {
    with_node::<S>(makers, S::Node::DEFAULT);
}

fn with_node<S: Slotted<Raw: Number>>(makers: &mut Vec<Maker>, node: S::Node) {
    makers.push(clocked::<S, _>(node, SystemClock, ""));
    makers.push(clocked::<S, _>(node, CoarseClock, "-coarse"));
}

fn clocked<S: Slotted<Raw: Number>, C: Clock + 'static>(
    node: S::Node,
    clock: C,
    suffix: &str,
) -> Maker {
    let keys = OrderedGenerator::<S, C, _>::with_node(node, clock, ThreadEntropy, Policy::DEFAULT);
    maker(keys, suffix)
}

/// Makers live as long as the program, and so do their generators.
fn maker<G>(generator: G, suffix: &str) -> Maker
where
    G: Generator<Scheme: Scheme<Raw: Number>> + Send + Sync + 'static,
{
    let name = format!("{}{suffix}", G::Scheme::NAME).leak();
    let keys: &'static G = Box::leak(Box::new(generator));
    let next = move || move || keys.try_generate().expect("the clock runs").into_raw();
    let fill = move |raws: &mut [<G::Scheme as Scheme>::Raw]| {
        let mut slots = raws.iter_mut();
        keys.try_fill_with(slots.len(), |key| {
            if let Some(slot) = slots.next() {
                *slot = key.into_raw();
            }
        })
        .expect("the clock runs");
    };
    let maker = Maker::filling(name, Number::number, next, fill);
    if G::Scheme::ORDERS.contains(Comparison::Bytes) {
        maker
    } else {
        maker.unordered()
    }
}
