//! The table of marker rows, as SeaORM declares it.

use sea_orm::sea_query::{Alias, ColumnDef, Expr, Table, TableCreateStatement};

/// Returns the `CREATE TABLE` of `ordid_flushes`. A flush with updates or deletes writes a marker row to it,
/// in its own transaction: if the answer to COMMIT is lost, that row shows whether the flush was committed. A
/// flush that only inserts does so only [on request](crate::UnitOfWork::with_record).
///
/// Run it once, as a migration. A marker row is looked for only while its flush is under way: rows older than
/// a day can be deleted at any time, by `flushed_at`.
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
        .table(Alias::new("ordid_flushes"))
        .if_not_exists()
        .col(
            ColumnDef::new(Alias::new("id"))
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
