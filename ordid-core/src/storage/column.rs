//! The columns, as types named like the words that users write.

use super::{
    Column, ColumnOn, Stores,
    dialect::{MariaDb, MySql, Postgres, Sqlite},
};
use crate::{
    error::Error,
    key::text,
    layout::{Comparison, mariadb_uuid_sort_key},
};
use alloc::format;

/// Says what was found where another form was expected, and which column to declare instead.
fn wrong_form(column: &str, expected: &str, found: &[u8]) -> Error {
    let fix = match found.len() {
        16 => ": these are 16 bytes; declare `binary16`, or `blob` on SQLite",
        36 => {
            ": this is a UUID as text; declare `char36` (`mariadb_uuid` for MariaDB's UUID), or \
             `text` on PostgreSQL and SQLite"
        }
        22 => ": this is as long as ordered text; declare `char22`",
        32 => ": hex without hyphens is no form of ordid; rewrite the column with hyphens",
        _ => "",
    };
    Error::parse(format!(
        "a `{column}` column holds {expected}, found {} bytes {}{fix}",
        found.len(),
        text::excerpt(found)
    ))
}

macro_rules! column {
    (
        $(#[$doc:meta])*
        $type:ident = $name:literal, $comparison:ident;
        $($dialect:ident: $ddl:literal),+
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub enum $type {}

        impl Column for $type {
            const NAME: &'static str = $name;
            const COMPARISON: Comparison = Comparison::$comparison;
        }

        $(impl ColumnOn<$dialect> for $type {
            const TYPE: &'static str = $ddl;
        })+
    };
}

/// 16 bytes in network order, as they are.
macro_rules! stores_bytes {
    ($type:ident, $sort_key:path) => {
        impl Stores<uuid::Uuid> for $type {
            type Stored = [u8; 16];

            #[inline]
            fn encode(raw: uuid::Uuid) -> [u8; 16] {
                raw.into_bytes()
            }

            fn decode(stored: &[u8]) -> Result<uuid::Uuid, Error> {
                uuid::Uuid::from_slice(stored)
                    .map_err(|_| wrong_form(Self::NAME, "16 bytes", stored))
            }

            fn sort_key(raw: uuid::Uuid) -> [u8; 16] {
                $sort_key(raw.as_bytes())
            }
        }
    };
}

/// Text of one canonical form, compared byte by byte.
macro_rules! stores_text {
    ($type:ident, $length:literal, $expected:literal, $encode:path, $parse:path) => {
        impl Stores<uuid::Uuid> for $type {
            type Stored = [u8; $length];

            fn encode(raw: uuid::Uuid) -> [u8; $length] {
                $encode(raw)
            }

            fn decode(stored: &[u8]) -> Result<uuid::Uuid, Error> {
                if stored.len() == $length {
                    $parse(stored)
                } else {
                    Err(wrong_form(Self::NAME, $expected, stored))
                }
            }

            fn sort_key(raw: uuid::Uuid) -> [u8; $length] {
                $encode(raw)
            }
        }
    };
}

const fn same(bytes: &[u8; 16]) -> [u8; 16] {
    *bytes
}

column! {
    /// PostgreSQL's `uuid`: 16 bytes, compared by `memcmp`.
    ///
    /// Source: PostgreSQL `src/backend/utils/adt/uuid.c`, `uuid_internal_cmp`.
    Uuid = "uuid", Bytes;
    Postgres: "uuid"
}
stores_bytes!(Uuid, same);

column! {
    /// `BINARY(16)` of MySQL and MariaDB: 16 bytes in network order, compared byte by byte.
    ///
    /// Source: MySQL 8.4 manual, section 13.3.3, "The BINARY and VARBINARY Types".
    Binary16 = "binary16", Bytes;
    MySql: "BINARY(16)", MariaDb: "BINARY(16)"
}
stores_bytes!(Binary16, same);

column! {
    /// `BLOB` of SQLite: 16 bytes in network order, compared by `memcmp`.
    ///
    /// Source: SQLite, "Datatypes In SQLite", section 4.1, "Sort Order".
    Blob = "blob", Bytes;
    Sqlite: "BLOB"
}
stores_bytes!(Blob, same);

column! {
    /// The hyphenated form as unlimited text: PostgreSQL under `COLLATE "C"`, SQLite under its
    /// default `BINARY`.
    ///
    /// On SQLite the declared type must be `TEXT`: `UUID` has NUMERIC affinity, which turns
    /// digits-only text into a number.
    Text = "text", Bytes;
    Postgres: "text COLLATE \"C\"", Sqlite: "TEXT COLLATE BINARY"
}
stores_text!(
    Text,
    36,
    "a UUID as 36 characters",
    text::encode_hyphenated,
    text::parse_hyphenated
);

column! {
    /// The hyphenated form in `CHAR(36)` with a binary collation.
    Char36 = "char36", Bytes;
    MySql: "CHAR(36) CHARACTER SET ascii COLLATE ascii_bin",
    MariaDb: "CHAR(36) CHARACTER SET ascii COLLATE ascii_bin"
}
stores_text!(
    Char36,
    36,
    "a UUID as 36 characters",
    text::encode_hyphenated,
    text::parse_hyphenated
);

column! {
    /// The ordered text of 22 characters, with a binary collation.
    ///
    /// Under any other collation, also a case-sensitive one, it loses its order; under a
    /// case-insensitive one, two keys become one.
    Char22 = "char22", Bytes;
    Postgres: "text COLLATE \"C\"",
    MySql: "CHAR(22) CHARACTER SET ascii COLLATE ascii_bin",
    MariaDb: "CHAR(22) CHARACTER SET ascii COLLATE ascii_bin",
    Sqlite: "TEXT COLLATE BINARY"
}
stores_text!(
    Char22,
    22,
    "22 characters of ordered text",
    text::encode_ordered22::<text::Tilde>,
    text::parse_ordered22::<text::Tilde>
);

column! {
    /// MariaDB's native `UUID`: bound as 16 bytes in network order, returned as hyphenated text.
    ///
    /// Versions 6 and later compare as their bytes do; versions 1 to 5 by their segments from the
    /// last to the first, whose [`sort_key`](Stores::sort_key) differs. Values of both kinds in one
    /// column have no order that this knows.
    ///
    /// Source: MariaDB knowledge base, "UUID Data Type"; order since 10.10.6 and 10.11.5.
    MariaDbUuid = "mariadb_uuid", MariaDbUuid;
    MariaDb: "UUID"
}

impl Stores<uuid::Uuid> for MariaDbUuid {
    type Stored = [u8; 16];

    #[inline]
    fn encode(raw: uuid::Uuid) -> [u8; 16] {
        raw.into_bytes()
    }

    fn decode(stored: &[u8]) -> Result<uuid::Uuid, Error> {
        if stored.len() == 36 {
            text::parse_hyphenated(stored)
        } else {
            Err(wrong_form(
                Self::NAME,
                "a UUID, returned as 36 characters",
                stored,
            ))
        }
    }

    fn sort_key(raw: uuid::Uuid) -> [u8; 16] {
        mariadb_uuid_sort_key(raw.as_bytes())
    }
}

#[cfg(test)]
mod tests;
