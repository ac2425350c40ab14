//! The tables of the unit of work's tests, and their rows.

use std::sync::{Mutex, MutexGuard, PoisonError};

use oracle::Connection;
use ordid::{
    KeyType, OrderedKey,
    storage::{Dialect, dialect::Oracle},
    uuid::Uuid,
};
use ordid_oracle::{Entity, flushes_table};

use crate::keys::NetworkId;

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "cust", oracle)]
pub struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, oracle(oracle = raw16))]
pub struct OrderId(Uuid);

#[derive(OrderedKey, Clone, Debug)]
#[ordid(table = "ordid customers")]
pub struct Customer {
    #[ordid(key)]
    pub id: CustomerId,
    pub name: String,
    pub credit: Option<i64>,
}

/// Names that must be quoted.
#[derive(OrderedKey, Clone, Debug)]
#[ordid(table = "ordid order")]
pub struct Order {
    #[ordid(key)]
    pub id: OrderId,
    #[ordid(parent)]
    pub customer: CustomerId,
    #[ordid(column = "group")]
    pub kind: i32,
}

/// A tree in one table.
#[derive(OrderedKey)]
#[ordid(table = "ordid employee")]
pub struct Employee {
    #[ordid(key)]
    pub id: NetworkId,
    #[ordid(parent)]
    pub boss: Option<NetworkId>,
}

/// Refers to another of its table, and it to this one.
#[derive(OrderedKey)]
#[ordid(table = "ordid pair")]
pub struct Pair {
    #[ordid(key)]
    pub id: NetworkId,
    #[ordid(parent = Pair, deferrable)]
    pub other: NetworkId,
}

pub fn customer(name: &str) -> Customer {
    Customer {
        id: CustomerId::generate(),
        name: name.into(),
        credit: None,
    }
}

pub fn order_of(customer: CustomerId, kind: i32) -> Order {
    Order {
        id: OrderId::generate(),
        customer,
        kind,
    }
}

/// The tables of the unit of work, empty; dropped at the end.
pub struct Shop<'c> {
    connection: &'c Connection,
    /// Whether the table of flushes is this one's to drop.
    flushes: bool,
    _alone: MutexGuard<'static, ()>,
}

/// Tests run at once, and the tables are the same.
static ALONE: Mutex<()> = Mutex::new(());

impl<'c> Shop<'c> {
    pub fn new(connection: &'c Connection) -> Result<Self, oracle::Error> {
        let mut shop = Self {
            connection,
            flushes: false,
            _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner),
        };
        // Left over from a run that was killed.
        shop.drop_tables();
        for sql in [
            "CREATE TABLE \"ordid customers\" (\"id\" RAW(16) NOT NULL PRIMARY KEY, \
             \"name\" VARCHAR2(100) NOT NULL, \"credit\" NUMBER(19))",
            "CREATE TABLE \"ordid order\" (\"id\" RAW(16) NOT NULL PRIMARY KEY, \"customer\" RAW(16) \
             NOT NULL REFERENCES \"ordid customers\" (\"id\"), \"group\" NUMBER(10) NOT NULL)",
            "CREATE TABLE \"ordid employee\" (\"id\" RAW(16) NOT NULL PRIMARY KEY, \"boss\" RAW(16) \
             REFERENCES \"ordid employee\" (\"id\"))",
            "CREATE TABLE \"ordid pair\" (\"id\" RAW(16) NOT NULL PRIMARY KEY, \"other\" RAW(16) \
             NOT NULL REFERENCES \"ordid pair\" (\"id\") DEFERRABLE)",
        ] {
            connection.execute(sql, &[])?;
        }
        match connection.execute(flushes_table(), &[]) {
            Ok(_) => shop.flushes = true,
            // ORA-00955: somebody else's.
            Err(error) if error.oci_code() == Some(955) => {}
            Err(error) => return Err(error),
        }
        Ok(shop)
    }

    fn drop_tables(&self) {
        let _ = self.connection.rollback();
        for table in [
            "ordid pair",
            "ordid employee",
            "ordid order",
            "ordid customers",
        ] {
            let sql = format!(
                "DROP TABLE {} CASCADE CONSTRAINTS PURGE",
                Oracle::quote(table)
            );
            let _ = self.connection.execute(&sql, &[]);
        }
        if self.flushes {
            let _ = self
                .connection
                .execute("DROP TABLE ordid_flushes PURGE", &[]);
        }
    }

    pub fn count<E: Entity>(&self) -> Result<usize, oracle::Error> {
        let sql = format!("SELECT COUNT(*) FROM {}", Oracle::quote(E::TABLE));
        self.connection.query_row_as(&sql, &[])
    }
}

impl Drop for Shop<'_> {
    fn drop(&mut self) {
        self.drop_tables();
    }
}
