//! Uses a journal without the feature of `ordid-rusqlite`.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_file::FlushJournal;
use ordid_rusqlite::{Journaled, UnitOfWork};

#[derive(KeyType)]
#[ordid(rusqlite)]
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
