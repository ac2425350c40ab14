//! Many who map the same UUIDs at once.

use std::time::Duration;

use libtest_mimic::Trial;
use ordid::uuid::Uuid;
use ordid_sql::mapping::Entry;
use ordid_sqlx::MappingTable;
use ordid_tests::{
    servers::Servers,
    trials::{Outcome, on_scratch, run},
};
use sqlx::{MySql, Pool, Postgres, Sqlite};

use super::{Engine, ids, in_file, pool_of, uuids};

const UUIDS: usize = 20_000;
/// Steps through the UUIDs, one for each connection: each meets them all, in an order of its own.
const STEPS: [usize; 8] = [1, 3, 7, 9, 11, 13, 17, 19_999];

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    on_scratch::<Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "mapping_a_snapshot_does_not_hide_a_row",
        postgres_with_a_snapshot,
    );
    let deadlock = "mapping_a_deadlock_is_survived";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", deadlock, postgres_deadlock);
    // MySQL has another way to count them.
    on_scratch::<MySql, _, _>(trials, servers, "mariadb", deadlock, mariadb_deadlock);
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(
            trials,
            servers,
            server,
            "mapping_a_snapshot_does_not_hide_a_row",
            mysql_with_a_snapshot,
        );
    }
    trials.push(Trial::test(
        "sqlite::mapping_a_snapshot_does_not_hide_a_row",
        || run(async || in_file(sqlite_with_a_snapshot).await),
    ));
}

pub async fn eight_connections_agree<E: Engine>(pool: Pool<E>) -> Outcome {
    let pool = pool_of(&pool, 8).await?;
    let table = MappingTable::<E>::new("together")?.with_retry(E::RETRY);
    table.create(&pool).await?;
    let given = uuids(1, u128::try_from(UUIDS)?);
    let calls = STEPS.map(|step| {
        let (pool, table) = (pool.clone(), table.clone());
        let order: Vec<usize> = (0..UUIDS).map(|n| n * step % UUIDS).collect();
        let mine: Vec<Uuid> = order.iter().map(|&at| given[at]).collect();
        tokio::spawn(async move {
            // Half of them want to know which are new, and some come in pieces.
            let exact = step % 4 == 3;
            let mut found = vec![0; UUIDS];
            let mut new = 0;
            let piece = if step > 10 { 3_000 } else { UUIDS };
            for (uuids, order) in mine.chunks(piece).zip(order.chunks(piece)) {
                let ids: Vec<i64> = if exact {
                    let mappings = table.insert_many(&pool, uuids).await?;
                    new += mappings.iter().filter(|mapping| mapping.is_new).count();
                    mappings.iter().map(|mapping| mapping.id).collect()
                } else {
                    table.insert_or_get_many(&pool, uuids).await?
                };
                order.iter().zip(ids).for_each(|(&at, id)| found[at] = id);
            }
            Ok::<_, ordid_sqlx::MappingError>((found, new))
        })
    });
    let mut all = Vec::new();
    let mut new = 0;
    for call in calls {
        let (found, more) = call.await??;
        new += more;
        all.push(found);
    }
    assert!(all.iter().all(|found| *found == all[0]));
    let mut distinct = all.swap_remove(0);
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), UUIDS);
    let (_, highest, rows) = ids(&pool, "together").await?;
    assert_eq!(rows, i64::try_from(UUIDS)?);
    assert!(new <= UUIDS);
    println!("eight_connections_agree: {} ids lost", highest - rows);

    // All of them say which are new: each UUID is of one of them.
    let fresh = uuids(1_000_000, 4_000);
    let calls = STEPS.map(|step| {
        let (pool, table) = (pool.clone(), table.clone());
        let mine: Vec<Uuid> = (0..4_000).map(|n| fresh[n * step % 4_000]).collect();
        tokio::spawn(async move { table.insert_many(&pool, &mine).await })
    });
    let mut new = 0;
    for call in calls {
        new += call.await??.iter().filter(|mapping| mapping.is_new).count();
    }
    assert_eq!(new, 4_000);

    // And one by one.
    let calls = STEPS.map(|_| {
        let (pool, table) = (pool.clone(), table.clone());
        tokio::spawn(async move {
            let mut new = 0;
            for uuid in uuids(2_000_000, 100) {
                new += usize::from(table.insert(&pool, uuid).await?.is_new);
                table.insert_or_get(&pool, uuid).await?;
            }
            Ok::<_, ordid_sqlx::MappingError>(new)
        })
    });
    let mut new = 0;
    for call in calls {
        new += call.await??;
    }
    assert_eq!(new, 100);
    pool.close().await;
    Ok(())
}

/// One inserts upwards, another has the second and wants the first: one of them has to give way, and the
/// call over a pool goes on by itself. (SQLite has one writer at a time, so nobody waits in a circle.)
///
/// `deadlocks` counts them, and `waiting` those who wait for a lock.
async fn a_deadlock_is_survived<E: Engine>(
    pool: Pool<E>,
    deadlocks: &str,
    waiting: &str,
) -> Outcome {
    let before = E::number(&pool, deadlocks).await?;
    let table = MappingTable::<E>::new("deadlock")?;
    table.create(&pool).await?;
    let mut pair = uuids(5, 2);
    pair.sort_by_key(|uuid| Entry::new(*uuid));
    let [low, high] = pair[..] else {
        unreachable!()
    };

    let mut mine = pool.begin().await?;
    assert!(table.insert(&mut mine, high).await?.is_new);
    let call = {
        let (pool, table) = (pool.clone(), table.clone());
        tokio::spawn(async move { table.insert_or_get_many(&pool, &[low, high]).await })
    };
    while E::number(&pool, waiting).await? == 0 {
        assert!(!call.is_finished(), "it waits for the row");
        // InnoDB does not write `innodb_trx` anew for those who read it more often than each 100 ms.
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    match table.insert(&mut mine, low).await {
        Ok(_) => mine.commit().await?,
        Err(error) => {
            assert!(error.is_transient(), "{error}");
            mine.rollback().await?;
        }
    }
    let ids_of = call.await??;
    assert_eq!(ids(&pool, "deadlock").await?.2, 2);
    assert_eq!(table.insert_or_get_many(&pool, &[low, high]).await?, ids_of);
    // The server tells a little later.
    for _ in 0..100 {
        if E::number(&pool, deadlocks).await? > before {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err("there was no deadlock".into())
}

async fn postgres_deadlock(pool: Pool<Postgres>) -> Outcome {
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    a_deadlock_is_survived(pool, deadlocks, waiting).await
}

async fn mariadb_deadlock(pool: Pool<MySql>) -> Outcome {
    let deadlocks = "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status \
                     WHERE variable_name = 'Innodb_deadlocks'";
    let waiting = "SELECT count(*) FROM information_schema.innodb_trx JOIN information_schema.processlist \
                   ON id = trx_mysql_thread_id WHERE trx_state = 'LOCK WAIT' AND db = DATABASE()";
    a_deadlock_is_survived(pool, deadlocks, waiting).await
}

/// Takes a snapshot, lets another connection map a UUID, and maps it in the snapshot.
macro_rules! behind_a_snapshot {
    ($database:ident, $begin:literal, $pool:ident) => {{
        let table = MappingTable::<$database>::new("snapshots")?;
        table.create(&$pool).await?;
        let [old, new] = uuids(3, 2)[..] else {
            unreachable!()
        };
        table.insert(&$pool, old).await?;
        let mut transaction = $pool.begin_with($begin).await?;
        assert!(table.get(&mut transaction, old).await?.is_some());
        let id = table.insert(&$pool, new).await?.id;
        assert_eq!(table.get(&mut transaction, new).await?, None);
        let mapped = table.insert_or_get(&mut transaction, new).await;
        (id, mapped, transaction)
    }};
}

async fn mysql_with_a_snapshot(pool: Pool<MySql>) -> Outcome {
    // REPEATABLE READ is what it begins with.
    let (id, mapped, transaction) = behind_a_snapshot!(MySql, "BEGIN", pool);
    assert_eq!(mapped?, id);
    transaction.commit().await?;
    Ok(())
}

async fn postgres_with_a_snapshot(pool: Pool<Postgres>) -> Outcome {
    let (id, mapped, transaction) =
        behind_a_snapshot!(Postgres, "BEGIN ISOLATION LEVEL REPEATABLE READ", pool);
    let error = mapped.expect_err("40001");
    assert!(error.is_transient(), "{error}");
    transaction.rollback().await?;
    let table = MappingTable::<Postgres>::new("snapshots")?;
    let mut transaction = pool.begin().await?;
    let new = uuids(3, 2)[1];
    assert_eq!(table.insert_or_get(&mut transaction, new).await?, id);
    Ok(())
}

async fn sqlite_with_a_snapshot(pool: Pool<Sqlite>) -> Outcome {
    let (_, mapped, transaction) = behind_a_snapshot!(Sqlite, "BEGIN", pool);
    let error = mapped.expect_err("SQLITE_BUSY_SNAPSHOT");
    assert!(error.is_transient(), "{error}");
    transaction.rollback().await?;
    Ok(())
}
