//! Two-phase commits over three databases of two servers: refused rows, connections that are cut at each phase, recoveries
//! beside flushes, servers and processes that are killed.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, OnceLock},
    time::Duration,
};

use libtest_mimic::Trial;
use ordid::{KeyType as _, uuid::Uuid};
use ordid_harness::{Policy, Server};
use ordid_sqlx::{
    EngineProfile, Error, Flushed, OrphanDecision, Retry, ShardedUnitOfWork, Sharding,
    prepared_orphans, recover_prepared,
};
use ordid_tests::{
    proxy::{At, Fault, Proxy},
    servers::{Cleanup, Servers},
};
use sqlx::{MySql, Pool, Postgres, Row as _, pool::PoolOptions};

use self::prepares::{Options, Prepares, roll_back};
use super::{Second, Tenant, TenantId};
use crate::{
    Outcome,
    database::{Executes as _, read},
    ignored,
    retry::proxy,
    run,
};

pub mod killed;
mod prepares;
mod recovered;
mod restarted;
mod xa;

pub const SHARDS: usize = 3;
/// The rows of a flush on each shard.
const ROWS: usize = 3;
/// A recovery that leaves no transaction alone.
pub const ANY_AGE: Duration = Duration::ZERO;

/// The databases of a test, and their name: a server of MySQL knows no databases in the ids of what is prepared.
pub struct Pools<DB: Prepares> {
    pub name: String,
    pools: Vec<Pool<DB>>,
}

impl<DB: Prepares> Clone for Pools<DB> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            pools: self.pools.clone(),
        }
    }
}

impl<DB: Prepares> Pools<DB> {
    fn new(pools: Vec<Pool<DB>>) -> Self {
        let name = Uuid::generate().simple().to_string();
        Self {
            name: name[16..].to_owned(),
            pools,
        }
    }

    /// Returns these databases, in this order.
    fn of(&self, order: &[usize]) -> Self {
        let pools = order.iter().map(|shard| self[*shard].clone());
        Self {
            name: self.name.clone(),
            pools: pools.collect(),
        }
    }
}

impl<DB: Prepares> Deref for Pools<DB> {
    type Target = Vec<Pool<DB>>;

    fn deref(&self) -> &Self::Target {
        &self.pools
    }
}

impl<DB: Prepares> DerefMut for Pools<DB> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.pools
    }
}

/// The second server of an engine, once a test asks for it.
trait Seconds: Clone + Send + 'static {
    fn url(&self) -> Result<String, String>;
}

impl Seconds for Second {
    fn url(&self) -> Result<String, String> {
        super::second_url(self)
    }
}

/// One that the tests start themselves.
#[derive(Clone)]
struct Started(&'static str, Arc<OnceLock<Result<Server, String>>>);

impl Started {
    fn new(name: &'static str) -> Self {
        Self(name, Arc::default())
    }
}

impl Seconds for Started {
    fn url(&self) -> Result<String, String> {
        let start = || ordid_harness::start(self.0).map_err(|error| error.to_string());
        let server = self.1.get_or_init(start).as_ref();
        server.map(Server::url).map_err(Clone::clone)
    }
}

pub fn trials(servers: &Servers, second: &Second, trials: &mut Vec<Trial>) {
    on_engine::<Postgres>("postgres", servers, second, trials);
    let name = "what_decides_is_on_the_disk_before_anything_follows";
    let test =
        async |pools| recovered::what_decides_is_on_the_disk_before_anything_follows(pools).await;
    trials.push(on_three(servers, second, "postgres", name, test));
    let name = "transactions_are_prepared_and_ended_over_other_connections";
    trials.push(behind_pgbouncer(servers, name, over_other_connections));
    for engine in ["mariadb", "mysql"] {
        let second = Started::new(engine);
        on_engine::<MySql>(engine, servers, &second, trials);
        xa::trials(engine, servers, &second, trials);
    }
}

fn on_engine<DB: Prepares>(
    engine: &'static str,
    servers: &Servers,
    second: &impl Seconds,
    trials: &mut Vec<Trial>,
) {
    macro_rules! add {
        ($($test:ident),+ $(,)?) => {$(
            trials.push(on_three(servers, second, engine, stringify!($test), async |pools: Pools<DB>| {
                $test(pools).await
            }));
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
        a_process_killed_at_each_poll_leaves_all_rows_or_none,
        a_process_killed_between_two_steps_leaves_all_rows_or_none,
    );
    trials.push(restarted::trial::<DB>(engine, servers));
}

/// Makes two databases on the first server and one on the second.
fn on_three<DB: Prepares, F: Future<Output = Outcome>>(
    servers: &Servers,
    second: &impl Seconds,
    engine: &'static str,
    name: &str,
    test: impl FnOnce(Pools<DB>) -> F + Send + 'static,
) -> Trial {
    let name = format!("{engine}::shards::two_phase::{name}");
    let first =
        servers
            .url(engine)
            .and_then(|url| match (engine, ordid_harness::policy("postgres_2")) {
                ("postgres", Ok(Policy::Skip(reason))) => Err(reason),
                ("postgres", Err(error)) => Err(error.to_string()),
                _ => Ok(url),
            });
    let first = match first {
        Ok(url) => url,
        Err(reason) => return ignored(name, reason),
    };
    let second = second.clone();
    Trial::test(name, move || {
        run(async || {
            let second = second.url()?;
            on_databases([&first, &second, &first], DB::patiently, test).await
        })
    })
}

/// Makes three databases behind PgBouncer.
fn behind_pgbouncer<F: Future<Output = Outcome>>(
    servers: &Servers,
    name: &str,
    test: impl FnOnce(Pools<Postgres>) -> F + Send + 'static,
) -> Trial {
    let name = format!("pgbouncer::shards::two_phase::{name}");
    match servers.url("pgbouncer") {
        Err(reason) => ignored(name, reason),
        Ok(url) => Trial::test(name, move || {
            run(async || on_databases([&*url; SHARDS], |it| it, test).await)
        }),
    }
}

async fn on_databases<DB: Prepares, F: Future<Output = Outcome>>(
    urls: [&str; SHARDS],
    options: impl Fn(Options<DB>) -> Options<DB>,
    test: impl FnOnce(Pools<DB>) -> F,
) -> Outcome {
    let (pools, cleanups) = databases(urls, options).await?;
    let outcome = test(pools.clone()).await;
    forget_prepared(&pools).await?;
    for pool in pools.iter() {
        pool.close().await;
    }
    for cleanup in cleanups {
        cleanup.await?;
    }
    outcome
}

/// Makes three databases. The futures drop them.
async fn databases<DB: Prepares>(
    urls: [&str; SHARDS],
    options: impl Fn(Options<DB>) -> Options<DB>,
) -> Outcome<(Pools<DB>, Vec<Cleanup>)> {
    let mut pools = Vec::new();
    let mut cleanups = Vec::new();
    for url in urls {
        let (pool, cleanup) = DB::scratch(url).await?;
        let options = options((*pool.connect_options()).clone());
        pools.push(DB::patient(6).connect_with(options).await?);
        cleanups.push(cleanup);
    }
    for pool in &pools {
        DB::script(pool, DB::TENANTS).await?;
        DB::create_flushes(pool).await?;
    }
    Ok((Pools::new(pools), cleanups))
}

/// A database with a prepared transaction cannot be dropped.
async fn forget_prepared<DB: Prepares>(pools: &Pools<DB>) -> Result<(), sqlx::Error> {
    for (shard, pool) in pools.iter().enumerate() {
        for gid in prepared(pools, shard).await? {
            roll_back(pool, &gid).await?;
        }
    }
    Ok(())
}

/// Returns the ids of what is prepared for a shard.
async fn prepared<DB: Prepares>(
    pools: &Pools<DB>,
    shard: usize,
) -> Result<Vec<String>, sqlx::Error> {
    let mut gids = DB::gids(&pools[shard]).await?;
    let (start, end) = (format!("ordid:{}:", pools.name), format!(":{shard}"));
    gids.retain(|it| it.starts_with(&start) && it.ends_with(&end));
    Ok(gids)
}

pub fn sharding() -> Result<Sharding, ordid::Error> {
    Sharding::by_hash(SHARDS)
}

pub fn begin<DB: Prepares>(pools: &Pools<DB>) -> Result<ShardedUnitOfWork<DB>, ordid::Error> {
    let retry = Retry::DEFAULT.with_delays(Duration::from_millis(20), Duration::from_millis(100));
    let work = ShardedUnitOfWork::new(sharding()?);
    Ok(work.with_retry(retry).two_phase_commit(&pools.name))
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

fn fill<DB: Prepares>(
    pools: &Pools<DB>,
) -> Result<(ShardedUnitOfWork<DB>, Vec<Tenant>), ordid::Error> {
    let mut work = begin(pools)?;
    let tenants = tenants(ROWS)?;
    for tenant in &tenants {
        DB::place(&mut work, tenant.clone())?;
    }
    Ok((work, tenants))
}

/// Returns the rows of each shard.
async fn rows<DB: Prepares>(pools: &Pools<DB>) -> Result<Vec<usize>, sqlx::Error> {
    let mut rows = Vec::new();
    for pool in pools.iter() {
        let found: Vec<Tenant> = read(pool, "SELECT * FROM tenants").await?;
        rows.push(found.len());
    }
    Ok(rows)
}

/// Asserts that these rows are there, and nothing is prepared.
async fn check<DB: Prepares>(pools: &Pools<DB>, expected: usize) -> Outcome {
    assert_eq!(rows(pools).await?, [expected; SHARDS]);
    for shard in 0..pools.len() {
        assert_eq!(prepared(pools, shard).await?, [""; 0]);
    }
    Ok(())
}

/// Returns the pools, but one goes through a proxy that looks out for this text.
async fn through<DB: Prepares>(
    pools: &Pools<DB>,
    shard: usize,
    text: &'static str,
) -> Outcome<(Pools<DB>, Proxy)> {
    let proxy = proxy(&pools[shard]).await?;
    proxy.look_for(text);
    let options = DB::proxied(&pools[shard].connect_options(), proxy.port());
    let mut through = pools.clone();
    through[shard] = DB::patient(2)
        .acquire_timeout(Duration::from_secs(5))
        .test_before_acquire(false)
        .connect_lazy_with(options);
    Ok((through, proxy))
}

fn sum(flushed: &[Flushed]) -> usize {
    flushed.iter().map(Flushed::rows).sum()
}

async fn orphans<DB: Prepares>(pools: &Pools<DB>) -> Result<Vec<(usize, OrphanDecision)>, Error> {
    let orphans = prepared_orphans(&pools.name, pools).await?;
    Ok(orphans.iter().map(|it| (it.shard, it.decision)).collect())
}

async fn all_shards_are_committed_together<DB: Prepares>(pools: Pools<DB>) -> Outcome {
    let (mut work, tenants) = fill(&pools)?;
    let flushed = work.flush(&pools).await?;
    assert_eq!(sum(&flushed), tenants.len());
    assert!(work.is_empty());
    check(&pools, ROWS).await?;
    // The shard that decides has a fence, too.
    for (pool, markers) in pools.iter().zip([2, 1, 1]) {
        assert_eq!(DB::count(pool, "ordid_flushes").await?, markers);
    }
    // The rest of a unit of work goes on as usual.
    for mut tenant in tenants {
        tenant.name.push('!');
        DB::update_placed(&mut work, tenant)?;
    }
    let flushed = work.flush(&pools).await?;
    assert_eq!(
        flushed.iter().map(Flushed::updated).sum::<usize>(),
        3 * ROWS
    );
    for pool in pools.iter() {
        assert_eq!(DB::count(pool, "tenants WHERE name LIKE '%!'").await?, 3);
    }
    // Enough rows for `COPY`, and for a temporary table if that could be prepared.
    let mut many = Vec::new();
    for tenant in self::tenants(2_500)? {
        DB::place(&mut work, tenant.clone())?;
        many.push(tenant);
    }
    work.flush(&pools).await?;
    for tenant in many {
        DB::update_placed(&mut work, tenant)?;
    }
    work.flush(&pools).await?;
    check(&pools, ROWS + 2_500).await
}

async fn a_row_that_one_shard_refuses_is_written_nowhere<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    for refuses in 0..SHARDS {
        let (mut work, tenants) = fill(&pools)?;
        let taken = &tenants[refuses * ROWS + 1];
        let name = &taken.name;
        let other = DB::literal(TenantId::generate().to_raw());
        let insert = format!("INSERT INTO tenants VALUES ({other}, '{name}')");
        DB::script(&pools[refuses], &insert).await?;

        let error = work.flush(&pools).await.unwrap_err();
        let text = error.to_string();
        let start = format!(
            "nothing was written on any of 3 shards; shard {refuses}: cannot insert into tenants (rows 0 to 2), \
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

        let delete = format!("DELETE FROM tenants WHERE id = {other}");
        DB::script(&pools[refuses], &delete).await?;
        assert_eq!(sum(&work.flush(&pools).await?), tenants.len());
        check(&pools, (refuses + 1) * ROWS).await?;
    }
    Ok(())
}

async fn one_shard_alone_prepares_nothing<DB: Prepares>(pools: Pools<DB>) -> Outcome {
    let mut work = begin(&pools)?;
    for tenant in &tenants(ROWS)?[ROWS..2 * ROWS] {
        DB::place(&mut work, tenant.clone())?;
    }
    let (through, proxy) = through(&pools, 1, DB::PREPARE).await?;
    work.flush(&through).await?;
    assert_eq!(proxy.last_traffic().commit, None);
    assert_eq!(rows(&pools).await?, [0, ROWS, 0]);
    assert_eq!(DB::count(&pools[1], "ordid_flushes").await?, 0);
    Ok(())
}

async fn what_does_not_go_together_is_refused_before_anything_is_sent<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    let refused = async |work: ShardedUnitOfWork<DB>, words: &str| {
        let mut work = work;
        for tenant in tenants(1)? {
            DB::place(&mut work, tenant)?;
        }
        let error = work.flush(&pools).await.unwrap_err();
        assert!(
            error.is_plan() && error.to_string().contains(words),
            "{error}"
        );
        Outcome::Ok(())
    };
    let limits = ordid_sqlx::ChunkLimits::rows(10);
    refused(begin(&pools)?.in_chunks(limits), "either `in_chunks`").await?;
    refused(
        begin(&pools)?.without_record(),
        "cannot be `without_record`",
    )
    .await?;
    refused(begin(&pools)?.two_phase_commit("a:b"), "the name \"a:b\"").await?;
    let words = format!("shard 0 is {}", DB::WITHOUT.name);
    refused(begin(&pools)?.with_engine(DB::WITHOUT), &words).await?;
    check(&pools, 0).await
}

/// Before it has passed, it never comes; behind it, it is carried out and there is no answer.
async fn a_connection_cut_at_prepare_is_replaced<DB: Prepares>(pools: Pools<DB>) -> Outcome {
    let mut expected = 0;
    for shard in [1, 2] {
        for bytes in [0, 4, 200] {
            let (through, proxy) = through(&pools, shard, DB::PREPARE).await?;
            proxy.plan([Fault::Cut(At::Commit(bytes))]);
            let (mut work, _) = fill(&pools)?;
            let flushed = work.flush(&through).await?;
            assert_eq!(flushed[shard].rows(), ROWS);
            expected += ROWS;
            check(&pools, expected).await?;
        }
    }
    Ok(())
}

/// Another attempt finds its marker row locked, and then the transaction prepared.
async fn a_prepare_that_lands_late_is_found<DB: Prepares>(pools: Pools<DB>) -> Outcome {
    let (through, proxy) = through(&pools, 1, DB::PREPARE).await?;
    proxy.plan([Fault::HoldCommit]);
    let (mut work, _) = fill(&pools)?;
    let lands = async {
        // Under an id that is taken, nothing begins, and so nothing waits.
        if DB::KNOWS_ITS_IDS {
            while proxy.traffic().len() < 2 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        } else {
            while DB::count(&pools[1], DB::WAITING).await? == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        proxy.release();
        Ok::<_, sqlx::Error>(())
    };
    let (flushed, landed) = tokio::join!(work.flush(&through), lands);
    landed?;
    assert_eq!(sum(&flushed?), 3 * ROWS);
    check(&pools, ROWS).await
}

async fn a_connection_cut_at_the_second_phase_is_replaced<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    // Where the connection is closed that has prepared, another one ends what is prepared.
    let is_bound = DB::is_bound(&pools[2]).await?;
    let faults = |bytes| {
        let before = is_bound.then_some(Fault::None);
        before.into_iter().chain([Fault::Cut(At::Commit(bytes))])
    };
    let mut expected = 0;
    for bytes in [0, 4, 200] {
        let (through, proxy) = through(&pools, 2, DB::COMMIT_PREPARED).await?;
        proxy.plan(faults(bytes));
        let (mut work, _) = fill(&pools)?;
        assert_eq!(sum(&work.flush(&through).await?), 3 * ROWS);
        // On a busy machine the pool may have opened a connection more.
        let traffic = proxy.traffic();
        let ends = traffic.iter().any(|it| it.commit.is_some());
        assert!(ends, "{traffic:?}");
        assert!(work.is_empty());
        expected += ROWS;
        check(&pools, expected).await?;
    }
    // What is rolled back is tried again, too.
    for bytes in [0, 4, 200] {
        let (through, proxy) = through(&pools, 2, DB::ROLLBACK_PREPARED).await?;
        proxy.plan(faults(bytes));
        let (mut work, tenants) = fill(&pools)?;
        let id = decided_by_the_first()?;
        let name = tenants[0].name.clone();
        DB::place(&mut work, Tenant { id, name })?;
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

async fn a_missing_table_of_marker_rows_is_told<DB: Prepares>(pools: Pools<DB>) -> Outcome {
    for shard in 0..SHARDS {
        DB::script(&pools[shard], "ALTER TABLE ordid_flushes RENAME TO gone").await?;
        let (mut work, _) = fill(&pools)?;
        let error = work.flush(&pools).await.unwrap_err();
        let outcome = &error.shards().expect("sent")[shard];
        let why = outcome.as_ref().unwrap_err();
        assert!(why.is_flushes_table_missing(), "{error}");
        let words =
            "the table `ordid_flushes` is missing, which each shard of a two-phase commit needs";
        assert!(why.to_string().contains(words), "{why}");
        DB::script(&pools[shard], "ALTER TABLE gone RENAME TO ordid_flushes").await?;
        check(&pools, 0).await?;
    }
    Ok(())
}

/// The pooler gives each transaction another connection: also the one that ends what another has prepared.
async fn over_other_connections(pools: Pools<Postgres>) -> Outcome {
    let mut direct: Vec<Pool<Postgres>> = Vec::new();
    for pool in pools.iter() {
        let port = sqlx::raw_sql("SELECT inet_server_port()").fetch_one(pool);
        let port: i32 = port.await?.try_get(0)?;
        let options = (*pool.connect_options()).clone();
        let options = options.port(u16::try_from(port)?);
        direct.push(PoolOptions::new().connect_with(options).await?);
    }
    let direct = Pools {
        name: pools.name.clone(),
        pools: direct,
    };
    let mut work = begin(&pools)?.with_engine(EngineProfile::PGBOUNCER);
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
        "ordid:{}:{}:0:2",
        pools.name,
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
    let recovered = recover_prepared(&pools.name, &pools, ANY_AGE).await?;
    assert_eq!(recovered.rolled_back, [gid]);
    drop(connection);
    check(&direct, ROWS).await?;
    for pool in direct.iter() {
        pool.close().await;
    }
    Ok(())
}
