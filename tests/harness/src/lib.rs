//! Private database servers for the tests and benches of ordid.
//!
//! [`postgres`], [`mariadb`], [`galera`], [`mysql`], [`group_replication`], [`pgbouncer`], [`h2`], [`redis`], [`zookeeper`] and [`etcd`] each
//! start a fresh server from the binaries of the installed package, [`mysql`] of an unpacked one: on a free port of
//! 127.0.0.1, with its data in a new temporary folder, and with nothing shared with a server that the machine may
//! already run. The [`Server`] they return stops the server and removes the folder when it is dropped.
//! `ORDID_TEST_NEWER_SERVERS=1` makes PostgreSQL and MariaDB newer, unpacked ones (see [`Policy`]).
//!
//! The server also goes when nothing gets dropped - a panic that aborts, Ctrl-C, `kill -9`:
//!
//! ```text
//!   test process ──pipe──> watchdog (sh, a process group of its own)
//!                            ├─ first: the commands that create the data folder
//!                            └─ then:  the server
//! ```
//!
//! The watchdog holds the reading end of a pipe. The other end belongs to this process alone, so
//! the kernel closes it when this process ends, however it ends; the watchdog then stops the
//! server (politely first) and removes the folder.
//!
//! [`access`] adds the policy that live tests follow: which server is used, started or skipped,
//! according to the environment (see [`Policy`]).
//!
//! # Adding a server
//!
//! One file per server. It implements `Recipe`: where the binaries are, the commands which
//! prepare and serve, and how to tell that the server answers. Everything else is shared.

#![forbid(unsafe_code)]

#[cfg(feature = "browser")]
pub mod browser;
mod debian;
mod error;
mod etcd;
mod find;
mod galera;
mod group_replication;
mod h2;
mod java;
mod mariadb;
mod mysql;
mod pgbouncer;
mod pgpool;
mod policy;
mod postgres;
mod process;
mod redis;
mod rust;
mod server;
mod zookeeper;

pub use error::Error;
pub use policy::{Access, Policy, access, policy, policy_from};
pub use rust::{Target, Toolchain};
pub use server::Server;

use std::{io::Write as _, time::Duration};

/// How many clusters are begun until one of them starts.
const CLUSTERS: u32 = 3;

/// Starts a private PostgreSQL server.
///
/// The URL names the superuser `postgres` and the database `postgres`, with no password. The
/// encoding is UTF-8, the default collation is `C.UTF-8`, and `fsync` is on.
///
/// # Errors
///
/// When PostgreSQL is not installed ([`Error::package`] then names the package), the newer one cannot be unpacked
/// ([`Error::is_unavailable`]), or it does not start; the error quotes the end of the server's log.
pub fn postgres() -> Result<Server, Error> {
    Server::start(postgres::Postgres::find()?)
}

/// Starts a private PostgreSQL server that is a standby of a private one: it has what that has, repeats what is
/// committed there, and refuses to write. `pg_wal_replay_pause()` makes it lag.
///
/// # Errors
///
/// As [`postgres`], and if the other server does not let itself be copied.
pub fn postgres_standby(of: &Server) -> Result<Server, Error> {
    let found = postgres::Postgres::find()?;
    Server::start(found.map(|recipe| recipe.standby_of(of.port())))
}

/// Starts a private MariaDB server.
///
/// The URL names the user `root` and the database `mysql`, with no password. InnoDB has its
/// default, durable settings.
///
/// # Errors
///
/// When MariaDB is not installed ([`Error::package`] then names the package), the newer one cannot be unpacked
/// ([`Error::is_unavailable`]), or it does not start; the error quotes the end of the server's log.
pub fn mariadb() -> Result<Server, Error> {
    mariadb_with(&[])
}

/// Starts a private MariaDB server as [`mariadb`] does, with options of its own, such as
/// `--auto-increment-increment=2`. It keeps them when it is started again.
///
/// # Errors
///
/// As [`mariadb`]; an option that the server does not know is in the log that the error quotes.
pub fn mariadb_with(options: &[&str]) -> Result<Server, Error> {
    let found = mariadb::MariaDb::find()?;
    Server::start(found.map(|recipe| recipe.with(options)))
}

/// Starts a private server of this name whose messages are German: `postgres`, as far as its messages are installed,
/// `mariadb` or `mysql`.
///
/// # Errors
///
/// As [`postgres`], [`mariadb`] and [`mysql`].
pub fn german(name: &str) -> Result<Server, Error> {
    const OPTIONS: &[&str] = &["--lc-messages=de_DE"];

    match name {
        "mariadb" => mariadb_with(OPTIONS),
        "mysql" => mysql_with(OPTIONS),
        _ => {
            let found = postgres::Postgres::find()?;
            Server::start(found.map(|recipe| recipe.speaking("de")))
        }
    }
}

/// Starts three private MariaDB servers that are one Galera cluster. They have no password and the user `root`, as
/// that of [`mariadb`]. Each of them takes writes.
///
/// # Errors
///
/// When MariaDB, Galera or rsync is not installed ([`Error::package`] then names the packages), or a node of three
/// clusters in turn does not start; the error quotes the end of its log.
pub fn galera() -> Result<[Server; 3], Error> {
    cluster(|| {
        let free = server::free_ports::<9>()?;
        let ports = free.as_chunks().0;
        let start = |node| {
            let found = galera::Galera::find()?;
            Server::start(found.map(|recipe| galera::Galera::node(recipe, node, ports)))
        };
        Ok([start(0)?, start(1)?, start(2)?])
    })
}

/// Starts three private MySQL servers that are one group (MySQL Group Replication), as [`mysql`] does but for their binary
/// logs. Each of them takes writes.
///
/// # Errors
///
/// As [`mysql`], and where a member of three groups in turn does not start; the error quotes the end of its log.
pub fn group_replication() -> Result<[Server; 3], Error> {
    cluster(|| {
        let ports = server::free_ports::<3>()?;
        let start = |member| {
            let found = mysql::MySql::find()?;
            let recipe = |mysql| group_replication::GroupReplication::member(mysql, member, &ports);
            Server::start(found.map(recipe))
        };
        Ok([start(0)?, start(1)?, start(2)?])
    })
}

/// The nodes of a cluster, which `start` starts; up to three clusters are begun. On a busy machine a node that joins may be
/// given up by the others, and then ends itself. The ports on which nodes talk to each other are chosen before any of them
/// starts, so a server of another test may have one by then.
fn cluster<const N: usize>(
    start: impl Fn() -> Result<[Server; N], Error>,
) -> Result<[Server; N], Error> {
    let mut attempt = 1;
    loop {
        match start() {
            Err(error) if attempt < CLUSTERS && error.package().is_none() => {
                attempt += 1;
                let _ = writeln!(std::io::stderr(), "a new cluster, because {error}");
            }
            outcome => return outcome,
        }
    }
}

/// Starts a private MySQL server, of the packages of Debian's next suite, which are unpacked into the folder
/// `ordid-servers` of the build folder where an earlier run has not done so. Nothing is installed.
///
/// The URL names the user `root` and the database `mysql`, with no password. InnoDB has its default, durable
/// settings; there is no binary log, as in MariaDB.
///
/// # Errors
///
/// When this machine cannot unpack MySQL ([`Error::is_unavailable`]), or MySQL does not start; the error quotes the
/// end of the server's log.
pub fn mysql() -> Result<Server, Error> {
    mysql_with(&[])
}

/// Starts a private MySQL server as [`mysql`] does, with options of its own, such as `--lower-case-table-names=1`.
/// Its data is made with them, and it keeps them when it is started again.
///
/// # Errors
///
/// As [`mysql`]; an option that the server does not know is in the log that the error quotes.
pub fn mysql_with(options: &[&str]) -> Result<Server, Error> {
    let found = mysql::MySql::find()?;
    Server::start(found.map(|recipe| recipe.with(options)))
}

/// Starts a private PgBouncer in its mode `transaction`, before a private PostgreSQL of its own: each transaction, and
/// each statement outside of one, gets one of three connections to the server, whatever client it comes from.
///
/// The URL is that of [`postgres`], with PgBouncer's port. Its version is PgBouncer's.
///
/// # Errors
///
/// When PgBouncer or PostgreSQL is not installed ([`Error::package`] then names the package), or does not start; the
/// error quotes the end of its log.
pub fn pgbouncer() -> Result<Server, Error> {
    pgbouncer_with(&[])
}

/// Starts a private PgBouncer as [`pgbouncer`] does, with settings of its own, such as `pool_mode = session`.
///
/// # Errors
///
/// As [`pgbouncer`]; a setting that it does not know is in the log that the error quotes.
pub fn pgbouncer_with(settings: &[&str]) -> Result<Server, Error> {
    let found = pgbouncer::PgBouncer::with_server()?;
    Server::start(found.map(|recipe| recipe.set(settings)))
}

/// Starts a private PgBouncer as [`pgbouncer`] does, of Debian's next suite: from 1.21 on, each connection to the server
/// gets the statements that its client has prepared by name (`max_prepared_statements = 200`, the default since 1.24).
///
/// # Errors
///
/// As [`pgbouncer`], and where it cannot be unpacked ([`Error::is_unavailable`]).
pub fn pgbouncer_2() -> Result<Server, Error> {
    Server::start(pgbouncer::PgBouncer::newer()?)
}

/// Starts a private Pgpool-II before a private PostgreSQL and a [standby](postgres_standby) of it: queries that only read go
/// to the standby, however much it lags, and all others to the primary. It is unpacked from Debian's next suite.
///
/// The URL is that of [`postgres`], with the port of Pgpool-II.
///
/// # Errors
///
/// When it cannot be unpacked ([`Error::is_unavailable`]), or does not start; the error quotes the end of its log.
pub fn pgpool(primary: &Server, standby: &Server) -> Result<Server, Error> {
    Server::start(pgpool::Pgpool::before(primary.port(), standby.port())?)
}

/// Starts a private H2 server, which emulates other databases: append `;MODE=Oracle` to the URL.
///
/// The URL is JDBC's, for the user `sa` with no password; [`h2_script`] takes it. Any database in
/// the place of `ordid` is created when it is first named.
///
/// # Errors
///
/// When Java or H2 is not installed ([`Error::package`] then names the packages), or the server
/// does not start; the error quotes the end of the server's log.
pub fn h2() -> Result<Server, Error> {
    Server::start(h2::H2::find()?)
}

/// Runs a script in H2 and returns the rows of its queries, each as one line with a space between
/// the values. Select what has no spaces and no line ends.
///
/// # Errors
///
/// When Java or H2 is not installed, and at the first statement that fails, in H2's words.
pub fn h2_script(url: &str, script: &str) -> Result<Vec<String>, Error> {
    h2::H2::find()?.recipe.script(url, script)
}

/// Starts a private Redis server.
///
/// It is durable: every write is appended to its log and synced before the answer
/// (`appendfsync always`). Nothing is evicted.
///
/// # Errors
///
/// When Redis is not installed ([`Error::package`] then names the package), or does not start; the
/// error quotes the end of the server's log.
pub fn redis() -> Result<Server, Error> {
    Server::start(redis::Redis::find()?)
}

/// Starts six private Redis servers, each as [`redis`] does, that are one cluster: three primaries with a replica each.
/// A node that is silent for so long is taken to have failed. Where no test kills one it should be long: a machine that
/// has other things to do is silent, too.
///
/// # Errors
///
/// As [`redis`], and if `redis-cli` does not join them.
pub fn redis_cluster(silent: Duration) -> Result<[Server; 6], Error> {
    cluster(|| {
        let nodes = server::free_ports::<6>()?.map(|peers| {
            let found = redis::Redis::find()?;
            Server::start(found.map(|recipe| recipe.node(peers, silent)))
        });
        let [a, b, c, d, e, f] = nodes;
        let nodes = [a?, b?, c?, d?, e?, f?];
        redis::join(nodes.each_ref().map(Server::port))?;
        Ok(nodes)
    })
}

/// Returns a port of 127.0.0.1 that is free now, and that the kernel gives to no client.
///
/// # Errors
///
/// If there is none.
pub fn free_port() -> Result<u16, Error> {
    server::free_port()
}

/// Starts a private Redis server, two replicas of it, and three Sentinels that watch over them as
/// [`REDIS_SERVICE`]. A server that is silent for 700 ms is taken to have failed. The first array has the servers, the
/// first of which is the master; the other has the Sentinels.
///
/// # Errors
///
/// As [`redis`].
pub fn redis_sentinels() -> Result<([Server; 3], [Server; 3]), Error> {
    let master = redis()?;
    let port = master.port();
    let replica = || redis_replica(&master);
    let (one, two) = (replica()?, replica()?);
    let sentinel = || {
        let found = redis::Redis::find()?;
        Server::start(found.map(|recipe| recipe.sentinel_of(port)))
    };
    let sentinels = [sentinel()?, sentinel()?, sentinel()?];
    Ok(([master, one, two], sentinels))
}

/// Starts a private Redis server that is a replica of a private one, and has what that has.
///
/// # Errors
///
/// As [`redis`].
pub fn redis_replica(of: &Server) -> Result<Server, Error> {
    let found = redis::Redis::find()?;
    Server::start(found.map(|recipe| recipe.replica_of(of.port())))
}

/// What the Sentinels of [`redis_sentinels`] call the servers that they watch over.
pub const REDIS_SERVICE: &str = redis::SERVICE;

/// Starts a private ZooKeeper server, standalone.
///
/// The URL is a connection string. Writes are synced before the answer. A tick has 100 ms, so that
/// sessions may be as short as 200 ms, and they may be as long as a minute.
///
/// # Errors
///
/// When Java or ZooKeeper is not installed ([`Error::package`] then names the packages), or the
/// server does not start; the error quotes the end of the server's log.
pub fn zookeeper() -> Result<Server, Error> {
    Server::start(zookeeper::ZooKeeper::find()?)
}

/// Starts three private ZooKeeper servers that are one ensemble, each as [`zookeeper`] does. Two of them are the
/// least that serves.
///
/// # Errors
///
/// As [`zookeeper`].
pub fn zookeeper_ensemble() -> Result<[Server; 3], Error> {
    cluster(|| {
        let free = server::free_ports::<6>()?;
        let ports: Vec<[u16; 2]> = free.as_chunks().0.to_vec();
        // All at once: none answers before a majority has elected a leader.
        let start = |id| {
            let ports = ports.clone();
            std::thread::spawn(move || {
                let found = zookeeper::ZooKeeper::find()?;
                Server::start(found.map(|recipe| recipe.of_ensemble(id, ports)))
            })
        };
        started([1, 2, 3].map(start))
    })
}

/// Starts a private etcd server, a cluster of its own.
///
/// Of the tests, only those of `cargo xtask soak` start it ([`Policy`]). A lease may be as short as a second.
///
/// # Errors
///
/// When etcd is not installed ([`Error::package`] then names the package), or does not start; the
/// error quotes the end of the server's log.
pub fn etcd() -> Result<Server, Error> {
    Server::start(etcd::Etcd::find()?)
}

/// Starts three private etcd servers that are one cluster. Two of them are the least that serves. Where the leader is
/// silent for 600 ms, the others elect another.
///
/// # Errors
///
/// As [`etcd`].
pub fn etcd_cluster() -> Result<[Server; 3], Error> {
    cluster(|| {
        let ports = server::free_ports::<3>()?;
        // All at once: none answers before a majority has elected a leader.
        let start = |id| {
            std::thread::spawn(move || {
                let found = etcd::Etcd::find()?;
                Server::start(found.map(|recipe| recipe.member(id, &ports)))
            })
        };
        started([0, 1, 2].map(start))
    })
}

/// The servers that these threads start.
fn started<const N: usize>(
    starting: [std::thread::JoinHandle<Result<Server, Error>>; N],
) -> Result<[Server; N], Error> {
    let panicked = || Error::new("the thread that starts a server panicked".to_owned());
    let servers: Vec<Server> = starting
        .map(|starting| starting.join().map_err(|_| panicked()).flatten())
        .into_iter()
        .collect::<Result<_, _>>()?;
    servers.try_into().map_err(|_| panicked())
}

/// Starts the private server of this name: `postgres`, `mariadb`, `mysql`, `pgbouncer`, `h2`, `redis`, `zookeeper` or
/// `etcd`, or
/// `postgres_2` and `mariadb_2`, which are one more of each, for what takes two of them, or `pgbouncer_2`, which is newer.
///
/// # Errors
///
/// As the functions of these names, and when servers of this name are not started privately.
pub fn start(name: &str) -> Result<Server, Error> {
    match name {
        "postgres" | "postgres_2" => postgres(),
        "mariadb" | "mariadb_2" => mariadb(),
        "mysql" => mysql(),
        "pgbouncer" => pgbouncer(),
        "pgbouncer_2" => pgbouncer_2(),
        "h2" => h2(),
        "redis" => redis(),
        "zookeeper" => zookeeper(),
        "etcd" => etcd(),
        _ => Err(not_private(name)),
    }
}

/// Returns the version text of the installed server of this name, without starting it. MySQL is unpacked for it, and so
/// are newer servers that are asked for.
///
/// # Errors
///
/// When the server is not installed; [`Error::package`] then names what to install. Where one cannot be unpacked,
/// [`Error::is_unavailable`].
pub fn installed(name: &str) -> Result<String, Error> {
    match name {
        "postgres" | "postgres_2" => postgres::Postgres::find().map(|found| found.version),
        "mariadb" | "mariadb_2" => mariadb::MariaDb::find().map(|found| found.version),
        "mysql" => mysql::MySql::find().map(|found| found.version),
        "galera" => galera::Galera::find().map(|found| found.version),
        "group_replication" => mysql::MySql::find().map(|found| found.version),
        "pgbouncer" => pgbouncer::find().map(|found| found.version),
        "pgbouncer_2" => pgbouncer::find_newer().map(|found| found.version),
        "pgpool" => pgpool::find().map(|found| found.version),
        "h2" => h2::H2::find().map(|found| found.version),
        "redis" => redis::Redis::find().map(|found| found.version),
        "zookeeper" => zookeeper::ZooKeeper::find().map(|found| found.version),
        "etcd" => etcd::Etcd::find().map(|found| found.version),
        _ => Err(not_private(name)),
    }
}

fn not_private(name: &str) -> Error {
    Error::new(format!(
        "no private server is called `{name}`: use `postgres`, `postgres_2`, `mariadb`, \
         `mariadb_2`, `mysql`, `pgbouncer`, `pgbouncer_2`, `h2`, `redis`, `zookeeper` or `etcd`"
    ))
}

/// Returns the exit code of a program for its `main`, and writes an error to standard error.
pub fn conclude(outcome: Result<(), impl std::fmt::Display>) -> std::process::ExitCode {
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
