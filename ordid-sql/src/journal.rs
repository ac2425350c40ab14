//! The journal of a unit of work, which outlives the process that flushes it.
//!
//! A process can be killed at any moment of a flush, and then nobody knows whether its rows are in
//! the database. Their keys can be looked up. So the rows and their keys are written to the journal,
//! durably, before the flush begins, and removed once the outcome of its COMMIT is known. The next
//! process reads the journal, probes for the rows, and sends them if they are missing: each row is
//! written exactly once.
//!
//! [`Journal`] says what a store of records has to guarantee. The feature `journal` adds the records
//! themselves (`Journaled`). `ordid-file` stores them in a file.

#[cfg(feature = "journal")]
mod columns;
#[cfg(feature = "journal")]
mod journaled;
#[cfg(feature = "journal")]
mod record;
#[cfg(feature = "journal")]
mod rows;

use ordid_core::{Error, uuid::Uuid};

#[cfg(feature = "journal")]
pub use self::{
    columns::ColumnValues,
    journaled::{JournalRow, Journaled},
};

/// Stores records in order, beyond the end of the process.
///
/// A record is bytes that the journal does not interpret. A journal belongs to one unit of work at a
/// time.
///
/// # Example: a journal for tests
///
/// ```
/// use ordid_core::Error;
/// use ordid_sql::Journal;
///
/// #[derive(Default)]
/// struct InMemory(Vec<Vec<u8>>);
///
/// impl Journal for InMemory {
///     fn append(&mut self, record: &[u8]) -> Result<(), Error> {
///         self.0.push(record.to_vec());
///         Ok(())
///     }
///
///     fn sync(&mut self) -> Result<(), Error> {
///         Ok(())
///     }
///
///     fn read(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
///         self.0.iter().try_for_each(|record| visit(record))
///     }
///
///     fn clear(&mut self) -> Result<(), Error> {
///         self.0.clear();
///         Ok(())
///     }
/// }
///
/// let mut journal = InMemory::default();
/// journal.append(b"rows")?;
/// journal.sync()?;
/// let mut found = Vec::new();
/// journal.read(&mut |record| Ok(found.push(record.to_vec())))?;
/// assert_eq!(found, [b"rows"]);
/// journal.clear()?;
/// # Ok::<(), Error>(())
/// ```
pub trait Journal: Send {
    /// Appends a record. It need not be durable before [`sync`](Self::sync).
    ///
    /// # Errors
    ///
    /// If the record cannot be written. It is then missing, or incomplete and never read. Make the
    /// error with [`Error::journal`].
    fn append(&mut self, record: &[u8]) -> Result<(), Error>;

    /// Makes all records durable: when this returns, a crash of process or machine does not undo
    /// them.
    ///
    /// # Errors
    ///
    /// If they cannot be made durable.
    fn sync(&mut self) -> Result<(), Error>;

    /// Shows all records in the order in which they were appended, those of earlier runs too.
    ///
    /// After a crash, a record that was appended but not made durable may be missing. All records
    /// after it are missing then, too.
    ///
    /// # Errors
    ///
    /// If the records cannot be read or are damaged. The first error of `visit` ends the reading and
    /// is returned.
    fn read(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>;

    /// Removes all records, durably.
    ///
    /// # Errors
    ///
    /// If they cannot be removed. They may or may not be there then.
    fn clear(&mut self) -> Result<(), Error>;
}

/// A flush that may begin now because its rows are in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// The id of the unit of work, in this run and in those that resume it: a UUID v7.
    pub id: Uuid,
    /// Whether the rows may be in the database already, because the outcome of an earlier attempt is
    /// unknown.
    pub in_doubt: bool,
    /// Whether such an attempt only inserted rows, but wrote a marker row, too.
    pub is_marked: bool,
}

/// Whether an attempt writes a marker row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// The attempt writes none.
    No,
    /// The attempt writes one.
    Yes,
    /// The database is asked first, and no rows are sent before its answer.
    NotKnownYet,
}
