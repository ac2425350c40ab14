//! What a flush is known by after the answer to its COMMIT was lost.

use ordid_core::{
    storage::{Dialect as _, numbers::KeepsNumbers as _},
    unit_of_work::{Batches, Plan},
    uuid::Uuid,
};
use sqlx::{AssertSqlSafe, SqlSafeStr};

use crate::backend::{Backend, Binder};

/// Returns the `CREATE TABLE` of `ordid_flushes`, into which a flush with updates or deletes writes a row
/// in its own transaction: whether that row is there tells what became of a COMMIT whose answer was
/// lost. A flush that only inserts does without, unless it is
/// [asked to](crate::UnitOfWork::with_record).
///
/// Run it once, as a migration. Rows are only looked for while their flush is under way: delete those
/// of more than a day at any time, by `flushed_at`.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sqlx::Error> {
/// let pool = sqlx::SqlitePool::connect("sqlite::memory:").await?;
/// sqlx::raw_sql(ordid_sqlx::flushes_table::<sqlx::Sqlite>()).execute(&pool).await?;
/// # Ok(())
/// # }
/// ```
pub const fn flushes_table<DB: Backend>() -> &'static str {
    DB::FLUSHES_TABLE
}

/// Inserts the row of a flush.
pub(super) async fn record<DB: Backend>(
    connection: &mut DB::Connection,
    id: Uuid,
) -> Result<(), sqlx::Error> {
    let mut sql = "INSERT INTO ordid_flushes (id) VALUES (".to_owned();
    DB::Dialect::push_placeholder(&mut sql, 1);
    sql.push(')');
    let sql = AssertSqlSafe(sql).into_sql_str();
    DB::execute(connection, sql, DB::flush_id(id)?, true)
        .await
        .map(drop)
}

/// Looks for the row of a flush, and for the first of its rows where it only inserts.
///
/// Of a flush that is recorded one of both is enough: an earlier run of the program may have written the
/// rows without a record.
pub(super) async fn is_there<DB: Backend>(
    batches: &Batches<Binder<DB>>,
    connection: &mut DB::Connection,
    plan: &Plan,
    is_recorded: bool,
    id: Uuid,
) -> Result<bool, sqlx::Error> {
    if is_recorded {
        let sql = "SELECT 1 FROM ordid_flushes WHERE id = ".to_owned();
        if exists::<DB>(connection, sql, DB::flush_id(id)?).await? {
            return Ok(true);
        }
    }
    let first = plan.chunks().next().filter(|_| plan.only_inserts());
    let Some(first) = first else {
        return Ok(false);
    };
    let mut binder = Binder::with_capacity(1);
    batches.write_key(first.table, first.rows.start, &mut binder);
    if let Some(error) = binder.take_error() {
        return Err(sqlx::Error::Encode(error));
    }
    let table = batches.table(first.table);
    let name = DB::Dialect::quote_table(table.schema(), table.name());
    let key = DB::Dialect::quote(table.key_column());
    let sql = format!("SELECT 1 FROM {name} WHERE {key} = ");
    exists::<DB>(connection, sql, binder.into_arguments()).await
}

async fn exists<DB: Backend>(
    connection: &mut DB::Connection,
    mut sql: String,
    arguments: DB::Arguments,
) -> Result<bool, sqlx::Error> {
    DB::Dialect::push_placeholder(&mut sql, 1);
    DB::exists(connection, AssertSqlSafe(sql).into_sql_str(), arguments).await
}
