//! What is sent to Aurora DSQL, to an emulator of it before a real `PostgreSQL`.

use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use libtest_mimic::Trial;
use ordid::{
    KeyType, OrderedKey,
    clock::{Clock as _, SystemClock},
    coordination::{AsyncNodeAllocator as _, AsyncSegmentSource as _, LeaseTerms},
    uuid::Uuid,
};
use ordid_sqlx::{ChunkLimits, EngineProfile, NotBulk, SqlCounter, SqlLease, UnitOfWork};
use ordid_tests::{
    dsql::{Dsql, MAX_BYTES, MAX_ROWS, SCHEMA, Weather},
    faults::Remote,
    servers::Servers,
    soak,
};
use sqlx::{ConnectOptions as _, PgPool, Postgres, postgres::PgPoolOptions, query_scalar, raw_sql};
use tokio::task::JoinSet;

use crate::{
    Outcome,
    journal::{Process, Run, is_whole, prepare, run},
    on_scratch,
};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($($name:ident),+ $(,)?) => {$(
            let name = concat!("dsql::", stringify!($name));
            on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, $name);
        )+};
    }
    add!(
        a_large_unit_of_work_goes_in_chunks_through_conflicts,
        a_transaction_takes_no_more_rows_than_it_may,
        a_transaction_takes_no_more_bytes_than_it_may,
        a_transaction_of_the_users_goes_on_without_a_flush,
        old_marker_rows_are_removed,
        the_emulator_refuses_what_postgres_takes,
        rows_are_changed_upserted_and_deleted_by_what_it_takes,
        a_chunk_has_whole_tenants,
        numbers_and_nodes_are_given_once,
        a_process_that_is_killed_twenty_times_writes_each_row_once,
    );
}

#[derive(KeyType)]
#[ordid(scheme = uuid_v4, sqlx(postgres = unordered(uuid)))]
struct ReadingId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v4, sqlx(postgres = unordered(uuid)))]
struct SensorId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "sensors")]
struct Sensor {
    #[ordid(key)]
    id: SensorId,
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "readings")]
struct Reading {
    #[ordid(key)]
    id: ReadingId,
    #[ordid(parent)]
    sensor: SensorId,
    value: i64,
}

/// Starts an emulator before the database of this pool, and returns a pool of connections to it.
async fn emulator(pool: &PgPool, weather: Weather) -> Outcome<(Dsql, PgPool)> {
    let schema = "CREATE TABLE sensors (id uuid PRIMARY KEY); \
                  CREATE TABLE readings (id uuid PRIMARY KEY, sensor uuid NOT NULL REFERENCES sensors, \
                  value bigint NOT NULL)";
    raw_sql(schema).execute(pool).await?;
    raw_sql(SCHEMA).execute(pool).await?;
    raw_sql(ordid_sqlx::flushes_table::<Postgres>())
        .execute(pool)
        .await?;
    before(pool, weather)
}

/// The same of a database that has all it needs.
fn before(pool: &PgPool, weather: Weather) -> Outcome<(Dsql, PgPool)> {
    let options = pool.connect_options();
    let dsql = Dsql::start(Postgres::address(&options)?, weather)?;
    let through = Postgres::through(&options, dsql.port());
    let through = PgPoolOptions::new().connect_lazy_with(through);
    Ok((dsql, through))
}

fn readings(work: &mut UnitOfWork<Postgres>, count: usize) {
    let sensors: Vec<SensorId> = (0..100)
        .map(|_| {
            work.add(Sensor {
                id: SensorId::generate(),
            })
        })
        .collect();
    for (sensor, value) in sensors.iter().cycle().zip(0..).take(count) {
        work.add(Reading {
            id: ReadingId::generate(),
            sensor: *sensor,
            value,
        });
    }
}

async fn count(pool: &PgPool, table: &str) -> Outcome<i64> {
    let sql = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
    Ok(query_scalar(sql).fetch_one(pool).await?)
}

/// Each third COMMIT meets a conflict, and connections end early.
async fn a_large_unit_of_work_goes_in_chunks_through_conflicts(pool: PgPool) -> Outcome {
    let weather = Weather {
        conflicts: 3,
        lives: 2,
    };
    let (dsql, through) = emulator(&pool, weather).await?;
    let mut work = UnitOfWork::new()
        .with_engine(EngineProfile::AURORA_DSQL)
        .in_chunks(ChunkLimits::OF_ENGINE);
    readings(&mut work, 20_000);
    let flushed = work.flush(&through).await?;
    assert_eq!(flushed.rows(), 20_100);
    assert!(flushed.retries > 0);
    assert_eq!(count(&pool, "readings").await?, 20_000);
    assert_eq!(dsql.unsupported(), 0);
    assert!(
        (2_000..=MAX_ROWS).contains(&dsql.largest()),
        "{}",
        dsql.largest()
    );
    let chunks = count(&pool, "ordid_flushes").await?;
    assert!((7..=11).contains(&chunks), "{chunks}");
    assert!(dsql.commits() > usize::try_from(chunks)?);
    Ok(())
}

async fn a_transaction_takes_no_more_rows_than_it_may(pool: PgPool) -> Outcome {
    let (dsql, through) = emulator(&pool, Weather::FAIR).await?;
    let mut work = UnitOfWork::new().with_engine(EngineProfile::AURORA_DSQL);
    readings(&mut work, MAX_ROWS);
    let error = work.flush(&through).await.unwrap_err();
    assert!(error.is_plan(), "{error}");
    for part in ["flush `in_chunks`", "docs/src/engines/aurora-dsql.md"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(dsql.commits(), 0);

    let mut work = UnitOfWork::new().with_engine(EngineProfile::AURORA_DSQL);
    readings(&mut work, MAX_ROWS - 101);
    work.flush(&through).await?;
    assert_eq!(count(&pool, "readings").await?, 2_899);
    assert_eq!(dsql.unsupported(), 0);
    Ok(())
}

#[derive(OrderedKey)]
#[ordid(table = "documents")]
struct Document {
    #[ordid(key)]
    id: ReadingId,
    text: String,
}

/// A savepoint is refused, and the user's transaction would be over.
async fn a_transaction_of_the_users_goes_on_without_a_flush(pool: PgPool) -> Outcome {
    let (dsql, through) = emulator(&pool, Weather::FAIR).await?;
    let mut work = UnitOfWork::new().with_engine(EngineProfile::AURORA_DSQL);
    readings(&mut work, 10);
    let mut open = through.begin().await?;
    let sensor = SensorId::generate();
    sqlx::query("INSERT INTO sensors (id) VALUES ($1)")
        .bind(sensor)
        .execute(&mut *open)
        .await?;
    let error = work.flush_in(&mut open).await.unwrap_err();
    assert!(error.is_connection_state(), "{error}");
    for part in ["no savepoints", "docs/src/engines/aurora-dsql.md"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    open.commit().await?;
    assert_eq!(count(&pool, "sensors").await?, 1);
    assert_eq!(dsql.unsupported(), 0);
    assert_eq!(work.flush(&through).await?.rows(), 110);
    Ok(())
}

/// More than a transaction takes.
async fn old_marker_rows_are_removed(pool: PgPool) -> Outcome {
    let (dsql, through) = emulator(&pool, Weather::FAIR).await?;
    raw_sql(
        "INSERT INTO ordid_flushes (id) \
         SELECT CAST('00000000-0000-7000-8000-' || lpad(to_hex(number), 12, '0') AS uuid) \
         FROM generate_series(1, 7000) AS number",
    )
    .execute(&pool)
    .await?;
    let removed = ordid_sqlx::remove_old_markers(&through).await?;
    assert_eq!(removed, 7_000);
    assert_eq!(count(&pool, "ordid_flushes").await?, 0);
    assert!(dsql.largest() <= MAX_ROWS, "{}", dsql.largest());
    Ok(())
}

/// 300 rows of 100 kB, of which three transactions at least have to have a part.
async fn a_transaction_takes_no_more_bytes_than_it_may(pool: PgPool) -> Outcome {
    const ROWS: i64 = 300;
    const TEXT: usize = 100_000;
    let (dsql, through) = emulator(&pool, Weather::FAIR).await?;
    raw_sql("CREATE TABLE documents (id uuid PRIMARY KEY, text text NOT NULL)")
        .execute(&pool)
        .await?;
    let documents = || {
        let mut work = UnitOfWork::new().with_engine(EngineProfile::AURORA_DSQL);
        for _ in 0..ROWS {
            work.add(Document {
                id: ReadingId::generate(),
                text: "x".repeat(TEXT),
            });
        }
        work
    };
    // The rows are few enough, and only the server knows what their bytes are to it.
    let error = documents().flush(&through).await.unwrap_err();
    assert!(!error.is_commit_unknown(), "{error}");
    assert!(
        error.to_string().contains("transaction size limit"),
        "{error}"
    );
    assert_eq!(count(&pool, "documents").await?, 0);
    assert!(dsql.largest_bytes() > MAX_BYTES);

    let (dsql, through) = before(&pool, Weather::FAIR)?;
    let mut work = documents().in_chunks(ChunkLimits::OF_ENGINE);
    assert_eq!(work.flush(&through).await?.rows(), usize::try_from(ROWS)?);
    assert_eq!(count(&pool, "documents").await?, ROWS);
    assert_eq!(count(&pool, "ordid_flushes").await?, 6);
    // A chunk takes half: Aurora DSQL may count more than what is sent to it, which is what the emulator counts.
    assert!(
        (MAX_BYTES / 4..=MAX_BYTES / 2).contains(&dsql.largest_bytes()),
        "{}",
        dsql.largest_bytes()
    );
    Ok(())
}

/// Otherwise the other tests would prove nothing.
async fn the_emulator_refuses_what_postgres_takes(pool: PgPool) -> Outcome {
    let (dsql, through) = emulator(&pool, Weather::FAIR).await?;
    let mut work = UnitOfWork::new();
    readings(&mut work, 2_000);
    let flushed = work.flush(&through).await?;
    let rows = flushed.tables.iter().find(|it| it.table == "readings");
    assert_eq!(rows.and_then(|it| it.not_bulk), Some(NotBulk::Refused));
    assert_eq!((flushed.retries, dsql.unsupported()), (0, 1));
    assert_eq!(count(&pool, "readings").await?, 2_000);

    let text = "CREATE TABLE texts (id text COLLATE \"C\" PRIMARY KEY)";
    let refused = raw_sql(text).execute(&through).await.unwrap_err();
    assert!(refused.to_string().contains("collation"), "{refused}");

    let mut engine = EngineProfile::AURORA_DSQL;
    engine.max_transaction_rows = None;
    let mut work = UnitOfWork::new().with_engine(engine);
    readings(&mut work, MAX_ROWS);
    let error = work.flush(&through).await.unwrap_err();
    assert!(error.to_string().contains("row limit"), "{error}");
    assert_eq!(count(&pool, "readings").await?, 2_000);
    Ok(())
}

/// On PostgreSQL so many updates and upserts would go through a temporary table.
async fn rows_are_changed_upserted_and_deleted_by_what_it_takes(pool: PgPool) -> Outcome {
    const ROWS: i64 = 4_000;
    let (dsql, through) = emulator(&pool, Weather::FAIR).await?;
    let begin = || {
        UnitOfWork::new()
            .with_engine(EngineProfile::AURORA_DSQL)
            .in_chunks(ChunkLimits::OF_ENGINE)
    };
    let mut work = begin();
    let sensor = work.add(Sensor {
        id: SensorId::generate(),
    });
    let reading = |value| Reading {
        id: ReadingId::generate(),
        sensor,
        value,
    };
    let rows: Vec<Reading> = (0..ROWS).map(reading).collect();
    for row in &rows {
        work.add(row.clone());
    }
    work.flush(&through).await?;

    let mut work = begin();
    let (changed, others) = rows.split_at(1_500);
    let (upserted, deleted) = others.split_at(1_500);
    for row in changed {
        work.update(Reading {
            value: row.value + 10_000,
            ..row.clone()
        });
    }
    for row in upserted {
        work.upsert(Reading {
            value: row.value + 10_000,
            ..row.clone()
        });
        work.upsert(reading(20_000));
    }
    deleted.iter().for_each(|row| work.delete(row));
    let flushed = work.flush(&through).await?;
    assert_eq!(
        (flushed.rows(), flushed.updated(), flushed.deleted()),
        (1_500, 3_000, 1_000)
    );
    assert_eq!(dsql.unsupported(), 0);
    let sql = "SELECT count(*), count(*) FILTER (WHERE value >= 20000), count(*) FILTER (WHERE value BETWEEN 10000 AND 19999) \
               FROM readings";
    let found: (i64, i64, i64) = sqlx::query_as(sql).fetch_one(&pool).await?;
    assert_eq!(found, (4_500, 1_500, 3_000));
    assert!(dsql.largest() <= MAX_ROWS, "{}", dsql.largest());
    Ok(())
}

/// Without the profile, the table of counters names a collation, which the emulator refuses.
async fn numbers_and_nodes_are_given_once(pool: PgPool) -> Outcome {
    const TASKS: u64 = 4;
    let (dsql, through) = emulator(&pool, Weather::FAIR).await?;
    let options = through.connect_options();
    let plain = SqlCounter::<Postgres>::new((*options).clone(), "orders")?;
    let refused = plain.create(1).await.unwrap_err();
    assert!(refused.to_string().contains("collation"), "{refused}");
    let before = dsql.unsupported();

    let counter = || {
        let counter = SqlCounter::<Postgres>::new((*options).clone(), "orders")?;
        Ok::<_, ordid::Error>(counter.with_engine(EngineProfile::AURORA_DSQL))
    };
    let terms = LeaseTerms::new(0..TASKS)?;
    let leases = || {
        let leases = SqlLease::<Postgres>::new((*options).clone(), terms.clone());
        leases.with_engine(EngineProfile::AURORA_DSQL)
    };
    counter()?.create(1).await?;
    // As the guide's page says: one statement in a transaction.
    for statement in leases().create_sql()?.split_inclusive(";\n") {
        raw_sql(sqlx::AssertSqlSafe(statement.to_owned()))
            .execute(&through)
            .await?;
    }
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (counter, leases) = (counter()?, leases());
        tasks.spawn(async move {
            let mut grant = leases.acquire(SystemClock.now(), None).await?;
            let mut numbers = Vec::new();
            for _ in 0..20 {
                grant = leases.renew(&grant, SystemClock.now()).await?;
                numbers.extend(counter.reserve(NonZeroU32::MIN).await?.values());
            }
            Ok::<_, ordid::Error>((grant.node(), numbers))
        });
    }
    let (mut nodes, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    while let Some(held) = tasks.join_next().await {
        let (node, given) = held??;
        assert!(nodes.insert(node), "node {node} has two holders");
        for number in given {
            assert!(numbers.insert(number), "{number} was given twice");
        }
    }
    assert!(numbers.into_iter().eq(1..=80));
    assert_eq!(dsql.unsupported(), before);
    Ok(())
}

#[derive(OrderedKey)]
#[ordid(table = "issues")]
struct Issue {
    #[ordid(key)]
    tenant: SensorId,
    #[ordid(key)]
    id: ReadingId,
}

async fn a_chunk_has_whole_tenants(pool: PgPool) -> Outcome {
    const TENANTS: i64 = 10;
    const OF_EACH: i64 = 1_000;
    let (dsql, through) = emulator(&pool, Weather::FAIR).await?;
    let table = "CREATE TABLE issues (tenant uuid, id uuid, PRIMARY KEY (tenant, id))";
    raw_sql(table).execute(&pool).await?;
    let mut work = UnitOfWork::new()
        .with_engine(EngineProfile::AURORA_DSQL)
        .in_chunks(ChunkLimits::OF_ENGINE.with_tenants(usize::MAX));
    let tenants: Vec<_> = (0..TENANTS).map(|_| SensorId::generate()).collect();
    for _ in 0..OF_EACH {
        for &tenant in &tenants {
            work.add(Issue {
                tenant,
                id: ReadingId::generate(),
            });
        }
    }
    work.flush(&through).await?;
    // Two tenants and a marker row: three would be a row too many.
    let sql = "SELECT count(*), count(DISTINCT xmin::text), count(DISTINCT (tenant, xmin::text)) FROM issues";
    let found: (i64, i64, i64) = sqlx::query_as(sql).fetch_one(&pool).await?;
    assert_eq!(found, (TENANTS * OF_EACH, TENANTS / 2, TENANTS));
    assert_eq!((dsql.unsupported(), dsql.largest()), (0, 2_001));
    Ok(())
}

/// Each run goes on where the one before was killed.
async fn a_process_that_is_killed_twenty_times_writes_each_row_once(pool: PgPool) -> Outcome {
    let weather = Weather {
        conflicts: 7,
        lives: 9,
    };
    let (dsql, through) = emulator(&pool, weather).await?;
    let (_folder, mut told) = prepare(&pool, Some("dsql")).await?;
    told.database = through.connect_options().to_url_lossy().to_string();
    told.stops = Some(if soak() { 1_000_000 } else { 60_000 });
    let mut process = Process::start(&told, Some(1), None)?;
    let mut first = Run::default();
    while first.keys.is_empty() {
        let said = process.next()?.ok_or("it ended by itself")?;
        first.take(said);
    }
    let all = i64::try_from(first.keys.len())?;
    let mut kills = 0;
    while kills < 20 {
        // Until some more rows are there: a run takes the whole journal in first.
        let before = count(&pool, "stop").await?;
        while count(&pool, "stop").await? < (before + all / 40).min(all - 3_000) {
            if process.is_over()? {
                return Err(format!("it ended by itself after {kills} kills").into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(
            u64::from(Uuid::new_v4().as_bytes()[0]) / 8,
        ))
        .await;
        process.kill()?;
        kills += 1;
        process = Process::start(&told, None, None)?;
    }
    process.kill()?;
    let last = run(&told, None, None)?;
    assert!(last.complete);
    assert!(last.resumed == 0 || last.resumed == first.keys.len());
    assert!(is_whole(&pool, 1, &first.keys).await?);
    assert_eq!(
        std::fs::metadata(&told.file)?.len(),
        0,
        "nothing is pending"
    );
    assert_eq!(dsql.unsupported(), 0);
    println!("{all} rows, {kills} kills, {} COMMITs", dsql.commits());
    Ok(())
}
