//! Rows by PostgreSQL's `COPY`.

use std::{cell::RefCell, io::Write, mem, time::Instant};

use diesel::{QueryResult, result::Error as DieselError};
use ordid_core::unit_of_work::{
    Batches, Chunk, Place, Progress, Step,
    copy::{self, MAX_CHUNKS, MIN_ROWS, Target},
};

use super::{
    UnitOfWork,
    run::Run,
    statement::{Shape, Shapes},
};
use crate::{
    Error,
    backend::Backend,
    entity::Binder,
    failure::judge,
    postgres::copy::{Copy, connection as connection_of_libpq},
};

/// Returns for each table whether and how its rows are copied. To be asked outside of a transaction,
/// which a question that the server refuses would spoil.
pub(super) fn targets<DB: Backend, C: 'static>(
    batches: &Batches<Binder<DB>>,
    shapes: &Shapes<DB>,
    connection: &mut C,
) -> Vec<Option<Target>> {
    let mut target = |table: usize, rows: usize| {
        let shape = &shapes[table];
        let copier = shape.copier().filter(|_| rows >= MIN_ROWS)?;
        let types: Vec<_> = shape
            .binder()
            .columns()
            .iter()
            .map(|it| it.type_number())
            .collect();
        copier.prepare(connection_of_libpq(connection)?, shape.names(), &types)
    };
    let tables = batches.tables();
    let tables = tables.iter().enumerate();
    tables
        .map(|(number, table)| target(number, table.rows()))
        .collect()
}

/// One command under way.
struct Sending<'a, DB: Backend> {
    batches: &'a Batches<Binder<DB>>,
    run: &'a mut Run,
    observer: &'a mut Option<Box<dyn FnMut(Progress) + Send>>,
    name: &'static str,
    binder: Binder<DB>,
    chunk: Chunk,
    chunks: usize,
    /// What the command has taken so far, of several chunks.
    sent: Chunk,
    /// Why a value has no bytes.
    unbound: Option<Error>,
}

impl<DB: Backend> Sending<'_, DB> {
    fn feed(&mut self, out: &mut dyn Write) -> QueryResult<()> {
        loop {
            let rest = self.sent.rows.end..self.chunk.rows.end;
            let next = self.batches.write(&self.chunk, rest, &mut self.binder);
            let Some(copy) = self.binder.copy_mut() else {
                return Ok(());
            };
            if let Some(error) = copy.take_error() {
                let key = self.batches.key_text(&self.chunk, next);
                let place = Place::of(&self.batches.table(self.chunk.table), &self.chunk);
                self.unbound = Some(Error::bind(error, place.with_key(key)));
                return Err(DieselError::RollbackTransaction);
            }
            self.sent.rows.end = next;
            copy.write(out)?;
            if next < self.chunk.rows.end {
                continue;
            }
            match self.run.upcoming() {
                Some(upcoming)
                    if (upcoming.action, upcoming.table)
                        == (self.chunk.action, self.chunk.table)
                        && self.chunks < MAX_CHUNKS =>
                {
                    self.run.succeeded();
                    self.run.report(self.name, &self.chunk, self.observer);
                    self.chunk = upcoming;
                    self.chunks += 1;
                }
                _ => {
                    copy::end(&mut copy.piece);
                    return copy.write(out);
                }
            }
        }
    }
}

impl<DB: Backend> UnitOfWork<DB> {
    /// Sends the chunk that the flush is at, and those of its table that follow, by one command. An error
    /// comes with all rows that the command had been sent.
    pub(super) fn copy<C: 'static>(
        &mut self,
        connection: &mut C,
        shape: &Shape<DB>,
        target: Target,
        run: &mut Run,
    ) -> Result<(), (Error, Option<Chunk>)> {
        let (Step::Send(chunk), Some(connection), Some(copier)) =
            (run.step(), connection_of_libpq(connection), shape.copier())
        else {
            return Ok(());
        };
        let started = Instant::now();
        let mut sent = chunk.clone();
        sent.rows.end = sent.rows.start;
        let sending = RefCell::new(Sending {
            batches: &self.batches,
            run,
            observer: &mut self.observer,
            name: self.batches.table(chunk.table).name(),
            binder: shape.binder().into_copy(Copy::new(target)),
            chunk,
            chunks: 1,
            sent,
            unbound: None,
        });
        let copied = copier.send(connection, &|out| sending.borrow_mut().feed(out));
        let mut sending = sending.into_inner();
        if let Some(error) = mem::take(&mut sending.unbound) {
            return Err((error, None));
        }
        let Sending {
            run,
            observer,
            name,
            chunk,
            sent,
            ..
        } = sending;
        if let Err(error) = copied {
            // Where the command itself is refused, it was for the rows that it should have begun with.
            let sent = if sent.rows.is_empty() { chunk } else { sent };
            let place = Place::of(&self.batches.table(sent.table), &sent);
            return Err((Error::statement(judge::<DB>(error), place), Some(sent)));
        }
        let rows = sent.rows.len();
        run.count(name, &chunk, rows, rows, started.elapsed());
        run.succeeded();
        run.report(name, &chunk, observer);
        Ok(())
    }
}
