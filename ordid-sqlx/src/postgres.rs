//! PostgreSQL: `uuid`, `bytea`, `bigint`, and text under `COLLATE "C"`.

use ordid_core::{
    RawKey,
    storage::{
        KeepsOrder, StoredValue as _, Stores,
        column::{self, Unordered},
    },
    uuid::Uuid,
};
use sqlx::{
    Decode, Encode, Postgres, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef},
};

mod copy;

use crate::{
    backend::backend,
    stored::{SqlxColumn, Stored, StoredAs, bytes},
};

backend! {
    Postgres, ordid_core::storage::dialect::Postgres,
    begin: None,
    bulk: copy::Copy,
    placeholder: |sql, number| { sql.push('$'); sql.push_str(&number.to_string()); }
}

/// What arrays of a column's values need: `= ANY($1)`, `UNNEST($1)`.
pub trait PgColumn<R: RawKey>: SqlxColumn<Postgres, R> {
    /// The type of an array parameter.
    fn array_type_info() -> PgTypeInfo;

    /// Whether a value of this type is such an array.
    fn array_compatible(ty: &PgTypeInfo) -> bool;
}

impl<R: RawKey, C: PgColumn<R>> PgColumn<R> for Unordered<C> {
    fn array_type_info() -> PgTypeInfo {
        C::array_type_info()
    }

    fn array_compatible(ty: &PgTypeInfo) -> bool {
        C::array_compatible(ty)
    }
}

/// Body of a key type's `PgHasArrayType::array_type_info`.
pub fn array_type_info<K>() -> PgTypeInfo
where
    K: StoredAs<Postgres, Column: PgColumn<K::Raw>>,
{
    K::Column::array_type_info()
}

/// Body of a key type's `PgHasArrayType::array_compatible`.
pub fn array_compatible<K>(ty: &PgTypeInfo) -> bool
where
    K: StoredAs<Postgres, Column: PgColumn<K::Raw>>,
{
    K::Column::array_compatible(ty)
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
    };
    ($sqlx:ty) => {
        fn array_type_info() -> PgTypeInfo {
            <$sqlx as PgHasArrayType>::array_type_info()
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
        }

        impl<R: RawKey> PgColumn<R> for column::$column
        where
            Self: Stores<R>,
        {
            functions!($sqlx);
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

        impl PgColumn<$raw> for column::$column {
            functions!($raw);
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

impl<K, C> PgHasArrayType for Stored<K, C>
where
    K: KeepsOrder<C>,
    C: PgColumn<K::Raw>,
{
    fn array_type_info() -> PgTypeInfo {
        C::array_type_info()
    }

    fn array_compatible(ty: &PgTypeInfo) -> bool {
        C::array_compatible(ty)
    }
}
