//! The SQL, plans, transactions and retries of ordid, written once for all libraries.
//!
//! Applications use an adapter, such as `ordid-sqlx`; this crate is for authors of adapters. An adapter
//! implements the traits of [`spi`] for its library, and this crate has the rest:
//!
//! ```text
//! PendingRows   rows that wait for a flush: to insert, to update, to delete
//!   -> Plan     tables by their foreign keys, rows by depth and key, chunks
//!   -> Executor begin, marker row, chunks, COMMIT; retry, probe, find the row that failed
//!   -> text     the SQL of a chunk, by the engine's profile
//!   -> spi      the library's connection binds and sends it
//! ```
//!
//! # Which row goes first
//!
//! Tables go parents first, and the rows of each in the order in which its index keeps the keys.
//! Tables that refer to each other in a circle, and a table that refers to itself, are ordered row by
//! row: by the depth below the rows without a parent in the unit of work, and then by the key. Rows
//! that refer to each other in a circle are inserted with NULL in a foreign key, which is set once
//! all rows are there. Deletes go the other way round.
//!
//! ```text
//! insert, parents first -> fix up -> update -> unlink -> delete, children first
//! ```

#![forbid(unsafe_code)]

#[cfg(any(feature = "leases", feature = "mapping"))]
mod answer;
mod bulk;
mod catalog;
#[cfg(any(feature = "followers", feature = "mapping", feature = "partitions"))]
mod cause;
pub mod classify;
mod columns;
pub mod copy;
mod detect;
mod documentation;
mod entities;
mod error_macro;
mod executor;
mod flush;
mod flush_error;
mod flush_plan;
mod flush_run;
#[cfg(feature = "followers")]
pub mod follower;
#[cfg(feature = "functions")]
pub mod functions;
mod generators;
mod graph;
mod in_chunks;
mod journal;
#[cfg(feature = "leases")]
pub mod leases;
mod list;
mod lock_waits;
#[cfg(feature = "mapping")]
pub mod mapping;
mod marker;
mod not_bulk;
#[doc(hidden)]
pub mod observe;
#[cfg(feature = "partitions")]
pub mod partitions;
mod pending_rows;
mod plan;
mod profile;
mod report;
mod retry;
mod rows;
mod sharded;
mod sharding;
mod source;
pub mod spi;
mod splits;
mod sqlx_errors;
pub mod stored;
mod stored_macro;
mod table;
#[cfg(any(feature = "followers", feature = "partitions"))]
pub mod table_driver;
mod text;
mod two_phase;
mod upsert;
mod words;
mod work;
mod work_macros;

pub use columns::{ColumnMask, Columns, Take};
#[doc(hidden)]
pub use detect::detect_engine;
pub use flush::{Failure, Flush, Outcome, Step};
pub use flush_error::{DriverError, FlushError, Place, Violation};
pub use flush_plan::{FlushPlan, PlannedStatement, PlannedTable};
pub use flush_run::{FlushFailure, FlushRun, UnresolvedCommit};
pub use generators::Generators;
pub use in_chunks::ChunkLimits;
pub use journal::{Attempt, Journal, Marks};
#[cfg(feature = "journal")]
pub use journal::{ColumnValues, JournalRow, Journaled};
pub use lock_waits::LockWaits;
#[doc(hidden)]
pub use marker::{MARKER_TABLE, MARKERS_KEPT, Markers, first_marker_since, remove_old_markers};
pub use not_bulk::NotBulk;
pub use pending_rows::{PendingRows, Registration, Row, RowEnd, RowSink};
pub use plan::{Action, Chunk, MAX_ROWS, Plan, UpsertStep};
pub use profile::{EngineProfile, FlushDialect, MessageLimit, ServerFact, TreeDeletes, Updates};
pub use report::{Flushed, FlushedTable, Progress, Tally};
pub use retry::Retry;
pub use sharded::{Sharded, WrapsWork};
pub use sharding::Sharding;
pub use splits::Splits;
pub use table::{ColumnSet, Table};
pub use two_phase::TwoPhase;
pub use two_phase::recover::{OrphanDecision, PreparedOrphan, Recovered};
#[doc(hidden)]
pub use two_phase::recover::{prepared_orphans, recover_prepared};
pub(crate) use upsert::Upsert;
pub use upsert::{OnConflict, Upserted};
pub use words::StatementDialect;
pub use work::{Register, Work};

/// Lists the types that every adapter re-exports, so that applications need not depend on this crate.
pub mod for_applications {
    #[cfg(feature = "followers")]
    pub use crate::follower::{Batch, Position};
    pub use crate::{
        Action, ChunkLimits, EngineProfile, FlushError, FlushPlan, Flushed, FlushedTable, NotBulk,
        OnConflict, PlannedStatement, PlannedTable, Progress, Retry, ServerFact, Sharding,
        UpsertStep, Upserted,
    };
}
