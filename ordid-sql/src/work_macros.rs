//! The functions that every library's unit of work has, with their documentation.

/// Writes `new` and the settings of a unit of work: a struct around a [`Work`](crate::Work). Behind an `@` it
/// leaves out `new`.
///
/// ```text
/// ordid_sql::work_settings! { impl[DB: Backend] UnitOfWork<DB>, Binder<DB> }
/// ```
#[macro_export]
macro_rules! work_settings {
    (impl[$($generics:tt)*] $work:ty, $binder:ty) => {
        impl<$($generics)*> $work {
            /// Makes an empty unit of work.
            pub fn new() -> Self {
                Self::default()
            }
        }

        $crate::work_settings! { @ impl[$($generics)*] $work, $binder }
    };
    (@ impl[$($generics:tt)*] $work:ty, $binder:ty) => {
        impl<$($generics)*> $work {
            /// Says how often a flush is tried and how long it waits in between;
            /// [`Retry::DEFAULT`](ordid_sql::Retry::DEFAULT) unless this is called.
            #[must_use]
            pub fn with_retry(mut self, retry: $crate::Retry) -> Self {
                self.0.set_retry(retry);
                self
            }

            /// Makes every flush, including one that only inserts, write a marker row to the table that
            /// [`flushes_table`](crate::flushes_table) declares.
            ///
            /// If the answer to COMMIT is lost, a flush that only inserts looks for one of its rows, and a
            /// row that somebody deleted meanwhile is inserted again. Use this where others delete rows that
            /// are so new. It costs one statement for each flush.
            ///
            /// # Rows that the database would take twice
            ///
            /// A flush that only inserts writes a marker row automatically if none of its tables would refuse the same
            /// row a second time. A table refuses it if it has a unique index over the key, alone or with other columns
            /// that are sent, and has no trigger that may replace the key: none that comes `BEFORE INSERT`, or on SQL
            /// Server none in the place of the insert. On PostgreSQL its partitions have none either, and it has no rule
            /// for `INSERT`. A table that is partitioned by a time that the database fills in
            /// does not refuse it, nor does a view, including one that is `#[ordid(uncounted)]`. The flush asks the
            /// catalog of every server for such tables, but not SQLite, which loses no COMMIT. This
            /// happens in a separate transaction before the first flush into a table, and before each flush as long as
            /// the answer is that no table is protected. If the table of marker rows is missing, such a flush fails
            /// before a row is sent, and the error has the statement that creates the table.
            ///
            /// If the catalog cannot be read, no marker row is written. The rows are still looked for after a lost
            /// COMMIT, but they are not sent again without a unique index: the outcome stays unknown until they are
            /// found. MySQL and MariaDB hide triggers from users without the privilege `TRIGGER`. If a trigger that the
            /// user cannot see replaces the key, call this function. Also call it if a trigger that comes `AFTER INSERT`
            /// deletes the row or changes its key, as one that moves rows to another table does. A temporary table of MySQL and
            /// MariaDB is in no catalog, so a flush that inserts only into such tables writes a marker row.
            ///
            /// # Rows whose keys others may write
            ///
            /// After a lost COMMIT, a row that is there with one of the keys shows that the flush was committed only if
            /// nobody else writes that key. Others may write it if it has several columns, if it is a foreign key, and if
            /// it is made of a name (`uuid_v5`, `uuid_v8_sha256`). A row of an `#[ordid(uncounted)]` entity may have been
            /// there before. A flush that inserts only such rows, such as those of a table between two others, writes a
            /// marker row automatically, on every engine. If you give a row a key that others also give it, as two imports
            /// of one file do, call this function.
            #[must_use]
            pub fn with_record(mut self) -> Self {
                self.0.set_markers($crate::Markers::All);
                self
            }

            /// Writes no marker row, even with updates, upserts and deletes. This is for databases in which the table
            /// that [`flushes_table`](crate::flushes_table) declares cannot be created.
            ///
            /// If the answer to COMMIT is lost, nothing shows whether such changes were committed. The flush ends at
            /// once with an error that [`is_commit_unknown`](crate::FlushError::is_commit_unknown): it is not tried
            /// again, since somebody else may have changed the rows meanwhile. Flushing again sends nothing and returns
            /// that error. Look for the changes in the database, then [`clear`](Self::clear) the unit of work and, if
            /// they are not there, add them again.
            ///
            /// A flush that fails before COMMIT is tried again as usual. So is a flush that only inserts, since its
            /// rows are found by their keys. Rows that [the database would take twice](Self::with_record) are looked
            /// for, but not sent again. Rows whose keys others may write are sent again, and the outcome is unknown if
            /// they are refused. A unit of work with a journal and without marker rows refuses updates, upserts, deletes,
            /// and a flush that inserts only rows whose keys others may write.
            #[must_use]
            pub fn without_record(mut self) -> Self {
                self.0.set_markers($crate::Markers::None);
                self
            }

            /// Begins with an empty memory of the tables that are protected according to the catalog. This is for tests, in which many databases
            /// have tables of the same names.
            #[doc(hidden)]
            #[must_use]
            pub fn with_new_memory(mut self) -> Self {
                self.0.forget_tables();
                self
            }

            /// Ends a flush after this time, all attempts and waits included; no limit unless this is called. Servers
            /// and networks that do not answer would otherwise hold a flush for as long as their own time-outs, which
            /// may be hours.
            ///
            /// A flush that runs out of time fails with an error of which `is_timeout` is true. Nothing was written,
            /// unless the error says that the COMMIT is unknown. If an answer is still under way, a pool's connection
            /// is closed, and your own connection is in the same state as after a flush that you drop. If the library's
            /// calls block, as in synchronous programs, the time is checked between calls. PostgreSQL, MySQL and
            /// MariaDB then get the time as the longest wait for a lock, the last two in whole seconds. Oracle has no
            /// such setting: there, a wait for a lock lasts as long as the other transaction. A call that nobody
            /// answers takes as long as its connection lasts, which libpq's `tcp_user_timeout` and `keepalives_idle`
            /// bound. `flush_in` has no limit, as the transaction is yours.
            #[must_use]
            pub fn with_deadline(mut self, within: std::time::Duration) -> Self {
                self.0.set_deadline(within);
                self
            }

            /// Lets a flush write the rows by several transactions, one after the other, for a unit of work that is too
            /// large for one: some engines limit the rows or the bytes of a transaction, and on others a large one holds
            /// locks and lets replicas fall behind.
            ///
            /// **Each chunk is written exactly once; the whole is not all or nothing.** Chunks have the order of a flush:
            /// parents first, then updates, then deletes with children first. Others see the chunks that are committed
            /// while the rest is on its way.
            ///
            /// Each chunk writes a marker row to the table that [`flushes_table`](crate::flushes_table) declares, and is
            /// retried as a flush is. If one fails for good, those before it stay committed, the error tells their number
            /// ([`committed_chunks`](crate::Error::committed_chunks)), and flushing again goes on with the one that failed.
            /// Do not add rows in between. A unit of work with a journal goes on after its process was killed, too:
            /// `resume` brings back the rows, and `flush` sends only those chunks that are not committed, also with other
            /// limits.
            ///
            /// A row of a circle that is inserted with NULL and completed by an update, or whose foreign key is set to NULL
            /// before it is deleted, may have this NULL until a later chunk. Rows of a circle that the database checks at
            /// COMMIT go in one chunk, or are refused if it does not take them.
            ///
            /// A `flush_in` writes all rows in your transaction, whatever the limits are. A marker row has
            /// the time at which its chunk was begun. Half a day later the flush does not trust any more that it is there: if
            /// an answer to a COMMIT was lost, and the unit of work is resumed days after, the flush cannot find out what
            /// became of that chunk.
            ///
            /// Fields that the database fills have what it had at the COMMIT of their row's chunk. What a later chunk changes
            /// by a trigger, or by the foreign key of a circle that it sets, is not read again.
            #[must_use]
            pub fn in_chunks(mut self, limits: $crate::ChunkLimits) -> Self {
                self.0.set_limits(limits);
                self
            }

            /// Gives the profile of the engine, in the place of the library's own: where a pooler or a proxy
            /// hides what is behind it, or for an engine that speaks another's protocol.
            #[must_use]
            pub fn with_engine(mut self, engine: $crate::EngineProfile) -> Self {
                self.0.set_engine(engine);
                self
            }

            /// Gives a generator for the keys of a type, which `add` and [`try_add`](Self::try_add) ask from now on:
            /// for schemes that take a node of your own, and for tests with a clock of their own. It stays
            /// over flushes. To share it, give an [`Arc`](std::sync::Arc) or a `&'static` of it.
            ///
            /// # Example
            ///
            /// ```
            /// use ordid::{KeyType, OrderedKey, clock::SystemClock, entropy::ThreadEntropy};
            /// use ordid::generator::{OrderedGenerator, Policy};
            /// use ordid::scheme::snowflake::SnowflakeNode;
            ///
            /// #[derive(KeyType)]
            /// #[ordid(scheme = snowflake)]
            /// struct OrderId(i64);
            ///
            /// let node = SnowflakeNode::new(7)?; // this process's alone
            /// let generator =
            ///     OrderedGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
            /// // let mut work = UnitOfWork::new().with_generator::<OrderId>(generator);
            /// // let key = work.try_add(Order { id: None, total: 1250 })?;
            /// # fn take<K: KeyType>(_: impl ordid::generator::Generator<Scheme = K::Scheme>) {}
            /// # take::<OrderId>(generator);
            /// # Ok::<(), ordid::Error>(())
            /// ```
            #[must_use]
            pub fn with_generator<K: ordid_core::KeyType>(
                mut self,
                generator: impl ordid_core::generator::Generator<Scheme = K::Scheme>
                + Send
                + Sync
                + 'static,
            ) -> Self {
                self.0.set_generator::<K>(generator);
                self
            }

            /// Calls a function for each chunk of rows that the database has accepted, for example to show a progress
            /// bar. The chunks of a bulk command, such as `COPY`, are accepted and reported when it ends. A flush that
            /// is tried again reports its rows again.
            pub fn observe(&mut self, observer: impl FnMut($crate::Progress) + Send + 'static) {
                self.0.set_observer(observer);
            }

            /// Returns the number of entities, of all types.
            pub fn len(&self) -> usize {
                self.0.rows().len()
            }

            /// Returns whether there is nothing to flush.
            pub fn is_empty(&self) -> bool {
                self.0.rows().is_empty()
            }

            /// Forgets all entities: after `flush_in`, once the transaction is committed.
            pub fn clear(&mut self) {
                self.0.clear();
            }
        }

        impl<$($generics)*> Default for $work {
            fn default() -> Self {
                Self($crate::Work::default())
            }
        }

        /// The tables and their numbers of rows.
        impl<$($generics)*> std::fmt::Debug for $work {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, f)
            }
        }

        impl<$($generics)*> $crate::WrapsWork for $work {
            type Binder = $binder;

            fn work(&self) -> &$crate::Work<$binder> {
                &self.0
            }

            fn work_mut(&mut self) -> &mut $crate::Work<$binder> {
                &mut self.0
            }
        }
    };
}

/// Writes how entities are added to a unit of work. `$entity` is the adapter's trait, with a function
/// `__register() -> Registration<$binder, RawKeyOf<Self>>`.
///
/// Most libraries take entities as they are. One that takes what can be made into an entity `E` names the type that it
/// takes and the functions that make the entity: one for new and deleted rows, one for updated rows. Such a library has
/// no `update_changed`, since its entities know which of their columns have changed.
#[macro_export]
macro_rules! work_entities {
    (impl[$($generics:tt)*] $work:ty, $entity:path) => {
        $crate::work_entities! {
            impl[$($generics)*] $work, $entity, E, &E, std::convert::identity, std::convert::identity
        }

        impl<$($generics)*> $work {
            /// Adds a row to update in the columns that have changed since it was read, and returns whether there are
            /// some. Apart from that, it does the same as [`update_columns`](Self::update_columns).
            ///
            /// # Errors
            ///
            /// Returns an error that [`is_plan`](ordid_core::Error::is_plan) if the key has changed; the row is not
            /// added then.
            pub fn update_changed<E>(
                &mut self,
                row: ordid_core::Tracked<E>,
            ) -> Result<bool, ordid_core::Error>
            where
                E: $entity + ordid_core::Fields<ordid_core::entity::Values>,
            {
                self.0.update_changed(row, <E as $entity>::__register)
            }
        }
    };
    (
        impl[$($generics:tt)*] $work:ty, $entity:path,
        $taken:ty, $deleted:ty, $into:path, $changed:path
    ) => {
        impl<$($generics)*> $work {
            /// Adds a new entity, assigns its key if it has none, and returns the key: children can refer
            /// to it at once. The order of adding does not matter.
            ///
            /// An entity whose key field is no `Option` has its key already. Where it is one, the key is made by the
            /// generator that [`with_generator`](Self::with_generator) gave for its type, else by the process's. For
            /// schemes that have none this does not compile: see [`add_with`](Self::add_with) and
            /// [`try_add`](Self::try_add).
            ///
            /// # Panics
            ///
            /// For a key that is not assigned yet: as [`KeyType::generate`](ordid_core::KeyType::generate), and if the
            /// generator that was given fails. Also if a column of a key of several columns is an integer without a value.
            /// In the last two cases [`try_add`](Self::try_add) returns an error.
            #[track_caller]
            pub fn add<E>(&mut self, entity: $taken) -> ordid_core::KeyOf<E>
            where
                E: $entity,
                <E as ordid_core::OrderedKey>::Field: ordid_core::EnsuredKey,
            {
                self.0.add($into(entity), <E as $entity>::__register)
            }

            /// As [`add`](Self::add); a missing key is made by this generator.
            ///
            /// # Errors
            ///
            /// As [`Generator::try_generate`](ordid_core::generator::Generator::try_generate); the entity is
            /// not added.
            pub fn add_with<E, G>(
                &mut self,
                generator: &G,
                entity: $taken,
            ) -> Result<ordid_core::KeyOf<E>, ordid_core::Error>
            where
                E: $entity,
                G: ordid_core::generator::Generator<Scheme = ordid_core::entity::SchemeOf<E>>,
            {
                self.0.add_with(generator, $into(entity), <E as $entity>::__register)
            }

            /// As [`add`](Self::add); a missing key is made by the generator that
            /// [`with_generator`](Self::with_generator) gave for its type.
            ///
            /// # Errors
            ///
            /// As [`Generator::try_generate`](ordid_core::generator::Generator::try_generate), and an error
            /// that [`is_plan`](ordid_core::Error::is_plan) if no generator was given; the entity is not
            /// added.
            pub fn try_add<E: $entity>(
                &mut self,
                entity: $taken,
            ) -> Result<ordid_core::KeyOf<E>, ordid_core::Error> {
                self.0.try_add($into(entity), <E as $entity>::__register)
            }

            /// Adds an entity whose row will be updated: all its columns, of SeaORM's `ActiveModel` those that
            /// are `Set`, in the row that has its key. That row must be there, otherwise nothing is written: see
            /// [`is_missing_row`](ordid_sql::FlushError::is_missing_row).
            ///
            /// The row is updated after all inserts, so it may refer to a new one. `flush` fails if the entity
            /// has no key, or if another pending change has the same key.
            pub fn update<E: $entity>(&mut self, entity: $taken) {
                self.0.update($changed(entity), <E as $entity>::__register);
            }

            /// Adds an entity whose row will be updated in these columns only: values that somebody else writes to the
            /// other columns meanwhile stay. Otherwise it does the same as [`update`](Self::update).
            ///
            /// `columns` is one column, or a tuple or an array of them, as `(Issue::title, Issue::state)` with
            /// `#[ordid(columns)]` at the struct of `Issue`. The key is none of those that are written. Rows of which
            /// the same columns are updated share statements.
            pub fn update_columns<E: $entity>(
                &mut self,
                entity: $taken,
                columns: impl ordid_core::ColumnList<E>,
            ) {
                self.0.update_columns($changed(entity), &columns, <E as $entity>::__register);
            }

            /// Adds an entity whose row is inserted, or updated if there is a row with its key: all its columns. Returns
            /// the key, which is assigned as by [`add`](Self::add).
            ///
            /// Rows are upserted after the inserts of their table and before the inserts of its children. In a table
            /// that refers to itself, and in tables that refer to each other in a circle, rows are upserted before the
            /// inserts. But if one of the upserted rows refers to a row that is inserted, all upserts of its table come
            /// after the inserts. The flush finds out which rows are there, and inserts or updates each; if another
            /// transaction inserts or deletes one of them meanwhile, the flush begins anew.
            /// [`Flushed::upserted`](ordid_sql::Flushed::upserted) says what became of each row. As with updates, the
            /// flush writes a marker row: see `with_record`. `flush_in` does not begin anew, so there a race is an
            /// error.
            ///
            /// The flush fails if the entity has a version, since an upsert would write over what nobody has read, and
            /// if another pending change has the same key.
            ///
            /// # Panics
            ///
            /// As [`add`](Self::add).
            #[track_caller]
            pub fn upsert<E>(&mut self, entity: $taken) -> ordid_core::KeyOf<E>
            where
                E: $entity,
                <E as ordid_core::OrderedKey>::Field: ordid_core::EnsuredKey,
            {
                self.upsert_with(entity, $crate::OnConflict::key())
            }

            /// Adds an entity whose row is inserted, unless there is a row with its key, which is left alone. Otherwise
            /// it is as [`upsert`](Self::upsert); an entity may have a version.
            ///
            /// # Panics
            ///
            /// As [`add`](Self::add).
            #[track_caller]
            pub fn insert_or_ignore<E>(&mut self, entity: $taken) -> ordid_core::KeyOf<E>
            where
                E: $entity,
                <E as ordid_core::OrderedKey>::Field: ordid_core::EnsuredKey,
            {
                self.upsert_with(entity, $crate::OnConflict::key().ignore())
            }

            /// As [`upsert`](Self::upsert), with other columns by which rows are found, and those that are updated: as
            /// `OnConflict::of(Person::mail).set(Person::name)`, with `#[ordid(columns)]` at the struct of `Person`.
            ///
            /// # Panics
            ///
            /// As [`add`](Self::add).
            #[track_caller]
            pub fn upsert_with<E>(
                &mut self,
                entity: $taken,
                on_conflict: $crate::OnConflict<E>,
            ) -> ordid_core::KeyOf<E>
            where
                E: $entity,
                <E as ordid_core::OrderedKey>::Field: ordid_core::EnsuredKey,
            {
                self.0.upsert($into(entity), on_conflict, <E as $entity>::__register)
            }

            /// As [`upsert_with`](Self::upsert_with); a missing key is made by the generator that
            /// [`with_generator`](Self::with_generator) gave for its type.
            ///
            /// # Errors
            ///
            /// As [`try_add`](Self::try_add); the entity is not added.
            pub fn try_upsert<E: $entity>(
                &mut self,
                entity: $taken,
                on_conflict: $crate::OnConflict<E>,
            ) -> Result<ordid_core::KeyOf<E>, ordid_core::Error> {
                self.0.try_upsert($into(entity), on_conflict, <E as $entity>::__register)
            }

            /// Adds an entity whose row will be deleted, by its key. That row must be there, otherwise
            /// nothing is written: see [`is_missing_row`](ordid_sql::FlushError::is_missing_row).
            ///
            /// Rows are deleted after all else, children before parents: only the key and the foreign keys of
            /// the entity count.
            pub fn delete<E: $entity>(&mut self, entity: $deleted) {
                let entity = $into(entity);
                self.0.delete(std::borrow::Borrow::<E>::borrow(&entity), <E as $entity>::__register);
            }

            /// Makes room for more entities of a type.
            pub fn reserve<E: $entity>(&mut self, additional: usize) {
                self.0.reserve::<E>(additional, <E as $entity>::__register);
            }

            /// Returns the entities of a type that will be inserted, in the order in which they were added.
            pub fn get<E: $entity>(&self) -> &[E] {
                self.0.rows().get()
            }
        }
    };
}

/// Writes `plan` of a unit of work whose engine is known from its type, or `[from: an argument]`.
#[macro_export]
macro_rules! work_plan {
    (impl[$($generics:tt)*] $work:ty, [$($argument:ident: $type:ty)?] $engine:expr, $error:ty) => {
        impl<$($generics)*> $work {
            /// Returns what a flush would send: the tables in their order, parents first, and the statements
            /// of each, with their text. No database is asked, and nothing is taken out.
            ///
            /// Inserts come first. Where rows refer to each other in a circle, one of them is inserted with
            /// NULL there, and [`Action::FixUp`](ordid_sql::Action::FixUp) sets it afterwards. Then come
            /// updates, and at last deletes, children first.
            ///
            /// Where the engine takes a table's rows in bulk (`COPY`, a bulk load), `flush` sends that in the
            /// place of the inserts: only the database can tell.
            ///
            /// # Errors
            ///
            /// What can be known to fail without a database: a key that was added twice, tables or rows that
            /// refer to each other in a circle that cannot be broken, a row with more columns than a statement
            /// takes. All [`is_plan`](ordid_sql::FlushError::is_plan).
            pub fn plan(&mut self $(, $argument: $type)?) -> Result<$crate::FlushPlan, $error> {
                Ok(self.0.plan($engine)?)
            }
        }
    };
    (impl[$($generics:tt)*] $work:ty, $engine:expr, $error:ty) => {
        $crate::work_plan! { impl[$($generics)*] $work, [] $engine, $error }
    };
}

/// Writes the journal of a unit of work, and `Journaled`. It is there with the feature `journal` of this crate.
#[cfg(feature = "journal")]
#[macro_export]
macro_rules! work_journal {
    (impl[$($generics:tt)*] $work:ty, $journaled:ty, $entity:path, $error:ty) => {
        impl<$($generics)*> $journaled {
            /// Takes a journal, so far without types.
            pub fn new(journal: impl $crate::Journal + 'static) -> Self {
                Self($crate::Journaled::new(journal))
            }

            /// Keeps rows of this type, too. A unit of work with rows of another type is not flushed.
            #[must_use]
            pub fn row<E: $entity + $crate::JournalRow>(self) -> Self {
                Self(self.0.row_as::<E>(<E as $entity>::__register))
            }
        }

        impl<$($generics)*> std::fmt::Debug for $journaled {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, f)
            }
        }

        impl<$($generics)*> $work {
            /// Keeps a journal of what is flushed, so that a process that was killed at any moment can go on
            /// where it was: `ordid-file` has one in a file.
            ///
            /// A flush in a transaction of its own makes its rows durable in the journal before it sends
            /// anything, and forgets them once COMMIT is known. In the next run [`resume`](Self::resume)
            /// brings them back with the keys that they had; the flush that follows asks the database
            /// whether they are there, and sends them if not. So each row is there exactly once, whenever the
            /// process was killed.
            ///
            /// - It is for types with serde's `Serialize` and `Deserialize` that were named by
            ///   [`row`](Journaled::row); rows of another type are refused.
            /// - A flush that fails leaves its rows in the journal as in the unit of work: flush again, or
            ///   [`discard`](Self::discard) them. [`clear`](Self::clear) leaves them in the journal.
            /// - The journal is written and synced on the thread that flushes: some milliseconds, depending
            ///   on the disk.
            /// - `flush_in` does not use it: whoever commits keeps the journal. It refuses rows that the journal has.
            /// - Give the unit of work the same database after a crash: the journal does not know which one it was.
            #[must_use]
            pub fn with_journal(mut self, journaled: $journaled) -> Self {
                self.0.set_journal(journaled.0);
                self
            }

            /// Brings back what an earlier run left in the journal, and returns the number of rows: 0 where it
            /// left none, and where there is no journal. Flush them before others are added.
            ///
            /// The database is asked for one of the keys whether all rows are there. A row that somebody
            /// deleted between the end of the earlier run and this one is written again.
            ///
            /// # Errors
            ///
            /// Those that [`is_journal`](ordid_sql::FlushError::is_journal), and nothing is brought back: the
            /// unit of work is not empty; the journal cannot be read; it has rows of a table whose type was
            /// not named or has other columns.
            pub fn resume(&mut self) -> Result<usize, $error> {
                Ok(self.0.resume()?)
            }

            /// Forgets all entities, as [`clear`](Self::clear), and what the journal has.
            ///
            /// # Errors
            ///
            /// If the journal cannot be emptied; then the entities are still here, and are flushed only after a `discard` that
            /// succeeds.
            pub fn discard(&mut self) -> Result<(), $error> {
                Ok(self.0.discard()?)
            }
        }
    };
}

/// Writes a unit of work over several databases: a struct around a [`Sharded`](crate::Sharded). What is optional is as
/// of [`work_plan!`](crate::work_plan) and [`work_entities!`](crate::work_entities).
#[macro_export]
macro_rules! sharded_unit_of_work {
    (
        impl[$($generics:tt)*] $sharded:ty, $work:ty, $entity:path,
        [$($argument:ident: $type:ty)?] $engine:expr, $error:ty,
        $taken:ty, $deleted:ty, $into:path, $changed:path
    ) => {
        impl<$($generics)*> $sharded {
            /// Makes an empty unit of work for as many databases as the sharding has.
            pub fn new(sharding: $crate::Sharding) -> Self {
                Self($crate::Sharded::new(sharding))
            }

            /// Gives a generator for the keys of a type: as [`UnitOfWork::with_generator`].
            #[must_use]
            pub fn with_generator<K: ordid_core::KeyType>(
                mut self,
                generator: impl ordid_core::generator::Generator<Scheme = K::Scheme>
                + Send
                + Sync
                + 'static,
            ) -> Self {
                self.0.set_generator::<K>(generator);
                self
            }

            /// Says how often and after how long each shard is tried again: as [`UnitOfWork::with_retry`].
            #[must_use]
            pub fn with_retry(mut self, retry: $crate::Retry) -> Self {
                self.0.each(|work| work.set_retry(retry));
                self
            }

            /// Lets the flush of each shard write its rows by several transactions: as [`UnitOfWork::in_chunks`].
            #[must_use]
            pub fn in_chunks(mut self, limits: $crate::ChunkLimits) -> Self {
                self.0.each(|work| work.set_limits(limits));
                self
            }

            /// Ends the flush of each shard after this time: as [`UnitOfWork::with_deadline`]. A two-phase commit has this time
            /// four times: to prepare the shards, to decide, to commit what is prepared, and to read what the database has
            /// filled.
            #[must_use]
            pub fn with_deadline(mut self, within: std::time::Duration) -> Self {
                self.0.each(|work| work.set_deadline(within));
                self
            }

            /// Makes the flush of every shard write a marker row: as [`UnitOfWork::with_record`].
            #[must_use]
            pub fn with_record(mut self) -> Self {
                self.0.each(|work| work.set_markers($crate::Markers::All));
                self
            }

            /// Writes no marker row in any shard: as [`UnitOfWork::without_record`].
            #[must_use]
            pub fn without_record(mut self) -> Self {
                self.0.each(|work| work.set_markers($crate::Markers::None));
                self
            }

            /// Gives the profile of the engine of all shards: as [`UnitOfWork::with_engine`].
            #[must_use]
            pub fn with_engine(mut self, engine: $crate::EngineProfile) -> Self {
                self.0.each(|work| work.set_engine(engine));
                self
            }

            #[doc = $crate::documentation!(two_phase_commit)]
            #[must_use]
            pub fn two_phase_commit(mut self, name: &str) -> Self {
                self.0.set_two_phase(name);
                self
            }

            /// Calls a function for each chunk of rows that a database has accepted, for example to show a progress
            /// bar. The function gets the shard's number, the chunk's table and rows, and the numbers of rows that all
            /// shards have accepted so far and have to send. A shard that is tried again reports its rows again.
            pub fn observe(&mut self, observer: impl FnMut(usize, $crate::Progress) + Send + 'static) {
                self.0.set_observer(observer);
            }

            /// Adds a new entity to its shard, after assigning its key if it has none, and returns the key: as
            /// [`UnitOfWork::add`]. One that belongs [everywhere](ordid_sql::Sharding::everywhere) is added to
            /// each shard; fields under `#[ordid(returning)]` then have the values of the shard that was committed last.
            ///
            /// # Errors
            ///
            /// As [`Sharding::shard_of`](ordid_sql::Sharding::shard_of), where it is not known which shard is
            /// the entity's; it is not added.
            ///
            /// # Panics
            ///
            /// For a key that is not assigned yet: as [`KeyType::generate`](ordid_core::KeyType::generate), and if a
            /// column of a key of several columns is an integer without a value.
            #[track_caller]
            pub fn add<E>(&mut self, entity: $taken) -> Result<ordid_core::KeyOf<E>, ordid_core::Error>
            where
                E: $entity,
                <E as ordid_core::OrderedKey>::Field: ordid_core::EnsuredKey,
            {
                self.0.add($into(entity), <E as $entity>::__register)
            }

            /// As [`add`](Self::add); a missing key is made by this generator.
            ///
            /// # Errors
            ///
            /// As [`add`](Self::add) and
            /// [`Generator::try_generate`](ordid_core::generator::Generator::try_generate).
            pub fn add_with<E, G>(
                &mut self,
                generator: &G,
                entity: $taken,
            ) -> Result<ordid_core::KeyOf<E>, ordid_core::Error>
            where
                E: $entity,
                G: ordid_core::generator::Generator<Scheme = ordid_core::entity::SchemeOf<E>>,
            {
                let mut entity = $into(entity);
                ordid_core::OrderedKey::ensure_key_with(&mut entity, generator)?;
                self.0.try_add(entity, <E as $entity>::__register)
            }

            /// As [`add`](Self::add); a missing key is made by the generator that
            /// [`with_generator`](Self::with_generator) gave for its type.
            ///
            /// # Errors
            ///
            /// As [`add`](Self::add) and [`UnitOfWork::try_add`].
            pub fn try_add<E: $entity>(
                &mut self,
                entity: $taken,
            ) -> Result<ordid_core::KeyOf<E>, ordid_core::Error> {
                self.0.try_add($into(entity), <E as $entity>::__register)
            }

            /// Adds an entity whose row will be updated: as [`UnitOfWork::update`], on the shard that the
            /// entity belongs to now, or on [all](ordid_sql::Sharding::everywhere). A row does not move: one
            /// that belongs to another shard than before is a missing row there. Delete it here and add it
            /// there, which is not atomic.
            ///
            /// # Errors
            ///
            /// As [`Sharding::shard_of`](ordid_sql::Sharding::shard_of). It is also an error if rows of the type are on all
            /// shards and have a version that is a time, of which each shard would write another one.
            pub fn update<E: $entity>(&mut self, entity: $taken) -> Result<(), ordid_core::Error> {
                self.0.update($changed(entity), <E as $entity>::__register)
            }

            /// Adds an entity of whose row these columns will be updated: as [`UnitOfWork::update_columns`], on the
            /// shard that the entity belongs to now, or on [all](ordid_sql::Sharding::everywhere).
            ///
            /// # Errors
            ///
            /// As [`update`](Self::update).
            pub fn update_columns<E: $entity>(
                &mut self,
                entity: $taken,
                columns: impl ordid_core::ColumnList<E>,
            ) -> Result<(), ordid_core::Error> {
                self.0.update_columns($changed(entity), &columns, <E as $entity>::__register)
            }

            /// Adds an entity whose row is inserted, or updated or left alone if it is there: as
            /// [`UnitOfWork::try_upsert`], on the shard that the entity belongs to, or on
            /// [all](ordid_sql::Sharding::everywhere). A row on another shard is not found.
            ///
            /// # Errors
            ///
            /// As [`add`](Self::add) and [`UnitOfWork::try_add`].
            pub fn try_upsert<E: $entity>(
                &mut self,
                entity: $taken,
                on_conflict: $crate::OnConflict<E>,
            ) -> Result<ordid_core::KeyOf<E>, ordid_core::Error> {
                self.0.try_upsert($into(entity), on_conflict, <E as $entity>::__register)
            }

            /// Adds an entity whose row will be deleted: as [`UnitOfWork::delete`], on the shard that the
            /// entity belongs to, or on [all](ordid_sql::Sharding::everywhere).
            ///
            /// # Errors
            ///
            /// As [`Sharding::shard_of`](ordid_sql::Sharding::shard_of).
            pub fn delete<E: $entity>(&mut self, entity: $deleted) -> Result<(), ordid_core::Error> {
                let entity = $into(entity);
                self.0.delete(std::borrow::Borrow::<E>::borrow(&entity), <E as $entity>::__register)
            }

            /// Returns by what rows are spread.
            pub const fn sharding(&self) -> &$crate::Sharding {
                self.0.sharding()
            }

            /// Returns the units of work of the shards: what each of them has still to be flushed.
            pub fn shards(&self) -> &[$work] {
                self.0.shards()
            }

            /// Returns the number of entities, of all types and shards; one that is everywhere counts on each.
            pub fn len(&self) -> usize {
                self.0.len()
            }

            /// Returns whether there is nothing to flush.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }

            /// Forgets all entities of all shards.
            pub fn clear(&mut self) {
                self.0.clear();
            }

            /// Returns what a flush would send to each shard: as [`UnitOfWork::plan`].
            ///
            /// # Errors
            ///
            /// As [`UnitOfWork::plan`], of the first shard that cannot be planned.
            pub fn plan(&mut self $(, $argument: $type)?) -> Result<Vec<$crate::FlushPlan>, $error> {
                Ok(self.0.plan($engine)?)
            }
        }

        /// The tables of each shard and their numbers of rows.
        impl<$($generics)*> std::fmt::Debug for $sharded {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, f)
            }
        }
    };
    (impl[$($generics:tt)*] $sharded:ty, $work:ty, $entity:path, $engine:expr, $error:ty) => {
        $crate::sharded_unit_of_work! {
            impl[$($generics)*] $sharded, $work, $entity, [] $engine, $error,
            E, &E, std::convert::identity, std::convert::identity
        }

        impl<$($generics)*> $sharded {
            /// Adds a row to update in the columns that have changed since it was read. It does the same as
            /// [`UnitOfWork::update_changed`] on the shard that the row belongs to now, or on
            /// [all](ordid_sql::Sharding::everywhere) shards.
            ///
            /// # Errors
            ///
            /// Returns the errors of [`update`](Self::update) and [`UnitOfWork::update_changed`].
            pub fn update_changed<E>(
                &mut self,
                row: ordid_core::Tracked<E>,
            ) -> Result<bool, ordid_core::Error>
            where
                E: $entity + ordid_core::Fields<ordid_core::entity::Values>,
            {
                self.0.update_changed(row, <E as $entity>::__register)
            }
        }
    };
}
