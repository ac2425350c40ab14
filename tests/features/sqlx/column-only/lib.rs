//! Binds a key to a query, but `ordid-sqlx` has no feature.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(sqlx)]
pub struct OrderId(Uuid);

pub async fn delete(pool: &sqlx::SqlitePool, id: OrderId) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM orders WHERE id = ?")
        .bind(id)
        .execute(pool)
        .await?;
    Ok(())
}
