//! What a unit of work leaves to the next run of the program.

#[cfg(feature = "journal")]
use ordid_core::unit_of_work::{self, Journal, JournalRow};
use ordid_core::unit_of_work::{Attempt, Batches, Outcome};

#[cfg(feature = "journal")]
use crate::backend::Entity;
use crate::{
    Error,
    backend::{Backend, Binder},
};

/// A [`Journal`] for [`UnitOfWork::with_journal`](super::UnitOfWork::with_journal), and the entity
/// types whose rows it keeps.
///
/// Rows go through serde, so what serde leaves out or writes with less precision is lost with the
/// process. That is found before anything is sent: each row is read back, its columns are compared,
/// and a column that differs is an error.
#[cfg(feature = "journal")]
#[derive(Debug)]
pub struct Journaled<DB: Backend>(unit_of_work::Journaled<Binder<DB>>);

#[cfg(feature = "journal")]
impl<DB: Backend> Journaled<DB> {
    /// Takes a journal, so far without types.
    pub fn new(journal: impl Journal + 'static) -> Self {
        Self(unit_of_work::Journaled::new(journal))
    }

    /// Keeps rows of this type, too. A unit of work with rows of another type is not flushed.
    #[must_use]
    pub fn row<E: Entity<DB> + JournalRow>(self) -> Self {
        Self(self.0.row_by::<E>(E::__stored_order()))
    }
}

/// The journal of a unit of work, if it has one.
pub(super) struct Keeper<DB: Backend> {
    #[cfg(feature = "journal")]
    journaled: Option<unit_of_work::Journaled<Binder<DB>>>,
    #[cfg(not(feature = "journal"))]
    none: std::marker::PhantomData<fn(DB)>,
}

#[cfg(feature = "journal")]
impl<DB: Backend> Keeper<DB> {
    pub(super) const fn new() -> Self {
        Self { journaled: None }
    }

    /// Makes the rows durable.
    pub(super) fn begin(
        &mut self,
        batches: &Batches<Binder<DB>>,
    ) -> Result<Option<Attempt>, Error> {
        let attempt = self.journaled.as_mut().map(|it| it.begin(batches));
        Ok(attempt.transpose()?)
    }

    pub(super) fn ended(&mut self, outcome: Outcome) {
        if let Some(journaled) = &mut self.journaled {
            journaled.ended(outcome);
        }
    }

    pub(super) fn released(&mut self) {
        if let Some(journaled) = &mut self.journaled {
            journaled.released();
        }
    }
}

#[cfg(not(feature = "journal"))]
impl<DB: Backend> Keeper<DB> {
    pub(super) const fn new() -> Self {
        Self {
            none: std::marker::PhantomData,
        }
    }

    pub(super) fn begin(&mut self, _: &Batches<Binder<DB>>) -> Result<Option<Attempt>, Error> {
        Ok(None)
    }

    pub(super) fn ended(&mut self, _: Outcome) {}

    pub(super) fn released(&mut self) {}
}

#[cfg(feature = "journal")]
impl<DB: Backend> super::UnitOfWork<DB> {
    /// Keeps a journal of what is flushed, so that a process killed at any moment can go on where it
    /// was: `ordid-file` has one in a file.
    ///
    /// A [`flush`](Self::flush) makes its rows durable in the journal before it sends anything, and
    /// forgets them once COMMIT is known. In the next run [`resume`](Self::resume) brings them back
    /// with the keys that they had; the flush that follows asks the database whether they are there,
    /// and sends them if not. So each row is there exactly once, whenever the process was killed.
    ///
    /// - It is for types with serde's `Serialize` and `Deserialize` that were named by
    ///   [`row`](Journaled::row); rows of another type are refused.
    /// - A flush that fails leaves its rows in the journal as in the unit of work: flush again, or
    ///   [`discard`](Self::discard) them. [`clear`](Self::clear) leaves them in the journal.
    /// - The journal is written and synced on the thread that polls the flush: some milliseconds,
    ///   depending on the disk.
    /// - [`flush_in`](Self::flush_in) does not use it: whoever commits keeps the journal.
    ///
    /// # Example: a run that did not come to its end
    ///
    #[cfg_attr(feature = "sqlite", doc = "```")]
    #[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ordid::{KeyType, OrderedKey, uuid::Uuid};
    /// use ordid_file::FlushJournal;
    /// use ordid_sqlx::{Journaled, UnitOfWork};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(KeyType)]
    /// #[ordid(scheme = uuid_v7, sqlx)]
    /// struct OrderId(Uuid);
    ///
    /// #[derive(OrderedKey, Serialize, Deserialize)]
    /// #[ordid(table = "orders")]
    /// struct Order { #[ordid(key)] id: OrderId, total: i64 }
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("orders.journal");
    /// let pool = sqlx::SqlitePool::connect("sqlite::memory:").await?;
    /// let journal = FlushJournal::open(&path)?;
    /// let mut work = UnitOfWork::new().with_journal(Journaled::new(journal).row::<Order>());
    /// let id = work.add(Order { id: OrderId::generate(), total: 1250 });
    /// work.flush(&pool).await.unwrap_err(); // there is no table yet
    /// drop(work); // and here the process ends
    ///
    /// sqlx::query("CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY, total INTEGER NOT NULL)")
    ///     .execute(&pool)
    ///     .await?;
    /// let journal = FlushJournal::open(&path)?;
    /// let mut work = UnitOfWork::new().with_journal(Journaled::new(journal).row::<Order>());
    /// assert_eq!(work.resume()?, 1);
    /// work.flush(&pool).await?;
    ///
    /// let found: OrderId = sqlx::query_scalar("SELECT id FROM orders").fetch_one(&pool).await?;
    /// assert_eq!(found, id);
    /// assert_eq!(std::fs::metadata(&path)?.len(), 0); // nothing is pending
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_journal(mut self, journaled: Journaled<DB>) -> Self {
        self.keeper.journaled = Some(journaled.0);
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
    /// Those that [`is_journal`](Error::is_journal), and nothing is brought back: the unit of work is
    /// not empty; the journal cannot be read; it has rows of a table whose type was not named or has
    /// other columns.
    pub fn resume(&mut self) -> Result<usize, Error> {
        match &mut self.keeper.journaled {
            Some(journaled) => Ok(journaled.resume(&mut self.batches)?),
            None => Ok(0),
        }
    }

    /// Forgets all entities, as [`clear`](Self::clear), and what the journal has.
    ///
    /// # Errors
    ///
    /// If the journal cannot be emptied; then the entities are still here.
    pub fn discard(&mut self) -> Result<(), Error> {
        if let Some(journaled) = &mut self.keeper.journaled {
            journaled.discard()?;
        }
        self.clear();
        Ok(())
    }
}
