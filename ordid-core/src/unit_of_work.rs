//! The unit of work without I/O: which tables first, which rows in which statement, and what to do
//! next.
//!
//! An adapter has the database and a sink that binds values; this module has the rest. [`Batches`]
//! keeps the rows to insert, to update and to delete; [`Batches::plan`] orders tables and rows by
//! their foreign keys and cuts them into chunks; and [`Flush`] is the state machine that the adapter
//! executes step by step, sync or async:
//!
//! ```text
//! Begin -> Send(chunk)* -> Commit -> Done
//!   |          |             |
//!   +----------+-- failed ---+--> Rollback -> Done
//! ```
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
mod flush;
mod generators;
mod graph;
mod plan;
mod rows;
mod sharding;
mod table;

pub use batches::{Batches, Row, RowEnd, RowSink};
pub use columns::{ColumnMask, Columns, Take};
pub use flush::{Flush, Step};
pub use generators::Generators;
pub use plan::{Action, Chunk, MAX_ROWS, Plan};
pub use sharding::Sharding;
pub use table::Table;
