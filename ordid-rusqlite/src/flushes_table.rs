//! The table of marker rows.

use ordid_core::storage::dialect::Sqlite;
use ordid_sql::{FlushDialect as _, spi::blocking};
use rusqlite::Connection;

use crate::{Error, connection::on_connection};

#[doc = ordid_sql::documentation!(flushes_table)]
pub const fn flushes_table() -> &'static str {
    Sqlite::FLUSHES_TABLE
}

#[doc = ordid_sql::documentation!(create_flushes_table)]
/// # Errors
///
/// rusqlite's, such as a file that cannot be written.
///
/// # Example
///
/// ```
/// let mut connection = rusqlite::Connection::open_in_memory()?;
/// ordid_rusqlite::create_flushes_table(&connection)?;
/// ordid_rusqlite::create_flushes_table(&connection)?; // does nothing
/// assert_eq!(ordid_rusqlite::remove_old_markers(&mut connection)?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn create_flushes_table(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(flushes_table())
}

#[doc = ordid_sql::documentation!(remove_old_markers)]
/// # Errors
///
/// rusqlite's, a table that [is missing](Error::is_flushes_table_missing), and a transaction that is open.
pub fn remove_old_markers(connection: &mut Connection) -> Result<u64, Error> {
    blocking(ordid_sql::remove_old_markers(on_connection(connection)))
}
