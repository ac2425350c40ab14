//! A library's unit of work, as the scripts of faults know it.

use std::{fmt, future::Future, ops::Range, path::Path, time::Duration};

use ordid_sql::FlushError;
use ordid_sqlx::{EngineProfile, Flushed, Progress, Retry, UnitOfWork};
use sqlx::{MySql, Postgres, Sqlite};

use super::{Engine, Graph, PATIENCE, Remote, ended::FlushesWithin, pool};
use crate::{
    servers::{Options, Scratch},
    trials::Outcome,
};

/// A library, by its units of work for each database.
pub trait Library: 'static {
    /// For PostgreSQL.
    type Postgres: Flusher<Database = Postgres>;
    /// For MySQL and `MariaDB`.
    type MySql: FlushesWithin<Database = MySql>;
    /// For SQLite.
    type Sqlite: Flusher<Database = Sqlite>;
}

/// A database of a server that has others beside it.
pub trait Served: Remote + Scratch {}

impl<DB: Remote + Scratch> Served for DB {}

/// A library's unit of work, for rows of [`Graph`]s.
pub trait Flusher: Sized + Send + 'static {
    /// The database, as it is looked into.
    type Database: Engine;

    /// What the names of its tests begin with.
    const PREFIX: &'static str;

    /// How many rows a statement has at most.
    const CHUNK: usize = 1_000;
    /// How many rows of the tables of [`Shape::CHUNKS`](super::Shape::CHUNKS) go by a bulk command, where
    /// that is held against what a flush tells.
    const BULK: Option<[usize; 3]>;

    /// Whether its calls block, so that none of them can be given up.
    const BLOCKS: bool = false;

    /// Makes an empty one that is tried so often.
    fn begin(retry: Retry) -> Self;

    /// Writes a marker row with every flush.
    fn with_marker(self) -> Self;

    /// Gives the profile of the engine, in the place of the library's own.
    fn with_engine(self, engine: EngineProfile) -> Self;

    /// Writes no marker row with any flush.
    fn without_marker(self) -> Self;

    /// Makes the flush ask the catalog for its tables, although the process may know tables of these names in other
    /// databases.
    fn with_new_memory(self) -> Self;

    /// Gives it a journal of the rows of graphs, in a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, and from a library without journals.
    fn with_journal_in(self, _path: &Path) -> Outcome<Self> {
        Err("this library has no journals".into())
    }

    /// Takes up what is in its journal, and returns how many rows that is.
    ///
    /// # Errors
    ///
    /// If the journal cannot be read.
    fn resume(&mut self) -> Outcome<usize> {
        Err("this library has no journals".into())
    }

    /// Creates the table of marker rows, as the library does.
    fn create_flushes_table(options: &Options<Self::Database>) -> impl Future<Output = Outcome>;

    /// Deletes the marker rows that are more than a day old, as the library does.
    fn remove_old_markers(
        options: &Options<Self::Database>,
    ) -> impl Future<Output = Result<u64, Failed>>;

    /// Returns which engine the library finds behind the server's address, by its name; `None` from a library that speaks to
    /// one engine only.
    fn detect_engine(
        options: &Options<Self::Database>,
    ) -> impl Future<Output = Result<Option<&'static str>, Failed>>;

    /// Adds the rows, children first.
    fn add_graph(&mut self, graph: &Graph);

    /// Adds updates of the customers, and deletes the items.
    fn change_graph(&mut self, graph: &Graph);

    /// Returns how many rows it holds.
    fn held(&self) -> usize;

    /// Calls a function after each chunk.
    fn tell(&mut self, observer: impl FnMut(Progress) + Send + 'static);

    /// Bounds how long a flush may take.
    fn within(&mut self, deadline: Duration);

    /// Flushes over connections of its own, which are closed then, and waits so long for a server that
    /// is not there, where the library can.
    fn flush_to(
        &mut self,
        options: &Options<Self::Database>,
        patience: Duration,
    ) -> impl Future<Output = Result<Flushed, Failed>>;

    /// Makes one that holds a graph.
    fn of(graph: &Graph, retry: Retry) -> Self {
        let mut work = Self::begin(retry);
        work.add_graph(graph);
        work
    }
}

/// What a flush's error says, whichever library's it is.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "an error's predicates, as it has them"
)]
pub struct Failed {
    /// For people.
    pub message: String,
    /// Nothing was sent.
    pub is_plan: bool,
    /// Either all rows are written or none is.
    pub is_commit_unknown: bool,
    /// The server has ended the user's transaction.
    pub is_transaction_over: bool,
    /// There is no connection any more.
    pub is_connection_lost: bool,
    /// Another time may succeed.
    pub is_transient: bool,
    /// There is no table of marker rows.
    pub is_flushes_table_missing: bool,
    /// It took longer than it was given.
    pub is_timeout: bool,
    /// A value is taken.
    pub is_unique_violation: bool,
    /// A parent does not exist, or a row still has children.
    pub is_foreign_key_violation: bool,
    /// A row is not there.
    pub is_missing_row: bool,
    /// A row has changed since it was read.
    pub is_stale: bool,
    /// Which row it was.
    pub row: Box<FailedRow>,
    /// Which constraint was violated, and which column it is about.
    pub names: Box<[Option<String>; 2]>,
    /// How often it was begun anew.
    pub retries: u32,
    /// Where it happened.
    pub table: Option<String>,
    /// Which of the table's chunks.
    pub chunk: Option<usize>,
    /// Which rows are in it.
    pub rows: Option<Range<usize>>,
}

/// What a flush's error says of a row.
#[derive(Debug, Clone)]
pub struct FailedRow {
    /// Its key.
    pub key: Option<String>,
    /// With which version it was read.
    pub read_version: Option<String>,
    /// Which version it has.
    pub found_version: Option<String>,
    /// How many chunks before its own are committed, of a flush in chunks.
    pub committed_chunks: u64,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failed {}

impl From<&Self> for Failed {
    fn from(failed: &Self) -> Self {
        failed.clone()
    }
}

impl<D> From<&FlushError<D>> for Failed
where
    FlushError<D>: fmt::Display,
{
    fn from(error: &FlushError<D>) -> Self {
        Self {
            message: error.to_string(),
            is_plan: error.is_plan(),
            is_commit_unknown: error.is_commit_unknown(),
            is_transaction_over: error.is_transaction_over(),
            is_connection_lost: error.is_connection_lost(),
            is_transient: error.is_transient(),
            is_flushes_table_missing: error.is_flushes_table_missing(),
            is_timeout: error.is_timeout(),
            is_unique_violation: error.is_unique_violation(),
            is_foreign_key_violation: error.is_foreign_key_violation(),
            is_missing_row: error.is_missing_row(),
            is_stale: error.is_stale(),
            row: Box::new(FailedRow {
                key: error.key().map(str::to_owned),
                read_version: error.read_version().map(str::to_owned),
                found_version: error.found_version().map(str::to_owned),
                committed_chunks: error.committed_chunks(),
            }),
            names: Box::new([error.constraint(), error.column()].map(|it| it.map(str::to_owned))),
            retries: error.retries(),
            table: error.table().map(str::to_owned),
            chunk: error.chunk(),
            rows: error.rows(),
        }
    }
}

/// `ordid-sqlx`.
#[derive(Debug)]
pub struct Sqlx;

impl Library for Sqlx {
    type Postgres = UnitOfWork<Postgres>;
    type MySql = UnitOfWork<MySql>;
    type Sqlite = UnitOfWork<Sqlite>;
}

impl<DB: Engine> Flusher for UnitOfWork<DB> {
    type Database = DB;

    const PREFIX: &'static str = "";
    const BULK: Option<[usize; 3]> = Some(DB::COPIED);

    fn begin(retry: Retry) -> Self {
        Self::new().with_retry(retry)
    }

    fn with_marker(self) -> Self {
        self.with_record()
    }

    fn with_engine(self, engine: EngineProfile) -> Self {
        self.with_engine(engine)
    }

    fn without_marker(self) -> Self {
        self.without_record()
    }

    fn with_new_memory(self) -> Self {
        self.with_new_memory()
    }

    fn with_journal_in(self, path: &Path) -> Outcome<Self> {
        Ok(self.with_journal(DB::journaled(path)?))
    }

    fn resume(&mut self) -> Outcome<usize> {
        Ok(self.resume()?)
    }

    async fn create_flushes_table(options: &Options<DB>) -> Outcome {
        let pool = pool::<DB>(options.clone(), PATIENCE);
        let outcome = ordid_sqlx::create_flushes_table(&pool).await;
        pool.close().await;
        Ok(outcome?)
    }

    async fn remove_old_markers(options: &Options<DB>) -> Result<u64, Failed> {
        let pool = pool::<DB>(options.clone(), PATIENCE);
        let outcome = ordid_sqlx::remove_old_markers(&pool).await;
        pool.close().await;
        outcome.map_err(|error| Failed::from(&error))
    }

    async fn detect_engine(options: &Options<DB>) -> Result<Option<&'static str>, Failed> {
        let pool = pool::<DB>(options.clone(), PATIENCE);
        let outcome = ordid_sqlx::detect_engine(&pool).await;
        pool.close().await;
        let found = outcome.map(|engine| Some(engine.name));
        found.map_err(|error| Failed::from(&error))
    }

    fn add_graph(&mut self, graph: &Graph) {
        DB::add(self, graph);
    }

    fn change_graph(&mut self, graph: &Graph) {
        DB::change(self, graph);
    }

    fn held(&self) -> usize {
        self.len()
    }

    fn tell(&mut self, observer: impl FnMut(Progress) + Send + 'static) {
        self.observe(observer);
    }

    fn within(&mut self, deadline: Duration) {
        *self = std::mem::take(self).with_deadline(deadline);
    }

    async fn flush_to(
        &mut self,
        options: &Options<DB>,
        patience: Duration,
    ) -> Result<Flushed, Failed> {
        let pool = pool::<DB>(options.clone(), patience);
        let outcome = self.flush(&pool).await;
        pool.close().await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
