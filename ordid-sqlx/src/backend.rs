//! What the unit of work needs of an engine, sealed, so that users' generic code asks for
//! `DB: Backend, E: Entity<DB>` and no executor bounds.

use std::{cmp::Ordering, future::Future, pin::Pin};

use ordid_core::{
    Fields, OrderedKey, RawKeyOf, Sink,
    storage::numbers::{Answer, KeepsRows},
    unit_of_work::{ColumnMask, Columns, RowEnd, RowSink, Take},
    uuid::Uuid,
};
use sqlx::{Arguments, Encode, SqlStr, Type, encode::IsNull, error::BoxDynError};

use crate::{
    bulk::Bulk,
    numbers::{Texts, Value},
    stored::stored_order,
};

pub(crate) mod sealed {
    pub trait Sealed {}
}

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A database that a unit of work can flush to: `sqlx::Postgres`, `sqlx::MySql`, `sqlx::Sqlite`,
/// each with its feature.
pub trait Backend: sqlx::Database + sealed::Sealed {
    /// Names, quoting and limits.
    type Dialect: KeepsRows;

    /// How to open a transaction that will write, where plain `BEGIN` is not it.
    #[doc(hidden)]
    const BEGIN: Option<&'static str>;

    /// Whether a connection can be used again after a future on it was dropped, wherever that was.
    #[doc(hidden)]
    const SURVIVES_DROPS: bool;

    /// How to have constraints checked at COMMIT, those that are declared `DEFERRABLE`.
    #[doc(hidden)]
    const DEFER: Option<&'static str>;

    /// How rows are updated by their keys.
    #[doc(hidden)]
    const UPDATES: Updates;

    /// The command beside `INSERT` that takes rows in bulk; `Infallible` where there is none.
    #[doc(hidden)]
    type Bulk: Bulk<Self>;

    /// Creates the table of [`flushes_table`](crate::flushes_table).
    #[doc(hidden)]
    const FLUSHES_TABLE: &'static str;

    /// Binds what a flush is recorded by.
    #[doc(hidden)]
    fn flush_id(id: Uuid) -> Result<Self::Arguments, sqlx::Error>;

    /// Returns whether a transaction is open that SQLx does not know of, as far as it can be asked for:
    /// SQLite refuses another BEGIN itself.
    #[doc(hidden)]
    fn has_transaction(
        connection: &mut Self::Connection,
    ) -> BoxFuture<'_, Result<bool, sqlx::Error>>;

    /// Rolls back a transaction whose BEGIN was dropped before it was answered, if that can be done without
    /// waiting and SQLx does not do it.
    #[doc(hidden)]
    fn abandon(connection: &mut Self::Connection);

    /// Returns whether a query has a row.
    #[doc(hidden)]
    fn exists(
        connection: &mut Self::Connection,
        sql: SqlStr,
        arguments: Self::Arguments,
    ) -> BoxFuture<'_, Result<bool, sqlx::Error>>;

    /// Returns how many rows it changed. MySQL's and MariaDB's count rows that were as they are
    /// wanted, since SQLx asks for this (`CLIENT_FOUND_ROWS`).
    #[doc(hidden)]
    fn execute(
        connection: &mut Self::Connection,
        sql: SqlStr,
        arguments: Self::Arguments,
        persistent: bool,
    ) -> BoxFuture<'_, Result<u64, sqlx::Error>>;

    /// What leases and counters say in its own words.
    #[doc(hidden)]
    const TEXTS: Texts;

    /// Runs a statement about integers, and returns its rows and what it changed.
    #[doc(hidden)]
    fn ask<'c>(
        connection: &'c mut Self::Connection,
        sql: SqlStr,
        values: &[Value<'_>],
    ) -> BoxFuture<'c, Result<Answer, sqlx::Error>>;

    /// Runs a script: several statements, without parameters.
    #[doc(hidden)]
    fn run_script(
        connection: &mut Self::Connection,
        sql: SqlStr,
    ) -> BoxFuture<'_, Result<(), sqlx::Error>>;
}

/// How an engine updates many rows, each with values of its own.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updates {
    /// By one `UPDATE` from a list of rows.
    FromValues,
    /// By one `UPDATE` from a list of rows that only a `WITH` can name the columns of.
    WithValues,
    /// By an `UPDATE` for each. A list of rows takes the types of its columns from the parameters, and
    /// how, MySQL and MariaDB decide differently; a parameter that is assigned to a column arrives as
    /// by an `INSERT`.
    RowByRow,
}

/// Implements [`Backend`] for an engine: the executor's bounds hold for concrete connections only.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
macro_rules! backend {
    (
        $database:ident, $dialect:ty,
        begin: $begin:expr,
        survives_drops: $survives_drops:literal,
        defer: $defer:expr,
        updates: $updates:ident,
        bulk: $bulk:ty,
        flushes: $flushes:literal,
        has_transaction: $has_transaction:expr,
        abandon: $abandon:expr,
        texts: $texts:expr,
        last_id: $last_id:expr
    ) => {
        impl $crate::backend::sealed::Sealed for $database {}

        impl $crate::backend::Backend for $database {
            type Dialect = $dialect;

            const BEGIN: Option<&'static str> = $begin;
            const SURVIVES_DROPS: bool = $survives_drops;
            const DEFER: Option<&'static str> = $defer;
            const UPDATES: $crate::backend::Updates = $crate::backend::Updates::$updates;

            type Bulk = $bulk;

            const FLUSHES_TABLE: &'static str = $flushes;

            fn flush_id(id: ordid_core::uuid::Uuid) -> Result<Self::Arguments, sqlx::Error> {
                let mut arguments = <Self as sqlx::Database>::Arguments::default();
                sqlx::Arguments::add(&mut arguments, id).map_err(sqlx::Error::Encode)?;
                Ok(arguments)
            }

            fn has_transaction(
                connection: &mut Self::Connection,
            ) -> $crate::backend::BoxFuture<'_, Result<bool, sqlx::Error>> {
                Box::pin($has_transaction(connection))
            }

            fn abandon(connection: &mut Self::Connection) {
                $abandon(connection);
            }

            fn exists(
                connection: &mut Self::Connection,
                sql: sqlx::SqlStr,
                arguments: Self::Arguments,
            ) -> $crate::backend::BoxFuture<'_, Result<bool, sqlx::Error>> {
                Box::pin(async move {
                    let row = sqlx::query_with::<$database, _>(sql, arguments)
                        .fetch_optional(connection)
                        .await?;
                    Ok(row.is_some())
                })
            }

            fn execute(
                connection: &mut Self::Connection,
                sql: sqlx::SqlStr,
                arguments: Self::Arguments,
                persistent: bool,
            ) -> $crate::backend::BoxFuture<'_, Result<u64, sqlx::Error>> {
                Box::pin(async move {
                    let done = sqlx::query_with::<$database, _>(sql, arguments)
                        .persistent(persistent)
                        .execute(connection)
                        .await?;
                    Ok(done.rows_affected())
                })
            }

            const TEXTS: $crate::numbers::Texts = $texts;

            fn ask<'c>(
                connection: &'c mut Self::Connection,
                sql: sqlx::SqlStr,
                values: &[$crate::numbers::Value<'_>],
            ) -> $crate::backend::BoxFuture<
                'c,
                Result<ordid_core::storage::numbers::Answer, sqlx::Error>,
            > {
                use $crate::numbers::Value;

                let mut arguments = <Self as sqlx::Database>::Arguments::default();
                let mut bind = |value: &Value<'_>| match *value {
                    Value::Number(number) => sqlx::Arguments::add(&mut arguments, number),
                    Value::Text(text) => sqlx::Arguments::add(&mut arguments, text.to_owned()),
                };
                let bound = values.iter().try_for_each(&mut bind);
                Box::pin(async move {
                    bound.map_err(sqlx::Error::Encode)?;
                    let query = sqlx::query_with::<$database, _>(sql, arguments);
                    let mut parts = sqlx::Executor::fetch_many(connection, query);
                    let mut answer = ordid_core::storage::numbers::Answer::default();
                    while let Some(part) = futures_util::TryStreamExt::try_next(&mut parts).await? {
                        match part {
                            sqlx::Either::Left(done) => {
                                answer.changed += done.rows_affected();
                                answer.last_id = $last_id(&done);
                            }
                            sqlx::Either::Right(row) => {
                                let columns = 0..sqlx::Row::len(&row);
                                let numbers = columns.map(|at| sqlx::Row::try_get(&row, at));
                                answer.rows.push(numbers.collect::<Result<_, _>>()?);
                            }
                        }
                    }
                    Ok(answer)
                })
            }

            fn run_script(
                connection: &mut Self::Connection,
                sql: sqlx::SqlStr,
            ) -> $crate::backend::BoxFuture<'_, Result<(), sqlx::Error>> {
                Box::pin(async move { sqlx::raw_sql(sql).execute(connection).await.map(drop) })
            }
        }
    };
}

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub(crate) use backend;

/// An entity that a database can take: every type with `#[derive(OrderedKey)]` whose fields have
/// column types there.
pub trait Entity<DB: Backend>: OrderedKey + Fields<Binder<DB>> + Send + Sync + 'static {
    /// Finds out how the database compares the stored keys.
    #[doc(hidden)]
    fn __stored_order() -> fn(&RawKeyOf<Self>, &RawKeyOf<Self>) -> Ordering;
}

impl<DB: Backend, E: OrderedKey + Fields<Binder<DB>> + Send + Sync + 'static> Entity<DB> for E {
    fn __stored_order() -> fn(&RawKeyOf<Self>, &RawKeyOf<Self>) -> Ordering {
        stored_order(|key| E::write_key(key, &mut Binder::with_capacity(1)))
    }
}

/// Binds the fields of entities, as parameters of one statement or as rows for a bulk command.
#[derive(Debug)]
pub struct Binder<DB: Backend> {
    arguments: DB::Arguments,
    bulk: Option<DB::Bulk>,
    mask: ColumnMask,
    /// The columns that it takes, whatever the row offers.
    only: Option<Vec<usize>>,
    error: Option<BoxDynError>,
}

impl<DB: Backend> Binder<DB> {
    pub(crate) fn with_capacity(values: usize) -> Self {
        let mut arguments = DB::Arguments::default();
        arguments.reserve(values, values * 16);
        Self {
            arguments,
            bulk: None,
            mask: ColumnMask::default(),
            only: None,
            error: None,
        }
    }

    pub(crate) fn with_bulk(bulk: DB::Bulk) -> Self {
        Self {
            arguments: DB::Arguments::default(),
            bulk: Some(bulk),
            mask: ColumnMask::default(),
            only: None,
            error: None,
        }
    }

    /// Takes these columns of the rows that follow, and no others.
    pub(crate) fn take_only(&mut self, columns: &[usize]) {
        let only = self.only.get_or_insert_default();
        only.clear();
        only.extend_from_slice(columns);
    }

    pub(crate) fn take_error(&mut self) -> Option<BoxDynError> {
        self.error.take()
    }

    pub(crate) fn bulk_mut(&mut self) -> Option<&mut DB::Bulk> {
        self.bulk.as_mut()
    }

    pub(crate) fn into_arguments(self) -> DB::Arguments {
        self.arguments
    }
}

#[diagnostic::do_not_recommend]
impl<DB: Backend, T> Sink<T> for Binder<DB>
where
    T: for<'q> Encode<'q, DB> + Type<DB>,
{
    fn put(&mut self, value: &T) {
        if self.error.is_some() {
            return;
        }
        let taken = match (self.mask.take(), &mut self.bulk) {
            (Take::Value, Some(bulk)) => bulk.put(value),
            (Take::Value, None) => self.arguments.add(value),
            (Take::Null, Some(bulk)) => bulk.put(&Null(value)),
            (Take::Null, None) => self.arguments.add(Null(value)),
            (Take::Skip, _) => Ok(()),
        };
        if let Err(error) = taken {
            self.error = Some(error);
        }
    }
}

/// NULL in the place of a value, and of its type.
struct Null<'a, T>(&'a T);

impl<'q, DB: Backend, T: Encode<'q, DB>> Encode<'q, DB> for Null<'_, T> {
    fn encode_by_ref(&self, _: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Ok(IsNull::Yes)
    }

    fn produces(&self) -> Option<DB::TypeInfo> {
        self.0.produces()
    }
}

impl<DB: Backend, T: Type<DB>> Type<DB> for Null<'_, T> {
    fn type_info() -> DB::TypeInfo {
        T::type_info()
    }
}

impl<DB: Backend> RowSink for Binder<DB> {
    fn begin_row(&mut self, columns: Columns<'_>) {
        let only = self.only.as_deref().map(Columns::Only);
        self.mask.begin(only.unwrap_or(columns));
        if let Some(bulk) = &mut self.bulk {
            bulk.begin_row();
        }
    }

    fn end_row(&mut self) -> RowEnd {
        if self.error.is_some() {
            return RowEnd::Refused;
        }
        match &mut self.bulk {
            None => RowEnd::Taken,
            Some(bulk) => match (bulk.end_row(), bulk.is_full()) {
                (false, _) => RowEnd::Refused,
                (true, true) => RowEnd::TakenLast,
                (true, false) => RowEnd::Taken,
            },
        }
    }
}
