//! Rows in chunks while nodes are killed, and while other nodes abort their transactions.

use std::{thread, time::Duration};

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::{ChunkLimits, UnitOfWork};
use sqlx::{Executor as _, MySqlPool, mysql::MySqlPoolOptions};

use super::{EAGER, Flushed, Kind, MySql, Nodes, Outcome, kill_at_once, times};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
struct DepotId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
struct CrateId(Uuid);

#[derive(OrderedKey, Clone)]
#[ordid(table = "depots")]
struct Depot {
    id: DepotId,
    label: i64,
}

#[derive(OrderedKey)]
#[ordid(table = "crates")]
struct Crate {
    id: CrateId,
    #[ordid(parent)]
    depot: DepotId,
    weight: i64,
}

const SCHEMA: [&str; 2] = [
    "CREATE TABLE depots (id BINARY(16) PRIMARY KEY, label BIGINT NOT NULL)",
    "CREATE TABLE crates (id BINARY(16) PRIMARY KEY, depot BINARY(16) NOT NULL, weight BIGINT NOT NULL, \
     FOREIGN KEY (depot) REFERENCES depots (id))",
];

const CRATES: usize = 3_000;

/// The rows of a chunk: a statement takes no more.
const LIMITS: ChunkLimits = ChunkLimits::rows(400);

/// The first node's pool, with the tables and the depots, which are there on each node.
async fn begin(nodes: &Nodes<'_>) -> Outcome<(MySqlPool, Vec<Depot>)> {
    let pool = MySqlPool::connect_lazy_with(nodes.sites[0].options().clone());
    for sql in ["DROP TABLE IF EXISTS crates, depots"]
        .iter()
        .chain(&SCHEMA)
    {
        pool.execute(*sql).await?;
    }
    let mut work = UnitOfWork::<MySql>::new();
    let depots = (0..20).map(|label| Depot {
        id: DepotId::generate(),
        label,
    });
    let depots: Vec<_> = depots.collect();
    depots.iter().for_each(|depot| {
        work.add(depot.clone());
    });
    work.flush(&pool).await?;
    nodes.agree().await?;
    Ok((pool, depots))
}

/// Crates of new keys, and an update of each depot.
fn work(nodes: &Nodes<'_>, depots: &[Depot]) -> UnitOfWork<MySql> {
    let mut work = UnitOfWork::<MySql>::new()
        .with_engine(nodes.kind.profile())
        .with_retry(EAGER.with_attempts(20))
        .in_chunks(LIMITS);
    for (depot, weight) in depots.iter().cycle().zip(0..).take(CRATES) {
        work.add(Crate {
            id: CrateId::generate(),
            depot: depot.id,
            weight,
        });
    }
    for depot in depots {
        let label = depot.label + 100;
        work.update(Depot { label, ..*depot });
    }
    work
}

/// Each node has each row once, and each depot was changed once.
async fn is_whole(nodes: &Nodes<'_>, flushed: &Flushed) -> Outcome {
    assert_eq!((flushed.rows(), flushed.updated()), (CRATES, 20));
    nodes.agree().await?;
    for site in &nodes.sites {
        let found = site
            .numbers(
                "SELECT COUNT(*) FROM crates UNION ALL SELECT COUNT(DISTINCT weight) FROM crates UNION ALL \
                 SELECT CAST(SUM(label) AS SIGNED) FROM depots",
            )
            .await?;
        assert_eq!(found, [3_000, 3_000, 190 + 20 * 100]);
    }
    Ok(())
}

/// Calls this once, after so many rows of the unit of work.
fn after(work: &mut UnitOfWork<MySql>, rows: usize, mut fault: impl FnMut() + Send + 'static) {
    let mut is_over = false;
    work.observe(move |progress| {
        if !is_over && progress.done >= rows {
            is_over = true;
            fault();
        }
    });
}

/// The node is killed in the midst of the chunks, or at the COMMIT of one. The flush goes on with another node.
pub(super) async fn killed(mut nodes: Nodes<'_>) -> Outcome {
    for (number, delay) in (0..times(2, 20)).zip([0, 2, 5, 1, 3].into_iter().cycle()) {
        let (pool, depots) = begin(&nodes).await?;
        let mut work = work(&nodes, &depots);
        let pid = nodes.servers.as_ref().ok_or("it runs")?[2].pid()?;
        let kill = move || {
            let killing = thread::spawn(move || {
                thread::sleep(Duration::from_millis(delay));
                kill_at_once(pid).expect("the node runs");
            });
            if delay == 0 {
                killing.join().expect("killed");
            }
        };
        after(&mut work, 800 + 400 * (usize::try_from(number)? % 4), kill);
        let proxy = nodes.proxy(&[2, 0, 1, 0, 1, 0, 1, 0]).await?;
        let through = MySqlPoolOptions::new().connect_lazy_with(nodes.through(&proxy));
        let flushed = work.flush(&through).await?;
        assert!(delay > 0 || flushed.retries > 0, "{flushed:?}");
        nodes.wait_for_members(0, 2).await?;
        if let Some([.., third]) = &mut *nodes.servers {
            // It has ended by itself; `kill` also waits for that.
            let _ = third.kill();
            third.restart()?;
        }
        nodes.wait_for_members(2, 3).await?;
        is_whole(&nodes, &flushed).await?;
        pool.close().await;
    }
    Ok(())
}

/// Another node commits an update of rows that a chunk has changed: the chunk is aborted, and those before it stay.
pub(super) async fn aborted(nodes: Nodes<'_>) -> Outcome {
    let (pool, depots) = begin(&nodes).await?;
    let mut work = work(&nodes, &depots);
    let [there, here] = [1, 0].map(|node| nodes.sites[node].options().clone());
    let kind = nodes.kind;
    // Updates go last. When they were accepted, their chunk is not committed.
    after(&mut work, CRATES + 1, move || {
        let (there, here) = (there.clone(), here.clone());
        let other = thread::spawn(move || conflict(kind, &there, &here));
        other
            .join()
            .expect("not panicked")
            .expect("it is committed");
    });
    let flushed = work.flush(&pool).await?;
    assert!(flushed.retries > 0, "nothing was aborted: {flushed:?}");
    is_whole(&nodes, &flushed).await?;
    let markers = nodes.sites[0]
        .numbers("SELECT COUNT(*) FROM ordid_flushes")
        .await?;
    assert!(markers[0] >= 8, "{markers:?} chunks");
    pool.close().await;
    Ok(())
}

/// Changes each depot and changes it back on a node, and returns when another one has aborted who was in the way.
fn conflict(kind: Kind, there: &super::Options<MySql>, here: &super::Options<MySql>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let there = super::Site::<MySql>::open(there.clone());
        there.execute("UPDATE depots SET label = label + 1").await?;
        there.execute("UPDATE depots SET label = label - 1").await?;
        let here = super::Site::<MySql>::open(here.clone());
        let waits = format!("{}; SELECT COUNT(*) FROM depots", kind.waits());
        Ok(here.execute(&waits).await?)
    })
}
