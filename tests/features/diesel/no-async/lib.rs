//! Flushes over connections of diesel-async, and `ordid-diesel` does not have the feature.

use diesel::sqlite::Sqlite;
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_diesel::UnitOfWork;

#[derive(KeyType)]
#[ordid(diesel)]
pub struct OrderId(Uuid);

diesel::table! {
    orders (id) { id -> Binary, total -> BigInt, }
}

#[derive(OrderedKey)]
#[diesel(table_name = orders)]
#[ordid(diesel)]
pub struct Order {
    id: OrderId,
    total: i64,
}

pub async fn save<C>(connection: &mut C, order: Order) -> Result<(), ordid_diesel::Error>
where
    C: diesel_async::AsyncConnection<Backend = Sqlite> + 'static,
{
    let mut work = UnitOfWork::new();
    work.add(order);
    work.flush_async(connection).await?;
    Ok(())
}

pub async fn save_in<C>(connection: &mut C, order: Order) -> Result<(), ordid_diesel::Error>
where
    C: diesel_async::AsyncConnection<Backend = Sqlite> + 'static,
{
    let mut work = UnitOfWork::new();
    work.add(order);
    work.flush_in_async(connection).await?;
    Ok(())
}

pub async fn save_with<C>(url: &str, order: Order) -> Result<(), ordid_diesel::Error>
where
    C: diesel_async::AsyncConnection<Backend = Sqlite> + 'static,
{
    let mut work = UnitOfWork::new();
    work.add(order);
    work.flush_with_async(|| C::establish(url)).await?;
    Ok(())
}
