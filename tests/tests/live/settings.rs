//! Servers as people set them: what each operation comes to under each setting, and that no setting makes it lie.

use std::{
    collections::BTreeSet,
    fmt,
    future::Future,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use libtest_mimic::{Failed, Trial};
use ordid::{
    KeyType as _, OrderedKey,
    clock::{Clock as _, SystemClock},
    coordination::{AsyncNodeAllocator as _, AsyncSegmentSource as _, LeaseTerms},
    uuid::Uuid,
};
use ordid_harness::Server;
use ordid_sqlx::{
    FlushError, Flushed, MappingTable, Retry, SqlCounter, SqlDisposableNode, SqlLease, UnitOfWork,
};
use ordid_tests::{
    conformance,
    proxy::{Fault, Proxy, Traffic},
    servers::{Options, Scratch, Servers},
    settings::{Setting, mysql, postgres},
    trials::{ignored, run},
};
use sqlx::{MySql, Pool, Postgres, pool::PoolOptions};

use crate::{
    Outcome,
    database::{Keeps, Live, Work, all_of, begin},
    keys::Native,
    on_scratch,
    retry::{self, Remote},
};

/// What is done under a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// A flush that only inserts.
    Insert,
    /// A flush of updates and deletes, which writes a marker row.
    Change,
    /// An insert the answer to whose COMMIT is lost.
    LostInsert,
    /// The same of updates and deletes.
    LostChange,
    /// An insert whose COMMIT the server never gets. It ends the transaction a while later.
    Dying,
    /// An insert of a value that another transaction holds.
    Locked,
    /// An insert of more than 2 MB.
    Wide,
    /// A node is leased, renewed and given back.
    Lease,
    /// Numbers are reserved.
    Counter,
    /// UUIDs are mapped.
    Mapping,
}

use Operation::*;

impl Operation {
    /// The head of its column.
    const fn name(self) -> &'static str {
        match self {
            Insert => "insert",
            Change => "update, delete",
            LostInsert => "insert, COMMIT's answer lost",
            LostChange => "update, delete, COMMIT's answer lost",
            Dying => "insert, COMMIT lost",
            Locked => "insert, a value locked",
            Wide => "insert of 2 MB",
            Lease => "lease",
            Counter => "counter",
            Mapping => "mapping table",
        }
    }
}

/// What is right.
#[derive(Debug, Clone, Copy)]
enum Right {
    /// It does what it does elsewhere.
    Works,
    /// Nothing is written, and the error has these words of the server's.
    Refused(&'static str),
}

use Right::*;

/// A setting, and what is right under it.
struct Cells {
    setting: Setting,
    cells: &'static [(Operation, Right)],
}

/// All operations that every setting has a cell for, with the same outcome.
macro_rules! all {
    ($right:expr $(, $more:ident: $other:expr)*) => {
        &[
            (Insert, $right), (Change, $right), (LostInsert, $right), (LostChange, $right),
            (Lease, $right), (Counter, $right), (Mapping, $right), $(($more, $other),)*
        ]
    };
}

const MYSQL: &[Cells] = &[
    Cells {
        setting: mysql::NO_AUTOCOMMIT,
        cells: all!(Works, Dying: Works),
    },
    Cells {
        setting: mysql::READ_UNCOMMITTED,
        cells: all!(Works, Dying: Works),
    },
    Cells {
        setting: mysql::SERIALIZABLE,
        cells: all!(Works, Dying: Works),
    },
    Cells {
        setting: mysql::NOT_STRICT,
        cells: all!(Works, Dying: Works),
    },
    Cells {
        setting: Setting {
            name: "max_allowed_packet=1M",
            set: "SET GLOBAL max_allowed_packet = 1048576",
            reset: "SET GLOBAL max_allowed_packet = DEFAULT",
        },
        cells: all!(Works, Wide: Works),
    },
    Cells {
        setting: Setting {
            name: "innodb_lock_wait_timeout=1",
            set: "SET GLOBAL innodb_lock_wait_timeout = 1",
            reset: "SET GLOBAL innodb_lock_wait_timeout = 5",
        },
        cells: &[
            (Insert, Works),
            (Locked, Refused("Lock wait timeout exceeded")),
        ],
    },
];

/// A server that is started with `lower_case_table_names=1`.
const LOWER_CASE: &[Cells] = &[Cells {
    setting: Setting {
        name: "lower_case_table_names=1",
        set: "DO 0",
        reset: "DO 0",
    },
    cells: all!(Works),
}];

const POSTGRES: &[Cells] = &[
    Cells {
        setting: postgres::SERIALIZABLE,
        cells: all!(Works, Dying: Works),
    },
    Cells {
        setting: postgres::READ_ONLY,
        cells: &[
            (Insert, READ_ONLY),
            (Change, READ_ONLY),
            (Lease, READ_ONLY),
            (Counter, READ_ONLY),
            (Mapping, READ_ONLY),
        ],
    },
    Cells {
        setting: postgres::STATEMENT_TIMEOUT,
        cells: all!(Works, Locked: Refused("canceling statement due to statement timeout")),
    },
    Cells {
        setting: postgres::IDLE_TIMEOUT,
        cells: all!(Works, Dying: Works),
    },
    Cells {
        setting: postgres::ASYNCHRONOUS,
        cells: all!(Works, Dying: Works),
    },
    Cells {
        setting: Setting {
            name: "the privileges of the guide",
            set: PRIVILEGES,
            reset: postgres::RESET,
        },
        cells: all!(Works, Dying: Works, Wide: Works),
    },
];

/// Grants what the guide's chapter "Operate" asks for, and nothing else. Sessions that begin later have the role of a program.
const PRIVILEGES: &str = "
    DO $$ BEGIN CREATE ROLE ordid_app; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
    REVOKE ALL ON SCHEMA public FROM PUBLIC;
    GRANT USAGE ON SCHEMA public TO ordid_app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON parents, children, wide TO ordid_app;
    GRANT SELECT, INSERT ON ordid_flushes TO ordid_app;
    GRANT SELECT, UPDATE ON ordid_nodes, ordid_counters TO ordid_app;
    GRANT SELECT, INSERT ON \"Mapped_Ids\" TO ordid_app;
    DO $$ BEGIN
        EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
        EXECUTE format('ALTER DATABASE %I SET role = ordid_app', current_database());
    END $$";

const READ_ONLY: Right = Refused("in a read-only transaction");

/// A row of 5 kB.
#[derive(OrderedKey, Clone)]
#[ordid(table = "wide")]
pub struct WideRow {
    #[ordid(key)]
    id: Native,
    body: String,
}

all_of! {
    /// A database whose server has settings.
    pub trait Set: Remote + Scratch + Keeps<WideRow> + EndsIdle
}

/// A server that can be told to end sessions.
pub trait EndsIdle: sqlx::Database {
    /// Ends the sessions in which a transaction waits for its client.
    async fn end_idle(pool: &Pool<Self>) -> Result<(), sqlx::Error>;
}

impl EndsIdle for Postgres {
    async fn end_idle(pool: &Pool<Self>) -> Result<(), sqlx::Error> {
        let sql = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
                   WHERE datname = current_database() AND state = 'idle in transaction'";
        Self::script(pool, sql).await
    }
}

impl EndsIdle for MySql {
    async fn end_idle(pool: &Pool<Self>) -> Result<(), sqlx::Error> {
        // MySQL's `innodb_trx` is an error while somebody sends bytes that are no text. MariaDB has the other by request
        // only. The server belongs to the test.
        let sql =
            if Self::count(pool, "(SELECT 1) AS it WHERE @@performance_schema = 1").await? == 0 {
                "SELECT CONCAT('KILL ', trx_mysql_thread_id) FROM information_schema.innodb_trx \
             WHERE trx_query IS NULL AND trx_mysql_thread_id <> CONNECTION_ID()"
            } else {
                "SELECT CONCAT('KILL ', processlist_id) FROM performance_schema.threads \
             JOIN performance_schema.events_transactions_current USING (thread_id) \
             WHERE state = 'ACTIVE' AND processlist_command = 'Sleep'"
            };
        for kill in Self::texts(pool, sql).await? {
            Self::script(pool, &kill).await?;
        }
        Ok(())
    }
}

/// Writes the cells of these settings as a table.
fn table(title: &str, settings: &[&[Cells]]) -> String {
    let operations = [
        Insert, Change, LostInsert, LostChange, Dying, Locked, Wide, Lease, Counter, Mapping,
    ];
    let mut text = format!("\n| {title} |");
    for operation in operations {
        text += &format!(" {} |", operation.name());
    }
    text += &format!("\n|---|{}\n", "---|".repeat(operations.len()));
    for Cells { setting, cells } in settings.iter().copied().flatten() {
        text += &format!("| `{}` |", setting.name);
        for operation in operations {
            let cell = cells.iter().find(|(it, _)| *it == operation);
            text += &match cell {
                None => " |".to_owned(),
                Some((_, Works)) => " works |".to_owned(),
                Some((_, Refused(words))) => format!(" refused: {words} |"),
            };
        }
        text.push('\n');
    }
    text
}

/// `ORDID_WRITE_SETTINGS=1` writes what otherwise has to be there.
fn document() -> Result<(), Failed> {
    let tables = [
        table("MariaDB 10.11, MySQL 9.7", &[MYSQL, LOWER_CASE]),
        table("PostgreSQL 15", &[POSTGRES]),
    ]
    .concat();
    if std::env::var_os("ORDID_WRITE_SETTINGS").is_some_and(|value| value == "1") {
        println!("{tables}");
        conformance::write("settings", &tables)?;
    }
    Ok(conformance::is_written(
        &tables,
        "cargo xtask conformance --settings",
    )?)
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    trials.push(Trial::test(
        "settings::the_document_has_this_table",
        document,
    ));
    for row in POSTGRES {
        let name = format!("settings::{}", row.setting.name);
        on_scratch::<Postgres, _, _>(trials, servers, "postgres", &name, async move |pool| {
            broken(&Site::new(pool, &row.setting).await?, row).await
        });
    }
    for server in ["mariadb", "mysql"] {
        let name = "settings::numbers_have_the_steps_of_servers_that_compare_nothing";
        on_own_server(trials, servers, server, name, &[], counts_by_steps);
    }
    for (name, settings, options) in [
        ("settings::of_sessions", MYSQL, &[][..]),
        (
            "settings::lower_case_table_names=1",
            LOWER_CASE,
            &["--lower-case-table-names=1"],
        ),
    ] {
        for server in ["mariadb", "mysql"] {
            on_own_server(
                trials,
                servers,
                server,
                name,
                options,
                async move |server| {
                    let mut outcomes = Vec::new();
                    for row in settings {
                        let (pool, cleanup) = MySql::scratch(&server.url()).await?;
                        let site = Site::<MySql>::new(pool, &row.setting).await?;
                        outcomes.extend(broken(&site, row).await.err());
                        MySql::script(&site.plain, row.setting.reset).await?;
                        cleanup.await?;
                    }
                    let outcomes: Vec<String> = outcomes.iter().map(ToString::to_string).collect();
                    if outcomes.is_empty() {
                        Ok(())
                    } else {
                        Err(outcomes.join("\n").into())
                    }
                },
            );
        }
    }
}

/// Two servers that replicate to each other compare nothing before a COMMIT: only their steps keep what they count apart.
async fn counts_by_steps(server: Server) -> Outcome {
    let (pool, cleanup) = MySql::scratch(&server.url()).await?;
    let set = "SET GLOBAL auto_increment_increment = 2, GLOBAL auto_increment_offset = 2";
    MySql::script(&pool, set).await?;
    let options = pool.connect_options();
    let later = PoolOptions::<MySql>::new()
        .max_connections(2)
        .connect_with((*options).clone())
        .await?;
    let terms = LeaseTerms::new(0..1 << 16)?;
    let nodes = SqlDisposableNode::<MySql>::new((*options).clone(), terms);
    nodes.create().await?;
    let mut given = Vec::new();
    for _ in 0..3 {
        let grant = nodes.acquire(SystemClock.now(), None).await?;
        given.push(grant.node());
    }
    assert_eq!(given, [2, 4, 6]);

    let table = MappingTable::<MySql>::new("ids")?;
    table.create(&later).await?;
    let uuids = [Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7()];
    let mut ids = table.insert_or_get_many(&later, &uuids).await?;
    ids.sort_unstable();
    assert_eq!(ids, [2, 4, 6]);
    assert_eq!(table.insert_or_get(&later, Uuid::now_v7()).await?, 8);
    later.close().await;
    Ok(cleanup.await?)
}

/// Adds a test with a server of its own, which is started with these options.
pub(crate) fn on_own_server<F: Future<Output = Outcome>>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    own: &'static [&'static str],
    test: impl FnOnce(Server) -> F + Send + 'static,
) {
    let name = format!("{server}::{name}");
    let unavailable = ordid_harness::installed(server).err();
    let reason = servers.url(server).err();
    let reason = reason.or_else(|| unavailable.map(|error| error.to_string()));
    trials.push(match reason {
        Some(reason) => ignored(name, reason),
        None => Trial::test(name, move || {
            run(async || {
                // A lock that is never given back is no reason to wait for long.
                let mut options = vec!["--innodb-lock-wait-timeout=5"];
                options.extend(own);
                let options = options.as_slice();
                test(match server {
                    "mysql" => ordid_harness::mysql_with(options)?,
                    _ => ordid_harness::mariadb_with(options)?,
                })
                .await
            })
        }),
    });
}

/// After this an operation is taken to wait for what will not come.
const ENDLESS: Duration = Duration::from_secs(30);

/// Carries out each operation of a setting, and says which did not do what is right.
async fn broken<DB: Set>(site: &Site<DB>, Cells { setting, cells }: &Cells) -> Outcome {
    let mut broken = Vec::new();
    for &(operation, right) in *cells {
        let cell = format!("{} x {operation:?}", setting.name);
        let outcome = tokio::time::timeout(ENDLESS, site.carry_out(operation)).await;
        let outcome =
            outcome.unwrap_or_else(|_| Err(format!("still running after {ENDLESS:?}").into()));
        match (&outcome, right) {
            (Ok(Ok(())), Works) => {}
            (Ok(Err(error)), Refused(words)) if error.contains(words) => {}
            (Ok(Ok(())), Refused(_)) => broken.push(format!("{cell}: it works")),
            (Ok(Err(error)), _) => broken.push(format!("{cell}: refused: {error}")),
            (Err(error), _) => broken.push(format!("{cell}: {error}")),
        }
        site.empty().await?;
    }
    if broken.is_empty() {
        Ok(())
    } else {
        Err(broken.join("\n").into())
    }
}

/// A database whose new sessions have a setting.
struct Site<DB: Set> {
    /// Older sessions, which have not.
    plain: Pool<DB>,
    options: Options<DB>,
}

/// What an operation returns: an error that says that nothing was written, and why.
type Done = Result<(), String>;

impl<DB: Set> Site<DB> {
    /// Makes the tables, and then the setting.
    async fn new(plain: Pool<DB>, setting: &Setting) -> Outcome<Self> {
        retry::create(&plain).await?;
        DB::create_flushes(&plain).await?;
        let (key, options) = (DB::KEY, DB::OPTIONS);
        let wide = format!(
            "CREATE TABLE wide (id {key} NOT NULL PRIMARY KEY, body TEXT NOT NULL) {options}"
        );
        DB::script(&plain, &wide).await?;
        let site = Self {
            options: (*plain.connect_options()).clone(),
            plain,
        };
        site.leases()?.create().await?;
        site.counter()?.create(1).await?;
        site.mapping()?.create(&site.plain).await?;
        // The pool never opens more: later ones would have the setting.
        let mut held = Vec::new();
        for _ in 0..site.plain.options().get_max_connections() {
            held.push(site.plain.acquire().await?);
        }
        drop(held);
        DB::script(&site.plain, setting.set).await?;
        Ok(site)
    }

    fn leases(&self) -> Result<SqlLease<DB>, ordid::Error> {
        Ok(SqlLease::new(self.options.clone(), LeaseTerms::new(0..4)?))
    }

    fn counter(&self) -> Result<SqlCounter<DB>, ordid::Error> {
        SqlCounter::new(self.options.clone(), "orders")
    }

    fn mapping(&self) -> Result<MappingTable<DB>, ordid::Error> {
        // Where the server does not know capital letters, this is a table, too.
        MappingTable::new("Mapped_Ids")
    }

    async fn pool(&self) -> Result<Pool<DB>, sqlx::Error> {
        let pool = PoolOptions::new().max_connections(2);
        pool.connect_with(self.options.clone()).await
    }

    async fn empty(&self) -> Outcome {
        retry::empty(&self.plain).await?;
        DB::script(&self.plain, "DELETE FROM ordid_flushes").await?;
        DB::script(&self.plain, "DELETE FROM wide").await?;
        Ok(())
    }

    async fn carry_out(&self, operation: Operation) -> Outcome<Done> {
        match operation {
            Insert => self.insert(Fault::None).await,
            Change => self.change(Fault::None).await,
            LostInsert => {
                let down = self.commit_of_inserts().await?;
                self.insert(Fault::Swallow(down)).await
            }
            LostChange => {
                let down = self.commit_of_changes().await?;
                self.change(Fault::Swallow(down)).await
            }
            Dying => self.insert(Fault::HoldCommit).await,
            Locked => self.locked().await,
            Wide => self.wide().await,
            Lease => self.lease().await,
            Counter => self.count().await,
            Mapping => self.map().await,
        }
    }

    /// Flushes through a proxy, over connections that are closed then: what was not committed is gone.
    async fn flush(
        &self,
        work: &mut Work<UnitOfWork<DB>>,
        fault: Fault,
    ) -> Outcome<Result<Flushed, FlushError<sqlx::Error>>> {
        let proxy = retry::proxy(&self.plain).await?;
        proxy.plan([fault]);
        let behind = DB::through(&self.plain, &proxy).await?;
        let is_over = AtomicBool::new(false);
        let ending = async {
            if fault == Fault::HoldCommit {
                self.end_at_commit(&proxy, &is_over).await?;
            }
            Ok::<_, sqlx::Error>(())
        };
        let flushing = async {
            let flushed = work.flush(&behind).await;
            is_over.store(true, Ordering::Relaxed);
            flushed
        };
        let (flushed, ended) = tokio::join!(flushing, ending);
        ended?;
        behind.close().await;
        let traffic = proxy.traffic();
        match has_struck(fault, &traffic) {
            true => Ok(flushed),
            false => Err(format!("no {fault:?}, but {traffic:?} and {flushed:?}").into()),
        }
    }

    /// Ends the transaction whose COMMIT is held back, unless the flush is over before it.
    async fn end_at_commit(&self, proxy: &Proxy, is_over: &AtomicBool) -> Result<(), sqlx::Error> {
        while proxy.traffic().first().is_none_or(|it| it.commit.is_none()) {
            if is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The flush may ask meanwhile, and must not believe what it sees. A server that ends what is idle does so before.
        tokio::time::sleep(Duration::from_millis(700)).await;
        DB::end_idle(&self.plain).await
    }

    async fn insert(&self, fault: Fault) -> Outcome<Done> {
        let mut work = retry::inserts::<DB>(&retry::family()).with_new_memory();
        let flushed = self.flush(&mut work, fault).await?;
        judged(flushed, retry::count(&self.plain).await?, 35, 0)
    }

    async fn change(&self, fault: Fault) -> Outcome<Done> {
        let family = retry::family();
        retry::inserts::<DB>(&family).flush(&self.plain).await?;
        let mut work = retry::changes::<DB>(&family).with_new_memory();
        let flushed = self.flush(&mut work, fault).await?;
        let found = retry::changed(&self.plain).await?;
        judged(flushed, found, [5, 27, 1], [0, 30, 0])
    }

    /// Returns after how many bytes of answers the COMMIT of inserts is sent. Here and later the flush asks the catalog, so
    /// that each conversation is as long as the first.
    async fn commit_of_inserts(&self) -> Outcome<u64> {
        let work = retry::inserts::<DB>(&retry::family());
        self.commit_of(&mut work.with_new_memory()).await
    }

    async fn commit_of_changes(&self) -> Outcome<u64> {
        let family = retry::family();
        retry::inserts::<DB>(&family).flush(&self.plain).await?;
        let work = retry::changes::<DB>(&family);
        self.commit_of(&mut work.with_new_memory()).await
    }

    async fn commit_of(&self, work: &mut Work<UnitOfWork<DB>>) -> Outcome<u64> {
        let proxy = retry::proxy(&self.plain).await?;
        let behind = DB::through(&self.plain, &proxy).await?;
        work.flush(&behind).await?;
        let (_, down) = proxy.last_traffic().commit.ok_or("no COMMIT")?;
        behind.close().await;
        self.empty().await?;
        Ok(down)
    }

    async fn locked(&self) -> Outcome<Done> {
        let mut other = self.plain.begin().await?;
        let id = DB::literal(Native::generate().to_raw());
        let takes = format!("INSERT INTO parents (id, name) VALUES ({id}, '3')");
        DB::execute_in(&mut other, &takes).await?;
        let mut work = retry::inserts::<DB>(&retry::family()).with_retry(Retry::NONE);
        let flushed = self.flush(&mut work, Fault::None).await?;
        other.rollback().await?;
        judged(flushed, retry::count(&self.plain).await?, 35, 0)
    }

    async fn wide(&self) -> Outcome<Done> {
        let mut work = begin::<DB>();
        let sizes = std::iter::repeat_n(5_000, 400).chain([60_000; 11]);
        for size in sizes {
            work.add(WideRow {
                id: Native::generate(),
                body: "x".repeat(size),
            });
        }
        let flushed = self.flush(&mut work, Fault::None).await?;
        if let Ok(flushed) = &flushed {
            assert_eq!(flushed.retries, 0);
        }
        judged(flushed, DB::count(&self.plain, "wide").await?, 411, 0)
    }

    async fn lease(&self) -> Outcome<Done> {
        let (one, other) = (self.leases()?, self.leases()?);
        let first = match one.acquire(SystemClock.now(), None).await {
            Ok(first) => first,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let second = other.acquire(SystemClock.now(), None).await?;
        if first.node() == second.node() {
            return Err(format!("two holders of node {}", first.node()).into());
        }
        let renewed = one.renew(&first, SystemClock.now()).await?;
        if other.renew(&first, SystemClock.now()).await.is_ok() {
            return Err("another process does not see the renewal".into());
        }
        one.release(&renewed, None).await?;
        other.release(&second, None).await?;
        Ok(Ok(()))
    }

    async fn count(&self) -> Outcome<Done> {
        let five = std::num::NonZeroU32::new(5).ok_or("zero")?;
        let (one, other) = (self.counter()?, self.counter()?);
        let first = match one.reserve(five).await {
            Ok(first) => first,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let second = other.reserve(five).await?;
        let numbers: BTreeSet<i64> = first.values().chain(second.values()).collect();
        if numbers.len() != 10 {
            return Err("numbers were given twice".into());
        }
        Ok(Ok(()))
    }

    async fn map(&self) -> Outcome<Done> {
        let table = self.mapping()?;
        let uuids: Vec<Uuid> = (0..50).map(|_| Uuid::generate()).collect();
        let pool = self.pool().await?;
        let ids = table.insert_or_get_many(&pool, &uuids).await;
        pool.close().await;
        let found = table.get_many(&self.plain, &uuids).await?;
        match ids {
            Ok(ids) if ids.iter().copied().map(Some).eq(found.iter().copied()) => Ok(Ok(())),
            Ok(_) => Err("others find other ids".into()),
            Err(_) if found.iter().any(Option::is_some) => Err("an error, and rows".into()),
            Err(error) => Ok(Err(error.to_string())),
        }
    }
}

/// Whether a fault has met the COMMIT of the first connection, so that the flush has made another one.
fn has_struck(fault: Fault, traffic: &[Traffic]) -> bool {
    let has_met = |first: &Traffic| match fault {
        Fault::HoldCommit => first.commit.is_some() && !first.commits,
        _ => first.commits,
    };
    fault == Fault::None || traffic.first().is_some_and(has_met) && traffic.len() > 1
}

/// Holds what a flush says against what is there.
fn judged<T: PartialEq + fmt::Debug>(
    flushed: Result<Flushed, FlushError<sqlx::Error>>,
    found: T,
    all: T,
    none: T,
) -> Outcome<Done> {
    match flushed {
        Ok(_) if found == all => Ok(Ok(())),
        Err(error) if found == none && !error.is_commit_unknown() => {
            let text = error.to_string();
            if text.contains("nothing was written") {
                Ok(Err(text))
            } else {
                Err(format!("the error does not say what was written: {text}").into())
            }
        }
        flushed => Err(format!("{found:?} is there, and the flush says {flushed:?}").into()),
    }
}
