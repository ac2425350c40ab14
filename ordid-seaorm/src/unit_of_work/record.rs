//! What a flush is known by after the answer to its COMMIT was lost.

use ordid_core::{unit_of_work::Plan, uuid::Uuid};
use sea_orm::{
    ConnectionTrait, DbErr,
    sea_query::{
        Alias, ColumnDef, Expr, ExprTrait as _, Query, SimpleExpr, Table, TableCreateStatement,
    },
};

use super::statement::Rows;

const TABLE: &str = "ordid_flushes";
const ID: &str = "id";

/// Returns the `CREATE TABLE` of `ordid_flushes`, into which a flush with updates or deletes writes a row
/// in its own transaction: whether that row is there tells what became of a COMMIT whose answer was
/// lost. A flush that only inserts does without.
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
pub(super) async fn record<C: ConnectionTrait>(connection: &C, id: Uuid) -> Result<(), DbErr> {
    let insert = Query::insert()
        .into_table(Alias::new(TABLE))
        .columns([Alias::new(ID)])
        .values_panic([Expr::val(id)])
        .to_owned();
    connection.execute(&insert).await.map(drop)
}

/// Looks for the row of a flush or, where it has none, for the first of its rows.
pub(super) async fn is_there<C: ConnectionTrait>(
    rows: Rows<'_>,
    connection: &C,
    plan: &Plan,
    id: Uuid,
) -> Result<bool, DbErr> {
    if plan.only_inserts()
        && let Some(first) = plan.chunks().next()
    {
        return rows.has(connection, first.table, first.rows.start).await;
    }
    let id: SimpleExpr = Expr::col(Alias::new(ID)).eq(id);
    let select = Query::select()
        .expr(Expr::val(1))
        .from(Alias::new(TABLE))
        .and_where(id)
        .to_owned();
    Ok(connection.query_one(&select).await?.is_some())
}
