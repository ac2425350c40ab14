//! What the unit of work needs of a backend, sealed.

use diesel::{
    Connection,
    backend::Backend as DieselBackend,
    connection::LoadConnection,
    result::{DatabaseErrorKind, QueryResult},
};
use ordid_core::{storage::Dialect, unit_of_work::Failure, uuid::Uuid};

use crate::{entity::Values, unit_of_work::Statement};

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// A database that a unit of work can flush to: `diesel::pg::Pg`, `diesel::mysql::Mysql`,
/// `diesel::sqlite::Sqlite`, each with its feature.
pub trait Backend:
    DieselBackend<QueryBuilder: Default> + Default + sealed::Sealed + 'static
{
    /// Names and limits.
    type Dialect: Dialect;

    /// How to have constraints checked at COMMIT, those that are declared `DEFERRABLE`.
    #[doc(hidden)]
    const DEFER: Option<&'static str>;

    /// How rows are updated by their keys.
    #[doc(hidden)]
    const UPDATES: Updates;

    /// Creates the table of [`flushes_table`](crate::flushes_table).
    #[doc(hidden)]
    const FLUSHES_TABLE: &'static str;

    /// A column with what a flush is recorded by.
    #[doc(hidden)]
    fn flush_id(id: Uuid) -> Box<dyn Values<Self>>;

    /// Returns what an error of anything but COMMIT means, where the connection was not found closed.
    #[doc(hidden)]
    fn failure(kind: DatabaseErrorKind, message: &str) -> Failure;

    /// Returns what an error of COMMIT means.
    #[doc(hidden)]
    fn commit_failure(kind: DatabaseErrorKind, message: &str) -> Failure;

    /// How the texts of errors begin that Diesel has no kind for, and that are about what is in a row.
    #[doc(hidden)]
    const REFUSALS: &'static [&'static str];

    /// Returns how many rows it changed. MySQL's and MariaDB's count rows that were as they are
    /// wanted, since Diesel asks for this (`CLIENT_FOUND_ROWS`).
    #[doc(hidden)]
    fn execute<C: Connection<Backend = Self>>(
        connection: &mut C,
        statement: Statement<'_, Self>,
    ) -> QueryResult<usize>;

    /// Returns whether a query has a row.
    #[doc(hidden)]
    fn exists<C: LoadConnection<Backend = Self>>(
        connection: &mut C,
        query: Statement<'_, Self>,
    ) -> QueryResult<bool>;

    /// How an entity's rows go by the engine's bulk command, where it has one.
    #[cfg(feature = "copy")]
    #[doc(hidden)]
    fn copier<E: crate::Columns<Self>>() -> Option<crate::postgres::copy::Copier> {
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

    /// Writes a value, or NULL in its place, into the bulk command.
    #[cfg(feature = "copy")]
    #[doc(hidden)]
    fn copy<N, T: diesel::serialize::ToSql<N, Self>>(
        value: Option<&T>,
        copy: &mut crate::postgres::copy::Copy,
    ) where
        Self: diesel::sql_types::HasSqlType<N>,
    {
        let _ = (value, copy);
    }

    /// As [`exists`](Self::exists).
    #[cfg(feature = "async")]
    #[doc(hidden)]
    fn exists_async<C: diesel_async::AsyncConnection<Backend = Self> + 'static>(
        connection: &mut C,
        query: Statement<'_, Self>,
    ) -> impl Future<Output = QueryResult<bool>> + Send;
}

/// How an engine updates many rows, each with values of its own.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updates {
    /// By one `UPDATE` from a list of rows.
    FromValues,
    /// By one `UPDATE` from a list of rows that only a `WITH` can name the columns of.
    WithValues,
    /// By an `UPDATE` for each: a list of rows takes the types of its columns from the parameters, and
    /// MySQL and MariaDB differ in how.
    RowByRow,
}

/// Implements [`Backend`] for an engine: what can be loaded is known of concrete backends only.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
macro_rules! backend {
    (
        $backend:ident, $dialect:ty,
        defer: $defer:expr,
        updates: $updates:expr,
        flushes: $flushes:literal,
        flush_id: |$id:ident| $flush_id:expr,
        failure: $failure:ident,
        commit_failure: $commit_failure:ident,
        refusals: $refusals:expr
        $(, also: { $($also:item)* })?
    ) => {
        impl $crate::backend::sealed::Sealed for $backend {}

        impl $crate::backend::Backend for $backend {
            type Dialect = $dialect;

            const DEFER: Option<&'static str> = $defer;
            const UPDATES: $crate::backend::Updates = $updates;
            const FLUSHES_TABLE: &'static str = $flushes;
            const REFUSALS: &'static [&'static str] = &$refusals;

            $($($also)*)?

            fn flush_id($id: ordid_core::uuid::Uuid) -> Box<dyn Values<Self>> {
                $flush_id
            }

            fn failure(kind: DatabaseErrorKind, message: &str) -> Failure {
                $failure(kind, message)
            }

            fn commit_failure(kind: DatabaseErrorKind, message: &str) -> Failure {
                $commit_failure(kind, message)
            }

            fn execute<C: diesel::Connection<Backend = Self>>(
                connection: &mut C,
                statement: $crate::unit_of_work::Statement<'_, Self>,
            ) -> diesel::QueryResult<usize> {
                diesel::RunQueryDsl::execute(statement, connection)
            }

            fn exists<C: diesel::connection::LoadConnection<Backend = Self>>(
                connection: &mut C,
                query: $crate::unit_of_work::Statement<'_, Self>,
            ) -> diesel::QueryResult<bool> {
                let found = diesel::RunQueryDsl::load::<i32>(query, connection)?;
                Ok(!found.is_empty())
            }

            #[cfg(feature = "async")]
            async fn exists_async<C: diesel_async::AsyncConnection<Backend = Self> + 'static>(
                connection: &mut C,
                query: $crate::unit_of_work::Statement<'_, Self>,
            ) -> diesel::QueryResult<bool> {
                let found = diesel_async::RunQueryDsl::load::<i32>(query, connection).await?;
                Ok(!found.is_empty())
            }
        }
    };
}

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub(crate) use backend;
