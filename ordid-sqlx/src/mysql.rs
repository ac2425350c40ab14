//! MySQL and MariaDB, which SQLx takes for one: `BINARY`, `CHAR` under `ascii_bin`, `BIGINT`, and
//! MariaDB's `UUID`.

use ordid_core::{
    RawKey,
    storage::{StoredValue as _, Stores, column},
};
use ordid_sql::stored::{bytes, text};
use sqlx::{
    Decode, Encode, MySql, Type, ValueRef as _,
    encode::IsNull,
    error::BoxDynError,
    mysql::{MySqlConnection, MySqlDatabaseError, MySqlQueryResult, MySqlTypeInfo, MySqlValueRef},
    raw_sql,
};

use crate::{
    backend::{backend, bind_each},
    stored::SqlxColumn,
};

backend! {
    MySql, ordid_core::storage::dialect::MySql,
    // Dropped while BEGIN is under way, it has a transaction open that SQLx 0.9 does not know of, and
    // whoever uses it next writes into that. Dropped while a statement is prepared, it has answers under
    // way that SQLx does not count.
    survives_drops: false,
    // SQLx closes a statement that it does not keep. The server does not answer that, so that the next packet, which SQLx
    // 0.9.0 sends without TCP_NODELAY (its issue 4335), waits until the server's kernel acknowledges it: 40 ms on Linux.
    // A server needs about 540 bytes for each parameter of a statement that is kept, and SQLx keeps 100 of them for each
    // connection: so not the long ones.
    keeps_up_to: 1_024,
    bulk: std::convert::Infallible,
    savepoint_begins: false,
    has_transaction: has_transaction,
    // Nothing is sent before BEGIN is answered.
    abandon: |_| (),
    survives_forks: true,
    last_id: MySqlQueryResult::last_insert_id,
    buffered: |buffer: &Vec<u8>| Some(buffer.len()),
    bind_mapped: bind_each::<MySql, u32>
}

/// Outside of a transaction a savepoint is gone at once.
async fn has_transaction(connection: &mut MySqlConnection) -> Result<bool, sqlx::Error> {
    const NO_SUCH_SAVEPOINT: u16 = 1305;

    let sql = "SAVEPOINT ordid_open; RELEASE SAVEPOINT ordid_open";
    match raw_sql(sql).execute(connection).await {
        Ok(_) => Ok(true),
        Err(sqlx::Error::Database(error))
            if error
                .try_downcast_ref::<MySqlDatabaseError>()
                .is_some_and(|error| error.number() == NO_SUCH_SAVEPOINT) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Bytes, text and integers alike, so that decoding can say which column to declare.
fn readable(ty: &MySqlTypeInfo) -> bool {
    <[u8] as Type<MySql>>::compatible(ty) || is_integer(ty)
}

fn is_integer(ty: &MySqlTypeInfo) -> bool {
    <i64 as Type<MySql>>::compatible(ty) || <u64 as Type<MySql>>::compatible(ty)
}

fn decode<C: Stores<R>, R: RawKey>(value: MySqlValueRef<'_>) -> Result<R, BoxDynError> {
    let ty = value.type_info();
    let raw = if <i64 as Type<MySql>>::compatible(&ty) {
        C::decode(<i64 as Decode<'_, MySql>>::decode(value)?)
    } else if <u64 as Type<MySql>>::compatible(&ty) {
        C::decode(<u64 as Decode<'_, MySql>>::decode(value)?)
    } else {
        C::decode(<&[u8] as Decode<'_, MySql>>::decode(value)?)
    };
    Ok(raw?)
}

/// Binds what the column stores as one of SQLx's own types.
macro_rules! columns {
    ($sqlx:ty, $bound:ty, $bind:expr; $($column:ident),+) => {
        $(impl<R: RawKey> SqlxColumn<MySql, R> for column::$column
        where
            Self: Stores<R>,
        {
            fn type_info() -> MySqlTypeInfo {
                <$sqlx as Type<MySql>>::type_info()
            }

            fn compatible(ty: &MySqlTypeInfo) -> bool {
                readable(ty)
            }

            fn encode(raw: R, buffer: &mut Vec<u8>) -> Result<IsNull, BoxDynError> {
                let stored = <Self as Stores<R>>::encode(raw);
                let value: $bound = $bind(stored.found())?;
                <$bound as Encode<'_, MySql>>::encode_by_ref(&value, buffer)
            }

            fn decode(value: MySqlValueRef<'_>) -> Result<R, BoxDynError> {
                decode::<Self, R>(value)
            }
        })+
    };
}

columns!(
    [u8], &[u8], bytes;
    Binary16, Binary12, Binary24, Binary16Swapped, Binary16DotNet
);
// As text, so that the server compares under the column's collation and can use its index.
columns!(str, &str, text; Char36, Char32, Char26, Char22, Char20, MariaDbUuid);

/// An integer is bound and read as itself.
macro_rules! integer {
    ($column:ident, $integer:ty) => {
        impl SqlxColumn<MySql, $integer> for column::$column {
            fn type_info() -> MySqlTypeInfo {
                <$integer as Type<MySql>>::type_info()
            }

            fn compatible(ty: &MySqlTypeInfo) -> bool {
                readable(ty)
            }

            fn encode(raw: $integer, buffer: &mut Vec<u8>) -> Result<IsNull, BoxDynError> {
                <$integer as Encode<'_, MySql>>::encode(raw, buffer)
            }

            fn decode(value: MySqlValueRef<'_>) -> Result<$integer, BoxDynError> {
                decode::<Self, $integer>(value)
            }
        }
    };
}

integer!(BigInt, i64);
integer!(BigIntUnsigned, u64);

/// SQLx stores it in the same column.
impl crate::StoredAs<MySql> for ordid_core::uuid::Uuid {
    type Column = column::Binary16;
}
