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

ordid_sql::column_trait! {
    /// A column of a backend that stores a kind of raw key, as Diesel binds and reads it. Implemented here
    /// for each pair that exists.
    pub trait DieselColumn<DB: Backend, R: RawKey>: Stores<R> {
        /// The type of the column in `table!`.
        type SqlType: KeySqlType;

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
}

impl<DB: Backend, R: RawKey, C: DieselColumn<DB, R>> DieselColumn<DB, R> for Unordered<C> {
    type SqlType = C::SqlType;

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
    label = "no column declared"
)]
#[cfg_attr(
    any(feature = "postgres", feature = "mysql", feature = "sqlite"),
    diagnostic::on_unimplemented(
        note = "add the engine to the key type: `#[ordid(diesel(postgres = uuid, mysql = binary16, \
            sqlite = blob))]`"
    )
)]
#[cfg_attr(
    not(all(feature = "postgres", feature = "mysql", feature = "sqlite")),
    diagnostic::on_unimplemented(
        note = "turn on the feature of the database: `cargo add ordid-diesel --features sqlite`, or `postgres`, `mysql`"
    )
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

/// Implements [`DieselColumn`] for columns of a backend: by a function of the module that writes what the column stores,
/// and by its `decode`.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
macro_rules! columns {
    ($backend:ident, $encode:ident; $($column:ident)+ => $sql_type:ty) => {$(
        impl<R: RawKey> DieselColumn<$backend, R> for column::$column
        where
            Self: Stores<R>,
        {
            $crate::stored::columns! { @items $backend, $encode, R, $sql_type }
        }
    )+};
    ($backend:ident, $encode:ident; [$raw:ty] $column:ident => $sql_type:ty) => {
        impl DieselColumn<$backend, $raw> for column::$column {
            $crate::stored::columns! { @items $backend, $encode, $raw, $sql_type }
        }
    };
    (@items $backend:ident, $encode:ident, $raw:ty, $sql_type:ty) => {
        type SqlType = $sql_type;

        fn to_sql(raw: $raw, out: &mut Output<'_, '_, $backend>) -> serialize::Result {
            $encode(<Self as Stores<$raw>>::encode(raw).found(), out)
        }

        fn from_sql(
            value: <$backend as diesel::backend::Backend>::RawValue<'_>,
        ) -> deserialize::Result<$raw> {
            decode::<Self, $raw>(value)
        }
    };
}

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub(crate) use columns;
