//! Flushes that do not learn how they end, and recoveries before, beside and behind them.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use ordid::KeyType as _;
use ordid_sqlx::{OrphanDecision, Retry, recover_prepared};
use ordid_tests::proxy::{At, Fault, Proxy};
use sqlx::{Pool, Postgres, pool::PoolOptions};
use tokio::runtime::Handle;

use super::{
    ANY_AGE, Pools, Prepares, ROWS, SHARDS, Tenant, TenantId, check, fill, orphans, prepared,
    roll_back, rows, sum, tenants, through,
};
use crate::{
    Outcome,
    database::{Live as _, read},
};

/// The COMMIT that decides is carried out or not, and the flush cannot find out.
pub async fn an_unknown_decision_is_found_out_by_the_next_flush<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    let mut expected = 0;
    for (fault, is_committed) in [
        (Fault::Cut(At::Commit(0)), false),
        (Fault::SilenceAfterCommit, true),
    ] {
        let (through, proxy) = through(&pools, 0, "COMMIT").await?;
        proxy.plan([fault]);
        proxy_ends_with_the_first(&proxy);
        let (work, _) = fill(&pools)?;
        // The flush has to come to the COMMIT that decides.
        let mut work = work
            .with_retry(Retry::NONE)
            .with_deadline(Duration::from_secs(10));
        let error = work.flush(&through).await.unwrap_err();
        assert!(error.is_commit_unknown() && !error.is_prepared(), "{error}");
        let start = "the answer to the COMMIT that decides was lost, so either the rows of all 3 shards will be written \
                     or none; ";
        assert!(error.to_string().starts_with(start), "{error}");
        let decision = match is_committed {
            true => OrphanDecision::Committed,
            false => OrphanDecision::NotCommitted,
        };
        assert_eq!(orphans(&pools).await?, [(1, decision), (2, decision)]);
        let flushed = work.flush(&pools).await?;
        assert_eq!(sum(&flushed), 3 * ROWS);
        expected += ROWS;
        check(&pools, expected).await?;
    }
    Ok(())
}

/// The flush has lost its COMMIT, which did not come. A recovery rolls back what is prepared, and the flush finds that it
/// can never be committed.
pub async fn a_recovery_before_the_decision_keeps_the_flush_from_committing<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    let (through, proxy) = through(&pools, 0, "COMMIT").await?;
    proxy.plan([Fault::Cut(At::Commit(0))]);
    proxy_ends_with_the_first(&proxy);
    let (mut work, _) = fill(&pools)?;
    let error = work.flush(&through).await.unwrap_err();
    assert!(error.is_commit_unknown(), "{error}");
    let recovered = recover_prepared(&pools.name, &pools, ANY_AGE).await?;
    assert_eq!(
        (recovered.committed.len(), recovered.rolled_back.len()),
        (0, 2)
    );
    check(&pools, 0).await?;

    let error = work.flush(&pools).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "nothing was written on any of 3 shards; shard 0: another program has recovered the prepared transactions of this \
         flush and rolled them back, nothing was written"
    );
    assert!(error.is_transient() && !error.is_commit_unknown());
    check(&pools, 0).await?;
    assert_eq!(sum(&work.flush(&pools).await?), 3 * ROWS);
    check(&pools, ROWS).await
}

/// While the transaction that decides is open, nobody can say whether it will be committed.
pub async fn a_recovery_waits_for_a_decision_that_is_on_its_way<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    let (through, proxy) = through(&pools, 0, "COMMIT").await?;
    proxy.plan([Fault::HoldCommit]);
    proxy_ends_with_the_first(&proxy);
    let (work, _) = fill(&pools)?;
    let mut work = work.with_retry(Retry::NONE);
    let error = work.flush(&through).await.unwrap_err();
    assert!(error.is_commit_unknown(), "{error}");
    let error = recover_prepared(&pools.name, &pools, ANY_AGE)
        .await
        .unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(rows(&pools).await?, [0; SHARDS]);
    proxy.release();
    while rows(&pools).await?[0] == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let recovered = recover_prepared(&pools.name, &pools, ANY_AGE).await?;
    assert_eq!(recovered.committed.len(), 2);
    check(&pools, ROWS).await?;
    assert_eq!(sum(&work.flush(&pools).await?), 3 * ROWS);
    check(&pools, ROWS).await
}

/// Each flush is written everywhere or nowhere, and says so.
pub async fn recoveries_beside_flushes_leave_all_rows_or_none<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    let flushes = async {
        let (mut written, mut refused) = (Vec::new(), Vec::new());
        for number in 0..60 {
            let (mut work, mut tenants) = fill(&pools)?;
            // One shard waits for another, long enough for a recovery to come in between.
            if number % 5 == 0 {
                for tenant in self::tenants(2_000)?.split_off(2 * 2_000) {
                    DB::place(&mut work, tenant.clone())?;
                    tenants.push(tenant);
                }
            }
            match work.flush(&pools).await {
                Ok(flushed) => {
                    assert_eq!(sum(&flushed), tenants.len());
                    written.extend(tenants);
                }
                Err(error) => {
                    assert!(!error.is_commit_unknown(), "{error}");
                    refused.extend(tenants);
                }
            }
        }
        Outcome::Ok((written, refused))
    };
    // Over a thread of its own, as a flush may be busy with its rows.
    let (name, is_over) = (pools.name.clone(), AtomicBool::new(false));
    let options: Vec<_> = pools.iter().map(|it| it.connect_options()).collect();
    let recoveries = || -> Outcome {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build()?;
        runtime.block_on(async {
            let mut others = Vec::new();
            for options in options {
                others.push(DB::patient(2).connect_with((*options).clone()).await?);
            }
            while !is_over.load(Ordering::Relaxed) {
                // It may wait for a decision for longer than it may.
                match recover_prepared(&name, &others, ANY_AGE).await {
                    Err(error) if !error.is_transient() => return Err(error.into()),
                    _ => {}
                }
            }
            Ok(())
        })
    };
    let (written, refused) = std::thread::scope(|scope| {
        let recoveries = scope.spawn(recoveries);
        let flushed = tokio::task::block_in_place(|| Handle::current().block_on(flushes));
        is_over.store(true, Ordering::Relaxed);
        recoveries.join().expect("it does not panic")?;
        flushed
    })?;
    let mut found = Vec::new();
    for pool in pools.iter() {
        let here: Vec<Tenant> = read(pool, "SELECT * FROM tenants").await?;
        found.extend(here);
    }
    for shard in 0..SHARDS {
        assert_eq!(prepared(&pools, shard).await?, [""; 0]);
    }
    found.sort_by_key(|it| it.id);
    let mut expected = written;
    expected.sort_by_key(|it| it.id);
    assert_eq!(found, expected);
    assert!(
        !found.is_empty() && !refused.is_empty(),
        "{} {}",
        found.len(),
        refused.len()
    );
    Ok(())
}

pub async fn databases_in_another_order_are_not_recovered<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    let (through, proxy) = through(&pools, 2, DB::COMMIT_PREPARED).await?;
    proxy.always(Fault::Cut(At::Commit(0)));
    let (mut work, _) = fill(&pools)?;
    work.flush(&through).await.unwrap_err();
    for wrong in [pools.of(&[0, 2, 1]), pools.of(&[2])] {
        let error = recover_prepared(&pools.name, &wrong, ANY_AGE)
            .await
            .unwrap_err();
        assert!(error.is_wrong_database(), "{error}");
    }
    // Under another name there is nothing.
    let recovered = recover_prepared("other", &pools, ANY_AGE).await?;
    assert_eq!(recovered, ordid_sqlx::Recovered::default());
    assert_eq!(orphans(&pools).await?, [(2, OrphanDecision::Committed)]);
    // Once its marker rows may have been removed, nobody knows.
    DB::script(&pools[0], "DELETE FROM ordid_flushes").await?;
    let recovered = recover_prepared(&pools.name, &pools, Duration::from_secs(60)).await?;
    assert_eq!(recovered.left[0].decision, OrphanDecision::NotCommitted);
    let gid = &prepared(&pools, 2).await?[0];
    let made = "ordid:".len() + pools.name.len() + 1;
    let old = gid.replace(&gid[made..made + 12], "018f00000000");
    roll_back(&pools[2], gid).await?;
    leave(&pools[2], &old, DB::OTHER).await?;
    let recovered = recover_prepared(&pools.name, &pools, ANY_AGE).await?;
    assert_eq!(recovered.left[0].decision, OrphanDecision::Unknown);
    assert_eq!(prepared(&pools, 2).await?, [old]);
    Ok(())
}

/// Leaves a transaction prepared, over a connection that is closed.
pub async fn leave<DB: Prepares>(pool: &Pool<DB>, gid: &str, sql: &str) -> Outcome {
    let mut other = pool.acquire().await?.detach();
    for sql in DB::prepare(gid, &[sql]) {
        DB::execute_in(&mut other, &sql).await?;
    }
    Ok(sqlx::Connection::close(other).await?)
}

/// What is prepared is where it was, and the one that decides is elsewhere.
pub async fn databases_in_reverse_order_are_not_recovered<DB: Prepares>(
    mut pools: Pools<DB>,
) -> Outcome {
    let (through, proxy) = through(&pools, 1, DB::COMMIT_PREPARED).await?;
    proxy.always(Fault::Cut(At::Commit(0)));
    let (mut work, _) = fill(&pools)?;
    work.flush(&through).await.unwrap_err();
    pools.reverse();
    let error = recover_prepared(&pools.name, &pools, ANY_AGE)
        .await
        .unwrap_err();
    assert!(error.is_wrong_database(), "{error}");
    assert!(orphans(&pools).await.unwrap_err().is_wrong_database());
    pools.reverse();
    assert_eq!(orphans(&pools).await?, [(1, OrphanDecision::Committed)]);
    let recovered = recover_prepared(&pools.name, &pools, ANY_AGE).await?;
    assert_eq!(recovered.committed.len(), 1);
    check(&pools, ROWS).await
}

/// Somebody has rolled it back by hand, after the decision.
pub async fn a_prepared_transaction_that_has_vanished_is_told<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    let (through, proxy) = through(&pools, 1, DB::COMMIT_PREPARED).await?;
    proxy.always(Fault::Cut(At::Commit(0)));
    let (mut work, _) = fill(&pools)?;
    assert!(work.flush(&through).await.unwrap_err().is_prepared());
    let gid = prepared(&pools, 1).await?.remove(0);
    roll_back(&pools[1], &gid).await?;
    let error = work.flush(&pools).await.unwrap_err();
    assert!(error.is_commit_unknown() && !error.is_prepared(), "{error}");
    let words = format!(
        "somebody has rolled back {gid}, which this shard had prepared: flushing again writes the rows"
    );
    assert!(error.to_string().contains(&words), "{error}");
    assert_eq!(rows(&pools).await?, [ROWS, 0, ROWS]);
    assert_eq!(sum(&work.flush(&pools).await?), ROWS);
    check(&pools, ROWS).await
}

pub async fn changes_after_an_unfinished_flush_are_refused<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    let (through, proxy) = through(&pools, 1, DB::COMMIT_PREPARED).await?;
    proxy.always(Fault::Cut(At::Commit(0)));
    let (mut work, _) = fill(&pools)?;
    work.flush(&through).await.unwrap_err();
    DB::place(&mut work, tenants(1)?.remove(0))?;
    let error = work.flush(&pools).await.unwrap_err();
    assert!(error.is_plan(), "{error}");
    let words = "the last `two_phase_commit` has not ended, and the unit of work has changed since";
    assert!(error.to_string().contains(words), "{error}");
    work.clear();
    recover_prepared(&pools.name, &pools, ANY_AGE).await?;
    check(&pools, ROWS).await
}

pub async fn a_shard_out_of_reach_after_the_decision_is_finished_later<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    let mut expected = 0;
    for is_recovered in [false, true] {
        let (through, proxy) = through(&pools, 1, DB::COMMIT_PREPARED).await?;
        proxy.always(Fault::Cut(At::Commit(0)));
        let (mut work, _) = fill(&pools)?;
        let error = work.flush(&through).await.unwrap_err();
        assert!(error.is_prepared() && error.is_commit_unknown(), "{error}");
        let text = error.to_string();
        let start = format!(
            "the flush is committed, but not yet on 1 of 3 shards; shard 1: the rows are prepared as ordid:{}:",
            pools.name
        );
        assert!(text.starts_with(&start), "{text}");
        let outcomes = error.shards().expect("sent");
        let is_ok: Vec<_> = outcomes.iter().map(Result::is_ok).collect();
        assert_eq!(is_ok, [true, false, true]);
        assert_eq!(
            rows(&pools).await?,
            [expected + ROWS, expected, expected + ROWS]
        );
        assert_eq!(orphans(&pools).await?, [(1, OrphanDecision::Committed)]);
        if is_recovered {
            let recovered = recover_prepared(&pools.name, &pools, Duration::from_secs(600)).await?;
            assert_eq!((recovered.committed.len(), recovered.left.len()), (0, 1));
            let recovered = recover_prepared(&pools.name, &pools, ANY_AGE).await?;
            assert_eq!(
                (recovered.committed.len(), recovered.rolled_back.len()),
                (1, 0)
            );
            check(&pools, expected + ROWS).await?;
        }
        // Only what is left is counted.
        assert_eq!(sum(&work.flush(&pools).await?), ROWS);
        assert!(work.is_empty());
        expected += ROWS;
        check(&pools, expected).await?;
    }
    Ok(())
}

/// Sessions in which the COMMIT of a marker row that decides could be lost in a crash.
pub async fn what_decides_is_on_the_disk_before_anything_follows(
    pools: Pools<Postgres>,
) -> Outcome {
    for (setting, expected) in [("off", "on"), ("local", "local"), ("on", "on")] {
        let mut weak = Vec::new();
        for pool in pools.iter() {
            for sql in [
                "DROP TRIGGER IF EXISTS seen ON ordid_flushes",
                "DROP TABLE IF EXISTS settings",
                "CREATE TABLE settings (value text)",
                "CREATE OR REPLACE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO settings \
                 VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$",
                "CREATE TRIGGER seen BEFORE INSERT ON ordid_flushes FOR EACH ROW EXECUTE FUNCTION seen()",
            ] {
                Postgres::script(pool, sql).await?;
            }
            let options = (*pool.connect_options()).clone();
            let options = options.options([("synchronous_commit", setting)]);
            weak.push(
                PoolOptions::new()
                    .max_connections(2)
                    .connect_with(options)
                    .await?,
            );
        }
        let weak = Pools {
            name: pools.name.clone(),
            pools: weak,
        };
        // The decision and its fence; what a participant prepares is always on the disk.
        let (mut work, _) = fill(&pools)?;
        work.flush(&weak).await?;
        assert_eq!(settings(&pools[0]).await?, [expected; 2], "{setting}");
        assert_eq!(settings(&pools[1]).await?, [setting], "{setting}");
        // The fence of a recovery.
        let flush = TenantId::generate().to_raw().simple().to_string();
        let gid = format!("ordid:{}:{flush}:0:2", pools.name);
        leave(&pools[2], &gid, "CREATE TABLE gone ()").await?;
        let recovered = recover_prepared(&pools.name, &weak, ANY_AGE).await?;
        assert_eq!(recovered.rolled_back, [gid]);
        assert_eq!(settings(&pools[0]).await?, [expected; 3], "{setting}");
        let after = settings_of_session(&weak[0]).await?;
        assert_eq!(after, [setting], "the session keeps its own");
        for pool in weak.iter() {
            pool.close().await;
        }
    }
    Ok(())
}

async fn settings(pool: &Pool<Postgres>) -> Result<Vec<String>, sqlx::Error> {
    Postgres::texts(pool, "SELECT value FROM settings").await
}

async fn settings_of_session(pool: &Pool<Postgres>) -> Result<Vec<String>, sqlx::Error> {
    Postgres::texts(pool, "SELECT current_setting('synchronous_commit')").await
}

/// No other connection is served.
fn proxy_ends_with_the_first(proxy: &Proxy) {
    proxy.after(Fault::Cut(At::Up(0)));
}
