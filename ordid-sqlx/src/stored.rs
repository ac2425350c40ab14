//! Keys as values of SQLx: a trait per engine and column, one for key types, and a wrapper for
//! people without newtypes.

use std::{cmp::Ordering, fmt, hash, marker::PhantomData};

use ordid_core::{
    KeyType,
    storage::{KeepsOrder, Stores},
    uuid::Uuid,
};
use sqlx::{
    Database,
    encode::IsNull,
    error::BoxDynError,
    {Decode, Encode, Type},
};

/// A column of an engine, as SQLx binds and reads it. Implemented here for each pair that exists.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a column of this database",
    label = "no such column here",
    note = "PostgreSQL has uuid, text, char22; MySQL binary16, char36, char22, and on MariaDB \
            mariadb_uuid; SQLite blob, text, char22"
)]
pub trait SqlxColumn<DB: Database>: Stores<Uuid> {
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
    fn encode(raw: Uuid, buffer: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError>;

    /// Reads a value, in the text or the binary protocol.
    ///
    /// # Errors
    ///
    /// Another form gives an error that names it and the column to declare.
    fn decode(value: DB::ValueRef<'_>) -> Result<Uuid, BoxDynError>;
}

/// A key type's column in an engine. `#[derive(KeyType)]` implements it from
/// `#[ordid(sqlx(engine = column))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no column for this database",
    label = "no column declared",
    note = "add the engine to the key type: `#[ordid(sqlx(postgres = uuid, mysql = binary16, \
            sqlite = blob))]`"
)]
pub trait StoredAs<DB: Database>: KeyType<Raw = Uuid> {
    /// The column.
    type Column: SqlxColumn<DB>;

    #[doc(hidden)]
    fn __decode(value: DB::ValueRef<'_>) -> Result<Self, BoxDynError> {
        let raw = <Self::Column as SqlxColumn<DB>>::decode(value)?;
        Ok(Self::from_raw(raw)?)
    }
}

/// A key in a column of your choice, for people without a newtype:
/// `Stored<Uuid, column::Char22>`.
///
/// `C` is one of [`column`](crate::column)'s types. A pair that would lose the key's order does not
/// compile.
///
/// # Example
///
/// ```
/// use ordid_core::KeyType;
/// use ordid_sqlx::{Stored, column};
/// use uuid::Uuid;
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
pub struct Stored<K: KeepsOrder<C>, C: Stores<Uuid>> {
    key: K,
    column: PhantomData<fn() -> C>,
}

impl<K: KeepsOrder<C>, C: Stores<Uuid>> Stored<K, C> {
    /// Wraps a key.
    pub const fn new(key: K) -> Self {
        Self {
            key,
            column: PhantomData,
        }
    }

    /// Returns the key.
    pub fn into_key(self) -> K {
        self.key
    }
}

impl<K: KeepsOrder<C>, C: Stores<Uuid>> From<K> for Stored<K, C> {
    fn from(key: K) -> Self {
        Self::new(key)
    }
}

// By hand: a derive would ask the same of the column, which has no values.

impl<K: KeepsOrder<C>, C: Stores<Uuid>> Clone for Stored<K, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: KeepsOrder<C>, C: Stores<Uuid>> Copy for Stored<K, C> {}

impl<K: KeepsOrder<C>, C: Stores<Uuid>> PartialEq for Stored<K, C> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<K: KeepsOrder<C>, C: Stores<Uuid>> Eq for Stored<K, C> {}

impl<K: KeepsOrder<C>, C: Stores<Uuid>> PartialOrd for Stored<K, C> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: KeepsOrder<C>, C: Stores<Uuid>> Ord for Stored<K, C> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<K: KeepsOrder<C>, C: Stores<Uuid>> hash::Hash for Stored<K, C> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl<K: KeepsOrder<C>, C: Stores<Uuid>> fmt::Debug for Stored<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.key, f)
    }
}

impl<K: KeepsOrder<C>, C: Stores<Uuid>> fmt::Display for Stored<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.key, f)
    }
}

impl<DB, K, C> Type<DB> for Stored<K, C>
where
    DB: Database,
    K: KeepsOrder<C> + KeyType<Raw = Uuid>,
    C: SqlxColumn<DB>,
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
    K: KeepsOrder<C> + KeyType<Raw = Uuid>,
    C: SqlxColumn<DB>,
{
    fn encode_by_ref(&self, buffer: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <C as SqlxColumn<DB>>::encode(self.key.to_raw(), buffer)
    }
}

impl<'r, DB, K, C> Decode<'r, DB> for Stored<K, C>
where
    DB: Database,
    K: KeepsOrder<C> + KeyType<Raw = Uuid>,
    C: SqlxColumn<DB>,
{
    fn decode(value: DB::ValueRef<'r>) -> Result<Self, BoxDynError> {
        let raw = <C as SqlxColumn<DB>>::decode(value)?;
        Ok(Self::new(K::from_raw(raw)?))
    }
}
