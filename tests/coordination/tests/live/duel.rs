//! The duel: five processes want three nodes, are stopped at random for longer than a lease lives, or
//! killed and replaced, and have clocks that differ and step by up to two seconds. No key may come twice.
//!
//! A lease as it is often written, on Redis with a time to live and nothing in the keys, is run the same
//! way: it has to fail, or this would see nothing.

use std::{
    collections::HashMap,
    env, fs,
    io::{Read, Write},
    path::PathBuf,
    process::{Child, Command, Stdio, exit},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_core::{
    Error,
    clock::{Clock, SystemClock, Timestamp},
    coordination::{AsyncNodeAllocator, CoordinationFailure, LeaseTerms, NodeAllocator},
    entropy::{Entropy, ThreadEntropy},
    generator::{AtCeiling, Generator, GrantedGenerator, LeaseKeeper, OrderedGenerator, Policy},
    scheme::{Snowflake, snowflake::SnowflakeNode},
};
use ordid_file::FileLease;
use ordid_redis::RedisLease;
use ordid_sqlx::SqlLease;
use ordid_tests::{
    process::{Signal, signal},
    servers::Servers,
    trials::{Outcome, run},
};
use ordid_zookeeper::{Session, ZooKeeperLease};
use sqlx::{MySql, Postgres, Sqlite, sqlite::SqliteConnectOptions};
use zookeeper_client::Client;

use crate::stores::on_server;

const PROCESSES: u64 = 5;
const NODES: u64 = 3;
/// How many there are at once: with one more, a node has changed hands.
const HOLDERS: usize = 3;
const TTL: Duration = Duration::from_millis(400);
const WINDOW: Duration = Duration::from_millis(200);
/// Keys in a row, then a pause of a millisecond.
const BURST: usize = 64;
/// Keys that a run has to make at least, and how long it may take.
const LEAST: usize = 200_000;
const LONGEST: Duration = Duration::from_mins(2);

/// What a process is told: the method, what its clock is like, the name of what it shares, the address.
const TOLD: &str = "ORDID_DUEL";

/// A clock that is wrong, and wrong in another way every now and then.
struct Skewed {
    millis: AtomicI64,
}

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        let now = SystemClock.now().as_unix_millis();
        let millis = now.saturating_add_signed(self.millis.load(Ordering::Relaxed));
        Timestamp::saturating_from_unix_millis(millis)
    }
}

/// Steps up to two seconds in either direction.
fn skew() -> i64 {
    i64::from(ThreadEntropy.next_u32().expect("entropy") % 4_001) - 2_000
}

fn terms() -> LeaseTerms {
    LeaseTerms::new(0..NODES)
        .and_then(|terms| terms.with_window(WINDOW))
        .and_then(|terms| terms.with_ttl(TTL))
        .expect("terms")
}

/// Makes keys until the process is ended, each of them above the one before.
fn produce(mut make: impl FnMut() -> Option<i64>) -> ! {
    let mut out = std::io::stdout().lock();
    let mut last = -1;
    loop {
        let burst: Vec<i64> = std::iter::from_fn(&mut make).take(BURST).collect();
        for key in &burst {
            assert!(*key > last, "{key} is not above {last}");
            last = *key;
        }
        let bytes: Vec<u8> = burst.iter().flat_map(|key| key.to_le_bytes()).collect();
        // The parent has seen enough.
        if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
            exit(0);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Takes part over an allocator.
fn contend<A>(allocator: A, clock: Arc<Skewed>) -> !
where
    A: AsyncNodeAllocator + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let allocator = Arc::new(allocator);
    let keeper = once_free(clock, |clock| {
        let (policy, at_ceiling) = (Policy::DEFAULT, AtCeiling::Error);
        runtime.block_on(LeaseKeeper::acquire(
            &*allocator,
            clock,
            ThreadEntropy,
            policy,
            at_ceiling,
        ))
    });
    let keys = keeper.generator();
    let kept = runtime.spawn(async move { keeper.run(allocator, tokio::time::sleep).await });
    produce_under(&keys, || {
        assert!(!kept.is_finished(), "the keeper gave up");
    })
}

/// As [`contend`], on threads.
fn contend_sync<A: NodeAllocator + 'static>(allocator: A, clock: Arc<Skewed>) -> ! {
    let keeper = once_free(clock, |clock| {
        let (policy, at_ceiling) = (Policy::DEFAULT, AtCeiling::Error);
        LeaseKeeper::acquire_sync(&allocator, clock, ThreadEntropy, policy, at_ceiling)
    });
    let kept = keeper.start(allocator).expect("a thread");
    // What becomes of the thread is said when it is dropped, which is never.
    produce_under(&kept.generator(), || ())
}

type Keeper = LeaseKeeper<Snowflake, Arc<Skewed>, ThreadEntropy>;

/// Asks for a node, and again after a while, until there is one.
fn once_free(clock: Arc<Skewed>, acquire: impl Fn(Arc<Skewed>) -> Result<Keeper, Error>) -> Keeper {
    loop {
        match acquire(Arc::clone(&clock)) {
            Ok(keeper) => return keeper,
            Err(error) => assert!(
                matches!(
                    error.coordination_failure(),
                    Some(CoordinationFailure::NoFreeNode | CoordinationFailure::Unavailable)
                ),
                "{error}"
            ),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Makes keys where there are some; where the grant is over, `check` looks whether somebody renews it.
fn produce_under(
    keys: &GrantedGenerator<Snowflake, Arc<Skewed>, ThreadEntropy>,
    check: impl Fn(),
) -> ! {
    produce(|| match keys.try_generate() {
        Ok(key) => Some(key.into_raw()),
        Err(error) => {
            let failure = error.coordination_failure();
            assert_eq!(failure, Some(CoordinationFailure::Expired), "{error}");
            check();
            None
        }
    })
}

/// A lease as it is often written: the first to set a key has the node for a while, and keeps it by
/// setting its time to live again. Nobody looks whose it is by then.
fn contend_naively(url: &str, name: &str, clock: Arc<Skewed>) -> ! {
    let client = redis::Client::open(url).expect("an address");
    let mut connection = client.get_connection().expect("a connection");
    let millis = u64::try_from(TTL.as_millis()).expect("few");
    let (node, key) = loop {
        let taken = (0..NODES).find_map(|node| {
            let key = format!("{name}:{node}");
            let set: Option<String> = redis::cmd("SET")
                .arg(&key)
                .arg("Y")
                .arg("NX")
                .arg("PX")
                .arg(millis)
                .query(&mut connection)
                .expect("an answer");
            set.map(|_| (node, key))
        });
        match taken {
            Some(taken) => break taken,
            None => thread::sleep(Duration::from_millis(50)),
        }
    };
    thread::spawn(move || {
        loop {
            let renewed: i64 = redis::cmd("PEXPIRE")
                .arg(&key)
                .arg(millis)
                .query(&mut connection)
                .expect("an answer");
            let _ = renewed;
            thread::sleep(TTL / 3);
        }
    });
    let keys = OrderedGenerator::<Snowflake, _, _>::with_node(
        SnowflakeNode::new(node).expect("a node"),
        clock,
        ThreadEntropy,
        Policy::DEFAULT,
    );
    produce(move || keys.try_generate().ok().map(|key| key.into_raw()))
}

/// Takes part, if this process is told to.
pub fn run_if_told() {
    let Ok(told) = env::var(TOLD) else {
        return;
    };
    let parts: Vec<&str> = told.splitn(4, '|').collect();
    let [method, is_skewed, name, url] = parts[..] else {
        panic!("{TOLD} is `{told}`");
    };
    let is_skewed = is_skewed == "skewed";
    let clock = Arc::new(Skewed {
        millis: AtomicI64::new(if is_skewed { skew() } else { 0 }),
    });
    if is_skewed {
        let clock = Arc::clone(&clock);
        thread::spawn(move || {
            loop {
                let millis = ThreadEntropy.next_u32().expect("entropy") % 1_000;
                thread::sleep(Duration::from_millis(u64::from(millis)));
                clock.millis.store(skew(), Ordering::Relaxed);
            }
        });
    }
    match method {
        "naive" => contend_naively(url, name, clock),
        "file" => contend_sync(FileLease::open(url, terms()).expect("a folder"), clock),
        "sqlite" => {
            let options = SqliteConnectOptions::new().filename(url);
            contend(SqlLease::<Sqlite>::new(options, terms()), clock)
        }
        "postgres" => {
            let lease = SqlLease::<Postgres>::new(url.parse().expect("an address"), terms());
            contend(lease.with_table(name).expect("a name"), clock)
        }
        "mariadb" => {
            let lease = SqlLease::<MySql>::new(url.parse().expect("an address"), terms());
            contend(lease.with_table(name).expect("a name"), clock)
        }
        "redis" => {
            let client = redis::Client::open(url).expect("an address");
            let connection = ordid_redis::Blocking::new(client, Duration::from_secs(5));
            contend_sync(RedisLease::new(connection, name, terms()), clock)
        }
        "zookeeper" => {
            // Begun on the runtime of `contend`, which lives as long.
            let session = Session::new(Client::connector().with_session_timeout(TTL), url);
            let lease = ZooKeeperLease::new(session, format!("/{name}"), terms()).expect("a path");
            contend(lease, clock)
        }
        other => panic!("no method is called {other}"),
    }
}

/// A process that takes part, and what it made.
struct Contender {
    child: Child,
    reader: Option<thread::JoinHandle<Vec<i64>>>,
    made: Arc<AtomicUsize>,
}

impl Contender {
    fn start(told: &str) -> Self {
        let mut child = Command::new(env::current_exe().expect("this program"))
            .env(TOLD, told)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut out = child.stdout.take().expect("its output");
        let made = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&made);
        let reader = thread::spawn(move || {
            let mut keys = Vec::new();
            let mut key = [0; 8];
            // What a kill cut off in the middle was not given out.
            while out.read_exact(&mut key).is_ok() {
                keys.push(i64::from_le_bytes(key));
                counted.fetch_add(1, Ordering::Relaxed);
            }
            keys
        });
        Self {
            child,
            reader: Some(reader),
            made,
        }
    }

    /// Ends it and returns its keys. It must still have been running: one that has ended has failed.
    fn end(mut self) -> Vec<i64> {
        let ended = self.child.try_wait().expect("its state");
        assert!(ended.is_none(), "a contender has failed: {ended:?}");
        self.child.kill().expect("a running process");
        self.child.wait().expect("its end");
        let reader = self.reader.take().expect("read once");
        reader.join().expect("its keys")
    }
}

/// A failed test leaves nobody behind.
impl Drop for Contender {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Counted {
    keys: usize,
    twice: usize,
    stops: usize,
    kills: usize,
    /// Processes that made keys.
    holders: usize,
}

/// Has them contend, stops or kills some of them at random, and counts what came twice.
fn duel(told: &str) -> Counted {
    let mut contenders: Vec<Contender> = (0..PROCESSES).map(|_| Contender::start(told)).collect();
    let begun = Instant::now();
    let shortest = Duration::from_secs(if ordid_tests::soak() { 60 } else { 5 });
    let (mut stops, mut kills) = (0, 0);
    let mut made: Vec<Vec<i64>> = Vec::new();
    let mut enough = false;
    while (begun.elapsed() < shortest || !enough) && begun.elapsed() < LONGEST {
        let chance = ThreadEntropy.next_u64().expect("entropy");
        let chosen = usize::try_from(chance % PROCESSES).expect("few");
        if (chance / 5).is_multiple_of(4) {
            let killed = std::mem::replace(&mut contenders[chosen], Contender::start(told));
            made.push(killed.end());
            kills += 1;
        } else {
            signal(&mut contenders[chosen].child, Signal::Stop);
            thread::sleep(Duration::from_millis(chance / 7 % 1_500));
            signal(&mut contenders[chosen].child, Signal::Continue);
            stops += 1;
        }
        thread::sleep(Duration::from_millis(chance / 11 % 200));
        // Of each, ended or not.
        let each = || {
            let present = contenders.iter().map(|it| it.made.load(Ordering::Relaxed));
            made.iter().map(Vec::len).chain(present)
        };
        let holders = each().filter(|made| *made > 0).count();
        enough = each().sum::<usize>() >= LEAST && holders > HOLDERS;
    }
    made.extend(contenders.into_iter().map(Contender::end));
    let mut seen: HashMap<i64, u32> = HashMap::new();
    for key in made.iter().flatten() {
        *seen.entry(*key).or_default() += 1;
    }
    let keys = made.iter().map(Vec::len).sum();
    Counted {
        keys,
        twice: keys - seen.len(),
        stops,
        kills,
        holders: made.iter().filter(|made| !made.is_empty()).count(),
    }
}

/// A duel in which nothing comes twice.
fn is_won(told: &str) -> Outcome {
    let counted = duel(told);
    // Not the address: it may hold a password.
    let what: Vec<&str> = told.splitn(3, '|').take(2).collect();
    println!(
        "{what:?}: {} keys of {} processes, {} twice, {} stops, {} kills",
        counted.keys, counted.holders, counted.twice, counted.stops, counted.kills
    );
    assert_eq!(counted.twice, 0, "keys came twice");
    assert!(
        counted.keys >= LEAST,
        "too few keys to tell: {}",
        counted.keys
    );
    assert!(counted.holders > HOLDERS, "no node changed hands");
    Ok(())
}

fn folder() -> Result<PathBuf, std::io::Error> {
    Ok(tempfile::tempdir()?.keep())
}

/// On what has no server.
fn on_files(trials: &mut Vec<Trial>, clocks: &'static str) {
    trials.push(Trial::test(
        format!("file::duel::{clocks}_clocks"),
        move || {
            run(async || {
                let folder = folder()?;
                let outcome = is_won(&format!("file|{clocks}||{}", folder.display()));
                fs::remove_dir_all(folder)?;
                outcome
            })
        },
    ));
    trials.push(Trial::test(
        format!("sqlite::duel::{clocks}_clocks"),
        move || {
            run(async || {
                let folder = folder()?;
                let file = folder.join("nodes.sqlite");
                let options = SqliteConnectOptions::new()
                    .filename(&file)
                    .create_if_missing(true);
                SqlLease::<Sqlite>::new(options, terms()).create().await?;
                let outcome = is_won(&format!("sqlite|{clocks}||{}", file.display()));
                fs::remove_dir_all(folder)?;
                outcome
            })
        },
    ));
}

/// Tests of the duel: by every store, with clocks that agree and with clocks that do not.
pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    for clocks in ["synced", "skewed"] {
        on_files(trials, clocks);
        let name = &format!("duel::{clocks}_clocks");
        on_server(trials, servers, "postgres", name, async move |url| {
            let table = format!("ordid_duel_{clocks}");
            let lease = SqlLease::<Postgres>::new(url.parse()?, terms()).with_table(&table)?;
            lease.create().await?;
            is_won(&format!("postgres|{clocks}|{table}|{url}"))
        });
        on_server(trials, servers, "mariadb", name, async move |url| {
            let table = format!("ordid_duel_{clocks}");
            let lease = SqlLease::<MySql>::new(url.parse()?, terms()).with_table(&table)?;
            lease.create().await?;
            is_won(&format!("mariadb|{clocks}|{table}|{url}"))
        });
        on_server(trials, servers, "redis", name, async move |url| {
            let name = format!("ordid-duel-{clocks}");
            let client = redis::Client::open(&*url)?;
            let connection = ordid_redis::Blocking::new(client, Duration::from_secs(5));
            RedisLease::new(connection, &*name, terms()).create(Timestamp::MIN)?;
            is_won(&format!("redis|{clocks}|{name}|{url}"))
        });
        on_server(trials, servers, "zookeeper", name, async move |url| {
            let name = format!("ordid-duel-{clocks}");
            let session = Session::new(Client::connector(), &*url);
            let lease = ZooKeeperLease::new(session, format!("/{name}"), terms())?;
            lease.create(Timestamp::MIN).await?;
            is_won(&format!("zookeeper|{clocks}|{name}|{url}"))
        });
        let name = &format!("duel::a_naive_lease_repeats_with_{clocks}_clocks");
        on_server(trials, servers, "redis", name, async move |url| {
            // A run in which no holder is stopped for long enough does not repeat.
            for _ in 0..8 {
                let counted = duel(&format!("naive|{clocks}|ordid-naive-{clocks}|{url}"));
                println!(
                    "naive, {clocks}: {} keys, {} twice, {} stops",
                    counted.keys, counted.twice, counted.stops
                );
                if counted.twice > 0 {
                    return Ok(());
                }
            }
            Err("the duel does not see repeats".into())
        });
    }
}
