//! Key types of all libraries, for the rows of [`ordid_tests::faults::Graph`].

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel, mysql_async, rusqlite, sea_orm, tokio_postgres)]
pub struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel, mysql_async, rusqlite, sea_orm, tokio_postgres)]
pub struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel, mysql_async, rusqlite, sea_orm, tokio_postgres)]
pub struct ItemId(Uuid);

/// The same key, of another type.
pub fn key<K: KeyType<Raw = Uuid>>(of: impl KeyType<Raw = Uuid>) -> K {
    K::from_raw(of.to_raw()).expect("both are of the same scheme")
}
