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
    storage::{Found, StoredValue as _, Stores, column},
};
use ordid_sql::stored::bytes;

use crate::{
    backend::backend,
    entity::{Typed, Values},
    stored::{DieselColumn, columns},
};

backend! {
    Mysql, ordid_core::storage::dialect::MySql,
    flush_id: |id| Box::new(Typed::<Nullable<Binary>, Vec<u8>>::of(id.as_bytes().to_vec())),
    also: {
        const DDL_COMMITS: bool = true;

        crate::backend::sent_bytes!(&mut ());
    }
}

/// An integer is bound as the client keeps it in memory.
fn encode(stored: Found<'_>, out: &mut Output<'_, '_, Mysql>) -> serialize::Result {
    match stored {
        Found::Integer(number) => out.write_all(&number.to_ne_bytes())?,
        Found::Unsigned(number) => out.write_all(&number.to_ne_bytes())?,
        other => out.write_all(bytes(other)?)?,
    }
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

columns!(Mysql, encode; Binary16 Binary12 Binary24 Binary16Swapped Binary16DotNet => Binary);
// Text is bound as text, so that the server compares under the column's collation and can use its index.
columns!(Mysql, encode; Char36 Char32 Char26 Char22 Char20 MariaDbUuid => Text);
columns!(Mysql, encode; [i64] BigInt => BigInt);
columns!(Mysql, encode; [u64] BigIntUnsigned => Unsigned<BigInt>);
