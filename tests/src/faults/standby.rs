//! A standby that lags behind its primary. After a lost COMMIT a router sends the client there, where rows that are
//! committed are not seen yet, and nothing can be written; or it sends only its queries there, as Pgpool-II and ProxySQL do.

use std::{
    any::Any,
    fmt::Debug,
    future::Future,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_core::{
    clock::{Clock as _, SystemClock},
    coordination::{AsyncNodeAllocator as _, LeaseTerms},
};
use ordid_harness::{Policy, Server};
use ordid_sqlx::{Retry, SqlLease};
use sqlx::{MySql, Postgres};

use super::{
    Changes, Flusher, Found, Graph, Library, PATIENCE, Remote, Shape, Site, cut::EAGER, on_both,
    times,
};
use crate::{
    proxy::{At, Fault, Proxy},
    router::Router,
    servers::{Options, Servers},
    trials::{Outcome, ignored, run},
};

/// What becomes of the first COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// The primary has it, and its answer does not arrive.
    Answer,
    /// The primary does not get it, and rolls back.
    Commit,
}

impl Lost {
    fn fault<DB: Replicated>(self) -> Fault {
        Fault::Cut(At::Commit(match self {
            Self::Answer => DB::COMMIT,
            Self::Commit => 0,
        }))
    }
}

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    let pgpool = match ordid_harness::policy("pgpool") {
        Ok(Policy::Skip(reason)) => Some(reason),
        _ => {
            let missing = ordid_harness::installed("pgpool").err();
            missing.map(|error| error.to_string())
        }
    };
    of::<L::Postgres>(servers, trials, "postgres", pgpool);
    on_both(trials, |trials, server| {
        of::<L::MySql>(servers, trials, server, None);
        // Leases are SQLx's.
        if L::MySql::PREFIX.is_empty() {
            let name = format!(
                "{server}::standby::a_lease_is_renewed_behind_a_router_that_reads_from_a_standby"
            );
            trials.push(match servers.url(server) {
                Err(reason) => ignored(name, reason),
                Ok(_) => Trial::test(name, move || {
                    run(async || renews(Pair::start(server).await?).await)
                }),
            });
        }
    });
}

fn of<W>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    server: &'static str,
    no_router: Option<String>,
) where
    W: Flusher<Database: Replicated>,
{
    let missing = servers.url(server).err();
    let mut add = |name: &str, reason: Option<String>, test: fn(&'static str) -> Result<(), _>| {
        let name = format!("{server}::{}standby::{name}", W::PREFIX);
        trials.push(match missing.clone().or(reason) {
            Some(reason) => ignored(name, reason),
            None => Trial::test(name, move || test(server)),
        });
    };
    add(
        "a_lost_commit_that_a_standby_does_not_show_is_unknown",
        None,
        |server| run(async || lags::<W>(Pair::start(server).await?).await),
    );
    add(
        "a_router_that_reads_from_a_standby_hides_no_lost_commit",
        no_router,
        |server| run(async || reads_elsewhere::<W>(Pair::start(server).await?).await),
    );
}

/// An engine whose servers can have a standby.
trait Replicated: Remote {
    /// The bytes of a COMMIT's packet.
    const COMMIT: u64;
    /// Tells the standby to show nothing that is committed from now on, and to go on.
    const PAUSES: [&'static str; 2];

    /// Starts a private server of this name and a standby of it, which takes no writes of the user of these addresses.
    fn start(server: &'static str) -> impl Future<Output = Outcome<Pair<Self>>>;

    /// Asks the primary for the end of its log, and the standby for how much of it is repeated.
    fn positions(pair: &Pair<Self>) -> [&'static str; 2];

    /// Starts a router before both that sends queries to the standby. Returns how to reach it, and what stops it when it is
    /// dropped.
    fn route(
        pair: &Pair<Self>,
    ) -> impl Future<Output = Outcome<(Options<Self>, Box<dyn Any + Send>)>>;
}

/// A primary, and a standby that repeats only what it is told to.
struct Pair<DB: Remote> {
    primary: Site<DB>,
    standby: Site<DB>,
    /// The standby, for an administrator.
    admin: Site<DB>,
    /// They stop when they are dropped, the standby first.
    servers: [Server; 2],
}

impl<DB: Replicated> Pair<DB> {
    async fn start(server: &'static str) -> Outcome<Self> {
        let pair = DB::start(server).await?;
        for sql in DB::tables() {
            pair.primary.execute(&sql).await?;
        }
        pair.catch_up().await?;
        Ok(pair)
    }

    /// A proxy whose first connection goes to the primary, and all others to the standby.
    async fn proxy(&self, fault: Fault) -> Outcome<Proxy> {
        let [primary, standby] = [&self.primary, &self.standby];
        let mut addresses = vec![DB::address(standby.options())?; 64];
        addresses[0] = DB::address(primary.options())?;
        let proxy = Proxy::over(addresses).await?;
        proxy.plan([fault]);
        Ok(proxy)
    }

    /// The standby shows all that is committed now, and nothing that will be.
    async fn pause(&self) -> Outcome {
        self.catch_up().await?;
        Ok(self.admin.execute(DB::PAUSES[0]).await?)
    }

    async fn catch_up(&self) -> Outcome {
        self.admin.execute(DB::PAUSES[1]).await?;
        let [end, repeated] = DB::positions(self);
        let end = self.primary.numbers(end).await?;
        let deadline = Instant::now() + PATIENCE;
        while self.admin.numbers(repeated).await? < end {
            if Instant::now() > deadline {
                return Err(format!("still not {end:?}: {repeated}").into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

impl Replicated for Postgres {
    const COMMIT: u64 = 12;
    const PAUSES: [&'static str; 2] = [
        // Nothing is repeated any more once its state says so.
        "DO $$ BEGIN PERFORM pg_wal_replay_pause(); WHILE pg_get_wal_replay_pause_state() <> 'paused' LOOP \
         PERFORM pg_sleep(0.005); END LOOP; END $$",
        "SELECT pg_wal_replay_resume() WHERE pg_is_wal_replay_paused()",
    ];

    async fn start(server: &'static str) -> Outcome<Pair<Self>> {
        let primary = ordid_harness::start(server)?;
        let standby = ordid_harness::postgres_standby(&primary)?;
        let site = |server: &Server| Outcome::Ok(Site::open(server.url().parse()?));
        Ok(Pair {
            primary: site(&primary)?,
            standby: site(&standby)?,
            admin: site(&standby)?,
            servers: [standby, primary],
        })
    }

    fn positions(_pair: &Pair<Self>) -> [&'static str; 2] {
        [
            "SELECT (pg_current_wal_lsn() - '0/0')::int8",
            "SELECT (pg_last_wal_replay_lsn() - '0/0')::int8",
        ]
    }

    async fn route(pair: &Pair<Self>) -> Outcome<(Options<Self>, Box<dyn Any + Send>)> {
        let [standby, primary] = &pair.servers;
        let pgpool = ordid_harness::pgpool(primary, standby)?;
        let routed = Self::through(pair.primary.options(), pgpool.port());
        let reads = "SELECT pg_is_in_recovery()::int::int8";
        let site = Site::<Self>::open(routed.clone());
        assert_eq!(site.numbers(reads).await?, [1]);
        Ok((routed, Box::new(pgpool)))
    }
}

/// How the servers of the protocol replicate.
struct Replication {
    /// Of both servers.
    options: &'static [&'static str],
    /// Makes a server the standby of the primary on this port.
    follow: fn(u16) -> String,
    /// What a user may not do who is to be refused by the standby.
    revoke: &'static str,
    positions: [&'static str; 2],
}

impl Replication {
    fn of(server: &str) -> &'static Self {
        match server {
            "mysql" => &Self {
                options: &[
                    "--log-bin=binlog",
                    "--gtid-mode=ON",
                    "--enforce-gtid-consistency=ON",
                ],
                follow: |port| {
                    format!(
                        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = \
                         'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1"
                    )
                },
                revoke: "CONNECTION_ADMIN, SUPER",
                positions: [
                    "SELECT CAST(SUBSTRING_INDEX(@@global.gtid_executed, '-', -1) AS SIGNED)",
                    "SELECT CAST(SUBSTRING_INDEX(@@global.gtid_executed, '-', -1) AS SIGNED)",
                ],
            },
            _ => &Self {
                options: &["--log-bin=binlog"],
                follow: |port| {
                    format!(
                        "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'root', \
                         MASTER_USE_GTID = slave_pos"
                    )
                },
                revoke: "READ ONLY ADMIN, SUPER",
                positions: [
                    "SELECT CAST(SUBSTRING_INDEX(@@global.gtid_binlog_pos, '-', -1) AS SIGNED)",
                    "SELECT CAST(SUBSTRING_INDEX(@@global.gtid_slave_pos, '-', -1) AS SIGNED)",
                ],
            },
        }
    }
}

impl Replicated for MySql {
    const COMMIT: u64 = 11;
    const PAUSES: [&'static str; 2] = ["STOP REPLICA SQL_THREAD", "START REPLICA SQL_THREAD"];

    async fn start(server: &'static str) -> Outcome<Pair<Self>> {
        let replication = Replication::of(server);
        let start = |id: &'static str| {
            let options = [replication.options, &[id]].concat();
            match server {
                "mysql" => ordid_harness::mysql_with(&options),
                _ => ordid_harness::mariadb_with(&options),
            }
        };
        let primary = start("--server-id=1")?;
        let standby = start("--server-id=2")?;
        let [root, admin] = [&primary, &standby].map(|server| server.url().parse());
        let [root, admin] = [Site::<Self>::open(root?), Site::<Self>::open(admin?)];
        for sql in [
            &(replication.follow)(primary.port()),
            "START REPLICA",
            "SET GLOBAL read_only = 1",
        ] {
            admin.execute(sql).await?;
        }
        for sql in [
            "CREATE DATABASE ordid",
            "CREATE USER app",
            "GRANT ALL ON *.* TO app",
            &format!("REVOKE {} ON *.* FROM app", replication.revoke),
        ] {
            root.execute(sql).await?;
        }
        let site = |server: &Site<Self>| {
            Site::open(server.options().clone().username("app").database("ordid"))
        };
        Ok(Pair {
            primary: site(&root),
            standby: site(&admin),
            admin,
            servers: [standby, primary],
        })
    }

    fn positions(pair: &Pair<Self>) -> [&'static str; 2] {
        Replication::of(pair.servers[0].name()).positions
    }

    async fn route(pair: &Pair<Self>) -> Outcome<(Options<Self>, Box<dyn Any + Send>)> {
        let [primary, standby] = [&pair.primary, &pair.standby];
        let addresses = (
            Self::address(primary.options())?,
            Self::address(standby.options())?,
        );
        let router = Router::start(addresses.0, addresses.1).await?;
        let routed = Self::through(primary.options(), router.port());
        let reads = "SELECT CAST(@@server_id AS SIGNED)";
        let site = Site::<Self>::open(routed.clone());
        assert_eq!(site.numbers(reads).await?, [2]);
        Ok((routed, Box::new(router)))
    }
}

/// What is read is older than the grant, and what is changed is not.
async fn renews(pair: Pair<MySql>) -> Outcome {
    let terms = LeaseTerms::new(0..4)?;
    SqlLease::<MySql>::new(pair.primary.options().clone(), terms.clone())
        .create()
        .await?;
    let (routed, _router) = MySql::route(&pair).await?;
    pair.pause().await?;
    let lease = SqlLease::<MySql>::new(routed, terms);
    let now = || SystemClock.now();
    let mut grant = lease.acquire(now(), None).await?;
    for round in 0..4 {
        if round == 2 {
            pair.pause().await?;
        }
        let renewed = lease.renew(&grant, now()).await?;
        assert_eq!(renewed.epoch(), grant.epoch());
        assert!(renewed.ceiling() >= grant.ceiling());
        grant = renewed;
    }
    lease.release(&grant, None).await?;
    let expires = "SELECT CAST(MAX(expires) AS SIGNED) FROM ordid_nodes";
    assert_eq!(pair.primary.numbers(expires).await?, [0]);
    Ok(())
}

async fn lags<W: Flusher<Database: Replicated>>(pair: Pair<W::Database>) -> Outcome {
    let unit_of_changes = 16;
    for unit in 0..times(8, unit_of_changes) {
        let is = |bit: u32| unit >> bit & 1 == 1;
        let case = Case {
            retry: if is(0) { EAGER } else { Retry::NONE },
            lost: if is(1) { Lost::Commit } else { Lost::Answer },
            catches_up: is(2),
            has_marker: is(0) ^ is(1) ^ is(3),
        };
        let outcome = inserts::<W>(&pair, unit, case).await;
        outcome.map_err(|error| format!("{case:?}: {error}"))?;
    }
    for (number, lost) in (unit_of_changes..).zip([Lost::Answer, Lost::Commit]) {
        let outcome = changes::<W>(&pair, number, lost).await;
        outcome.map_err(|error| format!("changes, {lost:?}: {error}"))?;
    }
    refuses::<W>(&pair).await
}

/// The router sends what only reads to the standby, so that no question after a lost COMMIT shows the rows; and what writes
/// to the primary, which refuses them a second time.
async fn reads_elsewhere<W: Flusher<Database: Replicated>>(pair: Pair<W::Database>) -> Outcome {
    let (routed, _router) = W::Database::route(&pair).await?;
    for unit in 0..times(4, 8) {
        let lost = if unit & 1 == 0 {
            Lost::Answer
        } else {
            Lost::Commit
        };
        let outcome = behind_router::<W>(&pair, &routed, unit, lost).await;
        outcome.map_err(|error| format!("{unit}, {lost:?}: {error}"))?;
    }
    Ok(())
}

async fn behind_router<W: Flusher<Database: Replicated>>(
    pair: &Pair<W::Database>,
    router: &Options<W::Database>,
    unit: u32,
    lost: Lost,
) -> Outcome {
    pair.pause().await?;
    let graph = Graph::new(unit, Shape::SMALL);
    let mut work = W::begin(EAGER);
    if unit & 2 == 0 {
        work = work.with_marker();
    }
    work.add_graph(&graph);
    let proxy = Proxy::start(W::Database::address(router)?).await?;
    proxy.plan([lost.fault::<W::Database>()]);
    let through = W::Database::through(router, proxy.port());
    // In the flush that loses the COMMIT, and in the next one.
    for _ in 0..2 {
        let outcome = work.flush_to(&through, PATIENCE).await;
        pair.primary.judge(&graph, &work, &outcome).await?;
        match outcome {
            Ok(_) => return Ok(()),
            Err(error) if error.is_commit_unknown => {}
            Err(error) => return Err(format!("it is not unknown: {error}").into()),
        }
    }
    pair.catch_up().await?;
    pair.primary.flush_again(&graph, &mut work).await
}

#[derive(Debug, Clone, Copy)]
struct Case {
    retry: Retry,
    lost: Lost,
    /// Whether the standby shows the rows in the end.
    catches_up: bool,
    has_marker: bool,
}

async fn inserts<W: Flusher<Database: Replicated>>(
    pair: &Pair<W::Database>,
    unit: u32,
    case: Case,
) -> Outcome {
    pair.pause().await?;
    let graph = Graph::new(unit, Shape::SMALL);
    let mut work = W::begin(case.retry);
    if case.has_marker {
        work = work.with_marker();
    }
    work.add_graph(&graph);
    let proxy = pair.proxy(case.lost.fault::<W::Database>()).await?;
    let routed = W::Database::through(pair.primary.options(), proxy.port());
    let written = match case.lost {
        Lost::Answer => Found::All,
        Lost::Commit => Found::None,
    };
    // In the flush that loses the COMMIT, and in the next one.
    for _ in 0..2 {
        let outcome = work.flush_to(&routed, PATIENCE).await;
        assert_eq!(pair.primary.judge(&graph, &work, &outcome).await?, written);
        let error = outcome.expect_err("the standby does not show the rows, nor take them");
        if !error.is_commit_unknown {
            return Err(format!("what is {written:?} is not unknown: {error}").into());
        }
    }
    if case.catches_up {
        pair.catch_up().await?;
        let outcome = work.flush_to(&routed, PATIENCE).await;
        assert_eq!(pair.primary.judge(&graph, &work, &outcome).await?, written);
        if written == Found::All {
            outcome?;
            return Ok(());
        }
        let error = outcome.expect_err("the standby takes no rows");
        assert!(error.is_commit_unknown, "{error}");
    }
    // The router sends its clients to the primary again.
    pair.primary.flush_again(&graph, &mut work).await
}

async fn changes<W: Flusher<Database: Replicated>>(
    pair: &Pair<W::Database>,
    number: u32,
    lost: Lost,
) -> Outcome {
    let changes = Changes::prepare::<W>(&pair.primary, number).await?;
    pair.pause().await?;
    let mut work: W = changes.work(EAGER);
    let proxy = pair.proxy(lost.fault::<W::Database>()).await?;
    let routed = W::Database::through(pair.primary.options(), proxy.port());
    for _ in 0..2 {
        let outcome = work.flush_to(&routed, PATIENCE).await;
        let error = outcome.expect_err("the standby does not show the changes, nor take them");
        if !error.is_commit_unknown {
            return Err(format!("it is not unknown: {error}").into());
        }
        changes.look(&pair.primary).await?;
    }
    work.flush_to(pair.primary.options(), PATIENCE).await?;
    match changes.look(&pair.primary).await? {
        Found::All => Ok(()),
        Found::None => Err("flushed again, and nothing is changed".into()),
    }
}

/// Where no COMMIT was lost, a standby leaves nothing in doubt.
async fn refuses<W: Flusher<Database: Replicated>>(pair: &Pair<W::Database>) -> Outcome {
    pair.catch_up().await?;
    let graph = Graph::new(100, Shape::SMALL);
    let mut work = W::of(&graph, EAGER);
    let outcome = work.flush_to(pair.standby.options(), PATIENCE).await;
    assert_eq!(
        pair.primary.judge(&graph, &work, &outcome).await?,
        Found::None
    );
    let error = outcome.expect_err("a standby takes no rows");
    assert!(!error.is_commit_unknown, "{error}");
    pair.primary.flush_again(&graph, &mut work).await
}
