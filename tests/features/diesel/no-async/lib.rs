//! Flushes over connections of diesel-async without the feature `async` of `ordid-diesel`.

use diesel::sqlite::Sqlite;

include!("../order.rs");

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
