//! One unit of work over several servers.

use ordid_core::storage::dialect::SqlServer;
use ordid_sql::{Flushed, Sharded};
use tiberius::Client;

use crate::{
    Entity, Error, Flavour, Stream, UnitOfWork,
    unit_of_work::{Connect, Connecting, Source},
};

#[doc = ordid_sql::documentation!(sharded_parts)]
///
/// There is no two-phase commit: what must be written together belongs to one shard.
///
#[doc = ordid_sql::documentation!(sharded_parents)]
/// # Example: orders live where their customer lives
///
/// ```no_run
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_tiberius::{ShardedUnitOfWork, Sharding, Stream};
/// use tiberius::Client;
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v8_sql_server, tiberius)]
/// struct CustomerId(Uuid);
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v8_sql_server, tiberius)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// struct Order { #[ordid(key)] id: OrderId, customer: CustomerId, total: i64 }
///
/// async fn flush<S: Stream>(clients: &mut [Client<S>; 2]) -> Result<(), Box<dyn std::error::Error>> {
///     let sharding = Sharding::by_hash(2)?.route(|order: &Order| order.customer);
///     let mut work: ShardedUnitOfWork = ShardedUnitOfWork::new(sharding);
///     work.add(Order { id: OrderId::generate(), customer: CustomerId::generate(), total: 1250 })?;
///     work.flush(clients).await?;
///     Ok(())
/// }
/// ```
pub struct ShardedUnitOfWork<D: Flavour = SqlServer>(Sharded<UnitOfWork<D>>);

ordid_sql::sharded_unit_of_work! {
    impl[D: Flavour] ShardedUnitOfWork<D>, UnitOfWork<D>, Entity<D>, D::PROFILE, Error
}

impl<D: Flavour> ShardedUnitOfWork<D> {
    /// Flushes each shard into its own database as [`UnitOfWork::flush`] does: the first shard over the first client,
    /// and so on. All shards are flushed at the same time, each in its own transaction. Returns what was written for
    /// each shard. A shard without entities sends nothing.
    #[doc = ordid_sql::documentation!(sharded_errors)]
    pub async fn flush<S: Stream>(
        &mut self,
        clients: &mut [Client<S>],
    ) -> Result<Vec<Flushed>, Error> {
        self.flush_over(clients, None).await
    }

    /// Does the same as [`flush`](Self::flush), but continues over another connection if one is lost: `connect` makes a
    /// connection for the shard with the given number, and it replaces that shard's client.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush) and [`UnitOfWork::flush_with`].
    pub async fn flush_with<S, C, F>(
        &mut self,
        clients: &mut [Client<S>],
        connect: C,
    ) -> Result<Vec<Flushed>, Error>
    where
        S: Stream,
        C: Fn(usize) -> F + Send + Sync,
        F: Future<Output = tiberius::Result<Client<S>>> + Send,
    {
        let connect = |shard| -> Connecting<'_, S> { Box::pin(connect(shard)) };
        self.flush_over(clients, Some(&connect)).await
    }

    async fn flush_over<'c, S: Stream>(
        &'c mut self,
        clients: &'c mut [Client<S>],
        connect: Option<&'c (dyn Fn(usize) -> Connecting<'c, S> + Sync)>,
    ) -> Result<Vec<Flushed>, Error> {
        let clients = clients.iter_mut().enumerate();
        let sources = clients.map(|(shard, client)| {
            let connect =
                connect.map(|connect| -> Connect<'_, S> { Box::new(move || connect(shard)) });
            Source::<S, D>::new(client, connect)
        });
        Ok(self.0.flush(sources).await?)
    }
}
