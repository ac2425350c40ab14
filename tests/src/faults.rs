//! What fault tests and the programs that they kill have in common: a graph of rows that is known
//! from its number, the databases that it goes to, the law that holds whatever happens, and the scripts
//! of the faults, which run over the unit of work of any library.
//!
//! **The law.** Of a unit of work, all rows are in the database exactly once, or none is. If the
//! flush returned `Ok`, all are; if it returned an error, none is, unless the error says that this
//! cannot be known. After an error the unit of work still holds its entities, and flushing it again
//! ends with all rows exactly once.

pub mod cluster;
pub mod commit;
pub mod cut;
pub mod deadlock;
pub mod ended;
mod engine;
mod flusher;
mod graph;
pub mod journal;
pub mod kill;
pub mod language;
pub mod limits;
pub mod markers;
pub mod memory;
pub mod refused;
pub mod restart;
pub mod settings;
pub mod standby;
mod tally;
mod trials;
pub mod truth;

use std::time::{Duration, Instant};

use ordid_sqlx::{Flushed, Retry, UnitOfWork};
use sqlx::{Connection, Database, Pool, pool::PoolOptions};

use crate::{servers::Options, trials::Outcome};
pub use engine::{Engine, Remote};
pub use flusher::{Failed, FailedRow, Flusher, Library, Served, Sqlx};
use graph::CHANGED;
pub use graph::{Customer, Graph, HowChanged, Item, Order, Shape};
pub use kill::Changes;
pub use tally::Tally;
use trials::on_both;
pub use trials::{on_file, on_own_server, on_server, times};

/// How long a pool waits for a server: longer than one takes to come back.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What is in the database of a unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// All rows, each once.
    All,
    /// No row.
    None,
}

/// A database that a test has to itself.
#[derive(Debug)]
pub struct Site<DB: Database> {
    options: Options<DB>,
}

impl<DB: Engine> Site<DB> {
    /// Makes the tables in an empty database.
    ///
    /// # Errors
    ///
    /// The database's.
    pub async fn create(options: Options<DB>) -> Outcome<Self> {
        let site = Self { options };
        for sql in DB::tables() {
            site.execute(&sql).await?;
        }
        Ok(site)
    }

    /// Finds the tables that were made before.
    pub fn open(options: Options<DB>) -> Self {
        Self { options }
    }

    /// Returns how to connect.
    pub fn options(&self) -> &Options<DB> {
        &self.options
    }

    /// Makes a pool.
    pub fn pool(&self) -> Pool<DB> {
        pool::<DB>(self.options.clone(), PATIENCE)
    }

    /// Executes a statement over a connection of its own.
    ///
    /// # Errors
    ///
    /// The database's.
    pub async fn execute(&self, sql: &str) -> Result<(), sqlx::Error> {
        let mut connection = DB::Connection::connect_with(&self.options).await?;
        DB::execute_sql(&mut connection, sql).await?;
        // MySQL closes its end at once, and a farewell of TLS may not reach it.
        let _ = connection.close().await;
        Ok(())
    }

    /// Returns the first column of what a query finds, over a connection of its own.
    ///
    /// # Errors
    ///
    /// The database's.
    pub async fn numbers(&self, sql: &str) -> Result<Vec<i64>, sqlx::Error> {
        let mut connection = DB::Connection::connect_with(&self.options).await?;
        let numbers = DB::numbers(&mut connection, sql).await?;
        let _ = connection.close().await;
        Ok(numbers)
    }

    /// Waits until the server has noticed which of its clients are gone: until then, what they sent
    /// may still be executed.
    ///
    /// # Errors
    ///
    /// The database's, and sessions that stay.
    pub async fn settle(&self) -> Outcome {
        let Some(sessions) = DB::SESSIONS else {
            return Ok(());
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.numbers(sessions).await? != [0] {
            if Instant::now() > deadline {
                return Err("sessions of clients that are gone stay".into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// Looks for a unit of work over a fresh connection, in one statement: a COMMIT that takes effect meanwhile is
    /// seen in all tables or in none.
    ///
    /// # Errors
    ///
    /// The database's, and a unit of work of which some rows are there and others not, or a row is
    /// there twice: the law is broken.
    pub async fn look(&self, graph: &Graph) -> Outcome<Found> {
        const TABLE: i64 = 1_000_000_000;
        let (unit, tables) = (graph.unit, graph.rows());
        let selects = (0_i64..).zip(tables).map(|(number, (table, _))| {
            format!("SELECT {number} AS number, id, position FROM {table} WHERE unit = {unit}")
        });
        let selects = selects.collect::<Vec<_>>().join(" UNION ALL ");
        let sql = format!(
            "SELECT number * {TABLE} + position FROM ({selects}) AS found ORDER BY number, id"
        );
        let positions = self.numbers(&sql).await?;
        let mut found = Vec::new();
        for (number, (table, rows)) in (0_i64..).zip(tables) {
            let first = number * TABLE;
            let of_table = |position: &i64| (first..first + TABLE).contains(position);
            let positions: Vec<i64> = positions.iter().copied().filter(of_table).collect();
            found.push(if positions.is_empty() {
                Found::None
            } else if positions.iter().copied().eq(first..first + rows) {
                Found::All
            } else {
                return Err(format!(
                    "{} rows of {rows} are in {table}, from {:?}",
                    positions.len(),
                    positions.first().map(|position| position - first)
                )
                .into());
            });
        }
        if found.iter().any(|it| *it != found[0]) {
            return Err(format!("some tables have the rows and others not: {found:?}").into());
        }
        Ok(found[0])
    }

    /// Looks for a unit of work that inserts rows, updates customers of older ones and deletes their
    /// items, as [`Engine::change`] does.
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look).
    pub async fn look_for_changes(&self, new: &Graph, old: &Graph) -> Outcome<Found> {
        let unit = old.unit;
        let count = |table: &str| format!("SELECT COUNT(*) FROM {table} WHERE unit = {unit}");
        let customers = format!("{} AND bucket = {CHANGED}", count("customers"));
        let [customers, items] = [customers, count("items")].map(|sql| async move {
            let counts = self.numbers(&sql).await?;
            Outcome::Ok(usize::try_from(counts[0])?)
        });
        let found = (customers.await?, items.await?, self.look(new).await?);
        if found == (old.customers.len(), 0, Found::All) {
            Ok(Found::All)
        } else if found == (0, old.items.len(), Found::None) {
            Ok(Found::None)
        } else {
            Err(format!("some is changed and some is not: {found:?}").into())
        }
    }

    /// Returns a unit of work that holds the graph, and is tried so often.
    pub fn work(&self, graph: &Graph, retry: Retry) -> UnitOfWork<DB> {
        let mut work = UnitOfWork::new().with_retry(retry);
        DB::add(&mut work, graph);
        work
    }

    /// Holds what a flush returned against what is in the database.
    ///
    /// # Errors
    ///
    /// The law is broken.
    pub async fn judge<W, E>(
        &self,
        graph: &Graph,
        work: &W,
        outcome: &Result<Flushed, E>,
    ) -> Outcome<Found>
    where
        W: Flusher<Database = DB>,
        for<'e> Failed: From<&'e E>,
    {
        self.settle().await?;
        let found = self.look(graph).await?;
        let held = work.held();
        let outcome = outcome.as_ref().map_err(Failed::from);
        let right = match &outcome {
            Ok(flushed) => found == Found::All && flushed.rows() == graph.len() && held == 0,
            Err(error) => {
                let says = |what| error.message.contains(what);
                let known = if error.is_commit_unknown {
                    says("either all rows are written or none is")
                } else {
                    found == Found::None
                        && (says("nothing was written") || says("nothing was sent"))
                };
                known && held == graph.len()
            }
        };
        if right {
            Ok(found)
        } else {
            Err(format!("{found:?} while {held} are held, and: {outcome:?}").into())
        }
    }

    /// Flushes the same unit of work once more after an error, without a fault, and demands all rows
    /// exactly once.
    ///
    /// # Errors
    ///
    /// The law is broken.
    pub async fn flush_again<W>(&self, graph: &Graph, work: &mut W) -> Outcome
    where
        W: Flusher<Database = DB>,
    {
        let outcome = work.flush_to(&self.options, PATIENCE).await;
        match self.judge(graph, work, &outcome).await? {
            Found::All => Ok(()),
            Found::None => Err(format!("again: {outcome:?}").into()),
        }
    }

    /// Flushes the same rows as a program does that has begun anew and does not know what became of
    /// them: rows that are there are refused.
    ///
    /// # Errors
    ///
    /// The law is broken.
    pub async fn flush_anew<W>(&self, graph: &Graph, found: Found) -> Outcome
    where
        W: Flusher<Database = DB>,
    {
        let mut work = W::of(graph, Retry::NONE);
        let outcome = work.flush_to(&self.options, PATIENCE).await;
        let right = match (&outcome, found) {
            (Ok(_), Found::None) => true,
            (Err(error), Found::All) => error.is_unique_violation && !error.is_commit_unknown,
            _ => false,
        };
        match self.look(graph).await? {
            Found::All if right => Ok(()),
            after => Err(format!("{found:?}, then {after:?} and {outcome:?}").into()),
        }
    }
}

/// Makes a pool that waits so long for a server that is not there.
pub fn pool<DB: Engine>(options: Options<DB>, patience: Duration) -> Pool<DB> {
    PoolOptions::new()
        .max_connections(2)
        .acquire_timeout(patience)
        .connect_lazy_with(options)
}
