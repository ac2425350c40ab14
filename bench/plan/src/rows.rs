//! The rows: ten tables of six columns, in five shapes of foreign keys.

use ordid::{KeyField, KeyType, OrderedKey, uuid::Uuid};
use ordid_sql::{Columns, PendingRows, RowEnd, RowSink};

/// How many tables there are.
pub(crate) const TABLES: usize = 10;

/// Takes rows of any kind, and keeps nothing: planning writes none.
pub(crate) struct Nowhere;

impl<T> ordid_core::Sink<T> for Nowhere {
    fn put(&mut self, _: &T) {}
}

impl RowSink for Nowhere {
    type Entity = ();

    fn begin_row(&mut self, _: Columns<'_>) {}

    fn end_row(&mut self) -> RowEnd {
        RowEnd::Taken
    }
}

/// How the tables refer to each other, and how rows were added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    /// Each table refers to the one before. Rows are added in the order of their keys.
    InOrder,
    /// The same, added in any order.
    Shuffled,
    /// Each table refers to itself, every row to an earlier one; added in the order of their keys.
    Tree,
    /// The same, added in any order.
    ShuffledTree,
    /// Tables refer to each other in pairs, each row of the one to a row of the other and back; the
    /// way back can be NULL.
    Cycle,
}

impl Shape {
    pub(crate) const ALL: [Self; 5] = [
        Self::InOrder,
        Self::Shuffled,
        Self::Tree,
        Self::ShuffledTree,
        Self::Cycle,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::InOrder => "in order",
            Self::Shuffled => "shuffled",
            Self::Tree => "tree",
            Self::ShuffledTree => "tree, shuffled",
            Self::Cycle => "cycle of two tables",
        }
    }

    const fn is_shuffled(self) -> bool {
        matches!(self, Self::Shuffled | Self::ShuffledTree)
    }

    /// Returns the table that a table refers to, where there is one.
    fn parent_of(self, table: usize) -> Option<usize> {
        match self {
            Self::InOrder | Self::Shuffled => table.checked_sub(1),
            Self::Tree | Self::ShuffledTree => Some(table),
            Self::Cycle => Some(table ^ 1),
        }
    }

    /// Makes a unit of work of this many rows over all tables. Without keys the rows have theirs still
    /// to be made, and refer to rows of earlier units of work.
    pub(crate) fn build(self, rows: usize, keys: Keys) -> Built {
        let in_table = rows / TABLES;
        let mut made: Vec<Vec<Uuid>> = Vec::new();
        for _ in 0..TABLES {
            made.push((0..in_table).map(|_| Uuid::generate()).collect());
        }
        let mut order: Vec<usize> = (0..in_table).collect();
        if self.is_shuffled() {
            shuffle(&mut order);
        }
        let mut built = Built {
            pending: PendingRows::new(),
            ensure: Vec::new(),
        };
        for table in 0..TABLES {
            let parents = self.parent_of(table).map(|parent| made[parent].as_slice());
            let source = order.iter().map(|&row| Source {
                id: (keys == Keys::Given).then(|| made[table][row]),
                parent: parents.and_then(|parents| match self {
                    // A heap: the root has none.
                    Self::Tree | Self::ShuffledTree => (row > 0).then(|| parents[(row - 1) / 2]),
                    _ => Some(parents[row]),
                }),
                number: row,
            });
            let add = match self {
                Self::InOrder | Self::Shuffled => CHAIN[table],
                Self::Tree | Self::ShuffledTree => TREE[table],
                Self::Cycle => CYCLE[table],
            };
            add(&mut built, &mut source.into_iter());
        }
        built
    }
}

/// Whether rows have their keys before they are planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Keys {
    Given,
    ToBeMade,
}

/// A unit of work.
pub(crate) struct Built {
    pub(crate) pending: PendingRows<Nowhere>,
    ensure: Vec<fn(&mut PendingRows<Nowhere>)>,
}

impl Built {
    /// Makes the keys that are missing, as `UnitOfWork::add` does.
    pub(crate) fn ensure_keys(&mut self) {
        for ensure in &self.ensure {
            ensure(&mut self.pending);
        }
    }
}

/// What a row is made of.
struct Source {
    id: Option<Uuid>,
    parent: Option<Uuid>,
    number: usize,
}

/// A foreign key's field.
trait ParentField: KeyField {
    fn of(key: Option<Uuid>) -> Self;
}

impl<K: KeyType<Raw = Uuid>> ParentField for Option<K> {
    fn of(key: Option<Uuid>) -> Self {
        key.map(key_of)
    }
}

fn key_of<K: KeyType<Raw = Uuid>>(raw: Uuid) -> K {
    K::from_raw(raw).expect("all keys are of version 7")
}

/// Adds the rows of one table.
type Add = fn(&mut Built, &mut dyn ExactSizeIterator<Item = Source>);

macro_rules! keys {
    ($($key:ident)+) => {
        $(#[derive(KeyType)]
        #[ordid(scheme = uuid_v7)]
        struct $key(Uuid);

        impl ParentField for $key {
            fn of(key: Option<Uuid>) -> Self {
                key_of(key.expect("each row has a parent"))
            }
        })+
    };
}

keys! { K0 K1 K2 K3 K4 K5 K6 K7 K8 K9 Outside }

/// Entities, each with its key and its foreign key, and a list of what adds them.
macro_rules! entities {
    ($list:ident: $($entity:ident $table:literal $key:ident -> $parent:ty;)+) => {
        $(#[derive(OrderedKey)]
        #[ordid(table = $table)]
        struct $entity {
            #[ordid(key)]
            id: Option<$key>,
            #[ordid(parent)]
            parent: $parent,
            product: String,
            quantity: i32,
            total: i64,
            note: Option<i64>,
        })+

        const $list: [Add; TABLES] = [
            $(|built, sources| {
                let rows = built.pending.rows_mut::<$entity>();
                rows.reserve_exact(sources.len());
                rows.extend(sources.map(|source| $entity {
                    id: source.id.map(key_of),
                    parent: ParentField::of(source.parent),
                    product: format!("P{:08}", source.number),
                    quantity: 1,
                    total: 1_250,
                    note: None,
                }));
                built.ensure.push(|pending| {
                    for row in pending.rows_mut::<$entity>() {
                        row.ensure_key();
                    }
                });
            }),+
        ];
    };
}

entities! { CHAIN:
    Chain0 "t0" K0 -> Option<Outside>;
    Chain1 "t1" K1 -> K0;
    Chain2 "t2" K2 -> K1;
    Chain3 "t3" K3 -> K2;
    Chain4 "t4" K4 -> K3;
    Chain5 "t5" K5 -> K4;
    Chain6 "t6" K6 -> K5;
    Chain7 "t7" K7 -> K6;
    Chain8 "t8" K8 -> K7;
    Chain9 "t9" K9 -> K8;
}

entities! { TREE:
    Tree0 "t0" K0 -> Option<K0>;
    Tree1 "t1" K1 -> Option<K1>;
    Tree2 "t2" K2 -> Option<K2>;
    Tree3 "t3" K3 -> Option<K3>;
    Tree4 "t4" K4 -> Option<K4>;
    Tree5 "t5" K5 -> Option<K5>;
    Tree6 "t6" K6 -> Option<K6>;
    Tree7 "t7" K7 -> Option<K7>;
    Tree8 "t8" K8 -> Option<K8>;
    Tree9 "t9" K9 -> Option<K9>;
}

entities! { CYCLE:
    Cycle0 "t0" K0 -> K1;
    Cycle1 "t1" K1 -> Option<K0>;
    Cycle2 "t2" K2 -> K3;
    Cycle3 "t3" K3 -> Option<K2>;
    Cycle4 "t4" K4 -> K5;
    Cycle5 "t5" K5 -> Option<K4>;
    Cycle6 "t6" K6 -> K7;
    Cycle7 "t7" K7 -> Option<K6>;
    Cycle8 "t8" K8 -> K9;
    Cycle9 "t9" K9 -> Option<K8>;
}

/// Fisher and Yates, always the same, by Knuth's MMIX generator.
fn shuffle(order: &mut [usize]) {
    let mut state = 1_u64;
    for last in (1..order.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let end = u128::try_from(last).expect("few") + 1;
        let other = (u128::from(state) * end) >> 64;
        order.swap(last, usize::try_from(other).expect("at most `last`"));
    }
}

#[cfg(test)]
mod tests {
    use ordid_sql::EngineProfile;

    use super::*;

    /// Every shape is planned, keys given or not, and all of its rows are in the chunks.
    #[test]
    fn all_shapes_are_planned() {
        use ordid_sql::Action;

        for shape in Shape::ALL {
            for keys in [Keys::Given, Keys::ToBeMade] {
                let mut built = shape.build(1_000, keys);
                built.ensure_keys();
                let plan = built.pending.plan(&EngineProfile::POSTGRES).unwrap();
                let rows = |wanted: fn(&Action) -> bool| -> usize {
                    let chunks = plan.chunks().filter(|chunk| wanted(&chunk.action));
                    chunks.map(|chunk| chunk.rows.len()).sum()
                };
                assert_eq!(rows(|action| *action == Action::Insert), 1_000);
                // Each pair of rows is a cycle, and broken once.
                let broken = shape == Shape::Cycle && keys == Keys::Given;
                let expected = if broken { 500 } else { 0 };
                assert_eq!(
                    rows(|action| *action != Action::Insert),
                    expected,
                    "{shape:?}"
                );
            }
        }
    }
}
