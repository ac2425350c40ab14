//! The cells: every scheme in every column that stores its raw key.

use ordid::{
    clock::ManualClock,
    entropy::ThreadEntropy,
    generator::{Generator, OrderedGenerator, Policy, Rollback, Slotted},
    key::{RawKey, Scheme},
    layout::Comparison,
    scheme::{self, snowflake::SnowflakeNode},
    storage::{
        ColumnOn, Dialect, Stores,
        column::*,
        dialect::{Babelfish, MariaDb, MySql, Oracle, Postgres, SqlServer, Sqlite},
    },
    uuid,
};

use super::{Engine, Proof};

/// A scheme's keys in a column of an engine.
pub struct Cell {
    /// The scheme's name.
    pub scheme: &'static str,
    /// The engine.
    pub engine: Engine,
    /// The column's name.
    pub column: &'static str,
    /// What the compile-time check says: whether the column keeps the scheme's order.
    pub is_ordered: bool,
    /// How the column is declared as a primary key named `id`.
    pub declaration: String,
    comparison: Comparison,
    is_guid: bool,
    keys: Box<dyn Fn(usize) -> Vec<Key> + Send + Sync>,
    any: fn(usize) -> Vec<Key>,
}

/// A key, as SQL writes it and as the column compares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The column's literal.
    pub literal: String,
    /// Its sort key.
    pub sort_key: Vec<u8>,
}

impl Cell {
    /// What a person calls it: `uuid_v7 in MariaDB's binary16`.
    pub fn name(&self) -> String {
        format!(
            "{} in {}'s {}",
            self.scheme,
            self.engine.name(),
            self.column
        )
    }

    /// Makes so many keys, in the order in which a generator makes them.
    pub fn keys(&self, count: usize) -> Vec<Key> {
        (self.keys)(count)
    }

    /// Returns how the order of this cell is proven, if its engine can be asked or not.
    pub fn proof(&self, is_asked: bool) -> Proof {
        match self.engine {
            Engine::Oracle if is_asked => Proof::Emulation,
            _ if is_asked => Proof::Live,
            Engine::SqlServer if self.is_guid => Proof::SqlGuid,
            _ => Proof::Arithmetic,
        }
    }

    /// Holds what the compile-time check says against the sort keys of so many keys: they rise where
    /// the column is ordered. Where it is refused, either they do not, or there are other keys of the
    /// scheme, of other generators, whose order is not the column's.
    ///
    /// # Errors
    ///
    /// Says which keys are out of order, or that a refused column would have kept it.
    pub fn holds_in_arithmetic(&self, count: usize) -> Result<(), String> {
        let keys = self.keys(count);
        let fall = |keys: &[Key]| {
            let mut pairs = keys.windows(2);
            pairs.position(|pair| pair[0].sort_key >= pair[1].sort_key)
        };
        let falls = fall(&keys).or_else(|| {
            let any = || (self.any)(count);
            (!self.is_ordered).then(any).and_then(|any| fall(&any))
        });
        match (self.is_ordered, falls) {
            (true, None) | (false, Some(_)) => Ok(()),
            (true, Some(first)) => Err(format!(
                "{}: {} is not below {}",
                self.name(),
                keys[first].literal,
                keys[first + 1].literal
            )),
            (false, None) => Err(format!(
                "{}: order is refused, yet {count} keys and any others rise under {:?}",
                self.name(),
                self.comparison
            )),
        }
    }
}

/// Makes a scheme's raw keys, one after the other, under a simulated clock.
type Keys<R> = Box<dyn FnMut() -> R>;

/// A clock that keys move on: 50 a millisecond, and now and then a leap in which low parts of the
/// time come round: of 7 minutes after a hundred keys, of a day and a bit after a thousand.
fn clock(epoch_millis: i64) -> (&'static ManualClock, impl FnMut()) {
    // 2022-02-22T19:22:22Z, when every layout has time left whose epoch is not later.
    let epoch = u64::try_from(epoch_millis).unwrap_or(0);
    let start = 1_645_557_742_000.max(epoch + 86_400_000);
    // One for each cell that is looked at.
    let clock: &ManualClock = Box::leak(Box::new(ManualClock::at_unix_millis(start)));
    let (mut millis, mut number) = (start, 0_u64);
    let step = move || {
        number += 1;
        millis += match number {
            _ if number.is_multiple_of(1_000) => 90_061_000,
            _ if number.is_multiple_of(100) => 430_000,
            _ if number.is_multiple_of(50) => 1,
            _ => 0,
        };
        clock.set_unix_millis(millis);
    };
    (clock, step)
}

/// The keys of a scheme that counts, of one node.
fn counted<S: Slotted>(node: S::Node) -> Keys<S::Raw> {
    let (clock, mut step) = clock(S::SCALE.epoch_unix_millis());
    // Layouts of few keys a unit of time wait for the clock, which only keys move on: let them be
    // ahead of it instead.
    let policy = Policy {
        overflow: ordid::generator::Overflow::Advance {
            max: std::time::Duration::from_secs(3_600),
        },
        rollback: Rollback::HoldThenError {
            max: std::time::Duration::from_secs(3_600),
        },
    };
    let keys = OrderedGenerator::<S, _, _>::with_node(node, clock, ThreadEntropy, policy);
    Box::new(move || {
        step();
        let key = keys.try_generate().expect("the simulated clock is fine");
        key.into_raw()
    })
}

/// The keys of any other generator.
fn made<G: Generator + 'static>(keys: G) -> Keys<<G::Scheme as Scheme>::Raw> {
    Box::new(move || {
        let key = keys.try_generate().expect("randomness");
        key.into_raw()
    })
}

fn cell<S, C, D>(engine: Engine, keys: impl Fn() -> Keys<S::Raw> + Send + Sync + 'static) -> Cell
where
    S: Scheme,
    D: Dialect,
    C: ColumnOn<D> + Stores<S::Raw>,
{
    Cell {
        scheme: S::NAME,
        engine,
        column: C::NAME,
        is_ordered: S::ORDERS.contains(C::COMPARISON),
        declaration: C::primary_key("id"),
        comparison: C::COMPARISON,
        is_guid: C::TYPE == "uniqueidentifier",
        keys: Box::new(move |count| {
            let mut keys = keys();
            (0..count).map(|_| key::<C, D, _>(keys())).collect()
        }),
        any: |count| {
            let mut raws: Vec<S::Raw> = (0..count).map(|_| S::coerce(random())).collect();
            raws.sort_by(S::cmp);
            raws.dedup();
            raws.into_iter().map(key::<C, D, _>).collect()
        },
    }
}

fn key<C: ColumnOn<D> + Stores<R>, D: Dialect, R: RawKey>(raw: R) -> Key {
    Key {
        literal: <C as ColumnOn<D>>::literal(raw),
        sort_key: C::sort_key(raw).as_ref().to_vec(),
    }
}

/// Any bits.
fn random<R: RawKey>() -> R {
    let mut bytes = R::Bytes::default();
    for byte in bytes.as_mut() {
        // Random in versions 4; the version is not.
        *byte = uuid::Uuid::new_v4().as_bytes()[0];
    }
    R::from_bytes(bytes)
}

/// Pushes a cell for each scheme and column.
macro_rules! push {
    ($cells:ident, [$($scheme:ty = $keys:expr),+ $(,)?], $columns:tt) => {
        $(push!(@scheme $cells, $scheme, $keys, $columns);)+
    };
    (@scheme $cells:ident, $scheme:ty, $keys:expr, {$($dialect:ident: $($column:ident),+;)+}) => {
        $($cells.extend([
            $(cell::<$scheme, $column, $dialect>(Engine::$dialect, || $keys)),+
        ]);)+
    };
}

/// Returns all cells.
///
/// # Panics
///
/// Never: node 1 is in the range of every layout.
pub fn cells() -> Vec<Cell> {
    fn numbered<L: scheme::snowflake::SnowflakeLayout + 'static>() -> Keys<i64> {
        counted::<scheme::Snowflake<L>>(SnowflakeNode::new(1).expect("in the range"))
    }
    const NODE: scheme::UuidNode = scheme::UuidNode::RANDOM;

    let mut cells = Vec::new();
    push!(
        cells,
        [
            scheme::CombEfCore = counted::<scheme::CombEfCore>(()),
            scheme::CombNHibernate = counted::<scheme::CombNHibernate>(()),
            scheme::CombRtBinary = counted::<scheme::CombRtBinary>(()),
            scheme::CombRtLegacy = counted::<scheme::CombRtLegacy>(()),
            scheme::CombRtPostgreSql = counted::<scheme::CombRtPostgreSql>(()),
            scheme::CombRtSql = counted::<scheme::CombRtSql>(()),
            scheme::NewId = counted::<scheme::NewId>([2, 0x42, 0xac, 0x11, 0, 2]),
            scheme::OrderedText22 = counted::<scheme::OrderedText22>(()),
            scheme::OrderedText22Push = counted::<scheme::OrderedText22Push>(()),
            scheme::OrderedText22Time64 = counted::<scheme::OrderedText22Time64>(()),
            scheme::OrderedText22Time64Push = counted::<scheme::OrderedText22Time64Push>(()),
            scheme::SequentialGuidAsBinary = counted::<scheme::SequentialGuidAsBinary>(()),
            scheme::SequentialGuidAsString = counted::<scheme::SequentialGuidAsString>(()),
            scheme::SequentialGuidAtEnd = counted::<scheme::SequentialGuidAtEnd>(()),
            scheme::Ulid = counted::<scheme::Ulid>(()),
            scheme::UuidCreateSequential = counted::<scheme::UuidCreateSequential>(NODE),
            scheme::UuidV1 = counted::<scheme::UuidV1>(NODE),
            scheme::UuidV1Rearranged = counted::<scheme::UuidV1Rearranged>(NODE),
            scheme::UuidV4 = made(scheme::uuid_v4::UuidV4Generator::new(ThreadEntropy)),
            scheme::UuidV6 = counted::<scheme::UuidV6>(NODE),
            scheme::UuidV7 = counted::<scheme::UuidV7>(()),
            scheme::UuidV7SubMillis = counted::<scheme::UuidV7SubMillis>(()),
            scheme::UuidV7Unguessable = counted::<scheme::UuidV7Unguessable>(()),
            scheme::UuidV8SqlServer = counted::<scheme::UuidV8SqlServer>(()),
        ],
        {
            Postgres: Uuid, Bytea, Text, Char22, Char26;
            MySql: Binary16, Char36, Char22, Char26, Binary16Swapped, Binary16DotNet;
            MariaDb: Binary16, Char36, Char22, Char26, MariaDbUuid, Binary16Swapped, Binary16DotNet;
            Sqlite: Blob, Text, Char22, Char26;
            SqlServer: UniqueIdentifier, UniqueIdentifierPermuted, Binary16;
            Babelfish: BabelfishUniqueIdentifier, Binary16;
            Oracle: Raw16, Raw16DotNet;
        }
    );
    push!(
        cells,
        [
            scheme::Snowflake = numbered::<scheme::snowflake::Twitter>(),
            scheme::Snowflake<scheme::snowflake::Discord> = numbered::<scheme::snowflake::Discord>(),
            scheme::Snowflake<scheme::snowflake::BaiduUid> = numbered::<scheme::snowflake::BaiduUid>(),
            scheme::Snowflake<scheme::snowflake::Sonyflake> = numbered::<scheme::snowflake::Sonyflake>(),
            scheme::Snowflake<scheme::snowflake::SonyflakeV2> =
                numbered::<scheme::snowflake::SonyflakeV2>(),
            scheme::Snowflake<scheme::snowflake::WideSequence> = numbered::<scheme::snowflake::WideSequence>(),
            scheme::Snowflake<scheme::snowflake::Yitter> = numbered::<scheme::snowflake::Yitter>(),
            scheme::Instagram = counted::<scheme::Instagram>(SnowflakeNode::new(1).expect("in the range")),
        ],
        {
            Postgres: BigInt;
            MySql: BigInt;
            MariaDb: BigInt;
            Sqlite: Integer;
            SqlServer: BigInt;
            Babelfish: BigInt;
            Oracle: Number19;
        }
    );
    push!(
        cells,
        [
            scheme::Percona64 = counted::<scheme::Percona64>(1),
            scheme::UuidShort = counted::<scheme::UuidShort>(1),
        ],
        {
            MySql: BigIntUnsigned;
            MariaDb: BigIntUnsigned;
            Oracle: Number20;
        }
    );
    push!(
        cells,
        [scheme::ObjectIdScheme = counted::<scheme::ObjectIdScheme>(())],
        {
            Postgres: Bytea, Text;
            MySql: Binary12;
            MariaDb: Binary12;
            Sqlite: Blob, Text;
            SqlServer: Binary12;
            Oracle: Raw12;
        }
    );
    push!(
        cells,
        [scheme::FirebasePushId = counted::<scheme::FirebasePushId>(())],
        {
            Postgres: Bytea, Text, Char20;
            MySql: Char20;
            MariaDb: Char20;
            Sqlite: Blob, Text, Char20;
        }
    );
    push!(
        cells,
        [
            scheme::OrderedText32 = counted::<scheme::OrderedText32>(()),
            scheme::OrderedText32Push = counted::<scheme::OrderedText32Push>(()),
        ],
        {
            Postgres: Bytea, Text, Char32;
            MySql: Binary24, Char32;
            MariaDb: Binary24, Char32;
            Sqlite: Blob, Text, Char32;
            SqlServer: Binary24;
            Oracle: Raw24;
        }
    );
    cells
}
