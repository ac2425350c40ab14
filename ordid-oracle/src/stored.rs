//! Keys as values of the `oracle` crate: how they are bound and read, a trait for key types, and a
//! wrapper for people without newtypes.

use oracle::{
    Connection, ErrorKind, SqlValue,
    sql_type::{FromSql, OracleType, ToSql, ToSqlNull},
};
use ordid_core::{
    KeyType,
    key::RawKey,
    storage::{ColumnOn, Found, KeepsOrder, StoredValue, Stores, dialect},
};

/// A column of Oracle that stores this kind of raw key.
pub trait OracleColumn<R: RawKey>:
    Stores<R, Stored: Bind> + ColumnOn<dialect::Oracle> + sealed::Sealed<R>
{
}

impl<R: RawKey, C: Stores<R, Stored: Bind> + ColumnOn<dialect::Oracle>> OracleColumn<R> for C {}

mod sealed {
    pub trait Sealed<R> {}

    impl<R: super::RawKey, C: super::Stores<R>> Sealed<R> for C {}
}

/// A key type's column. `#[derive(KeyType)]` implements it from `#[ordid(oracle(oracle = column))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no column for Oracle",
    label = "no column declared",
    note = "name it at the key type: `#[ordid(oracle(oracle = raw16))]`"
)]
pub trait StoredAs: KeyType {
    /// The column.
    type Column: OracleColumn<Self::Raw>;

    // Derived code names no column but this one: a wrong one is one error.

    #[doc(hidden)]
    fn __value_type() -> TypeResult {
        value_type::<Self, Self::Column>()
    }

    #[doc(hidden)]
    fn __set(&self, value: &mut SqlValue<'_>) -> oracle::Result<()> {
        set::<Self, Self::Column>(self, value)
    }

    #[doc(hidden)]
    fn __read(value: &SqlValue<'_>) -> oracle::Result<Self> {
        read::<Self, Self::Column>(value)
    }
}

/// The type of a parameter.
#[doc(hidden)]
pub type TypeResult = oracle::Result<OracleType>;

/// A stored form as the `oracle` crate takes it: bytes as `RAW`, integers as `NUMBER`.
#[doc(hidden)]
pub trait Bind: StoredValue {
    /// Returns the type of the parameter.
    fn oracle_type() -> OracleType;

    /// Sets the parameter.
    fn set(self, value: &mut SqlValue<'_>) -> oracle::Result<()>;
}

impl<const N: usize> Bind for [u8; N] {
    fn oracle_type() -> OracleType {
        OracleType::Raw(u32::try_from(N).unwrap_or(u32::MAX))
    }

    fn set(self, value: &mut SqlValue<'_>) -> oracle::Result<()> {
        (&self).to_sql(value)
    }
}

macro_rules! bind_integers {
    ($($integer:ty),+) => {
        $(impl Bind for $integer {
            /// Any number, as the library itself binds integers: exact to 38 digits.
            fn oracle_type() -> OracleType {
                OracleType::Number(0, 0)
            }

            fn set(self, value: &mut SqlValue<'_>) -> oracle::Result<()> {
                self.to_sql(value)
            }
        })+
    };
}

bind_integers!(i64, u64);

/// Returns the type of a key's parameter.
fn value_type<K: KeyType, C: OracleColumn<K::Raw>>() -> TypeResult {
    Ok(C::Stored::oracle_type())
}

/// Sets a parameter to a key.
fn set<K: KeyType, C: OracleColumn<K::Raw>>(
    key: &K,
    value: &mut SqlValue<'_>,
) -> oracle::Result<()> {
    C::encode(key.to_raw()).set(value)
}

/// Reads a key.
///
/// # Errors
///
/// `NULL`, a value of another form, which the error names with the column to declare, and a raw key
/// that is none of the scheme's.
fn read<K: KeyType, C: OracleColumn<K::Raw>>(value: &SqlValue<'_>) -> oracle::Result<K> {
    let raw = match value.oracle_type()? {
        OracleType::Raw(_) | OracleType::LongRaw | OracleType::BLOB => {
            C::decode(&*value.get::<Vec<u8>>()?)
        }
        OracleType::Varchar2(_)
        | OracleType::NVarchar2(_)
        | OracleType::Char(_)
        | OracleType::NChar(_) => C::decode(&*value.get::<String>()?),
        _ => C::decode(integer(value)?),
    };
    raw.and_then(K::from_raw)
        .map_err(|error| oracle::Error::with_source(ErrorKind::InvalidTypeConversion, error))
}

/// Reads an integer, signed where it can be.
fn integer(value: &SqlValue<'_>) -> oracle::Result<Found<'static>> {
    match value.get::<i64>() {
        Ok(integer) => Ok(Found::Integer(integer)),
        Err(error) if error.kind() == ErrorKind::NullValue => Err(error),
        Err(_) => value.get::<u64>().map(Found::Unsigned),
    }
}

ordid_sql::stored_key! {
    /// A key in a column of your choice, for people without a newtype: `Stored<Uuid, column::Raw16>`.
    ///
    /// `C` is one of [`column`](crate::column)'s types. A pair that would lose the key's order does not
    /// compile.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::KeyType;
    /// use ordid_oracle::{Stored, column};
    /// use ordid::uuid::Uuid;
    ///
    /// let key: Stored<Uuid, column::Raw16> = Uuid::generate().into();
    /// assert_eq!(Stored::<Uuid, column::Raw16>::from(key.into_key()), key);
    /// ```
    ///
    /// ```compile_fail
    /// use ordid_oracle::{Stored, column};
    /// // The first bytes of a version 7 are in another order there.
    /// fn no_order(_: Stored<uuid::Uuid, column::Raw16DotNet>) {}
    /// ```
}

impl<K: KeepsOrder<C>, C: OracleColumn<K::Raw>> ToSql for Stored<K, C> {
    fn oratype(&self, _: &Connection) -> TypeResult {
        value_type::<K, C>()
    }

    fn to_sql(&self, value: &mut SqlValue<'_>) -> oracle::Result<()> {
        set::<K, C>(&self.key, value)
    }
}

impl<K: KeepsOrder<C>, C: OracleColumn<K::Raw>> ToSqlNull for Stored<K, C> {
    fn oratype_for_null(_: &Connection) -> TypeResult {
        value_type::<K, C>()
    }
}

impl<K: KeepsOrder<C>, C: OracleColumn<K::Raw>> FromSql for Stored<K, C> {
    fn from_sql(value: &SqlValue<'_>) -> oracle::Result<Self> {
        read::<K, C>(value).map(Self::new)
    }
}
