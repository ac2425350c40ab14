//! Two-phase commits over three databases of two PostgreSQL servers: refused rows, connections that are cut at each
//! phase, recoveries beside flushes, and processes that are killed at every poll.

use std::{sync::Arc, time::Duration};

use libtest_mimic::Trial;
use ordid::KeyType as _;
use ordid_harness::Policy;
use ordid_sqlx::{
    EngineProfile, Error, Flushed, OrphanDecision, Retry, ShardedUnitOfWork, Sharding,
    prepared_orphans, recover_prepared,
};
use ordid_tests::{
    proxy::{At, Fault, Proxy},
    servers::{Scratch as _, Servers},
};
use sqlx::{
    Pool, Postgres, Row as _,
    pool::PoolOptions,
    postgres::{PgConnectOptions, PgSslMode},
};

use super::{Second, Tenant, TenantId};
use crate::{
    Outcome,
    database::{Executes as _, Live as _, read},
    ignored,
    retry::proxy,
    run,
};

pub mod killed;
mod recovered;

pub const SHARDS: usize = 3;
pub const NAME: &str = "test";
/// The rows of a flush on each shard.
const ROWS: usize = 3;
/// A recovery that leaves no transaction alone.
pub const ANY_AGE: Duration = Duration::ZERO;

pub type Pools = Vec<Pool<Postgres>>;

pub fn trials(servers: &Servers, second: &Second, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($($test:ident),+ $(,)?) => {$(
            trials.push(on_three(servers, second, stringify!($test), async |pools| $test(pools).await));
        )+};
    }
    use killed::{
        a_process_killed_at_each_poll_leaves_all_rows_or_none,
        a_process_killed_between_two_steps_leaves_all_rows_or_none,
    };
    use recovered::*;
    add!(
        all_shards_are_committed_together,
        a_row_that_one_shard_refuses_is_written_nowhere,
        one_shard_alone_prepares_nothing,
        what_does_not_go_together_is_refused_before_anything_is_sent,
        a_connection_cut_at_prepare_is_replaced,
        a_prepare_that_lands_late_is_found,
        a_connection_cut_at_the_second_phase_is_replaced,
        a_shard_out_of_reach_after_the_decision_is_finished_later,
        an_unknown_decision_is_found_out_by_the_next_flush,
        a_recovery_before_the_decision_keeps_the_flush_from_committing,
        a_recovery_waits_for_a_decision_that_is_on_its_way,
        recoveries_beside_flushes_leave_all_rows_or_none,
        databases_in_another_order_are_not_recovered,
        databases_in_reverse_order_are_not_recovered,
        a_prepared_transaction_that_has_vanished_is_told,
        a_missing_table_of_marker_rows_is_told,
        changes_after_an_unfinished_flush_are_refused,
        what_decides_is_on_the_disk_before_anything_follows,
        a_process_killed_at_each_poll_leaves_all_rows_or_none,
        a_process_killed_between_two_steps_leaves_all_rows_or_none,
    );
    let name = "transactions_are_prepared_and_ended_over_other_connections";
    trials.push(behind_pgbouncer(servers, name, over_other_connections));
}

/// Makes two databases on the first server and one on the second.
fn on_three<F: Future<Output = Outcome>>(
    servers: &Servers,
    second: &Second,
    name: &str,
    test: impl FnOnce(Pools) -> F + Send + 'static,
) -> Trial {
    let name = format!("postgres::shards::two_phase::{name}");
    let first = servers
        .url("postgres")
        .and_then(|url| match ordid_harness::policy("postgres_2") {
            Ok(Policy::Skip(reason)) => Err(reason),
            Ok(_) => Ok(url),
            Err(error) => Err(error.to_string()),
        });
    let first = match first {
        Ok(url) => url,
        Err(reason) => return ignored(name, reason),
    };
    let second = Arc::clone(second);
    Trial::test(name, move || {
        run(async || {
            let second = super::second_url(&second)?;
            // A test need not wait for 10 s.
            let patient = |options: PgConnectOptions| options.options([("lock_timeout", "500ms")]);
            on_databases([&first, &second, &first], patient, test).await
        })
    })
}

/// Makes three databases behind PgBouncer.
fn behind_pgbouncer<F: Future<Output = Outcome>>(
    servers: &Servers,
    name: &str,
    test: impl FnOnce(Pools) -> F + Send + 'static,
) -> Trial {
    let name = format!("pgbouncer::shards::two_phase::{name}");
    match servers.url("pgbouncer") {
        Err(reason) => ignored(name, reason),
        Ok(url) => Trial::test(name, move || {
            run(async || on_databases([&*url; SHARDS], |it| it, test).await)
        }),
    }
}

async fn on_databases<F: Future<Output = Outcome>>(
    urls: [&str; SHARDS],
    options: impl Fn(PgConnectOptions) -> PgConnectOptions,
    test: impl FnOnce(Pools) -> F,
) -> Outcome {
    let mut pools = Vec::new();
    let mut cleanups = Vec::new();
    for url in urls {
        let (pool, cleanup) = Postgres::scratch(url).await?;
        let options = options((*pool.connect_options()).clone());
        let pool = PoolOptions::new().max_connections(6).connect_with(options);
        pools.push(pool.await?);
        cleanups.push(cleanup);
    }
    for pool in &pools {
        let sql = "CREATE TABLE tenants (id uuid NOT NULL PRIMARY KEY, name text NOT NULL UNIQUE)";
        Postgres::script(pool, sql).await?;
        Postgres::create_flushes(pool).await?;
    }
    let outcome = test(pools.clone()).await;
    for pool in &pools {
        forget_prepared(pool).await?;
        pool.close().await;
    }
    for cleanup in cleanups {
        cleanup.await?;
    }
    outcome
}

/// A database with a prepared transaction cannot be dropped.
async fn forget_prepared(pool: &Pool<Postgres>) -> Result<(), sqlx::Error> {
    let sql = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()";
    // A pooler may be in between, so nothing is prepared by name.
    for row in sqlx::raw_sql(sql).fetch_all(pool).await? {
        let gid: String = row.try_get(0)?;
        Postgres::script(pool, &format!("ROLLBACK PREPARED '{gid}'")).await?;
    }
    Ok(())
}

async fn prepared(pool: &Pool<Postgres>) -> Result<Vec<String>, sqlx::Error> {
    let sql = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()";
    Postgres::texts(pool, sql).await
}

pub fn sharding() -> Result<Sharding, ordid::Error> {
    Sharding::by_hash(SHARDS)
}

pub fn begin() -> Result<ShardedUnitOfWork<Postgres>, ordid::Error> {
    let retry = Retry::DEFAULT.with_delays(Duration::from_millis(20), Duration::from_millis(100));
    let work = ShardedUnitOfWork::new(sharding()?);
    Ok(work.with_retry(retry).two_phase_commit(NAME))
}

/// Returns so many new tenants for each shard, in the order of the shards.
pub fn tenants(each: usize) -> Result<Vec<Tenant>, ordid::Error> {
    let sharding = sharding()?;
    let mut found: Vec<Vec<Tenant>> = vec![Vec::new(); SHARDS];
    while found.iter().any(|it| it.len() < each) {
        let id = TenantId::generate();
        let shard = &mut found[sharding.shard(id)?];
        if shard.len() < each {
            let name = id.to_string();
            shard.push(Tenant { id, name });
        }
    }
    Ok(found.concat())
}

fn fill() -> Result<(ShardedUnitOfWork<Postgres>, Vec<Tenant>), ordid::Error> {
    let mut work = begin()?;
    let tenants = tenants(ROWS)?;
    for tenant in &tenants {
        work.add(tenant.clone())?;
    }
    Ok((work, tenants))
}

/// Returns the rows of each shard.
async fn rows(pools: &Pools) -> Result<Vec<usize>, sqlx::Error> {
    let mut rows = Vec::new();
    for pool in pools {
        let found: Vec<Tenant> = read(pool, "SELECT * FROM tenants").await?;
        rows.push(found.len());
    }
    Ok(rows)
}

/// Asserts that these rows are there, and nothing is prepared.
async fn check(pools: &Pools, expected: usize) -> Outcome {
    assert_eq!(rows(pools).await?, [expected; SHARDS]);
    for pool in pools {
        assert_eq!(prepared(pool).await?, [""; 0]);
    }
    Ok(())
}

/// Returns the pools, but one goes through a proxy that looks out for this text.
async fn through(pools: &Pools, shard: usize, text: &'static str) -> Outcome<(Pools, Proxy)> {
    let proxy = proxy(&pools[shard]).await?;
    proxy.look_for(text);
    let options = (*pools[shard].connect_options()).clone();
    let options = options
        .host("127.0.0.1")
        .port(proxy.port())
        .ssl_mode(PgSslMode::Disable);
    let mut through = pools.clone();
    through[shard] = PoolOptions::new()
        .max_connections(2)
        .acquire_timeout(Duration::from_secs(5))
        .test_before_acquire(false)
        .connect_lazy_with(options);
    Ok((through, proxy))
}

fn sum(flushed: &[Flushed]) -> usize {
    flushed.iter().map(Flushed::rows).sum()
}

async fn orphans(pools: &Pools) -> Result<Vec<(usize, OrphanDecision)>, Error> {
    let orphans = prepared_orphans(NAME, pools).await?;
    Ok(orphans.iter().map(|it| (it.shard, it.decision)).collect())
}

async fn all_shards_are_committed_together(pools: Pools) -> Outcome {
    let (mut work, tenants) = fill()?;
    let flushed = work.flush(&pools).await?;
    assert_eq!(sum(&flushed), tenants.len());
    assert!(work.is_empty());
    check(&pools, ROWS).await?;
    // The shard that decides has a fence, too.
    for (pool, markers) in pools.iter().zip([2, 1, 1]) {
        assert_eq!(Postgres::count(pool, "ordid_flushes").await?, markers);
    }
    // The rest of a unit of work goes on as usual.
    for mut tenant in tenants {
        tenant.name.push('!');
        work.update(tenant)?;
    }
    let flushed = work.flush(&pools).await?;
    assert_eq!(
        flushed.iter().map(Flushed::updated).sum::<usize>(),
        3 * ROWS
    );
    for pool in &pools {
        assert_eq!(
            Postgres::count(pool, "tenants WHERE name LIKE '%!'").await?,
            3
        );
    }
    // Enough rows for `COPY`, and for a temporary table if that could be prepared.
    let mut many = Vec::new();
    for tenant in self::tenants(2_500)? {
        work.add(tenant.clone())?;
        many.push(tenant);
    }
    work.flush(&pools).await?;
    for tenant in many {
        work.update(tenant)?;
    }
    work.flush(&pools).await?;
    check(&pools, ROWS + 2_500).await
}

async fn a_row_that_one_shard_refuses_is_written_nowhere(pools: Pools) -> Outcome {
    for refuses in 0..SHARDS {
        let (mut work, tenants) = fill()?;
        let taken = &tenants[refuses * ROWS + 1];
        let (key, name) = (taken.id.to_raw(), &taken.name);
        let other = TenantId::generate().to_raw();
        let insert = format!("INSERT INTO tenants VALUES ('{other}', '{name}')");
        Postgres::script(&pools[refuses], &insert).await?;

        let error = work.flush(&pools).await.unwrap_err();
        let text = error.to_string();
        let start = format!(
            "nothing was written on any of 3 shards; shard {refuses}: cannot insert into tenants, chunk 0 (rows 0 to 2), \
             key {}, nothing was written: ",
            taken.id
        );
        assert!(text.starts_with(&start), "{text}");
        assert!(!error.is_commit_unknown() && !error.is_prepared() && !error.is_transient());
        let outcomes = error.shards().expect("sent");
        assert!(
            outcomes[refuses]
                .as_ref()
                .is_err_and(Error::is_unique_violation)
        );
        for (shard, outcome) in outcomes.iter().enumerate() {
            let text = outcome.as_ref().unwrap_err().to_string();
            let is_other = text == "rolled back because of another shard, nothing was written";
            assert_eq!(is_other, shard != refuses, "{text}");
        }
        assert_eq!(work.len(), tenants.len());
        let mut expected = [refuses * ROWS, refuses * ROWS, refuses * ROWS];
        expected[refuses] += 1;
        assert_eq!(rows(&pools).await?, expected);

        let delete = format!("DELETE FROM tenants WHERE id = '{other}' AND '{key}' <> id::text");
        Postgres::script(&pools[refuses], &delete).await?;
        assert_eq!(sum(&work.flush(&pools).await?), tenants.len());
        check(&pools, (refuses + 1) * ROWS).await?;
    }
    Ok(())
}

async fn one_shard_alone_prepares_nothing(pools: Pools) -> Outcome {
    let mut work = begin()?;
    for tenant in &tenants(ROWS)?[ROWS..2 * ROWS] {
        work.add(tenant.clone())?;
    }
    let (through, proxy) = through(&pools, 1, "PREPARE TRANSACTION").await?;
    work.flush(&through).await?;
    assert_eq!(proxy.last_traffic().commit, None);
    assert_eq!(rows(&pools).await?, [0, ROWS, 0]);
    assert_eq!(Postgres::count(&pools[1], "ordid_flushes").await?, 0);
    Ok(())
}

async fn what_does_not_go_together_is_refused_before_anything_is_sent(pools: Pools) -> Outcome {
    let refused = async |work: ShardedUnitOfWork<Postgres>, words: &str| {
        let mut work = work;
        for tenant in tenants(1)? {
            work.add(tenant)?;
        }
        let error = work.flush(&pools).await.unwrap_err();
        assert!(
            error.is_plan() && error.to_string().contains(words),
            "{error}"
        );
        Outcome::Ok(())
    };
    let limits = ordid_sqlx::ChunkLimits::rows(10);
    refused(begin()?.in_chunks(limits), "either `in_chunks`").await?;
    refused(begin()?.without_record(), "cannot be `without_record`").await?;
    refused(begin()?.two_phase_commit("a:b"), "the name \"a:b\"").await?;
    let engine = EngineProfile::AURORA_DSQL;
    refused(begin()?.with_engine(engine), "shard 0 is Aurora DSQL").await?;
    check(&pools, 0).await
}

/// Before it has passed, it never comes; behind it, it is carried out and there is no answer.
async fn a_connection_cut_at_prepare_is_replaced(pools: Pools) -> Outcome {
    let mut expected = 0;
    for shard in [1, 2] {
        for bytes in [0, 4, 200] {
            let (through, proxy) = through(&pools, shard, "PREPARE TRANSACTION").await?;
            proxy.plan([Fault::Cut(At::Commit(bytes))]);
            let (mut work, _) = fill()?;
            let flushed = work.flush(&through).await?;
            assert_eq!(flushed[shard].rows(), ROWS);
            expected += ROWS;
            check(&pools, expected).await?;
        }
    }
    Ok(())
}

/// Another attempt finds its marker row locked, and then the transaction prepared.
async fn a_prepare_that_lands_late_is_found(pools: Pools) -> Outcome {
    let (through, proxy) = through(&pools, 1, "PREPARE TRANSACTION").await?;
    proxy.plan([Fault::HoldCommit]);
    let (mut work, _) = fill()?;
    let lands = async {
        let waiting =
            "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while Postgres::count(&pools[1], waiting).await? == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        proxy.release();
        Ok::<_, sqlx::Error>(())
    };
    let (flushed, landed) = tokio::join!(work.flush(&through), lands);
    landed?;
    assert_eq!(sum(&flushed?), 3 * ROWS);
    check(&pools, ROWS).await
}

async fn a_connection_cut_at_the_second_phase_is_replaced(pools: Pools) -> Outcome {
    let mut expected = 0;
    for bytes in [0, 4, 200] {
        let (through, proxy) = through(&pools, 2, "COMMIT PREPARED").await?;
        proxy.plan([Fault::Cut(At::Commit(bytes))]);
        let (mut work, _) = fill()?;
        assert_eq!(sum(&work.flush(&through).await?), 3 * ROWS);
        assert!(work.is_empty());
        expected += ROWS;
        check(&pools, expected).await?;
    }
    // What is rolled back is tried again, too.
    for bytes in [0, 4, 200] {
        let (through, proxy) = through(&pools, 2, "ROLLBACK PREPARED").await?;
        proxy.plan([Fault::Cut(At::Commit(bytes))]);
        let (mut work, tenants) = fill()?;
        work.add(Tenant {
            id: decided_by_the_first()?,
            name: tenants[0].name.clone(),
        })?;
        let error = work.flush(&through).await.unwrap_err();
        assert!(
            error.to_string().starts_with("nothing was written on any"),
            "{error}"
        );
        check(&pools, expected).await?;
    }
    Ok(())
}

/// Returns a key of the shard that decides.
fn decided_by_the_first() -> Result<TenantId, ordid::Error> {
    let sharding = sharding()?;
    loop {
        let id = TenantId::generate();
        if sharding.shard(id)? == 0 {
            return Ok(id);
        }
    }
}

async fn a_missing_table_of_marker_rows_is_told(pools: Pools) -> Outcome {
    for shard in 0..SHARDS {
        Postgres::script(&pools[shard], "ALTER TABLE ordid_flushes RENAME TO gone").await?;
        let (mut work, _) = fill()?;
        let error = work.flush(&pools).await.unwrap_err();
        let outcome = &error.shards().expect("sent")[shard];
        let why = outcome.as_ref().unwrap_err();
        assert!(why.is_flushes_table_missing(), "{error}");
        let words =
            "the table `ordid_flushes` is missing, which each shard of a two-phase commit needs";
        assert!(why.to_string().contains(words), "{why}");
        Postgres::script(&pools[shard], "ALTER TABLE gone RENAME TO ordid_flushes").await?;
        check(&pools, 0).await?;
    }
    Ok(())
}

/// The pooler gives each transaction another connection: also the one that ends what another has prepared.
async fn over_other_connections(pools: Pools) -> Outcome {
    let mut direct = Vec::new();
    for pool in &pools {
        let port = sqlx::raw_sql("SELECT inet_server_port()").fetch_one(pool);
        let port: i32 = port.await?.try_get(0)?;
        let options = (*pool.connect_options()).clone();
        let options = options.port(u16::try_from(port)?);
        direct.push(PoolOptions::new().connect_with(options).await?);
    }
    let mut work = begin()?.with_engine(EngineProfile::PGBOUNCER);
    let first = tenants(ROWS)?;
    for tenant in &first {
        work.add(tenant.clone())?;
    }
    assert_eq!(sum(&work.flush(&pools).await?), 3 * ROWS);
    check(&direct, ROWS).await?;
    // The shard that decides refuses a row, and the others are rolled back.
    for tenant in tenants(ROWS)? {
        work.add(tenant)?;
    }
    let id = decided_by_the_first()?;
    let name = first[0].name.clone();
    work.add(Tenant { id, name })?;
    let error = work.flush(&pools).await.unwrap_err();
    assert!(
        error.shards().expect("sent")[0]
            .as_ref()
            .is_err_and(Error::is_unique_violation),
        "{error}"
    );
    check(&direct, ROWS).await?;
    // What a program has left that was killed before its decision.
    let gid = format!(
        "ordid:{NAME}:{}:0:2",
        TenantId::generate().to_raw().simple()
    );
    let left = format!(
        "BEGIN; INSERT INTO tenants VALUES (gen_random_uuid(), 'x'); PREPARE TRANSACTION '{gid}'"
    );
    let mut connection = direct[2].acquire().await?;
    for sql in left.split("; ") {
        Postgres::execute_in(&mut connection, sql).await?;
    }
    assert_eq!(orphans(&pools).await?, [(2, OrphanDecision::NotCommitted)]);
    let recovered = recover_prepared(NAME, &pools, ANY_AGE).await?;
    assert_eq!(recovered.rolled_back, [gid]);
    drop(connection);
    check(&direct, ROWS).await?;
    for pool in direct {
        pool.close().await;
    }
    Ok(())
}
