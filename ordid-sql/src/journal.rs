//! The journal of a unit of work: what outlives the process that flushes it.
//!
//! A process can be killed at any moment of a flush, and then nobody knows whether its rows are in
//! the database. With the keys they can be looked for; so the rows with their keys are written down,
//! durably, before the flush begins, and forgotten once its COMMIT is known. The next process reads
//! them, looks whether they are there, and sends them if not: each row is there exactly once.
//!
//! Core says what a keeper of records has to promise, [`Journal`], and with the feature `journal`
//! what the records are (`Journaled`). `ordid-file` keeps them in a file.

#[cfg(feature = "journal")]
mod columns;
#[cfg(feature = "journal")]
mod journaled;
#[cfg(feature = "journal")]
mod record;

use ordid_core::{Error, uuid::Uuid};

#[cfg(feature = "journal")]
pub use self::{
    columns::ColumnValues,
    journaled::{JournalRow, Journaled},
};

/// Keeps records over the end of the process, in their order.
///
/// A record is bytes that mean nothing to the keeper. It belongs to one unit of work at a time.
///
/// # Example: a keeper for tests
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
    /// If it cannot be written; then it is not there, or not whole and never read. Make the error
    /// with [`Error::journal`].
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
    /// A record that was appended and not made durable may be missing after a crash, and then all
    /// after it are.
    ///
    /// # Errors
    ///
    /// If they cannot be read or are damaged, and the first error of `visit`, which ends it.
    fn read(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>;

    /// Forgets all records, durably.
    ///
    /// # Errors
    ///
    /// If they cannot be forgotten; then they are there, or are not.
    fn clear(&mut self) -> Result<(), Error>;
}

/// A flush that may begin now, since its rows are in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// What the unit of work is known by, in this run and those that resume it: a UUID v7.
    pub id: Uuid,
    /// Whether the rows may be in the database already, by an earlier attempt whose outcome nobody
    /// knows.
    pub in_doubt: bool,
}
