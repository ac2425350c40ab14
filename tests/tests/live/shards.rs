//! One unit of work over two databases: of two PostgreSQL servers, and two SQLite files.

mod everywhere;
mod two_phase;

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use libtest_mimic::Trial;
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_harness::{Access, Policy};
use ordid_sqlx::{Error, Flushed, ShardedUnitOfWork, Sharding};
use ordid_tests::servers::{Scratch, Servers};
use sqlx::{
    Pool, Postgres, Sqlite,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

use self::everywhere::{
    Airline, Flight, progress_is_that_of_all_shards, what_is_everywhere_is_on_each_shard,
};
use crate::{
    Outcome,
    database::{Keeps, Live, Reads, Work, begin_sharded, read},
    ignored, run,
};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct TenantId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct OrderId(Uuid);

#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "tenants", columns)]
pub struct Tenant {
    #[ordid(key)]
    pub id: TenantId,
    pub name: String,
}

#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "orders")]
pub struct Order {
    #[ordid(key)]
    pub id: OrderId,
    #[ordid(parent)]
    pub tenant: TenantId,
    pub total: i64,
}

/// A child of a child: its tenant's key is a column of it, too.
#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "lines")]
pub struct Line {
    #[ordid(key)]
    pub id: Option<Uuid>,
    #[ordid(parent)]
    pub tenant: TenantId,
    #[ordid(parent)]
    pub order_id: OrderId,
}

/// Rows follow their tenant.
pub fn routed(sharding: Sharding) -> Sharding {
    sharding
        .route(|order: &Order| order.tenant)
        .route(|line: &Line| line.tenant)
}

/// The databases of the two shards.
pub type Pools<DB> = [Pool<DB>; 2];

/// A database that a shard can be.
pub trait Shards:
    Live
    + Keeps<Tenant>
    + Keeps<Order>
    + Keeps<Line>
    + Reads<Tenant>
    + Reads<Order>
    + Reads<Line>
    + Keeps<Airline>
    + Keeps<Flight>
    + Reads<Airline>
    + Reads<Flight>
{
    /// Begins a transaction before which no other writes orders.
    const LOCK: &'static [&'static str];
}

impl Shards for Postgres {
    const LOCK: &'static [&'static str] = &["BEGIN", "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE"];
}

impl Shards for Sqlite {
    const LOCK: &'static [&'static str] = &["BEGIN IMMEDIATE"];
}

type Test<DB> = fn(Pools<DB>) -> Pin<Box<dyn Future<Output = Outcome>>>;

/// The tests of a database.
fn tests<DB: Shards>() -> [(&'static str, Test<DB>); 10] {
    macro_rules! tests {
        ($($test:ident),+ $(,)?) => {
            [$((stringify!($test), (|pools| Box::pin($test(pools))) as Test<DB>)),+]
        };
    }
    tests![
        rows_are_on_their_shard_and_nowhere_else,
        ranges_split_at_their_boundary,
        one_shard_refuses_and_the_other_commits,
        a_shard_out_of_reach_is_flushed_later,
        what_cannot_be_planned_is_sent_nowhere,
        shards_do_not_wait_for_each_other,
        updates_and_deletes_go_to_their_shard,
        a_parent_elsewhere_is_refused,
        what_is_everywhere_is_on_each_shard,
        progress_is_that_of_all_shards,
    ]
}

async fn create<DB: Live>(pools: &Pools<DB>) -> Result<(), sqlx::Error> {
    let key = DB::KEY;
    create_by(
        pools,
        &format!(
            "CREATE TABLE tenants (id {key} NOT NULL PRIMARY KEY, name TEXT NOT NULL);
             CREATE TABLE orders (id {key} NOT NULL PRIMARY KEY,
                tenant {key} NOT NULL REFERENCES tenants (id), total BIGINT NOT NULL);
             CREATE TABLE lines (id {key} NOT NULL PRIMARY KEY,
                tenant {key} NOT NULL REFERENCES tenants (id),
                order_id {key} NOT NULL REFERENCES orders (id))"
        ),
    )
    .await
}

/// Makes these tables, and that of flushes, in each shard.
async fn create_by<DB: Live>(pools: &Pools<DB>, sql: &str) -> Result<(), sqlx::Error> {
    for pool in pools {
        DB::script(pool, sql).await?;
        DB::create_flushes(pool).await?;
    }
    Ok(())
}

async fn tenants<DB: Shards>(pool: &Pool<DB>) -> Result<Vec<Tenant>, sqlx::Error> {
    read(pool, "SELECT * FROM tenants ORDER BY id").await
}

async fn orders<DB: Shards>(pool: &Pool<DB>) -> Result<Vec<Order>, sqlx::Error> {
    read(pool, "SELECT * FROM orders ORDER BY id").await
}

async fn lines<DB: Shards>(pool: &Pool<DB>) -> Result<Vec<Line>, sqlx::Error> {
    read(pool, "SELECT * FROM lines ORDER BY id").await
}

/// Adds a tenant with two orders and four lines, the children first.
fn add<DB: Shards>(
    work: &mut Work<ShardedUnitOfWork<DB>>,
    tenant: &Tenant,
) -> Result<(), ordid::Error> {
    for total in [1, 2] {
        let order = Order {
            id: OrderId::generate(),
            tenant: tenant.id,
            total,
        };
        for _ in 0..2 {
            work.add(Line {
                id: None,
                tenant: tenant.id,
                order_id: order.id,
            })?;
        }
        work.add(order)?;
    }
    work.add(tenant.clone()).map(drop)
}

/// Adds so many new tenants.
fn fill<DB: Shards>(
    sharding: &Sharding,
    count: usize,
) -> Result<(Work<ShardedUnitOfWork<DB>>, Vec<Tenant>), ordid::Error> {
    let mut work = begin_sharded::<DB>(sharding.clone());
    let tenants: Vec<_> = (0..count)
        .map(|number| Tenant {
            id: TenantId::generate(),
            name: number.to_string(),
        })
        .collect();
    tenants
        .iter()
        .try_for_each(|tenant| add(&mut work, tenant))?;
    Ok((work, tenants))
}

/// All rows are there once, each on its shard.
async fn check<DB: Shards>(pools: &Pools<DB>, sharding: &Sharding, added: &[Tenant]) -> Outcome {
    let mut found = Vec::new();
    for (shard, pool) in pools.iter().enumerate() {
        let here = tenants(pool).await?;
        let (orders, lines) = (orders(pool).await?, lines(pool).await?);
        assert_eq!(
            (orders.len(), lines.len()),
            (here.len() * 2, here.len() * 4)
        );
        let ids = here.iter().map(|it| it.id);
        for id in ids.chain(orders.iter().map(|it| it.tenant)) {
            assert_eq!(sharding.shard(id)?, shard);
        }
        for line in lines {
            assert_eq!(sharding.shard(line.tenant)?, shard);
        }
        found.extend(here);
    }
    found.sort_by_key(|tenant| tenant.id);
    assert_eq!(found, added, "each of them once, over all shards");
    Ok(())
}

fn rows(outcomes: &[Result<Flushed, Error>]) -> Vec<Option<usize>> {
    outcomes
        .iter()
        .map(|it| it.as_ref().ok().map(Flushed::rows))
        .collect()
}

async fn rows_are_on_their_shard_and_nowhere_else<DB: Shards>(pools: Pools<DB>) -> Outcome {
    create(&pools).await?;
    let sharding = routed(Sharding::by_hash(2)?);
    let (mut work, added) = fill::<DB>(&sharding, 700)?;
    assert_eq!(work.len(), 700 * 7);
    let parts: Vec<_> = work.shards().iter().map(|work| work.len()).collect();
    assert!(
        parts.iter().all(|rows| (2_000..2_900).contains(rows)),
        "{parts:?}"
    );
    let planned: Vec<_> = work.plan()?.iter().map(|plan| plan.rows()).collect();
    assert_eq!(planned, parts);
    let flushed = work.flush(&pools).await?;
    assert_eq!(flushed.iter().map(Flushed::rows).collect::<Vec<_>>(), parts);
    assert!(work.is_empty());
    check(&pools, &sharding, &added).await
}

/// With a boundary in the midst of the keys, the older half is in the first database.
async fn ranges_split_at_their_boundary<DB: Shards>(pools: Pools<DB>) -> Outcome {
    create(&pools).await?;
    let before = TenantId::generate();
    let (mut work, old) = fill::<DB>(&routed(Sharding::by_ranges([before])?), 50)?;
    assert_eq!(work.shards()[0].len(), 0, "all of them are later");
    work.clear();
    let boundary = TenantId::generate();
    let sharding = routed(Sharding::by_ranges([boundary])?);
    let (mut work, mut added) = fill::<DB>(&sharding, 50)?;
    old.iter().try_for_each(|tenant| add(&mut work, tenant))?;
    added.extend(old);
    added.sort_by_key(|tenant| tenant.id);
    work.flush(&pools).await?;
    check(&pools, &sharding, &added).await?;
    assert_eq!(tenants(&pools[0]).await?, added[..50]);
    assert_eq!(tenants(&pools[1]).await?, added[50..]);
    Ok(())
}

/// A row of one shard is refused: the other's are committed, and flushing again sends what
/// is left, with the same keys.
async fn one_shard_refuses_and_the_other_commits<DB: Shards>(pools: Pools<DB>) -> Outcome {
    create(&pools).await?;
    let sharding = routed(Sharding::by_hash(2)?);
    for refuses in [0, 1] {
        let (mut work, added) = fill::<DB>(&sharding, 100)?;
        let taken = added
            .iter()
            .find(|it| sharding.shard(it.id).ok() == Some(refuses));
        let taken = taken.expect("one of a hundred").clone();
        let id = DB::literal(taken.id.to_raw());
        let insert = format!("INSERT INTO tenants (id, name) VALUES ({id}, 'x')");
        DB::script(&pools[refuses], &insert).await?;

        let left = work.shards()[refuses].len();
        let other = work.shards()[1 - refuses].len();
        let error = work.flush(&pools).await.unwrap_err();
        let outcomes = error.shards().expect("sent");
        let mut expected = vec![Some(other), Some(other)];
        expected[refuses] = None;
        assert_eq!(rows(outcomes), expected);
        let why = outcomes[refuses].as_ref().unwrap_err();
        assert!(why.is_unique_violation() && !why.is_plan(), "{why}");
        assert_eq!(why.key(), Some(&*taken.id.to_string()));
        let start = format!(
            "1 of 2 shards failed, and the rows of the others are written; shard {refuses}: \
             cannot insert into tenants "
        );
        assert!(error.to_string().starts_with(&start), "{error}");
        assert_eq!((work.len(), work.shards()[1 - refuses].len()), (left, 0));
        assert_eq!(
            tenants(&pools[refuses]).await?.len(),
            1,
            "nothing of this part"
        );
        assert_eq!(tenants(&pools[1 - refuses]).await?.len() * 7, other);

        // Again, to no avail: what is committed is not sent once more.
        let error = work.flush(&pools).await.unwrap_err();
        let mut expected = vec![Some(0), Some(0)];
        expected[refuses] = None;
        assert_eq!(rows(error.shards().expect("sent")), expected);

        DB::script(&pools[refuses], "DELETE FROM tenants WHERE name = 'x'").await?;
        let flushed = work.flush(&pools).await?;
        assert_eq!(flushed.iter().map(Flushed::rows).sum::<usize>(), left);
        check(&pools, &sharding, &added).await?;
        for pool in &pools {
            for table in ["lines", "orders", "tenants"] {
                let sql = format!("DELETE FROM {table}");
                DB::script(pool, &sql).await?;
            }
        }
    }
    Ok(())
}

/// A database that cannot be reached fails its own part only, also for good.
async fn a_shard_out_of_reach_is_flushed_later<DB: Shards>(pools: Pools<DB>) -> Outcome {
    create(&pools).await?;
    let sharding = routed(Sharding::by_hash(2)?);
    let (mut work, added) = fill::<DB>(&sharding, 60)?;
    let closed = Pool::<DB>::connect_lazy_with((*pools[0].connect_options()).clone());
    closed.close().await;
    let error = work
        .flush(&[closed.clone(), pools[1].clone()])
        .await
        .unwrap_err();
    let outcomes = error.shards().expect("tried");
    assert!(
        outcomes[0]
            .as_ref()
            .is_err_and(|it| !it.is_commit_unknown())
    );
    assert!(outcomes[1].is_ok() && work.shards()[1].is_empty());
    let (first, second): (Vec<_>, Vec<_>) = added
        .iter()
        .cloned()
        .partition(|it| sharding.shard(it.id).ok() == Some(0));
    assert_eq!(tenants(&pools[0]).await?, []);
    assert_eq!(tenants(&pools[1]).await?, second);

    // A shard with nothing to write is not asked: it may be away.
    work.flush(&[pools[0].clone(), closed]).await?;
    assert_eq!(tenants(&pools[0]).await?, first);
    check(&pools, &sharding, &added).await
}

/// What can be known before is found before: no shard is sent anything.
async fn what_cannot_be_planned_is_sent_nowhere<DB: Shards>(pools: Pools<DB>) -> Outcome {
    create(&pools).await?;
    let sharding = routed(Sharding::by_hash(2)?);
    let (mut work, added) = fill::<DB>(&sharding, 20)?;
    for wrong in [&pools[..1], &[&pools[..], &pools[..1]].concat()] {
        let error = work.flush(wrong).await.unwrap_err();
        assert!(error.is_plan() && error.shards().is_none());
        assert_eq!(
            error.to_string(),
            format!(
                "cannot plan the flush, nothing was sent: rows are spread over 2 databases, \
                 and {} were given",
                wrong.len()
            )
        );
    }
    // A key twice, in the second shard alone.
    let twice = added
        .iter()
        .find(|it| sharding.shard(it.id).ok() == Some(1));
    work.add(twice.expect("one of twenty").clone())?;
    let error = work.flush(&pools).await.unwrap_err();
    assert!(error.is_plan() && error.shards().is_none(), "{error}");
    for pool in &pools {
        assert_eq!(tenants(pool).await?, []);
    }
    assert_eq!(work.len(), 20 * 7 + 1);

    // Parents are not looked for elsewhere.
    let mut work = begin_sharded::<DB>(Sharding::by_hash(2)?);
    let order = Order {
        id: OrderId::generate(),
        tenant: added[0].id,
        total: 1,
    };
    let error = work.add(order).unwrap_err();
    assert!(error.is_plan() && work.is_empty(), "{error}");
    Ok(())
}

/// While one shard waits for a lock the other commits: neither waits for the other. Dropped
/// then, the flush leaves all of one part and none of the other.
async fn shards_do_not_wait_for_each_other<DB: Shards>(pools: Pools<DB>) -> Outcome {
    create(&pools).await?;
    let sharding = routed(Sharding::by_hash(2)?);
    let mut all = Vec::new();
    for held in [0, 1] {
        let before = tenants(&pools[1 - held]).await?.len();
        let (mut work, added) = fill::<DB>(&sharding, 80)?;
        let (left, other) = (work.shards()[held].len(), work.shards()[1 - held].len());
        let mut holder = pools[held].acquire().await?;
        for sql in DB::LOCK {
            DB::execute_in(&mut holder, sql).await?;
        }
        let committed = async {
            while tenants(&pools[1 - held]).await?.len() == before {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok::<_, sqlx::Error>(())
        };
        tokio::select! {
            biased;
            outcome = work.flush(&pools) => panic!("not held: {outcome:?}"),
            outcome = committed => outcome?,
        }
        DB::execute_in(&mut holder, "ROLLBACK").await?;
        drop(holder);
        assert_eq!(work.shards()[held].len(), left);
        assert_eq!(tenants(&pools[1 - held]).await?.len(), before + other / 7);
        // The answer to its COMMIT may not have been read: then the database is asked first.
        assert_eq!(work.flush(&pools).await?[held].rows(), left);
        assert!(work.is_empty());
        all.extend(added);
        check(&pools, &sharding, &all).await?;
    }
    Ok(())
}

async fn updates_and_deletes_go_to_their_shard<DB: Shards>(pools: Pools<DB>) -> Outcome {
    create(&pools).await?;
    let sharding = routed(Sharding::by_hash(2)?);
    let (mut work, mut added) = fill::<DB>(&sharding, 40)?;
    work.flush(&pools).await?;
    let (gone, kept) = added.split_at_mut(10);
    for (number, tenant) in kept.iter_mut().enumerate() {
        tenant.name.push_str(" renamed");
        match number % 3 {
            0 => work.update(tenant.clone())?,
            1 => work.update_columns(tenant.clone(), Tenant::name)?,
            _ => {
                work.upsert(tenant.clone())?;
            }
        }
    }
    let is_gone = |id| gone.iter().any(|tenant| tenant.id == id);
    for pool in &pools {
        for order in orders(pool).await?.iter().filter(|it| is_gone(it.tenant)) {
            work.delete(order)?;
        }
        for line in lines(pool).await?.iter().filter(|it| is_gone(it.tenant)) {
            work.delete(line)?;
        }
    }
    gone.iter().try_for_each(|tenant| work.delete(tenant))?;
    let flushed = work.flush(&pools).await?;
    let sum = |of: fn(&Flushed) -> usize| flushed.iter().map(of).sum::<usize>();
    assert_eq!((sum(Flushed::updated), sum(Flushed::deleted)), (30, 70));
    check(&pools, &sharding, kept).await?;

    // A row does not move: where its new tenant lives it is missing.
    let home = |id| sharding.shard(id).expect("by hash");
    let mut order = orders(&pools[0]).await?.remove(0);
    let elsewhere = kept
        .iter()
        .find(|it| home(it.id) == 1)
        .expect("one of thirty");
    order.tenant = elsewhere.id;
    work.update(order)?;
    let error = work.flush(&pools).await.unwrap_err();
    let outcomes = error.shards().expect("sent");
    assert!(
        outcomes[1].as_ref().unwrap_err().is_missing_row(),
        "{error}"
    );
    check(&pools, &sharding, kept).await
}

/// A row whose parent is on another shard is the database's to refuse.
async fn a_parent_elsewhere_is_refused<DB: Shards>(pools: Pools<DB>) -> Outcome {
    create(&pools).await?;
    // By its own key, which is not where its tenant is.
    let sharding = Sharding::by_hash(2)?.route(|order: &Order| order.id);
    let mut work = begin_sharded::<DB>(sharding.clone());
    let tenant = Tenant {
        id: TenantId::generate(),
        name: "Ada".into(),
    };
    let home = sharding.shard(work.add(tenant.clone())?)?;
    let order = loop {
        let id = OrderId::generate();
        if sharding.shard(id)? != home {
            break Order {
                id,
                tenant: tenant.id,
                total: 1,
            };
        }
    };
    work.add(order)?;
    let error = work.flush(&pools).await.unwrap_err();
    let outcomes = error.shards().expect("sent");
    assert!(outcomes[home].is_ok());
    assert!(
        outcomes[1 - home]
            .as_ref()
            .unwrap_err()
            .is_foreign_key_violation()
    );
    let found: i64 = DB::count(&pools[1 - home], "orders").await?;
    assert_eq!(found, 0);
    Ok(())
}
pub use self::two_phase::killed::run_if_told;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let second = Arc::new(OnceLock::new());
    for (name, test) in tests::<Postgres>() {
        trials.push(on_servers(servers, &second, name, test));
    }
    two_phase::trials(servers, &second, trials);
    for (name, test) in tests::<Sqlite>() {
        trials.push(in_files(name, test));
    }
}

/// The second server, once a test asks for it; stopped with the last of them.
type Second = Arc<OnceLock<Result<Access, String>>>;

/// Returns the address of the second server, which is started if nobody has asked for it yet.
fn second_url(second: &Second) -> Result<String, String> {
    let access =
        second.get_or_init(|| ordid_harness::access("postgres_2").map_err(|it| it.to_string()));
    let url = access.as_ref().map_err(String::clone)?.url();
    url.ok_or_else(|| "no address".to_owned())
}

fn on_servers<F: Future<Output = Outcome>>(
    servers: &Servers,
    second: &Second,
    name: &str,
    test: impl FnOnce(Pools<Postgres>) -> F + Send + 'static,
) -> Trial {
    let name = format!("postgres::shards::{name}");
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
            let second = second_url(&second)?;
            let (one, clean_one) = Postgres::scratch(&first).await?;
            let (other, clean_other) = Postgres::scratch(&second).await?;
            let outcome = test([one, other]).await;
            clean_one.await?;
            clean_other.await?;
            outcome
        })
    })
}

fn in_files<F: Future<Output = Outcome>>(
    name: &str,
    test: impl FnOnce(Pools<Sqlite>) -> F + Send + 'static,
) -> Trial {
    Trial::test(format!("sqlite::shards::{name}"), move || {
        run(async || {
            let folder = tempfile::tempdir()?;
            let open = |name: &str| {
                let options = SqliteConnectOptions::new()
                    .filename(folder.path().join(name))
                    .create_if_missing(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .foreign_keys(true);
                SqlitePoolOptions::new()
                    .max_connections(3)
                    .connect_with(options)
            };
            let pools = [open("one.sqlite").await?, open("other.sqlite").await?];
            let outcome = test(pools.clone()).await;
            for pool in pools {
                pool.close().await;
            }
            outcome
        })
    })
}
