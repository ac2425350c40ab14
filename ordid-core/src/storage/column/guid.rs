//! Columns of 128 bits that are stored or compared in another order than the bytes have.

use super::{
    binary::{MARIADB_BINARY, MYSQL_BINARY, ORACLE_RAW},
    *,
};
use crate::layout::{self, guid};

const fn same(bytes: &[u8; 16]) -> [u8; 16] {
    *bytes
}

/// Stores a permutation of the bytes: how they are stored, how they are read back, and what the
/// sort key is of the raw key's own bytes.
macro_rules! stores_permuted {
    ($type:ident: $encode:path, $decode:path, $rule:ident) => {
        impl Stores<uuid::Uuid> for $type {
            type Stored = [u8; 16];
            type SortKey = [u8; 16];

            #[inline]
            fn encode(raw: uuid::Uuid) -> [u8; 16] {
                $encode(raw.as_bytes())
            }

            #[inline]
            fn decode<'a>(found: impl Into<Found<'a>>) -> Result<uuid::Uuid, Error> {
                let found = found.into();
                if let Found::Bytes(bytes) = found
                    && let Ok(bytes) = bytes.try_into()
                {
                    return Ok(uuid::Uuid::from_bytes($decode(bytes)));
                }
                Err(wrong_form(Self::NAME, "16 bytes", 16, found))
            }

            #[inline]
            fn sort_key(raw: uuid::Uuid) -> [u8; 16] {
                Comparison::$rule.sort_key(raw.as_bytes())
            }

            #[inline]
            fn from_sort_key(key: [u8; 16]) -> Result<uuid::Uuid, Error> {
                Ok(uuid::Uuid::from_bytes(
                    Comparison::$rule.from_sort_key(&key),
                ))
            }
        }
    };
}

const SQL_GUID: &str = "System.Data.SqlTypes.SqlGuid.CompareTo; Microsoft Learn, \"Comparing GUID and \
                        uniqueidentifier values\"";
const GUID_LITERAL: Literal = Literal::new("CAST('", Written::Hyphenated, "' AS uniqueidentifier)");

column! {
    /// MariaDB's native `UUID`: bound and returned as hyphenated text.
    ///
    /// Versions 6 and later compare as their bytes do. Versions 1 to 5 compare by their segments from the last to the
    /// first, so their [`sort_key`](Stores::sort_key) is not their bytes. This is the order since MariaDB 10.10.6 and
    /// 10.11.5.
    ///
    /// MariaDB refuses one in 64 values of version 8
    /// ([`mariadb_uuid_is_refused`](crate::layout::mariadb_uuid_is_refused)), but only as text. Bound as 16 bytes, it
    /// accepts such a value and silently stores *another* one. That is why values are bound as text.
    MariaDbUuid = "mariadb_uuid", MariaDbUuid;
    MariaDb: "UUID", STRING,
        "MariaDB plugin/type_uuid/sql_type_uuid.h; documentation, \"UUID Data Type\"";
}

impl Stores<uuid::Uuid> for MariaDbUuid {
    type Stored = [u8; 36];
    type SortKey = [u8; 16];

    #[inline]
    fn encode(raw: uuid::Uuid) -> [u8; 36] {
        text::encode_hyphenated(raw)
    }

    #[inline]
    fn decode<'a>(found: impl Into<Found<'a>>) -> Result<uuid::Uuid, Error> {
        match found.into() {
            Found::Bytes(text) if text.len() == 36 => text::parse_hyphenated(text),
            found => Err(wrong_form(Self::NAME, "a UUID as 36 characters", 16, found)),
        }
    }

    fn sort_key(raw: uuid::Uuid) -> [u8; 16] {
        Comparison::MariaDbUuid.sort_key(raw.as_bytes())
    }

    fn from_sort_key(key: [u8; 16]) -> Result<uuid::Uuid, Error> {
        Ok(uuid::Uuid::from_bytes(
            Comparison::MariaDbUuid.from_sort_key(&key),
        ))
    }
}

column! {
    /// `BINARY(16)` with the bytes that `UUID_TO_BIN(x, 1)` returns and `BIN_TO_UUID(x, 1)` reads. It is for
    /// version 1, because the time then comes first.
    Binary16Swapped = "binary16_swapped", UuidToBin;
    MySql: "BINARY(16)", HEX_STRING, MYSQL_BINARY;
    MariaDb: "BINARY(16)", HEX_STRING, MARIADB_BINARY;
}
stores_permuted!(Binary16Swapped: layout::uuid_to_bin, layout::bin_to_uuid, UuidToBin);

column! {
    /// `BINARY(16)` with the bytes of .NET's `Guid.ToByteArray`, for tables shared with .NET programs.
    Binary16DotNet = "binary16_dotnet", DotNetBytes;
    MySql: "BINARY(16)", HEX_STRING, MYSQL_BINARY;
    MariaDb: "BINARY(16)", HEX_STRING, MARIADB_BINARY;
}
stores_permuted!(Binary16DotNet: guid::swap, guid::swap, DotNetBytes);

column! {
    /// `RAW(16)` with the bytes of .NET's `Guid.ToByteArray`, as ODP.NET, EF Core and NHibernate write them.
    Raw16DotNet = "raw16_dotnet", DotNetBytes;
    Oracle: "RAW(16)", HEXTORAW, ORACLE_RAW;
}
stores_permuted!(Raw16DotNet: guid::swap, guid::swap, DotNetBytes);

column! {
    /// SQL Server's `uniqueidentifier`, for schemes whose keys rise in SQL Server's order as they are.
    ///
    /// The stored form is the value in network order. Drivers take and return UUIDs in this form, and convert to the
    /// wire's byte order themselves.
    UniqueIdentifier = "unique_identifier", SqlServer;
    SqlServer: "uniqueidentifier", GUID_LITERAL, SQL_GUID;
}
stores_permuted!(UniqueIdentifier: same, same, SqlServer);

column! {
    /// SQL Server's `uniqueidentifier` with the bytes permuted, so that all keys that rise as bytes, such as
    /// versions 6 and 7, rise there, too.
    ///
    /// The permutation can be undone, but other programs see another value, whose version and variant are not those
    /// of RFC 9562. Use it for tables that only ordid writes and reads.
    UniqueIdentifierPermuted = "unique_identifier_permuted", Bytes;
    SqlServer: "uniqueidentifier", GUID_LITERAL, SQL_GUID;
}
stores_permuted!(UniqueIdentifierPermuted: guid::from_sql_server_sort_key, guid::sql_server_sort_key, Bytes);

column! {
    /// Babelfish's `uniqueidentifier`. Babelfish compares it as PostgreSQL's `uuid`, not as SQL Server does.
    BabelfishUniqueIdentifier = "babelfish_unique_identifier", Bytes;
    Babelfish: "uniqueidentifier", GUID_LITERAL,
        "Babelfish contrib/babelfishpg_common, uniqueidentifier's operators: PostgreSQL's uuid_lt";
}
stores_permuted!(BabelfishUniqueIdentifier: same, same, Bytes);
