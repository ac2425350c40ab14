//! MySQL and MariaDB, which Diesel takes for one: `BINARY`, `CHAR` under `ascii_bin`, `BIGINT`, and
//! MariaDB's `UUID`.

use std::io::Write as _;

use diesel::{
    deserialize::{self, FromSql},
    mysql::{Mysql, MysqlType, MysqlValue},
    serialize::{self, IsNull, Output},
    sql_types::{BigInt, Binary, Nullable, Text, Unsigned},
};
use ordid_core::{
    RawKey,
    storage::{StoredValue as _, Stores, column},
};

use crate::{
    backend::backend,
    entity::{Typed, Values},
    stored::DieselColumn,
};

backend! {
    Mysql, ordid_core::storage::dialect::MySql,
    flush_id: |id| Box::new(Typed::<Nullable<Binary>, Vec<u8>>::of(id.as_bytes().to_vec()))
}

fn encode_bytes<C: Stores<R>, R: RawKey>(
    raw: R,
    out: &mut Output<'_, '_, Mysql>,
) -> serialize::Result {
    out.write_all(crate::stored::bytes(C::encode(raw).found())?)?;
    Ok(IsNull::No)
}

/// Reads what there is, a number too, so that the column can say which one to declare.
fn decode<C: Stores<R>, R: RawKey>(value: MysqlValue<'_>) -> deserialize::Result<R> {
    let raw = match value.value_type() {
        MysqlType::Tiny | MysqlType::Short | MysqlType::Long | MysqlType::LongLong => {
            C::decode(<i64 as FromSql<BigInt, Mysql>>::from_sql(value)?)
        }
        MysqlType::UnsignedTiny
        | MysqlType::UnsignedShort
        | MysqlType::UnsignedLong
        | MysqlType::UnsignedLongLong => {
            C::decode(<u64 as FromSql<Unsigned<BigInt>, Mysql>>::from_sql(value)?)
        }
        _ => C::decode(value.as_bytes()),
    };
    Ok(raw?)
}

/// Columns of bytes and of text. Text is bound as text, so that the server compares under the column's
/// collation and can use its index.
macro_rules! columns {
    ($sql_type:ty; $($column:ident),+) => {
        $(impl<R: RawKey> DieselColumn<Mysql, R> for column::$column
        where
            Self: Stores<R>,
        {
            type SqlType = $sql_type;

            fn to_sql(raw: R, out: &mut Output<'_, '_, Mysql>) -> serialize::Result {
                encode_bytes::<Self, R>(raw, out)
            }

            fn from_sql(value: MysqlValue<'_>) -> deserialize::Result<R> {
                decode::<Self, R>(value)
            }
        })+
    };
}

columns!(Binary; Binary16, Binary12, Binary24, Binary16Swapped, Binary16DotNet);
columns!(Text; Char36, Char32, Char26, Char22, Char20, MariaDbUuid);

/// An integer is bound as the client keeps it in memory.
macro_rules! integer {
    ($column:ident, $integer:ty, $sql_type:ty) => {
        impl DieselColumn<Mysql, $integer> for column::$column {
            type SqlType = $sql_type;

            fn to_sql(raw: $integer, out: &mut Output<'_, '_, Mysql>) -> serialize::Result {
                out.write_all(&raw.to_ne_bytes())?;
                Ok(IsNull::No)
            }

            fn from_sql(value: MysqlValue<'_>) -> deserialize::Result<$integer> {
                decode::<Self, $integer>(value)
            }
        }
    };
}

integer!(BigInt, i64, BigInt);
integer!(BigIntUnsigned, u64, Unsigned<BigInt>);
