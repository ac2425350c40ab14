//! Flushes over connections of Diesel's own and of diesel-async's, for suites that are the same over both.

use std::{future::Future, marker::PhantomData, mem};

use diesel::connection::LoadConnection;
use diesel_async::AsyncConnection;
use ordid_diesel::{Error, Flushed, UnitOfWork};

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
}
