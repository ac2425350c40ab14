//! `COPY .. FROM STDIN (FORMAT binary)` through tokio-postgres. When it may take the place of an `INSERT`, and how rows
//! are framed, is a matter of [`copy`].
//!
//! tokio-postgres reads while it sends, so a server that sends a notice for each row does not stop. A `COPY` that is
//! dropped ends with `CopyFail`, so that the connection can be used on, also the user's.

use std::mem;

use bytes::{Bytes, BytesMut};
use ordid_sql::{
    EngineProfile, NotBulk, RowEnd, copy,
    spi::{BoxedError, BulkFailure, BulkRows, Fed},
};
use tokio_postgres::{
    Error,
    types::{Format, IsNull, ToSql, Type},
};

use crate::{
    binder::{Binder, Parameter},
    calls::{Calls, CopyIn as _},
    classify::{classify, classify_lost},
    connection::ProtocolState,
};

/// The rows for one table, encoded for `COPY`.
#[derive(Debug)]
pub(crate) struct CopyPiece {
    /// The table's name, quoted, and the columns' names in brackets.
    into: [String; 2],
    /// A NULL for each column.
    nulls: String,
    target: copy::Target,
    types: Vec<Type>,
    piece: Vec<u8>,
    /// The value that is encoded: tokio-postgres writes to a buffer of this type alone.
    value: BytesMut,
    /// Where in the piece the last row begins.
    row: usize,
    /// Which column of the row is next.
    column: usize,
    /// Whether the row has a value of another type than its column's, or one that is sent as text.
    is_misfit: bool,
}

impl CopyPiece {
    /// Asks the database whether the command does with these columns of the table, whose name is quoted, what an `INSERT`
    /// does.
    pub(crate) async fn prepare(
        client: &mut impl Calls,
        table: String,
        columns: &'static [&'static str],
    ) -> Result<Self, NotBulk> {
        let parameters: [Parameter<'_>; 2] = [(&table, Type::TEXT), (&columns, Type::TEXT_ARRAY)];
        let rows = client.query_typed(copy::COLUMNS, &parameters).await;
        let rows = rows.iter().flatten();
        let answer = rows.map(|row| Ok::<_, Error>((row.try_get(0)?, row.try_get(1)?)));
        // A server before 12, or one that is only like PostgreSQL.
        let answer: Vec<(String, u32)> = answer
            .collect::<Result<_, _>>()
            .map_err(|_| NotBulk::Unanswered)?;
        let types = answer
            .iter()
            .filter_map(|(_, number)| Type::from_oid(*number));
        let types = types.collect();
        let names = columns.iter().map(|it| EngineProfile::POSTGRES.quote(it));
        let names = names.collect::<Vec<_>>().join(", ");
        let mut piece = Vec::new();
        copy::begin(&mut piece);
        Ok(Self {
            into: [table, format!("({names})")],
            nulls: vec!["NULL"; columns.len()].join(", "),
            // All of its types are PostgreSQL's own.
            target: copy::Target::new(columns, answer)?,
            types,
            piece,
            value: BytesMut::new(),
            row: 0,
            column: 0,
            is_misfit: false,
        })
    }

    pub(crate) fn begin_row(&mut self) {
        self.row = self.piece.len();
        self.column = 0;
        self.is_misfit = false;
        self.target.begin_row(&mut self.piece);
    }

    /// Encodes the value of the row's next column.
    pub(crate) fn put<T: ToSql>(&mut self, value: Option<&T>) -> Result<(), BoxedError> {
        if self.is_misfit {
            return Ok(());
        }
        let fits = |ty: &&Type| {
            let is_binary = |value: &T| matches!(value.encode_format(ty), Format::Binary);
            T::accepts(ty) && value.is_none_or(is_binary)
        };
        let Some(ty) = self.types.get(self.column).filter(fits) else {
            self.is_misfit = true;
            return Ok(());
        };
        self.column += 1;
        let start = copy::begin_value(&mut self.piece);
        self.value.clear();
        if let Some(value) = value
            && let IsNull::No = value.to_sql(ty, &mut self.value)?
        {
            self.piece.extend_from_slice(&self.value);
            copy::end_value(&mut self.piece, start)?;
        }
        Ok(())
    }

    pub(crate) fn end_row(&mut self) -> RowEnd {
        if self.is_misfit || self.column != self.target.columns() {
            self.piece.truncate(self.row);
            return RowEnd::Refused;
        }
        match self.piece.len() >= copy::PIECE {
            true => RowEnd::TakenLast,
            false => RowEnd::Taken,
        }
    }

    /// Takes the piece, and makes room for another one.
    fn take(&mut self) -> Bytes {
        let next = Vec::with_capacity(self.piece.len());
        mem::replace(&mut self.piece, next).into()
    }
}

/// Sends one command with the rows that the binder is fed.
pub(crate) async fn send(
    client: &mut impl Calls,
    state: &ProtocolState,
    binder: &mut Binder,
    rows: &mut BulkRows<'_, Binder, Error>,
) -> Result<Option<u64>, BulkFailure<Error>> {
    let failed = |error| BulkFailure::Driver(classify(error));
    // The first piece is encoded before the command begins: perhaps no row is for it.
    let mut fed = feed(binder, rows)?;
    let Some(piece) = binder.copy.as_mut().filter(|_| !rows.is_empty()) else {
        return Ok(None);
    };
    let [table, columns] = &piece.into;
    let table = rows.staged_table().unwrap_or(table);
    // tokio-postgres loses count of the answers if the server refuses the command before it takes rows. This takes the same
    // lock and needs the same privileges, so it is refused in its place.
    let nothing = format!(
        "INSERT INTO {table} {columns} SELECT {} WHERE false",
        piece.nulls
    );
    client.batch(&nothing).await.map_err(failed)?;
    let sql = format!("COPY {table} {columns} FROM STDIN (FORMAT binary)");
    // A server that does not have the command says so here, where tokio-postgres counts right.
    let prepared = client.prepare(&sql, &[]).await.map_err(failed)?;
    let sink = client.copy_in(&prepared).await;
    let mut sink = sink.map_err(|error| {
        state.miscount();
        BulkFailure::Driver(classify_lost(error))
    })?;
    while let Some(piece) = binder.copy.as_mut() {
        if fed == Fed::Last {
            copy::end(&mut piece.piece);
        }
        sink.feed(piece.take()).await.map_err(failed)?;
        if fed == Fed::Last {
            break;
        }
        fed = feed(binder, rows)?;
    }
    let taken = sink.finish().await.map_err(failed)?;
    // For another command.
    if let Some(piece) = binder.copy.as_mut() {
        copy::begin(&mut piece.piece);
    }
    Ok(Some(taken))
}

/// Encodes the next rows, and says which column's value ended the command, if one did.
fn feed(
    binder: &mut Binder,
    rows: &mut BulkRows<'_, Binder, Error>,
) -> Result<Fed, BulkFailure<Error>> {
    let fed = rows.feed(binder)?;
    if let Some(piece) = binder.copy.as_ref().filter(|piece| piece.is_misfit) {
        rows.misfit(piece.column);
    }
    Ok(fed)
}
