//! Flushes over connections of diesel-async.

use diesel_async::AsyncConnection;
use ordid_sql::{EngineProfile, Flushed, spi::TransactionScope};

use super::UnitOfWork;
use crate::{
    Error,
    backend::Backend,
    connection::{Awaited, Source},
};

impl<DB: Backend> UnitOfWork<DB> {
    /// As [`flush`](Self::flush), over a connection of diesel-async.
    ///
    /// # Dropping the future
    ///
    /// If the flush is dropped before COMMIT is sent, none of its rows are ever committed. The connection's
    /// transaction manager is left in error, so a pool closes the connection, and you should close it, too. If the
    /// flush is dropped later, the outcome is unknown: the next flush of the same entities, over another
    /// connection, first asks the database whether the rows are there.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush).
    pub fn flush_async<'a, C>(
        &'a mut self,
        connection: &'a mut C,
    ) -> impl Future<Output = Result<Flushed, Error>> + Send + 'a
    where
        C: AsyncConnection<Backend = DB> + 'static,
    {
        let source = Source::<Awaited, C>::one(connection);
        self.0.flush(source, TransactionScope::Transaction)
    }

    /// As [`flush_with`](Self::flush_with), over connections of diesel-async that a function makes or
    /// takes from a pool; as to dropping the future, see [`flush_async`](Self::flush_async).
    ///
    /// # Example
    ///
    /// ```no_run
    /// # async fn flush<C>(
    /// #     url: &str,
    /// #     work: &mut ordid_diesel::UnitOfWork<C::Backend>,
    /// # ) -> Result<(), ordid_diesel::Error>
    /// # where C: diesel_async::AsyncConnection<Backend: ordid_diesel::Backend> + 'static {
    /// // Likewise, of a pool, `|| pool.get()`.
    /// work.flush_with_async(|| C::establish(url)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`flush_with`](Self::flush_with).
    pub fn flush_with_async<'a, C, E, F, W>(
        &'a mut self,
        connect: F,
    ) -> impl Future<Output = Result<Flushed, Error>> + Send + 'a
    where
        C: AsyncConnection<Backend = DB> + 'static,
        E: std::error::Error + Send + Sync + 'static,
        F: FnMut() -> W + Send + 'a,
        W: Future<Output = Result<C, E>> + Send + 'a,
    {
        self.0
            .flush(Source::awaited(connect), TransactionScope::Transaction)
    }

    /// As [`flush_in`](Self::flush_in), over a connection of diesel-async. If the future is dropped, the
    /// transaction cannot be committed: see [`flush_async`](Self::flush_async).
    ///
    /// # Errors
    ///
    /// As [`flush_in`](Self::flush_in).
    pub fn flush_in_async<'a, C>(
        &'a mut self,
        connection: &'a mut C,
    ) -> impl Future<Output = Result<Flushed, Error>> + Send + 'a
    where
        C: AsyncConnection<Backend = DB> + 'static,
    {
        let source = Source::<Awaited, C>::one(connection);
        self.0.flush(source, TransactionScope::Savepoint)
    }
}

/// As [`detect_engine`](crate::detect_engine), over a connection of diesel-async.
///
/// # Errors
///
/// As [`detect_engine`](crate::detect_engine).
pub async fn detect_engine_async<C>(connection: &mut C) -> Result<EngineProfile, Error>
where
    C: AsyncConnection<Backend: Backend> + Send + 'static,
{
    let source = Source::<Awaited, C>::one(connection);
    ordid_sql::detect_engine(source).await
}
