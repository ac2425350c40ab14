//! Columns of bytes in network order, compared as `memcmp` does.

use super::*;

/// Stores raw keys as their bytes.
macro_rules! stores_bytes {
    ($type:ident: $($raw:ty = $length:literal),+) => {
        $(impl Stores<$raw> for $type {
            type Stored = [u8; $length];
            type SortKey = [u8; $length];

            #[inline]
            fn encode(raw: $raw) -> [u8; $length] {
                RawKey::to_bytes(raw)
            }

            #[inline]
            fn decode<'a>(found: impl Into<Found<'a>>) -> Result<$raw, Error> {
                let found = found.into();
                if let Found::Bytes(bytes) = found
                    && let Ok(bytes) = <&[u8; $length]>::try_from(bytes)
                {
                    return Ok(<$raw as RawKey>::from_bytes(*bytes));
                }
                Err(wrong_form(Self::NAME, concat!($length, " bytes"), $length, found))
            }

            #[inline]
            fn sort_key(raw: $raw) -> [u8; $length] {
                RawKey::to_bytes(raw)
            }

            #[inline]
            fn from_sort_key(key: [u8; $length]) -> Result<$raw, Error> {
                Ok(<$raw as RawKey>::from_bytes(key))
            }
        })+
    };
}

pub(super) const MYSQL_BINARY: &str =
    "MySQL 8.4 manual, section 13.3.3, \"The BINARY and VARBINARY Types\"";
pub(super) const MARIADB_BINARY: &str = "MariaDB documentation, \"BINARY\"";
pub(super) const ORACLE_RAW: &str =
    "Oracle Database SQL Language Reference, \"Data Type Comparison Rules\", binary values";
const SQL_SERVER_BINARY: &str = "Microsoft Learn, \"binary and varbinary (Transact-SQL)\"";

column! {
    /// PostgreSQL's `uuid`: 16 bytes in network order, compared byte by byte.
    Uuid = "uuid", Bytes;
    Postgres: "uuid", Literal::new("'", Written::Hyphenated, "'::uuid"),
        "PostgreSQL src/backend/utils/adt/uuid.c, uuid_internal_cmp";
}
stores_bytes!(Uuid: uuid::Uuid = 16);

column! {
    /// PostgreSQL's `bytea`: the key's bytes. It stores every raw key that is not an integer.
    Bytea = "bytea", Bytes;
    Postgres: "bytea", Literal::new("'\\x", Written::Hex, "'::bytea"),
        "PostgreSQL manual, \"Binary String Functions and Operators\"; function byteacmp";
}
stores_bytes!(Bytea: uuid::Uuid = 16, ObjectId = 12, PushId = 15, Key192 = 24);

column! {
    /// SQLite's `BLOB`: the key's bytes. It stores every raw key that is not an integer.
    Blob = "blob", Bytes;
    Sqlite: "BLOB", HEX_STRING, "SQLite, \"Datatypes In SQLite\", section 4.1, \"Sort Order\"";
}
stores_bytes!(Blob: uuid::Uuid = 16, ObjectId = 12, PushId = 15, Key192 = 24);

column! {
    /// `BINARY(16)` of MySQL and MariaDB, `binary(16)` of SQL Server: 128 bits in network order, compared byte by
    /// byte.
    Binary16 = "binary16", Bytes;
    MySql: "BINARY(16)", HEX_STRING, MYSQL_BINARY;
    MariaDb: "BINARY(16)", HEX_STRING, MARIADB_BINARY;
    SqlServer: "binary(16)", BINARY_CONSTANT, SQL_SERVER_BINARY;
    Babelfish: "binary(16)", BINARY_CONSTANT,
        "Babelfish contrib/babelfishpg_common/sql/binary.sql, bbf_binary_ops";
}
stores_bytes!(Binary16: uuid::Uuid = 16);

/// `BINARY` of so many bytes.
macro_rules! binary_column {
    ($(#[$doc:meta])* $type:ident = $name:literal, $length:literal: $raw:ident) => {
        column! {
            $(#[$doc])*
            $type = $name, Bytes;
            MySql: concat!("BINARY(", $length, ")"), HEX_STRING, MYSQL_BINARY;
            MariaDb: concat!("BINARY(", $length, ")"), HEX_STRING, MARIADB_BINARY;
            SqlServer: concat!("binary(", $length, ")"), BINARY_CONSTANT, SQL_SERVER_BINARY;
        }
        stores_bytes!($type: $raw = $length);
    };
}

binary_column! {
    /// `BINARY(12)`: an ObjectId.
    Binary12 = "binary12", 12: ObjectId
}

binary_column! {
    /// `BINARY(24)`: a key of 192 bits.
    Binary24 = "binary24", 24: Key192
}

column! {
    /// Oracle's `RAW(16)`: 128 bits in network order, the order of Oracle's own `UUID_TO_RAW`.
    Raw16 = "raw16", Bytes;
    Oracle: "RAW(16)", HEXTORAW, ORACLE_RAW;
}
stores_bytes!(Raw16: uuid::Uuid = 16);

column! {
    /// Oracle's `RAW(12)`: an ObjectId.
    Raw12 = "raw12", Bytes;
    Oracle: "RAW(12)", HEXTORAW, ORACLE_RAW;
}
stores_bytes!(Raw12: ObjectId = 12);

column! {
    /// Oracle's `RAW(24)`: a key of 192 bits.
    Raw24 = "raw24", Bytes;
    Oracle: "RAW(24)", HEXTORAW, ORACLE_RAW;
}
stores_bytes!(Raw24: Key192 = 24);
