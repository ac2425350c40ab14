//! Tests of transactions of XA alone.

use libtest_mimic::Trial;
use ordid_sqlx::{OrphanDecision, Retry, prepared_orphans, recover_prepared};
use ordid_tests::{servers::Servers, stores::on_own_server};
use sqlx::{MySql, mysql::MySqlPool, pool::PoolOptions};

use super::{
    ANY_AGE, Pools, Prepares as _, ROWS, SHARDS, Seconds, TenantId, check, databases, fill,
    forget_prepared, on_three, orphans, recovered::leave, rows, sum,
};
use crate::{
    Outcome,
    database::{Executes as _, Live as _},
};

pub fn trials(
    engine: &'static str,
    servers: &Servers,
    second: &impl Seconds,
    trials: &mut Vec<Trial>,
) {
    macro_rules! add {
        ($($test:ident),+ $(,)?) => {$(
            trials.push(on_three(servers, second, engine, stringify!($test), async |pools| {
                $test(pools).await
            }));
        )+};
    }
    add!(
        a_connection_is_never_lent_inside_a_transaction_of_xa,
        what_is_prepared_is_committed_at_one_attempt,
        a_flush_goes_on_where_a_deadlock_has_ended_its_transaction,
    );
    // Other tests list what is prepared as texts.
    let name = "shards::two_phase::ids_of_other_programs_that_are_no_text_are_passed_over";
    on_own_server(trials, servers, engine, name, async |server| {
        beside_others(&server.url()).await
    });
    if engine == "mysql" {
        add!(a_user_who_may_not_list_what_is_prepared_is_told);
    }
}

async fn beside_others(url: &str) -> Outcome {
    let (pools, _cleanups) = databases::<MySql>([url; SHARDS], MySql::patiently).await?;
    let mut other = pools[1].acquire().await?.detach();
    for sql in [
        "CREATE TABLE others (id INTEGER PRIMARY KEY)",
        "XA START X'FF00'",
        "INSERT INTO others VALUES (1)",
        "XA END X'FF00'",
        "XA PREPARE X'FF00'",
    ] {
        MySql::execute_in(&mut other, sql).await?;
    }
    sqlx::Connection::close(other).await?;

    let (mut work, _) = fill(&pools)?;
    assert_eq!(sum(&work.flush(&pools).await?), SHARDS * ROWS);
    let flush = ordid::KeyType::to_raw(<TenantId as ordid::KeyType>::generate());
    let gid = format!("ordid:{}:{}:0:2", pools.name, flush.simple());
    leave(&pools[2], &gid, <MySql as super::Prepares>::OTHER).await?;
    assert_eq!(orphans(&pools).await?, [(2, OrphanDecision::NotCommitted)]);
    let recovered = recover_prepared(&pools.name, &pools, ANY_AGE).await?;
    assert_eq!(recovered.rolled_back, [gid]);
    // The transaction of the other program is still prepared.
    MySql::script(&pools[1], "XA ROLLBACK X'FF00'").await?;
    check(&pools, ROWS).await
}

/// Returns the pools, of one connection each.
async fn alone(pools: &Pools<MySql>) -> Result<Pools<MySql>, sqlx::Error> {
    let mut alone = pools.clone();
    for pool in alone.iter_mut() {
        let options = (*pool.connect_options()).clone();
        *pool = PoolOptions::new()
            .max_connections(1)
            .test_before_acquire(false)
            .connect_with(options)
            .await?;
    }
    Ok(alone)
}

/// Asks for a transaction of the user's own over the only connection of each pool.
async fn is_free(pools: &Pools<MySql>) -> Outcome {
    for pool in pools.iter() {
        let open = pool.begin().await?;
        open.rollback().await?;
    }
    Ok(())
}

/// After a flush that is refused, one that succeeds, and ones that are dropped after each poll.
async fn a_connection_is_never_lent_inside_a_transaction_of_xa(pools: Pools<MySql>) -> Outcome {
    let alone = alone(&pools).await?;
    let (mut work, tenants) = fill(&pools)?;
    let name = &tenants[ROWS].name;
    let other = ordid::KeyType::to_raw(<TenantId as ordid::KeyType>::generate());
    let insert = format!(
        "INSERT INTO tenants VALUES (UNHEX('{}'), '{name}')",
        other.simple()
    );
    MySql::script(&pools[1], &insert).await?;
    work.flush(&alone).await.unwrap_err();
    is_free(&alone).await?;
    assert_eq!(rows(&pools).await?, [0, 1, 0]);
    MySql::script(&pools[1], "DELETE FROM tenants").await?;
    work.flush(&alone).await?;
    is_free(&alone).await?;
    check(&pools, ROWS).await?;
    let mut is_over = false;
    for polls in 0.. {
        if is_over {
            break;
        }
        let (mut work, _) = fill(&pools)?;
        {
            let mut flush = std::pin::pin!(work.flush(&alone));
            let mut count = 0;
            std::future::poll_fn(|context| {
                if count == polls {
                    return std::task::Poll::Ready(());
                }
                count += 1;
                match flush.as_mut().poll(context) {
                    std::task::Poll::Ready(_) => {
                        is_over = true;
                        std::task::Poll::Ready(())
                    }
                    std::task::Poll::Pending => std::task::Poll::Pending,
                }
            })
            .await;
        }
        is_free(&alone).await?;
        drop(work);
        recover(&pools).await?;
        forget_prepared(&pools).await?;
        let found = rows(&pools).await?;
        assert!(found.iter().all(|it| *it == found[0]), "{polls}: {found:?}");
    }
    Ok(())
}

/// A decision may still be on its way.
async fn recover(pools: &Pools<MySql>) -> Outcome {
    loop {
        match recover_prepared(&pools.name, pools, ANY_AGE).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Also where the server has not noticed so far that the connection is closed which has prepared it.
async fn what_is_prepared_is_committed_at_one_attempt(pools: Pools<MySql>) -> Outcome {
    for round in 1..=20 {
        let (work, _) = fill(&pools)?;
        let mut work = work.with_retry(Retry::NONE);
        assert_eq!(sum(&work.flush(&pools).await?), SHARDS * ROWS);
        check(&pools, round * ROWS).await?;
    }
    Ok(())
}

/// The other transaction is the larger one, so the server ends that of the flush.
async fn a_flush_goes_on_where_a_deadlock_has_ended_its_transaction(
    pools: Pools<MySql>,
) -> Outcome {
    let (mut work, tenants) = fill(&pools)?;
    work.flush(&pools).await?;
    for mut tenant in tenants.clone() {
        tenant.name.push('!');
        work.update(tenant)?;
    }
    let literal = |at: usize| {
        let key = ordid::KeyType::to_raw(tenants[ROWS + at].id);
        format!("UNHEX('{}')", key.simple())
    };
    let mut other = pools[1].acquire().await?;
    MySql::execute_in(&mut other, "BEGIN").await?;
    let many = (0..200).map(|number| format!("(UNHEX(REPLACE(UUID(), '-', '')), 'many {number}')"));
    let many = many.collect::<Vec<_>>().join(", ");
    MySql::execute_in(&mut other, &format!("INSERT INTO tenants VALUES {many}")).await?;
    let last = format!("UPDATE tenants SET name = 'last' WHERE id = {}", literal(2));
    MySql::execute_in(&mut other, &last).await?;
    let meets = async {
        // Until the flush has the first row.
        let free = format!(
            "SELECT 1 FROM tenants WHERE id = {} FOR UPDATE NOWAIT",
            literal(0)
        );
        while MySql::script(&pools[1], &free).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let first = format!("UPDATE tenants SET name = name WHERE id = {}", literal(0));
        MySql::execute_in(&mut other, &first).await?;
        MySql::execute_in(&mut other, "ROLLBACK").await?;
        Ok::<_, sqlx::Error>(())
    };
    let (flushed, met) = tokio::join!(work.flush(&pools), meets);
    met?;
    let flushed = flushed?;
    assert!(flushed[1].retries > 0, "{flushed:?}");
    check(&pools, ROWS).await?;
    let changed = MySql::count(&pools[1], "tenants WHERE name LIKE '%!'").await?;
    assert_eq!(changed, i64::try_from(ROWS)?);
    Ok(())
}

/// MySQL's own text says nothing of a privilege.
async fn a_user_who_may_not_list_what_is_prepared_is_told(pools: Pools<MySql>) -> Outcome {
    // Users belong to the server, on which other tests run at the same time.
    let user = format!("weak_{}", pools.name);
    let mut weak = pools.clone();
    for pool in weak.iter_mut() {
        let sql = format!(
            "CREATE USER IF NOT EXISTS {user}@'%'; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO {user}@'%'"
        );
        MySql::script(pool, &sql).await?;
        let options = (*pool.connect_options()).clone();
        *pool = MySqlPool::connect_with(options.username(&user)).await?;
    }
    let (mut work, _) = fill(&pools)?;
    let error = work.flush(&weak).await.unwrap_err();
    let words = "cannot list prepared transactions, nothing was written (on MySQL the user needs the privilege \
                 XA_RECOVER_ADMIN, on `*.*`)";
    assert!(error.to_string().contains(words), "{error}");
    check(&pools, 0).await?;
    let error = prepared_orphans(&pools.name, &weak).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
    let sql = format!("GRANT XA_RECOVER_ADMIN ON *.* TO {user}@'%'");
    for pool in pools.iter() {
        MySql::script(pool, &sql).await?;
    }
    for pool in weak.iter_mut() {
        *pool = MySqlPool::connect_with((*pool.connect_options()).clone()).await?;
    }
    work.flush(&weak).await?;
    check(&pools, ROWS).await?;
    // It ends what another user has prepared.
    let flush = ordid::KeyType::to_raw(<TenantId as ordid::KeyType>::generate());
    let gid = format!("ordid:{}:{}:0:2", pools.name, flush.simple());
    leave(&pools[2], &gid, <MySql as super::Prepares>::OTHER).await?;
    assert_eq!(orphans(&weak).await?, [(2, OrphanDecision::NotCommitted)]);
    let recovered = recover_prepared(&pools.name, &weak, ANY_AGE).await?;
    assert_eq!(recovered.rolled_back, [gid]);
    for pool in pools.iter() {
        MySql::script(pool, &format!("DROP USER IF EXISTS {user}@'%'")).await?;
    }
    check(&pools, ROWS).await
}
