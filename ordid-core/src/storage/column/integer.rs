//! Columns of integers, compared as numbers. Signed columns take `i64` alone, unsigned ones `u64`.

use super::*;

const NUMBERS: &str = "compares the numbers";

/// Stores integers as they are. In the sort key some bits are turned round.
macro_rules! stores_integers {
    ($type:ident: $raw:ty, $expected:literal, $turned:expr) => {
        impl Stores<$raw> for $type {
            type Stored = $raw;
            type SortKey = [u8; 8];

            #[inline]
            fn encode(raw: $raw) -> $raw {
                raw
            }

            #[inline]
            fn decode<'a>(found: impl Into<Found<'a>>) -> Result<$raw, Error> {
                let found = found.into();
                let integer = match found {
                    Found::Integer(integer) => <$raw>::try_from(integer).ok(),
                    Found::Unsigned(integer) => <$raw>::try_from(integer).ok(),
                    Found::Bytes(_) => None,
                };
                integer.ok_or_else(|| wrong_form(Self::NAME, $expected, 8, found))
            }

            #[inline]
            fn sort_key(raw: $raw) -> [u8; 8] {
                (raw ^ $turned).to_be_bytes()
            }

            #[inline]
            fn from_sort_key(key: [u8; 8]) -> Result<$raw, Error> {
                Ok(<$raw>::from_be_bytes(key) ^ $turned)
            }
        }
    };
}

/// The sign is turned round, so that negative numbers come first.
macro_rules! stores_signed {
    ($type:ident) => {
        stores_integers!($type: i64, "an integer of 64 bits with a sign", i64::MIN);
    };
}

macro_rules! stores_unsigned {
    ($type:ident) => {
        stores_integers!($type: u64, "an integer of 64 bits without a sign", 0);
    };
}

const MYSQL_INTEGER: &str = "MySQL 8.4 manual, section 13.1.2, \"Integer Types\"";
const MARIADB_INTEGER: &str = "MariaDB documentation, \"BIGINT\"";
const ORACLE_NUMBER: &str =
    "Oracle Database SQL Language Reference, \"Data Type Comparison Rules\", numeric values";
/// As `bigint`: SQL Server takes digits beyond 32 bits for a decimal, which the column would be
/// converted to.
const CAST_AS_BIGINT: Literal = Literal::new("CAST(", Written::Plain, " AS bigint)");

column! {
    /// `bigint`: a signed integer of 64 bits.
    BigInt = "bigint", Bytes, NUMBERS;
    // Digits alone would be of another type for some numbers, and the least have no digits.
    Postgres: "bigint", Literal::new("'", Written::Plain, "'::bigint"),
        "PostgreSQL src/backend/access/nbtree/nbtcompare.c, btint8cmp";
    MySql: "BIGINT", DIGITS, MYSQL_INTEGER;
    MariaDb: "BIGINT", DIGITS, MARIADB_INTEGER;
    SqlServer: "bigint", CAST_AS_BIGINT,
        "Microsoft Learn, \"int, bigint, smallint, and tinyint (Transact-SQL)\"";
    Babelfish: "bigint", CAST_AS_BIGINT,
        "PostgreSQL src/backend/access/nbtree/nbtcompare.c, btint8cmp";
}
stores_signed!(BigInt);

column! {
    /// SQLite's `INTEGER`: a signed integer of 64 bits. As a primary key it is the rowid.
    Integer = "integer", Bytes, NUMBERS;
    Sqlite: "INTEGER", DIGITS, "SQLite, \"Datatypes In SQLite\", section 4.1, \"Sort Order\"";
}
stores_signed!(Integer);

column! {
    /// `BIGINT UNSIGNED` of MySQL and MariaDB: an unsigned integer of 64 bits.
    BigIntUnsigned = "bigint_unsigned", Bytes, NUMBERS;
    MySql: "BIGINT UNSIGNED", DIGITS, MYSQL_INTEGER;
    MariaDb: "BIGINT UNSIGNED", DIGITS, MARIADB_INTEGER;
}
stores_unsigned!(BigIntUnsigned);

column! {
    /// Oracle's `NUMBER(19)`: 19 decimal digits, enough for a signed integer of 64 bits.
    Number19 = "number19", Bytes, NUMBERS;
    Oracle: "NUMBER(19)", DIGITS, ORACLE_NUMBER;
}
stores_signed!(Number19);

column! {
    /// Oracle's `NUMBER(20)`: 20 decimal digits, enough for an unsigned integer of 64 bits.
    Number20 = "number20", Bytes, NUMBERS;
    Oracle: "NUMBER(20)", DIGITS, ORACLE_NUMBER;
}
stores_unsigned!(Number20);
