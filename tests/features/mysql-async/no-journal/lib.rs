//! Uses a journal without the feature of `ordid-mysql-async`.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_file::FlushJournal;
use ordid_mysql_async::{Journaled, UnitOfWork};

#[derive(KeyType)]
#[ordid(mysql_async)]
pub struct OrderId(Uuid);

#[derive(OrderedKey, serde::Serialize, serde::Deserialize)]
#[ordid(table = "orders")]
pub struct Order {
    id: OrderId,
    total: i64,
}

pub fn journaled(journal: FlushJournal) -> UnitOfWork {
    UnitOfWork::new().with_journal(Journaled::new(journal).row::<Order>())
}
