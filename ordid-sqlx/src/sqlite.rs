//! SQLite: `BLOB`, `TEXT` and `INTEGER`.

use ordid_core::{
    RawKey,
    storage::{StoredValue as _, Stores, column},
};
use ordid_sql::{
    classify::sqlite,
    stored::{bytes, text},
};
use sqlx::{
    Decode, Encode, Sqlite, Type, ValueRef as _,
    encode::IsNull,
    error::BoxDynError,
    raw_sql,
    sqlite::{
        SqliteArgumentsBuffer, SqliteConnection, SqliteQueryResult, SqliteTypeInfo, SqliteValueRef,
    },
};

use crate::{
    backend::{backend, bind_each},
    stored::SqlxColumn,
};

backend! {
    Sqlite, ordid_core::storage::dialect::Sqlite,
    survives_drops: true,
    keeps_up_to: 0,
    bulk: std::convert::Infallible,
    savepoint_begins: true,
    has_transaction: has_transaction,
    // SQLx's thread rolls back what nobody waits for.
    abandon: |_| (),
    // It takes locks that are the process's, and goes on as if the child had those of its parent.
    survives_forks: false,
    last_id: |_: &SqliteQueryResult| 0,
    // SQLx does not say how large SQLite's arguments are: the binder counts texts and bytes itself.
    buffered: |_| None,
    bind_mapped: bind_each::<Sqlite, i64>
}

async fn has_transaction(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    match raw_sql(sqlite::ASK_OPEN).execute(connection).await {
        Ok(_) => Ok(false),
        Err(sqlx::Error::Database(error)) if sqlite::says_open(error.message()) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Bytes, text and integers alike, so that decoding can say which column to declare.
fn readable(ty: &SqliteTypeInfo) -> bool {
    <[u8] as Type<Sqlite>>::compatible(ty) || <i64 as Type<Sqlite>>::compatible(ty)
}

fn decode<C: Stores<R>, R: RawKey>(value: SqliteValueRef<'_>) -> Result<R, BoxDynError> {
    let raw = if <i64 as Type<Sqlite>>::compatible(&value.type_info()) {
        C::decode(<i64 as Decode<'_, Sqlite>>::decode(value)?)
    } else {
        C::decode(<&[u8] as Decode<'_, Sqlite>>::decode(value)?)
    };
    Ok(raw?)
}

/// Binds what the column stores as one of SQLx's own types.
macro_rules! columns {
    ($sqlx:ty, $bind:expr; $($column:ident),+) => {
        $(impl<R: RawKey> SqlxColumn<Sqlite, R> for column::$column
        where
            Self: Stores<R>,
        {
            fn type_info() -> SqliteTypeInfo {
                <$sqlx as Type<Sqlite>>::type_info()
            }

            fn compatible(ty: &SqliteTypeInfo) -> bool {
                readable(ty)
            }

            fn encode(raw: R, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
                let stored = <Self as Stores<R>>::encode(raw);
                <$sqlx as Encode<'_, Sqlite>>::encode($bind(stored.found())?.to_owned(), buffer)
            }

            fn decode(value: SqliteValueRef<'_>) -> Result<R, BoxDynError> {
                decode::<Self, R>(value)
            }
        })+
    };
}

columns!(Vec<u8>, bytes; Blob);
columns!(String, text; Text, Char32, Char26, Char22, Char20);

impl SqlxColumn<Sqlite, i64> for column::Integer {
    fn type_info() -> SqliteTypeInfo {
        <i64 as Type<Sqlite>>::type_info()
    }

    fn compatible(ty: &SqliteTypeInfo) -> bool {
        readable(ty)
    }

    fn encode(raw: i64, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'_, Sqlite>>::encode(raw, buffer)
    }

    fn decode(value: SqliteValueRef<'_>) -> Result<i64, BoxDynError> {
        decode::<Self, i64>(value)
    }
}

/// SQLx stores it in the same column.
impl crate::StoredAs<Sqlite> for ordid_core::uuid::Uuid {
    type Column = column::Blob;
}
