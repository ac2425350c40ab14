//! Keys as values of rusqlite: a trait for columns, one for key types, and a wrapper for people without newtypes.

use ordid_core::{
    KeyType, RawKey,
    storage::{
        ColumnOn, Found, KeepsOrder, StoredValue as _, Stores,
        column::{self, Unordered},
        dialect,
    },
    uuid::Uuid,
};
use ordid_sql::stored::text;
use rusqlite::{
    ToSql,
    types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Type, Value, ValueRef},
};

/// A column of SQLite that stores this kind of raw key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a column of SQLite for raw keys of type `{R}`",
    label = "no such column here",
    note = "128 bits: blob, text, char22, char26; `i64`: integer; `ObjectId`: blob, text; `PushId`: blob, text, char20; \
            `Key192`: blob, text, char32"
)]
pub trait RusqliteColumn<R: RawKey>: Stores<R> + ColumnOn<dialect::Sqlite> {
    /// The storage class of the column's values. SQLite orders values of different classes by their class, so a value
    /// of another one is not read.
    const CLASS: Type;
}

/// Says in which storage class columns keep raw keys.
macro_rules! columns {
    ($class:ident: $($column:ident),+) => {
        $(impl<R: RawKey> RusqliteColumn<R> for column::$column
        where
            Self: Stores<R>,
        {
            const CLASS: Type = Type::$class;
        })+
    };
}

columns!(Blob: Blob);
columns!(Text: Text, Char32, Char26, Char22, Char20);

impl RusqliteColumn<i64> for column::Integer {
    const CLASS: Type = Type::Integer;
}

impl<R: RawKey, C: RusqliteColumn<R>> RusqliteColumn<R> for Unordered<C> {
    const CLASS: Type = C::CLASS;
}

/// A key type's column. `#[derive(KeyType)]` implements it from `#[ordid(rusqlite(sqlite = column))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no column for SQLite",
    label = "no column declared",
    note = "name it at the key type: `#[ordid(rusqlite(sqlite = blob))]`, or take the usual one: `#[ordid(rusqlite)]`"
)]
pub trait StoredAs: KeyType {
    /// The column.
    type Column: RusqliteColumn<Self::Raw>;

    // Derived code names no column but this one: a wrong one is one error.

    #[doc(hidden)]
    fn __to_sql(&self) -> rusqlite::Result<ToSqlOutput<'static>> {
        write::<Self, Self::Column>(self)
    }

    #[doc(hidden)]
    fn __column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        read::<Self, Self::Column>(value)
    }
}

/// rusqlite stores it in the same column.
impl StoredAs for Uuid {
    type Column = column::Blob;
}

/// Returns a key as its column stores it.
fn write<K: KeyType, C: RusqliteColumn<K::Raw>>(key: &K) -> rusqlite::Result<ToSqlOutput<'static>> {
    let stored = C::encode(key.to_raw());
    let value = match (stored.found(), C::CLASS) {
        (Found::Integer(integer), _) => Value::Integer(integer),
        (Found::Bytes(bytes), Type::Blob) => Value::Blob(bytes.to_vec()),
        (found, _) => Value::Text(
            text(found)
                .map_err(rusqlite::Error::ToSqlConversionFailure)?
                .to_owned(),
        ),
    };
    Ok(ToSqlOutput::Owned(value))
}

/// Reads a key.
///
/// # Errors
///
/// NULL, a value of another storage class or form, which the error names with the column to declare, and a raw key that
/// is none of the scheme's.
fn read<K: KeyType, C: RusqliteColumn<K::Raw>>(value: ValueRef<'_>) -> FromSqlResult<K> {
    let class = value.data_type();
    let raw = match value {
        ValueRef::Integer(integer) => C::decode(integer),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => C::decode(bytes),
        ValueRef::Null | ValueRef::Real(_) => return Err(FromSqlError::InvalidType),
    };
    let key = raw.and_then(K::from_raw).map_err(FromSqlError::other)?;
    if class != C::CLASS {
        let message = format!(
            "expected a value of the storage class {:?}, found one of {class:?}, which SQLite orders apart",
            C::CLASS
        );
        return Err(FromSqlError::Other(message.into()));
    }
    Ok(key)
}

ordid_sql::stored_key! {
    /// A key in a column of your choice, for people without a newtype: `Stored<Uuid, column::Char22>`.
    ///
    /// `C` is one of [`column`](crate::column)'s types. A pair that would lose the key's order does not compile;
    /// use `Stored<K, Unordered<C>>` if you do not need the order.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::KeyType;
    /// use ordid_rusqlite::{Stored, column};
    /// use rusqlite::Connection;
    /// use ordid::uuid::Uuid;
    ///
    /// let key: Stored<Uuid, column::Char22> = Uuid::generate().into();
    /// let connection = Connection::open_in_memory()?;
    /// let (read, length): (Stored<Uuid, column::Char22>, i64) =
    ///     connection.query_row("SELECT ?1, length(?1)", [key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    /// assert_eq!((read, length), (key, 22));
    /// # Ok::<(), rusqlite::Error>(())
    /// ```
    ///
    /// ```compile_fail
    /// use ordid_rusqlite::{Stored, column};
    /// // A column of Oracle's.
    /// fn elsewhere(key: Stored<uuid::Uuid, column::Raw16>) -> impl rusqlite::ToSql {
    ///     key
    /// }
    /// ```
}

impl<K: KeepsOrder<C>, C: RusqliteColumn<K::Raw>> ToSql for Stored<K, C> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        write::<K, C>(&self.key)
    }
}

impl<K: KeepsOrder<C>, C: RusqliteColumn<K::Raw>> FromSql for Stored<K, C> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        read::<K, C>(value).map(Self::new)
    }
}
