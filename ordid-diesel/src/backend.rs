//! What the unit of work needs of a backend, sealed.

use diesel::backend::Backend as DieselBackend;
use ordid_core::uuid::Uuid;
use ordid_sql::FlushDialect;

use crate::entity::Values;

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// A database that a unit of work can flush to: `diesel::pg::Pg`, `diesel::mysql::Mysql`,
/// `diesel::sqlite::Sqlite`, each with its feature.
#[diagnostic::on_unimplemented(
    message = "ordid-diesel has no unit of work for the database `{Self}`",
    label = "not a database that ordid-diesel is built for"
)]
#[cfg_attr(
    not(all(feature = "postgres", feature = "mysql", feature = "sqlite")),
    diagnostic::on_unimplemented(
        note = "turn on the feature of the database: `cargo add ordid-diesel --features sqlite`, or `postgres`, `mysql`"
    )
)]
pub trait Backend:
    DieselBackend<QueryBuilder: Default> + Default + sealed::Sealed + 'static
{
    /// The dialect of the engine, and how the engine behaves.
    type Dialect: FlushDialect;

    /// Whether DDL commits the transaction that is open.
    #[doc(hidden)]
    const DDL_COMMITS: bool = false;

    /// Makes a column with the key of a marker row.
    #[doc(hidden)]
    fn flush_id(id: Uuid) -> Box<dyn Values<Self>>;

    /// Reads a text.
    #[doc(hidden)]
    fn text(value: Option<Self::RawValue<'_>>) -> diesel::deserialize::Result<String>;

    /// How an entity's rows go by the engine's bulk command, where it has one.
    #[cfg(feature = "copy")]
    #[doc(hidden)]
    fn send_rows<E: crate::Columns<Self>>() -> Option<crate::postgres::copy::SendRows> {
        None
    }

    /// The number under which the engine of the bulk command knows a type.
    #[cfg(feature = "copy")]
    #[doc(hidden)]
    fn type_number<N>() -> Option<u32>
    where
        Self: diesel::sql_types::HasSqlType<N>,
    {
        None
    }

    /// Returns what would be sent for a value, where Diesel says it: equal texts are equal values.
    #[cfg(feature = "journal")]
    #[doc(hidden)]
    fn sent<N>(value: &dyn diesel::serialize::ToSql<N, Self>) -> Option<String>
    where
        Self: diesel::sql_types::HasSqlType<N>,
    {
        let _ = value;
        None
    }

    /// Writes a value, or NULL in its place, into the bulk command.
    #[cfg(feature = "copy")]
    #[doc(hidden)]
    fn copy<N, T: diesel::serialize::ToSql<N, Self>>(
        value: Option<&T>,
        copy: &mut crate::postgres::copy::CopyBuffer,
    ) where
        Self: diesel::sql_types::HasSqlType<N>,
    {
        let _ = (value, copy);
    }
}

/// Implements [`Backend`] for an engine: what can be loaded is known of concrete backends only.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
macro_rules! backend {
    (
        $backend:ident, $dialect:ty,
        flush_id: |$id:ident| $flush_id:expr
        $(, also: { $($also:item)* })?
    ) => {
        impl $crate::backend::sealed::Sealed for $backend {}

        impl $crate::backend::Backend for $backend {
            type Dialect = $dialect;

            $($($also)*)?

            fn flush_id($id: ordid_core::uuid::Uuid) -> Box<dyn Values<Self>> {
                $flush_id
            }

            fn text(value: Option<Self::RawValue<'_>>) -> diesel::deserialize::Result<String> {
                <String as diesel::deserialize::FromSql<diesel::sql_types::Text, Self>>::from_nullable_sql(value)
            }
        }
    };
}

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub(crate) use backend;

/// Implements [`Backend::sent`] for an engine whose values are bytes; `$lookup` finds the numbers of its types.
#[cfg(any(feature = "postgres", feature = "mysql"))]
macro_rules! sent_bytes {
    ($lookup:expr) => {
        #[cfg(feature = "journal")]
        fn sent<N>(value: &dyn diesel::serialize::ToSql<N, Self>) -> Option<String>
        where
            Self: diesel::sql_types::HasSqlType<N>,
        {
            use diesel::query_builder::{
                BindCollector as _, bind_collector::RawBytesBindCollector,
            };

            let mut values = RawBytesBindCollector::<Self>::new();
            values.push_bound_value::<N, _>(value, $lookup).ok()?;
            Some(format!("{:?}", values.binds))
        }
    };
}

#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) use sent_bytes;
