//! `COPY .. FROM STDIN (FORMAT binary)` through Diesel's connection of libpq. When it may take the place of
//! an `INSERT`, and how rows are framed, is a matter of [`copy`].
//!
//! libpq reads what the server says while it sends, so a trigger's notices cannot stop it.

use std::{
    any::Any,
    cell::RefCell,
    io::{self, Write},
    marker::PhantomData,
};

use diesel::{
    PgConnection, QueryResult, QueryableByName, RunQueryDsl,
    pg::{CopyFormat, CopyTarget, Pg},
    prelude::ExecuteCopyFromDsl,
    query_builder::{AstPass, BindCollector, bind_collector::RawBytesBindCollector},
    result::{DatabaseErrorKind, Error},
    serialize::ToSql,
    sql_types::{Array, HasSqlType, Oid, Text},
};
use ordid_sql::{
    NotBulk, RowEnd, copy,
    spi::{BulkFailure, BulkRows, Fed, RowBinder as _},
};

use super::NoLookup;
use crate::{
    backend::Backend,
    entity::{Binder, Columns, TableOf, text},
    failure::classify,
};

/// The rows of a table by `COPY`.
pub(crate) struct CopyCommand<DB: Backend> {
    entity: &'static TableOf<DB>,
    send: SendRows,
    target: copy::Target,
}

impl<DB: Backend> CopyCommand<DB> {
    /// Returns how the rows of a table are copied, or why they are not.
    pub(crate) fn prepare(
        connection: &mut PgConnection,
        entity: &'static TableOf<DB>,
    ) -> Result<Self, NotBulk> {
        let send = (entity.send)().ok_or(NotBulk::NoCommand)?;
        let target = target(connection, &text::<DB>(entity.name), entity.names)?;
        let binder = Binder::with_room(entity, 0, 0);
        let mut types = binder.columns().iter().map(|it| it.type_number());
        let mut fits = |column: usize| {
            let number = types.next().flatten();
            number.is_some_and(|number| target.takes(column, number))
        };
        if let Some(column) = (0..target.columns()).find(|column| !fits(*column)) {
            return Err(NotBulk::Value(entity.names.get(column).copied()));
        }
        Ok(Self {
            entity,
            send,
            target,
        })
    }

    /// Sends the rows in one command. An error of a row is kept until Diesel has ended the command for it.
    pub(crate) fn send(
        &self,
        connection: &mut PgConnection,
        rows: &mut BulkRows<'_, Binder<DB>, Error>,
    ) -> Result<Option<u64>, BulkFailure<Error>> {
        let buffer = CopyBuffer::new(self.target.clone());
        let binder = Binder::with_room(self.entity, 0, 0).into_copy(buffer);
        let feeding = RefCell::new((rows, binder, None));
        let sent = (self.send)(connection, &|out| {
            let (rows, binder, failure) = &mut *feeding.borrow_mut();
            loop {
                let fed = match rows.feed(binder) {
                    Ok(fed) => fed,
                    Err(error) => {
                        *failure = Some(error);
                        return Err(Error::RollbackTransaction);
                    }
                };
                let Some(buffer) = binder.copy_mut() else {
                    return Ok(());
                };
                if fed == Fed::Last {
                    return buffer.end(out);
                }
                buffer.write(out)?;
            }
        });
        let (_, _, failure) = feeding.into_inner();
        match (failure, sent) {
            (Some(failure), _) => Err(failure),
            (None, Err(error)) => Err(classify::<DB>(error, false).into()),
            (None, Ok(taken)) => Ok(taken.try_into().ok()),
        }
    }
}

/// Sends an entity's rows.
pub(crate) type SendRows = fn(&mut PgConnection, Feed<'_>) -> QueryResult<usize>;

/// What writes the rows.
type Feed<'a> = &'a dyn Fn(&mut dyn Write) -> QueryResult<()>;

/// Asks the database whether a `COPY` into these columns does what an `INSERT` does.
fn target(
    connection: &mut PgConnection,
    table: &str,
    names: &[&'static str],
) -> Result<copy::Target, NotBulk> {
    #[derive(QueryableByName)]
    struct Column {
        #[diesel(sql_type = Text)]
        reason: String,
        #[diesel(sql_type = Oid, column_name = "type")]
        number: u32,
    }
    let columns = diesel::sql_query(copy::COLUMNS)
        .bind::<Text, _>(table)
        .bind::<Array<Text>, _>(names)
        .load::<Column>(connection)
        // A server before 12, or one that is only like PostgreSQL.
        .map_err(|_| NotBulk::Unanswered)?;
    let columns = columns.into_iter().map(|it| (it.reason, it.number));
    copy::Target::new(names, columns.collect())
}

/// The connection of libpq, where it is one, or one of a pool.
pub(crate) fn connection<C: 'static>(connection: &mut C) -> Option<&mut PgConnection> {
    let connection: &mut dyn Any = connection;
    #[cfg(feature = "r2d2")]
    {
        use diesel::r2d2::{ConnectionManager, PooledConnection};

        type Pooled = PooledConnection<ConnectionManager<PgConnection>>;

        if connection.is::<Pooled>() {
            return connection.downcast_mut::<Pooled>().map(|it| &mut **it);
        }
    }
    connection.downcast_mut()
}

diesel::table! {
    /// Stands for the table that a command is for: Diesel asks for the type of one, and takes its name
    /// from [`ColumnsOf::walk_target`].
    any (id) { id -> Integer, }
}

/// The table and columns of an entity.
struct ColumnsOf<E>(PhantomData<fn() -> E>);

impl<E: Columns<Pg>> CopyTarget for ColumnsOf<E> {
    type Table = any::table;
    type SqlType = Text;

    fn walk_target(mut out: AstPass<'_, '_, Pg>) -> QueryResult<()> {
        out.push_sql(&text::<Pg>(E::table));
        for (number, name) in E::NAMES.iter().enumerate() {
            out.push_sql(if number == 0 { " (" } else { ", " });
            out.push_identifier(name)?;
        }
        out.push_sql(")");
        Ok(())
    }
}

pub(crate) fn send<E: Columns<Pg>>(
    connection: &mut PgConnection,
    feed: Feed<'_>,
) -> QueryResult<usize> {
    let query = diesel::copy_from(any::table)
        .from_raw_data(ColumnsOf::<E>(PhantomData), |out: &mut dyn Write| feed(out))
        .with_format(CopyFormat::Binary);
    ExecuteCopyFromDsl::execute(query, connection)
}

/// The size from which a piece is given to libpq, which sends multiples of 8 KiB of what it has. With the 64 KiB
/// of [`copy::PIECE`] `cargo xtask bench orms` had 0.74 to 0.90 of the rate of Diesel's own `copy_from`, which gives
/// a row at a time; with these about the same.
const PIECE: usize = 1 << 13;

/// The rows of a table on their way.
pub struct CopyBuffer {
    target: copy::Target,
    piece: Vec<u8>,
    values: RawBytesBindCollector<Pg>,
    error: Option<Error>,
}

impl CopyBuffer {
    pub(crate) fn new(target: copy::Target) -> Self {
        let mut piece = Vec::with_capacity(PIECE + PIECE / 4);
        copy::begin(&mut piece);
        Self {
            target,
            piece,
            values: RawBytesBindCollector::new(),
            error: None,
        }
    }

    pub(crate) fn begin_row(&mut self) {
        self.target.begin_row(&mut self.piece);
    }

    pub(crate) fn put<N, T>(&mut self, value: Option<&T>)
    where
        Pg: HasSqlType<N>,
        T: ToSql<N, Pg>,
    {
        let start = copy::begin_value(&mut self.piece);
        let Some(value) = value else { return };
        let bound = self.values.push_bound_value::<N, T>(value, &mut NoLookup);
        self.values.metadata.clear();
        let written = bound.and_then(|()| match self.values.binds.pop().flatten() {
            Some(bytes) => {
                self.piece.extend_from_slice(&bytes);
                let ended = copy::end_value(&mut self.piece, start);
                ended.map_err(|error| Error::SerializationError(error.into()))
            }
            None => Ok(()),
        });
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }

    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    pub(crate) fn end_row(&self) -> RowEnd {
        match (self.error.is_some(), self.piece.len() >= PIECE) {
            (true, _) => RowEnd::Refused,
            (false, true) => RowEnd::TakenLast,
            (false, false) => RowEnd::Taken,
        }
    }

    /// Sends the piece.
    fn write(&mut self, out: &mut dyn Write) -> QueryResult<()> {
        let written = out.write_all(&self.piece);
        self.piece.clear();
        written.map_err(|error| not_sent(&error))
    }

    /// Sends the last piece.
    fn end(&mut self, out: &mut dyn Write) -> QueryResult<()> {
        copy::end(&mut self.piece);
        self.write(out)
    }
}

fn not_sent(error: &io::Error) -> Error {
    Error::DatabaseError(
        DatabaseErrorKind::UnableToSendCommand,
        Box::new(error.to_string()),
    )
}

/// Returns the number of a type that PostgreSQL itself has.
pub(crate) fn type_number<N>() -> Option<u32>
where
    Pg: HasSqlType<N>,
{
    let metadata = <Pg as HasSqlType<N>>::metadata(&mut NoLookup);
    metadata.oid().ok().filter(|number| *number != 0)
}
