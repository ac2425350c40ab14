//! The unit of work without I/O: which tables first, which rows in which statement, and what to do
//! next.
//!
//! An adapter has the database and a sink that binds values; this module has the rest. [`Batches`]
//! keeps the rows to insert, to update and to delete; [`Batches::plan`] orders tables and rows by
//! their foreign keys and cuts them into chunks; and [`Flush`] is the state machine that the adapter
//! executes step by step, sync or async; it tries again what another time may succeed ([`Retry`]), and
//! finds out what became of a COMMIT whose answer was lost. What was written, and why nothing was, is told
//! in the same words by all adapters: [`Flushed`], [`Progress`], [`FlushError`].
//!
//! # Which row goes first
//!
//! Tables go parents first, and the rows of each in the order in which its index keeps the keys.
//! Tables that refer to each other in a circle, and a table that refers to itself, are ordered row by
//! row: by the depth below the rows without a parent in the unit of work, and then by the key. Rows
//! that refer to each other in a circle are inserted with NULL in a foreign key, which is set once
//! all rows are there. What is deleted goes the other way round.
//!
//! ```text
//! insert, parents first -> fix up -> update -> unlink -> delete, children first
//! ```

mod batches;
mod columns;
#[doc(hidden)]
pub mod copy;
mod entities;
mod failure;
mod flush;
mod flush_error;
mod flush_plan;
mod flush_run;
mod generators;
mod graph;
mod journal;
mod list;
#[doc(hidden)]
pub mod observe;
mod plan;
mod report;
mod retry;
mod rows;
mod sharding;
mod table;

pub use batches::{Batches, Row, RowEnd, RowSink};
pub use columns::{ColumnMask, Columns, Take};
pub use flush::{Failure, Flush, Outcome, Step};
pub use flush_error::FlushError;
#[doc(hidden)]
pub use flush_error::{DriverError, Place, Violation};
pub use flush_plan::{FlushPlan, PlannedStatement, PlannedTable};
#[doc(hidden)]
pub use flush_run::{Doubt, FlushRun, Unflushed};
pub use generators::Generators;
pub use journal::{Attempt, Journal};
#[cfg(feature = "journal")]
pub use journal::{ColumnValues, JournalRow, Journaled};
pub use plan::{Action, Chunk, MAX_ROWS, Plan};
pub use report::{Flushed, FlushedTable, Progress, Tally};
pub use retry::Retry;
pub use sharding::Sharding;
pub use table::Table;
