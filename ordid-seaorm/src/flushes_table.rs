//! The table of marker rows, as SeaORM declares it.

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbErr,
    sea_query::{Alias, ColumnDef, Expr, Table, TableCreateStatement},
};

use crate::{Error, connection::Source};

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

#[doc = ordid_sql::documentation!(create_flushes_table)]
/// # Errors
///
/// SeaORM's, such as a privilege that is missing.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = sea_orm::Database::connect("sqlite::memory:").await?;
/// ordid_seaorm::create_flushes_table(&db).await?;
/// ordid_seaorm::create_flushes_table(&db).await?; // does nothing
/// assert_eq!(ordid_seaorm::remove_old_markers(&db).await?, 0);
/// # Ok(())
/// # }
/// ```
pub async fn create_flushes_table<C: ConnectionTrait>(db: &C) -> Result<(), DbErr> {
    match db.execute(&flushes_table()).await {
        Ok(_) => Ok(()),
        // PostgreSQL's `IF NOT EXISTS` does not see a table that another session is about to commit.
        Err(error) => {
            let again = db.execute(&flushes_table()).await;
            again.map(drop).map_err(|_| error)
        }
    }
}

#[doc = ordid_sql::documentation!(remove_old_markers)]
/// # Errors
///
/// SeaORM's, and a table that [is missing](Error::is_flushes_table_missing).
pub async fn remove_old_markers(db: &DatabaseConnection) -> Result<u64, Error> {
    ordid_sql::remove_old_markers(Source::of(db)?).await
}
