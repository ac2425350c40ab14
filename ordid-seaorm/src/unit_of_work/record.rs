//! What a flush is known by after the answer to its COMMIT was lost.

use ordid_core::{unit_of_work::FlushRun, uuid::Uuid};
use sea_orm::{
    DbBackend, DbErr, Statement,
    sea_query::{Alias, ColumnDef, Expr, ExprTrait as _, Query, Table, TableCreateStatement},
};

use super::statement::Rows;

const TABLE: &str = "ordid_flushes";
const ID: &str = "id";

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
/// # async fn main() -> Result<(), sea_orm::DbErr> {
/// use sea_orm::{ConnectionTrait, Database};
///
/// let db = Database::connect("sqlite::memory:").await?;
/// db.execute(&ordid_seaorm::flushes_table()).await?;
/// # Ok(())
/// # }
/// ```
pub fn flushes_table() -> TableCreateStatement {
    Table::create()
        .table(Alias::new(TABLE))
        .if_not_exists()
        .col(
            ColumnDef::new(Alias::new(ID))
                .uuid()
                .not_null()
                .primary_key(),
        )
        .col(
            ColumnDef::new(Alias::new("flushed_at"))
                .timestamp()
                .not_null()
                .default(Expr::current_timestamp()),
        )
        .to_owned()
}

/// Inserts the row of a flush.
pub(super) fn record(backend: DbBackend, id: Uuid) -> Statement {
    let insert = Query::insert()
        .into_table(Alias::new(TABLE))
        .columns([Alias::new(ID)])
        .values_panic([Expr::val(id)])
        .to_owned();
    backend.build(&insert)
}

/// Looks for the row of a flush or, where it has none, for the first of its rows.
pub(super) fn whether_there(
    rows: Rows<'_>,
    backend: DbBackend,
    run: &FlushRun<DbErr>,
) -> Statement {
    if !run.records()
        && let Some(first) = run.plan().chunks().next()
    {
        return rows.whether_there(backend, first.table, first.rows.start);
    }
    let select = Query::select()
        .expr(Expr::val(1))
        .from(Alias::new(TABLE))
        .and_where(Expr::col(Alias::new(ID)).eq(run.id()))
        .to_owned();
    backend.build(&select)
}
