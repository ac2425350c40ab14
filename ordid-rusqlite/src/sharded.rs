//! One unit of work over several databases.

use ordid_sql::{
    EngineProfile, Flushed, Sharded,
    spi::{TransactionScope, blocking},
};
use rusqlite::Connection;

use crate::{Error, binder::Entity, connection::on_connection, unit_of_work::UnitOfWork};

#[doc = ordid_sql::documentation!(sharded_parts)]
///
/// There is no two-phase commit: what must be written together belongs to one shard.
///
#[doc = ordid_sql::documentation!(sharded_parents)]
/// # Example: orders live where their customer lives
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_rusqlite::{ShardedUnitOfWork, Sharding};
/// use rusqlite::Connection;
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, rusqlite)]
/// struct CustomerId(Uuid);
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, rusqlite)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "customers")]
/// struct Customer { #[ordid(key)] id: CustomerId, name: String }
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "orders")]
/// struct Order { #[ordid(key)] id: OrderId, #[ordid(parent)] customer: CustomerId, total: i64 }
///
/// let mut shards = [Connection::open_in_memory()?, Connection::open_in_memory()?];
/// # for shard in &shards {
/// #     shard.execute_batch(
/// #         "CREATE TABLE customers (id BLOB NOT NULL PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
/// #          CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY,
/// #             customer BLOB NOT NULL REFERENCES customers (id), total INTEGER NOT NULL) WITHOUT ROWID",
/// #     )?;
/// # }
/// // A customer is found by its own key, an order by its customer's.
/// let sharding = Sharding::by_hash(2)?.route(|order: &Order| order.customer);
///
/// let mut work = ShardedUnitOfWork::new(sharding.clone());
/// let customer = work.add(Customer { id: CustomerId::generate(), name: "Ada".into() })?;
/// work.add(Order { id: OrderId::generate(), customer, total: 1250 })?;
/// let flushed = work.flush(&mut shards)?;
/// assert_eq!(flushed.iter().map(|shard| shard.rows()).sum::<usize>(), 2);
///
/// let shard = &shards[sharding.shard(customer)?];
/// let of_customer = "SELECT total FROM orders WHERE customer = ?";
/// let total: i64 = shard.query_row(of_customer, [customer], |row| row.get(0))?;
/// assert_eq!(total, 1250);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardedUnitOfWork(Sharded<UnitOfWork>);

ordid_sql::sharded_unit_of_work! {
    impl[] ShardedUnitOfWork, UnitOfWork, Entity, EngineProfile::SQLITE, Error
}

impl ShardedUnitOfWork {
    /// Flushes each shard into its own database, the first over the first connection, one after the other: as
    /// [`UnitOfWork::flush`]. Returns what each of them wrote. A shard without entities sends nothing.
    ///
    #[doc = ordid_sql::documentation!(sharded_errors)]
    pub fn flush(&mut self, connections: &mut [Connection]) -> Result<Vec<Flushed>, Error> {
        let shards = connections.len();
        let mut connections: Vec<_> = connections.iter_mut().map(Some).collect();
        blocking(self.0.flush(EngineProfile::SQLITE, shards, |work, shard| {
            let connection = connections[shard].take();
            let source = on_connection(connection.expect("a shard is flushed once"));
            Box::pin(work.0.flush(source, TransactionScope::Transaction))
        }))
    }
}
