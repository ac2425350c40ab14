//! Keys as they come in, and the columns that they go to.

use ordid_core::{
    clock::{Clock, ManualClock},
    entropy::ThreadEntropy,
    generator::{DefaultNode, Generator, OrderedGenerator, Policy, Slotted},
    key::{RawKey, Scheme},
    scheme::{
        SnowflakeSpread,
        snowflake::{SnowflakeGenerator, SnowflakeNode, Twitter},
    },
    storage::{ColumnOn, Dialect, Found, StoredValue, Stores},
};
use uuid::Uuid;

use crate::BATCH;

/// How fast keys come in, by the clock that they are made with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Arrival {
    /// One in 6 ms: two million take 200 minutes, in which version 1's low time wraps 28 times.
    Steady,
    /// 50 a millisecond.
    Burst,
    /// 1,000 a millisecond.
    Flood,
    /// The key has no time.
    Any,
}

pub(crate) const BOTH: &[Arrival] = &[Arrival::Steady, Arrival::Burst];
pub(crate) const ANY: &[Arrival] = &[Arrival::Any];

impl Arrival {
    /// Returns the milliseconds from the first key to this one.
    fn millis(self, number: u64) -> u64 {
        match self {
            Self::Steady | Self::Any => number * 6,
            Self::Burst => number / 50,
            Self::Flood => number / 1000,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Steady => ", 1 in 6 ms",
            Self::Burst => ", 50 a ms",
            Self::Flood => ", 1000 a ms",
            Self::Any => "",
        }
    }
}

/// The key of a row, as it is bound.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    /// The database makes it.
    Auto,
    Integer(i64),
    Uuid(Uuid),
    Bytes(Vec<u8>),
    Text(String),
}

/// Returns what a column stores for a key, as a value to bind.
fn bound<C, D, R>(raw: R) -> Value
where
    C: ColumnOn<D> + Stores<R>,
    D: Dialect,
    R: RawKey,
{
    match C::encode(raw).found() {
        Found::Integer(integer) => Value::Integer(integer),
        Found::Bytes(bytes) => of_bytes(bytes, C::TYPE),
        found => unreachable!("no case stores {found:?}"),
    }
}

fn of_bytes(bytes: &[u8], declared: &str) -> Value {
    if declared == "uuid" {
        // PostgreSQL wants the type as well; the bytes are these.
        return Value::Uuid(Uuid::from_slice(bytes).expect("a uuid column stores 16 bytes"));
    }
    match str::from_utf8(bytes) {
        Ok(text) if is_text(declared) => Value::Text(text.to_owned()),
        _ => Value::Bytes(bytes.to_vec()),
    }
}

/// Whether a column of this declaration is given characters: MariaDB's `UUID` is, too.
fn is_text(declared: &str) -> bool {
    let declared = declared.to_ascii_uppercase();
    declared.contains("CHAR") || declared.contains("TEXT") || declared == "UUID"
}

type Keys = Box<dyn FnMut() -> Value>;

/// A key in a column.
pub(crate) struct Case {
    key: &'static str,
    /// The column's type in the `CREATE TABLE`.
    pub(crate) declared: &'static str,
    /// At which rates it is loaded.
    pub(crate) arrivals: &'static [Arrival],
    /// Whether each statement's rows are sorted by key, as a unit of work does.
    pub(crate) sorted: bool,
    make: Box<dyn Fn(Arrival) -> Keys>,
}

impl Case {
    /// A key that the database makes.
    pub(crate) fn automatic(key: &'static str, declared: &'static str) -> Self {
        Self {
            key,
            declared,
            arrivals: ANY,
            sorted: false,
            make: Box::new(|_| Box::new(|| Value::Auto)),
        }
    }

    /// A scheme's keys in a column, strictly rising.
    pub(crate) fn of<S, C, D>(key: &'static str, arrivals: &'static [Arrival]) -> Self
    where
        S: Slotted<Node: DefaultNode> + 'static,
        D: Dialect,
        C: ColumnOn<D> + Stores<S::Raw> + 'static,
    {
        Self::made::<_, C, D>(key, arrivals, |clock| {
            OrderedGenerator::<S, _, _>::with_node(
                DefaultNode::DEFAULT,
                clock,
                ThreadEntropy,
                Policy::DEFAULT,
            )
        })
    }

    /// The Snowflakes of node 1.
    pub(crate) fn snowflake<C, D>() -> Self
    where
        D: Dialect,
        C: ColumnOn<D> + Stores<i64> + 'static,
    {
        Self::made::<_, C, D>("Snowflake", BOTH, |clock| {
            let node = SnowflakeNode::<Twitter>::new(1).expect("nodes go to 1023");
            SnowflakeGenerator::with_node(node, clock, ThreadEntropy, Policy::DEFAULT)
        })
    }

    /// The Snowflakes of node 1, spread over 16 buckets.
    pub(crate) fn snowflake_spread<C, D>() -> Self
    where
        D: Dialect,
        C: ColumnOn<D> + Stores<i64> + 'static,
    {
        Self::made::<_, C, D>("Snowflake over 16 buckets,", BOTH, |clock| {
            let node = SnowflakeNode::new(1).expect("nodes go to 255");
            OrderedGenerator::<SnowflakeSpread<16>, _, _>::with_node(
                node,
                clock,
                ThreadEntropy,
                Policy::DEFAULT,
            )
        })
    }

    /// A generator's keys in a column.
    pub(crate) fn made<G, C, D>(
        key: &'static str,
        arrivals: &'static [Arrival],
        generator: fn(&'static ManualClock) -> G,
    ) -> Self
    where
        G: Generator + 'static,
        D: Dialect,
        C: ColumnOn<D> + Stores<<G::Scheme as Scheme>::Raw> + 'static,
    {
        Self {
            key,
            declared: C::TYPE,
            arrivals,
            sorted: false,
            make: Box::new(move |arrival| {
                let mut clock = Steps::new(arrival);
                let keys = generator(clock.clock);
                Box::new(move || {
                    clock.step();
                    let key = keys.try_generate().expect("the simulated clock is fine");
                    bound::<C, D, _>(key.into_raw())
                })
            }),
        }
    }

    /// Random keys in a column: version 4.
    pub(crate) fn random<C, D>() -> Self
    where
        D: Dialect,
        C: ColumnOn<D> + Stores<Uuid> + 'static,
    {
        Self {
            key: "v4",
            declared: C::TYPE,
            arrivals: ANY,
            sorted: false,
            make: Box::new(|_| Box::new(|| bound::<C, D, _>(Uuid::new_v4()))),
        }
    }

    /// Version 7 with a random tail, as generators make it that do not count inside the
    /// millisecond.
    pub(crate) fn random_tail<C, D>(arrivals: &'static [Arrival], sorted: bool) -> Self
    where
        D: Dialect,
        C: ColumnOn<D> + Stores<Uuid> + 'static,
    {
        Self {
            key: if sorted {
                "v7 of random tail, statements sorted"
            } else {
                "v7 of random tail"
            },
            declared: C::TYPE,
            arrivals,
            sorted,
            make: Box::new(|arrival| {
                let mut clock = Steps::new(arrival);
                Box::new(move || {
                    let millis = clock.step();
                    let random = Uuid::new_v4().into_bytes();
                    let mut tail = [0; 10];
                    tail.copy_from_slice(&random[6..]);
                    let key = uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid();
                    bound::<C, D, _>(key)
                })
            }),
        }
    }

    /// Keys of several nodes that take turns, a statement each, all of the same stretch of time. A
    /// node's own keys rise; the node comes first in a key, or it is version 7.
    pub(crate) fn of_nodes(nodes: u32, node_first: bool, declared: &'static str) -> Self {
        let (nodes, batch) = (u64::from(nodes), u64::from(BATCH));
        Self {
            key: if node_first {
                "node first"
            } else {
                "v7 of several nodes"
            },
            declared,
            arrivals: BOTH,
            sorted: false,
            make: Box::new(move |arrival| {
                let mut number = 0;
                Box::new(move || {
                    let node = number / batch % nodes;
                    let own = number / (batch * nodes) * batch + number % batch;
                    number += 1;
                    let millis = START_MILLIS + arrival.millis(own);
                    let mut key = Uuid::new_v4().into_bytes();
                    if node_first {
                        key[..8].copy_from_slice(&node.to_be_bytes());
                        key[8..].copy_from_slice(&((millis << 16) | (own & 0xffff)).to_be_bytes());
                    } else {
                        // 48 bits of time; what is left of version 4 tells nodes apart.
                        key[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
                    }
                    of_bytes(&key, declared)
                })
            }),
        }
    }

    pub(crate) fn name(&self, arrival: Arrival) -> String {
        // The first word of the declaration tells columns apart; collations do not.
        let declared = self.declared.split([' ']).next().unwrap_or_default();
        format!("{} {declared}{}", self.key, arrival.name())
    }

    pub(crate) fn keys(&self, arrival: Arrival) -> Keys {
        (self.make)(arrival)
    }
}

/// A clock that a key moves on.
struct Steps {
    clock: &'static ManualClock,
    arrival: Arrival,
    number: u64,
}

/// 2026-01-01T00:00:00Z.
const START_MILLIS: u64 = 1_767_225_600_000;

impl Steps {
    fn new(arrival: Arrival) -> Self {
        Self {
            // A clock a table, for as long as the bench runs.
            clock: Box::leak(Box::new(ManualClock::at_unix_millis(START_MILLIS))),
            arrival,
            number: 0,
        }
    }

    /// Moves on to the next key and returns its time, in milliseconds since 1970.
    fn step(&mut self) -> u64 {
        let millis = START_MILLIS + self.arrival.millis(self.number);
        self.clock.set_unix_millis(millis);
        self.number += 1;
        self.clock.now().as_unix_millis()
    }
}
