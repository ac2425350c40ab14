//! A process that is killed in the midst of a flush, and the next one: each row is there exactly once,
//! with the key that it had.
//!
//! The process is this program itself, started again with [`FILE`] in its environment. It opens the
//! journal, resumes what is pending, flushes it, then flushes one more unit of work if it was told to,
//! and says on its standard output how far it is. It is killed by SIGKILL: at each of the points where
//! the journal or the database has just been, or will just be, written, where it says so and waits; and
//! at random moments.

use std::{
    env,
    future::Future,
    io::{BufRead, BufReader, Lines, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use libtest_mimic::Trial;
use ordid::{Error, KeyType, OrderedKey, uuid::Uuid};
use ordid_file::FlushJournal;
use ordid_sql::Journal;
use ordid_sqlx::{
    Backend, ChunkLimits, EngineProfile, Entity, Journaled, OnConflict, UnitOfWork, flushes_table,
};
use ordid_tests::{
    faults::Remote as _,
    proxy::{At, Fault, Proxy},
    servers::Servers,
    soak,
};
use serde::{Deserialize, Serialize};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, MySql, Pool, Postgres, Sqlite, pool::PoolOptions,
    query_scalar, raw_sql,
};
use tempfile::TempDir;

use crate::{Outcome, on_scratch, sqlite};

/// The path of the journal; in the environment of a process that is to be killed.
const FILE: &str = "ORDID_TEST_JOURNAL_FILE";
/// The database's address.
const DATABASE: &str = "ORDID_TEST_JOURNAL_DATABASE";
/// The number of the unit of work to flush, if any.
const UNIT: &str = "ORDID_TEST_JOURNAL_UNIT";
/// How many rows a transaction takes, if a unit of work goes in chunks.
const CHUNK: &str = "ORDID_TEST_JOURNAL_CHUNK";
/// The number of stops, if it is another one.
const STOPS: &str = "ORDID_TEST_JOURNAL_STOPS";
/// How many points are passed before the process waits to be killed, if it is to wait.
const POINT: &str = "ORDID_TEST_JOURNAL_POINT";

const PARCELS: usize = 40;
/// Enough for `COPY` on PostgreSQL.
const FEW_STOPS: usize = 1_200;

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct ParcelId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct StopId(Uuid);

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "parcel")]
struct Parcel {
    #[ordid(key)]
    id: ParcelId,
    unit: i64,
    weight: f64,
    note: Option<String>,
}

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "stop")]
struct Stop {
    #[ordid(key)]
    id: StopId,
    #[ordid(parent)]
    parcel: ParcelId,
    unit: i64,
}

/// A database that the process writes to.
pub trait Killed: Backend {
    const SCHEMA: &'static str;

    fn execute_all(pool: &Pool<Self>, sql: &str) -> impl Future<Output = Result<(), sqlx::Error>>;

    /// Returns the keys of a unit of work's rows, in order.
    fn keys(pool: &Pool<Self>, unit: i64)
    -> impl Future<Output = Result<Vec<String>, sqlx::Error>>;
}

macro_rules! killed {
    ($database:ident, $schema:expr) => {
        impl Killed for $database {
            const SCHEMA: &'static str = $schema;

            async fn execute_all(pool: &Pool<Self>, sql: &str) -> Result<(), sqlx::Error> {
                raw_sql(AssertSqlSafe(sql)).execute(pool).await.map(drop)
            }

            async fn keys(pool: &Pool<Self>, unit: i64) -> Result<Vec<String>, sqlx::Error> {
                let of = |table| format!("SELECT id FROM {table} WHERE unit = {unit} ORDER BY id");
                let parcels: Vec<ParcelId> = query_scalar(AssertSqlSafe(of("parcel")))
                    .fetch_all(pool)
                    .await?;
                let stops: Vec<StopId> = query_scalar(AssertSqlSafe(of("stop")))
                    .fetch_all(pool)
                    .await?;
                let parcels = parcels.iter().map(ToString::to_string);
                Ok(parcels
                    .chain(stops.iter().map(ToString::to_string))
                    .collect())
            }
        }
    };
}

killed!(
    Postgres,
    "CREATE TABLE parcel (id uuid PRIMARY KEY, unit bigint NOT NULL, weight float8 NOT NULL, note text);
     CREATE TABLE stop (id uuid PRIMARY KEY, parcel uuid NOT NULL REFERENCES parcel, unit bigint NOT NULL)"
);
killed!(
    MySql,
    "CREATE TABLE parcel (id BINARY(16) PRIMARY KEY, unit BIGINT NOT NULL, weight DOUBLE NOT NULL, note TEXT);
     CREATE TABLE stop (id BINARY(16) PRIMARY KEY, parcel BINARY(16) NOT NULL, unit BIGINT NOT NULL,
        FOREIGN KEY (parcel) REFERENCES parcel (id))"
);
killed!(
    Sqlite,
    "CREATE TABLE parcel (id BLOB NOT NULL PRIMARY KEY, unit INTEGER NOT NULL, weight REAL NOT NULL,
        note TEXT) WITHOUT ROWID;
     CREATE TABLE stop (id BLOB NOT NULL PRIMARY KEY, parcel BLOB NOT NULL REFERENCES parcel (id),
        unit INTEGER NOT NULL) WITHOUT ROWID"
);

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let each = "a_process_killed_at_each_point_is_resumed";
    let random = "a_process_killed_at_random_is_resumed";
    let each_of_chunks = "a_process_killed_at_each_point_of_chunks_is_resumed";
    let random_in_chunks = "a_process_killed_at_random_in_chunks_is_resumed";
    sqlite::add(trials, each_of_chunks, killed_at_each_point_of_chunks);
    sqlite::add(trials, random_in_chunks, killed_at_random_in_chunks);
    on_scratch::<Postgres, _, _>(
        trials,
        servers,
        "postgres",
        each_of_chunks,
        killed_at_each_point_of_chunks,
    );
    sqlite::add(trials, each, killed_at_each_point);
    sqlite::add(trials, random, killed_at_random);
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", each, killed_at_each_point);
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", random, killed_at_random);
    on_scratch::<Postgres, _, _>(
        trials,
        servers,
        "postgres",
        random_in_chunks,
        killed_at_random_in_chunks,
    );
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(
            trials,
            servers,
            server,
            random_in_chunks,
            killed_at_random_in_chunks,
        );
        on_scratch::<MySql, _, _>(trials, servers, server, each, killed_at_each_point);
        on_scratch::<MySql, _, _>(trials, servers, server, random, killed_at_random);
    }
    sqlite::add(
        trials,
        "rows_are_in_the_journal_before_a_connection_is_waited_for",
        journaled_before_connecting,
    );
    sqlite::add(
        trials,
        "rows_come_back_with_the_versions_that_they_were_read_with",
        versions_come_back,
    );
    sqlite::add(
        trials,
        "upserts_come_back_with_what_they_write",
        upserts_come_back,
    );
    on_scratch::<Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "a_journal_that_comes_after_a_lost_commit_has_what_may_be_written",
        given_after_a_lost_commit,
    );
    sqlite::add(
        trials,
        "rows_in_a_journal_do_not_go_into_the_callers_transaction",
        kept_out_of_the_callers_transaction,
    );
    sqlite::add(
        trials,
        "chunks_that_are_resumed_as_a_whole_are_counted",
        resumed_as_a_whole,
    );
}

/// Runs as the process that is killed, if the environment says so, and does not return then.
pub fn run_if_told() {
    let Some(file) = env::var_os(FILE) else {
        return;
    };
    let database = env::var(DATABASE).expect("its address");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let outcome = if database.starts_with("postgres") {
        runtime.block_on(flush_twice::<Postgres>(&database, Path::new(&file)))
    } else if database.starts_with("mysql") {
        runtime.block_on(flush_twice::<MySql>(&database, Path::new(&file)))
    } else {
        runtime.block_on(flush_twice::<Sqlite>(&database, Path::new(&file)))
    };
    if let Err(error) = outcome {
        say(&format!("failed {error}"));
    }
    std::process::exit(0);
}

async fn flush_twice<DB: Killed>(database: &str, file: &Path) -> Outcome
where
    Parcel: Entity<DB>,
    Stop: Entity<DB>,
{
    let pool = Pool::<DB>::connect(database).await?;
    let journal = Journaled::new(Pointed(FlushJournal::open(file)?))
        .row::<Parcel>()
        .row::<Stop>();
    let mut work = UnitOfWork::new().with_journal(journal);
    match env::var(CHUNK).as_deref() {
        Err(_) => {}
        // The database is the emulator of Aurora DSQL.
        Ok("dsql") => {
            let work_there = work.with_engine(EngineProfile::AURORA_DSQL);
            work = work_there.in_chunks(ChunkLimits::OF_ENGINE);
        }
        Ok(rows) => work = work.in_chunks(ChunkLimits::rows(rows.parse()?)),
    }
    work.observe(|_| point("sent"));
    let resumed = work.resume()?;
    say(&format!("resumed {resumed}"));
    let flushed = work.flush(&pool).await?;
    if flushed.rows() != resumed {
        return Err(format!("{} rows flushed of {resumed} resumed", flushed.rows()).into());
    }
    say("complete");
    if let Ok(unit) = env::var(UNIT) {
        let stops = env::var(STOPS).map_or(Ok(FEW_STOPS), |stops| stops.parse())?;
        let keys = fill(&mut work, unit.parse()?, stops);
        say(&format!("keys {}", keys.join(" ")));
        point("filled");
        work.flush(&pool).await?;
        say("flushed");
    }
    Ok(())
}

fn fill<DB: Backend>(work: &mut UnitOfWork<DB>, unit: i64, stops: usize) -> Vec<String>
where
    Parcel: Entity<DB>,
    Stop: Entity<DB>,
{
    let parcels: Vec<ParcelId> = (0..PARCELS)
        .map(|number| {
            work.add(Parcel {
                id: ParcelId::generate(),
                unit,
                weight: if number == 0 { 0.1 } else { f64::MAX },
                note: number.is_multiple_of(2).then(|| "fragile".into()),
            })
        })
        .collect();
    let stops: Vec<StopId> = (0..stops)
        .map(|number| {
            work.add(Stop {
                id: StopId::generate(),
                parcel: parcels[number % PARCELS],
                unit,
            })
        })
        .collect();
    let parcels = parcels.iter().map(ToString::to_string);
    parcels
        .chain(stops.iter().map(ToString::to_string))
        .collect()
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    // Nobody listens to a process that was killed.
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// A point where the process may be told to wait for its end.
fn point(name: &str) {
    static PASSED: AtomicUsize = AtomicUsize::new(0);
    let passed = PASSED.fetch_add(1, Ordering::Relaxed);
    let told = env::var(POINT).ok().and_then(|told| told.parse().ok());
    if told == Some(passed) {
        say(&format!("point {name}"));
        loop {
            std::thread::park();
        }
    }
}

/// Has a point before and after each call that writes.
struct Pointed(FlushJournal);

impl Journal for Pointed {
    fn append(&mut self, record: &[u8]) -> Result<(), Error> {
        point("append");
        self.0.append(record)?;
        point("appended");
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Error> {
        point("sync");
        self.0.sync()?;
        point("synced");
        Ok(())
    }

    fn read(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        self.0.read(visit)
    }

    fn clear(&mut self) -> Result<(), Error> {
        point("clear");
        self.0.clear()?;
        point("cleared");
        Ok(())
    }
}

/// The process, seen from outside; killed when this is dropped.
pub struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// What the process is told.
pub struct Told {
    pub database: String,
    pub file: PathBuf,
    /// How many rows a transaction takes, if not all; or `dsql`.
    pub chunk: Option<&'static str>,
    /// How many stops there are, if not [`FEW_STOPS`].
    pub stops: Option<usize>,
}

impl Process {
    pub fn start(told: &Told, unit: Option<i64>, point: Option<usize>) -> std::io::Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command
            .env(FILE, &told.file)
            .env(DATABASE, &told.database)
            .stdout(Stdio::piped());
        if let Some(chunk) = told.chunk {
            command.env(CHUNK, chunk);
        }
        if let Some(stops) = told.stops {
            command.env(STOPS, stops.to_string());
        }
        if let Some(unit) = unit {
            command.env(UNIT, unit.to_string());
        }
        if let Some(point) = point {
            command.env(POINT, point.to_string());
        }
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            child,
            lines: BufReader::new(output).lines(),
        })
    }

    /// Reads what the process says next; `None` once it has ended.
    pub fn next(&mut self) -> Result<Option<Said>, Box<dyn std::error::Error + Send + Sync>> {
        let Some(line) = self.lines.next().transpose()? else {
            return Ok(None);
        };
        Ok(Some(match line.split_once(' ') {
            None if line == "complete" => Said::Complete,
            None if line == "flushed" => Said::Flushed,
            Some(("resumed", rows)) => Said::Resumed(rows.parse()?),
            Some(("keys", keys)) => Said::Keys(keys.split(' ').map(str::to_owned).collect()),
            Some(("point", name)) => Said::Point(name.to_owned()),
            _ => return Err(line.into()),
        }))
    }

    /// Returns whether it has ended by itself.
    pub fn is_over(&mut self) -> std::io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Kills the process by SIGKILL and waits for its end.
    pub fn kill(&mut self) -> std::io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

pub enum Said {
    Resumed(usize),
    Complete,
    Keys(Vec<String>),
    Flushed,
    Point(String),
}

/// What a run said until it was killed, or ended.
#[derive(Default)]
pub struct Run {
    pub resumed: usize,
    pub complete: bool,
    pub keys: Vec<String>,
    pub flushed: bool,
    /// The points that it passed are not told, only the one where it waited.
    point: Option<String>,
}

/// Runs the process to its end, or to the point where it is killed.
pub fn run(
    told: &Told,
    unit: Option<i64>,
    point: Option<usize>,
) -> Result<Run, Box<dyn std::error::Error + Send + Sync>> {
    let mut process = Process::start(told, unit, point)?;
    let mut run = Run::default();
    while let Some(said) = process.next()? {
        run.take(said);
        if run.point.is_some() {
            break;
        }
    }
    process.kill()?;
    Ok(run)
}

impl Run {
    pub fn take(&mut self, said: Said) {
        match said {
            Said::Resumed(rows) => self.resumed = rows,
            Said::Complete => self.complete = true,
            Said::Keys(keys) => self.keys = keys,
            Said::Flushed => self.flushed = true,
            Said::Point(name) => self.point = Some(name),
        }
    }
}

/// Holds the rows of a unit of work in the database against its keys, and returns whether they are
/// there; either all of them are, or none.
pub async fn is_whole<DB: Killed>(
    pool: &Pool<DB>,
    unit: i64,
    keys: &[String],
) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    let found = DB::keys(pool, unit).await?;
    if found.is_empty() {
        return Ok(false);
    }
    if found == keys {
        return Ok(true);
    }
    Err(format!(
        "unit {unit}: {} rows of {}, or others",
        found.len(),
        keys.len()
    )
    .into())
}

/// Creates the tables. The folder is removed when it is dropped.
pub async fn prepare<DB: Killed>(
    pool: &Pool<DB>,
    chunk: Option<&'static str>,
) -> Outcome<(TempDir, Told)> {
    DB::execute_all(pool, DB::SCHEMA).await?;
    DB::execute_all(pool, flushes_table::<DB>()).await?;
    let folder = tempfile::tempdir()?;
    let told = Told {
        database: pool.connect_options().to_url_lossy().to_string(),
        file: folder.path().join("parcels.journal"),
        chunk,
        stops: None,
    };
    Ok((folder, told))
}

/// A process that is killed at each point in turn, and one that is killed while it resumes.
async fn killed_at_each_point<DB: Killed>(pool: Pool<DB>) -> Outcome {
    killed_at_each_point_of(pool, None).await
}

/// The same, while it writes chunks.
async fn killed_at_each_point_of_chunks<DB: Killed>(pool: Pool<DB>) -> Outcome {
    killed_at_each_point_of(pool, Some("500")).await
}

async fn killed_at_each_point_of<DB: Killed>(
    pool: Pool<DB>,
    chunk: Option<&'static str>,
) -> Outcome {
    let (_folder, told) = prepare(&pool, chunk).await?;
    let mut points = Vec::new();
    for point in 0.. {
        let unit = i64::try_from(point)?;
        let first = run(&told, Some(unit), Some(point))?;
        let next = run(&told, None, None)?;
        let whole = is_whole(&pool, unit, &first.keys).await?;
        assert!(next.complete, "point {point}");
        assert_eq!(
            std::fs::metadata(&told.file)?.len(),
            0,
            "nothing is pending"
        );
        if next.resumed > 0 {
            assert_eq!(next.resumed, first.keys.len());
            assert!(whole, "point {point}");
        }
        let Some(name) = first.point else {
            assert!(first.flushed && whole && next.resumed == 0);
            break;
        };
        points.push((name, next.resumed > 0, whole));
    }
    // What is not in the journal is not in the database; what is comes there, and is forgotten only
    // when it is there.
    let names: Vec<&str> = points.iter().map(|(name, ..)| &**name).collect();
    let begun = names.iter().position(|name| *name == "synced");
    let sent = names.iter().position(|name| *name == "sent");
    let cleared = names.iter().rposition(|name| *name == "cleared");
    let (Some(begun), Some(sent), Some(cleared)) = (begun, sent, cleared) else {
        return Err(format!("{names:?}").into());
    };
    assert!(begun < sent && sent < cleared, "{names:?}");
    assert_eq!(cleared, points.len() - 1);
    for (position, (name, resumed, whole)) in points.iter().enumerate() {
        // The last record may be there although nobody waited for it to be durable.
        if position + 2 < begun {
            assert!(!resumed && !whole, "{position}: {name}");
        }
        if (begun..cleared).contains(&position) {
            assert!(resumed, "{position}: {name}");
        }
        if position >= begun {
            assert!(whole, "{position}: {name}");
        }
    }

    // A run that resumes is killed at each of its points as well, and the one after it.
    let first_unit = 1_000;
    for point in 0.. {
        let unit = first_unit + i64::try_from(point)?;
        let first = run(&told, Some(unit), Some(begun))?;
        assert_eq!(first.point.as_deref(), Some("synced"));
        let second = run(&told, None, Some(point))?;
        assert_eq!(second.resumed, first.keys.len());
        let third = run(&told, None, Some(point))?;
        let last = run(&told, None, None)?;
        assert!(last.complete, "point {point}");
        assert!(is_whole(&pool, unit, &first.keys).await?, "point {point}");
        if second.point.is_none() {
            assert!(second.complete && third.resumed == 0);
            assert!(point > 4, "append, appended, sync, synced, sent and more");
            break;
        }
    }
    Ok(())
}

/// A process that is killed at a random moment of a flush.
async fn killed_at_random<DB: Killed>(pool: Pool<DB>) -> Outcome {
    killed_at_random_of(pool, None).await
}

/// The same, while it writes chunks.
async fn killed_at_random_in_chunks<DB: Killed>(pool: Pool<DB>) -> Outcome {
    killed_at_random_of(pool, Some("100")).await
}

async fn killed_at_random_of<DB: Killed>(pool: Pool<DB>, chunk: Option<&'static str>) -> Outcome {
    let (_folder, told) = prepare(&pool, chunk).await?;
    let runs = if soak() { 300 } else { 20 };
    // How long a flush takes: the guess follows what it was too short or too long for.
    let mut flush = Duration::from_millis(30);
    let (mut resumed, mut whole, mut none) = (0, 0, 0);
    let mut unit = 0;
    // Until one was killed with its rows in the journal, which each better guess makes likelier.
    while unit < runs || (resumed == 0 && unit < 10 * runs) {
        let mut process = Process::start(&told, Some(unit), None)?;
        let mut first = Run::default();
        while first.keys.is_empty() {
            let said = process.next()?.ok_or("it ended by itself")?;
            first.take(said);
        }
        // A little longer than a flush, so that some come to their end.
        let random = u32::try_from(Uuid::new_v4().as_u128() % 1_000)?;
        std::thread::sleep(flush * random / 800);
        process.kill()?;
        while let Some(said) = process.next()? {
            first.take(said);
        }
        // One in three of those that resume is killed, too.
        if random.is_multiple_of(3) {
            let mut process = Process::start(&told, None, None)?;
            std::thread::sleep(Duration::from_millis(u64::from(random % 60)));
            process.kill()?;
        }
        let next = run(&told, None, None)?;
        assert!(next.complete, "unit {unit}");
        let is_there = is_whole(&pool, unit, &first.keys).await?;
        assert!(
            is_there || (next.resumed == 0 && !first.flushed),
            "unit {unit}"
        );
        match (next.resumed, is_there) {
            (0, false) => {
                none += 1;
                flush += flush / 3;
            }
            (0, true) => {
                whole += 1;
                flush -= flush / 5;
            }
            _ => resumed += 1,
        }
        unit += 1;
    }
    assert!(resumed > 0, "the kills came too early or too late");
    println!("{unit} runs: {resumed} resumed, {whole} were there, {none} had not begun");
    Ok(())
}

/// A process may be killed while it waits for a connection of the pool: its rows are not lost with it.
async fn journaled_before_connecting(pool: Pool<Sqlite>) -> Outcome {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("journal");
    let journaled = || -> Result<_, Error> {
        let journal = Journaled::new(FlushJournal::open(&file)?);
        Ok(journal.row::<Parcel>().row::<Stop>())
    };
    let mut held = Vec::new();
    while let Some(connection) = pool.try_acquire() {
        held.push(connection);
    }
    while u32::try_from(held.len())? < pool.options().get_max_connections() {
        held.push(pool.acquire().await?);
    }
    let mut work = UnitOfWork::new().with_journal(journaled()?);
    let keys = fill(&mut work, 0, FEW_STOPS);
    let waiting = tokio::time::timeout(Duration::from_millis(200), work.flush(&pool)).await;
    assert!(waiting.is_err(), "there is no connection");
    // As if killed: nothing of the unit of work is left but its journal.
    drop(work);

    let mut next = UnitOfWork::<Sqlite>::new().with_journal(journaled()?);
    assert_eq!(next.resume()?, keys.len());
    Ok(())
}

/// What was changed and deleted before a kill is stale in the next run, if somebody was faster.
async fn versions_come_back(pool: Pool<Sqlite>) -> Outcome {
    #[derive(OrderedKey, Serialize, Deserialize, Clone)]
    #[ordid(table = "label", columns)]
    struct Label {
        #[ordid(key)]
        id: ParcelId,
        #[ordid(version)]
        version: i64,
    }

    let (table, flushes) = (
        "CREATE TABLE label (id BLOB PRIMARY KEY, version INTEGER NOT NULL)",
        flushes_table::<Sqlite>(),
    );
    Sqlite::execute_all(&pool, &format!("{table}; {flushes}")).await?;
    let labels = [(); 3].map(|()| Label {
        id: ParcelId::generate(),
        version: 3,
    });
    let mut work = UnitOfWork::<Sqlite>::new();
    for label in &labels {
        work.add(label.clone());
    }
    work.flush(&pool).await?;

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("journal");
    let journaled = || Ok::<_, Error>(Journaled::new(FlushJournal::open(&file)?).row::<Label>());
    let mut work = UnitOfWork::new().with_journal(journaled()?);
    let [changed, also_changed, deleted] = &labels;
    work.update(changed.clone());
    work.update_columns(also_changed.clone(), [Label::version; 0]);
    work.delete(deleted);
    // A lock makes the flush wait, and it is given up, as by a kill.
    let mut lock = pool.acquire().await?;
    raw_sql("BEGIN IMMEDIATE").execute(&mut *lock).await?;
    let waiting = tokio::time::timeout(Duration::from_millis(200), work.flush(&pool)).await;
    assert!(waiting.is_err(), "the database is locked");
    drop(work);
    let theirs = "UPDATE label SET version = 4 WHERE id = (SELECT MAX(id) FROM label); COMMIT";
    raw_sql(theirs).execute(&mut *lock).await?;
    drop(lock);

    let mut next = UnitOfWork::<Sqlite>::new().with_journal(journaled()?);
    assert_eq!(next.resume()?, 3);
    // Whoever was killed may have committed them.
    let mut transaction = pool.begin().await?;
    let error = next.flush_in(&mut transaction).await.unwrap_err();
    assert!(error.is_plan(), "{error}");
    transaction.rollback().await?;
    let error = next.flush(&pool).await.unwrap_err();
    assert!(error.is_stale(), "{error}");
    assert_eq!(error.key(), Some(&*deleted.id.to_string()));
    Sqlite::execute_all(&pool, "UPDATE label SET version = 3").await?;
    next.flush(&pool).await?;
    let left: Vec<i64> = query_scalar("SELECT version FROM label")
        .fetch_all(&pool)
        .await?;
    assert_eq!(left, [4, 4]);
    Ok(())
}

fn parcel(unit: i64) -> Parcel {
    Parcel {
        id: ParcelId::generate(),
        unit,
        weight: 1.0,
        note: None,
    }
}

/// The answer to COMMIT is lost before there is a journal. The journal then has the id by which the flush is found.
async fn given_after_a_lost_commit(pool: Pool<Postgres>) -> Outcome {
    let tables = format!("{}; {}", Postgres::SCHEMA, flushes_table::<Postgres>());
    Postgres::execute_all(&pool, &tables).await?;
    let options = (*pool.connect_options()).clone();
    // The first connection of a pool loses what is behind its COMMIT, and the others everything.
    let proxy = Proxy::start(Postgres::address(&options)?).await?;
    let cut = |first: [Fault; 1]| {
        proxy.plan(first);
        proxy.after(Fault::Cut(At::Up(0)));
        let patience = Duration::from_millis(300);
        let pool = PoolOptions::new().acquire_timeout(patience);
        pool.connect_lazy_with(Postgres::through(&options, proxy.port()))
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("journal");
    let journaled = || Ok::<_, Error>(Journaled::new(FlushJournal::open(&file)?).row::<Parcel>());

    for (unit, changes) in [(1, true), (2, false)] {
        let mut work = UnitOfWork::<Postgres>::new().with_record();
        let added = work.add(parcel(unit));
        let error = work
            .flush(&cut([Fault::Cut(At::Commit(12))]))
            .await
            .unwrap_err();
        assert!(error.is_commit_unknown(), "{error}");
        if changes {
            let also_added = work.add(parcel(unit));
            work = work.with_journal(journaled()?);
            let error = work.flush(&pool).await.unwrap_err();
            assert!(error.is_commit_unknown() && error.is_plan(), "{error}");
            assert_eq!(work.len(), 2, "{also_added} is not lost");
        } else {
            work = work.with_journal(journaled()?);
            let error = work.flush(&cut([Fault::Cut(At::Up(0))])).await.unwrap_err();
            assert!(error.is_commit_unknown(), "{error}");
            drop(work);
            // The process was killed.
            let mut next = UnitOfWork::<Postgres>::new().with_journal(journaled()?);
            assert_eq!(next.resume()?, 1);
            assert_eq!(next.flush(&pool).await?.rows(), 1);
        }
        assert_eq!(Postgres::keys(&pool, unit).await?, [added.to_string()]);
    }
    Ok(())
}

/// Whoever forgets `in_chunks` is told how many rows are there.
async fn resumed_as_a_whole(pool: Pool<Sqlite>) -> Outcome {
    let table = "CREATE TABLE parcel (id BLOB PRIMARY KEY, unit INTEGER CHECK (unit < 5), weight REAL, note TEXT)";
    Sqlite::execute_all(&pool, &format!("{table}; {}", flushes_table::<Sqlite>())).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("journal");
    let journaled = || Ok::<_, Error>(Journaled::new(FlushJournal::open(&file)?).row::<Parcel>());
    let mut work = UnitOfWork::<Sqlite>::new()
        .with_journal(journaled()?)
        .in_chunks(ChunkLimits::rows(3));
    for unit in [1, 2, 3, 4, 5] {
        work.add(parcel(unit));
    }
    let error = work.flush(&pool).await.unwrap_err();
    let counted = |error: &ordid_sqlx::Error| {
        let rows = error.committed().map(|it| it.rows());
        (error.committed_chunks(), rows)
    };
    assert!(!error.is_plan(), "{error}");
    let expected = counted(&error);
    let rows: i64 = query_scalar("SELECT count(*) FROM parcel")
        .fetch_one(&pool)
        .await?;
    assert_eq!(expected.1, usize::try_from(rows).ok());
    assert!(rows > 0);
    drop(work);
    let mut next = UnitOfWork::<Sqlite>::new().with_journal(journaled()?);
    assert_eq!(next.resume()?, 5);
    let error = next.flush(&pool).await.unwrap_err();
    assert!(error.is_plan(), "{error}");
    assert_eq!(counted(&error), expected, "{error}");
    Ok(())
}

/// After the caller's COMMIT nobody could tell from the journal that they are written.
async fn kept_out_of_the_callers_transaction(pool: Pool<Sqlite>) -> Outcome {
    Sqlite::execute_all(&pool, Sqlite::SCHEMA).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("journal");
    let journaled = || Ok::<_, Error>(Journaled::new(FlushJournal::open(&file)?).row::<Parcel>());
    let (first, second) = (parcel(1), parcel(1));
    let mut other = UnitOfWork::<Sqlite>::new();
    other.add(Parcel {
        note: None,
        ..first
    });
    let mut transaction = pool.begin().await?;
    // What a journal has never had goes there.
    let mut fresh = other.with_journal(journaled()?);
    assert_eq!(fresh.flush_in(&mut transaction).await?.rows(), 1);
    transaction.commit().await?;
    drop(fresh);

    let mut work = UnitOfWork::<Sqlite>::new().with_journal(journaled()?);
    work.add(Parcel {
        note: None,
        ..first
    });
    work.add(Parcel {
        note: None,
        ..second
    });
    assert!(work.flush(&pool).await.unwrap_err().is_unique_violation());
    let mut transaction = pool.begin().await?;
    let error = work.flush_in(&mut transaction).await.unwrap_err();
    assert!(error.is_plan(), "{error}");
    assert!(error.to_string().contains("`discard`"), "{error}");
    work.discard()?;
    work.add(Parcel {
        note: None,
        ..second
    });
    assert_eq!(work.flush_in(&mut transaction).await?.rows(), 1);
    transaction.commit().await?;
    drop(work);
    let mut next = UnitOfWork::<Sqlite>::new().with_journal(journaled()?);
    assert_eq!(
        (next.resume()?, Sqlite::keys(&pool, 1).await?.len()),
        (0, 2)
    );
    Ok(())
}

/// By what a row is found, and what is written of it, are the same after a kill.
async fn upserts_come_back(pool: Pool<Sqlite>) -> Outcome {
    #[derive(OrderedKey, Serialize, Deserialize, Clone)]
    #[ordid(table = "stock", columns)]
    struct Stock {
        #[ordid(key)]
        id: ParcelId,
        code: String,
        name: String,
        pieces: i64,
    }

    let (table, flushes) = (
        "CREATE TABLE stock (id BLOB PRIMARY KEY, code TEXT UNIQUE, name TEXT NOT NULL, pieces INTEGER NOT NULL)",
        flushes_table::<Sqlite>(),
    );
    Sqlite::execute_all(&pool, &format!("{table}; {flushes}")).await?;
    let stock = |code: &str, name: &str, pieces| Stock {
        id: ParcelId::generate(),
        code: code.to_owned(),
        name: name.to_owned(),
        pieces,
    };
    let (a, b, c) = (stock("a", "A", 1), stock("b", "B", 1), stock("c", "C", 1));
    let mut work = UnitOfWork::<Sqlite>::new();
    for row in [&a, &b, &c] {
        work.add(row.clone());
    }
    work.flush(&pool).await?;

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("journal");
    let journaled = || Ok::<_, Error>(Journaled::new(FlushJournal::open(&file)?).row::<Stock>());
    let mut work = UnitOfWork::new().with_journal(journaled()?);
    work.upsert(Stock { pieces: 2, ..a });
    work.insert_or_ignore(Stock { pieces: 2, ..b });
    let by_code = OnConflict::of(Stock::code).set(Stock::pieces);
    work.upsert_with(stock("c", "not written", 2), by_code.clone());
    work.upsert_with(stock("d", "D", 2), by_code);
    // A lock makes the flush wait, and it is given up, as by a kill.
    let mut lock = pool.acquire().await?;
    raw_sql("BEGIN IMMEDIATE").execute(&mut *lock).await?;
    let waiting = tokio::time::timeout(Duration::from_millis(200), work.flush(&pool)).await;
    assert!(waiting.is_err(), "the database is locked");
    drop(work);
    raw_sql("ROLLBACK").execute(&mut *lock).await?;
    drop(lock);

    let mut next = UnitOfWork::<Sqlite>::new().with_journal(journaled()?);
    assert_eq!(next.resume()?, 4);
    let flushed = next.flush(&pool).await?;
    assert_eq!(
        [flushed.rows(), flushed.updated(), flushed.left_alone()],
        [1, 2, 1]
    );
    let rows: Vec<(String, String, i64)> =
        sqlx::query_as("SELECT code, name, pieces FROM stock ORDER BY code")
            .fetch_all(&pool)
            .await?;
    let expected = [("a", "A", 2), ("b", "B", 1), ("c", "C", 2), ("d", "D", 2)];
    assert_eq!(
        rows,
        expected.map(|(code, name, pieces)| (code.to_owned(), name.to_owned(), pieces))
    );
    Ok(())
}
