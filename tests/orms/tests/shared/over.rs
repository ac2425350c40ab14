//! Flushes over connections of Diesel's own and of diesel-async's, for suites that are the same over both.

use std::{future::Future, marker::PhantomData, mem};

use diesel::connection::{LoadConnection, TransactionManager as _};
use diesel_async::{AsyncConnection, TransactionManager as _};
use ordid_diesel::{EngineProfile, Error, Flushed, UnitOfWork};
use ordid_tests::trials::Outcome;

use crate::establish::{Known, connect, connect_async};

/// A kind of connections.
pub trait Over: 'static {
    /// Their backend.
    type Backend: Known;

    /// What the names of their tests begin with.
    const PREFIX: &'static str;

    /// Whether their calls block.
    #[allow(dead_code, reason = "what only the tests of faults need")]
    const BLOCKS: bool;

    /// Flushes over connections to this address, each of which is told this first.
    fn flush(
        work: &mut UnitOfWork<Self::Backend>,
        url: String,
        setup: &'static str,
    ) -> impl Future<Output = Result<Flushed, Error>>;

    /// Flushes inside of a transaction over such a connection, behind these statements, and rolls it back.
    #[allow(dead_code, reason = "what only the tests of faults need")]
    fn flush_within(
        work: &mut UnitOfWork<Self::Backend>,
        url: String,
        setup: &'static str,
        before: &'static [&'static str],
    ) -> impl Future<Output = Result<Flushed, Error>>;

    /// Creates the table of marker rows, over such a connection.
    #[allow(dead_code, reason = "what only the tests of faults need")]
    fn create_flushes_table(url: String, setup: &'static str) -> impl Future<Output = Outcome>;

    /// Deletes the marker rows that are more than a day old, over such a connection.
    #[allow(dead_code, reason = "what only the tests of faults need")]
    fn remove_old_markers(
        url: String,
        setup: &'static str,
    ) -> impl Future<Output = Result<u64, Error>>;

    /// Finds out which engine answers over such a connection.
    #[allow(dead_code, reason = "what only the tests of faults need")]
    fn detect_engine(
        url: String,
        setup: &'static str,
    ) -> impl Future<Output = Result<EngineProfile, Error>>;
}

/// Diesel's own, which block.
pub struct Blocking<C>(PhantomData<fn() -> C>);

impl<C: LoadConnection<Backend: Known> + 'static> Over for Blocking<C> {
    type Backend = C::Backend;

    const PREFIX: &'static str = "diesel::";
    const BLOCKS: bool = true;

    async fn flush(
        work: &mut UnitOfWork<C::Backend>,
        url: String,
        setup: &'static str,
    ) -> Result<Flushed, Error> {
        let mut own = mem::take(work);
        // On a thread that may.
        let flush = tokio::task::spawn_blocking(move || {
            let outcome = own.flush_with(|| connect::<C>(&url, setup));
            (own, outcome)
        });
        let (own, outcome) = flush.await.expect("a flush does not panic");
        *work = own;
        outcome
    }

    async fn flush_within(
        work: &mut UnitOfWork<C::Backend>,
        url: String,
        setup: &'static str,
        before: &'static [&'static str],
    ) -> Result<Flushed, Error> {
        let mut own = mem::take(work);
        let flush = tokio::task::spawn_blocking(move || {
            let mut connection = connect::<C>(&url, setup).expect("the server is there");
            let begun = C::TransactionManager::begin_transaction(&mut connection);
            begun.expect("nothing is open");
            for sql in before {
                let sent = connection.batch_execute(sql);
                sent.expect("nobody holds the row");
            }
            let outcome = own.flush_in(&mut connection);
            let _ = C::TransactionManager::rollback_transaction(&mut connection);
            (own, outcome)
        });
        let (own, outcome) = flush.await.expect("a flush does not panic");
        *work = own;
        outcome
    }

    async fn create_flushes_table(url: String, setup: &'static str) -> Outcome {
        let create = tokio::task::spawn_blocking(move || -> Outcome {
            Ok(ordid_diesel::create_flushes_table(&mut connect::<C>(
                &url, setup,
            )?)?)
        });
        create.await?
    }

    async fn remove_old_markers(url: String, setup: &'static str) -> Result<u64, Error> {
        let mut connection = connect::<C>(&url, setup).expect("the server is there");
        ordid_diesel::remove_old_markers(&mut connection)
    }

    async fn detect_engine(url: String, setup: &'static str) -> Result<EngineProfile, Error> {
        let mut connection = connect::<C>(&url, setup).expect("the server is there");
        ordid_diesel::detect_engine(&mut connection)
    }
}

/// Those of diesel-async.
pub struct Awaited<C>(PhantomData<fn() -> C>);

impl<C: AsyncConnection<Backend: Known> + 'static> Over for Awaited<C> {
    type Backend = C::Backend;

    const PREFIX: &'static str = "diesel_async::";
    const BLOCKS: bool = false;

    async fn flush(
        work: &mut UnitOfWork<C::Backend>,
        url: String,
        setup: &'static str,
    ) -> Result<Flushed, Error> {
        let connect = || connect_async::<C>(&url, setup);
        work.flush_with_async(connect).await
    }

    async fn flush_within(
        work: &mut UnitOfWork<C::Backend>,
        url: String,
        setup: &'static str,
        before: &'static [&'static str],
    ) -> Result<Flushed, Error> {
        let connection = connect_async::<C>(&url, setup).await;
        let mut connection = connection.expect("the server is there");
        let begun = C::TransactionManager::begin_transaction(&mut connection).await;
        begun.expect("nothing is open");
        for sql in before {
            let sent = connection.batch_execute(sql).await;
            sent.expect("nobody holds the row");
        }
        let outcome = work.flush_in_async(&mut connection).await;
        let _ = C::TransactionManager::rollback_transaction(&mut connection).await;
        outcome
    }

    async fn create_flushes_table(url: String, setup: &'static str) -> Outcome {
        let mut connection = connect_async::<C>(&url, setup).await?;
        Ok(ordid_diesel::create_flushes_table_async(&mut connection).await?)
    }

    async fn remove_old_markers(url: String, setup: &'static str) -> Result<u64, Error> {
        let connection = connect_async::<C>(&url, setup).await;
        let mut connection = connection.expect("the server is there");
        ordid_diesel::remove_old_markers_async(&mut connection).await
    }

    async fn detect_engine(url: String, setup: &'static str) -> Result<EngineProfile, Error> {
        let connection = connect_async::<C>(&url, setup).await;
        let mut connection = connection.expect("the server is there");
        ordid_diesel::detect_engine_async(&mut connection).await
    }
}
