//! Leases and counts on Redis.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{
        AsyncNodeAllocator, AsyncSegmentSource, CoordinationFailure, Grant, LeaseTerms,
        NodeAllocator, SegmentSource,
    },
};
use ordid_harness::Server;
use ordid_redis::{Blocking, RedisCounter, RedisLease};
use ordid_tests::{
    proxy::{Fault, Proxy},
    servers::Servers,
    trials::Outcome,
};
use redis::{
    Client, RedisResult,
    aio::{ConnectionManager, MultiplexedConnection},
    cmd,
};

use crate::redis_connection::PATIENCE;
pub(crate) use crate::redis_connection::connect;
use crate::stores::{
    Adder, ENDLESS, Store, Threads, acquire_when_free, earlier, fails, failure, hold,
    keys_end_at_the_ceiling, lasting, later, long, now, own_name, says, short,
    the_first_copy_to_renew_goes_on,
};

pub fn add(servers: &Servers, trials: &mut Vec<Trial>) {
    let mut shared = Adder::new(trials, servers, "redis");
    shared.on_any_store::<Redis>();
    shared.on("what_was_not_created_is_lost", not_created);
    shared.on("a_record_that_went_back_is_noticed", went_back);
    shared.on("what_somebody_else_wrote_is_refused", damaged);
    shared.on("a_lost_answer_is_a_gap", lost_answer);
    shared.on("a_lost_renewal_is_fenced", lost_renewal);
    shared.on("a_lost_grant_is_a_gap", lost_grant);
    shared.on("the_first_copy_to_renew_goes_on", copies);
    shared.on("a_blocking_connection_does_it_all", blocking);
    shared.on_own("a_server_that_is_away_ends_nothing", away);
    shared.on_own("keys_end_at_the_ceiling", keys_end);
    shared.on_own("a_server_without_its_data_is_an_error", without_data);
    shared.on_own("a_copy_that_lags_behind_is_noticed", lagging);
}

/// Redis, as a store.
enum Redis {}

impl Store for Redis {
    const SERVER: &'static str = "redis";
    const NUMBERS: u32 = 50;

    type Lease = RedisLease<MultiplexedConnection>;
    type Counter = RedisCounter<MultiplexedConnection>;

    async fn lease(url: &str, key: &str, terms: LeaseTerms) -> Self::Lease {
        RedisLease::new(connect(url).await.expect("Redis"), key, terms)
    }

    async fn create(lease: &Self::Lease, floor: Timestamp) -> Result<bool, Error> {
        lease.create(floor).await
    }

    async fn counter(url: &str, key: &str) -> Self::Counter {
        RedisCounter::new(connect(url).await.expect("Redis"), key)
    }

    async fn create_counter(counter: &Self::Counter, first: i64) -> Result<bool, Error> {
        counter.create(first).await
    }
}

async fn field(
    connection: &mut MultiplexedConnection,
    key: &str,
    node: u64,
) -> RedisResult<String> {
    cmd("HGET").arg(key).arg(node).query_async(connection).await
}

async fn set_field(
    connection: &mut MultiplexedConnection,
    key: &str,
    node: u64,
    record: &str,
) -> RedisResult<()> {
    let mut set = cmd("HSET");
    set.arg(key).arg(node).arg(record);
    set.exec_async(connection).await
}

pub fn threads(url: &str) -> Blocking {
    Blocking::new(Client::open(url).expect("a URL"), PATIENCE)
}

/// What that process does.
pub async fn hold_node(url: &str, key: &str) -> Outcome {
    hold(&Threads(RedisLease::new(threads(url), key, short(1)))).await
}

/// F13, and F1: nothing begins by itself.
async fn not_created(url: String) -> Outcome {
    let connection = connect(&url).await?;
    let lease = RedisLease::new(connection.clone(), own_name("lost"), short(1));
    let error = AsyncNodeAllocator::acquire(&lease, now(), None)
        .await
        .unwrap_err();
    says(
        &error,
        "the store has lost its state: Redis has no key ordid-lost-",
    );
    says(&error, "call `RedisLease::create` once");
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::StateLost)
    );
    let counter = RedisCounter::new(connection, own_name("lost-count"));
    let reserved = counter.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::StateLost);

    // Nobody listens at port 1.
    let nobody = Blocking::new(Client::open("redis://127.0.0.1:1/")?, PATIENCE);
    let lease = RedisLease::new(nobody.clone(), "nobody", short(1));
    let acquired = NodeAllocator::acquire(&lease, now(), None);
    assert_eq!(failure(acquired), CoordinationFailure::Unavailable);
    let reserved = SegmentSource::reserve(&RedisCounter::new(nobody, "nobody"), 1.try_into()?);
    assert_eq!(failure(reserved), CoordinationFailure::Unavailable);
    Ok(())
}

/// F15: restored from a copy.
async fn went_back(url: String) -> Outcome {
    let mut connection = connect(&url).await?;
    let key = own_name("went-back");
    let lease = RedisLease::new(connection.clone(), &key, long(1));
    lease.create(Timestamp::MIN).await?;
    let grant = AsyncNodeAllocator::acquire(&lease, now(), None).await?;
    let copy = field(&mut connection, &key, grant.node()).await?;
    let renewed = AsyncNodeAllocator::renew(&lease, &grant, later(now(), 10)).await?;
    set_field(&mut connection, &key, grant.node(), &copy).await?;
    let again = AsyncNodeAllocator::renew(&lease, &renewed, now()).await;
    assert_eq!(failure(again), CoordinationFailure::CeilingRegressed);
    cmd("HDEL")
        .arg(&key)
        .arg(grant.node())
        .exec_async(&mut connection)
        .await?;
    let again = AsyncNodeAllocator::renew(&lease, &renewed, now()).await;
    assert_eq!(failure(again), CoordinationFailure::CeilingRegressed);

    let key = own_name("count-back");
    let counter = RedisCounter::new(connection.clone(), &key);
    counter.create(1).await?;
    counter.reserve(100.try_into()?).await?;
    cmd("SET")
        .arg(&key)
        .arg(50)
        .exec_async(&mut connection)
        .await?;
    // However often it is asked, it comes no nearer to the numbers that others have.
    for _ in 0..20 {
        let reserved = counter.reserve(10.try_into()?).await;
        assert_eq!(failure(reserved), CoordinationFailure::CeilingRegressed);
    }
    let count: i64 = cmd("GET").arg(&key).query_async(&mut connection).await?;
    assert_eq!(count, 50);
    Ok(())
}

async fn damaged(url: String) -> Outcome {
    let mut connection = connect(&url).await?;
    let key = own_name("damaged");
    let lease = RedisLease::new(connection.clone(), &key, long(1));
    let counter = RedisCounter::new(connection.clone(), &key);
    lease.create(Timestamp::MIN).await?;
    // A hash is no count.
    let reserved = counter.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::Mismatch);
    set_field(&mut connection, &key, 0, "1 2").await?;
    fails(
        AsyncNodeAllocator::acquire(&lease, now(), None).await,
        CoordinationFailure::Mismatch,
        "field 0 is `1 2`, which is not what ordid-redis writes",
    );
    cmd("DEL").arg(&key).exec_async(&mut connection).await?;
    // Nor is a text, and a text is no hash.
    cmd("SET")
        .arg(&key)
        .arg("many")
        .exec_async(&mut connection)
        .await?;
    let reserved = counter.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::Mismatch);
    let acquired = AsyncNodeAllocator::acquire(&lease, now(), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::Mismatch);
    assert_eq!(
        failure(lease.create(now()).await),
        CoordinationFailure::Mismatch
    );
    assert_eq!(
        failure(counter.create(-1).await),
        CoordinationFailure::Mismatch
    );
    Ok(())
}

/// A proxy before the server of this address, and the address that leads through it.
async fn through_proxy(url: &str) -> Outcome<(Proxy, String)> {
    let address = url.trim_start_matches("redis://").trim_end_matches('/');
    let address: SocketAddr = address.parse()?;
    let proxy = Proxy::start(address).await?;
    let through = format!("redis://127.0.0.1:{}/", proxy.port());
    Ok((proxy, through))
}

/// F16: the numbers of an answer that nobody heard are never used.
async fn lost_answer(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    let key = own_name("lost-answer");
    // Each with a connection of its own.
    let reserve = async || {
        let counter = RedisCounter::new(threads(&through), &key);
        let reserved = tokio::task::spawn_blocking(move || {
            SegmentSource::reserve(&counter, 10.try_into().expect("ten"))
        });
        reserved.await.expect("a thread")
    };
    RedisCounter::new(connect(&url).await?, &key)
        .create(1_000)
        .await?;
    // The first loads the script; the second says what a reservation takes.
    assert_eq!(reserve().await?.first(), Some(1_000));
    assert_eq!(reserve().await?.first(), Some(1_010));
    let answer = "$4\r\n1010\r\n".len() as u64;
    proxy.plan([Fault::Swallow(proxy.last_traffic().down - answer)]);
    let lost = reserve().await;
    assert_eq!(failure(lost), CoordinationFailure::Unavailable);
    // They are a gap.
    assert_eq!(reserve().await?.first(), Some(1_030));
    Ok(())
}

/// F16 of a renewal: whoever asked cannot know, and is refused.
async fn lost_renewal(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    // The answer before the last has a time in it, whose length varies: then the question is lost.
    for attempt in 0..20 {
        let key = own_name(&format!("lost-renewal-{attempt}"));
        let lease = RedisLease::new(connect(&url).await?, &key, short(1));
        lease.create(Timestamp::MIN).await?;
        let grant = AsyncNodeAllocator::acquire(&lease, now(), None).await?;
        // Each with a connection of its own.
        let renew = async |grant: Grant, millis| {
            let lease = RedisLease::new(threads(&through), &key, short(1));
            let at = later(grant.floor(), millis);
            let renewed =
                tokio::task::spawn_blocking(move || NodeAllocator::renew(&lease, &grant, at));
            renewed.await.expect("a thread")
        };
        // Loads the scripts; the second says what a renewal takes.
        let grant = renew(grant, 10).await?;
        let grant = renew(grant, 20).await?;
        let answer = ":2\r\n".len() as u64;
        proxy.plan([Fault::Swallow(proxy.last_traffic().down - answer)]);
        let lost = renew(grant, 30).await;
        assert_eq!(failure(lost), CoordinationFailure::Unavailable);

        let again = renew(grant, 40).await;
        let moved = again.is_err();
        if moved {
            assert_eq!(failure(again), CoordinationFailure::Fenced);
        }
        // Whoever comes next begins behind what was granted unheard.
        let next = acquire_when_free(&lease, grant.floor()).await;
        assert_eq!(
            next.floor(),
            later(grant.ceiling(), if moved { 10 } else { 20 })
        );
        if moved {
            return Ok(());
        }
    }
    Err("no renewal was lost".into())
}

/// F16 of an acquisition: nobody makes keys of the time that was granted unheard.
async fn lost_grant(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    // As in `lost_renewal`.
    for attempt in 0..20 {
        let key = own_name(&format!("lost-grant-{attempt}"));
        let lease = RedisLease::new(connect(&url).await?, &key, short(1));
        lease.create(Timestamp::MIN).await?;
        let acquire = async |at| {
            let lease = RedisLease::new(threads(&through), &key, short(1));
            let acquired =
                tokio::task::spawn_blocking(move || NodeAllocator::acquire(&lease, at, None));
            acquired.await.expect("a thread")
        };
        for _ in 0..2 {
            let grant = acquire(now()).await?;
            AsyncNodeAllocator::release(&lease, &grant, None).await?;
        }
        let answer = ":2\r\n".len() as u64;
        proxy.plan([Fault::Swallow(proxy.last_traffic().down - answer)]);
        let at = now();
        let lost = acquire(at).await;
        assert_eq!(failure(lost), CoordinationFailure::Unavailable);
        let held = AsyncNodeAllocator::acquire(&lease, at, None).await;
        if held.is_err() {
            assert_eq!(failure(held), CoordinationFailure::NoFreeNode);
            let next = acquire_when_free(&lease, earlier(at, 5_000)).await;
            assert_eq!(next.floor(), later(at, 300));
            return Ok(());
        }
    }
    Err("no grant was lost".into())
}

async fn copies(url: String) -> Outcome {
    let key = own_name("copies");
    let one = RedisLease::new(connect(&url).await?, &key, long(4));
    one.create(Timestamp::MIN).await?;
    let other = RedisLease::new(connect(&url).await?, &key, long(4));
    the_first_copy_to_renew_goes_on(&one, &other).await
}

async fn blocking(url: String) -> Outcome {
    let done = tokio::task::spawn_blocking(move || {
        let connection = threads(&url);
        let one = 1.try_into()?;
        let lease = RedisLease::new(connection.clone(), own_name("blocking"), long(2));
        assert!(lease.create(Timestamp::MIN)? && !lease.create(now())?);
        let grant = NodeAllocator::acquire(&lease, now(), None)?;
        let grant = NodeAllocator::renew(&lease, &grant, later(now(), 1_000))?;
        NodeAllocator::release(&lease, &grant, None)?;
        let renewed = NodeAllocator::renew(&lease, &grant, now());
        assert_eq!(failure(renewed), CoordinationFailure::CeilingRegressed);

        let key = own_name("blocking-count");
        let counter = RedisCounter::new(connection, &key);
        assert!(counter.create(5)? && !counter.create(1)?);
        assert_eq!(SegmentSource::reserve(&counter, one)?.first(), Some(5));
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    });
    done.await?
}

/// F2: gone while a node is held, and back with what it had.
async fn away(mut server: Server) -> Outcome {
    let manager = ConnectionManager::new(Client::open(server.url())?).await?;
    let lease = RedisLease::new(manager.clone(), "lease", long(1));
    lease.create(Timestamp::MIN).await?;
    let counter = RedisCounter::new(manager, "count");
    counter.create(1).await?;
    let grant = AsyncNodeAllocator::acquire(&lease, now(), None).await?;
    counter.reserve(10.try_into()?).await?;
    server.kill()?;
    for _ in 0..2 {
        let renewed = AsyncNodeAllocator::renew(&lease, &grant, now()).await;
        assert_eq!(failure(renewed), CoordinationFailure::Unavailable);
        let reserved = counter.reserve(10.try_into()?).await;
        assert_eq!(failure(reserved), CoordinationFailure::Unavailable);
    }
    server.restart()?;
    // The first questions may still go to the connection that was lost.
    let start = Instant::now();
    let renewed = loop {
        match AsyncNodeAllocator::renew(&lease, &grant, later(grant.floor(), 1_000)).await {
            Ok(renewed) => break renewed,
            Err(error) => {
                let unavailable = Some(CoordinationFailure::Unavailable);
                assert_eq!(error.coordination_failure(), unavailable, "{error}");
                assert!(
                    start.elapsed() < PATIENCE,
                    "it does not connect anew: {error}"
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    };
    assert_eq!(renewed.epoch(), grant.epoch());
    assert!(renewed.ceiling() > grant.ceiling());
    assert!(counter.reserve(10.try_into()?).await?.first() >= Some(11));
    Ok(())
}

async fn keys_end(server: Server) -> Outcome {
    let manager = ConnectionManager::new(Client::open(server.url())?).await?;
    let lease = RedisLease::new(manager, "lease", lasting(1));
    lease.create(Timestamp::MIN).await?;
    keys_end_at_the_ceiling(lease, server).await
}

/// F13: killed, and started without what it had.
async fn without_data(mut server: Server) -> Outcome {
    let lease = RedisLease::new(connect(&server.url()).await?, "lease", long(1));
    lease.create(Timestamp::MIN).await?;
    let grant = AsyncNodeAllocator::acquire(&lease, now(), None).await?;
    let counter = RedisCounter::new(connect(&server.url()).await?, "count");
    counter.create(1).await?;
    counter.reserve(10.try_into()?).await?;

    server.kill()?;
    std::fs::remove_dir_all(server.folder().join("data/appendonlydir"))?;
    server.restart()?;
    let lease = RedisLease::new(connect(&server.url()).await?, "lease", long(1));
    let acquired = AsyncNodeAllocator::acquire(&lease, now(), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::StateLost);
    let renewed = AsyncNodeAllocator::renew(&lease, &grant, now()).await;
    assert_eq!(failure(renewed), CoordinationFailure::StateLost);
    let released = AsyncNodeAllocator::release(&lease, &grant, None).await;
    assert_eq!(failure(released), CoordinationFailure::StateLost);
    let counter = RedisCounter::new(connect(&server.url()).await?, "count");
    for _ in 0..2 {
        let reserved = counter.reserve(10.try_into()?).await;
        assert_eq!(failure(reserved), CoordinationFailure::StateLost);
    }

    // Somebody says from where.
    let floor = later(grant.ceiling(), 1);
    assert!(lease.create(floor).await?);
    let renewed = AsyncNodeAllocator::renew(&lease, &grant, now()).await;
    assert_eq!(failure(renewed), CoordinationFailure::CeilingRegressed);
    let next = AsyncNodeAllocator::acquire(&lease, earlier(now(), 60_000), None).await?;
    assert_eq!(next.floor(), floor);
    counter.create(1_000).await?;
    assert_eq!(counter.reserve(1.try_into()?).await?.first(), Some(1_000));
    Ok(())
}

/// F15: a replica that had not heard of the last renewal takes over.
async fn lagging(server: Server) -> Outcome {
    let copy = tokio::task::spawn_blocking(ordid_harness::redis).await??;
    let (mut first, mut second) = (connect(&server.url()).await?, connect(&copy.url()).await?);
    let lease = RedisLease::new(first.clone(), "lease", long(1));
    lease.create(Timestamp::MIN).await?;
    let grant = AsyncNodeAllocator::acquire(&lease, now(), None).await?;
    let replicate = async |connection: &mut MultiplexedConnection, host: &str, port: &str| {
        let mut replicate = cmd("REPLICAOF");
        replicate.arg(host).arg(port);
        replicate.exec_async(connection).await
    };
    replicate(&mut second, "127.0.0.1", &server.port().to_string()).await?;
    let start = Instant::now();
    let has = async |connection: &mut MultiplexedConnection| {
        cmd("EXISTS")
            .arg("lease")
            .query_async::<bool>(connection)
            .await
    };
    while !has(&mut second).await? {
        assert!(start.elapsed() < ENDLESS, "the copy gets nothing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(has(&mut first).await?);
    // A replica takes no writes, and is no store.
    let lease_of_copy = RedisLease::new(second.clone(), "lease", long(1));
    let renewed = AsyncNodeAllocator::renew(&lease_of_copy, &grant, later(now(), 1_000)).await;
    assert_eq!(failure(renewed), CoordinationFailure::Unavailable);

    replicate(&mut second, "NO", "ONE").await?;
    let renewed = AsyncNodeAllocator::renew(&lease, &grant, later(grant.floor(), 1_000)).await?;
    // No master can have granted so much before the copy took over.
    let (node, epoch, floor) = (renewed.node(), renewed.epoch(), renewed.floor());
    let too_far = Grant::new(node, epoch, floor, later(now(), 30_000))?;
    let stale = AsyncNodeAllocator::renew(&lease_of_copy, &too_far, now()).await;
    assert_eq!(failure(stale), CoordinationFailure::CeilingRegressed);
    let again = AsyncNodeAllocator::renew(&lease_of_copy, &renewed, now()).await?;
    assert!(again.ceiling() >= renewed.ceiling(), "{again}");
    Ok(())
}
