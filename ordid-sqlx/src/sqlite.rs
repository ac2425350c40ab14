//! SQLite: `BLOB` and `TEXT`.

use ordid_core::{
    storage::{Stores, column},
    uuid::Uuid,
};
use sqlx::{
    Decode, Encode, Sqlite, Type,
    encode::IsNull,
    error::BoxDynError,
    sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef},
};

use crate::{backend::backend, stored::SqlxColumn};

backend! {
    Sqlite, ordid_core::storage::dialect::Sqlite,
    // A deferred transaction that reads first and writes later can fail with SQLITE_BUSY at once,
    // however long the busy timeout; one that means to write says so.
    begin: Some("BEGIN IMMEDIATE"),
    bulk: std::convert::Infallible,
    placeholder: |sql, _number| sql.push('?')
}

/// Bytes and text alike, so that decoding can say which column to declare.
fn bytes_or_text(ty: &SqliteTypeInfo) -> bool {
    <[u8] as Type<Sqlite>>::compatible(ty) || <str as Type<Sqlite>>::compatible(ty)
}

macro_rules! column {
    ($column:ident, $sqlx:ty, $bind:expr) => {
        impl SqlxColumn<Sqlite> for column::$column {
            fn type_info() -> SqliteTypeInfo {
                <$sqlx as Type<Sqlite>>::type_info()
            }

            fn compatible(ty: &SqliteTypeInfo) -> bool {
                bytes_or_text(ty)
            }

            fn encode(
                raw: Uuid,
                buffer: &mut SqliteArgumentsBuffer,
            ) -> Result<IsNull, BoxDynError> {
                let stored = <Self as Stores<Uuid>>::encode(raw);
                let bind: fn(&[u8]) -> Result<$sqlx, BoxDynError> = $bind;
                <$sqlx as Encode<'_, Sqlite>>::encode(bind(stored.as_ref())?, buffer)
            }

            fn decode(value: SqliteValueRef<'_>) -> Result<Uuid, BoxDynError> {
                let stored = <&[u8] as Decode<'_, Sqlite>>::decode(value)?;
                Ok(<Self as Stores<Uuid>>::decode(stored)?)
            }
        }
    };
}

column!(Blob, Vec<u8>, |bytes| Ok(bytes.to_vec()));
column!(Text, String, |bytes| Ok(
    std::str::from_utf8(bytes)?.to_owned()
));
column!(Char22, String, |bytes| Ok(
    std::str::from_utf8(bytes)?.to_owned()
));
