//! What an update leaves, and what an insert of the same entity leaves.

use ordid::{KeyType as _, OrderedKey};
use ordid_sqlx::{Entity, StoredAs, UnitOfWork};
use sqlx::Pool;

use crate::{Outcome, database::Live, keys::Native};

/// A database with columns of many types, which two tables have: they differ in nothing but their names.
pub trait Twins: Live
where
    Native: StoredAs<Self>,
{
    type Wanted: Entity<Self> + OrderedKey<Field = Native>;
    type Changed: Entity<Self> + OrderedKey<Field = Native>;

    /// The columns behind the key, and their types.
    const COLUMNS: &'static [(&'static str, &'static str)];

    /// Where the values of the column `?` differ.
    const DIFFERS: &'static str;

    /// The values of a number.
    fn wanted(id: Native, number: usize) -> Self::Wanted;

    /// The same in the other table.
    fn changed(id: Native, number: usize) -> Self::Changed;
}

/// Implements it: entities are types.
macro_rules! twins {
    ($database:ident, $differs:literal; $($field:ident: $type:ty = $ddl:literal, $value:expr;)+) => {
        #[derive(ordid::OrderedKey)]
        #[ordid(table = "wanted")]
        pub struct Wanted {
            id: crate::keys::Native,
            $($field: $type),+
        }

        #[derive(ordid::OrderedKey)]
        #[ordid(table = "changed")]
        pub struct Changed {
            id: crate::keys::Native,
            $($field: $type),+
        }

        impl crate::changes::twins::Twins for sqlx::$database {
            type Wanted = Wanted;
            type Changed = Changed;

            const COLUMNS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), $ddl)),+];
            const DIFFERS: &'static str = $differs;

            fn wanted(id: crate::keys::Native, number: usize) -> Wanted {
                fn value<T>(number: usize, value: impl Fn(usize) -> T) -> T {
                    value(number)
                }
                Wanted { id, $($field: value(number, $value)),+ }
            }

            fn changed(id: crate::keys::Native, number: usize) -> Changed {
                let Wanted { id, $($field),+ } = Self::wanted(id, number);
                Changed { id, $($field),+ }
            }
        }
    };
}

pub(crate) use twins;

/// Where an `INSERT` of the same rows and an `UPDATE` to them differ, over all columns.
async fn differences<DB: Twins>(pool: &Pool<DB>) -> Result<i64, sqlx::Error>
where
    Native: StoredAs<DB>,
{
    let mut differences = 0;
    for (column, _) in DB::COLUMNS {
        let differs = DB::DIFFERS.replace('?', column);
        let rows = format!("wanted JOIN changed ON wanted.id = changed.id WHERE {differs}");
        differences += DB::count(pool, &rows).await?;
    }
    Ok(differences)
}

/// All types, with and without NULL, also where the column's type is another: what an update
/// leaves is what an insert of the same entity leaves.
pub async fn an_update_leaves_what_an_insert_would<DB: Twins>(pool: Pool<DB>) -> Outcome
where
    Native: StoredAs<DB>,
{
    const ROWS: usize = 5_000;
    for table in ["wanted", "changed"] {
        let columns: String = DB::COLUMNS
            .iter()
            .map(|(name, ddl)| format!(", {name} {ddl}"))
            .collect();
        let sql = format!(
            "CREATE TABLE {table} (id {} NOT NULL PRIMARY KEY{columns}) {}",
            DB::KEY,
            DB::OPTIONS
        );
        DB::script(&pool, &sql).await?;
    }
    let ids: Vec<_> = (0..ROWS).map(|_| Native::generate()).collect();
    let mut work = UnitOfWork::<DB>::new();
    for (number, id) in ids.iter().enumerate() {
        work.add(DB::wanted(*id, number));
        work.add(DB::changed(*id, number + 1));
    }
    work.flush(&pool).await?;
    // Every column at least where one value is 0 and the other is not.
    let before = differences(&pool).await?;
    assert!(
        before > i64::try_from(DB::COLUMNS.len() * ROWS / 4)?,
        "{before}"
    );

    let mut transaction = pool.begin().await?;
    for (number, id) in ids.iter().enumerate().rev() {
        work.update(DB::changed(*id, number));
    }
    let flushed = work.flush_in(&mut transaction).await?;
    assert_eq!((flushed.updated(), flushed.rows()), (ROWS, 0));
    transaction.commit().await?;
    assert_eq!(differences(&pool).await?, 0);
    assert_eq!(DB::count(&pool, "changed").await?, i64::try_from(ROWS)?);

    // And once more: rows that are as they should be are not missing.
    let flushed = work.flush_in(&mut pool.begin().await?).await?;
    assert_eq!(flushed.updated(), ROWS);
    Ok(())
}
