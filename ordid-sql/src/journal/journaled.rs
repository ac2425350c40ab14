//! A journal, and the types whose rows it keeps.

use std::{any::TypeId, fmt, time::Duration};

use serde_core::{Serialize, de::DeserializeOwned};

use super::{
    super::{
        Outcome, PendingRows, Registration, Row, RowSink, Table,
        in_chunks::{ChunkedFlush, PlanChunk},
        list::TypeOf,
        marker,
    },
    Attempt, ColumnValues, Journal, Marks,
    record::{
        self, ASKING, ATTEMPT, DROPPED, List, MARKED, Record, SETTLED, Unit, UnitTable, rows_of,
    },
    rows::{Append, read_rows, write_rows},
};
use ordid_core::{
    Error,
    clock::{Clock as _, SystemClock},
    entity::{Fields, OrderedKey, RawKeyOf},
    key::KeyType as _,
    uuid::Uuid,
};

/// A row that a journal can keep: `#[derive(OrderedKey)]` beside serde's `Serialize` and
/// `Deserialize`, also of the type of each column.
#[diagnostic::on_unimplemented(
    message = "a journal cannot keep rows of `{Self}`",
    label = "not for a journal",
    note = "add `#[derive(serde::Serialize, serde::Deserialize)]` to `{Self}`; the type of each of \
            its columns has to implement `serde::Serialize` itself, beside what `#[serde(with)]` says"
)]
pub trait JournalRow: OrderedKey + Serialize + DeserializeOwned + Fields<ColumnValues> {}

#[diagnostic::do_not_recommend]
impl<E: OrderedKey + Serialize + DeserializeOwned + Fields<ColumnValues>> JournalRow for E {}

/// A [`Journal`], and the entity types whose rows it keeps for a unit of work with the sink `S`.
///
/// Users make one and give it to an adapter's unit of work. Adapters call [`begin`](Self::begin)
/// before a flush sends anything, [`ended`](Self::ended) when its outcome is known, and
/// [`resume`](Self::resume) when asked to go on with what an earlier run left.
///
/// # What comes back
///
/// A row comes back by serde, and is written to the database as it came back. So before it is taken,
/// it is read back once and its columns are compared: a column that `#[serde(skip)]` leaves out, or
/// that is written with less precision, is an error of [`begin`](Self::begin), not a row that changes
/// on its way through a crash. So is a column that the library would send otherwise, as its own `Serialize` hides
/// something, where the library tells before a statement ([`RowSink::sent`]).
///
/// # One at a time
///
/// A journal keeps one unit of work: from the beginning of its first flush until it is committed or
/// discarded. A flush that fails leaves it there.
pub struct Journaled<S: RowSink> {
    journal: Box<dyn Journal>,
    types: Vec<RowType<S>>,
    /// What the journal contains of the current unit of work.
    held: Option<Held>,
    /// Whether the contents are committed but could not be removed yet.
    committed: bool,
}

/// How the rows of a type are written and read.
struct RowType<S: RowSink> {
    entity: TypeId,
    table: Table,
    write: WriteRows<S>,
    read: ReadRows<S>,
}

/// Writes the rows of a list of the table of this number.
type WriteRows<S> = fn(&PendingRows<S>, usize, List, Append<'_>) -> Result<(), Error>;
type ReadRows<S> =
    Box<dyn Fn(&mut PendingRows<S>, List, record::Rows<'_>) -> Result<(), Error> + Send + Sync>;

#[derive(Debug)]
struct Held {
    id: Uuid,
    /// The numbers of rows of each type. Rows are only ever added, so that the same numbers are the
    /// same rows.
    rows: Vec<(TypeId, [usize; 3])>,
    in_doubt: bool,
    /// Whether an attempt in doubt wrote a marker row.
    is_marked: bool,
    /// The chunk that was begun last, of a unit of work that is written in chunks.
    chunk: Option<PlanChunk>,
    /// Whether the journal failed to remove it.
    may_be_gone: bool,
    /// Whether the journal failed to record that nothing of the last attempt was written.
    is_settled_here_only: bool,
}

impl<S: RowSink + 'static> Journaled<S> {
    /// Wraps a journal, without any types yet.
    pub fn new(journal: impl Journal + 'static) -> Self {
        Self {
            journal: Box::new(journal),
            types: Vec::new(),
            held: None,
            committed: false,
        }
    }

    /// Adds a type whose rows the journal stores. A unit of work with rows of other types is not flushed.
    /// `register` describes the type as for [`PendingRows::rows_mut_as`].
    #[must_use]
    pub fn row_as<E: Row<S> + JournalRow>(
        mut self,
        register: fn() -> Registration<S, RawKeyOf<E>>,
    ) -> Self {
        self.types.push(RowType {
            entity: TypeId::of::<E>(),
            table: TypeOf::<S, _>::entity::<E>().table(),
            write: write_rows::<S, E>,
            read: Box::new(move |pending_rows, list, rows| {
                read_rows::<S, E>(pending_rows, list, rows, register)
            }),
        });
        self
    }

    /// Writes the rows to the journal unless they are there, and records that an attempt to send them
    /// begins. When this returns, both are durable.
    ///
    /// Without rows it does nothing.
    ///
    /// # Errors
    ///
    /// All [`is_journal`](Error::is_journal), and nothing may be sent: the journal cannot be written;
    /// rows of a type that was not [registered](Self::row_as), or that would not come back as they are;
    /// a unit of work of an earlier run, which was neither resumed nor discarded; rows that were added
    /// to one whose outcome is not known.
    pub fn begin(&mut self, pending_rows: &PendingRows<S>) -> Result<Attempt, Error> {
        self.begin_with(pending_rows, Marks::No)
    }

    /// Does the same as [`begin`](Self::begin) for a flush that may write a marker row. If it is [not known
    /// yet](Marks::NotKnownYet) whether it does, nothing may be sent before [`decided`](Self::decided), unless the
    /// attempt is in doubt already.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`begin`](Self::begin).
    pub fn begin_with(
        &mut self,
        pending_rows: &PendingRows<S>,
        marks: Marks,
    ) -> Result<Attempt, Error> {
        self.begin_after(pending_rows, marks, None)
    }

    /// Does the same for rows that may be in the database already, as an attempt without this journal had this id, and its
    /// COMMIT is unresolved. The journal then has them as if that attempt was its own.
    pub(crate) fn begin_after(
        &mut self,
        pending_rows: &PendingRows<S>,
        marks: Marks,
        unresolved: Option<Uuid>,
    ) -> Result<Attempt, Error> {
        if pending_rows.is_empty() {
            return Ok(Attempt {
                id: Uuid::generate(),
                in_doubt: false,
                is_marked: false,
            });
        }
        let held = self.hold(pending_rows, unresolved)?;
        if let Some(chunk) = &held.chunk {
            return Err(Error::journal(format!(
                "{} rows of the unit of work are committed in chunks, perhaps more: flush `in_chunks` to write the others",
                chunk.rows.start
            )));
        }
        let attempt = held.attempt();
        if held.in_doubt {
            // The journal says so already. If it cannot be written now, the outcome can still be found out.
            return Ok(attempt);
        }
        let record = match marks {
            Marks::No => ATTEMPT,
            Marks::Yes => MARKED,
            // It is in doubt already, so no answer of the database is waited for.
            Marks::NotKnownYet if unresolved.is_some() => ATTEMPT,
            Marks::NotKnownYet => ASKING,
        };
        self.begins(&record)?;
        Ok(Attempt {
            in_doubt: unresolved.is_some(),
            ..attempt
        })
    }

    /// Does the same as [`begin`](Self::begin) for a chunk of the rows, which writes a marker row. Those before it are
    /// committed. The attempt is in doubt if this chunk may be in the database already. A unit that is not in the journal
    /// yet gets this id: chunks of it may have been sent without the journal.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`begin`](Self::begin).
    pub(crate) fn begin_chunk(
        &mut self,
        pending_rows: &PendingRows<S>,
        chunk: &PlanChunk,
        id: Option<Uuid>,
    ) -> Result<Attempt, Error> {
        let held = self.hold(pending_rows, id)?;
        if held.in_doubt && held.chunk.is_none() {
            return Err(Error::journal(
                "the unit of work may be in the database already, as a whole: flush it without `in_chunks`, to find out",
            ));
        }
        if held.in_doubt && held.chunk.as_ref() != Some(chunk) {
            return Err(Error::journal(
                "another chunk of the unit of work may be in the database already: `clear` the unit of work, `resume` it, and \
                 flush it, to find out",
            ));
        }
        let attempt = held.attempt();
        if held.in_doubt {
            return Ok(attempt);
        }
        self.begins(&record::chunk_record(chunk))?;
        if let Some(held) = &mut self.held {
            held.is_marked = true;
            held.chunk = Some(chunk.clone());
        }
        Ok(attempt)
    }

    /// Returns whether an attempt of this unit of work may have been carried out.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.held.as_ref().is_some_and(|it| it.in_doubt)
    }

    /// Returns how far an earlier run was with a unit of work that it wrote in chunks.
    pub(crate) fn chunk_under_way(&self) -> Option<ChunkedFlush> {
        let held = self.held.as_ref()?;
        let chunk = held.chunk.as_ref()?;
        Some(ChunkedFlush::resumed(held.id, chunk, held.in_doubt))
    }

    /// Returns whether the journal has this unit of work, so that a later run of the program would write it.
    pub(crate) fn has_unit(&self) -> bool {
        self.held.is_some()
    }

    /// Writes the rows to the journal unless they are there, with this id if they have one.
    fn hold(&mut self, pending_rows: &PendingRows<S>, id: Option<Uuid>) -> Result<&Held, Error> {
        self.forget_committed()?;
        if self.held.as_ref().is_some_and(|held| held.may_be_gone) {
            return Err(Error::journal(
                "its rows could not be discarded, and may be in the journal or not: `discard` them again",
            ));
        }
        let rows = numbers(pending_rows);
        let held = match self.held.take() {
            Some(held) if held.rows == rows && !held.is_outdated() => held,
            Some(held) if held.in_doubt || held.chunk.is_some() => {
                self.held = Some(held);
                return Err(Error::journal(
                    "the unit of work may be in the database already, but for the rows that were \
                     added since: they cannot be told apart; clear it, resume it, flush it, and add \
                     them then",
                ));
            }
            held => {
                if held.is_none() {
                    self.make_room()?;
                }
                // It goes behind the earlier unit, which is valid until this one is complete.
                self.held = held;
                let id = self.write(pending_rows, id)?;
                Held {
                    id,
                    rows,
                    in_doubt: false,
                    is_marked: false,
                    chunk: None,
                    may_be_gone: false,
                    is_settled_here_only: false,
                }
            }
        };
        Ok(self.held.insert(held))
    }

    /// Records durably that an attempt begins.
    fn begins(&mut self, record: &[u8]) -> Result<(), Error> {
        if let Some(held) = &mut self.held
            && held.is_settled_here_only
        {
            // Otherwise the next run would look for the marker row of the attempt before.
            self.journal.append(&SETTLED)?;
            held.is_settled_here_only = false;
        }
        self.journal.append(record)?;
        self.journal.sync()?;
        if let Some(held) = &mut self.held {
            held.in_doubt |= record != ASKING;
            held.is_marked |= record == MARKED;
        }
        Ok(())
    }

    /// Records whether the attempt writes a marker row. When this returns, the record is durable, and rows may be sent.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be written; then nothing may be sent.
    pub fn decided(&mut self, marks: bool) -> Result<(), Error> {
        match self.held {
            Some(_) => self.begins(if marks { &MARKED } else { &ATTEMPT }),
            None => Ok(()),
        }
    }

    /// Records how the attempt ended. Committed rows are removed; those of a chunk stay until all chunks are committed, and
    /// the record of the next chunk says that this one is.
    ///
    /// An attempt that never gets here, because its future was dropped or its process was killed, stays
    /// unresolved.
    pub fn ended(&mut self, outcome: Outcome) {
        let Some(held) = &mut self.held else {
            return;
        };
        match outcome {
            Outcome::Committed if held.chunk.is_some() => held.in_doubt = false,
            Outcome::Committed => self.complete(),
            Outcome::Nothing => {
                (held.in_doubt, held.is_marked) = (false, false);
                held.chunk = held.chunk.take().filter(PlanChunk::is_later);
                // This record is not made durable. If it is lost, the next run probes once too often.
                held.is_settled_here_only = self.journal.append(&SETTLED).is_err();
            }
            Outcome::Unknown => {}
        }
    }

    /// Removes the rows, which are all committed.
    pub(crate) fn complete(&mut self) {
        if self.held.take().is_some() {
            self.committed = true;
            // This is not a failure: the rows are in the database. The next flush tries again to
            // remove them, and the next run finds the rows.
            let _ = self.forget_committed();
        }
    }

    /// Puts the rows that an earlier run left into an empty unit of work, with their keys, and returns
    /// their number, which is 0 if there are none. The next [`begin`](Self::begin) says whether they may
    /// be in the database already.
    ///
    /// # Errors
    ///
    /// All [`is_journal`](Error::is_journal), and the unit of work is empty: the journal cannot be
    /// read; it has rows of a table whose type was not [registered](Self::row_as) or has other columns;
    /// the unit of work was not empty, and then is as it was.
    pub fn resume(&mut self, pending_rows: &mut PendingRows<S>) -> Result<usize, Error> {
        if !pending_rows.is_empty() {
            return Err(Error::journal(format!(
                "the unit of work has {}; what an earlier run left can only be resumed before rows are added",
                rows_text(pending_rows.len())
            )));
        }
        self.forget_committed()?;
        self.held = None;
        let Some(pending) = pending(&mut *self.journal)? else {
            // A unit that was not written completely was not sent.
            self.journal.clear()?;
            return Ok(0);
        };
        pending_rows.clear();
        let loaded = self.load(&pending, pending_rows);
        let loaded = loaded.and_then(|()| match pending.is_last {
            true => Ok(()),
            false => self.journal.append(&DROPPED),
        });
        if loaded.is_err() {
            pending_rows.clear();
        }
        loaded?;
        self.held = Some(Held {
            id: Uuid::from_u128(pending.unit.id),
            rows: numbers(pending_rows),
            in_doubt: pending.in_doubt,
            is_marked: pending.is_marked,
            chunk: pending.chunk,
            may_be_gone: false,
            is_settled_here_only: false,
        });
        Ok(pending_rows.len())
    }

    /// Must be called when the unit of work was emptied. The contents of the journal stay, to be resumed
    /// or discarded.
    pub fn released(&mut self) {
        self.held = None;
    }

    /// Removes the contents of the journal, so that nobody can resume them.
    ///
    /// # Errors
    ///
    /// As [`Journal::clear`].
    pub fn discard(&mut self) -> Result<(), Error> {
        if let Err(error) = self.journal.clear() {
            if let Some(held) = &mut self.held {
                held.may_be_gone = true;
            }
            return Err(error);
        }
        self.held = None;
        self.committed = false;
        Ok(())
    }

    fn forget_committed(&mut self) -> Result<(), Error> {
        if self.committed {
            self.journal.clear()?;
            self.committed = false;
        }
        Ok(())
    }

    /// Removes a unit that was never sent. One that was sent must not be lost.
    fn make_room(&mut self) -> Result<(), Error> {
        match pending(&mut *self.journal)? {
            None => self.journal.clear(),
            Some(pending) => Err(Error::journal(format!(
                "the journal has {} of an earlier run: `resume` first, or `discard`",
                rows_text(pending.unit.len())
            ))),
        }
    }

    fn write(&mut self, pending_rows: &PendingRows<S>, id: Option<Uuid>) -> Result<Uuid, Error> {
        let id = id.unwrap_or_else(Uuid::generate);
        let tables = tables_with_rows(pending_rows);
        let types = tables
            .iter()
            .map(|table| self.type_of(table))
            .collect::<Result<Vec<_>, _>>()?;
        let unit = Unit {
            id: id.as_u128(),
            tables: tables.iter().map(UnitTable::of).collect(),
        };
        self.journal.append(&unit.to_record()?)?;
        let journal = &mut self.journal;
        for (number, position) in types.into_iter().enumerate() {
            for list in List::ALL {
                let append = &mut |record: &[u8]| journal.append(record);
                (self.types[position].write)(pending_rows, number, list, append)?;
            }
        }
        Ok(id)
    }

    /// Finds the type of a table of a unit of work.
    fn type_of(&self, table: &Table) -> Result<usize, Error> {
        let registered = self.types.iter().position(|it| it.entity == table.entity);
        let position = registered.ok_or_else(|| not_registered(&UnitTable::of(table)))?;
        // Later nobody could tell which type these rows belong to.
        let twice = self.types.iter().find(|other| {
            let unit_table = UnitTable::of(table);
            other.entity != table.entity
                && unit_table.is(&other.table)
                && unit_table.has_columns_of(&other.table)
        });
        match twice {
            None => Ok(position),
            Some(_) => Err(Error::journal(format!(
                "two types with the columns of table {} are registered with the journal; it cannot \
                 tell their rows apart",
                table.name()
            ))),
        }
    }

    /// Finds the type of a table that the journal has.
    fn type_for(&self, table: &UnitTable) -> Result<usize, Error> {
        let of_table = || {
            let types = self.types.iter().enumerate();
            types.filter(|(_, it)| table.is(&it.table))
        };
        let same = |(_, it): &(usize, &RowType<S>)| table.has_columns_of(&it.table);
        if let Some((position, _)) = of_table().find(same) {
            return Ok(position);
        }
        Err(match of_table().next() {
            None => not_registered(table),
            Some((_, it)) => Error::journal(format!(
                "the journal has rows of table {} with the columns {}, and the type has {}: they \
                 cannot be resumed by this version of the program",
                table.name,
                table.columns.join(", "),
                it.table.columns().join(", ")
            )),
        })
    }

    fn load(&mut self, pending: &Pending, pending_rows: &mut PendingRows<S>) -> Result<(), Error> {
        let tables = &pending.unit.tables;
        let types = tables
            .iter()
            .map(|table| self.type_for(table))
            .collect::<Result<Vec<_>, _>>()?;
        let types: Vec<_> = types.iter().map(|it| &self.types[*it]).collect();
        let mut number = 0;
        self.journal.read(&mut |record| {
            let is_of_unit = number > pending.first && number < pending.end;
            number += 1;
            if !is_of_unit {
                return Ok(());
            }
            if let Record::Rows(table, list, rows) = Record::parse(record)? {
                let of_table = types.get(table).ok_or_else(|| record::unknown("a table"))?;
                (of_table.read)(pending_rows, list, rows)?;
            }
            Ok(())
        })?;
        let loaded = tables_with_rows(pending_rows);
        let numbers = loaded.iter().map(rows_of);
        if numbers.eq(tables.iter().map(|table| table.rows)) {
            return Ok(());
        }
        Err(Error::journal(format!(
            "the journal has {} rows of a unit of work of {}",
            pending_rows.len(),
            pending.unit.len()
        )))
    }
}

impl<S: RowSink> fmt::Debug for Journaled<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.types.iter().map(|it| it.table.name());
        f.debug_struct("Journaled")
            .field("tables", &tables.collect::<Vec<_>>())
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

/// The unit of work in a journal, if there was an attempt to send it.
struct Pending {
    unit: Unit,
    /// The number of its unit record, and of its first attempt.
    first: usize,
    end: usize,
    in_doubt: bool,
    is_marked: bool,
    chunk: Option<PlanChunk>,
    /// Whether no unit was written behind it.
    is_last: bool,
}

/// Up to which age a unit is sent again under the same key, if nothing was written. If the process is killed then, the next one
/// has the rest of the half day to find out. Under another key it is written once more, so it should not be often.
const USED_AGAIN: Duration = Duration::from_secs(4 * 60 * 60);

impl Held {
    /// Returns whether it has to be written anew before it is sent: its marker row would soon look as if it might have been
    /// removed already, so that a lost COMMIT could not be resolved.
    fn is_outdated(&self) -> bool {
        let first = marker::first_marker_since(USED_AGAIN, SystemClock.now());
        !self.in_doubt && self.chunk.is_none() && self.id < first
    }

    fn attempt(&self) -> Attempt {
        Attempt {
            id: self.id,
            in_doubt: self.in_doubt,
            is_marked: self.is_marked,
        }
    }
}

fn rows_text(rows: usize) -> String {
    match rows {
        1 => "1 row".to_owned(),
        _ => format!("{rows} rows"),
    }
}

fn pending(journal: &mut dyn Journal) -> Result<Option<Pending>, Error> {
    let mut pending: Option<Pending> = None;
    let mut written: Option<(Unit, usize)> = None;
    let mut number = 0;
    journal.read(&mut |record| {
        match Record::parse(record)? {
            Record::Unit(unit) => written = Some((unit, number)),
            Record::Rows(..) => {}
            begun @ (Record::Attempt | Record::Asking | Record::Marked | Record::Chunk(_)) => {
                if let Some((unit, first)) = written.take() {
                    pending = Some(Pending {
                        unit,
                        first,
                        end: number,
                        in_doubt: false,
                        is_marked: false,
                        chunk: None,
                        is_last: true,
                    });
                }
                if let Some(pending) = &mut pending {
                    pending.in_doubt |= begun != Record::Asking;
                    pending.is_marked |= matches!(begun, Record::Marked | Record::Chunk(_));
                    if let Record::Chunk(chunk) = begun {
                        pending.chunk = Some(chunk);
                    }
                }
            }
            Record::Dropped => written = None,
            Record::Settled => {
                if let Some(pending) = &mut pending {
                    (pending.in_doubt, pending.is_marked) = (false, false);
                    pending.chunk = pending.chunk.take().filter(PlanChunk::is_later);
                }
            }
        }
        number += 1;
        Ok(())
    })?;
    if let Some(pending) = &mut pending {
        pending.is_last = written.is_none();
    }
    Ok(pending)
}

fn not_registered(table: &UnitTable) -> Error {
    Error::journal(format!(
        "the type of table {} ({}) is not registered with the journal: \
         `Journaled::new(journal).row::<..>()`",
        table.name,
        rows_text(table.len())
    ))
}

fn tables_with_rows<S: RowSink + 'static>(pending_rows: &PendingRows<S>) -> Vec<Table> {
    let mut tables = pending_rows.tables();
    tables.retain(|table| rows_of(table) != [0; 3]);
    tables
}

fn numbers<S: RowSink + 'static>(pending_rows: &PendingRows<S>) -> Vec<(TypeId, [usize; 3])> {
    let tables = tables_with_rows(pending_rows);
    let numbers = tables.iter().map(|table| (table.entity, rows_of(table)));
    numbers.collect()
}
