//! The collecting half of a unit of work.

use std::{fmt, time::Duration};

use ordid_core::{
    ColumnList, EnsuredKey, Error, Fields, KeyOf, KeyType, RawKeyOf, Tracked,
    entity::{SchemeOf, Values},
    generator::Generator,
    uuid::Uuid,
};

use crate::{
    Attempt, ChunkLimits, EngineProfile, FlushPlan, Generators, Markers, Marks, OnConflict,
    Outcome, PendingRows, Progress, Registration, Retry, Row, RowSink, UnresolvedCommit,
    executor::{OF_PROCESS, ProtectedTables, statements_of},
    in_chunks::{ChunkedFlush, PlanChunk},
    spi::{RowBinder, TransactionScope},
    text::Writer,
    two_phase::Part,
};

/// What every library's unit of work keeps: rows, generators, settings, and what an earlier flush left
/// behind. An adapter wraps it in its own type, with the functions that [`work_settings!`](crate::work_settings),
/// [`work_entities!`](crate::work_entities) and their like write.
pub struct Work<B: RowSink> {
    pub(crate) rows: PendingRows<B>,
    generators: Generators,
    pub(crate) observer: Option<Box<dyn FnMut(Progress) + Send>>,
    pub(crate) retry: Retry,
    /// How long a flush may take.
    pub(crate) deadline: Option<Duration>,
    /// Which flushes write a marker row.
    pub(crate) markers: Markers,
    /// The unresolved commit of an earlier flush.
    pub(crate) unresolved: Option<UnresolvedCommit>,
    pub(crate) keeper: Keeper<B>,
    pub(crate) engine: Option<EngineProfile>,
    /// How much a transaction holds, of a unit of work that goes by several.
    pub(crate) limits: Option<ChunkLimits>,
    /// How far it is.
    pub(crate) chunked: Option<ChunkedFlush>,
    /// The part in a commit over several databases.
    pub(crate) part: Option<Part>,
    /// The ids of transactions of this shard that may be prepared, and are to be rolled back.
    pub(crate) leftovers: Vec<String>,
    /// The tables that are known to be protected.
    pub(crate) protected: &'static ProtectedTables,
}

/// Says of an entity type what [`PendingRows::rows_mut_as`] asks for.
pub type Register<B, E> = fn() -> Registration<B, RawKeyOf<E>>;

impl<B: RowBinder> Work<B> {
    /// Makes an empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says how often a flush is tried.
    pub fn set_retry(&mut self, retry: Retry) {
        self.retry = retry;
    }

    /// Says how long a flush may take.
    pub fn set_deadline(&mut self, within: Duration) {
        self.deadline = Some(within);
    }

    /// Says which flushes write a marker row.
    pub fn set_markers(&mut self, markers: Markers) {
        self.markers = markers;
    }

    /// Begins with an empty memory of tables, for tests. The memory is never freed.
    #[doc(hidden)]
    pub fn forget_tables(&mut self) {
        self.protected = Box::leak(Box::default());
    }

    /// Lets a flush write the rows by several transactions.
    pub fn set_limits(&mut self, limits: ChunkLimits) {
        self.limits = Some(limits);
    }

    /// Takes a profile in the place of the library's own.
    pub fn set_engine(&mut self, engine: EngineProfile) {
        self.engine = Some(engine);
    }

    /// Takes the generator of a key type.
    pub fn set_generator<K: KeyType>(
        &mut self,
        generator: impl Generator<Scheme = K::Scheme> + Send + Sync + 'static,
    ) {
        self.generators.insert::<K>(generator);
    }

    /// Takes a function that is called after each chunk.
    pub fn set_observer(&mut self, observer: impl FnMut(Progress) + Send + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Takes a journal.
    #[cfg(feature = "journal")]
    pub fn set_journal(&mut self, journaled: crate::Journaled<B>) {
        self.keeper.journaled = Some(journaled);
    }

    /// Adds a new entity, after assigning its key if it has none: by the generator that was given for its type, else by
    /// the process's.
    ///
    /// # Panics
    ///
    /// If the generator that was given fails, and as [`OrderedKey::ensure_key`](ordid_core::OrderedKey::ensure_key).
    #[track_caller]
    pub fn add<E>(&mut self, mut entity: E, register: Register<B, E>) -> KeyOf<E>
    where
        E: Row<B>,
        E::Field: EnsuredKey,
    {
        let key = match self.generators.ensure_key_or_generate(&mut entity) {
            Ok(key) => key,
            Err(error) => no_key(E::TABLE, &error),
        };
        self.rows_mut(register).push(entity);
        key
    }

    /// As [`add`](Self::add); a missing key is made by this generator.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`]; the entity is not added.
    pub fn add_with<E, G>(
        &mut self,
        generator: &G,
        mut entity: E,
        register: Register<B, E>,
    ) -> Result<KeyOf<E>, Error>
    where
        E: Row<B>,
        G: Generator<Scheme = SchemeOf<E>>,
    {
        let key = entity.ensure_key_with(generator)?;
        self.rows_mut(register).push(entity);
        Ok(key)
    }

    /// As [`add`](Self::add); a missing key is made by the generator that was given for its type.
    ///
    /// # Errors
    ///
    /// As [`Generators::ensure_key`]; the entity is not added.
    pub fn try_add<E: Row<B>>(
        &mut self,
        mut entity: E,
        register: Register<B, E>,
    ) -> Result<KeyOf<E>, Error> {
        let key = self.generators.ensure_key(&mut entity)?;
        self.rows_mut(register).push(entity);
        Ok(key)
    }

    /// Adds an entity whose row will be updated.
    pub fn update<E: Row<B>>(&mut self, entity: E, register: Register<B, E>) {
        self.changed();
        self.rows.update(entity, register);
    }

    /// Adds an entity of whose row these columns will be updated, and no others.
    pub fn update_columns<E: Row<B>>(
        &mut self,
        entity: E,
        columns: &impl ColumnList<E>,
        register: Register<B, E>,
    ) {
        self.changed();
        self.rows
            .update_columns(entity, columns.positions(), register);
    }

    /// Adds a row of which the columns that have changed will be updated, and returns whether there are some.
    ///
    /// # Errors
    ///
    /// As [`Tracked::into_changed`]; the row is not added.
    pub fn update_changed<E: Row<B> + Fields<Values>>(
        &mut self,
        row: Tracked<E>,
        register: Register<B, E>,
    ) -> Result<bool, Error> {
        let (row, changed) = Tracked::into_changed(row)?;
        if changed.is_empty() {
            return Ok(false);
        }
        self.update_columns(row, &changed.as_slice(), register);
        Ok(true)
    }

    /// Adds an entity whose row will be inserted, unless it is there, after assigning its key as [`add`](Self::add) does.
    ///
    /// # Panics
    ///
    /// As [`add`](Self::add).
    #[track_caller]
    pub fn upsert<E>(
        &mut self,
        mut entity: E,
        on_conflict: OnConflict<E>,
        register: Register<B, E>,
    ) -> KeyOf<E>
    where
        E: Row<B>,
        E::Field: EnsuredKey,
    {
        let key = match self.generators.ensure_key_or_generate(&mut entity) {
            Ok(key) => key,
            Err(error) => no_key(E::TABLE, &error),
        };
        self.changed();
        self.rows
            .upsert(entity, on_conflict.into_upsert(), register);
        key
    }

    /// As [`upsert`](Self::upsert); a missing key is made by the generator that was given for its type.
    ///
    /// # Errors
    ///
    /// As [`Generators::ensure_key`]; the entity is not added.
    pub fn try_upsert<E: Row<B>>(
        &mut self,
        mut entity: E,
        on_conflict: OnConflict<E>,
        register: Register<B, E>,
    ) -> Result<KeyOf<E>, Error> {
        let key = self.generators.ensure_key(&mut entity)?;
        self.changed();
        self.rows
            .upsert(entity, on_conflict.into_upsert(), register);
        Ok(key)
    }

    /// Adds an entity whose row will be deleted.
    pub fn delete<E: Row<B>>(&mut self, entity: &E, register: Register<B, E>) {
        self.changed();
        self.rows.delete(entity, register);
    }

    /// Makes room for more entities of a type.
    pub fn reserve<E: Row<B>>(&mut self, additional: usize, register: Register<B, E>) {
        // A type that comes in only now changes the plan, in which tables have numbers.
        if !self.rows.has_type::<E>() {
            self.changed();
        }
        self.rows.rows_mut_as::<E>(register).reserve(additional);
    }

    pub(crate) fn rows_mut<E: Row<B>>(&mut self, register: Register<B, E>) -> &mut Vec<E> {
        self.changed();
        self.rows.rows_mut_as(register)
    }

    fn changed(&mut self) {
        if let Some(unresolved) = &mut self.unresolved {
            unresolved.has_changed = true;
        }
        if let Some(chunked) = &mut self.chunked {
            chunked.has_changed = true;
        }
        if let Some(part) = &mut self.part {
            part.has_changed = true;
        }
    }

    /// Refuses rows of which nobody can say whether a COMMIT has written them.
    ///
    /// # Errors
    ///
    /// If the unit of work has changed since a COMMIT whose outcome is unknown.
    pub(crate) fn check_unchanged(&self) -> Result<(), Error> {
        match self.unresolved.as_ref().is_some_and(|it| it.has_changed) {
            true => Err(Self::unresolved_and_changed()),
            false => Ok(()),
        }
    }

    /// Does the same for rows that would go together with those of other shards, which were not in that COMMIT.
    ///
    /// # Errors
    ///
    /// If there was a COMMIT whose outcome is unknown.
    pub(crate) fn check_resolved(&self) -> Result<(), Error> {
        match self.unresolved {
            Some(_) => Err(Self::unresolved_and_changed()),
            None => Ok(()),
        }
    }

    /// Does the same for rows that would go into the user's transaction.
    ///
    /// # Errors
    ///
    /// If there was a COMMIT whose outcome is unknown, or a journal has the rows and would bring them back.
    pub(crate) fn check_out_of_doubt(&self) -> Result<(), Error> {
        if self.unresolved.is_some() || self.keeper.is_in_doubt() {
            return Err(Error::plan(
                "the answer to the last COMMIT was lost, so the rows may be there already: `flush` the unit of work again, which \
                 asks the database first, or look for its rows and changes and `clear` it",
            ));
        }
        match self.keeper.has_unit() {
            true => Err(Error::plan(
                "the journal has these rows of a flush that failed, and `resume` would write them once more after your COMMIT: \
                 `flush` the unit of work, or `discard` it and add the rows again",
            )),
            false => Ok(()),
        }
    }

    fn unresolved_and_changed() -> Error {
        Error::plan(
            "the answer to the last COMMIT was lost, and the unit of work has changed since: the rows that it may \
             have written cannot be told from the others; after such an error, flush again before you add, update \
             or delete; now look for its rows and changes in the database, `clear` the unit of work, and add what is \
             missing",
        )
    }

    /// Returns the rows.
    pub const fn rows(&self) -> &PendingRows<B> {
        &self.rows
    }

    /// Forgets all entities.
    pub fn clear(&mut self) {
        self.unresolved = None;
        self.chunked = None;
        self.part = None;
        self.keeper.released();
        self.rows.clear();
    }

    /// Returns what a flush would send; `engine` is that of the library.
    ///
    /// # Errors
    ///
    /// What can be known to fail without a database: see [`PendingRows::plan`].
    pub fn plan(&mut self, engine: EngineProfile) -> Result<FlushPlan, Error> {
        let engine = self.engine_for(engine)?;
        let plan = self.planned(&engine, TransactionScope::Transaction)?;
        // Each chunk of tenants has this order.
        let plan = plan.transaction(0..plan.rows());
        let writer = Writer::new(&engine);
        let mut statements = statements_of(&self.rows, writer);
        Ok(FlushPlan::of(&plan, &self.rows, &engine, &mut statements))
    }

    /// Returns the engine's profile, that of the library unless another was given.
    ///
    /// # Errors
    ///
    /// If the two differ in whether a parameter takes the values of many rows, which is the library's to say.
    pub(crate) fn engine_for(&self, library: EngineProfile) -> Result<EngineProfile, Error> {
        match self.engine {
            Some(given) if given.binds_arrays() != library.binds_arrays() => {
                Err(Error::plan(format!(
                    "the profile of {} that `with_engine` gave is not for this library, which binds its \
                     parameters as {} takes them",
                    given.name, library.name
                )))
            }
            Some(given) => Ok(given),
            None => Ok(library),
        }
    }

    /// Returns how many rows a flush would send.
    pub(crate) fn planned_rows(&mut self, engine: EngineProfile) -> Result<usize, Error> {
        let engine = self.engine_for(engine)?;
        let plan = self.planned(&engine, TransactionScope::Transaction)?;
        self.check_size(&plan, &engine, TransactionScope::Transaction)?;
        Ok(plan.rows())
    }

    /// Brings back what an earlier run left in the journal, and returns the number of rows.
    ///
    /// # Errors
    ///
    /// As [`Journaled::resume`](crate::Journaled::resume).
    #[cfg(feature = "journal")]
    pub fn resume(&mut self) -> Result<usize, Error> {
        let Some(journaled) = &mut self.keeper.journaled else {
            return Ok(0);
        };
        let rows = journaled.resume(&mut self.rows)?;
        self.chunked = journaled.chunk_under_way();
        Ok(rows)
    }

    /// Forgets all entities, and what the journal has.
    ///
    /// # Errors
    ///
    /// If the journal cannot be emptied; then the entities are still here.
    #[cfg(feature = "journal")]
    pub fn discard(&mut self) -> Result<(), Error> {
        if let Some(journaled) = &mut self.keeper.journaled {
            journaled.discard()?;
        }
        self.clear();
        Ok(())
    }
}

impl<B: RowSink> Default for Work<B> {
    fn default() -> Self {
        Self {
            rows: PendingRows::default(),
            generators: Generators::new(),
            observer: None,
            retry: Retry::DEFAULT,
            deadline: None,
            markers: Markers::default(),
            unresolved: None,
            keeper: Keeper::default(),
            engine: None,
            limits: None,
            chunked: None,
            part: None,
            leftovers: Vec::new(),
            protected: &OF_PROCESS,
        }
    }
}

impl<B: RowBinder> fmt::Debug for Work<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.fmt(f)
    }
}

/// Not in a function that is compiled for each entity type.
#[cold]
#[track_caller]
fn no_key(table: &str, error: &Error) -> ! {
    panic!("no key for a row of {table}: {error}; `try_add` returns the error")
}

/// The journal of a unit of work, if it has one.
pub(crate) struct Keeper<B: RowSink> {
    #[cfg(feature = "journal")]
    journaled: Option<crate::Journaled<B>>,
    #[cfg(not(feature = "journal"))]
    none: std::marker::PhantomData<fn(B)>,
}

impl<B: RowSink> Default for Keeper<B> {
    fn default() -> Self {
        Self {
            #[cfg(feature = "journal")]
            journaled: None,
            #[cfg(not(feature = "journal"))]
            none: std::marker::PhantomData,
        }
    }
}

#[cfg(feature = "journal")]
impl<B: RowBinder> Keeper<B> {
    /// Makes the rows durable.
    pub(crate) fn begin(
        &mut self,
        rows: &PendingRows<B>,
        marks: Marks,
        unresolved: Option<Uuid>,
    ) -> Result<Option<Attempt>, Error> {
        let journaled = self.journaled.as_mut();
        let attempt = journaled.map(|it| it.begin_after(rows, marks, unresolved));
        attempt.transpose()
    }

    /// Makes the rows durable, and that this chunk of them is sent.
    pub(crate) fn begin_chunk(
        &mut self,
        rows: &PendingRows<B>,
        chunk: &PlanChunk,
        id: Option<Uuid>,
    ) -> Result<Option<Attempt>, Error> {
        let journaled = self.journaled.as_mut();
        let attempt = journaled.map(|it| it.begin_chunk(rows, chunk, id));
        attempt.transpose()
    }

    /// Returns whether a journal has the rows, which a later run of the program would write.
    pub(crate) fn has_unit(&self) -> bool {
        self.journaled.as_ref().is_some_and(|it| it.has_unit())
    }

    /// Returns whether what the journal has may be in the database already.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.journaled.as_ref().is_some_and(|it| it.is_in_doubt())
    }

    /// Says that all chunks are committed.
    pub(crate) fn complete(&mut self) {
        if let Some(journaled) = &mut self.journaled {
            journaled.complete();
        }
    }

    /// Records durably whether the attempt writes a marker row, if this was not known when the attempt began.
    pub(crate) fn decided(&mut self, marks: bool) -> Result<(), Error> {
        match &mut self.journaled {
            Some(journaled) => journaled.decided(marks),
            None => Ok(()),
        }
    }

    /// Refuses changes that nobody could find again after a process was killed at their COMMIT.
    ///
    /// # Errors
    ///
    /// If there is a journal, and a flush whose outcome only a marker row can tell.
    pub(crate) fn check_markers(&self, needs_marker: bool) -> Result<(), Error> {
        match self.journaled.is_some() && needs_marker {
            true => Err(Error::journal(
                "a flush `without_record` has updates, upserts or deletes, or only rows whose keys others may write: if the \
                 process is killed, the next one cannot find out whether they were committed; leave `without_record` out, \
                 or the journal",
            )),
            false => Ok(()),
        }
    }

    pub(crate) fn ended(&mut self, outcome: Outcome) {
        if let Some(journaled) = &mut self.journaled {
            journaled.ended(outcome);
        }
    }

    fn released(&mut self) {
        if let Some(journaled) = &mut self.journaled {
            journaled.released();
        }
    }
}

#[cfg(not(feature = "journal"))]
impl<B: RowBinder> Keeper<B> {
    pub(crate) fn begin(
        &mut self,
        _: &PendingRows<B>,
        _: Marks,
        _: Option<Uuid>,
    ) -> Result<Option<Attempt>, Error> {
        Ok(None)
    }

    pub(crate) fn begin_chunk(
        &mut self,
        _: &PendingRows<B>,
        _: &PlanChunk,
        _: Option<Uuid>,
    ) -> Result<Option<Attempt>, Error> {
        Ok(None)
    }

    pub(crate) fn has_unit(&self) -> bool {
        false
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        false
    }

    pub(crate) fn complete(&mut self) {}

    pub(crate) fn decided(&mut self, _: bool) -> Result<(), Error> {
        Ok(())
    }

    pub(crate) fn check_markers(&self, _: bool) -> Result<(), Error> {
        Ok(())
    }

    pub(crate) fn ended(&mut self, _: Outcome) {}

    fn released(&mut self) {}
}
