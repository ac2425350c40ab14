//! The table of marker rows, as SeaORM declares it.

use sea_orm::sea_query::{Alias, ColumnDef, Expr, Table, TableCreateStatement};

#[doc = ordid_sql::documentation!(flushes_table)]
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
                // MySQL's `TIMESTAMP` ends in 2038; elsewhere it is the same type.
                .date_time()
                .not_null()
                .default(Expr::current_timestamp()),
        )
        .to_owned()
}
