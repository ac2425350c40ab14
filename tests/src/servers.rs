//! Which database servers the live tests run on, and a scratch database on each.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use ordid_harness::{Access, Error};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, MySql, MySqlConnection, PgConnection, Pool,
    Postgres, Sqlite, mysql::MySqlConnectOptions, pool::PoolOptions, postgres::PgConnectOptions,
};

/// How to connect to a database.
pub type Options<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

/// The servers that live tests may ask for; started by this process where they are private and no
/// address is given, stopped when this is dropped.
#[derive(Debug)]
pub struct Servers(HashMap<&'static str, Access>);

impl Servers {
    /// Finds or starts the servers of these names, if they are wanted and not only listed.
    ///
    /// # Errors
    ///
    /// If a private server is missing or does not start, or a name in `ORDID_TEST_SKIP` is none.
    pub fn start(names: &[&'static str], wanted: bool) -> Result<Self, Error> {
        let mut servers = HashMap::new();
        for &name in names {
            let access = if wanted {
                ordid_harness::access(name)?
            } else {
                Access::Skip("only listed".to_owned())
            };
            servers.insert(name, access);
        }
        Ok(Self(servers))
    }

    /// Returns a server's address.
    ///
    /// # Errors
    ///
    /// The reason why its tests are ignored.
    pub fn url(&self, name: &str) -> Result<String, String> {
        match self.0.get(name) {
            Some(Access::Skip(reason)) => Err(reason.clone()),
            Some(access) => access.url().ok_or_else(|| "no address".to_owned()),
            None => Err(format!("no server is called {name}")),
        }
    }
}

/// A server may go on when the tests have ended, and then it does not keep their databases.
impl Drop for Servers {
    fn drop(&mut self) {
        let all = std::mem::take(&mut *spare());
        let drop_all = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(sqlx::Error::Io)?;
            runtime.block_on(async {
                for spare in all {
                    spare.drop().await?;
                }
                Ok::<_, sqlx::Error>(())
            })
        };
        // Whoever drops this may be inside a runtime.
        match std::thread::spawn(drop_all).join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => eprintln!("databases of the tests: {error}"),
            Err(_) => eprintln!("databases of the tests: not dropped"),
        }
    }
}

/// Ends the use of a database.
pub type Cleanup = Pin<Box<dyn Future<Output = Result<(), sqlx::Error>> + Send>>;

/// A database engine on which a test can have a database of its own.
pub trait Scratch: sqlx::Database {
    /// Makes an empty database on the server; the future drops it, or leaves it to another test.
    fn scratch(
        url: &str,
    ) -> impl Future<Output = Result<(Pool<Self>, Cleanup), sqlx::Error>> + Send;
}

/// Returns a name that no other test of any running program uses.
fn new_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("ordid_{}_{number}", std::process::id())
}

async fn run<C: Connection>(connection: &mut C, sql: &str) -> Result<(), sqlx::Error>
where
    for<'c> &'c mut C: sqlx::Executor<'c, Database = C::Database>,
{
    let sql = sqlx::raw_sql(AssertSqlSafe(sql));
    sql.execute(connection).await.map(drop)
}

/// The pool of a test.
fn pool_options<DB: sqlx::Database>() -> PoolOptions<DB> {
    PoolOptions::new().max_connections(4)
}

impl Scratch for MySql {
    async fn scratch(url: &str) -> Result<(Pool<Self>, Cleanup), sqlx::Error> {
        let name = new_name();
        let options: MySqlConnectOptions = url.parse()?;
        let mut admin = MySqlConnection::connect_with(&options).await?;
        let options = by_its_socket(options, &mut admin).await?;
        run(&mut admin, &format!("CREATE DATABASE {name}")).await?;
        let options = options.database(&name);
        let pool = pool_options().connect_with(options).await?;
        let open = pool.clone();
        let cleanup = async move {
            open.close().await;
            run(&mut admin, &format!("DROP DATABASE {name}")).await?;
            admin.close().await
        };
        Ok((pool, Box::pin(cleanup)))
    }
}

/// A database that a test has left and another test may have: PostgreSQL makes three hundred files for a new one, and the
/// first connection to it is slow.
struct Spare {
    options: PgConnectOptions,
    name: String,
}

static SPARE: Mutex<Vec<Spare>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<Spare>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_spare(server: &PgConnectOptions) -> Option<Spare> {
    let server = server.to_url_lossy();
    let mut spare = spare();
    let position = spare
        .iter()
        .position(|it| it.options.to_url_lossy() == server)?;
    Some(spare.swap_remove(position))
}

impl Scratch for Postgres {
    async fn scratch(url: &str) -> Result<(Pool<Self>, Cleanup), sqlx::Error> {
        let name = new_name();
        let server: PgConnectOptions = url.parse()?;
        let mut admin = PgConnection::connect_with(&server).await?;
        let mut is_there = false;
        if let Some(spare) = take_spare(&server) {
            // The new name keeps a memory of the old database, such as that of a cache, from being used.
            let rename = format!("ALTER DATABASE {} RENAME TO {name}", spare.name);
            is_there = run(&mut admin, &rename).await.is_ok();
            if !is_there {
                spare.drop().await?;
            }
        }
        if !is_there {
            run(&mut admin, &format!("CREATE DATABASE {name}")).await?;
        }
        admin.close().await?;
        let options = server.clone().database(&name);
        let pool = pool_options().connect_with(options.clone()).await?;
        let open = pool.clone();
        let cleanup = async move {
            open.close().await;
            let spare = Spare {
                options: server,
                name,
            };
            match empty(&options).await {
                Ok(()) => self::spare().push(spare),
                Err(_) => spare.drop().await?,
            }
            Ok(())
        };
        Ok((pool, Box::pin(cleanup)))
    }
}

impl Spare {
    async fn drop(self) -> Result<(), sqlx::Error> {
        let mut admin = PgConnection::connect_with(&self.options).await?;
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        run(&mut admin, &drop).await?;
        admin.close().await
    }
}

/// Makes a database of PostgreSQL as it was when it was new.
///
/// # Errors
///
/// If it has what this does not remove, or is in use.
async fn empty(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect_with(options).await?;
    let emptied = run(
        &mut connection,
        "SET client_min_messages = warning;
DO $$
DECLARE
    made name;
    other int;
BEGIN
    FOR other IN SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'
    LOOP
        IF NOT pg_terminate_backend(other, 5000) THEN
            RAISE EXCEPTION 'in use';
        END IF;
    END LOOP;
    IF EXISTS (SELECT FROM pg_prepared_xacts WHERE database = current_database())
        OR EXISTS (SELECT FROM pg_extension WHERE extname <> 'plpgsql')
        OR EXISTS (SELECT FROM pg_publication)
        OR EXISTS (SELECT FROM pg_event_trigger)
        OR EXISTS (SELECT FROM pg_foreign_data_wrapper)
        OR EXISTS (SELECT FROM pg_default_acl)
        OR EXISTS (SELECT FROM pg_largeobject_metadata)
        OR EXISTS (SELECT FROM pg_database AS d LEFT JOIN pg_db_role_setting AS s ON s.setdatabase = d.oid
            WHERE d.datname = current_database() AND (s.setdatabase IS NOT NULL OR d.datacl IS NOT NULL OR d.datconnlimit <> -1))
    THEN
        RAISE EXCEPTION 'more than schemas';
    END IF;
    FOR made IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', made);
    END LOOP;
    CREATE SCHEMA public AUTHORIZATION pg_database_owner;
    GRANT USAGE ON SCHEMA public TO PUBLIC;
END $$",
    );
    emptied.await?;
    connection.close().await
}

/// Connects by `MariaDB`'s socket, if it is on this machine. `SQLx` 0.9.0 does not set `TCP_NODELAY`: over TCP, each
/// statement behind one that is closed waits 40 ms. What goes through a proxy goes over TCP all the same, and so does
/// `MySQL`: it ends some TLS handshakes over its socket.
async fn by_its_socket(
    options: MySqlConnectOptions,
    admin: &mut MySqlConnection,
) -> Result<MySqlConnectOptions, sqlx::Error> {
    let socket = "SELECT IF(VERSION() LIKE '%MariaDB%', @@socket, '')";
    let socket: String = sqlx::query_scalar(socket).fetch_one(admin).await?;
    Ok(match std::path::Path::new(&socket).exists() {
        true => options.socket(socket),
        false => options,
    })
}

/// A database whose address other clients than `SQLx` take, too.
pub trait Client: sqlx::Database {
    /// Returns the address as the C clients of PostgreSQL, MySQL and SQLite know it: without `SQLx`'s own
    /// parameters, and without TLS where these options are.
    fn client_url(options: &Options<Self>) -> String;

    /// Returns options for the same database over TCP, without other parameters.
    ///
    /// # Panics
    ///
    /// If the address has no text.
    fn over_tcp(options: &Options<Self>) -> Options<Self> {
        let options = Self::client_url(options).parse();
        options.expect("it is made of options")
    }
}

impl Client for Postgres {
    fn client_url(options: &Options<Self>) -> String {
        let url = options.to_url_lossy();
        let mut pairs = url.query_pairs();
        let is_plain = pairs.any(|(key, value)| key == "sslmode" && value == "disable");
        let place = url.as_str().split('?').next().unwrap_or_default();
        let plain = if is_plain { "?sslmode=disable" } else { "" };
        format!("{place}{plain}")
    }
}

impl Client for MySql {
    fn client_url(options: &Options<Self>) -> String {
        let url = options.to_url_lossy();
        url.as_str()
            .split('?')
            .next()
            .unwrap_or_default()
            .to_owned()
    }
}

impl Client for Sqlite {
    fn client_url(options: &Options<Self>) -> String {
        options.get_filename().to_string_lossy().into_owned()
    }
}
