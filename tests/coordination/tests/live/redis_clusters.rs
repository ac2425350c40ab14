//! Redis as a cluster, and behind Sentinel: what a fail-over takes back, and what it does not where replicas confirm.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{AsyncNodeAllocator, AsyncSegmentSource, LeaseTerms, SegmentSource},
};
use ordid_harness::Server;
use ordid_redis::{Blocking, Reconnecting, RedisCounter, RedisLease};
use ordid_tests::{
    duel::{count_on, is_won_during, repeats, terms},
    servers::Servers,
    trials::Outcome,
};
use redis::{
    Client, RedisResult, aio::MultiplexedConnection, cluster::ClusterClient,
    cluster_async::ClusterConnection, cmd, sentinel::Sentinel,
};

mod replicas;

use crate::redis_connection::PATIENCE;
use crate::stores::{ENDLESS, Store, later, now, on_own_servers, promises, seconds};

/// How long a replica may take to confirm, where one that is not there is waited for.
const WITHIN: Duration = Duration::from_millis(200);
/// How long it may take where it is there, on a machine that has other things to do.
const AT_LAST: Duration = Duration::from_secs(15);
/// How long an answer may take, where a test does not want to wait for a server that is gone.
const SOON: Duration = Duration::from_secs(1);

const ONE: NonZeroU32 = NonZeroU32::MIN;
const TWO: NonZeroU32 = NonZeroU32::new(2).expect("not zero");
const TEN: NonZeroU32 = NonZeroU32::new(10).expect("not zero");

pub fn add(servers: &Servers, trials: &mut Vec<Trial>) {
    // Nobody kills a node.
    let cluster = || ordid_harness::redis_cluster(Duration::from_secs(5));
    let name = "cluster::keeps_the_promises_of_every_store";
    on_own_servers(trials, servers, "redis", name, cluster, every_store);
    let name = "cluster::a_slot_that_moves_is_followed";
    on_own_servers(trials, servers, "redis", name, cluster, moves);
    let cluster = || ordid_harness::redis_cluster(Duration::from_secs(1));
    let name = "cluster::duel_through_a_failover";
    on_own_servers(trials, servers, "redis", name, cluster, cluster_duel);
    let sentinels = ordid_harness::redis_sentinels;
    let name = "sentinel::duel_through_a_failover";
    on_own_servers(trials, servers, "redis", name, sentinels, sentinel_duel);
    let name = "sentinel::threads_pass_a_sentinel_that_stands_still";
    on_own_servers(trials, servers, "redis", name, sentinels, still_sentinel);

    replicas::add(servers, trials);
}

fn addresses<'s>(servers: impl IntoIterator<Item = &'s Server>) -> String {
    let urls: Vec<String> = servers.into_iter().map(Server::url).collect();
    urls.join(",")
}

/// A cluster, as a store: its address has those of its nodes, with commas in between.
enum Cluster {}

fn cluster_client(urls: &str, timeout: Duration) -> RedisResult<ClusterClient> {
    ClusterClient::builder(urls.split(','))
        // Unless said otherwise it waits for more than a second where a cluster elects.
        .retries(3)
        .min_retry_wait(50)
        .max_retry_wait(200)
        .connection_timeout(timeout)
        .response_timeout(timeout)
        .build()
}

async fn cluster(urls: &str, timeout: Duration) -> ClusterConnection {
    let client = cluster_client(urls, timeout).expect("addresses");
    client.get_async_connection().await.expect("a cluster")
}

impl Store for Cluster {
    const SERVER: &'static str = "redis-cluster";
    const NUMBERS: u32 = 50;

    type Lease = RedisLease<ClusterConnection>;
    type Counter = RedisCounter<ClusterConnection>;

    async fn lease(url: &str, key: &str, terms: LeaseTerms) -> Self::Lease {
        RedisLease::new(cluster(url, PATIENCE).await, key, terms).with_replicas(ONE, AT_LAST)
    }

    async fn create(lease: &Self::Lease, floor: Timestamp) -> Result<bool, Error> {
        lease.create(floor).await
    }

    async fn counter(url: &str, key: &str) -> Self::Counter {
        RedisCounter::new(cluster(url, PATIENCE).await, key).with_replicas(ONE, AT_LAST)
    }

    async fn create_counter(counter: &Self::Counter, first: i64) -> Result<bool, Error> {
        counter.create(first).await
    }
}

/// What that process does.
pub async fn hold_node(urls: &str, key: &str) -> Outcome {
    crate::stores::hold(&Cluster::lease(urls, key, crate::stores::short(1)).await).await
}

async fn every_store(servers: [Server; 6]) -> Outcome {
    promises::<Cluster>(&addresses(&servers)).await
}

/// Asks one server.
fn ask<T: redis::FromRedisValue>(server: &Server, words: &[&str]) -> RedisResult<T> {
    let mut connection = Client::open(server.url())?.get_connection_with_timeout(SOON)?;
    connection.set_read_timeout(Some(SOON))?;
    let mut command = cmd(words[0]);
    command.arg(&words[1..]).query(&mut connection)
}

/// The server that has a key's slot.
fn owner(servers: &[Server], key: &str) -> Option<usize> {
    let has = |server: &Server| ask::<bool>(server, &["EXISTS", key]).is_ok();
    servers.iter().position(has)
}

fn wait<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < ENDLESS, "{what} does not come");
        thread::sleep(Duration::from_millis(20));
    }
}

/// `ASK` while the key is on its way, and `MOVED` afterwards.
async fn moves(servers: [Server; 6]) -> Outcome {
    let urls = addresses(&servers);
    let lease = Cluster::lease(&urls, "lease", seconds(2)).await;
    lease.create(Timestamp::MIN).await?;
    // In the same slot.
    let counter = Cluster::counter(&urls, "count:{lease}").await;
    counter.create(1).await?;
    let threads = {
        let client = cluster_client(&urls, PATIENCE)?;
        let connection = Blocking::connecting(move || client.get_connection());
        RedisCounter::new(connection, "count:{lease}").with_replicas(ONE, AT_LAST)
    };
    let mut grant = lease.acquire(now(), None).await?;
    let mut next = 1;
    let mut goes_on = async || {
        grant = lease.renew(&grant, later(grant.floor(), 100)).await?;
        let reserved = counter.reserve(TEN).await?;
        assert_eq!(reserved.first(), Some(next));
        let reserved = SegmentSource::reserve(&threads, TEN)?;
        assert_eq!(reserved.first(), Some(next + 10));
        next += 20;
        Ok::<_, Error>(())
    };
    goes_on().await?;

    let slot: u16 = ask(&servers[0], &["CLUSTER", "KEYSLOT", "lease"])?;
    let slot = slot.to_string();
    let from = owner(&servers, "lease").ok_or("no owner")?;
    let to = (from + 1) % 3;
    let id = |server: usize| ask::<String>(&servers[server], &["CLUSTER", "MYID"]);
    let (from_id, to_id) = (id(from)?, id(to)?);
    let set = |server: usize, how: &str, id: &str| {
        ask::<()>(&servers[server], &["CLUSTER", "SETSLOT", &slot, how, id])
    };
    set(to, "IMPORTING", &from_id)?;
    set(from, "MIGRATING", &to_id)?;
    goes_on().await?;
    let port = servers[to].port().to_string();
    let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "1000", "KEYS"];
    migrate.extend(["lease", "count:{lease}"]);
    ask::<()>(&servers[from], &migrate)?;
    goes_on().await?;
    set(to, "NODE", &to_id)?;
    set(from, "NODE", &to_id)?;
    goes_on().await?;
    assert_eq!(owner(&servers, "lease"), Some(to));
    Ok(())
}

/// The terms of the duel. After a fail-over keys are this far ahead of the servers' clock, and of a contender's by two
/// seconds more: that must not be more than its policy holds.
fn near() -> LeaseTerms {
    let near = terms().with_max_ahead(Duration::from_secs(5));
    near.expect("longer than the window")
}

/// A contender on a cluster, on threads.
pub fn contender(urls: &str, key: &str) -> RedisLease<Blocking> {
    let client = cluster_client(urls, SOON).expect("addresses");
    let connection = Blocking::connecting(move || client.get_connection());
    RedisLease::new(connection, key, near()).with_replicas(ONE, WITHIN)
}

/// The primary of the leases and of the counts is killed, its replica takes over, and it comes back as a replica.
async fn cluster_duel(mut servers: [Server; 6]) -> Outcome {
    const KEY: &str = "ordid-duel";
    let urls = addresses(&servers);
    let lease = RedisLease::new(cluster(&urls, SOON).await, KEY, near());
    lease.create(Timestamp::MIN).await?;
    let connect = async || cluster(&urls, SOON).await;
    let fail_over = move || {
        thread::sleep(Duration::from_secs(2));
        let primary = wait("an owner", || owner(&servers, KEY));
        servers[primary].kill().expect("it was running");
        let killed = Instant::now();
        let next = wait("another primary", || owner(&servers, KEY));
        assert_ne!(next, primary);
        println!("another primary after {:?}", killed.elapsed());
        servers[primary].restart().expect("it comes back");
        servers
    };
    let told = format!("redis-cluster|skewed|{KEY}|{urls}");
    through(KEY, ONE, connect, told, fail_over).await
}

/// The connection to whichever server Sentinels take for the master.
fn watched(urls: &str) -> Reconnecting<MultiplexedConnection> {
    let urls: Vec<String> = urls.split(',').map(str::to_owned).collect();
    Reconnecting::new(move || {
        let urls = urls.clone();
        async move {
            let client = Sentinel::build(urls)?
                .async_master_for(ordid_harness::REDIS_SERVICE, None)
                .await?;
            let config = redis::AsyncConnectionConfig::new()
                .set_connection_timeout(Some(SOON))
                .set_response_timeout(Some(SOON));
            client
                .get_multiplexed_async_connection_with_config(&config)
                .await
        }
    })
}

/// The same for threads, as the documentation of [`Blocking::connecting`] shows it.
fn watched_by_threads(urls: &str) -> Blocking {
    let connect = |url: &str| {
        let connection = Client::open(url)?.get_connection_with_timeout(SOON)?;
        connection.set_read_timeout(Some(SOON))?;
        connection.set_write_timeout(Some(SOON))?;
        RedisResult::Ok(connection)
    };
    let master = move |sentinel: &str| {
        let mut question = cmd("SENTINEL");
        let name = ordid_harness::REDIS_SERVICE;
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
        question.query::<(String, u16)>(&mut connect(sentinel)?)
    };
    let urls: Vec<String> = urls.split(',').map(str::to_owned).collect();
    Blocking::connecting(move || {
        let answer = urls.iter().find_map(|sentinel| master(sentinel).ok());
        let (host, port) =
            answer.ok_or_else(|| std::io::Error::other("no Sentinel names the master"))?;
        connect(&format!("redis://{host}:{port}/"))
    })
}

/// Threads do not wait for it, or all that share the connection would.
async fn still_sentinel((servers, sentinels): ([Server; 3], [Server; 3])) -> Outcome {
    sentinels[0].pause()?;
    let threads = RedisCounter::new(watched_by_threads(&addresses(&sentinels)), "threads");
    let (done, created) = std::sync::mpsc::channel();
    thread::spawn(move || done.send(threads.create(1)));
    assert!(created.recv_timeout(ENDLESS / 6)??);
    drop(servers);
    Ok(())
}

/// A contender behind Sentinel.
pub fn watched_contender(urls: &str, key: &str) -> RedisLease<Reconnecting<MultiplexedConnection>> {
    RedisLease::new(watched(urls), key, near()).with_replicas(TWO, WITHIN)
}

fn is_master(server: &Server) -> bool {
    let role = ask::<Vec<redis::Value>>(server, &["ROLE"]).unwrap_or_default();
    role.first() == Some(&redis::Value::BulkString(b"master".to_vec()))
}

/// The master is killed, Sentinels make a replica the next one, and the old one is started again at once, as whoever
/// watches over a service does. Until all Sentinels know, some clients are sent to it, and what it then takes is lost.
async fn sentinel_duel((mut servers, sentinels): ([Server; 3], [Server; 3])) -> Outcome {
    const KEY: &str = "ordid-duel";
    let urls = addresses(&sentinels);
    // They hear of the replicas and of each other from the master.
    let knows = |sentinel: &Server| {
        let count = |what| {
            let known = ["SENTINEL", what, ordid_harness::REDIS_SERVICE];
            ask::<Vec<redis::Value>>(sentinel, &known).map_or(0, |known| known.len())
        };
        count("REPLICAS") == 2 && count("SENTINELS") == 2
    };
    wait("what they know", || {
        sentinels.iter().all(knows).then_some(())
    });
    let lease = RedisLease::new(watched(&urls), KEY, near());
    lease.create(Timestamp::MIN).await?;
    let connect = async || watched(&urls);
    let threads = RedisCounter::new(watched_by_threads(&urls), "threads");
    let threads = threads.with_replicas(TWO, WITHIN);
    let fail_over = move || {
        wait("the count", || threads.create(1).ok());
        let mut reserve = || SegmentSource::reserve(&threads, TEN).ok()?.first();
        let before = wait("a number", &mut reserve);
        thread::sleep(Duration::from_secs(1));
        servers[0].kill().expect("it was running");
        let killed = Instant::now();
        wait("another master", || {
            servers[1..].iter().find(|it| is_master(it))
        });
        println!("another master after {:?}", killed.elapsed());
        servers[0].restart().expect("it comes back");
        wait("the old master as a replica", || {
            (!is_master(&servers[0])).then_some(())
        });
        assert!(wait("the next number", &mut reserve) > before);
        (servers, sentinels)
    };
    let told = format!("redis-sentinel|skewed|{KEY}|{urls}");
    through(KEY, TWO, connect, told, fail_over).await
}

/// A duel, and beside it two sources of numbers that replicas confirm, and two that none does, while a server fails.
async fn through<C, S>(
    key: &str,
    replicas: NonZeroU32,
    connect: impl AsyncFn() -> C,
    told: String,
    fail_over: impl FnOnce() -> S + Send + 'static,
) -> Outcome
where
    C: redis::aio::ConnectionLike + Clone + Send + Sync + 'static,
    S: Send + 'static,
{
    let is_over = Arc::new(AtomicBool::new(false));
    let (mut safe, mut plain_sources) = (Vec::new(), Vec::new());
    // All in one slot, so that it is their server that fails.
    let (confirmed, plain) = (format!("confirmed:{{{key}}}"), format!("plain:{{{key}}}"));
    for _ in 0..2 {
        let source =
            RedisCounter::new(connect().await, &confirmed).with_replicas(replicas, AT_LAST);
        source.create(1).await?;
        let source = source.with_replicas(replicas, WITHIN);
        // A slow machine may not count so many before the duel is over.
        safe.push(tokio::spawn(count_on(source, 501, Arc::clone(&is_over))));
        let source = RedisCounter::new(connect().await, &plain);
        source.create(1).await?;
        plain_sources.push(tokio::spawn(count_on(source, 0, Arc::clone(&is_over))));
    }
    let (done, servers) = std::sync::mpsc::channel();
    let duel = move || {
        is_won_during(&told, move || {
            // They go on until all is counted.
            let _ = done.send(fail_over());
        })
    };
    let won = tokio::task::spawn_blocking(duel).await?;
    is_over.store(true, Ordering::Relaxed);
    let mut numbers = Vec::new();
    for source in safe {
        let made = tokio::time::timeout(ENDLESS, source).await??;
        println!("confirmed: {made}");
        assert!(made.unavailable > 0 && made.ended.is_none(), "{made}");
        numbers.extend(made.numbers);
    }
    assert!(numbers.len() > 1_000, "{}", numbers.len());
    assert_eq!(repeats(numbers), 0, "confirmed numbers came twice");
    // Whether any are lost here is chance: `a_failover_loses_what_none_confirmed` sees to it.
    let mut numbers = Vec::new();
    for source in plain_sources {
        let made = source.await?;
        println!("not confirmed: {made}");
        numbers.extend(made.numbers);
    }
    println!("not confirmed: {} came twice", repeats(numbers));
    drop(servers);
    won
}
