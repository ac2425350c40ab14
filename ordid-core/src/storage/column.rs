//! The columns, as types. Each is named like the word that users write.

use super::{
    Column, ColumnOn, Found, Literal, Stores, Written,
    dialect::{Babelfish, MariaDb, MySql, Oracle, Postgres, SqlServer, Sqlite},
};
use crate::{
    error::Error,
    key::{Key192, ObjectId, PushId, RawKey, text},
    layout::Comparison,
};
use alloc::format;

macro_rules! column {
    (
        $(#[$doc:meta])*
        $type:ident = $name:literal, $comparison:ident $(, $compares:expr)?;
        $($dialect:ident: $ddl:expr, $literal:expr, $source:expr;)+
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub enum $type {}

        impl Column for $type {
            const NAME: &'static str = $name;
            const COMPARISON: Comparison = Comparison::$comparison;
            $(const COMPARES: &'static str = $compares;)?
        }

        $(impl ColumnOn<$dialect> for $type {
            const TYPE: &'static str = $ddl;
            const SOURCE: &'static str = $source;
            const LITERAL: Literal = $literal;
        })+
    };
}

/// The list of columns, of which everything else is made or checked: the fuzz bodies, the conformance
/// cells, the names that users write. `__for_each_column! { my_macro { arguments } }`
/// calls a macro with the arguments, if there are any, and all lines.
///
/// A line is `name type: [raw keys] dialects;`, with the name that users write. The order of the lines is that of the documents' tables.
#[doc(hidden)]
#[macro_export]
macro_rules! __for_each_column {
    ($then:ident $($arguments:tt)?) => {
        $then! { $($arguments)?
            uuid Uuid: [Uuid] Postgres;
            unique_identifier UniqueIdentifier: [Uuid] SqlServer;
            unique_identifier_permuted UniqueIdentifierPermuted: [Uuid] SqlServer;
            babelfish_unique_identifier BabelfishUniqueIdentifier: [Uuid] Babelfish;
            binary16 Binary16: [Uuid] MySql MariaDb SqlServer Babelfish;
            raw16 Raw16: [Uuid] Oracle;
            raw16_dotnet Raw16DotNet: [Uuid] Oracle;
            bytea Bytea: [Uuid ObjectId PushId Key192] Postgres;
            blob Blob: [Uuid ObjectId PushId Key192] Sqlite;
            text Text: [Uuid ObjectId PushId Key192] Postgres Sqlite;
            char36 Char36: [Uuid] MySql MariaDb;
            char22 Char22: [Uuid] Postgres MySql MariaDb Sqlite;
            char26 Char26: [Uuid] Postgres MySql MariaDb Sqlite;
            mariadb_uuid MariaDbUuid: [Uuid] MariaDb;
            binary16_swapped Binary16Swapped: [Uuid] MySql MariaDb;
            binary16_dotnet Binary16DotNet: [Uuid] MySql MariaDb;
            bigint BigInt: [i64] Postgres MySql MariaDb SqlServer Babelfish;
            integer Integer: [i64] Sqlite;
            number19 Number19: [i64] Oracle;
            bigint_unsigned BigIntUnsigned: [u64] MySql MariaDb;
            number20 Number20: [u64] Oracle;
            binary12 Binary12: [ObjectId] MySql MariaDb SqlServer;
            raw12 Raw12: [ObjectId] Oracle;
            char20 Char20: [PushId] Postgres MySql MariaDb Sqlite;
            binary24 Binary24: [Key192] MySql MariaDb SqlServer;
            raw24 Raw24: [Key192] Oracle;
            char32 Char32: [Key192] Postgres MySql MariaDb Sqlite;
        }
    };
}

#[cfg(all(any(feature = "catalogue", test), feature = "std", not(loom)))]
pub(crate) mod any;
mod binary;
mod guid;
mod integer;
pub mod names;
mod text_form;
mod unordered;

pub use binary::{Binary12, Binary16, Binary24, Blob, Bytea, Raw12, Raw16, Raw24, Uuid};
pub use guid::{
    BabelfishUniqueIdentifier, Binary16DotNet, Binary16Swapped, MariaDbUuid, Raw16DotNet,
    UniqueIdentifier, UniqueIdentifierPermuted,
};
pub use integer::{BigInt, BigIntUnsigned, Integer, Number19, Number20};
pub use text_form::{Char20, Char22, Char26, Char32, Char36, Text};
pub use unordered::Unordered;

/// `X'...'` of MySQL, MariaDB and SQLite.
const HEX_STRING: Literal = Literal::new("X'", Written::Hex, "'");
/// A string.
const STRING: Literal = Literal::new("'", Written::Plain, "'");
/// An integer's digits.
const DIGITS: Literal = Literal::new("", Written::Plain, "");
const HEXTORAW: Literal = Literal::new("HEXTORAW('", Written::Hex, "')");
const BINARY_CONSTANT: Literal = Literal::new("0x", Written::Hex, "");

/// Says what was found where another form was expected, and which column to declare instead. The raw key has `raw` bytes.
#[cold]
fn wrong_form(column: &str, expected: &str, raw: usize, found: Found<'_>) -> Error {
    let (what, fix) = match found {
        Found::Bytes(bytes) => (
            format!("{} bytes {}", bytes.len(), text::excerpt(bytes)),
            declare(bytes, raw),
        ),
        Found::Integer(integer) => (format!("the integer {integer}"), declare_integer(integer)),
        Found::Unsigned(integer) => (
            format!("the integer {integer}"),
            i64::try_from(integer).map_or(
                ": this needs 64 bits without a sign; declare `bigint_unsigned` on MySQL and \
                 MariaDB, `number20` on Oracle",
                declare_integer,
            ),
        ),
    };
    Error::parse(format!(
        "a `{column}` column holds {expected}, found {what}{fix}"
    ))
}

fn declare_integer(integer: i64) -> &'static str {
    if integer < 0 {
        ": this is a negative integer, which is no key of ordid; if it was one of 64 bits without a \
         sign, declare `bigint_unsigned` on MySQL and MariaDB, `number20` on Oracle"
    } else {
        ": this is an integer; declare `bigint`, `integer` on SQLite, or `number19` on Oracle"
    }
}

/// A length alone proves nothing: MySQL and MariaDB store bytes in columns of other types, pad them, or return them in
/// another character set.
fn declare(found: &[u8], raw: usize) -> &'static str {
    let are = |allowed: fn(&u8) -> bool| found.iter().all(allowed);
    let are_hex = are(u8::is_ascii_hexdigit);
    let are_ordered = are(|byte| byte.is_ascii_alphanumeric() || b"-_~".contains(byte));
    match found.len() {
        0 => "",
        12 if raw == 12 => {
            ": these are 12 bytes; declare `binary12`, `blob` on SQLite, `bytea` on PostgreSQL and \
             with SeaORM, or `raw12` on Oracle"
        }
        15 if raw == 15 => {
            ": these are 15 bytes; declare `blob` on SQLite, or `bytea` on PostgreSQL and with SeaORM"
        }
        16 if raw == 16 => {
            ": these are 16 bytes; declare `binary16`, `bytea` on PostgreSQL and with SeaORM, \
             `raw16` on Oracle, or `blob` on SQLite"
        }
        20 if are_ordered => ": this is as long as a push id; declare `char20`",
        22 if are_ordered => ": this is as long as ordered text; declare `char22`",
        24 if are_hex => {
            ": this is an ObjectId as text; declare `text` on PostgreSQL, on SQLite and with SeaORM, \
             elsewhere convert the column to 12 bytes"
        }
        24 if raw == 24 => {
            ": these are 24 bytes; declare `binary24`, `blob` on SQLite, `bytea` on PostgreSQL and \
             with SeaORM, or `raw24` on Oracle"
        }
        26 if are(u8::is_ascii_alphanumeric) => ": this is as long as a ULID; declare `char26`",
        32 if are_hex => {
            ": hex without hyphens is no form of ordid; rewrite the column with hyphens"
        }
        32 if are_ordered => ": this is as long as ordered text of 192 bits; declare `char32`",
        36 if are(|byte| byte.is_ascii_hexdigit() || *byte == b'-') => {
            ": this is a UUID as text; declare `char36` (`mariadb_uuid` for MariaDB's UUID), or \
             `text` on PostgreSQL, on SQLite and with SeaORM"
        }
        _ => {
            ": the column seems to have another type than the key type declares; compare the table's \
             definition (`SHOW CREATE TABLE`), or run `ordid doctor`"
        }
    }
}

#[cfg(test)]
mod tests;
