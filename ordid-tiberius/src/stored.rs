//! Keys as values of tiberius: a trait per column, one for key types, and a wrapper for people
//! without newtypes.

use std::borrow::Cow;

use ordid_core::{
    KeyType,
    key::{Key192, ObjectId, RawKey},
    storage::{
        Column, ColumnOn, KeepsOrder, Stores,
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

/// A column: its raw key, the variant of its values, their type in messages, and how what is stored becomes such a value
/// and is found in one.
macro_rules! column {
    ($column:ident: $raw:ty, $variant:ident $form:literal, $data:expr, $found:expr) => {
        impl TiberiusColumn<$raw> for column::$column {
            fn to_data(raw: $raw) -> ColumnData<'static> {
                ColumnData::$variant(Some($data(Self::encode(raw))))
            }

            fn null() -> ColumnData<'static> {
                ColumnData::$variant(None)
            }

            fn from_data(data: &ColumnData<'_>) -> Result<Option<$raw>, Error> {
                match data {
                    ColumnData::$variant(None) => Ok(None),
                    ColumnData::$variant(Some(value)) => {
                        Self::decode($found(value)).map(Some).map_err(conversion)
                    }
                    other => Err(wrong_form::<Self>($form, other)),
                }
            }
        }
    };
}

// tiberius turns a UUID into the wire's order and back. One call a column: messages of the compiler show the call.
column!(UniqueIdentifier: Uuid, Guid "uniqueidentifier", Uuid::from_bytes, Uuid::as_bytes);
column!(UniqueIdentifierPermuted: Uuid, Guid "uniqueidentifier", Uuid::from_bytes, Uuid::as_bytes);
column!(BabelfishUniqueIdentifier: Uuid, Guid "uniqueidentifier", Uuid::from_bytes, Uuid::as_bytes);
column!(Binary16: Uuid, Binary "binary", owned, AsRef::as_ref);
column!(Binary12: ObjectId, Binary "binary", owned, AsRef::as_ref);
column!(Binary24: Key192, Binary "binary", owned, AsRef::as_ref);
column!(BigInt: i64, I64 "bigint", i64::from, i64::clone);

fn owned<const N: usize>(stored: [u8; N]) -> Cow<'static, [u8]> {
    Cow::Owned(stored.to_vec())
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
}

/// What reading a value returns; `None` is NULL.
#[doc(hidden)]
pub type Read<K> = tiberius::Result<Option<K>>;

// Functions that derived code calls. They name only the column of the key type, so a wrong column is one error.

#[doc(hidden)]
pub fn encode<D: Flavour, K: StoredAs<D>>(key: &K) -> ColumnData<'static> {
    K::Column::to_data(key.to_raw())
}

#[doc(hidden)]
pub fn null<D: Flavour, K: StoredAs<D>>() -> ColumnData<'static> {
    K::Column::null()
}

/// Reads as SQL Server stores: tiberius' traits do not name the server.
#[doc(hidden)]
pub fn decode<K: StoredAs<SqlServer>>(data: &ColumnData<'_>) -> Read<K> {
    decode_from::<K, K::Column>(data)
}

fn decode_from<K: KeyType, C: TiberiusColumn<K::Raw>>(data: &ColumnData<'_>) -> Read<K> {
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
        self.0.as_ref().map_or_else(null::<SqlServer, K>, encode)
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
    /// use ordid::uuid::Uuid;
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

impl<K: KeepsOrder<C> + Send + Sync, C: TiberiusColumn<K::Raw>> ToSql for Stored<K, C> {
    fn to_sql(&self) -> ColumnData<'_> {
        C::to_data(self.key.to_raw())
    }
}

impl<'a, K: KeepsOrder<C> + Send + Sync, C: TiberiusColumn<K::Raw>> IntoSql<'a> for Stored<K, C> {
    fn into_sql(self) -> ColumnData<'a> {
        C::to_data(self.key.to_raw())
    }
}

impl<'a, K: KeepsOrder<C> + 'a, C: TiberiusColumn<K::Raw>> FromSql<'a> for Stored<K, C> {
    fn from_sql(data: &'a ColumnData<'static>) -> Read<Self> {
        Ok(decode_from::<K, C>(data)?.map(Self::new))
    }
}

impl<K: KeepsOrder<C>, C: TiberiusColumn<K::Raw>> FromSqlOwned for Stored<K, C> {
    fn from_sql_owned(data: ColumnData<'static>) -> Read<Self> {
        Ok(decode_from::<K, C>(&data)?.map(Self::new))
    }
}
