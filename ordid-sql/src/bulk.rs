//! Feeds rows to an engine's bulk command, such as `COPY`, and accounts for them.

use std::{fmt, time::Instant};

use crate::{
    Action, Chunk, DriverError, FlushError, FlushRun, NotBulk, PendingRows, Place, Progress,
    RowSink, Step,
    spi::{BoxedError, RowBinder},
    text::staged_action,
};

/// Whether [`BulkRows::feed`] has more rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fed {
    /// It wrote rows, and there may be more.
    More,
    /// It wrote the last rows of the command, or none.
    Last,
}

/// Why a bulk command failed.
#[derive(Debug)]
pub enum BulkFailure<D> {
    /// A row could not be bound. [`BulkRows`] keeps its error.
    Row,
    /// The library's error.
    Driver(DriverError<D>),
    /// The library's error about the row that was fed last.
    LastRow(DriverError<D>),
}

impl<D> From<DriverError<D>> for BulkFailure<D> {
    fn from(error: DriverError<D>) -> Self {
        Self::Driver(error)
    }
}

/// The rows of one bulk command, from up to [`MAX_BULK_CHUNKS`](crate::spi::FlushConnection::MAX_BULK_CHUNKS) chunks of a table.
pub struct BulkRows<'f, B: RowSink, D> {
    rows: &'f PendingRows<B>,
    run: &'f mut FlushRun<D>,
    observer: &'f mut Option<Box<dyn FnMut(Progress) + Send>>,
    name: &'static str,
    chunk: Chunk,
    /// The temporary table that takes the rows in place of their own one.
    staged: Option<&'static str>,
    /// How many chunks the command may still take.
    chunks_left: usize,
    /// The chunk of the row that was fed last.
    last: Chunk,
    /// The rows that the command has taken so far, of all its chunks.
    sent: Chunk,
    /// The chunks whose rows are all in `sent`. The database accepts none of them until the command ends.
    taken: Vec<Chunk>,
    ended: bool,
    /// The column whose value is not for the command.
    misfit: Option<usize>,
    error: Option<FlushError<D>>,
    started: Instant,
}

/// An error of a bulk command comes with the rows among which the one that failed can be found.
type Ended<T, D> = Result<T, (FlushError<D>, Option<Chunk>)>;

/// How a bulk command ended.
pub(crate) enum BulkEnd {
    /// The flush is at the next chunk.
    Done,
    /// The rest of this chunk, and those of its table that follow, go by statements.
    Rest(Chunk, NotBulk),
}

impl<'f, B: RowBinder, D> BulkRows<'f, B, D> {
    /// Begins a command of at most so many chunks, with the chunk that the flush is at.
    pub(crate) fn new(
        rows: &'f PendingRows<B>,
        run: &'f mut FlushRun<D>,
        observer: &'f mut Option<Box<dyn FnMut(Progress) + Send>>,
        chunk: Chunk,
        max_chunks: usize,
    ) -> Self {
        let mut sent = chunk.clone();
        sent.rows.end = sent.rows.start;
        Self {
            name: rows.table(chunk.table).name(),
            rows,
            run,
            observer,
            last: chunk.clone(),
            chunk,
            staged: None,
            chunks_left: max_chunks.saturating_sub(1),
            sent,
            taken: Vec::new(),
            ended: false,
            misfit: None,
            error: None,
            started: Instant::now(),
        }
    }

    /// Has the command put rows that are updated or upserted into this temporary table, whose columns are those of their own.
    pub(crate) fn staged(mut self, table: &'static str) -> Self {
        for chunk in [&mut self.chunk, &mut self.last, &mut self.sent] {
            chunk.action = staged_action(chunk.action);
        }
        self.staged = Some(table);
        self
    }

    /// Returns the table, as it stands in the command's text, that takes the rows in place of their own one, if there is
    /// such a table.
    pub fn staged_table(&self) -> Option<&'static str> {
        self.staged
    }

    /// Writes the next rows into the binder, until it says that it is full ([`RowEnd`](crate::RowEnd)) or
    /// there are no more.
    ///
    /// # Errors
    ///
    /// [`BulkFailure::Row`] if a row could not be bound; then the command has to be given up.
    pub fn feed(&mut self, binder: &mut B) -> Result<Fed, BulkFailure<D>> {
        loop {
            if self.ended {
                return Ok(Fed::Last);
            }
            let rest = self.sent.rows.end..self.chunk.rows.end;
            let next = self.rows.write(&self.chunk, rest, binder);
            if let Some(error) = binder.take_error() {
                self.error = Some(self.bind_failed(error, next));
                return Err(BulkFailure::Row);
            }
            let wrote = next > self.sent.rows.end;
            self.sent.rows.end = next;
            if wrote && self.last.number != self.chunk.number {
                self.last = self.chunk.clone();
            }
            if next == self.chunk.rows.end {
                self.next_chunk();
            } else if !wrote {
                // The next row is not for the command.
                self.ended = true;
            }
            if wrote && !self.ended {
                return Ok(Fed::More);
            }
        }
    }

    /// Says that the value of this column, by its position in the table, is why a row was not taken: see
    /// [`NotBulk::Value`](crate::NotBulk::Value).
    pub fn misfit(&mut self, column: usize) {
        self.misfit = Some(column);
    }

    /// Returns whether no row was fed.
    pub fn is_empty(&self) -> bool {
        self.sent.rows.is_empty()
    }

    fn next_chunk(&mut self) {
        let next = self.run.upcoming().map(|mut next| {
            if self.staged.is_some() {
                next.action = staged_action(next.action);
            }
            next
        });
        match next {
            // Chunks that keep tenants together may leave out the rows in between.
            Some(next)
                if (next.action, next.table, next.rows.start)
                    == (self.chunk.action, self.chunk.table, self.chunk.rows.end)
                    && self.chunks_left > 0 =>
            {
                self.run.succeeded();
                self.taken.push(std::mem::replace(&mut self.chunk, next));
                self.chunks_left -= 1;
            }
            _ => self.ended = true,
        }
    }

    fn bind_failed(&self, error: BoxedError, row: usize) -> FlushError<D> {
        let place = Place::of(&self.rows.table(self.chunk.table), &self.chunk);
        let key = self.rows.key_text(&self.chunk, row);
        FlushError::bind(error, place.with_key(key))
    }

    /// Ends a command whose rows went into a temporary table. Returns the chunks whose rows it has all taken, and the first
    /// row that it has not: then the flush is at the chunk of that row, and otherwise at the last of these chunks.
    pub(crate) fn ended_staged(
        self,
        outcome: Result<Option<u64>, BulkFailure<D>>,
    ) -> Ended<(Vec<Chunk>, Option<usize>), D> {
        let mut ended = self.checked(outcome)?;
        let next = ended.sent.rows.end;
        if next < ended.chunk.rows.end {
            return Ok((ended.taken, Some(next)));
        }
        ended.taken.push(ended.chunk);
        Ok((ended.taken, None))
    }

    /// Ends the command. The outcome has the number of rows that the database took, if that has to be the number that was sent.
    pub(crate) fn ended(self, outcome: Result<Option<u64>, BulkFailure<D>>) -> Ended<BulkEnd, D> {
        self.checked(outcome).map(Self::counted)
    }

    fn checked(mut self, outcome: Result<Option<u64>, BulkFailure<D>>) -> Ended<Self, D> {
        match outcome {
            // The catalog was asked for triggers before the command, but somebody may have made one since.
            Ok(Some(taken)) if u64::try_from(self.sent.rows.len()) != Ok(taken) => {
                let rows = self.sent.rows.len();
                let place = Place::of(&self.rows.table(self.sent.table), &self.sent);
                Err((FlushError::count(taken, rows, place), Some(self.sent)))
            }
            Ok(_) => Ok(self),
            Err(BulkFailure::Row) => {
                let error = self.error.take();
                Err((error.unwrap_or_else(FlushError::unsaid), None))
            }
            Err(BulkFailure::LastRow(error)) => {
                // The flush may be at the next chunk already.
                let row = self.sent.rows.end.saturating_sub(1);
                let key = self.rows.key_text(&self.last, row);
                let place = Place::of(&self.rows.table(self.last.table), &self.last);
                let error = FlushError::statement(error, place.with_key(key));
                Err((error, None))
            }
            Err(BulkFailure::Driver(error)) => {
                // If the command itself is refused, the error is about the chunk that it began with.
                let sent = match self.sent.rows.is_empty() {
                    true => self.chunk,
                    false => self.sent,
                };
                let place = Place::of(&self.rows.table(sent.table), &sent);
                Err((FlushError::statement(error, place), Some(sent)))
            }
        }
    }

    /// Counts and reports the rows, and ends the step.
    fn counted(self) -> BulkEnd {
        for chunk in &self.taken {
            self.run.report(self.name, chunk, self.observer);
        }
        let count = self.sent.rows.len();
        if count > 0 {
            let elapsed = self.started.elapsed();
            self.run
                .count(self.name, &self.chunk, count, count, elapsed);
        }
        // Also where the library ended the command without asking for all rows.
        if self.sent.rows.end < self.chunk.rows.end {
            let mut rest = self.chunk;
            rest.rows.start = self.sent.rows.end;
            let columns = self.rows.table(rest.table).columns();
            let column = self.misfit.and_then(|column| columns.get(column));
            return BulkEnd::Rest(rest, NotBulk::Value(column.copied()));
        }
        self.run.succeeded();
        self.run.report(self.name, &self.chunk, self.observer);
        BulkEnd::Done
    }
}

impl<B: RowSink, D> fmt::Debug for BulkRows<'_, B, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkRows")
            .field("chunk", &self.chunk)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

/// Returns whether the flush is at rows that are inserted into this table.
pub(crate) fn is_at<D>(run: &FlushRun<D>, table: usize) -> bool {
    matches!(run.step(), Step::Send(chunk) if (chunk.action, chunk.table) == (Action::Insert, table))
}

#[cfg(test)]
mod tests {
    use std::{io, sync::mpsc};

    use ordid::{KeyType, OrderedKey, Sink, uuid::Uuid};

    use super::*;
    use crate::{Columns, EngineProfile, Failure, Plan, Retry, RowEnd};

    #[derive(OrderedKey)]
    #[ordid(table = "cities")]
    struct City {
        #[ordid(key)]
        id: Uuid,
    }

    /// Is full after each row.
    struct OneRow;

    impl Sink<Uuid> for OneRow {
        fn put(&mut self, _: &Uuid) {}
    }

    impl RowSink for OneRow {
        type Entity = ();

        fn begin_row(&mut self, _: Columns<'_>) {}

        fn end_row(&mut self) -> RowEnd {
            RowEnd::TakenLast
        }
    }

    impl RowBinder for OneRow {
        fn with_room((): (), _: usize, _: usize) -> Self {
            Self
        }

        fn of_marker(_: Uuid) -> Self {
            Self
        }
    }

    /// Feeds all rows to a command that ends with `outcome`, and returns the reports.
    fn reports(outcome: Result<Option<u64>, BulkFailure<io::Error>>) -> Vec<(usize, usize)> {
        let mut rows = PendingRows::<OneRow>::new();
        rows.rows_mut().extend((0..5).map(|_| City {
            id: Uuid::generate(),
        }));
        let mut engine = EngineProfile::POSTGRES;
        engine.max_rows = 2;
        let plan = rows.plan(&engine).unwrap();
        let mut run = FlushRun::<io::Error>::new(plan, Retry::NONE, crate::Markers::Changes, None);
        run.succeeded();
        let Step::Send(first) = run.step() else {
            panic!("rows are sent");
        };
        let (tell, told) = mpsc::channel();
        let report = move |progress: Progress| tell.send((progress.rows, progress.done)).unwrap();
        let mut observer: Option<Box<dyn FnMut(Progress) + Send>> = Some(Box::new(report));
        let mut command = BulkRows::new(&rows, &mut run, &mut observer, first, usize::MAX);
        while command.feed(&mut OneRow).unwrap() == Fed::More {}
        assert_eq!(
            told.try_iter().count(),
            0,
            "the database has accepted no row yet"
        );
        _ = command.ended(outcome);
        told.try_iter().collect()
    }

    #[test]
    fn rows_are_reported_when_the_command_has_succeeded() {
        assert_eq!(reports(Ok(Some(5))), [(2, 2), (2, 4), (1, 5)]);
        assert_eq!(reports(Ok(None)), [(2, 2), (2, 4), (1, 5)]);
        assert_eq!(reports(Ok(Some(4))), []);
        let refused = DriverError::new(io::Error::other("no"), Failure::Refused);
        assert_eq!(reports(Err(BulkFailure::Driver(refused))), []);
    }

    /// In a chunk that keeps tenants together, rows of another tenant may lie in between.
    #[test]
    fn rows_that_are_not_in_the_plan_are_not_fed() {
        let mut rows = PendingRows::<OneRow>::new();
        rows.rows_mut().extend((0..9).map(|_| City {
            id: Uuid::generate(),
        }));
        let plan = Plan::with_a_gap(Action::Insert, [0..2, 5..9], 2);
        assert_eq!(plan.rows_together(0), 2);
        assert_eq!(plan.rows_together(1), 4);
        let mut run = FlushRun::<io::Error>::new(plan, Retry::NONE, crate::Markers::Changes, None);
        run.succeeded();
        let mut fed = Vec::new();
        while let Step::Send(chunk) = run.step() {
            let mut observer = None;
            let start = chunk.rows.start;
            let mut command = BulkRows::new(&rows, &mut run, &mut observer, chunk, usize::MAX);
            while command.feed(&mut OneRow).unwrap() == Fed::More {}
            fed.push(start..command.sent.rows.end);
            assert!(command.ended(Ok(None)).is_ok());
        }
        assert_eq!(fed, [0..2, 5..9]);
    }

    #[test]
    fn the_row_that_was_fed_last_is_named_with_its_own_chunk() {
        let mut rows = PendingRows::<OneRow>::new();
        let mut keys: Vec<_> = (0..4).map(|_| Uuid::generate()).collect();
        keys.sort();
        for id in &keys {
            rows.rows_mut().push(City { id: *id });
        }
        let mut engine = EngineProfile::POSTGRES;
        engine.max_rows = 2;
        // A command of one chunk, and one of all.
        for (max_chunks, commands) in [(1, 2), (usize::MAX, 1)] {
            let plan = rows.plan(&engine).unwrap();
            let mut run =
                FlushRun::<io::Error>::new(plan, Retry::NONE, crate::Markers::Changes, None);
            run.succeeded();
            let mut fed = 0;
            let mut sent = 0;
            while let Step::Send(chunk) = run.step() {
                let mut observer = None;
                let mut command = BulkRows::new(&rows, &mut run, &mut observer, chunk, max_chunks);
                while command.feed(&mut OneRow).unwrap() == Fed::More {}
                fed = command.sent.rows.end;
                sent += 1;
                assert!(command.ended(Ok(None)).is_ok());
            }
            assert_eq!((fed, sent), (4, commands));
        }
        for (row, chunk) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
            let plan = rows.plan(&engine).unwrap();
            let mut run =
                FlushRun::<io::Error>::new(plan, Retry::NONE, crate::Markers::Changes, None);
            run.succeeded();
            let Step::Send(first) = run.step() else {
                panic!("rows are sent");
            };
            let mut observer = None;
            let mut command = BulkRows::new(&rows, &mut run, &mut observer, first, usize::MAX);
            for _ in 0..=row {
                command.feed(&mut OneRow).unwrap();
            }
            let refused = DriverError::new(io::Error::other("no"), Failure::Refused);
            let Err((error, None)) = command.ended(Err(BulkFailure::LastRow(refused))) else {
                panic!("the row is known");
            };
            assert_eq!(error.chunk(), Some(chunk), "{row}");
            assert_eq!(error.key(), Some(&*keys[row].to_string()));
        }
    }
}
