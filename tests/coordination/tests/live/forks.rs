//! F8: a process that makes coordinated keys is forked. On every store the child makes no key that its parent
//! makes: what it has inherited is an error, and it gets a node and numbers of its own, or an error.

use std::{
    collections::HashSet,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_core::{
    Error,
    clock::{SystemClock, Timestamp},
    coordination::{
        AsyncNodeAllocator, AsyncSegmentSource, CoordinationFailure, Grant, NodeAllocator as _,
    },
    entropy::ThreadEntropy,
    generator::{
        AtCeiling, Generator, GrantedGenerator, LeaseKeeper, Policy, SegmentGenerator, Steps,
        WhenEmpty,
    },
    key::Scheme,
    scheme::Snowflake,
};
use ordid_file::FileLease;
use ordid_recorders::tds::{Answer, Column, Recorder, Type};
use ordid_redis::{RedisCounter, RedisLease};
use ordid_sqlx::{Backend, ConnectOptions, SqlCounter, SqlLease};
use ordid_tests::{
    login,
    process::{Child, fork},
    servers::Servers,
    trials::{Outcome, run},
};
use ordid_zookeeper::ZooKeeperCounter;
use sqlx::{Sqlite, sqlite::SqliteConnectOptions};

use crate::{
    redis::{connect, threads},
    segments::count,
    sql::{Network, in_file, on_servers, own_runtime},
    sql_leases::table::{OfOracle, Table, on_oracle, on_tds},
    stores::{Adder, ENDLESS, Threads, fails, failure, later, long, now, own_name},
    zookeeper::{lease_of, own_path, session},
};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let name = "file::forks::a_child_has_nodes_of_its_own";
    trials.push(Trial::test(name, || run(nodes_of_a_folder)));
    on_servers!(
        "forks",
        servers,
        trials,
        a_child_has_nodes_of_its_own,
        a_child_has_numbers_of_its_own,
        a_child_does_not_wait_for_ever,
    );
    trials.push(in_file("forks::a_child_has_no_nodes", nodes_of_a_file));
    let name = "forks::a_child_has_nodes_of_its_own";
    on_tds(trials, servers, name, nodes_of_table, nodes_of_table);
    let name = "forks::a_child_has_no_nodes";
    on_oracle(trials, servers, name, nodes_of_oracle);
    let name = "recorder_of_tds::forks::a_child_leaves_the_connection_to_its_parent";
    trials.push(Trial::test(name, || run(nodes_over_tds)));
    let name = "no_oracle::forks::a_child_does_not_try_to_connect";
    trials.push(Trial::test(name, || run(no_nodes_of_oracle)));
    trials.push(in_file("forks::a_child_has_no_numbers", numbers_of_a_file));
    let mut redis = Adder::new(trials, servers, "redis");
    redis.on("forks::a_child_has_nodes_of_its_own", nodes_of_redis);
    redis.on("forks::a_child_has_numbers_of_its_own", numbers_of_redis);
    redis.on("forks::a_child_has_no_runtime", nodes_of_a_runtime);
    let mut zookeeper = Adder {
        server: "zookeeper",
        ..redis
    };
    zookeeper.on("forks::a_child_has_no_nodes", nodes_of_zookeeper);
    zookeeper.on("forks::a_child_has_no_numbers", numbers_of_zookeeper);
    zookeeper.on("forks::a_child_has_no_session", no_session);
}

/// What a child has of the store that its parent uses.
struct Heritage<T> {
    /// Why it is refused what the parent uses; `None` where that serves both.
    refused: Option<CoordinationFailure>,
    /// Makes another, where there can be one.
    own: Option<Box<dyn Fn() -> T + Send + Sync>>,
}

impl<T> Heritage<T> {
    fn shared() -> Self {
        Self {
            refused: None,
            own: None,
        }
    }

    fn none() -> Self {
        Self {
            refused: Some(CoordinationFailure::Unavailable),
            own: None,
        }
    }

    fn replaced_by(
        own: impl Fn() -> T + Send + Sync + 'static,
        refused: CoordinationFailure,
    ) -> Self {
        Self {
            refused: Some(refused),
            own: Some(Box::new(own)),
        }
    }
}

/// So many keys, one by one and together.
fn made(keys: &impl Generator<Scheme: Scheme<Raw = i64>>, count: usize) -> Result<Vec<i64>, Error> {
    let mut made = Vec::new();
    for _ in 0..count / 2 {
        made.push(keys.try_generate()?.into_raw());
    }
    keys.try_fill_with(count - made.len(), |key| made.push(key.into_raw()))?;
    Ok(made)
}

/// Whatever a generator is asked for, the process was forked.
fn assert_forked(keys: &impl Generator) {
    let asked = [
        keys.try_generate().map(drop),
        keys.try_fill_with(3, drop),
        keys.reserve(3).map(drop),
    ];
    for asked in asked {
        let error = asked.expect_err("what it has is its parent's");
        assert!(error.is_forked(), "{error}");
    }
}

/// Forks on a thread that runs no tasks; the child runs this on a runtime of its own, and returns keys.
fn forked(child: impl AsyncFnOnce() -> Vec<i64> + Send) -> Child {
    let answer = || {
        let keys = own_runtime(child());
        keys.into_iter().flat_map(i64::to_le_bytes).collect()
    };
    thread::scope(|scope| scope.spawn(|| fork(answer)).join()).expect("a child")
}

/// The keys of a child are `none` or some, and nobody has two of all.
async fn come_once(mut keys: Vec<i64>, child: Child, some: bool) -> Outcome {
    let bytes = tokio::task::spawn_blocking(move || child.join()).await?;
    let (of_child, rest) = bytes.as_chunks::<8>();
    assert!(rest.is_empty() && of_child.is_empty() != some);
    keys.extend(of_child.iter().copied().map(i64::from_le_bytes));
    let distinct: HashSet<i64> = keys.iter().copied().collect();
    assert_eq!(distinct.len(), keys.len(), "keys came twice");
    Ok(())
}

type Granted = GrantedGenerator<Snowflake, SystemClock, ThreadEntropy>;

fn generator(grant: Grant) -> Result<Granted, Error> {
    let (policy, at_ceiling) = (Policy::DEFAULT, AtCeiling::Error);
    Granted::new(grant, SystemClock, ThreadEntropy, policy, at_ceiling)
}

/// Forks while a grant is in use and renewed.
async fn inherit_node<A>(lease: A, heritage: Heritage<A>) -> Outcome
where
    A: AsyncNodeAllocator + 'static,
{
    let lease = Arc::new(lease);
    let (policy, at_ceiling) = (Policy::DEFAULT, AtCeiling::Error);
    let keeper = LeaseKeeper::<Snowflake, _, _>::acquire(
        &*lease,
        SystemClock,
        ThreadEntropy,
        policy,
        at_ceiling,
    )
    .await?;
    let keys: Arc<Granted> = keeper.generator();
    let renewing = tokio::spawn(keeper.run(Arc::clone(&lease), tokio::time::sleep));
    let mut all = made(&*keys, 500)?;
    let mut reserved = keys.reserve(500)?;
    all.extend(reserved.next().transpose()?.map(|key| key.into_raw()));

    // Not asked of the generator in the child: whoever renews it may have had its lock.
    let grant = keys.grant();
    let some = heritage.refused.is_none() || heritage.own.is_some();
    let child = forked(async || {
        assert_forked(&*keys);
        let reserved = reserved.next().expect("there are more");
        assert!(reserved.is_err_and(|error| error.is_forked()));
        // The grant is good for nothing, by whatever it is tried.
        assert_eq!(failure(generator(grant)), CoordinationFailure::Fenced);
        let fenced = heritage.refused.unwrap_or(CoordinationFailure::Fenced);
        assert_eq!(failure(lease.renew(&grant, now()).await), fenced);
        assert_eq!(failure(lease.release(&grant, None).await), fenced);

        let acquired = lease.acquire(now(), None).await;
        let own = match (heritage.refused, heritage.own) {
            (None, _) => acquired,
            (Some(refused), own) => {
                assert_eq!(failure(acquired), refused);
                let Some(own) = own else {
                    return Vec::new();
                };
                let lease = own();
                let renewed = lease.renew(&grant, now()).await;
                assert_eq!(failure(renewed), CoordinationFailure::Fenced);
                lease.acquire(now(), None).await
            }
        };
        let own = own.expect("a node of its own");
        assert_ne!(own.node(), grant.node());
        let renewed = keys.renew(own).expect_err("the generator is the parent's");
        assert!(renewed.is_forked(), "{renewed}");
        let keys = generator(own).expect("a generator of its own");
        made(&keys, 1_000).expect("keys of its own")
    });
    all.extend(made(&*keys, 1_000)?);
    for key in reserved {
        all.push(key?.into_raw());
    }
    come_once(all, child, some).await?;

    // The parent goes on as if there had been no child.
    let start = Instant::now();
    while keys.grant().ceiling() == grant.ceiling() {
        assert!(start.elapsed() < ENDLESS, "it is not renewed any more");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let after = keys.grant();
    assert_eq!((after.node(), after.epoch()), (grant.node(), grant.epoch()));
    keys.close();
    renewing.await??;
    Ok(())
}

/// Forks while numbers are in stock and reserved ahead.
async fn inherit_numbers<S>(source: S, heritage: Heritage<S>) -> Outcome
where
    S: AsyncSegmentSource + 'static,
{
    let source = Arc::new(source);
    let wait = WhenEmpty::Wait { max: ENDLESS };
    let (keys, feeder) = SegmentGenerator::fed(Steps::fixed(count(100)), wait);
    let feeding = tokio::spawn(feeder.run(Arc::clone(&source), tokio::time::sleep));
    let half = SegmentGenerator::of(source.reserve(count(100)).await?);
    let mut all = made(&keys, 50)?;
    all.extend(made(&half, 50)?);
    let mut batch = keys.reserve(20)?;
    all.extend(batch.next().transpose()?.map(|key| key.into_raw()));

    let some = heritage.refused.is_none() || heritage.own.is_some();
    let child = forked(async || {
        assert_forked(&keys);
        assert_forked(&half);
        let batched = batch.next().expect("there are more");
        assert!(batched.is_err_and(|error| error.is_forked()));
        let reserved = source.reserve(count(10)).await;
        let mut numbers = Vec::new();
        let replaced;
        let own = match (heritage.refused, heritage.own) {
            (None, _) => {
                numbers.extend(reserved.expect("numbers of its own").values());
                &*source
            }
            (Some(refused), own) => {
                assert_eq!(failure(reserved), refused);
                let Some(own) = own else {
                    return numbers;
                };
                replaced = own();
                &replaced
            }
        };
        // While the parent reserves, too.
        for _ in 0..30 {
            let segment = own.reserve(count(10)).await.expect("numbers of its own");
            numbers.extend(segment.values());
        }
        numbers
    });
    all.extend(made(&keys, 2_000)?);
    all.extend(made(&half, 50)?);
    for key in batch {
        all.push(key?.into_raw());
    }
    drop(keys);
    feeding.await??;
    come_once(all, child, some).await
}

async fn nodes_of_a_folder() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_owned();
    let open = move || Threads(FileLease::open(&path, long(2)).expect("a folder"));
    let lease = open();
    inherit_node(
        lease,
        Heritage::replaced_by(open, CoordinationFailure::Fenced),
    )
    .await
}

/// Its own timeout reaches a child, too. (The first to wait here is the parent.)
async fn a_child_does_not_wait_for_ever<DB: Network>(options: ConnectOptions<DB>) -> Outcome {
    // Nobody answers there.
    let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    let options = DB::at(&options, silent.local_addr()?.port());
    let patience = Duration::from_millis(100);
    let ask = async || {
        let lease = SqlLease::<DB>::new(options.clone(), long(2)).with_timeout(patience);
        let acquired = lease.acquire(now(), None).await;
        let words = "gave no answer within 100ms";
        fails(acquired, CoordinationFailure::Unavailable, words);
    };
    ask().await;
    let child = forked(async || {
        ask().await;
        Vec::new()
    });
    come_once(Vec::new(), child, false).await
}

async fn nodes<DB: Backend>(options: ConnectOptions<DB>) -> Outcome<SqlLease<DB>> {
    let lease = SqlLease::new(options, long(2));
    lease.create().await?;
    Ok(lease.with_timeout(ENDLESS))
}

async fn numbers<DB: Backend>(options: ConnectOptions<DB>) -> Outcome<SqlCounter<DB>> {
    let counter = SqlCounter::new(options, "orders")?;
    counter.create(1).await?;
    Ok(counter.with_timeout(ENDLESS))
}

async fn a_child_has_nodes_of_its_own<DB: Backend>(options: ConnectOptions<DB>) -> Outcome {
    inherit_node(nodes::<DB>(options).await?, Heritage::shared()).await
}

async fn a_child_has_numbers_of_its_own<DB: Backend>(options: ConnectOptions<DB>) -> Outcome {
    inherit_numbers(numbers::<DB>(options).await?, Heritage::shared()).await
}

async fn made_in<T: Table>(table: T) -> Outcome<T::Leases> {
    let lease = table.leases(long(2));
    T::create(&lease).await?;
    Ok(T::with_timeout(lease, ENDLESS))
}

async fn nodes_of_table<T: Table>(table: T) -> Outcome {
    inherit_node(made_in(table).await?, Heritage::shared()).await
}

/// Nor must Oracle's client library.
async fn nodes_of_oracle(table: OfOracle) -> Outcome {
    inherit_node(made_in(table).await?, Heritage::none()).await
}

/// On no server: what the child sends, and over which connection.
async fn nodes_over_tds() -> Outcome {
    const TAKE: &str = "UPDATE [ordid_nodes] SET epoch = epoch + 1";

    let recorder = Recorder::start()?;
    let millis = i64::try_from(now().as_unix_millis())?;
    let row = |values: &[i64]| {
        let columns = values.iter().map(|_| Column::new("", Type::int(8)));
        let row = values
            .iter()
            .map(|value| Some(value.to_le_bytes().to_vec()));
        Answer::rows(columns, [row.collect()])
    };
    recorder.once("SELECT TOP", row(&[0, 0, 0, millis]));
    recorder.once("SELECT TOP", row(&[1, 4, millis, millis]));
    recorder.always("UPDATE", Answer::Done(1));
    let port = recorder.address().port();
    let url = format!("server=tcp:127.0.0.1,{port};user=ada;password=secret");
    let connect = move || {
        let url = url.clone();
        async move { login::tds(&url).await }
    };
    let connect = ordid_tiberius::Connect::new(connect);
    let lease = ordid_tiberius::SqlLease::new(connect, long(2));
    let grant = lease.acquire(now(), None).await?;

    let child = forked(async || {
        let acquired = lease.acquire(now(), None).await;
        let own = acquired.expect("a node of its own");
        let (node, epoch) = (own.node(), own.epoch());
        [node, epoch]
            .map(|it| i64::try_from(it).expect("few"))
            .into()
    });
    let answer = tokio::task::spawn_blocking(move || child.join()).await?;
    let (numbers, _) = answer.as_chunks::<8>();
    let numbers: Vec<i64> = numbers.iter().copied().map(i64::from_le_bytes).collect();
    assert_eq!(numbers, [1, 5]);

    // The parent goes on over the connection that it had.
    let ceiling = i64::try_from(grant.ceiling().as_unix_millis())?;
    recorder.once("SELECT epoch", row(&[1, ceiling, millis]));
    lease.renew(&grant, now()).await?;
    let log = recorder.take();
    let taken = log.iter().filter(|it| it.request.text().starts_with(TAKE));
    let over: Vec<usize> = taken.map(|it| it.connection).collect();
    assert_eq!(over, [0, 1], "the child has one of its own");
    assert_eq!(log.last().map(|it| it.connection), Some(0));
    Ok(())
}

/// On no server: the parent is refused by whatever it is, its child before that.
async fn no_nodes_of_oracle() -> Outcome {
    let connect = || ordid_oracle::connect("a", "b", "//127.0.0.1:1/c");
    let connect = ordid_oracle::Connect::new(connect);
    let lease = ordid_oracle::SqlLease::new(connect, long(2));
    let unavailable = CoordinationFailure::Unavailable;
    let refused = "Oracle was used by process";
    let error = lease.acquire(now(), None).expect_err("there is no Oracle");
    assert_eq!(error.coordination_failure(), Some(unavailable), "{error}");
    assert!(!error.to_string().contains(refused), "{error}");
    let grant = Grant::new(0, 1, now(), later(now(), 60_000))?;
    let child = forked(async || {
        fails(lease.acquire(now(), None), unavailable, refused);
        fails(lease.renew(&grant, now()), unavailable, refused);
        fails(lease.release(&grant, None), unavailable, refused);
        fails(lease.create(), unavailable, refused);
        Vec::new()
    });
    come_once(Vec::new(), child, false).await
}

/// SQLite must not be used on both sides of a fork.
async fn nodes_of_a_file(options: SqliteConnectOptions) -> Outcome {
    inherit_node(nodes::<Sqlite>(options).await?, Heritage::none()).await
}

async fn numbers_of_a_file(options: SqliteConnectOptions) -> Outcome {
    inherit_numbers(numbers::<Sqlite>(options).await?, Heritage::none()).await
}

async fn nodes_of_redis(url: String) -> Outcome {
    let key = own_name("forked-nodes");
    let lease = move || Threads(RedisLease::new(threads(&url), &key, long(2)));
    let inherited = lease();
    inherited.0.create(Timestamp::MIN)?;
    let heritage = Heritage::replaced_by(lease, CoordinationFailure::Unavailable);
    inherit_node(inherited, heritage).await
}

async fn numbers_of_redis(url: String) -> Outcome {
    let key = own_name("forked-numbers");
    let counter = move || Threads(RedisCounter::new(threads(&url), &key));
    let inherited = counter();
    inherited.0.create(1)?;
    let heritage = Heritage::replaced_by(counter, CoordinationFailure::Unavailable);
    inherit_numbers(inherited, heritage).await
}

/// Whoever hears the answers on a connection of a runtime is not in the child.
async fn nodes_of_a_runtime(url: String) -> Outcome {
    let connection = connect(&url).await?;
    let lease = RedisLease::new(connection, own_name("forked-runtime"), long(2));
    lease.create(Timestamp::MIN).await?;
    inherit_node(lease, Heritage::none()).await
}

async fn nodes_of_zookeeper(url: String) -> Outcome {
    let lease = lease_of(session(&url), &own_path("forked-nodes"), long(2));
    lease.create(Timestamp::MIN).await?;
    inherit_node(lease, Heritage::none()).await
}

async fn numbers_of_zookeeper(url: String) -> Outcome {
    let counter = ZooKeeperCounter::new(session(&url), own_path("forked-numbers"))?;
    counter.create(1).await?;
    inherit_numbers(counter, Heritage::none()).await
}

/// Nor can a child of a process that has had a session begin one.
async fn no_session(url: String) -> Outcome {
    let parents = session(&url);
    parents.client().await?;
    let child = forked(async || {
        for session in [parents.clone(), session(&url)] {
            fails(
                session.client().await.map(drop),
                CoordinationFailure::Unavailable,
                "where there can be none: fork first",
            );
        }
        Vec::new()
    });
    come_once(Vec::new(), child, false).await?;
    parents.client().await?.get_data("/").await?;
    Ok(())
}
