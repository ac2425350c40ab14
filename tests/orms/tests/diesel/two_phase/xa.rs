//! A two-phase commit by XA over two databases of a server: MariaDB's, as MySQL's cannot be listed through Diesel.

use std::{
    future::poll_fn,
    iter,
    pin::pin,
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use diesel::{
    connection::{AnsiTransactionManager, SimpleConnection as _, TransactionManager as _},
    mysql::Mysql,
    prelude::*,
    r2d2,
};
use diesel_async::{
    AsyncConnection as _, AsyncMysqlConnection, SimpleAsyncConnection,
    pooled_connection::{AsyncDieselConnectionManager, bb8, deadpool},
};
use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey, uuid::Uuid};
use ordid_diesel::{Error, Flushed, OrphanDecision, Retry, ShardedUnitOfWork, Sharding};
use ordid_tests::{
    proxy::{At, Fault},
    servers::Servers,
};

use super::runtime;
use crate::{
    Outcome,
    keys::Native,
    scratch::{on_server, proxied},
};

diesel::table! {
    cities (id) { id -> Binary, number -> Integer, }
}

#[derive(OrderedKey)]
#[diesel(table_name = cities)]
#[ordid(diesel)]
struct City {
    id: Option<Native>,
    number: i32,
}

type Work = ShardedUnitOfWork<Mysql>;
type Manager = AsyncDieselConnectionManager<AsyncMysqlConnection>;

const CITIES: i32 = 40;
/// How long what was dropped may take to end.
const SETTLED: Duration = Duration::from_secs(20);
const CREATE: &str =
    "CREATE TABLE cities (id BINARY(16) NOT NULL PRIMARY KEY, number INTEGER NOT NULL)";

/// Two databases of the server, beside that of the test. They are dropped at the end.
struct Two {
    admin: MysqlConnection,
    looks: [MysqlConnection; 2],
    databases: [String; 2],
    urls: [String; 2],
    /// The name of the set: ids of XA belong to the server.
    name: String,
}

impl Two {
    fn create(url: &str) -> Outcome<Self> {
        let (server, own) = url.rsplit_once('/').ok_or("no database")?;
        let name = own.strip_prefix("ordid_diesel_").ok_or("another name")?;
        let databases = ["a", "b"].map(|it| format!("{own}_{it}"));
        let urls = [0, 1].map(|shard: usize| format!("{server}/{}", databases[shard]));
        let mut admin = MysqlConnection::establish(url)?;
        for database in &databases {
            admin.batch_execute(&format!("CREATE DATABASE {database}"))?;
        }
        let mut looks = [
            MysqlConnection::establish(&urls[0])?,
            MysqlConnection::establish(&urls[1])?,
        ];
        for looks in &mut looks {
            looks.batch_execute(CREATE)?;
            ordid_diesel::create_flushes_table(looks)?;
        }
        Ok(Self {
            admin,
            looks,
            name: name.to_owned(),
            databases,
            urls,
        })
    }

    fn work(&self) -> Outcome<Work> {
        let mut work = Work::new(Sharding::by_hash(2)?).two_phase_commit(&self.name);
        for number in 0..CITIES {
            work.add(City { id: None, number })?;
        }
        Ok(work)
    }

    fn numbers(&mut self, shard: usize) -> QueryResult<Vec<i32>> {
        cities::table
            .select(cities::number)
            .load(&mut self.looks[shard])
    }

    /// Checks that the rows of so many flushes are there, and that nothing is prepared.
    fn check(&mut self, flushes: usize) -> Outcome {
        let mut all = self.numbers(0)?;
        all.extend(self.numbers(1)?);
        all.sort_unstable();
        let expected = (0..CITIES).flat_map(|it| iter::repeat_n(it, flushes));
        let orphans = ordid_diesel::prepared_orphans(&self.name, &mut self.looks)?;
        match all.iter().copied().eq(expected) && orphans.is_empty() {
            true => Ok(()),
            false => Err(format!("not {flushes} flushes: {all:?}, {orphans:?}").into()),
        }
    }

    /// Recovers until the rows of each flush are there as a whole. What a flush that was dropped has sent may arrive later.
    fn settle(&mut self) -> Outcome {
        let start = Instant::now();
        loop {
            match ordid_diesel::recover_prepared(&self.name, &mut self.looks, Duration::ZERO) {
                Ok(_) => {}
                Err(error) if error.is_transient() && start.elapsed() < SETTLED => {
                    thread::sleep(Duration::from_millis(5));
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            let mut all = self.numbers(0)?;
            all.extend(self.numbers(1)?);
            let first = all.iter().filter(|number| **number == 0).count();
            match self.check(first) {
                Ok(()) => return Ok(()),
                Err(error) if start.elapsed() > SETTLED => return Err(error),
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Leaves what a program has that was killed before its decision. The server may not have noticed its end.
    fn leave(&self) -> Outcome<String> {
        let id = Native::generate().to_raw();
        let gid = format!("ordid:{}:{}:0:1", self.name, Uuid::simple(id));
        let mut killed = MysqlConnection::establish(&self.urls[1])?;
        for sql in [
            format!("XA START '{gid}'"),
            "INSERT INTO cities VALUES (REPEAT('a', 16), -1)".to_owned(),
            format!("XA END '{gid}'"),
            format!("XA PREPARE '{gid}'"),
        ] {
            killed.batch_execute(&sql)?;
        }
        Ok(gid)
    }

    async fn establish(&self) -> ConnectionResult<[AsyncMysqlConnection; 2]> {
        Ok([
            AsyncMysqlConnection::establish(&self.urls[0]).await?,
            AsyncMysqlConnection::establish(&self.urls[1]).await?,
        ])
    }

    /// Pools of one connection each, which ask nothing of a connection that they lend.
    fn r2d2(&self) -> Outcome<[r2d2::Pool<r2d2::ConnectionManager<MysqlConnection>>; 2]> {
        let pool = |url| {
            let pool = r2d2::Pool::builder().max_size(1).test_on_check_out(false);
            pool.build(r2d2::ConnectionManager::new(url))
        };
        Ok([pool(&self.urls[0])?, pool(&self.urls[1])?])
    }

    async fn bb8(&self) -> Outcome<[bb8::Pool<AsyncMysqlConnection>; 2]> {
        let pool = |shard: usize| {
            let pool = bb8::Pool::builder().max_size(1).test_on_check_out(false);
            pool.build(Manager::new(&self.urls[shard]))
        };
        Ok([pool(0).await?, pool(1).await?])
    }

    fn deadpool(&self) -> Outcome<[deadpool::Pool<AsyncMysqlConnection>; 2]> {
        let pool = |shard: usize| {
            let manager = Manager::new(&self.urls[shard]);
            deadpool::Pool::builder(manager).max_size(1).build()
        };
        Ok([pool(0)?, pool(1)?])
    }

    fn drop(mut self) -> Outcome {
        for database in &self.databases {
            self.admin
                .batch_execute(&format!("DROP DATABASE {database}"))?;
        }
        Ok(())
    }
}

/// A shard that fails keeps the other one from being written. What is left prepared is recovered.
fn all_or_none(
    mut two: Two,
    mut flush: impl FnMut(&mut Work) -> Result<Vec<Flushed>, Error>,
) -> Outcome {
    let mut work = two.work()?.with_retry(Retry::NONE);
    for refuses in [0, 1] {
        let refused = "ALTER TABLE cities ADD CONSTRAINT refused CHECK (number < 0)";
        two.looks[refuses].batch_execute(refused)?;
        let error = flush(&mut work).unwrap_err();
        let start = format!("nothing was written on any of 2 shards; shard {refuses}: ");
        assert!(error.to_string().starts_with(&start), "{error}");
        two.looks[refuses].batch_execute("ALTER TABLE cities DROP CONSTRAINT refused")?;
        two.check(0)?;
    }
    // The connection that has prepared one is not lent for the next one.
    for flushes in 1..=2 {
        let flushed = flush(&mut work)?;
        assert_eq!(flushed.iter().map(Flushed::rows).sum::<usize>(), 40);
        two.check(flushes)?;
        work = two.work()?.with_retry(Retry::NONE);
    }

    let gid = two.leave()?;
    let orphans = ordid_diesel::prepared_orphans(&two.name, &mut two.looks)?;
    let found: Vec<_> = orphans.iter().map(|it| (it.shard, &*it.gid)).collect();
    assert_eq!(found, [(1, &*gid)]);
    assert_eq!(orphans[0].decision, OrphanDecision::NotCommitted);
    // What ends it would end the user's transaction.
    AnsiTransactionManager::begin_transaction(&mut two.looks[1])?;
    two.looks[1].batch_execute("INSERT INTO cities VALUES (REPEAT('b', 16), -2)")?;
    for error in [
        ordid_diesel::prepared_orphans(&two.name, &mut two.looks).unwrap_err(),
        ordid_diesel::recover_prepared(&two.name, &mut two.looks, Duration::ZERO).unwrap_err(),
    ] {
        assert!(error.is_connection_state(), "{error}");
    }
    assert!(two.numbers(1)?.contains(&-2));
    AnsiTransactionManager::rollback_transaction(&mut two.looks[1])?;
    assert!(!two.numbers(1)?.contains(&-2));
    let recovered = ordid_diesel::recover_prepared(&two.name, &mut two.looks, Duration::ZERO)?;
    assert_eq!(recovered.rolled_back, [gid]);
    two.check(2)?;

    let gid = two.leave()?;
    let runtime = runtime()?;
    let mut others = runtime.block_on(two.establish())?;
    let orphans = ordid_diesel::prepared_orphans_async(&two.name, &mut others);
    assert_eq!(runtime.block_on(orphans)?[0].gid, gid);
    let recovery = ordid_diesel::recover_prepared_async(&two.name, &mut others, Duration::ZERO);
    assert_eq!(runtime.block_on(recovery)?.rolled_back, [gid]);
    two.check(2)?;
    two.drop()
}

fn over_made_connections(url: &str) -> Outcome {
    let two = Two::create(url)?;
    let urls = two.urls.clone();
    all_or_none(two, |work| {
        work.flush_with(|shard| MysqlConnection::establish(&urls[shard]))
    })
}

fn over_r2d2(url: &str) -> Outcome {
    let two = Two::create(url)?;
    let pools = two.r2d2()?;
    all_or_none(two, |work| work.flush_with(|shard| pools[shard].get()))
}

fn over_made_async_connections(url: &str) -> Outcome {
    let two = Two::create(url)?;
    let (runtime, urls) = (runtime()?, two.urls.clone());
    all_or_none(two, |work| {
        let flush = work.flush_with_async(|shard| AsyncMysqlConnection::establish(&urls[shard]));
        runtime.block_on(flush)
    })
}

fn over_bb8(url: &str) -> Outcome {
    let two = Two::create(url)?;
    let runtime = runtime()?;
    let pools = runtime.block_on(two.bb8())?;
    all_or_none(two, |work| {
        runtime.block_on(work.flush_with_async(|shard| pools[shard].get_owned()))
    })
}

fn over_deadpool(url: &str) -> Outcome {
    let two = Two::create(url)?;
    let (runtime, pools) = (runtime()?, two.deadpool()?);
    all_or_none(two, |work| {
        runtime.block_on(work.flush_with_async(|shard| pools[shard].get()))
    })
}

/// MariaDB ends what is prepared over another connection once the one that has prepared it is closed, which is the user's.
fn over_connections_it_is_refused(url: &str) -> Outcome {
    let mut two = Two::create(url)?;
    let mut connections = [0, 1].map(|shard: usize| {
        MysqlConnection::establish(&two.urls[shard]).expect("the database is there")
    });
    let runtime = runtime()?;
    let mut others = runtime.block_on(two.establish())?;
    let mut work = two.work()?;
    for error in [
        work.flush(&mut connections).unwrap_err(),
        runtime.block_on(work.flush_async(&mut others)).unwrap_err(),
    ] {
        let words = "nothing was written on any of 2 shards; shard 1: a transaction that is prepared by XA is ended over \
                     another connection, and the flush has only this one";
        assert!(error.to_string().starts_with(words), "{error}");
    }
    two.check(0)?;
    // They are as before.
    connections[1].transaction(|connection| connection.batch_execute("DO 1"))?;
    runtime.block_on(others[1].batch_execute("BEGIN; ROLLBACK"))?;
    work.flush_with(|shard| MysqlConnection::establish(&two.urls[shard]))?;
    two.check(1)?;
    two.drop()
}

/// Before it has passed, a statement never comes; behind it, it is carried out and there is no answer.
fn lost_answers(
    url: &str,
    flush: impl Fn(&mut Work, [String; 2]) -> Result<Vec<Flushed>, Error>,
) -> Outcome {
    let mut two = Two::create(url)?;
    let mut flushes = 0;
    // The connection that has prepared one is closed, and another one ends it.
    for (text, before) in [
        ("XA PREPARE", None),
        ("XA COMMIT", Some(Fault::None)),
        ("XA ROLLBACK", Some(Fault::None)),
    ] {
        for bytes in [0, 4, 200] {
            let (runtime, proxy, through) = proxied(&two.urls[1])?;
            proxy.look_for(text);
            proxy.plan(before.into_iter().chain([Fault::Cut(At::Commit(bytes))]));
            let urls = [two.urls[0].clone(), through];
            let mut work = two.work()?;
            if text == "XA ROLLBACK" {
                let refused = "ALTER TABLE cities ADD CONSTRAINT refused CHECK (number < 0)";
                for looks in &mut two.looks {
                    looks.batch_execute("DELETE FROM cities")?;
                }
                two.looks[0].batch_execute(refused)?;
                let error = flush(&mut work, urls).unwrap_err();
                let start = "nothing was written on any of 2 shards; shard 0: ";
                assert!(error.to_string().starts_with(start), "{error}");
                two.looks[0].batch_execute("ALTER TABLE cities DROP CONSTRAINT refused")?;
                flushes = 0;
            } else {
                let flushed = flush(&mut work, urls)?;
                assert_eq!(flushed.iter().map(Flushed::rows).sum::<usize>(), 40);
                flushes += 1;
            }
            let traffic = proxy.traffic();
            assert!(traffic.iter().any(|it| it.commit.is_some()), "{traffic:?}");
            two.check(flushes)?;
            drop((proxy, runtime));
        }
    }
    two.drop()
}

fn lost_answers_over_connections(url: &str) -> Outcome {
    lost_answers(url, |work, urls| {
        work.flush_with(|shard| MysqlConnection::establish(&urls[shard]))
    })
}

fn lost_answers_over_async_connections(url: &str) -> Outcome {
    let runtime = runtime()?;
    lost_answers(url, |work, urls| {
        // Otherwise mysql_async takes the server's socket, past the proxy.
        let urls = urls.map(|url| format!("{url}?prefer_socket=false"));
        let flush = work.flush_with_async(|shard| AsyncMysqlConnection::establish(&urls[shard]));
        runtime.block_on(flush)
    })
}

/// After flushes that are dropped after each poll.
async fn is_never_lent<C, W, E>(
    two: &mut Two,
    connect: impl Fn(usize) -> W + Clone + Send,
) -> Outcome
where
    C: diesel_async::AsyncConnection<Backend = Mysql> + SimpleAsyncConnection + 'static,
    W: Future<Output = Result<C, E>> + Send,
    E: std::error::Error + Send + Sync + 'static,
{
    let mut is_over = false;
    for polls in 0.. {
        if is_over {
            break;
        }
        let mut work = two.work()?;
        {
            let mut flush = pin!(work.flush_with_async(connect.clone()));
            let mut count = 0;
            poll_fn(|context| {
                if count == polls {
                    return Poll::Ready(());
                }
                count += 1;
                flush.as_mut().poll(context).map(|_| is_over = true)
            })
            .await;
        }
        for shard in [0, 1] {
            let mut free = connect(shard).await?;
            free.batch_execute("BEGIN").await?;
            free.batch_execute("ROLLBACK").await?;
        }
        drop(work);
        two.settle()?;
    }
    Ok(())
}

fn is_never_lent_by_bb8(url: &str) -> Outcome {
    let mut two = Two::create(url)?;
    runtime()?.block_on(async {
        let pools = two.bb8().await?;
        is_never_lent(&mut two, |shard| pools[shard].get_owned()).await
    })?;
    two.drop()
}

fn is_never_lent_by_deadpool(url: &str) -> Outcome {
    let mut two = Two::create(url)?;
    runtime()?.block_on(async {
        let pools = two.deadpool()?;
        is_never_lent(&mut two, |shard| pools[shard].get()).await
    })?;
    two.drop()
}

/// MySQL lists what is prepared by no prepared statement, and Diesel sends every query as one.
fn is_refused_on_mysql(url: &str) -> Outcome {
    let mut two = Two::create(url)?;
    let (runtime, mut work) = (runtime()?, two.work()?);
    let (pools, others) = (two.r2d2()?, runtime.block_on(two.bb8())?);
    let mut connections = runtime.block_on(two.establish())?;
    let (name, now) = (two.name.clone(), Duration::ZERO);
    let words = "MySQL does not list prepared transactions (`XA RECOVER`) to a prepared statement";
    for _ in 0..2 {
        for error in [
            work.flush_with(|shard| pools[shard].get()).unwrap_err(),
            runtime
                .block_on(work.flush_with_async(|shard| others[shard].get_owned()))
                .unwrap_err(),
        ] {
            let start = "nothing was written on any of 2 shards; shard 1: ";
            assert!(error.to_string().starts_with(start), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        for error in [
            ordid_diesel::prepared_orphans(&name, &mut two.looks).unwrap_err(),
            ordid_diesel::recover_prepared(&name, &mut two.looks, now).unwrap_err(),
            runtime
                .block_on(ordid_diesel::prepared_orphans_async(
                    &name,
                    &mut connections,
                ))
                .unwrap_err(),
        ] {
            assert!(error.to_string().starts_with(words), "{error}");
        }
    }
    // Nothing is open on what the pools lend.
    pools[1]
        .get()?
        .transaction(|connection| connection.batch_execute("DO 1"))?;
    runtime.block_on(async {
        let mut free = others[1].get().await?;
        free.batch_execute("BEGIN; ROLLBACK").await?;
        Outcome::Ok(())
    })?;
    for shard in [0, 1] {
        assert_eq!(two.numbers(shard)?, [0; 0]);
    }
    two.drop()
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    for (server, name, test) in [
        (
            "mariadb",
            "all_or_none_over_made_connections",
            over_made_connections as crate::Test,
        ),
        ("mariadb", "all_or_none_over_r2d2", over_r2d2),
        (
            "mariadb",
            "all_or_none_over_made_async_connections",
            over_made_async_connections,
        ),
        ("mariadb", "all_or_none_over_bb8", over_bb8),
        ("mariadb", "all_or_none_over_deadpool", over_deadpool),
        (
            "mariadb",
            "over_connections_it_is_refused",
            over_connections_it_is_refused,
        ),
        (
            "mariadb",
            "lost_answers_over_connections",
            lost_answers_over_connections,
        ),
        (
            "mariadb",
            "lost_answers_over_async_connections",
            lost_answers_over_async_connections,
        ),
        (
            "mariadb",
            "a_transaction_of_xa_is_never_lent_by_bb8",
            is_never_lent_by_bb8,
        ),
        (
            "mariadb",
            "a_transaction_of_xa_is_never_lent_by_deadpool",
            is_never_lent_by_deadpool,
        ),
        ("mysql", "xa_is_refused", is_refused_on_mysql),
    ] {
        let name = format!("two_phase::{name}");
        on_server::<MysqlConnection>(trials, servers, server, &name, "", test);
    }
}
