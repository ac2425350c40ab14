//! The cells: every scheme in every column that stores its raw key.

use ordid::{
    clock::ManualClock,
    entropy::ThreadEntropy,
    generator::{Generator, OrderedGenerator, Policy, Rollback, Slotted},
    key::{RawKey, Scheme, StaticScheme},
    layout::Comparison,
    scheme::{snowflake::SnowflakeNode, *},
    storage::{ColumnOn, Dialect, Stores, column, dialect},
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

/// The keys of a scheme that does not count.
fn drawn<S: StaticScheme>() -> Keys<S::Raw> {
    Box::new(|| S::generate().into_raw())
}

/// The keys of a scheme that makes them of names, here of numbers.
fn named<S: FromName>() -> Keys<S::Raw> {
    let mut names = 0_u32..;
    Box::new(move || {
        let name = names.next().expect("few keys").to_string();
        S::from_name(&uuid::Uuid::NAMESPACE_OID, name.as_bytes())
    })
}

/// The keys of a layout of `snowflake`, or of Instagram's.
fn numbered<S, L>() -> Keys<S::Raw>
where
    S: Slotted<Node = SnowflakeNode<L>>,
    L: snowflake::SnowflakeLayout,
{
    counted::<S>(SnowflakeNode::new(1).expect("in the range"))
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
            let mut raws: Vec<S::Raw> = (0..count).map(|_| keys()).collect();
            // In the order in which they were made, bucket by bucket: one, for all schemes but those that spread.
            raws.sort_by_key(S::bucket);
            raws.into_iter().map(key::<C, D, _>).collect()
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

/// Pushes the cells of each column: a cell for each of its dialects and each scheme whose raw key it
/// stores.
macro_rules! push_columns {
    ({ $cells:ident } $($name:ident $column:ident: [$($raw:ident)+] $($dialect:ident)+;)+) => {
        $(push_columns!(@raws $cells $column [$($raw)+] [$($dialect)+]);)+
    };
    (@raws $cells:ident $column:ident [$($raw:ident)+] $dialects:tt) => {
        $(push_columns!(@dialects $cells $column $raw $dialects);)+
    };
    (@dialects $cells:ident $column:ident $raw:ident [$($dialect:ident)+]) => {
        $(ordid_core::__for_each_scheme! { push_schemes { $cells $raw $column $dialect } })+
    };
}

macro_rules! push_schemes {
    (
        { $cells:ident $stored:ident $column:ident $dialect:ident }
        $($name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $($text:literal),+;)+
    ) => {
        $(push_schemes!(@if $stored $raw [$($kind)+] $cells $column $dialect $scheme);)+
    };
    (@if Uuid Uuid $($rest:tt)+) => { push_schemes!(@push $($rest)+); };
    (@if i64 i64 $($rest:tt)+) => { push_schemes!(@push $($rest)+); };
    (@if u64 u64 $($rest:tt)+) => { push_schemes!(@push $($rest)+); };
    (@if ObjectId ObjectId $($rest:tt)+) => { push_schemes!(@push $($rest)+); };
    (@if PushId PushId $($rest:tt)+) => { push_schemes!(@push $($rest)+); };
    (@if Key192 Key192 $($rest:tt)+) => { push_schemes!(@push $($rest)+); };
    (@if $stored:ident $raw:ident $($rest:tt)+) => {};
    // Nobody here makes these keys.
    (@push [reserved] $($rest:tt)+) => {};
    (@push [read_only] $($rest:tt)+) => {};
    (@push $kind:tt $cells:ident $column:ident $dialect:ident $scheme:ty) => {
        $cells.push(cell::<$scheme, column::$column, dialect::$dialect>(
            Engine::$dialect,
            || push_schemes!(@keys $kind $scheme),
        ));
    };
    (@keys [counted] $scheme:ty) => { counted::<$scheme>(()) };
    (@keys [spread] $scheme:ty) => { counted::<$scheme>(()) };
    (@keys [spread_node] $scheme:ty) => { numbered::<$scheme, _>() };
    (@keys [random_node] $scheme:ty) => { counted::<$scheme>(UuidNode::RANDOM) };
    (@keys [random_node_first] $scheme:ty) => { counted::<$scheme>(UuidNode::RANDOM) };
    (@keys [snowflake_node] $scheme:ty) => { numbered::<$scheme, _>() };
    (@keys [layout] $scheme:ty) => { numbered::<$scheme, _>() };
    (@keys [node($example:expr, $last:expr)] $scheme:ty) => { counted::<$scheme>($last) };
    (@keys [drawn($bits:literal)] $scheme:ty) => { drawn::<$scheme>() };
    (@keys [named] $scheme:ty) => { named::<$scheme>() };
    (@keys [by_period($bits:literal)] $scheme:ty) => { drawn::<$scheme>() };
}

/// Returns all cells: column by column, in each the schemes in the catalogue's order.
///
/// # Panics
///
/// Never: node 1 is in the range of every layout.
pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    push(&mut cells);
    cells
}

fn push(cells: &mut Vec<Cell>) {
    ordid_core::__for_each_column! { push_columns { cells } }
}
