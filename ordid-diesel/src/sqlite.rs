//! SQLite: `BLOB`, `TEXT` and `INTEGER`.

use diesel::{
    deserialize,
    serialize::{self, IsNull, Output},
    sql_types::{BigInt, Binary, Nullable, Text},
    sqlite::{Sqlite, SqliteType},
};
use ordid_core::{
    RawKey,
    storage::{Found, StoredValue as _, Stores, column},
};
use ordid_sql::stored::{bytes, text};

use crate::{
    backend::backend,
    entity::{Typed, Values},
    stored::{DieselColumn, columns},
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

fn encode_bytes(stored: Found<'_>, out: &mut Output<'_, '_, Sqlite>) -> serialize::Result {
    out.set_value(bytes(stored)?.to_owned());
    Ok(IsNull::No)
}

fn encode_text(stored: Found<'_>, out: &mut Output<'_, '_, Sqlite>) -> serialize::Result {
    out.set_value(text(stored)?.to_owned());
    Ok(IsNull::No)
}

fn encode_integer(stored: Found<'_>, out: &mut Output<'_, '_, Sqlite>) -> serialize::Result {
    match stored {
        Found::Integer(number) => out.set_value(number),
        other => return Err(format!("expected an integer, found {other:?}").into()),
    }
    Ok(IsNull::No)
}

columns!(Sqlite, encode_bytes; Blob => Binary);
columns!(Sqlite, encode_text; Text Char32 Char26 Char22 Char20 => Text);
columns!(Sqlite, encode_integer; [i64] Integer => BigInt);
