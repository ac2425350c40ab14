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
    storage::{Found, StoredValue as _, Stores, column},
    uuid::Uuid,
};
use ordid_sql::stored::bytes;

#[cfg(feature = "copy")]
pub(crate) mod copy;

use crate::{
    backend::backend,
    entity::{Typed, Values},
    stored::{DieselColumn, columns},
};

backend! {
    Pg, ordid_core::storage::dialect::Postgres,
    flush_id: |id| Box::new(Typed::<sql_types::Nullable<sql_types::Uuid>, FlushId>::of(FlushId(id))),
    also: {
        crate::backend::sent_bytes!(&mut NoLookup);

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

/// Finds no number of a type, which the bytes of a value do not depend on.
#[cfg(any(feature = "copy", feature = "journal"))]
struct NoLookup;

#[cfg(any(feature = "copy", feature = "journal"))]
impl diesel::pg::PgMetadataLookup for NoLookup {
    fn lookup_type(&mut self, _: &str, _: Option<&str>) -> diesel::pg::PgTypeMetadata {
        diesel::pg::PgTypeMetadata::new(0, 0)
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
fn encode(stored: Found<'_>, out: &mut Output<'_, '_, Pg>) -> serialize::Result {
    match stored {
        Found::Integer(number) => out.write_all(&number.to_be_bytes())?,
        other => out.write_all(bytes(other)?)?,
    }
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

columns!(Pg, encode; Uuid => sql_types::Uuid);
columns!(Pg, encode; Bytea => sql_types::Binary);
columns!(Pg, encode; Text Char32 Char26 Char22 Char20 => sql_types::Text);
columns!(Pg, encode; [i64] BigInt => sql_types::BigInt);
