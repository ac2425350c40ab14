//! PostgreSQL: `uuid`, `bytea`, `bigint`, and text under `COLLATE "C"`.

use std::io::Write as _;

use diesel::{
    deserialize::{self, FromSql},
    pg::{Pg, PgValue},
    serialize::{self, IsNull, Output, ToSql},
    sql_types,
};
use ordid_core::{
    RawKey,
    storage::{StoredValue as _, Stores, column},
    uuid::Uuid,
};

#[cfg(feature = "copy")]
pub(crate) mod copy;

use crate::{
    backend::backend,
    entity::{Typed, Values},
    stored::DieselColumn,
};

backend! {
    Pg, ordid_core::storage::dialect::Postgres,
    flush_id: |id| Box::new(Typed::<sql_types::Nullable<sql_types::Uuid>, FlushId>::of(FlushId(id))),
    also: {
        #[cfg(feature = "copy")]
        fn send_rows<E: crate::Columns<Self>>() -> Option<copy::SendRows> {
            Some(copy::send::<E>)
        }

        #[cfg(feature = "copy")]
        fn type_number<N>() -> Option<u32>
        where
            Self: diesel::sql_types::HasSqlType<N>,
        {
            copy::type_number::<N>()
        }

        #[cfg(feature = "copy")]
        fn copy<N, T: ToSql<N, Self>>(value: Option<&T>, copy: &mut copy::CopyBuffer)
        where
            Self: diesel::sql_types::HasSqlType<N>,
        {
            copy.put::<N, T>(value);
        }
    }
}

/// The key of a marker row.
#[derive(Debug, Clone)]
struct FlushId(Uuid);

impl ToSql<sql_types::Nullable<sql_types::Uuid>, Pg> for FlushId {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(self.0.as_bytes())?;
        Ok(IsNull::No)
    }
}

/// Bytes and text alike are sent as they are stored.
fn encode_bytes<C: Stores<R>, R: RawKey>(
    raw: R,
    out: &mut Output<'_, '_, Pg>,
) -> serialize::Result {
    out.write_all(crate::stored::bytes(C::encode(raw).found())?)?;
    Ok(IsNull::No)
}

/// Reads what there is, a number too, so that the column can say which one to declare.
fn decode<C: Stores<R>, R: RawKey>(value: PgValue<'_>) -> deserialize::Result<R> {
    const INT8: u32 = 20;
    let is_integer = value.as_bytes().len() == 8 && value.get_oid().get() == INT8;
    let raw = if is_integer {
        C::decode(<i64 as FromSql<sql_types::BigInt, Pg>>::from_sql(value)?)
    } else {
        C::decode(value.as_bytes())
    };
    Ok(raw?)
}

/// Columns of bytes and of text.
macro_rules! columns {
    ($sql_type:ident; $($column:ident),+) => {
        $(impl<R: RawKey> DieselColumn<Pg, R> for column::$column
        where
            Self: Stores<R>,
        {
            type SqlType = sql_types::$sql_type;

            fn to_sql(raw: R, out: &mut Output<'_, '_, Pg>) -> serialize::Result {
                encode_bytes::<Self, R>(raw, out)
            }

            fn from_sql(value: PgValue<'_>) -> deserialize::Result<R> {
                decode::<Self, R>(value)
            }
        })+
    };
}

columns!(Uuid; Uuid);
columns!(Binary; Bytea);
columns!(Text; Text, Char32, Char26, Char22, Char20);

impl DieselColumn<Pg, i64> for column::BigInt {
    type SqlType = sql_types::BigInt;

    fn to_sql(raw: i64, out: &mut Output<'_, '_, Pg>) -> serialize::Result {
        out.write_all(&raw.to_be_bytes())?;
        Ok(IsNull::No)
    }

    fn from_sql(value: PgValue<'_>) -> deserialize::Result<i64> {
        decode::<Self, i64>(value)
    }
}
