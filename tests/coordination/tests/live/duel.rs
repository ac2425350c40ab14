//! The [duel](ordid_tests::duel) on every store.
//!
//! A lease as it is often written, on Redis with a time to live and nothing in the keys, is run the same
//! way: it has to fail, or this would see nothing.

use std::{fs, future::ready, path::PathBuf, sync::Arc, thread, time::Duration};

use libtest_mimic::Trial;
use ordid_core::{
    clock::Timestamp,
    entropy::ThreadEntropy,
    generator::{Generator as _, OrderedGenerator, Policy},
    scheme::{Snowflake, snowflake::SnowflakeNode},
};
use ordid_file::FileLease;
use ordid_redis::RedisLease;
use ordid_sqlx::SqlLease;
use ordid_tests::{
    duel::{NODES, Skewed, TTL, Told, contend, contend_sync, duel, is_won, produce, terms, told},
    servers::Servers,
    trials::{on_scratch, run},
};
use ordid_zookeeper::{Session, ZooKeeperLease};
use sqlx::{ConnectOptions as _, MySql, Postgres, Sqlite, sqlite::SqliteConnectOptions};
use zookeeper_client::Client;

use crate::{
    redis_clusters,
    stores::{on_server, own_name},
};

/// In so many of them, the naive lease repeats keys once at least.
const DUELS: u32 = 8;

/// The table of the nodes, in a database of its own.
const TABLE: &str = "ordid_duel";

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
    let Some(told) = told() else {
        return;
    };
    let Told {
        method,
        clock,
        name,
        url,
    } = told;
    match &*method {
        "naive" => contend_naively(&url, &name, clock),
        "file" => contend_sync(FileLease::open(url, terms()).expect("a folder"), clock),
        "sqlite" => {
            let options = SqliteConnectOptions::new().filename(url);
            contend(ready(SqlLease::<Sqlite>::new(options, terms())), clock)
        }
        "postgres" => {
            let lease = SqlLease::<Postgres>::new(url.parse().expect("an address"), terms());
            contend(ready(lease.with_table(&name).expect("a name")), clock)
        }
        "mariadb" => {
            let lease = SqlLease::<MySql>::new(url.parse().expect("an address"), terms());
            contend(ready(lease.with_table(&name).expect("a name")), clock)
        }
        "redis" => {
            let client = redis::Client::open(&*url).expect("an address");
            let connection = ordid_redis::Blocking::new(client, Duration::from_secs(5));
            contend_sync(RedisLease::new(connection, name, terms()), clock)
        }
        "zookeeper" => {
            // Begun on the runtime of `contend`, which lives as long.
            let session = Session::new(Client::connector().with_session_timeout(TTL), &*url);
            let lease = ZooKeeperLease::new(session, format!("/{name}"), terms()).expect("a path");
            contend(ready(lease), clock)
        }
        "redis-cluster" => contend_sync(redis_clusters::contender(&url, &name), clock),
        "redis-sentinel" => contend(ready(redis_clusters::watched_contender(&url, &name)), clock),
        other => panic!("no method is called {other}"),
    }
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
        on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, async move |pool| {
            let options = (*pool.connect_options()).clone();
            let url = options.to_url_lossy();
            let lease = SqlLease::<Postgres>::new(options, terms()).with_table(TABLE)?;
            lease.create().await?;
            is_won(&format!("postgres|{clocks}|{TABLE}|{url}"))
        });
        on_scratch::<MySql, _, _>(trials, servers, "mariadb", name, async move |pool| {
            let options = (*pool.connect_options()).clone();
            let url = options.to_url_lossy();
            let lease = SqlLease::<MySql>::new(options, terms()).with_table(TABLE)?;
            lease.create().await?;
            is_won(&format!("mariadb|{clocks}|{TABLE}|{url}"))
        });
        on_server(trials, servers, "redis", name, async move |url| {
            let name = own_name(&format!("duel-{clocks}"));
            let client = redis::Client::open(&*url)?;
            let connection = ordid_redis::Blocking::new(client, Duration::from_secs(5));
            RedisLease::new(connection, &*name, terms()).create(Timestamp::MIN)?;
            is_won(&format!("redis|{clocks}|{name}|{url}"))
        });
        on_server(trials, servers, "zookeeper", name, async move |url| {
            let name = own_name(&format!("duel-{clocks}"));
            let session = Session::new(Client::connector(), &*url);
            let lease = ZooKeeperLease::new(session, format!("/{name}"), terms())?;
            lease.create(Timestamp::MIN).await?;
            is_won(&format!("zookeeper|{clocks}|{name}|{url}"))
        });
        let name = &format!("duel::a_naive_lease_repeats_with_{clocks}_clocks");
        on_server(trials, servers, "redis", name, async move |url| {
            let name = own_name(&format!("naive-{clocks}"));
            // Who is stopped, and for how long, is chance: one duel may have had too few stops.
            for _ in 0..DUELS {
                let counted = duel(&format!("naive|{clocks}|{name}|{url}"));
                println!(
                    "naive, {clocks}: {} keys, {} twice, {} stops",
                    counted.keys, counted.twice, counted.stops
                );
                if counted.twice > 0 {
                    return Ok(());
                }
            }
            Err(format!("{DUELS} duels saw no repeat").into())
        });
    }
}
