//! Keys as values of tiberius: a trait per column, one for key types, and a wrapper for people
//! without newtypes.

use std::borrow::Cow;

use ordid_core::{
    KeyType,
    key::{Key192, ObjectId, RawKey},
    storage::{
        Column, ColumnOn, Found, KeepsOrder, Stores,
        column::{self, Unordered},
        dialect::{Babelfish, SqlServer},
    },
    uuid::Uuid,
};
use tiberius::{ColumnData, FromSql, FromSqlOwned, IntoSql, ToSql, error::Error};

use crate::{encode::Encode, flavour::Flavour};

/// A column of SQL Server or Babelfish that holds raw keys of type `R`, as tiberius sends and reads
/// them. Implemented here for each pair that exists.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a column of SQL Server for keys of type `{R}`",
    label = "no such column here",
    note = "SQL Server has unique_identifier, unique_identifier_permuted, binary16, binary12, \
            binary24, bigint; Babelfish babelfish_unique_identifier, binary16, bigint",
    note = "for `u64` and `PushId` there is none: take `tiberius` off, and store the raw key itself"
)]
pub trait TiberiusColumn<R: RawKey>: Stores<R> {
    /// Returns the value that is sent.
    fn to_data(raw: R) -> ColumnData<'static>;

    /// Returns NULL.
    fn null() -> ColumnData<'static>;

    /// Reads a value; `None` is NULL.
    ///
    /// # Errors
    ///
    /// Another form gives an error that names it and the column to declare.
    fn from_data(data: &ColumnData<'_>) -> Result<Option<R>, Error>;
}

/// `uniqueidentifier`: tiberius turns a UUID into the wire's order and back.
macro_rules! guid_columns {
    ($($column:ident),+) => {
        $(impl TiberiusColumn<Uuid> for column::$column {
            fn to_data(raw: Uuid) -> ColumnData<'static> {
                ColumnData::Guid(Some(Uuid::from_bytes(Self::encode(raw))))
            }

            fn null() -> ColumnData<'static> {
                ColumnData::Guid(None)
            }

            fn from_data(data: &ColumnData<'_>) -> Result<Option<Uuid>, Error> {
                match data {
                    ColumnData::Guid(None) => Ok(None),
                    ColumnData::Guid(Some(value)) => read::<Self, _>(value.as_bytes()).map(Some),
                    other => Err(wrong_form::<Self>("uniqueidentifier", other)),
                }
            }
        })+
    };
}

guid_columns!(
    UniqueIdentifier,
    UniqueIdentifierPermuted,
    BabelfishUniqueIdentifier
);

macro_rules! binary_columns {
    ($($column:ident: $raw:ty),+) => {
        $(impl TiberiusColumn<$raw> for column::$column {
            fn to_data(raw: $raw) -> ColumnData<'static> {
                ColumnData::Binary(Some(Cow::Owned(Self::encode(raw).to_vec())))
            }

            fn null() -> ColumnData<'static> {
                ColumnData::Binary(None)
            }

            fn from_data(data: &ColumnData<'_>) -> Result<Option<$raw>, Error> {
                match data {
                    ColumnData::Binary(None) => Ok(None),
                    ColumnData::Binary(Some(value)) => read::<Self, _>(&**value).map(Some),
                    other => Err(wrong_form::<Self>("binary", other)),
                }
            }
        })+
    };
}

binary_columns!(Binary16: Uuid, Binary12: ObjectId, Binary24: Key192);

impl TiberiusColumn<i64> for column::BigInt {
    fn to_data(raw: i64) -> ColumnData<'static> {
        ColumnData::I64(Some(Self::encode(raw)))
    }

    fn null() -> ColumnData<'static> {
        ColumnData::I64(None)
    }

    fn from_data(data: &ColumnData<'_>) -> Result<Option<i64>, Error> {
        match data {
            ColumnData::I64(None) => Ok(None),
            ColumnData::I64(Some(value)) => read::<Self, _>(*value).map(Some),
            other => Err(wrong_form::<Self>("bigint", other)),
        }
    }
}

impl<R: RawKey, C: TiberiusColumn<R>> TiberiusColumn<R> for Unordered<C> {
    fn to_data(raw: R) -> ColumnData<'static> {
        C::to_data(raw)
    }

    fn null() -> ColumnData<'static> {
        C::null()
    }

    fn from_data(data: &ColumnData<'_>) -> Result<Option<R>, Error> {
        C::from_data(data)
    }
}

fn read<'a, C: Stores<R>, R: RawKey>(found: impl Into<Found<'a>>) -> Result<R, Error> {
    C::decode(found).map_err(conversion)
}

fn conversion(error: ordid_core::Error) -> Error {
    Error::Conversion(error.to_string().into())
}

fn wrong_form<C: Column>(expected: &str, found: &ColumnData<'_>) -> Error {
    let (found, fix) = match found {
        ColumnData::Guid(_) => (
            "uniqueidentifier",
            "; declare `unique_identifier`, or how it is stored there",
        ),
        ColumnData::Binary(_) => ("binary", "; declare `binary16`, or that of its length"),
        ColumnData::I64(_) => ("bigint", "; declare `bigint`"),
        ColumnData::String(_) => ("text", ", which is no form of keys on SQL Server"),
        _ => ("another type", ""),
    };
    Error::Conversion(
        format!(
            "a `{}` column holds {expected}, found {found}{fix}",
            C::NAME
        )
        .into(),
    )
}

/// A key type's column in a flavour of server. `#[derive(KeyType)]` implements it from
/// `#[ordid(tiberius(sql_server = column, babelfish = column))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no column for {D}",
    label = "no column declared",
    note = "add the engine to the key type: `#[ordid(tiberius(sql_server = unique_identifier))]`, \
            with a scheme that rises there, or `unique_identifier_permuted`; on Babelfish \
            `#[ordid(tiberius(babelfish = babelfish_unique_identifier))]`"
)]
pub trait StoredAs<D: Flavour>: KeyType {
    /// The column.
    type Column: TiberiusColumn<Self::Raw> + ColumnOn<D>;

    #[doc(hidden)]
    fn __encode(self) -> ColumnData<'static> {
        Self::Column::to_data(self.to_raw())
    }

    #[doc(hidden)]
    fn __null() -> ColumnData<'static> {
        Self::Column::null()
    }

    #[doc(hidden)]
    fn __decode(data: &ColumnData<'_>) -> Result<Option<Self>, Error> {
        decode::<Self, Self::Column>(data)
    }
}

fn decode<K: KeyType, C: TiberiusColumn<K::Raw>>(
    data: &ColumnData<'_>,
) -> Result<Option<K>, Error> {
    let raw = C::from_data(data)?;
    raw.map(|raw| K::from_raw(raw).map_err(conversion))
        .transpose()
}

/// On Babelfish, `uuid::Uuid` is a key type as it is. On SQL Server it is none: it may hold any
/// version, and most lose their order in a `uniqueidentifier`.
impl StoredAs<Babelfish> for Uuid {
    type Column = column::BabelfishUniqueIdentifier;
}

/// A key that may be NULL, as a parameter of tiberius: an `Option` of your own type cannot be one.
///
/// Reading needs none: [`Row::get`](tiberius::Row::get) returns an `Option`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nullable<K>(pub Option<K>);

impl<K: StoredAs<SqlServer>> Nullable<K> {
    fn data(&self) -> ColumnData<'static> {
        self.0.map_or_else(K::__null, K::__encode)
    }
}

impl<K: StoredAs<SqlServer> + Send + Sync> ToSql for Nullable<K> {
    fn to_sql(&self) -> ColumnData<'_> {
        self.data()
    }
}

impl<'a, K: StoredAs<SqlServer> + Send + Sync> IntoSql<'a> for Nullable<K> {
    fn into_sql(self) -> ColumnData<'a> {
        self.data()
    }
}

ordid_sql::stored_key! {
    /// A key in a column of your choice: `Stored<Uuid, column::UniqueIdentifierPermuted>`. For people
    /// without a newtype, and for parameters and rows of Babelfish.
    ///
    /// `C` is one of [`column`](mod@column)'s types. A pair that would lose the key's order does not compile.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::KeyType;
    /// use ordid_tiberius::{Stored, column};
    /// use uuid::Uuid;
    ///
    /// type Id = Stored<Uuid, column::UniqueIdentifierPermuted>;
    ///
    /// let key: Id = Uuid::generate().into();
    /// assert_eq!(Id::from(key.into_key()), key);
    /// ```
    ///
    /// ```compile_fail
    /// use ordid_tiberius::{Stored, column};
    /// // A `Uuid` may be of version 7, which SQL Server sorts by its random bits.
    /// fn no_order(_: Stored<uuid::Uuid, column::UniqueIdentifier>) {}
    /// ```
}

impl<D, K, C> Encode<D> for Stored<K, C>
where
    D: Flavour,
    K: KeepsOrder<C>,
    C: TiberiusColumn<K::Raw> + ColumnOn<D>,
{
    fn encode(&self) -> ColumnData<'_> {
        C::to_data(self.key.to_raw())
    }

    fn null() -> ColumnData<'static> {
        C::null()
    }
}

impl<K, C> ToSql for Stored<K, C>
where
    K: KeepsOrder<C> + Send + Sync,
    C: TiberiusColumn<K::Raw>,
{
    fn to_sql(&self) -> ColumnData<'_> {
        C::to_data(self.key.to_raw())
    }
}

impl<'a, K, C> IntoSql<'a> for Stored<K, C>
where
    K: KeepsOrder<C> + Send + Sync,
    C: TiberiusColumn<K::Raw>,
{
    fn into_sql(self) -> ColumnData<'a> {
        C::to_data(self.key.to_raw())
    }
}

impl<'a, K, C> FromSql<'a> for Stored<K, C>
where
    K: KeepsOrder<C> + 'a,
    C: TiberiusColumn<K::Raw>,
{
    fn from_sql(data: &'a ColumnData<'static>) -> tiberius::Result<Option<Self>> {
        Ok(decode::<K, C>(data)?.map(Self::new))
    }
}

impl<K, C> FromSqlOwned for Stored<K, C>
where
    K: KeepsOrder<C>,
    C: TiberiusColumn<K::Raw>,
{
    fn from_sql_owned(data: ColumnData<'static>) -> tiberius::Result<Option<Self>> {
        Ok(decode::<K, C>(&data)?.map(Self::new))
    }
}
