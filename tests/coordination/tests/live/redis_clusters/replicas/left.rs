//! A master that is cut off keeps its clients: nothing but its answers tells them to look for another.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};

use libtest_mimic::Trial;
use ordid_core::coordination::{AsyncSegmentSource, CoordinationFailure, SegmentSource};
use ordid_harness::Server;
use ordid_redis::{Blocking, Reconnecting, RedisCounter};
use ordid_tests::{servers::Servers, trials::Outcome};
use redis::{Client, aio::MultiplexedConnection};

use super::{Pair, ask, cut_off, wait};
use crate::redis_clusters::{AT_LAST, ONE, TEN, WITHIN};
use crate::redis_connection::connect;
use crate::stores::{fails, on_own_servers};

pub(super) fn add(servers: &Servers, trials: &mut Vec<Trial>, pair: Pair) {
    let name = "replicas::a_master_that_none_confirms_is_left";
    on_own_servers(trials, servers, "redis", name, pair, unconfirmed);
    let name = "replicas::a_master_with_too_few_replicas_is_left";
    on_own_servers(trials, servers, "redis", name, pair, too_few);
}

/// Where the master is, as whoever watches over the servers says.
#[derive(Clone)]
struct Watcher(Arc<AtomicU16>);

impl Watcher {
    fn new(master: &Server) -> Self {
        Self(Arc::new(AtomicU16::new(master.port())))
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.0.load(Ordering::Relaxed))
    }

    fn tasks(&self) -> Reconnecting<MultiplexedConnection> {
        let watcher = self.clone();
        Reconnecting::new(move || {
            let url = watcher.url();
            async move { connect(&url).await }
        })
    }

    fn threads(&self) -> Blocking {
        let watcher = self.clone();
        Blocking::connecting(move || Client::open(watcher.url())?.get_connection())
    }

    /// Cuts the master off, and makes its replica the next one. The old one goes on to run.
    fn move_on(&self, master: &Server, replica: &Server) -> Outcome {
        cut_off(replica)?;
        ask::<()>(replica, &["REPLICAOF", "NO", "ONE"])?;
        wait("a master alone", || {
            let info = ask::<String>(master, &["INFO", "replication"]).ok()?;
            info.contains("connected_slaves:0").then_some(())
        });
        self.0.store(replica.port(), Ordering::Relaxed);
        Ok(())
    }
}

async fn unconfirmed([master, replica]: [Server; 2]) -> Outcome {
    let watcher = Watcher::new(&master);
    let tasks = RedisCounter::new(watcher.tasks(), "count").with_replicas(ONE, AT_LAST);
    let threads = RedisCounter::new(watcher.threads(), "count").with_replicas(ONE, AT_LAST);
    tasks.create(1).await?;
    assert_eq!(tasks.reserve(TEN).await?.first(), Some(1));
    assert_eq!(SegmentSource::reserve(&threads, TEN)?.first(), Some(11));
    watcher.move_on(&master, &replica)?;
    let next = ordid_harness::redis_replica(&replica)?;

    let (kind, words) = (
        CoordinationFailure::Unavailable,
        "0 of 1 replicas confirmed",
    );
    let refused = tasks.clone().with_replicas(ONE, WITHIN).reserve(TEN).await;
    fails(refused, kind, words);
    assert_eq!(tasks.reserve(TEN).await?.first(), Some(21));
    let refused = threads.clone().with_replicas(ONE, WITHIN);
    fails(SegmentSource::reserve(&refused, TEN), kind, words);
    assert_eq!(SegmentSource::reserve(&threads, TEN)?.first(), Some(31));
    drop(next);
    Ok(())
}

/// `min-replicas-to-write`, by which the master itself refuses.
async fn too_few([master, replica]: [Server; 2]) -> Outcome {
    let watcher = Watcher::new(&master);
    let tasks = RedisCounter::new(watcher.tasks(), "count");
    let threads = RedisCounter::new(watcher.threads(), "count");
    tasks.create(1).await?;
    ask::<()>(&master, &["CONFIG", "SET", "min-replicas-to-write", "1"])?;
    assert_eq!(tasks.reserve(TEN).await?.first(), Some(1));
    assert_eq!(SegmentSource::reserve(&threads, TEN)?.first(), Some(11));
    wait("the count of the replica", || {
        let count = ask::<u32>(&replica, &["GET", "count"]);
        (count.ok() == Some(21)).then_some(())
    });
    watcher.move_on(&master, &replica)?;

    let (kind, words) = (CoordinationFailure::Unavailable, "NOREPLICAS");
    fails(tasks.reserve(TEN).await, kind, words);
    assert_eq!(tasks.reserve(TEN).await?.first(), Some(21));
    fails(SegmentSource::reserve(&threads, TEN), kind, words);
    assert_eq!(SegmentSource::reserve(&threads, TEN)?.first(), Some(31));
    Ok(())
}
