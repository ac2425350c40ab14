//! Keys as values of SeaORM: a trait for columns, and one for key types.
//!
//! SeaORM turns a key into a `Value` without knowing the database, so a key type has one form for all
//! of them: a column here is PostgreSQL's, and stands for the columns of MySQL and SQLite that hold the
//! same value. They compare alike, so its order is checked once.

use std::sync::Arc;

use ordid_core::{
    KeyType, RawKey,
    key::{Key192, ObjectId, PushId},
    storage::{
        ColumnOn, Found, StoredValue as _, Stores,
        column::{
            BigInt, BigIntUnsigned, Bytea, Char20, Char22, Char26, Char32, MariaDbUuid, Text,
            Unordered, Uuid,
        },
        dialect::MariaDb,
    },
    uuid,
};
use sea_orm::{
    ColIdx, DbErr, QueryResult, TryGetError, TryGetable, Value,
    sea_query::{Alias, ArrayType, ColumnType, IntoIden, Nullable, ValueType, ValueTypeErr},
};

use crate::schema;

/// A column that stores a kind of raw key, as SeaORM binds and reads it. Implemented here for each pair
/// that exists.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a column of SeaORM for raw keys of type `{R}`",
    label = "no such column here",
    note = "128 bits: uuid, bytea, text, char22, char26, and on MariaDB alone mariadb_uuid; `i64`: \
            bigint; `u64`: bigint_unsigned, on MySQL and MariaDB alone; `ObjectId`: bytea, text; `PushId`: \
            bytea, text, char20; `Key192`: bytea, text, char32"
)]
pub trait SeaOrmColumn<R: RawKey>: Stores<R> {
    /// What SeaORM binds and reads.
    type Form: Form;

    /// Returns the type that SeaORM declares in the databases that it makes tables in.
    fn column_type() -> ColumnType;

    /// Returns a key as SeaORM's value.
    fn to_value(raw: R) -> Value {
        Self::Form::of(Self::encode(raw).found()).map_or_else(Self::null, Into::into)
    }

    /// Returns SeaORM's NULL of the same type.
    fn null() -> Value {
        Self::Form::null()
    }

    /// Reads one of SeaORM's values.
    fn from_value(value: Value) -> Option<R> {
        let form = <Self::Form as ValueType>::try_from(value).ok()?;
        Self::decode(form.found()).ok()
    }

    /// Reads a column of a row.
    ///
    /// # Errors
    ///
    /// NULL, as SeaORM says it, and another form, with the form that was found and the column to declare.
    fn try_get<I: ColIdx>(row: &QueryResult, index: I) -> Result<R, TryGetError> {
        if Self::Form::IS_NUMBER || !is_mysql(row) {
            match Self::Form::try_get_by(row, index) {
                Ok(form) => return Self::decode(form.found()).map_err(not_the_columns),
                Err(TryGetError::Null(column)) => return Err(TryGetError::Null(column)),
                Err(TryGetError::DbErr(_)) => {}
            }
        }
        found::<Self, R>(row, index)
    }

    /// Reads an array of a row, which only PostgreSQL has.
    ///
    /// # Errors
    ///
    /// As [`try_get`](Self::try_get).
    #[cfg(feature = "postgres")]
    fn try_get_array<I: ColIdx>(row: &QueryResult, index: I) -> Result<Vec<R>, TryGetError> {
        let forms = Self::Form::try_get_array(row, index)?;
        let keys = forms.iter().map(|form| Self::decode(form.found()));
        let keys = keys.collect::<Result<_, _>>();
        keys.map_err(|error| no_key("an array", "a key", Arc::new(error)))
    }

    /// Returns the type of an array of such values.
    fn array_type() -> ArrayType {
        <Self::Form as ValueType>::array_type()
    }
}

/// A type of values that SeaORM has, in which columns store keys.
pub trait Form: Into<Value> + Nullable + TryGetable + ValueType {
    /// Whether it is a number, which MySQL's rows give as what it is.
    const IS_NUMBER: bool = false;

    /// Takes what a column stores, where it is of this form.
    fn of(stored: Found<'_>) -> Option<Self>;

    /// Returns what a column reads.
    fn found(&self) -> Found<'_>;

    /// Reads an array of a row.
    ///
    /// # Errors
    ///
    /// SeaORM's.
    #[cfg(feature = "postgres")]
    fn try_get_array<I: ColIdx>(row: &QueryResult, index: I) -> Result<Vec<Self>, TryGetError>;
}

macro_rules! forms {
    ($($form:ty $(, $is_number:literal)?: $stored:pat => $value:expr, |$self:ident| $found:expr;)+) => {$(
        impl Form for $form {
            $(const IS_NUMBER: bool = $is_number;)?

            fn of(stored: Found<'_>) -> Option<Self> {
                match stored {
                    $stored => $value,
                    _ => None,
                }
            }

            fn found(&self) -> Found<'_> {
                let $self = self;
                $found
            }

            #[cfg(feature = "postgres")]
            fn try_get_array<I: ColIdx>(
                row: &QueryResult,
                index: I,
            ) -> Result<Vec<Self>, TryGetError> {
                Vec::try_get_by(row, index)
            }
        }
    )+};
}

forms! {
    uuid::Uuid: Found::Bytes(bytes) => Self::from_slice(bytes).ok(), |id| Found::Bytes(id.as_bytes());
    Vec<u8>: Found::Bytes(bytes) => Some(bytes.to_vec()), |bytes| Found::Bytes(bytes);
    // A key's text is ASCII.
    String: Found::Bytes(text) => Some(Self::from_utf8_lossy(text).into_owned()),
        |text| Found::Bytes(text.as_bytes());
    i64, true: Found::Integer(number) => Some(number), |number| Found::Integer(*number);
}

impl Form for u64 {
    const IS_NUMBER: bool = true;

    fn of(stored: Found<'_>) -> Option<Self> {
        match stored {
            Found::Unsigned(number) => Some(number),
            _ => None,
        }
    }

    fn found(&self) -> Found<'_> {
        Found::Unsigned(*self)
    }

    #[cfg(feature = "postgres")]
    fn try_get_array<I: ColIdx>(_: &QueryResult, index: I) -> Result<Vec<Self>, TryGetError> {
        Err(not_in_postgres(index, "integers without a sign"))
    }
}

#[cfg(feature = "postgres")]
fn not_in_postgres(index: impl ColIdx, what: &str) -> TryGetError {
    let text = format!("{index:?}: PostgreSQL has no {what}");
    TryGetError::DbErr(DbErr::Type(text))
}

/// Reads whatever is there, so that the column can say which form it found.
fn found<C: Stores<R>, R: RawKey>(row: &QueryResult, index: impl ColIdx) -> Result<R, TryGetError> {
    let decoded = match Vec::<u8>::try_get_by(row, index) {
        Ok(bytes) => C::decode(&*bytes),
        Err(TryGetError::Null(column)) => return Err(TryGetError::Null(column)),
        Err(error) => {
            if let Ok(text) = String::try_get_by(row, index) {
                C::decode(&*text)
            } else if let Ok(number) = i64::try_get_by(row, index) {
                C::decode(number)
            } else if let Ok(id) = uuid::Uuid::try_get_by(row, index) {
                C::decode(id.as_bytes())
            } else {
                // No such column, or one of no key at all: SeaORM's own words.
                return Err(error);
            }
        }
    };
    decoded.map_err(not_the_columns)
}

fn not_the_columns(error: ordid_core::Error) -> TryGetError {
    no_key("a column's value", "a key", Arc::new(error))
}

/// MySQL's rows take other forms than the column's, too: SeaORM would read a UUID's text as well as its
/// bytes, but writes bytes.
fn is_mysql(row: &QueryResult) -> bool {
    let _ = row;
    #[cfg(feature = "mysql")]
    if row.try_as_mysql_row().is_some() {
        return true;
    }
    false
}

macro_rules! columns {
    ($($column:ident of $raw:ty as $form:ty = $type:expr;)+) => {$(
        impl SeaOrmColumn<$raw> for $column {
            type Form = $form;

            fn column_type() -> ColumnType {
                $type
            }
        }
    )+};
}

columns! {
    Uuid of uuid::Uuid as uuid::Uuid = ColumnType::Uuid;
    Bytea of uuid::Uuid as Vec<u8> = ColumnType::Binary(16);
    Bytea of ObjectId as Vec<u8> = ColumnType::Binary(12);
    Bytea of PushId as Vec<u8> = ColumnType::Binary(15);
    Bytea of Key192 as Vec<u8> = ColumnType::Binary(24);
    Text of uuid::Uuid as String = schema::text(36);
    Text of ObjectId as String = schema::text(24);
    Text of PushId as String = schema::text(20);
    Text of Key192 as String = schema::text(32);
    Char26 of uuid::Uuid as String = schema::text(26);
    Char22 of uuid::Uuid as String = schema::text(22);
    Char20 of PushId as String = schema::text(20);
    Char32 of Key192 as String = schema::text(32);
    BigInt of i64 as i64 = ColumnType::BigInteger;
    // Of SeaORM's own type PostgreSQL would make a `bigint`, and sea-query panics where a number does
    // not fit in there; this it refuses.
    BigIntUnsigned of u64 as u64 = custom("bigint UNSIGNED");
}

fn custom(name: &str) -> ColumnType {
    ColumnType::Custom(Alias::new(name).into_iden())
}

impl SeaOrmColumn<uuid::Uuid> for MariaDbUuid {
    type Form = String;

    fn column_type() -> ColumnType {
        custom(<Self as ColumnOn<MariaDb>>::TYPE)
    }

    #[cfg(feature = "postgres")]
    fn try_get_array<I: ColIdx>(_: &QueryResult, index: I) -> Result<Vec<uuid::Uuid>, TryGetError> {
        Err(not_in_postgres(index, "column `mariadb_uuid`"))
    }
}

impl<R: RawKey, C: SeaOrmColumn<R>> SeaOrmColumn<R> for Unordered<C> {
    type Form = C::Form;

    fn column_type() -> ColumnType {
        C::column_type()
    }

    #[cfg(feature = "postgres")]
    fn try_get_array<I: ColIdx>(row: &QueryResult, index: I) -> Result<Vec<R>, TryGetError> {
        C::try_get_array(row, index)
    }
}

/// A key type's column. `#[derive(KeyType)]` implements it from `#[ordid(sea_orm(column))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no column for SeaORM",
    label = "no column declared",
    note = "add it to the key type: `#[ordid(sea_orm(uuid))]`"
)]
pub trait StoredAs: KeyType {
    /// The column.
    type Column: SeaOrmColumn<Self::Raw>;
}

/// It is a key type as it is.
impl StoredAs for uuid::Uuid {
    type Column = Uuid;
}

/// Body of `From<K> for Value`.
pub fn to_value<K: StoredAs>(key: K) -> Value {
    K::Column::to_value(key.to_raw())
}

/// Body of `Nullable::null`.
pub fn null<K: StoredAs>() -> Value {
    K::Column::null()
}

/// Body of `ValueType::try_from`.
///
/// # Errors
///
/// SeaORM's, which says nothing, for a value of another type, or that is no key of the type.
pub fn from_value<K: StoredAs>(value: Value) -> Result<K, ValueTypeErr> {
    // These bodies are compiled for each key type: they have no closures, and no `?`.
    match K::Column::from_value(value) {
        Some(raw) => match K::from_raw(raw) {
            Ok(key) => Ok(key),
            Err(_) => Err(ValueTypeErr),
        },
        None => Err(ValueTypeErr),
    }
}

/// Body of `ValueType::array_type`.
pub fn array_type<K: StoredAs>() -> ArrayType {
    K::Column::array_type()
}

/// Body of `ValueType::column_type`.
pub fn column_type<K: StoredAs>() -> ColumnType {
    K::Column::column_type()
}

fn key<K: KeyType>(raw: K::Raw) -> Result<K, TryGetError> {
    match K::from_raw(raw) {
        Ok(key) => Ok(key),
        Err(error) => Err(no_key("a column's value", K::NAME, Arc::new(error))),
    }
}

fn no_key(
    from: &'static str,
    into: &'static str,
    source: Arc<dyn std::error::Error + Send + Sync>,
) -> TryGetError {
    TryGetError::DbErr(DbErr::TryIntoErr { from, into, source })
}

/// Body of `TryGetable::try_get_by`.
///
/// # Errors
///
/// NULL, another form than the column's, or a value that is no key of the type.
pub fn try_get<K: StoredAs, I: ColIdx>(row: &QueryResult, index: I) -> Result<K, TryGetError> {
    match raw_key::<K::Column, K::Raw, I>(row, index, K::NAME) {
        Ok(raw) => key(raw),
        Err(error) => Err(error),
    }
}

/// Reads the raw key of a key type of this name.
fn raw_key<C: SeaOrmColumn<R>, R: RawKey, I: ColIdx>(
    row: &QueryResult,
    index: I,
    name: &'static str,
) -> Result<R, TryGetError> {
    C::try_get(row, index).map_err(|error| match error {
        TryGetError::DbErr(DbErr::TryIntoErr { from, source, .. }) => no_key(from, name, source),
        other => other,
    })
}

/// Body of `TryGetableArray::try_get_by`.
///
/// # Errors
///
/// As [`try_get`].
#[cfg(feature = "postgres")]
pub fn try_get_array<K: StoredAs, I: ColIdx>(
    row: &QueryResult,
    index: I,
) -> Result<Vec<K>, TryGetError> {
    let raws = K::Column::try_get_array(row, index)?;
    raws.into_iter().map(key).collect()
}

/// Body of `TryFromU64::try_from_u64`: SeaORM asks it for the key that a database made.
///
/// # Errors
///
/// Always: keys are made by the client.
pub fn try_from_u64<K: KeyType>(_: u64) -> Result<K, DbErr> {
    Err(DbErr::ConvertFromU64(K::NAME))
}

#[cfg(test)]
mod tests {
    use ordid_core::storage::{
        Column,
        column::{self, Binary12, Binary16, Binary24, Blob, Char36, Integer},
    };

    use super::*;

    /// A column and a raw key of the list of columns; without an implementation, the test does not compile.
    fn is_stored<C: SeaOrmColumn<R>, R: RawKey>() {}

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
        mod raw {
            pub(super) use ordid_core::{
                key::{Key192, ObjectId, PushId},
                uuid::Uuid,
            };
            pub(super) use std::primitive::i64;
        }
        ordid_core::__for_each_column! { implemented }
    }

    /// What is checked of PostgreSQL's column holds for the others that stand behind it.
    #[test]
    fn columns_of_one_form_compare_alike() {
        let bytes = Uuid::COMPARISON;
        for comparison in [
            Binary16::COMPARISON,
            Binary12::COMPARISON,
            Binary24::COMPARISON,
            Blob::COMPARISON,
            Bytea::COMPARISON,
            Text::COMPARISON,
            Char36::COMPARISON,
        ] {
            assert_eq!(comparison, bytes);
        }
        assert_eq!(BigInt::COMPARISON, Integer::COMPARISON);
    }

    #[test]
    fn values_come_back() {
        let id = uuid::Uuid::from_u128(0x0189_0a5d_ac96_774b_bcce_b302_099a_8057);
        let forms: [(Value, Option<uuid::Uuid>, &str); 5] = [
            (
                Uuid::to_value(id),
                Uuid::from_value(Uuid::to_value(id)),
                "Uuid",
            ),
            (
                <Bytea as SeaOrmColumn<uuid::Uuid>>::to_value(id),
                Bytea::from_value(Bytea::to_value(id)),
                "Bytes",
            ),
            (
                <Text as SeaOrmColumn<uuid::Uuid>>::to_value(id),
                Text::from_value(Text::to_value(id)),
                "String",
            ),
            (
                Char22::to_value(id),
                Char22::from_value(Char22::to_value(id)),
                "String",
            ),
            (
                Char26::to_value(id),
                Char26::from_value(Char26::to_value(id)),
                "String",
            ),
        ];
        for (value, back, kind) in forms {
            assert!(format!("{value:?}").starts_with(kind), "{value:?}");
            assert_eq!(back, Some(id));
        }
        assert_eq!(
            <Text as SeaOrmColumn<uuid::Uuid>>::to_value(id),
            Value::from("01890a5d-ac96-774b-bcce-b302099a8057")
        );
        assert_eq!(Uuid::from_value(Value::from(7)), None);
        assert_eq!(Char22::from_value(Value::from("short")), None);
    }
}
