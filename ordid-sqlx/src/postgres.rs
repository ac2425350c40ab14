//! PostgreSQL: `uuid`, `bytea`, `bigint`, and text under `COLLATE "C"`.

use std::{
    pin::pin,
    task::{Context, Waker},
};

use ordid_core::{
    RawKey,
    storage::{KeepsOrder, StoredValue as _, Stores, column},
    uuid::Uuid,
};
use ordid_sql::stored::bytes;
use sqlx::{
    Arguments as _, Connection as _, Decode, Encode, Postgres, Row as _, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{
        PgArgumentBuffer, PgArguments, PgConnection, PgHasArrayType, PgQueryResult, PgTypeInfo,
        PgValueRef,
    },
    raw_sql,
};

mod copy;

use crate::{
    backend::{Values, backend},
    stored::{ColumnOf, RawOf, SqlxColumn, Stored, StoredAs},
};

backend! {
    Postgres, ordid_core::storage::dialect::Postgres,
    survives_drops: false,
    keeps_up_to: 0,
    bulk: copy::CopyPiece,
    savepoint_begins: false,
    has_transaction: has_transaction,
    abandon: abandon,
    survives_forks: true,
    last_id: |_: &PgQueryResult| 0,
    buffered: |buffer: &PgArgumentBuffer| Some(buffer.len()),
    bind_mapped: bind_mapped
}

/// Arrays take the place of many parameters.
fn bind_mapped(arguments: &mut PgArguments, values: Values<'_>) -> Result<(), BoxDynError> {
    match values {
        Values::None => Ok(()),
        Values::Ids(ids) => arguments.add(ids),
        Values::Entries([entry]) => {
            arguments.add(i64::from(entry.hash()))?;
            arguments.add(entry.uuid())
        }
        Values::Entries(entries) => {
            let pairs = entries.iter();
            let pairs = pairs.map(|entry| (i64::from(entry.hash()), entry.uuid()));
            let (hashes, uuids): (Vec<i64>, Vec<Uuid>) = pairs.unzip();
            arguments.add(hashes)?;
            arguments.add(uuids)
        }
    }
}

/// A transaction begins with its first statement, so another one has another time.
async fn has_transaction(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    // By the simple protocol, in which all of it is one statement.
    let sql = "SELECT transaction_timestamp() <> statement_timestamp()";
    match raw_sql(sql).fetch_one(connection).await {
        Ok(row) => row.try_get(0),
        // One that has failed takes nothing but its end.
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("25P02") => Ok(true),
        Err(error) => Err(error),
    }
}

/// SQLx sends what begins a transaction before it waits for earlier answers, so that a ROLLBACK takes its
/// place behind the BEGIN at the first poll, and is read, like any answer nobody waits for, by the next who
/// uses the connection.
fn abandon(connection: &mut PgConnection) {
    let rollback = pin!(connection.begin_with("ROLLBACK"));
    let _ = rollback.poll(&mut Context::from_waker(Waker::noop()));
}

/// The type of an array of a column's values.
fn array_of<C: SqlxColumn<Postgres, R>, R: RawKey>() -> PgTypeInfo {
    // Each column here has one.
    C::array_type_info().unwrap_or_else(C::type_info)
}

/// Body of a key type's `PgHasArrayType::array_type_info`.
pub fn array_type_info<K: StoredAs<Postgres>>() -> PgTypeInfo {
    array_of::<ColumnOf<Postgres, K>, RawOf<K>>()
}

/// Body of a key type's `PgHasArrayType::array_compatible`.
pub fn array_compatible<K: StoredAs<Postgres>>(ty: &PgTypeInfo) -> bool {
    <ColumnOf<Postgres, K> as SqlxColumn<Postgres, RawOf<K>>>::array_compatible(ty)
}

/// The functions of a column that SQLx knows as one of its own types.
macro_rules! functions {
    ($raw:ty, $sqlx:ty, $encode:expr, $decode:expr) => {
        fn type_info() -> PgTypeInfo {
            <$sqlx as Type<Postgres>>::type_info()
        }

        fn compatible(ty: &PgTypeInfo) -> bool {
            <$sqlx as Type<Postgres>>::compatible(ty)
        }

        fn encode(raw: $raw, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
            $encode(raw, buffer)
        }

        fn decode(value: PgValueRef<'_>) -> Result<$raw, BoxDynError> {
            $decode(value)
        }

        fn array_type_info() -> Option<PgTypeInfo> {
            Some(<$sqlx as PgHasArrayType>::array_type_info())
        }

        fn array_compatible(ty: &PgTypeInfo) -> bool {
            <$sqlx as PgHasArrayType>::array_compatible(ty)
        }
    };
}

/// Columns of every raw key that they store.
macro_rules! columns {
    ($sqlx:ty, $encode:expr, $decode:expr; $($column:ident),+) => {
        $(impl<R: RawKey> SqlxColumn<Postgres, R> for column::$column
        where
            Self: Stores<R>,
        {
            functions!(R, $sqlx, $encode, $decode);
        })+
    };
}

/// A column of one raw key, which SQLx knows itself.
macro_rules! own {
    ($column:ident, $raw:ty) => {
        impl SqlxColumn<Postgres, $raw> for column::$column {
            functions!(
                $raw,
                $raw,
                |raw: $raw, buffer| <$raw as Encode<'_, Postgres>>::encode_by_ref(&raw, buffer),
                <$raw as Decode<'_, Postgres>>::decode
            );
        }
    };
}

/// Bytes and text alike are sent as they are stored.
fn encode_bytes<C: Stores<R>, R: RawKey>(
    raw: R,
    buffer: &mut PgArgumentBuffer,
) -> Result<IsNull, BoxDynError> {
    buffer.extend_from_slice(bytes(C::encode(raw).found())?);
    Ok(IsNull::No)
}

fn decode_text<C: Stores<R>, R: RawKey>(value: PgValueRef<'_>) -> Result<R, BoxDynError> {
    Ok(C::decode(value.as_bytes()?)?)
}

/// Through SQLx's vector, which reads the hex of the text protocol too.
fn decode_bytea<C: Stores<R>, R: RawKey>(value: PgValueRef<'_>) -> Result<R, BoxDynError> {
    let stored = <Vec<u8> as Decode<'_, Postgres>>::decode(value)?;
    Ok(C::decode(&*stored)?)
}

own!(Uuid, Uuid);
own!(BigInt, i64);
columns!(Vec<u8>, encode_bytes::<Self, R>, decode_bytea::<Self, R>; Bytea);
columns!(
    String, encode_bytes::<Self, R>, decode_text::<Self, R>;
    Text, Char32, Char26, Char22, Char20
);

impl<K: KeepsOrder<C>, C: SqlxColumn<Postgres, K::Raw>> PgHasArrayType for Stored<K, C> {
    fn array_type_info() -> PgTypeInfo {
        array_of::<C, K::Raw>()
    }

    fn array_compatible(ty: &PgTypeInfo) -> bool {
        C::array_compatible(ty)
    }
}

/// SQLx stores it in the same column.
impl crate::StoredAs<Postgres> for ordid_core::uuid::Uuid {
    type Column = column::Uuid;
}
