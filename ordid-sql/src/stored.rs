//! Code that the columns of several adapters share.

use ordid_core::storage::Found;

use crate::spi::BoxedError;

/// Returns the bytes of a column that stores bytes.
///
/// # Errors
///
/// If it stores a number.
pub fn bytes(stored: Found<'_>) -> Result<&[u8], BoxedError> {
    match stored {
        Found::Bytes(bytes) => Ok(bytes),
        other => Err(format!("expected bytes, found {other:?}").into()),
    }
}

/// Returns the characters of a column that stores text.
///
/// # Errors
///
/// If it stores a number, or other bytes.
pub fn text(stored: Found<'_>) -> Result<&str, BoxedError> {
    Ok(std::str::from_utf8(bytes(stored)?)?)
}

/// Adds to an adapter's trait of columns what the compiler says of a column that the database does not have, for the
/// libraries that have PostgreSQL, MySQL and SQLite.
#[doc(hidden)]
#[macro_export]
macro_rules! column_trait {
    ($($item:tt)*) => {
        #[diagnostic::on_unimplemented(
            message = "`{Self}` is not a column of this database for raw keys of type `{R}`",
            label = "no such column here",
            note = "128 bits: PostgreSQL uuid, bytea, text, char22, char26; MySQL binary16, binary16_swapped, \
                    binary16_dotnet, char36, char22, char26, and on MariaDB mariadb_uuid; SQLite blob, text, \
                    char22, char26",
            note = "`i64`: bigint, and integer on SQLite; `u64`: bigint_unsigned on MySQL and MariaDB alone",
            note = "`ObjectId`: bytea, text; binary12; blob, text. `PushId`: bytea, text, char20; char20; blob, \
                    text, char20. `Key192`: bytea, text, char32; binary24, char32; blob, text, char32"
        )]
        $($item)*
    };
}
