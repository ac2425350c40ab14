//! MySQL and MariaDB, which SQLx takes for one: `BINARY(16)`, `CHAR` under `ascii_bin`, and
//! MariaDB's `UUID`.

use ordid_core::{
    storage::{Stores, column},
    uuid::Uuid,
};
use sqlx::{
    Decode, Encode, MySql, Type,
    encode::IsNull,
    error::BoxDynError,
    mysql::{MySqlTypeInfo, MySqlValueRef},
};

use crate::{backend::backend, stored::SqlxColumn};

backend! {
    MySql, ordid_core::storage::dialect::MySql,
    begin: None,
    bulk: std::convert::Infallible,
    placeholder: |sql, _number| sql.push('?')
}

/// Bytes and text alike, so that decoding can say which column to declare.
fn bytes_or_text(ty: &MySqlTypeInfo) -> bool {
    <[u8] as Type<MySql>>::compatible(ty) || <str as Type<MySql>>::compatible(ty)
}

macro_rules! column {
    ($column:ident, $sqlx:ty, $bind:expr) => {
        impl SqlxColumn<MySql> for column::$column {
            fn type_info() -> MySqlTypeInfo {
                <$sqlx as Type<MySql>>::type_info()
            }

            fn compatible(ty: &MySqlTypeInfo) -> bool {
                bytes_or_text(ty)
            }

            fn encode(raw: Uuid, buffer: &mut Vec<u8>) -> Result<IsNull, BoxDynError> {
                let stored = <Self as Stores<Uuid>>::encode(raw);
                let bind: fn(&[u8]) -> Result<&$sqlx, BoxDynError> = $bind;
                <&$sqlx as Encode<'_, MySql>>::encode_by_ref(&bind(stored.as_ref())?, buffer)
            }

            fn decode(value: MySqlValueRef<'_>) -> Result<Uuid, BoxDynError> {
                let stored = <&[u8] as Decode<'_, MySql>>::decode(value)?;
                Ok(<Self as Stores<Uuid>>::decode(stored)?)
            }
        }
    };
}

column!(Binary16, [u8], |bytes| Ok(bytes));
column!(MariaDbUuid, [u8], |bytes| Ok(bytes));
// As text, so that the server compares under the column's collation and can use its index.
column!(Char36, str, |bytes| Ok(std::str::from_utf8(bytes)?));
column!(Char22, str, |bytes| Ok(std::str::from_utf8(bytes)?));
