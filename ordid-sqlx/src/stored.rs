//! Keys as values of SQLx: a trait per engine and column, one for key types, and a wrapper for
//! people without newtypes.

use ordid_core::{
    KeyType, RawKey,
    storage::{KeepsOrder, Stores, column::Unordered},
};
use sqlx::{
    Database,
    encode::IsNull,
    error::BoxDynError,
    {Decode, Encode, Type},
};

ordid_sql::column_trait! {
    /// A column of an engine that stores a kind of raw key, as SQLx binds and reads it. Implemented here
    /// for each pair that exists.
    pub trait SqlxColumn<DB: Database, R: RawKey>: Stores<R> {
        /// The type of the parameter.
        fn type_info() -> DB::TypeInfo;

        /// Whether a value of this type is worth decoding. Wider than the column where decoding can
        /// say more than SQLx's "mismatched types".
        fn compatible(ty: &DB::TypeInfo) -> bool;

        /// Writes the parameter.
        ///
        /// # Errors
        ///
        /// What SQLx returns.
        fn encode(raw: R, buffer: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError>;

        /// Reads a value, in the text or the binary protocol.
        ///
        /// # Errors
        ///
        /// Another form gives an error that names it and the column to declare.
        fn decode(value: DB::ValueRef<'_>) -> Result<R, BoxDynError>;

        /// The type of an array parameter, `= ANY($1)`, `UNNEST($1)`, where the engine has arrays.
        fn array_type_info() -> Option<DB::TypeInfo> {
            None
        }

        /// Whether a value of this type is such an array.
        fn array_compatible(_: &DB::TypeInfo) -> bool {
            false
        }
    }
}

impl<DB: Database, R: RawKey, C: SqlxColumn<DB, R>> SqlxColumn<DB, R> for Unordered<C> {
    fn type_info() -> DB::TypeInfo {
        C::type_info()
    }

    fn compatible(ty: &DB::TypeInfo) -> bool {
        C::compatible(ty)
    }

    fn encode(raw: R, buffer: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <C as SqlxColumn<DB, R>>::encode(raw, buffer)
    }

    fn decode(value: DB::ValueRef<'_>) -> Result<R, BoxDynError> {
        <C as SqlxColumn<DB, R>>::decode(value)
    }

    fn array_type_info() -> Option<DB::TypeInfo> {
        C::array_type_info()
    }

    fn array_compatible(ty: &DB::TypeInfo) -> bool {
        C::array_compatible(ty)
    }
}

/// A key type's column in an engine. `#[derive(KeyType)]` implements it from
/// `#[ordid(sqlx(engine = column))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no column for this database",
    label = "no column declared"
)]
#[cfg_attr(
    any(feature = "postgres", feature = "mysql", feature = "sqlite"),
    diagnostic::on_unimplemented(
        note = "add the engine to the key type: `#[ordid(sqlx(postgres = uuid, mysql = binary16, \
            sqlite = blob))]`"
    )
)]
#[cfg_attr(
    not(all(feature = "postgres", feature = "mysql", feature = "sqlite")),
    diagnostic::on_unimplemented(
        note = "turn on the feature of the database: `cargo add ordid-sqlx --features sqlite`, or `postgres`, `mysql`"
    )
)]
pub trait StoredAs<DB: Database>: KeyType {
    /// The column.
    type Column: SqlxColumn<DB, Self::Raw>;
}

/// The column and the raw key of a key type.
pub(crate) type ColumnOf<DB, K> = <K as StoredAs<DB>>::Column;
pub(crate) type RawOf<K> = <K as KeyType>::Raw;

/// Body of a key type's `Type::type_info`.
pub fn type_info<DB: Database, K: StoredAs<DB>>() -> DB::TypeInfo {
    <ColumnOf<DB, K> as SqlxColumn<DB, RawOf<K>>>::type_info()
}

/// Body of a key type's `Type::compatible`.
pub fn compatible<DB: Database, K: StoredAs<DB>>(ty: &DB::TypeInfo) -> bool {
    <ColumnOf<DB, K> as SqlxColumn<DB, RawOf<K>>>::compatible(ty)
}

/// Body of a key type's `Encode`.
///
/// # Errors
///
/// What SQLx returns.
pub fn encode<DB: Database, K: StoredAs<DB>>(
    key: K,
    buffer: &mut DB::ArgumentBuffer,
) -> Result<IsNull, BoxDynError> {
    <ColumnOf<DB, K> as SqlxColumn<DB, RawOf<K>>>::encode(key.to_raw(), buffer)
}

/// Body of a key type's `Decode`.
///
/// # Errors
///
/// A value that is not of the column's form, or not of the key type's scheme.
pub fn decode<DB: Database, K: StoredAs<DB>>(value: DB::ValueRef<'_>) -> Result<K, BoxDynError> {
    let raw = <ColumnOf<DB, K> as SqlxColumn<DB, RawOf<K>>>::decode(value)?;
    Ok(K::from_raw(raw)?)
}

ordid_sql::stored_key! {
    /// A key in a column of your choice, for people without a newtype:
    /// `Stored<Uuid, column::Char22>`.
    ///
    /// `C` is one of [`column`](crate::column)'s types. A pair that would lose the key's order does not
    /// compile; use `Stored<K, Unordered<C>>` if you do not need the order.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::KeyType;
    /// use ordid_sqlx::{Stored, column};
    /// use ordid::uuid::Uuid;
    ///
    /// let key: Stored<Uuid, column::Char22> = Uuid::generate().into();
    /// assert_eq!(Stored::<Uuid, column::Char22>::from(key.into_key()), key);
    /// ```
    ///
    /// ```compile_fail
    /// use ordid_sqlx::{Stored, column};
    /// // A `Uuid` may be of version 4, which MariaDB's UUID sorts by other rules.
    /// fn no_order(_: Stored<uuid::Uuid, column::MariaDbUuid>) {}
    /// ```
    ///
    /// ```
    /// use ordid_sqlx::{Stored, column::{MariaDbUuid, Unordered}};
    /// // Unless order does not matter.
    /// fn no_order(_: Stored<uuid::Uuid, Unordered<MariaDbUuid>>) {}
    /// ```
}

impl<DB, K, C> Type<DB> for Stored<K, C>
where
    DB: Database,
    K: KeepsOrder<C>,
    C: SqlxColumn<DB, K::Raw>,
{
    fn type_info() -> DB::TypeInfo {
        C::type_info()
    }

    fn compatible(ty: &DB::TypeInfo) -> bool {
        C::compatible(ty)
    }
}

impl<DB, K, C> Encode<'_, DB> for Stored<K, C>
where
    DB: Database,
    K: KeepsOrder<C>,
    C: SqlxColumn<DB, K::Raw>,
{
    fn encode_by_ref(&self, buffer: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <C as SqlxColumn<DB, K::Raw>>::encode(self.key.to_raw(), buffer)
    }
}

impl<'r, DB, K, C> Decode<'r, DB> for Stored<K, C>
where
    DB: Database,
    K: KeepsOrder<C>,
    C: SqlxColumn<DB, K::Raw>,
{
    fn decode(value: DB::ValueRef<'r>) -> Result<Self, BoxDynError> {
        let raw = <C as SqlxColumn<DB, K::Raw>>::decode(value)?;
        Ok(Self::new(K::from_raw(raw)?))
    }
}
