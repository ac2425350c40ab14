//! What the unit of work needs of an engine, sealed, so that users' generic code asks for
//! `DB: Backend, E: Entity<DB>` and no executor bounds.

use std::{any::Any, cell::Cell, convert::Infallible, fmt::Debug};

use ordid_core::{
    Fields, KeyField, OrderedKey, RawKeyOf, Reads, Sink, entity::AnyValue, uuid::Uuid,
};
use ordid_sql::{
    ColumnMask, Columns, EngineProfile, FlushDialect, NotBulk, Registration, RowEnd, RowSink, Take,
    leases::numbers::CounterDialect,
    mapping::MappingDialect,
    spi::{BoxedError, BulkFailure, BulkRows, ReadRow, RowBinder},
};
use sqlx::{Arguments, Decode, Encode, SqlStr, Type, encode::IsNull, error::BoxDynError};

use crate::{
    connection::ProtocolState,
    stored::{ColumnOf, StoredAs},
};

pub(crate) use ordid_sql::{
    leases::numbers::{Answer, Value},
    mapping::{MappingRow, Values},
    spi::BoxFuture,
};

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// A database that a unit of work can flush to: `sqlx::Postgres`, `sqlx::MySql`, `sqlx::Sqlite`,
/// each with its feature.
#[diagnostic::on_unimplemented(
    message = "ordid-sqlx has no unit of work for the database `{Self}`",
    label = "not a database that ordid-sqlx is built for"
)]
#[cfg_attr(
    not(all(feature = "postgres", feature = "mysql", feature = "sqlite")),
    diagnostic::on_unimplemented(
        note = "turn on the feature of the database: `cargo add ordid-sqlx --features sqlite`, or `postgres`, `mysql`"
    )
)]
pub trait Backend: sqlx::Database<Arguments: Debug> + sealed::Sealed {
    /// Names, quoting and limits.
    type Dialect: CounterDialect + FlushDialect + MappingDialect;

    /// How the engine behaves.
    #[doc(hidden)]
    const PROFILE: EngineProfile = <Self::Dialect as FlushDialect>::PROFILE;

    /// Whether a connection can be used again after a future on it was dropped, wherever that was. PostgreSQL's could be,
    /// but it goes back to its pool only after the answer, which a silent network never brings: then each flush that
    /// was dropped takes a connection from the pool for good.
    #[doc(hidden)]
    const SURVIVES_DROPS: bool;

    /// Texts of at most so many bytes stay prepared even if they are sent once.
    #[doc(hidden)]
    const KEEPS_UP_TO: usize;

    /// The command beside `INSERT` that takes rows in bulk; `Infallible` where there is none.
    #[doc(hidden)]
    type Bulk: Bulk<Self>;

    /// Returns how many bytes of values are in a buffer; `None` where it does not tell.
    #[doc(hidden)]
    fn buffered(buffer: &Self::ArgumentBuffer) -> Option<usize>;

    /// Binds the key of a marker row.
    #[doc(hidden)]
    fn bind_marker(arguments: &mut Self::Arguments, id: Uuid) -> Result<(), BoxDynError>;

    /// Whether a savepoint outside of a transaction begins one, which is committed when the savepoint is released.
    #[doc(hidden)]
    const SAVEPOINT_BEGINS: bool;

    /// Asks the server whether a transaction is open: SQLx may not know.
    #[doc(hidden)]
    fn has_transaction(
        connection: &mut Self::Connection,
    ) -> BoxFuture<'_, Result<bool, sqlx::Error>>;

    /// Rolls back a transaction whose BEGIN was dropped before it was answered, if that can be done without
    /// waiting and SQLx does not do it.
    #[doc(hidden)]
    fn abandon(connection: &mut Self::Connection);

    /// Whether the child of a fork may connect where its parent has.
    #[doc(hidden)]
    const SURVIVES_FORKS: bool;

    /// Sends a statement, and returns its rows, each as `read` reads it, and what it changed. MySQL's and MariaDB's
    /// count rows that were as they are wanted, since SQLx asks for this (`CLIENT_FOUND_ROWS`).
    #[doc(hidden)]
    fn ask<R: Default + Send + 'static>(
        connection: &mut Self::Connection,
        sql: SqlStr,
        arguments: Result<Self::Arguments, BoxDynError>,
        persistent: bool,
        read: fn(&Self::Row) -> Result<R, sqlx::Error>,
    ) -> BoxFuture<'_, Result<Answer<R>, sqlx::Error>>;

    /// As [`ask`](Self::ask), of a script of several statements without parameters.
    #[doc(hidden)]
    fn ask_script<R: Default + Send + 'static>(
        connection: &mut Self::Connection,
        sql: SqlStr,
        read: fn(&Self::Row) -> Result<R, sqlx::Error>,
    ) -> BoxFuture<'_, Result<Answer<R>, sqlx::Error>>;

    /// Sends a query, and returns its rows.
    #[doc(hidden)]
    fn fetch(
        connection: &mut Self::Connection,
        sql: SqlStr,
        arguments: Result<Self::Arguments, BoxDynError>,
        persistent: bool,
    ) -> BoxFuture<'_, Result<Vec<Self::Row>, sqlx::Error>>;

    /// Reads the value of a column.
    #[doc(hidden)]
    fn value<T>(row: &Self::Row, at: usize) -> Result<T, sqlx::Error>
    where
        T: for<'r> Decode<'r, Self> + Type<Self>;

    /// Binds integers and names.
    #[doc(hidden)]
    fn bind(values: &[Value<'_>]) -> Result<Self::Arguments, BoxDynError>;

    /// Reads a text, the first column of a row; an empty one of NULL.
    #[doc(hidden)]
    fn text(row: &Self::Row) -> Result<String, sqlx::Error>;

    /// As [`text`](Self::text), of the last column, which may have bytes: that of `XA RECOVER` has. If they
    /// are no text and the row has other columns, the text is empty.
    #[doc(hidden)]
    fn last_text(row: &Self::Row) -> Result<String, sqlx::Error>;

    /// Reads a row of integers.
    #[doc(hidden)]
    fn integers(row: &Self::Row) -> Result<Vec<i64>, sqlx::Error>;

    /// Binds what a mapping table is asked.
    #[doc(hidden)]
    fn bind_mapped(values: Values<'_>) -> Result<Self::Arguments, BoxDynError>;

    /// Reads a row of a mapping table.
    #[doc(hidden)]
    fn mapped(row: &Self::Row) -> Result<MappingRow, sqlx::Error>;

    /// Runs a script: several statements, without parameters.
    #[doc(hidden)]
    fn run_script(
        connection: &mut Self::Connection,
        sql: SqlStr,
    ) -> BoxFuture<'_, Result<(), sqlx::Error>>;
}

/// The rows of a table on their way into an engine's bulk command: encodes them into a piece, and sends piece
/// after piece.
///
/// An engine without such a command takes [`Infallible`], of which there is no value: what is here is for that.
#[doc(hidden)]
pub trait Bulk<DB: Backend>: Sized + Debug + Send + Sync + 'static {
    /// Says whether so many rows of a table are offered to the command.
    fn offers(_rows: usize) -> Result<(), NotBulk> {
        Err(NotBulk::NoCommand)
    }

    /// How to open a transaction in which the command may be used.
    const BEGIN: Option<&'static str> = None;

    /// What has to be set in a transaction that was opened otherwise.
    const SETTING: Option<&'static str> = None;

    /// Asks the database whether the command does with these columns of the table, whose name is quoted, what an
    /// `INSERT` does. An error says why it does not, or that this cannot be known.
    fn prepare<'a>(
        _connection: &'a mut DB::Connection,
        _table: &'a str,
        _columns: &'static [&'static str],
    ) -> BoxFuture<'a, Result<Self, NotBulk>> {
        Box::pin(std::future::ready(Err(NotBulk::NoCommand)))
    }

    /// Begins a row.
    fn begin_row(&mut self) {}

    /// Encodes the value of the row's next column.
    fn put<T>(&mut self, _value: &T) -> Result<(), BoxDynError>
    where
        T: for<'q> Encode<'q, DB> + Type<DB>,
    {
        Ok(())
    }

    /// Ends a row. `false` if one of its values is not for this command: the row is taken out of the piece again.
    fn end_row(&mut self) -> bool {
        false
    }

    /// Returns whether the piece is large enough to be sent.
    fn is_full(&self) -> bool {
        false
    }

    /// Sends one command with the rows that the binder is fed.
    fn send<'a>(
        _binder: &'a mut Binder<DB>,
        _connection: &'a mut DB::Connection,
        _state: &'a ProtocolState,
        _rows: &'a mut BulkRows<'_, Binder<DB>, sqlx::Error>,
    ) -> BoxFuture<'a, Result<Option<u64>, BulkFailure<sqlx::Error>>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

impl<DB: Backend> Bulk<DB> for Infallible {}

/// Gathers what statements return; of each, `counts` has how many rows it changed and its last id.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub(crate) async fn gathered<DB: sqlx::Database, R>(
    mut parts: Parts<'_, DB>,
    read: fn(&DB::Row) -> Result<R, sqlx::Error>,
    counts: fn(&DB::QueryResult) -> (u64, u64),
) -> Result<Answer<R>, sqlx::Error> {
    let mut answer = Answer {
        rows: Vec::new(),
        changed: 0,
        last_id: 0,
    };
    while let Some(part) = futures_util::TryStreamExt::try_next(&mut parts).await? {
        match part {
            sqlx::Either::Left(done) => {
                let (changed, last_id) = counts(&done);
                answer.changed += changed;
                if last_id != 0 {
                    answer.last_id = last_id;
                }
            }
            sqlx::Either::Right(row) => answer.rows.push(read(&row)?),
        }
    }
    Ok(answer)
}

/// The results of statements, as SQLx streams them.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
type Parts<'a, DB> = futures_util::stream::BoxStream<
    'a,
    Result<
        sqlx::Either<<DB as sqlx::Database>::QueryResult, <DB as sqlx::Database>::Row>,
        sqlx::Error,
    >,
>;

/// Implements [`Backend`] for an engine: the executor's bounds hold for concrete connections only.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
macro_rules! backend {
    (
        $database:ident, $dialect:ty,
        survives_drops: $survives_drops:literal,
        keeps_up_to: $keeps_up_to:literal,
        bulk: $bulk:ty,
        savepoint_begins: $savepoint_begins:literal,
        has_transaction: $has_transaction:expr,
        abandon: $abandon:expr,
        survives_forks: $survives_forks:literal,
        last_id: $last_id:expr,
        buffered: $buffered:expr,
        bind_mapped: $bind_mapped:expr
    ) => {
        impl $crate::backend::sealed::Sealed for $database {}

        impl $crate::backend::Backend for $database {
            type Dialect = $dialect;

            const SURVIVES_DROPS: bool = $survives_drops;

            const KEEPS_UP_TO: usize = $keeps_up_to;

            type Bulk = $bulk;

            fn buffered(buffer: &Self::ArgumentBuffer) -> Option<usize> {
                $buffered(buffer)
            }

            fn bind_marker(
                arguments: &mut Self::Arguments,
                id: ordid_core::uuid::Uuid,
            ) -> Result<(), sqlx::error::BoxDynError> {
                sqlx::Arguments::add(arguments, id)
            }

            const SAVEPOINT_BEGINS: bool = $savepoint_begins;

            fn has_transaction(
                connection: &mut Self::Connection,
            ) -> $crate::backend::BoxFuture<'_, Result<bool, sqlx::Error>> {
                Box::pin($has_transaction(connection))
            }

            fn abandon(connection: &mut Self::Connection) {
                $abandon(connection);
            }

            const SURVIVES_FORKS: bool = $survives_forks;

            fn ask<R: Default + Send + 'static>(
                connection: &mut Self::Connection,
                sql: sqlx::SqlStr,
                arguments: Result<Self::Arguments, sqlx::error::BoxDynError>,
                persistent: bool,
                read: fn(&Self::Row) -> Result<R, sqlx::Error>,
            ) -> $crate::backend::BoxFuture<'_, Result<$crate::backend::Answer<R>, sqlx::Error>>
            {
                Box::pin(async move {
                    let arguments = arguments.map_err(sqlx::Error::Encode)?;
                    let query = sqlx::query_with::<$database, _>(sql, arguments);
                    let query = query.persistent(persistent);
                    let parts = sqlx::Executor::fetch_many(connection, query);
                    $crate::backend::gathered::<$database, R>(parts, read, |done| {
                        (done.rows_affected(), $last_id(done))
                    })
                    .await
                })
            }

            fn ask_script<R: Default + Send + 'static>(
                connection: &mut Self::Connection,
                sql: sqlx::SqlStr,
                read: fn(&Self::Row) -> Result<R, sqlx::Error>,
            ) -> $crate::backend::BoxFuture<'_, Result<$crate::backend::Answer<R>, sqlx::Error>>
            {
                Box::pin(async move {
                    let parts = sqlx::raw_sql(sql).fetch_many(connection);
                    $crate::backend::gathered::<$database, R>(parts, read, |done| {
                        (done.rows_affected(), $last_id(done))
                    })
                    .await
                })
            }

            fn fetch(
                connection: &mut Self::Connection,
                sql: sqlx::SqlStr,
                arguments: Result<Self::Arguments, sqlx::error::BoxDynError>,
                persistent: bool,
            ) -> $crate::backend::BoxFuture<'_, Result<Vec<Self::Row>, sqlx::Error>> {
                Box::pin(async move {
                    let arguments = arguments.map_err(sqlx::Error::Encode)?;
                    let query = sqlx::query_with::<$database, _>(sql, arguments);
                    query.persistent(persistent).fetch_all(connection).await
                })
            }

            fn value<T>(row: &Self::Row, at: usize) -> Result<T, sqlx::Error>
            where
                T: for<'r> sqlx::Decode<'r, Self> + sqlx::Type<Self>,
            {
                sqlx::Row::try_get(row, at)
            }

            fn bind(
                values: &[$crate::backend::Value<'_>],
            ) -> Result<Self::Arguments, sqlx::error::BoxDynError> {
                use $crate::backend::Value;

                let mut arguments = Self::Arguments::default();
                for value in values {
                    match *value {
                        Value::Number(number) => sqlx::Arguments::add(&mut arguments, number),
                        Value::Text(text) => sqlx::Arguments::add(&mut arguments, text.to_owned()),
                    }?;
                }
                Ok(arguments)
            }

            fn text(row: &Self::Row) -> Result<String, sqlx::Error> {
                let text: Option<String> = sqlx::Row::try_get(row, 0)?;
                Ok(text.unwrap_or_default())
            }

            fn last_text(row: &Self::Row) -> Result<String, sqlx::Error> {
                let last = sqlx::Row::len(row).saturating_sub(1);
                match sqlx::Row::try_get_unchecked::<Option<String>, _>(row, last) {
                    // An id that another program has given to a prepared transaction may be any bytes.
                    Err(sqlx::Error::ColumnDecode { source, .. })
                        if last > 0 && source.is::<std::str::Utf8Error>() =>
                    {
                        Ok(String::new())
                    }
                    text => Ok(text?.unwrap_or_default()),
                }
            }

            fn integers(row: &Self::Row) -> Result<Vec<i64>, sqlx::Error> {
                let columns = 0..sqlx::Row::len(row);
                columns.map(|at| sqlx::Row::try_get(row, at)).collect()
            }

            fn bind_mapped(
                values: $crate::backend::Values<'_>,
            ) -> Result<Self::Arguments, sqlx::error::BoxDynError> {
                let mut arguments = Self::Arguments::default();
                $bind_mapped(&mut arguments, values)?;
                Ok(arguments)
            }

            fn mapped(row: &Self::Row) -> Result<$crate::backend::MappingRow, sqlx::Error> {
                let hash = match sqlx::Row::len(row) {
                    2 => None,
                    _ => sqlx::Row::try_get(row, 2)?,
                };
                Ok((
                    sqlx::Row::try_get(row, 0)?,
                    sqlx::Row::try_get(row, 1)?,
                    hash,
                ))
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

/// Binds each id, or the hash and the UUID of each entry, as parameters of their own; a hash as an `H`.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) fn bind_each<DB, H>(
    arguments: &mut DB::Arguments,
    values: Values<'_>,
) -> Result<(), BoxDynError>
where
    DB: sqlx::Database,
    i64: for<'q> Encode<'q, DB> + Type<DB>,
    H: From<u32> + for<'q> Encode<'q, DB> + Type<DB>,
    Uuid: for<'q> Encode<'q, DB> + Type<DB>,
{
    match values {
        Values::None => Ok(()),
        Values::Ids(ids) => ids.iter().try_for_each(|id| arguments.add(*id)),
        Values::Entries(entries) => entries.iter().try_for_each(|entry| {
            arguments.add(H::from(entry.hash()))?;
            arguments.add(entry.uuid())
        }),
    }
}

/// An entity that a database can take: every type with `#[derive(OrderedKey)]` whose key type has a
/// [column](StoredAs) there, and whose other fields have column types of SQLx.
pub trait Entity<DB: Backend>:
    OrderedKey<Field: KeyField<Leading: StoredAs<DB>>> + Fields<Binder<DB>> + Send + Sync + 'static
{
    /// Says in which order the database keeps the stored keys: rows are sent in that, so that an insert appends
    /// to the index even where the column does not keep the keys' own order.
    #[doc(hidden)]
    fn __register() -> Registration<Binder<DB>, RawKeyOf<Self>>;
}

impl<DB: Backend, E> Entity<DB> for E
where
    E: OrderedKey<Field: KeyField<Leading: StoredAs<DB>>>
        + Fields<Binder<DB>>
        + Send
        + Sync
        + 'static,
{
    fn __register() -> Registration<Binder<DB>, RawKeyOf<Self>> {
        Registration::in_column::<E::Field, ColumnOf<DB, <E::Field as KeyField>::Leading>>(())
    }
}

/// Binds the fields of entities, as parameters of one statement or as rows for a bulk command.
#[derive(Debug)]
pub struct Binder<DB: Backend> {
    arguments: DB::Arguments,
    /// The size of the arguments, and from which size on there is no room for more rows.
    bytes: Cell<usize>,
    limit: usize,
    bulk: Option<DB::Bulk>,
    mask: ColumnMask,
    /// The functions that read the columns that the database fills.
    readers: Vec<ReadValue<DB>>,
    error: Option<BoxDynError>,
}

/// A function that reads the value of a column.
type ReadValue<DB> = fn(&<DB as sqlx::Database>::Row, usize) -> Result<AnyValue, sqlx::Error>;

impl<DB: Backend> Binder<DB> {
    fn new(arguments: DB::Arguments, bulk: Option<DB::Bulk>) -> Self {
        Self {
            arguments,
            bytes: Cell::new(0),
            limit: usize::MAX,
            bulk,
            mask: ColumnMask::default(),
            readers: Vec::new(),
            error: None,
        }
    }

    pub(crate) fn with_bulk(bulk: DB::Bulk) -> Self {
        Self::new(DB::Arguments::default(), Some(bulk))
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn bulk_mut(&mut self) -> Option<&mut DB::Bulk> {
        self.bulk.as_mut()
    }

    /// Takes the functions that read the columns that the database fills.
    pub(crate) fn take_readers(&mut self) -> Readers<DB> {
        Readers(std::mem::take(&mut self.readers))
    }

    pub(crate) fn into_arguments(self) -> Result<DB::Arguments, BoxDynError> {
        match self.error {
            None => Ok(self.arguments),
            Some(error) => Err(error),
        }
    }
}

impl<DB: Backend> RowBinder for Binder<DB> {
    const KEEPS_UP_TO: usize = DB::KEEPS_UP_TO;
    const BEGINS_XA: bool = true;

    fn with_room((): (), rows: usize, values: usize) -> Self {
        let mut arguments = DB::Arguments::default();
        arguments.reserve(rows * values, rows * values * 16);
        Self::new(arguments, None)
    }

    fn limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    fn bytes(&self) -> usize {
        self.bytes.get()
    }

    fn offers_bulk(rows: usize, _: usize) -> Result<(), NotBulk> {
        DB::Bulk::offers(rows)
    }

    fn of_marker(id: Uuid) -> Self {
        let mut binder = Self::with_room((), 1, 1);
        binder.error = DB::bind_marker(&mut binder.arguments, id).err();
        binder
    }

    fn take_error(&mut self) -> Option<BoxedError> {
        self.error.take()
    }
}

#[diagnostic::do_not_recommend]
impl<DB: Backend, T> Sink<T> for Binder<DB>
where
    T: for<'q> Encode<'q, DB> + Type<DB> + 'static,
{
    fn put(&mut self, value: &T) {
        if self.error.is_some() {
            return;
        }
        let taken = match (self.mask.take(), &mut self.bulk) {
            (Take::Value, Some(bulk)) => bulk.put(value),
            (Take::Value, None) => self.arguments.add(Measured(value, &self.bytes)),
            (Take::Null, Some(bulk)) => bulk.put(&Null(value)),
            (Take::Null, None) => self.arguments.add(Null(value)),
            (Take::Skip, _) => Ok(()),
        };
        if let Err(error) = taken {
            self.error = Some(error);
        }
    }
}

/// The functions that read the columns that the database fills.
pub(crate) struct Readers<DB: Backend>(Vec<ReadValue<DB>>);

impl<DB: Backend> Readers<DB> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a row: its text, and then these columns.
    pub(crate) fn read(&self, row: &DB::Row) -> Result<ReadRow, sqlx::Error> {
        let readers = self.0.iter().enumerate();
        let values = readers.map(|(position, read)| read(row, position + 1));
        Ok(ReadRow {
            text: DB::text(row)?,
            values: values.collect::<Result<_, _>>()?,
        })
    }
}

#[diagnostic::do_not_recommend]
impl<DB: Backend, T> Reads<T> for Binder<DB>
where
    T: for<'r> Decode<'r, DB> + Type<DB> + Send + Sync + 'static,
{
    fn expect(&mut self) {
        self.readers
            .push(|row, at| Ok(Box::new(DB::value::<T>(row, at)?)));
    }
}

/// Returns how many bytes a text or a blob has, of the types that most of them have; 0 of any other value, which is small
/// as a rule. The arguments of SQLite are values of Rust, of which SQLx shows none.
fn size_of_text<T: Any>(value: &T) -> usize {
    fn of<T: AsRef<[u8]> + 'static>(value: &dyn Any) -> Option<usize> {
        let plain = value.downcast_ref::<T>();
        let found = plain.or_else(|| value.downcast_ref::<Option<T>>()?.as_ref());
        found.map(|it| it.as_ref().len())
    }
    let found = of::<String>(value).or_else(|| of::<Vec<u8>>(value));
    found.or_else(|| of::<&'static str>(value)).unwrap_or(0)
}

/// A value that adds its size to a sum as it is encoded: SQLx keeps the buffer of the arguments to itself.
struct Measured<'a, T>(&'a T, &'a Cell<usize>);

impl<'q, DB: Backend, T: Encode<'q, DB> + 'static> Encode<'q, DB> for Measured<'_, T> {
    fn encode_by_ref(&self, buffer: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let before = DB::buffered(buffer);
        let encoded = self.0.encode_by_ref(buffer);
        let bytes = match (before, DB::buffered(buffer)) {
            (Some(before), Some(behind)) => behind.saturating_sub(before),
            _ => size_of_text(self.0),
        };
        self.1.set(self.1.get() + bytes);
        encoded
    }

    fn produces(&self) -> Option<DB::TypeInfo> {
        self.0.produces()
    }

    fn size_hint(&self) -> usize {
        self.0.size_hint()
    }
}

impl<DB: Backend, T: Type<DB>> Type<DB> for Measured<'_, T> {
    fn type_info() -> DB::TypeInfo {
        T::type_info()
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
    type Entity = ();

    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
        if let Some(bulk) = &mut self.bulk {
            bulk.begin_row();
        }
    }

    fn end_row(&mut self) -> RowEnd {
        if self.error.is_some() {
            return RowEnd::Refused;
        }
        match &mut self.bulk {
            None if self.bytes.get() >= self.limit => RowEnd::TakenLast,
            None => RowEnd::Taken,
            Some(bulk) => match (bulk.end_row(), bulk.is_full()) {
                (false, _) => RowEnd::Refused,
                (true, true) => RowEnd::TakenLast,
                (true, false) => RowEnd::Taken,
            },
        }
    }

    /// SQLx does not compare arguments; their debug text has what is sent.
    fn sent((): (), columns: Columns<'_>, write: &mut dyn FnMut(&mut Self)) -> Option<String> {
        let mut binder = Self::new(DB::Arguments::default(), None);
        binder.begin_row(columns);
        write(&mut binder);
        let arguments = binder.into_arguments().ok()?;
        Some(format!("{arguments:?}"))
    }
}

#[cfg(all(test, any(feature = "postgres", feature = "mysql", feature = "sqlite")))]
mod tests {
    use super::*;

    /// A journal compares these texts. They differ if a value differs in a bit, or is NULL.
    fn sent_values_differ_as_the_values_do<DB: Backend>()
    where
        Binder<DB>: Sink<String> + Sink<Option<i64>> + Sink<f64> + Sink<Vec<u8>>,
    {
        let sent = |columns, name: &str, number, float: f64, bytes: &[u8]| {
            Binder::<DB>::sent((), columns, &mut |binder| {
                binder.put(&name.to_owned());
                binder.put(&number);
                binder.put(&float);
                binder.put(&bytes.to_vec());
            })
            .expect("it can be told")
        };
        let row = sent(Columns::All, "a", Some(1_i64), 0.5, &[1, 2]);
        assert_eq!(sent(Columns::All, "a", Some(1), 0.5, &[1, 2]), row);
        for other in [
            sent(Columns::All, "[redacted]", Some(1), 0.5, &[1, 2]),
            sent(Columns::All, "a", None, 0.5, &[1, 2]),
            sent(Columns::All, "a", Some(1), 0.500_000_000_000_000_1, &[1, 2]),
            sent(Columns::All, "a", Some(1), 0.5, &[1, 3]),
        ] {
            assert_ne!(other, row);
        }
        let only = |name, bytes: &[u8]| sent(Columns::Only(&[3]), name, None, 1.0, bytes);
        assert_eq!(only("a", &[1]), only("b", &[1]));
        assert_ne!(only("a", &[1]), only("a", &[2]));
    }

    #[test]
    fn texts_and_blobs_are_measured_where_arguments_do_not_tell_their_size() {
        assert_eq!(size_of_text(&"four".to_owned()), 4);
        assert_eq!(size_of_text(&"four"), 4);
        assert_eq!(size_of_text(&Some(vec![1_u8; 5])), 5);
        assert_eq!(size_of_text(&None::<String>), 0);
        assert_eq!(size_of_text(&1_i64), 0);
    }

    #[test]
    fn sent_values_differ_on_each_engine() {
        #[cfg(feature = "postgres")]
        sent_values_differ_as_the_values_do::<sqlx::Postgres>();
        #[cfg(feature = "mysql")]
        sent_values_differ_as_the_values_do::<sqlx::MySql>();
        #[cfg(feature = "sqlite")]
        sent_values_differ_as_the_values_do::<sqlx::Sqlite>();
    }
}
