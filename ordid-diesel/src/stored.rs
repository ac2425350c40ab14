//! Keys as values of Diesel: a trait per backend and column, and one for key types.
//!
//! Diesel binds and reads by the SQL type that `table!` gives a column. So a key type says for each
//! backend in which column it is stored, and is there a value of that column's SQL type alone: in a
//! `table!` that declares another one, it does not compile.

use std::{fmt, marker::PhantomData};

use diesel::{
    backend::Backend,
    deserialize,
    expression::TypedExpressionType,
    serialize::{self, Output, ToSql},
    sql_types::{BigInt, Binary, IntoNullable, Nullable, SingleValue, SqlType, Text},
};
use ordid_core::{
    KeyType, RawKey,
    storage::{Stores, column::Unordered},
};

/// A column of a backend that stores a kind of raw key, as Diesel binds and reads it. Implemented here
/// for each pair that exists.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a column of this database for raw keys of type `{R}`",
    label = "no such column here",
    note = "128 bits: PostgreSQL uuid, bytea, text, char22, char26; MySQL binary16, binary16_swapped, \
            binary16_dotnet, char36, char22, char26, and on MariaDB mariadb_uuid; SQLite blob, text, \
            char22, char26",
    note = "`i64`: bigint, and integer on SQLite; `u64`: bigint_unsigned on MySQL and MariaDB alone",
    note = "`ObjectId`: bytea, text; binary12; blob, text. `PushId`: bytea, text, char20; char20; blob, \
            text, char20. `Key192`: bytea, text, char32; binary24, char32; blob, text, char32"
)]
pub trait DieselColumn<DB: Backend, R: RawKey>: Stores<R> {
    /// The type of the column in `table!`.
    type SqlType: KeySqlType;

    /// Whether the stored keys are in an order of their own.
    #[doc(hidden)]
    const UNORDERED: bool = false;

    /// Writes the parameter.
    ///
    /// # Errors
    ///
    /// What Diesel returns.
    fn to_sql(raw: R, out: &mut Output<'_, '_, DB>) -> serialize::Result;

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// Another form gives an error that names it and the column to declare.
    fn from_sql(value: DB::RawValue<'_>) -> deserialize::Result<R>;
}

impl<DB: Backend, R: RawKey, C: DieselColumn<DB, R>> DieselColumn<DB, R> for Unordered<C> {
    type SqlType = C::SqlType;

    const UNORDERED: bool = true;

    fn to_sql(raw: R, out: &mut Output<'_, '_, DB>) -> serialize::Result {
        <C as DieselColumn<DB, R>>::to_sql(raw, out)
    }

    fn from_sql(value: DB::RawValue<'_>) -> deserialize::Result<R> {
        <C as DieselColumn<DB, R>>::from_sql(value)
    }
}

/// A type of `table!` that columns of keys have: `Uuid`, `Binary`, `Text`, `BigInt`,
/// `Unsigned<BigInt>`, each also `Nullable`. Which of them a key type has is told by its
/// `#[ordid(diesel(...))]`.
pub trait KeySqlType: SqlType + TypedExpressionType + SingleValue {}

/// The SQL type of a key type's column in a backend.
///
/// The impls that derived code writes are bounded by it, since they cannot name the type: where two impls are held
/// against each other, the compiler does not look into [`DieselColumn`], which is neither trait nor type of the user's
/// crate.
#[diagnostic::on_unimplemented(
    message = "the column of `{K}` is of another SQL type than `{Self}` in this database",
    label = "not the SQL type of the key's column",
    note = "`table!` has to declare the column as the key type stores it: uuid as `Uuid`, integers as `BigInt` and \
            `Unsigned<BigInt>`, texts and mariadb_uuid as `Text`, the others as `Binary`"
)]
pub trait SqlTypeOf<K, DB> {}

macro_rules! key_sql_types {
    ($($(#[$cfg:meta])* $type:ty),+) => {$(
        $(#[$cfg])*
        impl KeySqlType for $type {}

        $(#[$cfg])*
        impl<DB: Backend, K: StoredAs<DB>> SqlTypeOf<K, DB> for $type where
            K::Column: DieselColumn<DB, K::Raw, SqlType = $type>
        {
        }
    )+};
}

key_sql_types! {
    Binary,
    Text,
    BigInt,
    #[cfg(feature = "postgres")]
    diesel::sql_types::Uuid,
    #[cfg(feature = "mysql")]
    diesel::sql_types::Unsigned<BigInt>
}

impl<ST: KeySqlType> KeySqlType for Nullable<ST> where
    Self: SqlType + TypedExpressionType + SingleValue
{
}

/// A key type's column in a backend. `#[derive(KeyType)]` implements it from
/// `#[ordid(diesel(engine = column))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no column for this database",
    label = "no column declared",
    note = "add the engine to the key type: `#[ordid(diesel(postgres = uuid, mysql = binary16, \
            sqlite = blob))]`"
)]
pub trait StoredAs<DB: Backend>: KeyType {
    /// The column.
    type Column: DieselColumn<DB, Self::Raw>;
}

/// A raw key that is bound as a column stores it: the value of any key type with that column.
pub(crate) struct InColumn<R, C> {
    raw: R,
    column: PhantomData<fn() -> C>,
}

impl<R, C> InColumn<R, C> {
    pub(crate) const fn new(raw: R) -> Self {
        Self {
            raw,
            column: PhantomData,
        }
    }
}

impl<R: Copy, C> Clone for InColumn<R, C> {
    fn clone(&self) -> Self {
        Self::new(self.raw)
    }
}

impl<R: fmt::Debug, C> fmt::Debug for InColumn<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

impl<DB, R, C> ToSql<<C::SqlType as IntoNullable>::Nullable, DB> for InColumn<R, C>
where
    DB: Backend,
    R: RawKey,
    C: DieselColumn<DB, R, SqlType: IntoNullable>,
{
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, DB>) -> serialize::Result {
        C::to_sql(self.raw, out)
    }
}

/// Body of a key type's `ToSql`.
///
/// # Errors
///
/// What Diesel returns.
pub fn to_sql<DB: Backend, K: StoredAs<DB>>(
    key: K,
    out: &mut Output<'_, '_, DB>,
) -> serialize::Result {
    <K::Column as DieselColumn<DB, K::Raw>>::to_sql(key.to_raw(), out)
}

/// Body of a key type's `FromSql`.
///
/// # Errors
///
/// A value that is not of the column's form, or not of the key type's scheme.
pub fn from_sql<DB: Backend, K: StoredAs<DB>>(value: DB::RawValue<'_>) -> deserialize::Result<K> {
    // Without `?`, whose conversions would be compiled for each key type.
    match <K::Column as DieselColumn<DB, K::Raw>>::from_sql(value) {
        Ok(raw) => match K::from_raw(raw) {
            Ok(key) => Ok(key),
            Err(error) => Err(Box::new(error)),
        },
        Err(error) => Err(error),
    }
}

/// Returns the bytes of a column that stores bytes.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub(crate) fn bytes(
    stored: ordid_core::storage::Found<'_>,
) -> Result<&[u8], Box<dyn std::error::Error + Send + Sync>> {
    match stored {
        ordid_core::storage::Found::Bytes(bytes) => Ok(bytes),
        other => Err(format!("expected bytes, found {other:?}").into()),
    }
}

/// Returns the characters of a column that stores text.
#[cfg(feature = "sqlite")]
pub(crate) fn text(
    stored: ordid_core::storage::Found<'_>,
) -> Result<&str, Box<dyn std::error::Error + Send + Sync>> {
    Ok(std::str::from_utf8(bytes(stored)?)?)
}
