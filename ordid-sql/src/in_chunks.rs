//! A unit of work that is too large for one transaction, in several.
//!
//! ```text
//! the plan, row by row in the order of sending
//! |-- chunk 0 --|-- chunk 1 --|-- chunk 2 --|--
//!   marker row    marker row    marker row       each in the transaction of its chunk
//!   id + 0        id + 1        id + 2           id: that of the unit of work, and the time when the chunk was begun
//! ```
//!
//! A chunk begins only after the one before it is known to be committed. So one number says what is written: the rows
//! before the chunk that is under way. Only this chunk can be in doubt, and its marker row tells what became of it. A
//! journal has the chunk's number and its rows before the first of them is sent.
//!
//! Chunks that keep tenants together are cut from a plan [tenant by tenant](crate::plan::tenants).

use std::{hash::Hasher as _, ops::Range, time::Duration};

use ordid_core::{Error, uuid::Uuid};
use siphasher::sip::SipHasher24;

use crate::{
    EngineProfile, FlushError, Flushed, Markers, Marks, PendingRows, Plan, Table, Tally,
    UpsertStep,
    flush_run::new_id,
    plan::Inseparable,
    spi::{RowBinder, TransactionScope},
};

/// How much one transaction of a flush in chunks may hold, and how long the flush waits between two of them.
///
/// The engine's own limits ([`EngineProfile::max_transaction_rows`],
/// [`max_transaction_bytes`](EngineProfile::max_transaction_bytes)) hold as well.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use ordid_sql::ChunkLimits;
///
/// let limits = ChunkLimits::rows(5_000).with_bytes(8 << 20).with_pause(Duration::from_millis(50));
/// // Of keys of several columns: whole tenants, any number of them in a chunk.
/// let of_tenants = limits.with_tenants(usize::MAX);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLimits {
    rows: usize,
    bytes: usize,
    pause: Duration,
    /// Whether tenants are kept together, and how many of them a chunk takes.
    tenants: Option<usize>,
}

impl ChunkLimits {
    /// No limits but the engine's own.
    pub const OF_ENGINE: Self = Self::rows(usize::MAX);

    /// At most so many rows. The marker row of the chunk comes on top. A row that is inserted with NULL and completed by
    /// an update counts twice, as does one whose foreign key is set to NULL before it is deleted. 0 counts as 1.
    pub const fn rows(rows: usize) -> Self {
        Self {
            rows: if rows == 0 { 1 } else { rows },
            bytes: usize::MAX,
            pause: Duration::ZERO,
            tenants: None,
        }
    }

    /// At most so many bytes of values. A row that is larger goes alone. It costs time, as each row is encoded once more to be
    /// measured.
    #[must_use]
    pub const fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Waits so long between two chunks, and gives the connection back to the pool meanwhile: other programs get their
    /// turn, and replicas do not fall behind.
    #[must_use]
    pub const fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Keeps the rows of a tenant together, and those of at most so many tenants in a chunk: a tenant is cut only where it
    /// has more rows than a chunk takes. 0 counts as 1, and `usize::MAX` is any number. So other programs see the rows of a
    /// tenant all at once. Where the tenant is the column by which rows are spread over machines, a transaction has to do
    /// with few of them.
    ///
    /// The tenant of a row is the first column of its key, if the key has several. So is the key of a row of the tenants' own
    /// table, the one with the key type of that column, unless a row refers to it by another column. Other rows are written
    /// before all tenants, perhaps with the first, and deleted after them, so they may not refer to rows of tenants. A row
    /// of a tenant may refer to a row of another only if the same unit of work does not write that. Otherwise the flush is
    /// refused before anything is sent, with an error that [`is_plan`](FlushError::is_plan). What a row referred to before
    /// it is updated is not known: if that was another tenant's row, do not delete it in the same unit of work.
    ///
    /// If a unit of work was begun with `with_tenants`, flush it again and resume it from its journal with
    /// `with_tenants`, too; if it was begun without, leave it out. Otherwise the flush is refused.
    ///
    /// A flush does not know what the first column means: in a table between two others, such as `(issue, label)`, it takes
    /// the issue for the tenant. To plan takes longer, as each row's key is looked at once more.
    #[must_use]
    pub const fn with_tenants(mut self, most: usize) -> Self {
        self.tenants = Some(if most == 0 { 1 } else { most });
        self
    }

    pub(crate) const fn keeps_tenants(self) -> bool {
        self.tenants.is_some()
    }

    pub(crate) const fn pause(self) -> Duration {
        self.pause
    }

    /// Returns the stricter of these limits and those of the engine.
    pub(crate) fn on(self, engine: &EngineProfile) -> Self {
        Self {
            rows: self.rows.min(rows_of_transaction(engine)),
            bytes: self
                .bytes
                .min(engine.max_transaction_bytes.unwrap_or(usize::MAX)),
            ..self
        }
    }
}

/// How many rows a transaction takes beside its marker row.
fn rows_of_transaction(engine: &EngineProfile) -> usize {
    match engine.max_transaction_rows {
        Some(rows) => rows.saturating_sub(1).max(1),
        None => usize::MAX,
    }
}

/// Refuses more rows than the engine takes in one transaction.
///
/// # Errors
///
/// If they have to go in chunks.
pub(crate) fn check_transaction(
    plan: &Plan,
    engine: &EngineProfile,
    scope: TransactionScope,
    marks: Marks,
) -> Result<(), Error> {
    let (rows, name, guide) = (plan.rows(), engine.name, engine.guide);
    let Some(most) = engine.max_transaction_rows else {
        return Ok(());
    };
    match scope {
        TransactionScope::Savepoint if rows > most => Err(Error::plan(format!(
            "the flush would send {rows} rows in your transaction, and {name} takes {most} in one: send fewer, or let `flush` \
             write them `in_chunks`, in transactions of its own (see {guide})"
        ))),
        TransactionScope::Transaction if rows + usize::from(marks != Marks::No) > most => {
            Err(Error::plan(format!(
                "the flush would send {rows} rows in one transaction, and {name} takes {most}, a marker row included: \
                 flush `in_chunks`: each chunk is written exactly once, but the whole is not all or nothing (see {guide})"
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses chunks that nobody could find again, and rows that need one transaction and are more than a chunk takes.
///
/// # Errors
///
/// If the flush writes no marker rows, or there are such rows. Their bytes are not looked at.
pub(crate) fn check_chunks(
    plan: &Plan,
    tables: &[Table],
    limits: ChunkLimits,
    markers: Markers,
) -> Result<(), Error> {
    if markers == Markers::None {
        return Err(Error::plan(
            "a flush `in_chunks` cannot be `without_record`: without marker rows nobody could tell which chunks are \
             committed",
        ));
    }
    let mut circles = plan.deferred().iter();
    match circles.find(|it| it.rows.len() > limits.rows) {
        Some(circle) => Err(too_many(circle, tables, limits.rows)),
        None => Ok(()),
    }
}

/// Returns a hash of what is done with which rows, in the order of sending: how many of them go by a statement is not in
/// it.
pub(crate) fn outline<B: RowBinder>(plan: &Plan, rows: &PendingRows<B>) -> u64 {
    let mut hasher = SipHasher24::new();
    let mut last = None;
    for chunk in plan.chunks() {
        let of = (chunk.action, chunk.table);
        if last != Some(of) {
            let table = rows.table(chunk.table);
            hasher.write(chunk.action.name_in(&table).as_bytes());
            last = Some(of);
        }
        for (_, key) in rows.keys_of(&chunk) {
            hasher.write(key.as_bytes());
        }
    }
    hasher.finish()
}

/// A chunk of a unit of work: rows of its plan, counted in the order of sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanChunk {
    /// The number of the chunk, from 0.
    pub(crate) number: u64,
    pub(crate) rows: Range<usize>,
    /// The [outline] of the plan.
    pub(crate) outline: u64,
    /// When the chunk was begun, in milliseconds since 1970; `None` if its marker row has the time of the unit of work, as
    /// earlier versions wrote it.
    pub(crate) begun: Option<u64>,
}

impl PlanChunk {
    /// Returns whether there are rows before it, which are committed.
    #[cfg(feature = "journal")]
    pub(crate) const fn is_later(&self) -> bool {
        self.rows.start > 0
    }
}

/// How far a unit of work is that is written in chunks.
#[derive(Debug, Clone)]
pub(crate) struct ChunkedFlush {
    /// The id of the unit of work.
    pub(crate) id: Uuid,
    /// The number of the next chunk.
    number: u64,
    /// The rows that are committed.
    done: usize,
    /// The outline of the plan that they belong to.
    outline: u64,
    /// The rows of the chunk that was begun last, unless it is known that nothing of it is written.
    begun: Option<Range<usize>>,
    /// The time of the marker row of the next chunk, as [`PlanChunk::begun`]. A unit of work may be written for longer than
    /// marker rows are kept, so each chunk has its own.
    time: Option<u64>,
    /// Counts what the committed chunks have written.
    flushed: Flushed,
    /// Whether the unit of work has changed since it was begun.
    pub(crate) has_changed: bool,
}

impl ChunkedFlush {
    pub(crate) fn new(outline: u64) -> Self {
        Self {
            id: new_id(),
            number: 0,
            done: 0,
            outline,
            begun: None,
            time: None,
            flushed: Flushed::default(),
            has_changed: false,
        }
    }

    /// Goes on where an earlier run of the program was, with the chunk that it had begun: with the same rows if they may
    /// be written.
    #[cfg(feature = "journal")]
    pub(crate) fn resumed(id: Uuid, chunk: &PlanChunk, is_in_doubt: bool) -> Self {
        Self {
            id,
            number: chunk.number,
            done: chunk.rows.start,
            begun: is_in_doubt.then(|| chunk.rows.clone()),
            time: chunk.begun,
            ..Self::new(chunk.outline)
        }
    }

    /// Returns whether chunks are committed, or may be: if it is not known what became of a COMMIT.
    pub(crate) const fn is_under_way(&self, is_in_doubt: bool) -> bool {
        self.done > 0 || is_in_doubt
    }

    /// Counts the rows that an earlier run has written.
    pub(crate) fn count_earlier(&mut self, plan: &Plan, tables: &[Table]) {
        if self.done > 0 && self.flushed.tables.is_empty() {
            self.flushed = Tally::of_all(&plan.part(0..self.done), tables);
        }
    }

    /// Refuses a plan in which the rows that are committed are not the first ones.
    ///
    /// # Errors
    ///
    /// If rows were added since, or another version of the program plans them in another order.
    pub(crate) fn check(&self, outline: u64) -> Result<(), Error> {
        if !self.has_changed && self.outline == outline {
            return Ok(());
        }
        Err(Error::plan(format!(
            "the first {} rows of the unit of work are committed in chunks, perhaps some more, and it {}: the others cannot \
             be told from them; `clear` it; with a journal, `resume` and flush it, and add rows then; without one, look in \
             the database for what is missing, and add that",
            self.done,
            match self.has_changed {
                true => "has changed since",
                false =>
                    "is in another order than when it was begun (give or leave out `with_tenants` as then; another version of the \
                     program may have another order, too)",
            }
        )))
    }

    /// Begins the next chunk, or the one that was begun, again; `None` if all are committed.
    ///
    /// # Errors
    ///
    /// If rows that need one transaction are more than one chunk takes.
    pub(crate) fn next<B: RowBinder>(
        &mut self,
        plan: &Plan,
        rows: &PendingRows<B>,
        limits: ChunkLimits,
    ) -> Result<Option<PlanChunk>, Error> {
        let chunk = match self.begun.clone() {
            Some(begun) => begun,
            None if self.done >= plan.rows() => return Ok(None),
            None => {
                let chunk = next_rows(plan, rows, self.done, limits)?;
                // Nothing of it is in doubt, so an earlier try needs no time any more. There is half a day from now on.
                self.time = Some(time_of(new_id()));
                chunk
            }
        };
        self.begun = Some(chunk.clone());
        Ok(Some(PlanChunk {
            number: self.number,
            rows: chunk,
            outline: self.outline,
            begun: self.time,
        }))
    }

    /// Returns the key of the marker row of the chunk that was begun.
    pub(crate) fn marker(&self) -> Uuid {
        let marker = marker_of(self.id, self.number);
        match self.time {
            Some(time) => with_time(marker, time),
            None => marker,
        }
    }

    /// Says that the chunk that was begun is committed.
    pub(crate) fn committed(&mut self, flushed: Flushed) {
        if let Some(chunk) = self.begun.take() {
            self.done = chunk.end;
            self.number += 1;
            self.time = None;
            self.flushed.add(flushed);
        }
    }

    /// Says that nothing of the chunk that was begun is written.
    pub(crate) fn failed(&mut self) {
        self.begun = None;
    }

    #[cfg(test)]
    pub(crate) fn made_at(&mut self, millis: u64) {
        (self.id, self.time) = (Uuid::nil(), Some(millis));
    }

    /// Returns what was written.
    pub(crate) fn into_flushed(self) -> Flushed {
        self.flushed
    }

    /// Says in the error of the next chunk what is committed.
    pub(crate) fn explain<D>(&self, error: FlushError<D>) -> FlushError<D> {
        error.after_chunks(self.number, self.flushed.clone())
    }
}

/// Returns the key of the marker row of a chunk: the key of the unit of work, with its number added to the random bits.
///
/// Two units of work have the same one only if their random bits are as close as they have chunks.
pub(crate) fn marker_of(unit: Uuid, number: u64) -> Uuid {
    const RANDOM: u128 = (1 << 62) - 1;
    let bits = unit.as_u128();
    let random = (bits & RANDOM).wrapping_add(u128::from(number)) & RANDOM;
    Uuid::from_u128(bits & !RANDOM | random)
}

/// Where the milliseconds of a key of version 7 begin.
const TIME: u32 = 80;

fn time_of(id: Uuid) -> u64 {
    u64::try_from(id.as_u128() >> TIME).expect("it has 48 bits")
}

/// Returns a key of version 7 with another time.
fn with_time(id: Uuid, time: u64) -> Uuid {
    let others = (1 << TIME) - 1;
    Uuid::from_u128(u128::from(time) << TIME | id.as_u128() & others)
}

/// Returns the rows of the chunk that begins at this one.
fn next_rows<B: RowBinder>(
    plan: &Plan,
    rows: &PendingRows<B>,
    start: usize,
    limits: ChunkLimits,
) -> Result<Range<usize>, Error> {
    let mut most = plan.rows().min(start.saturating_add(limits.rows));
    if let Some(tenants) = limits.tenants {
        most = plan
            .end_of_tenants(start, tenants)
            .unwrap_or(most)
            .min(most);
    }
    let end = match limits.bytes {
        usize::MAX => most,
        bytes => end_by_bytes(plan, rows, start..most, bytes),
    };
    if end == plan.rows() {
        return Ok(start..end);
    }
    // A tenant that begins with the chunk, or before it, does not fit into one.
    if let Some(tenant) = plan.tenant_across(end).filter(|it| it.start > start) {
        return Ok(start..tenant.start);
    }
    match plan.inseparable(end) {
        None => Ok(start..plan.statement_end(start, end)),
        Some(together) if together.rows.start > start => Ok(start..together.rows.start),
        Some(together) => Err(too_many(together, &rows.tables(), end - start)),
    }
}

fn too_many(circle: &Inseparable, tables: &[Table], most: usize) -> Error {
    let names = circle.tables.iter().map(|it| tables[*it].name());
    Error::plan(format!(
        "the {} rows of {} refer to each other in a circle that the database checks at COMMIT, so they need one \
         transaction, and a chunk takes {most} of them: allow more, or declare one of the foreign keys as one that can be \
         NULL and not as deferrable",
        circle.rows.len(),
        names.collect::<Vec<_>>().join(" and "),
    ))
}

/// Returns the end of as many of these rows as have no more bytes than this, but of one row at least.
fn end_by_bytes<B: RowBinder>(
    plan: &Plan,
    rows: &PendingRows<B>,
    range: Range<usize>,
    most: usize,
) -> usize {
    let (mut end, mut bytes) = (range.start, 0_usize);
    for chunk in plan.part(range.clone()).chunks() {
        // A row that is not there is sent whole.
        let chunk = chunk.with_step(UpsertStep::Insert);
        let columns = rows.table(chunk.table).columns_of(chunk.action).len();
        for row in chunk.singly() {
            let mut values = B::with_room(rows.entity(chunk.table), 1, columns);
            values.begin_rows(chunk.action);
            rows.write(&row, row.rows.clone(), &mut values);
            bytes = bytes.saturating_add(values.bytes());
            if bytes > most && end > range.start {
                return end;
            }
            end += 1;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use ordid_core::KeyType as _;

    use super::*;

    #[test]
    fn the_marker_rows_of_a_unit_differ_and_have_its_time() {
        let unit = Uuid::generate();
        let markers: HashSet<Uuid> = (0..100_000).map(|number| marker_of(unit, number)).collect();
        assert_eq!(markers.len(), 100_000);
        assert_eq!(marker_of(unit, 0), unit);
        assert!(
            markers
                .iter()
                .all(|it| it.as_u128() >> 80 == unit.as_u128() >> 80)
        );
        let last = Uuid::from_u128(u128::MAX);
        assert_eq!(marker_of(last, 1).as_u128(), u128::MAX << 62);
        let later = with_time(unit, time_of(unit) + 1);
        assert_eq!(later.as_u128() - unit.as_u128(), 1 << TIME);
        assert_eq!(with_time(later, time_of(unit)), unit);
    }

    #[test]
    fn the_stricter_limit_holds() {
        let mut engine = EngineProfile::POSTGRES;
        assert_eq!(ChunkLimits::rows(0).on(&engine).rows, 1);
        assert_eq!(ChunkLimits::OF_ENGINE.on(&engine), ChunkLimits::OF_ENGINE);
        engine.max_transaction_rows = Some(3_000);
        engine.max_transaction_bytes = Some(10);
        let limits = ChunkLimits::OF_ENGINE.on(&engine);
        assert_eq!((limits.rows, limits.bytes), (2_999, 10));
        let limits = ChunkLimits::rows(7).with_bytes(9).on(&engine);
        assert_eq!((limits.rows, limits.bytes), (7, 9));
    }
}
