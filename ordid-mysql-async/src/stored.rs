//! Keys as values of mysql_async: a trait for columns, one for key types, and a wrapper for people without newtypes.

use mysql_async::{FromValueError, Value, prelude::FromValue};
use ordid_core::{
    KeyType, RawKey,
    storage::{
        Found, KeepsOrder, StoredValue as _, Stores,
        column::{self, Unordered},
    },
};
use ordid_sql::spi::BoxedError;

/// A column of MySQL or MariaDB that stores a kind of raw key. Implemented here for each pair that exists.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a column of MySQL or MariaDB for raw keys of type `{R}`",
    label = "no such column here",
    note = "128 bits: binary16, binary16_swapped, binary16_dotnet, char36, char22, char26, and on MariaDB mariadb_uuid",
    note = "`i64`: bigint; `u64`: bigint_unsigned; `ObjectId`: binary12; `PushId`: char20; `Key192`: binary24, char32"
)]
pub trait MysqlColumn<R: RawKey>: Stores<R> {
    /// Whether it stores numbers. The text protocol brings them as digits.
    const IS_NUMBER: bool;
}

/// Says which columns store bytes or text.
macro_rules! columns {
    ($($column:ident),+) => {
        $(impl<R: RawKey> MysqlColumn<R> for column::$column
        where
            Self: Stores<R>,
        {
            const IS_NUMBER: bool = false;
        })+
    };
}

columns!(
    Binary16,
    Binary12,
    Binary24,
    Binary16Swapped,
    Binary16DotNet,
    Char36,
    Char32,
    Char26,
    Char22,
    Char20,
    MariaDbUuid
);

impl MysqlColumn<i64> for column::BigInt {
    const IS_NUMBER: bool = true;
}

impl MysqlColumn<u64> for column::BigIntUnsigned {
    const IS_NUMBER: bool = true;
}

impl<R: RawKey, C: MysqlColumn<R>> MysqlColumn<R> for Unordered<C> {
    const IS_NUMBER: bool = C::IS_NUMBER;
}

/// A key type's column. `#[derive(KeyType)]` implements it from `#[ordid(mysql_async(mysql = column))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no column for mysql_async",
    label = "no column declared",
    note = "add it to the key type: `#[ordid(mysql_async)]`, or `#[ordid(mysql_async(mysql = char36))]`"
)]
pub trait StoredAs: KeyType {
    /// The column.
    type Column: MysqlColumn<Self::Raw>;

    // Derived code names no column but this one: a wrong one is one error.

    #[doc(hidden)]
    fn __value(self) -> Value {
        write::<Self, Self::Column>(self)
    }

    #[doc(hidden)]
    fn __from_value(value: Value) -> Self {
        or_panic(value)
    }
}

/// mysql_async stores it in the same column.
impl StoredAs for ordid_core::uuid::Uuid {
    type Column = column::Binary16;
}

/// What can be read from a value: a key type, and [`Stored`].
pub trait ReadKey: Sized {
    /// Reads a key.
    ///
    /// mysql_async's own errors show the value alone: this one says what is wrong with it.
    ///
    /// # Errors
    ///
    /// NULL, a value of another form, which the error names with the column to declare, and a raw key that is none of the
    /// scheme's.
    ///
    /// # Example
    ///
    /// ```
    /// use mysql_async::Value;
    /// use ordid_mysql_async::ReadKey;
    /// use ordid::uuid::Uuid;
    ///
    /// let error = Uuid::read_key(&Value::Bytes(b"short".to_vec())).unwrap_err();
    /// assert!(error.to_string().contains("16 bytes"), "{error}");
    /// ```
    fn read_key(value: &Value) -> Result<Self, BoxedError>;
}

impl<K: StoredAs> ReadKey for K {
    fn read_key(value: &Value) -> Result<Self, BoxedError> {
        read::<K, K::Column>(value)
    }
}

impl<K: KeepsOrder<C>, C: MysqlColumn<K::Raw>> ReadKey for Stored<K, C> {
    fn read_key(value: &Value) -> Result<Self, BoxedError> {
        read::<K, C>(value).map(Self::new)
    }
}

/// A key that was read, with its value: mysql_async gives a row back whole if another value of it cannot be read.
#[doc(hidden)]
#[derive(Debug)]
pub struct Parsed<K> {
    pub key: K,
    value: Value,
}

impl<K: ReadKey> TryFrom<Value> for Parsed<K> {
    type Error = FromValueError;

    fn try_from(value: Value) -> Result<Self, FromValueError> {
        match K::read_key(&value) {
            Ok(key) => Ok(Self { key, value }),
            Err(_) => Err(FromValueError(value)),
        }
    }
}

impl<K> From<Parsed<K>> for Value {
    fn from(parsed: Parsed<K>) -> Self {
        parsed.value
    }
}

/// Reads a key, as mysql_async does where it has no error to return: the text says why it cannot be read.
fn or_panic<T: ReadKey>(value: Value) -> T {
    T::read_key(&value).unwrap_or_else(|error| {
        let name = std::any::type_name::<T>();
        panic!("could not read `{name}` from `{value:?}`: {error}")
    })
}

/// Returns a key as its column stores it.
fn write<K: KeyType, C: MysqlColumn<K::Raw>>(key: K) -> Value {
    match C::encode(key.to_raw()).found() {
        Found::Integer(integer) => Value::Int(integer),
        Found::Unsigned(integer) => Value::UInt(integer),
        // Text, too: the server compares it under the column's collation, and can use its index.
        other => {
            let bytes = ordid_sql::stored::bytes(other);
            Value::Bytes(bytes.expect("a column stores a number or bytes").to_vec())
        }
    }
}

/// Reads a key.
fn read<K: KeyType, C: MysqlColumn<K::Raw>>(value: &Value) -> Result<K, BoxedError> {
    let found = match value {
        Value::Int(integer) => Found::Integer(*integer),
        Value::UInt(integer) => Found::Unsigned(*integer),
        Value::Bytes(bytes) if C::IS_NUMBER => digits(bytes).unwrap_or(Found::Bytes(bytes)),
        Value::Bytes(bytes) => Found::Bytes(bytes),
        Value::NULL => return Err("expected a key, found NULL: read it as an `Option`".into()),
        other => return Err(format!("expected a key, found {other:?}").into()),
    };
    Ok(K::from_raw(C::decode(found)?)?)
}

/// Returns the number that these digits are, if they are one.
fn digits(bytes: &[u8]) -> Option<Found<'_>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let signed = text.parse().map(Found::Integer);
    signed.or_else(|_| text.parse().map(Found::Unsigned)).ok()
}

ordid_sql::stored_key! {
    /// A key in a column of your choice, for people without a newtype: `Stored<Uuid, column::Char22>`.
    ///
    /// `C` is one of [`column`](mod@crate::column)'s types. A pair that would lose the key's order does not compile;
    /// `Stored<K, Unordered<C>>` says that none is wanted.
    ///
    /// # Example
    ///
    /// ```
    /// use mysql_async::{Value, from_value, prelude::ToValue as _};
    /// use ordid_core::KeyType;
    /// use ordid_mysql_async::{Stored, column};
    /// use ordid::uuid::Uuid;
    ///
    /// let key: Stored<Uuid, column::Char22> = Uuid::generate().into();
    /// let value = key.to_value();
    /// assert!(matches!(&value, Value::Bytes(text) if text.len() == 22));
    /// assert_eq!(from_value::<Stored<Uuid, column::Char22>>(value), key);
    /// ```
    ///
    /// ```compile_fail
    /// use ordid_mysql_async::{Stored, column};
    /// // A column of Oracle's.
    /// fn elsewhere(key: Stored<uuid::Uuid, column::Raw16>) -> mysql_async::Value {
    ///     key.into()
    /// }
    /// ```
}

impl<K: KeepsOrder<C>, C: MysqlColumn<K::Raw>> From<Stored<K, C>> for Value {
    fn from(stored: Stored<K, C>) -> Self {
        write::<K, C>(stored.into_key())
    }
}

impl<K: KeepsOrder<C>, C: MysqlColumn<K::Raw>> From<Parsed<Self>> for Stored<K, C> {
    fn from(parsed: Parsed<Self>) -> Self {
        parsed.key
    }
}

impl<K: KeepsOrder<C>, C: MysqlColumn<K::Raw>> FromValue for Stored<K, C> {
    type Intermediate = Parsed<Self>;

    fn from_value(value: Value) -> Self {
        or_panic(value)
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
        pub(super) use std::primitive::{i64, u64};
    }

    /// A column and a raw key of the list of columns; without an implementation, the test does not compile.
    fn is_stored<C: MysqlColumn<R>, R: RawKey>() {}

    macro_rules! implemented {
        ($($name:ident $column:ident: $raws:tt $($dialect:ident)+;)+) => {
            $($(implemented!(@ $dialect $column $raws);)+)+
        };
        (@ MySql $column:ident [$($raw:ident)+]) => {
            $(is_stored::<column::$column, raw::$raw>();)+
        };
        (@ MariaDb $column:ident [$($raw:ident)+]) => {
            $(is_stored::<column::$column, raw::$raw>();)+
        };
        (@ $other:ident $column:ident $raws:tt) => {};
    }

    #[test]
    fn it_has_every_column_of_mysql_and_mariadb() {
        ordid_core::__for_each_column! { implemented }
    }
}
