//! How a transaction begins.

use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{Connection as _, SqlStr, Transaction};

use crate::backend::Backend;

/// A connection on which transactions begin. Dropped while one does, it has a transaction open that SQLx
/// 0.9 does not know of, and whoever uses it next writes into that: so this rolls it back, where the
/// engine's driver lets it ([`Backend::abandon`]).
pub(super) struct Beginning<'c, DB: Backend> {
    connection: &'c mut DB::Connection,
    is_under_way: AtomicBool,
}

impl<'c, DB: Backend> Beginning<'c, DB> {
    pub(super) fn on(connection: &'c mut DB::Connection) -> Self {
        Self {
            connection,
            is_under_way: AtomicBool::new(false),
        }
    }

    /// Begins a transaction, a savepoint inside another, in which constraints are checked at COMMIT if it
    /// `defers`.
    pub(super) async fn begin(
        &mut self,
        begin: Option<&'static str>,
        defers: bool,
    ) -> Result<Transaction<'_, DB>, sqlx::Error> {
        let is_savepoint = self.connection.is_in_transaction();
        self.is_under_way.store(!is_savepoint, Ordering::Relaxed);
        let begun = match begin {
            Some(begin) => self.connection.begin_with(begin).await,
            None => self.connection.begin().await,
        };
        self.is_under_way.store(false, Ordering::Relaxed);
        let mut transaction = begun?;
        if defers && let Some(defer) = DB::DEFER {
            let sql = SqlStr::from_static(defer);
            DB::execute(&mut transaction, sql, DB::Arguments::default(), true).await?;
        }
        Ok(transaction)
    }
}

impl<DB: Backend> Drop for Beginning<'_, DB> {
    fn drop(&mut self) {
        if self.is_under_way.load(Ordering::Relaxed) {
            DB::abandon(self.connection);
        }
    }
}
