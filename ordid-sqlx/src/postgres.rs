//! PostgreSQL: `uuid`, and text under `COLLATE "C"`.

use ordid_core::{
    KeyType,
    storage::{KeepsOrder, Stores, column},
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
    stored::{SqlxColumn, Stored},
};

backend! {
    Postgres, ordid_core::storage::dialect::Postgres,
    begin: None,
    bulk: copy::Copy,
    placeholder: |sql, number| { sql.push('$'); sql.push_str(&number.to_string()); }
}

/// What arrays of a column's values need: `= ANY($1)`, `UNNEST($1)`.
pub trait PgColumn: SqlxColumn<Postgres> {
    /// The type of an array parameter.
    fn array_type_info() -> PgTypeInfo;

    /// Whether a value of this type is such an array.
    fn array_compatible(ty: &PgTypeInfo) -> bool;
}

macro_rules! column {
    ($column:ident, $sqlx:ty, $encode:expr, $decode:expr) => {
        impl SqlxColumn<Postgres> for column::$column {
            fn type_info() -> PgTypeInfo {
                <$sqlx as Type<Postgres>>::type_info()
            }

            fn compatible(ty: &PgTypeInfo) -> bool {
                <$sqlx as Type<Postgres>>::compatible(ty)
            }

            fn encode(raw: Uuid, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
                $encode(raw, buffer)
            }

            fn decode(value: PgValueRef<'_>) -> Result<Uuid, BoxDynError> {
                $decode(value)
            }
        }

        impl PgColumn for column::$column {
            fn array_type_info() -> PgTypeInfo {
                <$sqlx as PgHasArrayType>::array_type_info()
            }

            fn array_compatible(ty: &PgTypeInfo) -> bool {
                <$sqlx as PgHasArrayType>::array_compatible(ty)
            }
        }
    };
}

fn encode_text<C: Stores<Uuid>>(
    raw: Uuid,
    buffer: &mut PgArgumentBuffer,
) -> Result<IsNull, BoxDynError> {
    buffer.extend_from_slice(C::encode(raw).as_ref());
    Ok(IsNull::No)
}

fn decode_text<C: Stores<Uuid>>(value: PgValueRef<'_>) -> Result<Uuid, BoxDynError> {
    Ok(C::decode(value.as_bytes()?)?)
}

column!(
    Uuid,
    Uuid,
    |raw: Uuid, buffer| <Uuid as Encode<'_, Postgres>>::encode_by_ref(&raw, buffer),
    <Uuid as Decode<'_, Postgres>>::decode
);
column!(Text, String, encode_text::<Self>, decode_text::<Self>);
column!(Char22, String, encode_text::<Self>, decode_text::<Self>);

impl<K, C> PgHasArrayType for Stored<K, C>
where
    K: KeepsOrder<C> + KeyType<Raw = Uuid>,
    C: PgColumn,
{
    fn array_type_info() -> PgTypeInfo {
        C::array_type_info()
    }

    fn array_compatible(ty: &PgTypeInfo) -> bool {
        C::array_compatible(ty)
    }
}
