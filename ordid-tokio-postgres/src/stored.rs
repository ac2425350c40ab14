//! Keys as values of tokio-postgres: a trait per column, one for key types, and a wrapper for people without newtypes.

use bytes::{BufMut as _, BytesMut};
use ordid_core::{
    KeyType, RawKey,
    storage::{
        Found, KeepsOrder, StoredValue as _, Stores,
        column::{self, Unordered},
    },
};
use ordid_sql::spi::BoxedError;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, WrongType};

/// A column of PostgreSQL that stores a kind of raw key, as tokio-postgres writes and reads it. Implemented here for each
/// pair that exists.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a column of PostgreSQL for raw keys of type `{R}`",
    label = "no such column here",
    note = "128 bits: uuid, bytea, text, char22, char26; `i64`: bigint; `ObjectId`: bytea, text; `PushId`: bytea, text, \
            char20; `Key192`: bytea, text, char32",
    note = "for `u64` there is none: PostgreSQL has no integers without a sign"
)]
pub trait PgColumn<R: RawKey>: Stores<R> {
    /// Returns whether a column of this type stores such keys.
    fn accepts(ty: &Type) -> bool;
}

/// The columns, and the types that they may have.
macro_rules! columns {
    ($($column:ident: $types:pat,)+) => {
        $(impl<R: RawKey> PgColumn<R> for column::$column
        where
            Self: Stores<R>,
        {
            fn accepts(ty: &Type) -> bool {
                matches!(*ty, $types)
            }
        })+
    };
}

columns! {
    Uuid: Type::UUID,
    Bytea: Type::BYTEA,
    BigInt: Type::INT8,
    Text: Type::TEXT | Type::VARCHAR | Type::BPCHAR,
    Char32: Type::TEXT | Type::VARCHAR | Type::BPCHAR,
    Char26: Type::TEXT | Type::VARCHAR | Type::BPCHAR,
    Char22: Type::TEXT | Type::VARCHAR | Type::BPCHAR,
    Char20: Type::TEXT | Type::VARCHAR | Type::BPCHAR,
}

impl<R: RawKey, C: PgColumn<R>> PgColumn<R> for Unordered<C> {
    fn accepts(ty: &Type) -> bool {
        C::accepts(ty)
    }
}

/// A key type's column. `#[derive(KeyType)]` implements it from `#[ordid(tokio_postgres(postgres = column))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no column for tokio-postgres",
    label = "no column declared",
    note = "add it to the key type: `#[ordid(tokio_postgres)]`, or `#[ordid(tokio_postgres(postgres = bytea))]`"
)]
pub trait StoredAs: KeyType {
    /// The column.
    type Column: PgColumn<Self::Raw>;

    // Derived code names no column but this one: a wrong one is one error.

    #[doc(hidden)]
    fn __accepts(ty: &Type) -> bool {
        <Self::Column as PgColumn<Self::Raw>>::accepts(ty)
    }

    #[doc(hidden)]
    fn __write(&self, out: &mut BytesMut) -> TypeResult<IsNull> {
        write::<Self, Self::Column>(self, out)
    }

    #[doc(hidden)]
    fn __read(raw: &[u8]) -> TypeResult<Self> {
        read::<Self, Self::Column>(raw)
    }
}

/// tokio-postgres stores it in the same column.
impl StoredAs for ordid_core::uuid::Uuid {
    type Column = column::Uuid;
}

/// What reading and writing a value returns.
#[doc(hidden)]
pub type TypeResult<T> = Result<T, BoxedError>;

/// Writes a value, if its column has such a type: the body of a key type's `ToSql::to_sql_checked`.
#[doc(hidden)]
pub fn write_checked<T: ToSql>(value: &T, ty: &Type, out: &mut BytesMut) -> TypeResult<IsNull> {
    match T::accepts(ty) {
        true => value.to_sql(ty, out),
        false => Err(WrongType::new::<T>(ty.clone()).into()),
    }
}

/// Writes a key. Bytes and text alike are sent as they are stored.
fn write<K: KeyType, C: PgColumn<K::Raw>>(key: &K, out: &mut BytesMut) -> TypeResult<IsNull> {
    match C::encode(key.to_raw()).found() {
        Found::Integer(integer) => out.put_i64(integer),
        other => out.extend_from_slice(ordid_sql::stored::bytes(other)?),
    }
    Ok(IsNull::No)
}

/// Reads a key.
fn read<K: KeyType, C: PgColumn<K::Raw>>(raw: &[u8]) -> TypeResult<K> {
    let found = match (C::accepts(&Type::INT8), <[u8; 8]>::try_from(raw)) {
        (true, Ok(bytes)) => Found::Integer(i64::from_be_bytes(bytes)),
        _ => Found::Bytes(raw),
    };
    Ok(K::from_raw(C::decode(found)?)?)
}

ordid_sql::stored_key! {
    /// A key in a column of your choice, for people without a newtype: `Stored<Uuid, column::Char22>`.
    ///
    /// `C` is one of [`column`](mod@crate::column)'s types. A pair that would lose the key's order does not compile;
    /// use `Stored<K, Unordered<C>>` if you do not need the order.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::KeyType;
    /// use ordid_tokio_postgres::{Stored, column};
    /// use tokio_postgres::types::{ToSql, Type};
    /// use ordid::uuid::Uuid;
    ///
    /// type Id = Stored<Uuid, column::Char22>;
    ///
    /// let key: Id = Uuid::generate().into();
    /// assert_eq!(Id::from(key.into_key()), key);
    /// assert!(Id::accepts(&Type::TEXT) && !Id::accepts(&Type::UUID));
    /// ```
}

impl<K: KeepsOrder<C>, C: PgColumn<K::Raw>> ToSql for Stored<K, C> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> TypeResult<IsNull> {
        write::<K, C>(&self.key, out)
    }

    fn accepts(ty: &Type) -> bool {
        C::accepts(ty)
    }

    fn to_sql_checked(&self, ty: &Type, out: &mut BytesMut) -> TypeResult<IsNull> {
        write_checked(self, ty, out)
    }
}

impl<'a, K: KeepsOrder<C>, C: PgColumn<K::Raw>> FromSql<'a> for Stored<K, C> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> TypeResult<Self> {
        read::<K, C>(raw).map(Self::new)
    }

    fn accepts(ty: &Type) -> bool {
        C::accepts(ty)
    }
}

#[cfg(test)]
mod tests {
    use ordid_core::storage::column;

    use super::*;

    mod raw {
        pub(super) use ordid_core::{
            key::{Key192, ObjectId, PushId},
            uuid::Uuid,
        };
        pub(super) use std::primitive::i64;
    }

    /// A column and a raw key of the list of columns; without an implementation, the test does not compile.
    fn is_stored<C: PgColumn<R>, R: RawKey>() {}

    macro_rules! implemented {
        ($($name:ident $column:ident: $raws:tt $($dialect:ident)+;)+) => {
            $($(implemented!(@ $dialect $column $raws);)+)+
        };
        (@ Postgres $column:ident [$($raw:ident)+]) => {
            $(is_stored::<column::$column, raw::$raw>();)+
        };
        (@ $other:ident $column:ident $raws:tt) => {};
    }

    #[test]
    fn it_has_every_column_of_postgres() {
        ordid_core::__for_each_column! { implemented }
    }
}
