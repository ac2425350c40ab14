//! `COPY .. FROM STDIN (FORMAT binary)` through SQLx. When it may take the place of an `INSERT`, and how
//! rows are framed, is told by [`copy`].
//!
//! # Triggers
//!
//! `COPY` fires them, but SQLx does not read while it sends. A server whose messages nobody reads
//! stops, and then both sides wait for ever: a row trigger with `RAISE NOTICE` is enough, after a
//! few hundred rows. So tables with triggers of their own are not copied into; and as a function in
//! a default or a check could do the same, the transaction asks for errors only.

use std::mem;

use ordid_sql::{
    NotBulk, copy,
    spi::{BulkFailure, BulkRows, Fed},
};
use sqlx::{
    Encode, PgConnection, Postgres, Type, TypeInfo as _,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgTypeInfo, types::Oid},
};

use crate::{
    backend::{Backend, Binder, BoxFuture, Bulk},
    classify::classify,
    connection::ProtocolState,
};

/// The rows for one table, encoded for `COPY`.
#[derive(Debug)]
pub struct CopyPiece {
    /// The table's name, quoted, and the columns' names in brackets.
    into: [String; 2],
    target: copy::Target,
    piece: PgArgumentBuffer,
    /// Where in the piece the last row begins.
    row: usize,
    /// Which column of the row is next.
    column: usize,
    /// How many columns are known to be given a Rust type that fits them.
    checked: usize,
    /// Whether the row has a value that needs a cast, or a type that is not known here.
    misfit: bool,
}

impl CopyPiece {
    fn new(
        table: &str,
        columns: &[&'static str],
        answer: Vec<(String, Oid)>,
    ) -> Result<Self, NotBulk> {
        let answer = answer.into_iter();
        let answer = answer.map(|(reason, Oid(number))| (reason, number));
        let target = copy::Target::new(columns, answer.collect())?;
        let names: Vec<_> = columns
            .iter()
            .map(|column| <Postgres as Backend>::PROFILE.quote(column))
            .collect();
        let mut piece = PgArgumentBuffer::default();
        copy::begin(&mut piece);
        Ok(Self {
            into: [table.to_owned(), format!("({})", names.join(", "))],
            target,
            piece,
            row: 0,
            column: 0,
            checked: 0,
            misfit: false,
        })
    }

    /// Whether values of this type go into the next column. A type that is given by its name, as by `type_name = "text"`
    /// of a derive, has no number.
    fn takes(&self, ty: &PgTypeInfo) -> bool {
        let number = match ty.oid() {
            Some(Oid(number)) => Some(number),
            None => copy::type_number(ty.name()),
        };
        number.is_some_and(|number| self.target.takes(self.column, number))
    }

    /// Empties the piece. The buffer is a new one around the old memory, since
    /// it also remembers what SQLx would fill in later (for `jsonb`: nothing, as the column is
    /// `jsonb`).
    fn begin_piece(&mut self) {
        let mut memory = mem::take(&mut *self.piece);
        memory.clear();
        let mut piece = PgArgumentBuffer::default();
        *piece = memory;
        self.piece = piece;
    }
}

impl Bulk<Postgres> for CopyPiece {
    fn offers(rows: usize) -> Result<(), NotBulk> {
        copy::offers(rows)
    }

    /// See "Triggers" above.
    const BEGIN: Option<&'static str> = Some("BEGIN; SET LOCAL client_min_messages TO error");
    const SETTING: Option<&'static str> = Some("SET LOCAL client_min_messages TO error");

    fn prepare<'a>(
        connection: &'a mut PgConnection,
        table: &'a str,
        columns: &'static [&'static str],
    ) -> BoxFuture<'a, Result<Self, NotBulk>> {
        Box::pin(async move {
            let answer: Result<Vec<(String, Oid)>, _> = sqlx::query_as(copy::COLUMNS)
                .bind(table)
                .bind(columns)
                .fetch_all(connection)
                .await;
            // A server before 12, or one that is only like PostgreSQL.
            let answer = answer.map_err(|_| NotBulk::Unanswered)?;
            Self::new(table, columns, answer)
        })
    }

    fn begin_row(&mut self) {
        self.row = self.piece.len();
        self.column = 0;
        self.misfit = false;
        self.target.begin_row(&mut self.piece);
    }

    fn put<T>(&mut self, value: &T) -> Result<(), BoxDynError>
    where
        T: for<'q> Encode<'q, Postgres> + Type<Postgres>,
    {
        if self.misfit {
            return Ok(());
        }
        // As what SQLx would declare the parameter: by the value, or by its Rust type, which is the
        // same in every row.
        let fits = match value.produces() {
            Some(ty) => self.takes(&ty),
            None if self.column < self.checked => true,
            None => {
                let fits = self.takes(&T::type_info());
                if fits && self.column == self.checked {
                    self.checked += 1;
                }
                fits
            }
        };
        if !fits {
            self.misfit = true;
            return Ok(());
        }
        self.column += 1;
        let start = copy::begin_value(&mut self.piece);
        if let IsNull::No = value.encode_by_ref(&mut self.piece)? {
            copy::end_value(&mut self.piece, start)?;
        }
        Ok(())
    }

    fn end_row(&mut self) -> bool {
        let fits = !self.misfit && self.column == self.target.columns();
        if !fits {
            self.piece.truncate(self.row);
        }
        fits
    }

    fn is_full(&self) -> bool {
        self.piece.len() >= copy::PIECE
    }

    fn send<'a>(
        binder: &'a mut Binder<Postgres>,
        connection: &'a mut PgConnection,
        state: &'a ProtocolState,
        rows: &'a mut BulkRows<'_, Binder<Postgres>, sqlx::Error>,
    ) -> BoxFuture<'a, Result<Option<u64>, BulkFailure<sqlx::Error>>> {
        let refused = |error: sqlx::Error| {
            // Anything but an answer of the server leaves open how the command ended.
            if let sqlx::Error::Database(_) = error {
                state.regain();
            }
            BulkFailure::Driver(classify(error))
        };
        Box::pin(async move {
            // The first piece is encoded before the command begins: perhaps no row is for it.
            let mut fed = rows.feed(binder)?;
            report_misfit(binder, rows);
            let Some(piece) = binder.bulk_mut().filter(|_| !rows.is_empty()) else {
                return Ok(None);
            };
            let [table, columns] = &piece.into;
            let table = rows.staged_table().unwrap_or(table);
            let sql = format!("COPY {table} {columns} FROM STDIN (FORMAT binary)");
            state.lose();
            let mut stream = connection.copy_in_raw(&sql).await.map_err(refused)?;
            while let Some(piece) = binder.bulk_mut() {
                if fed == Fed::Last {
                    copy::end(&mut piece.piece);
                }
                stream.send(&piece.piece[..]).await.map_err(refused)?;
                piece.begin_piece();
                if fed == Fed::Last {
                    break;
                }
                fed = match rows.feed(binder) {
                    Ok(fed) => {
                        report_misfit(binder, rows);
                        fed
                    }
                    Err(error) => {
                        // Should the server have refused a row meanwhile, its answer is half read.
                        if stream.abort("a row could not be encoded").await.is_ok() {
                            state.regain();
                        }
                        return Err(error);
                    }
                };
            }
            let taken = stream.finish().await.map_err(refused)?;
            state.regain();
            // For another command.
            if let Some(piece) = binder.bulk_mut() {
                copy::begin(&mut piece.piece);
            }
            Ok(Some(taken))
        })
    }
}

/// Says which column's value ended the command, if one did.
fn report_misfit(
    binder: &mut Binder<Postgres>,
    rows: &mut BulkRows<'_, Binder<Postgres>, sqlx::Error>,
) {
    if let Some(piece) = binder.bulk_mut()
        && piece.misfit
    {
        rows.misfit(piece.column);
    }
}
