//! The column tests of an engine, for any database, dialect and key type.

use std::{fmt::Debug, marker::PhantomData};

use ordid::{
    storage::{ColumnOn, Dialect},
    uuid::Uuid,
};
use ordid_sql::StatementDialect as _;
use ordid_sqlx::{Backend, Entity, StoredAs};
use sqlx::Pool;

use crate::{
    Outcome,
    changes::{
        self, Changes,
        deferred::{Engineer, Room, deferred_circles_wait_for_commit},
    },
    database::{Binds, Gets, Keeps, Live, Question, Reads, Test, get, get_unchecked, read, tests},
    flush::{self, Flushes, KeyedReading, Reading},
    keys::{Keys, Number, PACES, short_texts},
    own::{Node, rows_of_themselves},
};

/// A key type with a column on this database, as this dialect declares it.
pub trait Key<DB: Live, D: Dialect>: Keys + StoredAs<DB, Column: ColumnOn<D>> + Debug {}

impl<K, DB: Live, D: Dialect> Key<DB, D> for K where
    K: Keys + StoredAs<DB, Column: ColumnOn<D>> + Debug
{
}

/// The columns of a database, as a dialect declares them.
pub struct Columns<DB, D>(PhantomData<fn() -> (DB, D)>);

/// The placeholders of so many rows.
fn rows<DB: Live>(rows: usize, width: usize) -> String {
    let mut sql = String::new();
    for row in 0..rows {
        sql += if row == 0 { "(" } else { ", (" };
        for column in 0..width {
            sql += if column == 0 { "" } else { ", " };
            <DB as Backend>::Dialect::push_placeholder(&mut sql, row * width + column + 1);
        }
        sql += ")";
    }
    sql
}

impl<DB: Live, D: Dialect> Columns<DB, D> {
    pub async fn execute(pool: &Pool<DB>, sql: &str) -> Result<(), sqlx::Error> {
        DB::script(pool, sql).await
    }

    /// Makes a table whose key has the column type that the key type declares.
    pub async fn create<K: Key<DB, D>>(pool: &Pool<DB>, table: &str) -> Result<(), sqlx::Error> {
        let key = <K::Column as ColumnOn<D>>::primary_key("id");
        let column = <K::Column as ColumnOn<D>>::TYPE;
        let table = D::quote(table);
        let sql =
            format!("CREATE TABLE {table} ({key}, other {column} NULL, position INTEGER NOT NULL)");
        DB::script(pool, &sql).await
    }

    pub async fn insert<K: Copy>(
        pool: &Pool<DB>,
        table: &str,
        keys: &[(usize, K)],
    ) -> Result<(), sqlx::Error>
    where
        DB: Binds<K>,
    {
        for chunk in keys.chunks(5_000) {
            let values = rows::<DB>(chunk.len(), 2);
            let table = D::quote(table);
            let sql = format!("INSERT INTO {table} (id, position) VALUES {values}");
            let mut insert = Question::<DB>::new(sql);
            for (position, key) in chunk {
                insert = insert.bind(*key).bind(i32::try_from(*position).unwrap());
            }
            insert.ask(pool).await?;
        }
        Ok(())
    }

    /// What is bound comes back: through prepared statements, kept and not kept, and through the
    /// unprepared protocol; `NULL` is `None`; a key is found by its literal, and the database's own text
    /// of it is the literal's inside. `own` is an SQL expression over `id` that gives it.
    pub async fn round_trip<K: Key<DB, D>>(pool: Pool<DB>, own: &'static str) -> Outcome
    where
        DB: Binds<K> + Binds<Option<K>> + Gets<K> + Gets<Option<K>>,
    {
        let table = format!("round_trip_{}", K::NAME).to_lowercase();
        Self::create::<K>(&pool, &table).await?;
        // Of one generator: two of a node would repeat each other.
        let rising = K::rising(3);
        let (first, second, third) = (rising[0], rising[1], rising[2]);
        let values = rows::<DB>(2, 3);
        let sql = format!("INSERT INTO {table} (id, other, position) VALUES {values}");
        let insert = Question::<DB>::new(sql).bind(first).bind(None::<K>).bind(0);
        let insert = insert.bind(second).bind(Some(first)).bind(1);
        insert.ask(&pool).await?;

        let select = format!("SELECT id, other FROM {table} ORDER BY position");
        let kept = || Question::<DB>::new(select.clone());
        for rows in [
            kept().ask(&pool).await?,
            kept().not_kept().ask(&pool).await?,
            DB::unprepared(&pool, select.clone()).await?,
        ] {
            let read: Vec<(K, Option<K>)> = rows
                .iter()
                .map(|row| Ok((get::<DB, _>(row, 0)?, get::<DB, _>(row, 1)?)))
                .collect::<Result<_, sqlx::Error>>()?;
            assert_eq!(read, [(first, None), (second, Some(first))]);
            // As `query!` reads: without a look at the column's type.
            let unchecked: K = get_unchecked::<DB, _>(&rows[1], 1)?;
            assert_eq!(unchecked, first);
        }

        let wild: Vec<(usize, K)> = K::wild(50).into_iter().enumerate().collect();
        Self::insert(&pool, &table, &wild).await?;
        let placeholder = rows::<DB>(1, 1);
        let form = <K::Column as ColumnOn<D>>::LITERAL;
        for key in wild.into_iter().map(|(_, key)| key).chain([first, second]) {
            let literal = <K::Column as ColumnOn<D>>::literal(key.to_raw());
            let find = |value| format!("SELECT {own}, id FROM {table} WHERE id = {value}");
            let found = Question::<DB>::new(find(&placeholder)).bind(key);
            let mut rows = found.ask(&pool).await?;
            rows.extend(DB::unprepared(&pool, find(&literal)).await?);
            assert_eq!(rows.len(), 2, "{literal}");
            for row in &rows {
                let found: K = get::<DB, _>(row, 1)?;
                assert_eq!(found, key);
                let text: String = get::<DB, _>(row, 0)?;
                assert_eq!(format!("{}{text}{}", form.before, form.after), literal);
            }
        }
        // And a script can write it.
        let literal = <K::Column as ColumnOn<D>>::literal(third.to_raw());
        let script = format!("INSERT INTO {table} (id, position) VALUES ({literal}, 2)");
        Self::execute(&pool, &script).await?;
        let sql = format!("SELECT id FROM {table} WHERE id = {placeholder}");
        let rows = Question::<DB>::new(sql).bind(third).ask(&pool).await?;
        let read: K = get::<DB, _>(&rows[0], 0)?;
        assert_eq!(read, third);
        Ok(())
    }

    /// `ORDER BY` of 100,000 keys is the order in which they were generated, however they were
    /// inserted, and of others it is the order of the keys.
    pub async fn order<K: Key<DB, D>>(pool: Pool<DB>) -> Outcome
    where
        DB: Binds<K> + Gets<K>,
    {
        let table = format!("order_{}", K::NAME).to_lowercase();
        Self::create::<K>(&pool, &table).await?;
        let rising = K::rising(100_000);
        assert!(rising.is_sorted_by(|left, right| left < right));
        let mut keys = rising;
        keys.extend(K::wild(1_000));
        keys.sort_unstable();
        keys.dedup();
        let mut rows: Vec<(usize, K)> = keys.into_iter().enumerate().collect();
        shuffle(&mut rows);
        Self::insert(&pool, &table, &rows).await?;
        let sql = format!("SELECT id, position FROM {table} ORDER BY id");
        let read = Question::<DB>::new(sql).ask(&pool).await?;
        assert_eq!(read.len(), rows.len());
        assert!(rows.len() > 100_400);
        rows.sort_by_key(|(position, _)| *position);
        for (row, (position, key)) in read.iter().zip(&rows) {
            let read: (K, i32) = (get::<DB, _>(row, 0)?, get::<DB, _>(row, 1)?);
            assert_eq!(read, (*key, i32::try_from(*position).unwrap()));
        }
        Ok(())
    }

    /// Numbers that are no keys, but that a column of `i64` may hold: by their literals, and in order.
    pub async fn signed_order(pool: Pool<DB>) -> Outcome
    where
        Number: Key<DB, D>,
    {
        Self::create::<Number>(&pool, "signed").await?;
        let rising = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX];
        for (position, integer) in rising.iter().enumerate().rev() {
            let literal = <<Number as StoredAs<DB>>::Column as ColumnOn<D>>::literal(*integer);
            let sql = format!("INSERT INTO signed (id, position) VALUES ({literal}, {position})");
            Self::execute(&pool, &sql).await?;
            let sql = format!("SELECT position FROM signed WHERE id = {literal}");
            let found: Vec<(i32,)> = read(&pool, &sql).await?;
            assert_eq!(found, [(i32::try_from(position).unwrap(),)], "{literal}");
        }
        let read: Vec<(i64,)> = read(&pool, "SELECT id FROM signed ORDER BY id").await?;
        assert_eq!(read, rising.map(|integer| (integer,)));
        Ok(())
    }

    /// Counts adjacent pairs out of order when 2,000 generated keys are sorted by the column type; an
    /// error where the database takes two keys for one.
    pub async fn inversions(
        pool: &Pool<DB>,
        table: &str,
        column: &str,
        keys: &[String],
    ) -> Result<usize, sqlx::Error>
    where
        DB: for<'k> Binds<&'k str>,
    {
        let sql = format!("CREATE TABLE {table} (id {column} NOT NULL, position INTEGER)");
        Self::execute(pool, &sql).await?;
        let rows: Vec<(usize, &str)> = keys.iter().map(|key| &key[..]).enumerate().collect();
        Self::insert(pool, table, &rows).await?;
        let sql = format!("SELECT position FROM {table} ORDER BY id");
        let positions: Vec<(i32,)> = read(pool, &sql).await?;
        let pairs = positions.windows(2);
        Ok(pairs.filter(|pair| pair[0] > pair[1]).count())
    }

    /// Keys of 22 characters keep their order in a column of one collation, and lose it in another.
    pub async fn only_one_keeps_order(pool: Pool<DB>, good: &str, bad: &str) -> Outcome
    where
        DB: for<'k> Binds<&'k str>,
    {
        for micros in PACES {
            let keys = short_texts(micros);
            let kept = Self::inversions(&pool, &format!("good_{micros}"), good, &keys).await?;
            assert_eq!(kept, 0);
            let lost = Self::inversions(&pool, &format!("bad_{micros}"), bad, &keys).await?;
            assert!(lost > 100, "{lost} of keys each {micros} µs");
        }
        Ok(())
    }
}

fn shuffle<T>(rows: &mut [T]) {
    // Fisher and Yates, by random keys: no generator is wanted for the tests alone.
    for last in (1..rows.len()).rev() {
        let random = Uuid::new_v4().as_u128() % (last as u128 + 1);
        rows.swap(last, usize::try_from(random).unwrap());
    }
}

/// The tests of flushes on any database.
pub fn of_work<DB>() -> Vec<(String, Test<DB>)>
where
    DB: Flushes + Changes + Keeps<Node> + Keeps<Room> + Keeps<Engineer> + Reads<Room>,
    Reading: Entity<DB>,
    KeyedReading: Entity<DB>,
{
    let flushes = flush::tests::<DB>().map(|(name, test)| (name.to_owned(), test));
    let mut tests = Vec::from(flushes);
    let changes = changes::tests::<DB>();
    tests.extend(changes.map(|(name, test)| (format!("changes_{name}"), test)));
    tests.extend(tests![rows_of_themselves].map(|(name, test)| (name.to_owned(), test)));
    if DB::Dialect::DEFERS {
        let deferred =
            tests!["changes_deferred_circles_wait_for_commit": deferred_circles_wait_for_commit];
        tests.extend(deferred.map(|(name, test)| (name.to_owned(), test)));
    }
    tests
}

/// Adds the tests of columns by their key types: what is bound comes back, and `ORDER BY` is the keys' order.
macro_rules! columns {
    ($add:ident; $($key:ident = $name:literal, $own:literal;)+) => {$(
        $add!(concat!($name, "_comes_back"), |pool| Columns::round_trip::<$key>(pool, $own));
        $add!(concat!($name, "_keeps_order"), Columns::order::<$key>);
    )+};
}

/// Adds the columns of texts with a fixed number of characters, which are the same on each engine.
macro_rules! char_columns {
    ($add:ident) => {
        columns! {
            $add;
            WideChar = "char32", "id";
            Base32 = "char26", "id";
            Short = "char22", "id";
            Push = "char20", "id";
        }
    };
}

/// Adds the tests of rows that are found by keys of these types.
macro_rules! finds {
    ($add:ident; $($key:ident),+ $(,)?) => {$(
        $add!(concat!("changes_find_keys_of_", stringify!($key)), |pool| {
            keys_find_their_rows::<_, $key>(pool, Columns::create::<$key>)
        });
    )+};
}

pub(crate) use {char_columns, columns, finds};
