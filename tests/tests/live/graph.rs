//! Random graphs of fifty tables, with foreign keys that the database checks row by row.
//!
//! A graph is decided by a seed when this is compiled, since an entity's parents are constants; its
//! rows, what they refer to, and the order of adding are drawn when it runs.

use ordid::{
    Fields, KeyOf, KeyType, OrderedKey, Sink,
    entity::Parent,
    entropy::{Entropy, SeededEntropy},
    key::KeyBytes,
    uuid::Uuid,
};
use ordid_sqlx::UnitOfWork;
use sqlx::{AssertSqlSafe, Pool, Sqlite, query_scalar, raw_sql};

use crate::Outcome;

const TABLES: usize = 50;

/// The foreign keys of each table.
const UP: [&str; 3] = ["a", "b", "c"];

type Keys = [Option<Uuid>; UP.len()];

/// A row of a graph's table.
struct Row<const SEED: u64, const TABLE: usize> {
    id: Uuid,
    up: Keys,
}

impl<const SEED: u64, const TABLE: usize> OrderedKey for Row<SEED, TABLE> {
    type Field = Uuid;
    const SCHEMA: Option<&'static str> = None;
    const TABLE: &'static str = NAMES[TABLE];
    const KEY_COLUMN: &'static str = "id";
    const COLUMNS: &'static [&'static str] = &["id", UP[0], UP[1], UP[2]];
    const PARENTS: &'static [Parent] = &[
        to::<SEED>(UP[0], parent(SEED, TABLE, 0)),
        to::<SEED>(UP[1], parent(SEED, TABLE, 1)),
        to::<SEED>(UP[2], parent(SEED, TABLE, 2)),
    ];

    fn key(&self) -> Option<Uuid> {
        Some(self.id)
    }

    fn assign_key(&mut self, key: Uuid) {
        self.id = key;
    }

    fn parents(&self, visit: &mut dyn FnMut(usize, KeyBytes)) {
        for (column, up) in self.up.into_iter().enumerate() {
            up.into_iter()
                .for_each(|up| visit(column, KeyBytes::of(up)));
        }
    }
}

impl<S: Sink<Uuid> + Sink<Option<Uuid>>, const SEED: u64, const TABLE: usize> Fields<S>
    for Row<SEED, TABLE>
{
    fn write(&self, sink: &mut S) {
        sink.put(&self.id);
        self.up.iter().for_each(|up| sink.put(up));
    }

    fn write_key(key: KeyOf<Self>, sink: &mut S) {
        sink.put(&key);
    }
}

/// Adds a row to the table of a number.
type Add = fn(&mut UnitOfWork<Sqlite>, Uuid, Keys);

fn add<const SEED: u64, const TABLE: usize>(work: &mut UnitOfWork<Sqlite>, id: Uuid, up: Keys) {
    work.add(Row::<SEED, TABLE> { id, up });
}

macro_rules! tables {
    ($($number:literal)*) => {
        const NAMES: [&str; TABLES] = [$(concat!("t", $number)),*];

        /// A foreign key to the table of a number.
        const fn to<const SEED: u64>(column: &'static str, table: usize) -> Parent {
            match table {
                $($number => Parent::by_entity::<Option<Uuid>, Row<SEED, $number>>(column),)*
                _ => panic!("no such table"),
            }
        }

        const fn adds<const SEED: u64>() -> [Add; TABLES] {
            [$(add::<SEED, $number>),*]
        }
    };
}

tables! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24
    25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49
}

/// SplitMix64's mixing of bits.
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A number below another, of a random one.
#[expect(clippy::cast_possible_truncation, reason = "it is below a `usize`")]
const fn below(bound: usize, random: u64) -> usize {
    (random % bound as u64) as usize
}

/// The table at a place of the graph's own order. 7 has no factor in common with 50.
const fn table_at(seed: u64, place: usize) -> usize {
    (place * 7 + below(TABLES, mix(seed))) % TABLES
}

/// The table that a foreign key refers to: itself, or one before it in the graph's own order.
const fn parent(seed: u64, table: usize, column: usize) -> usize {
    let mut place = 0;
    while table_at(seed, place) != table {
        place += 1;
    }
    let random = mix(seed ^ mix((table * UP.len() + column) as u64 + 1));
    if place == 0 || random.is_multiple_of(4) {
        return table;
    }
    table_at(seed, below(place, random >> 8))
}

/// Puts a list into random order.
fn shuffle<T>(list: &mut [T], random: &mut impl FnMut(usize) -> usize) {
    for last in (1..list.len()).rev() {
        list.swap(last, random(last + 1));
    }
}

async fn flushed<const SEED: u64>(pool: &Pool<Sqlite>) -> Outcome {
    let entropy = SeededEntropy::new(SEED);
    let mut random = |bound: usize| {
        below(
            bound,
            entropy.next_u64().expect("seeded entropy does not end"),
        )
    };
    for (table, name) in NAMES.iter().enumerate() {
        let up: String = (0..UP.len())
            .map(|column| {
                let parent = NAMES[parent(SEED, table, column)];
                format!(", {} BLOB REFERENCES {parent} (id)", UP[column])
            })
            .collect();
        let sql = format!("CREATE TABLE {name} (id BLOB NOT NULL PRIMARY KEY{up}) WITHOUT ROWID");
        raw_sql(AssertSqlSafe(sql)).execute(pool).await?;
    }

    for _ in 0..4 {
        // A row refers to rows before it, so there is no circle; its key tells nothing of that.
        let mut keys = vec![Uuid::nil(); TABLES * 30];
        Uuid::fill(&mut keys);
        shuffle(&mut keys, &mut random);
        let mut rows = Vec::new();
        let mut made: Vec<Vec<Uuid>> = vec![Vec::new(); TABLES];
        for place in 0..TABLES {
            let table = table_at(SEED, place);
            for _ in 0..random(31) {
                let id = keys.pop().expect("thirty a table");
                let up = std::array::from_fn(|column| {
                    let parents = &made[parent(SEED, table, column)];
                    let chosen = random(parents.len() + 1);
                    parents.get(chosen).copied()
                });
                rows.push((table, id, up));
                made[table].push(id);
            }
        }
        shuffle(&mut rows, &mut random);
        let adds = adds::<SEED>();
        let mut work = UnitOfWork::new();
        for (table, id, up) in &rows {
            adds[*table](&mut work, *id, *up);
        }
        let before = count(pool).await?;
        assert_eq!(work.flush(pool).await?.rows(), rows.len());
        assert_eq!(count(pool).await? - before, i64::try_from(rows.len())?);
    }
    let dangling: Vec<String> = query_scalar("SELECT \"table\" FROM pragma_foreign_key_check")
        .fetch_all(pool)
        .await?;
    assert!(dangling.is_empty(), "{dangling:?}");
    Ok(())
}

/// The rows of all tables.
async fn count(pool: &Pool<Sqlite>) -> Result<i64, sqlx::Error> {
    let counts = NAMES.map(|name| format!("(SELECT COUNT(*) FROM {name})"));
    query_scalar(AssertSqlSafe(format!("SELECT {}", counts.join(" + "))))
        .fetch_one(pool)
        .await
}

/// Fifty tables with 150 foreign keys; a wrong order anywhere is refused by the database.
pub async fn any_graph_goes_in_parents_first(pool: Pool<Sqlite>) -> Outcome {
    flushed::<1>(&pool).await?;
    for name in NAMES {
        // Not in the order of the foreign keys, so without checking them.
        let sql = format!("PRAGMA foreign_keys = OFF; DROP TABLE {name}; PRAGMA foreign_keys = ON");
        raw_sql(AssertSqlSafe(sql)).execute(&pool).await?;
    }
    flushed::<2>(&pool).await
}

/// The test above could not fail were the keys not checked: a row before its parent is refused.
pub async fn a_row_before_its_parent_is_refused(pool: Pool<Sqlite>) -> Outcome {
    raw_sql("CREATE TABLE t0 (id BLOB PRIMARY KEY, a BLOB REFERENCES t0 (id)) WITHOUT ROWID")
        .execute(&pool)
        .await?;
    let refused = raw_sql("INSERT INTO t0 VALUES (x'01', x'02')")
        .execute(&pool)
        .await;
    assert!(
        refused
            .unwrap_err()
            .as_database_error()
            .is_some_and(|it| it.is_foreign_key_violation())
    );
    Ok(())
}
