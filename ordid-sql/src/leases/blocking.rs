//! [`SqlLease`](super::SqlLease) for libraries whose calls block.

use std::time::Duration;

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{AsyncNodeAllocator as _, Grant, LeaseTerms, NodeAllocator},
};

use super::{SqlLease as AsyncLease, StoreDriver};
use crate::spi::blocking;

/// Leases nodes from a table by calls that block: a [`NodeAllocator`] where the program has a database anyway. The
/// rest is as [`leases::SqlLease`](AsyncLease) says.
#[derive(Debug)]
pub struct SqlLease<S: StoreDriver>(AsyncLease<S>);

impl<S: StoreDriver> SqlLease<S> {
    /// The name of the table unless said otherwise.
    pub const TABLE: &'static str = AsyncLease::<S>::TABLE;

    /// As [`leases::SqlLease::new`](AsyncLease::new).
    pub fn new(database: S::Options, terms: LeaseTerms) -> Self {
        Self(AsyncLease::new(database, terms))
    }

    /// As [`leases::SqlLease::with_table`](AsyncLease::with_table).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn with_table(self, table: &str) -> Result<Self, Error> {
        self.0.with_table(table).map(Self)
    }

    /// Says how long the database may take for each answer: 5 s otherwise.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self(self.0.with_timeout(timeout))
    }

    /// As [`leases::SqlLease::create_sql`](AsyncLease::create_sql).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn create_sql(&self) -> Result<String, Error> {
        self.0.create_sql()
    }

    /// Makes the table, and a row for each node of the terms that has none: as
    /// [`create_sql`](Self::create_sql).
    ///
    /// # Errors
    ///
    /// As [`create_sql`](Self::create_sql), and what the database says.
    pub fn create(&self) -> Result<(), Error> {
        blocking(self.0.create())
    }
}

impl<S: StoreDriver> NodeAllocator for SqlLease<S> {
    fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        blocking(self.0.acquire(now, last))
    }

    fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        blocking(self.0.renew(grant, now))
    }

    fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        blocking(self.0.release(grant, last))
    }

    fn terms(&self) -> &LeaseTerms {
        self.0.terms()
    }
}
