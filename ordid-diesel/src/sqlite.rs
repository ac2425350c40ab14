//! SQLite: `BLOB`, `TEXT` and `INTEGER`.

use diesel::{
    deserialize,
    serialize::{self, IsNull, Output},
    sql_types::{BigInt, Binary, Nullable, Text},
    sqlite::{Sqlite, SqliteType},
};
use ordid_core::{
    RawKey,
    storage::{StoredValue as _, Stores, column},
};

use crate::{
    backend::backend,
    entity::{Typed, Values},
    stored::{DieselColumn, bytes, text},
};

type Value<'a> = <Sqlite as diesel::backend::Backend>::RawValue<'a>;

backend! {
    Sqlite, ordid_core::storage::dialect::Sqlite,
    flush_id: |id| Box::new(Typed::<Nullable<Binary>, Vec<u8>>::of(id.as_bytes().to_vec()))
}

/// Reads what there is, a number too, so that the column can say which one to declare.
fn decode<C: Stores<R>, R: RawKey>(mut value: Value<'_>) -> deserialize::Result<R> {
    let raw = match value.value_type() {
        Some(SqliteType::SmallInt | SqliteType::Integer | SqliteType::Long) => {
            C::decode(value.read_long())
        }
        _ => C::decode(value.read_blob()),
    };
    Ok(raw?)
}

/// Binds what the column stores as one of SQLite's own forms.
macro_rules! columns {
    ($sql_type:ident, $bind:ident; $($column:ident),+) => {
        $(impl<R: RawKey> DieselColumn<Sqlite, R> for column::$column
        where
            Self: Stores<R>,
        {
            type SqlType = $sql_type;

            fn to_sql(raw: R, out: &mut Output<'_, '_, Sqlite>) -> serialize::Result {
                out.set_value($bind(<Self as Stores<R>>::encode(raw).found())?.to_owned());
                Ok(IsNull::No)
            }

            fn from_sql(value: Value<'_>) -> deserialize::Result<R> {
                decode::<Self, R>(value)
            }
        })+
    };
}

columns!(Binary, bytes; Blob);
columns!(Text, text; Text, Char32, Char26, Char22, Char20);

impl DieselColumn<Sqlite, i64> for column::Integer {
    type SqlType = BigInt;

    fn to_sql(raw: i64, out: &mut Output<'_, '_, Sqlite>) -> serialize::Result {
        out.set_value(raw);
        Ok(IsNull::No)
    }

    fn from_sql(value: Value<'_>) -> deserialize::Result<i64> {
        decode::<Self, i64>(value)
    }
}
