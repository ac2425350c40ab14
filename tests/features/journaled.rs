// These are rows of Diesel with a journal.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_diesel::{Journaled, UnitOfWork};
use ordid_file::FlushJournal;

#[derive(KeyType)]
#[ordid(diesel)]
pub struct OrderId(Uuid);

diesel::table! {
    orders (id) { id -> Binary, total -> BigInt, }
}

#[derive(OrderedKey, serde::Serialize, serde::Deserialize)]
#[diesel(table_name = orders)]
#[ordid(diesel)]
pub struct Order {
    id: OrderId,
    total: i64,
}

pub fn journaled(journal: FlushJournal) -> UnitOfWork<diesel::sqlite::Sqlite> {
    UnitOfWork::new().with_journal(Journaled::new(journal).row::<Order>())
}
