//! Tests of partitions of PostgreSQL by the time in the key.

use std::time::Duration;

use libtest_mimic::Trial;
use ordid::{
    KeyField, KeyOf, KeyType, OrderedKey,
    clock::{Clock as _, SystemClock, Timestamp},
    scheme::TimeOrdered,
    storage::{ColumnOn, dialect},
    uuid::Uuid,
};
use ordid_sql::{partitions::PartitionDriver, table_driver::TableDriver};
use ordid_sqlx::{
    Sqlx, StoredAs, UnitOfWork,
    partitions::{Partitions, Period},
};
use ordid_tests::servers::Servers;
use sqlx::{AssertSqlSafe, Pool, Postgres, query_scalar, raw_sql};

use crate::{Outcome, database::Live, on_scratch};

const DAY: u64 = 86_400_000;

/// Defines an entity for each kind of column.
macro_rules! entities {
    ($($name:ident, $key:ident($raw:ty), $options:tt;)+) => {$(
        #[derive(KeyType)]
        #[ordid $options]
        struct $key($raw);

        #[derive(OrderedKey)]
        #[ordid(table = "events")]
        struct $name {
            id: $key,
        }
    )+};
}

entities! {
    Native, NativeId(Uuid), (sqlx);
    Bytes, BytesId(Uuid), (sqlx(postgres = bytea));
    Char, CharId(Uuid), (sqlx(postgres = char22));
    Number, NumberId(i64), (scheme = snowflake, sqlx);
    Begins, BeginsId(i64), (scheme = snowflake(epoch = "2020-01-01"), sqlx);
    Coarse, CoarseId(i64), (
        scheme = snowflake(epoch = "2020-01-01", unit = 588, time = 40, node = 10, sequence = 13),
        sqlx
    );
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    type DB = Postgres;

    let name = |column| format!("partitions::rows_land_in_the_partition_of_their_time_{column}");
    on_scratch::<DB, _, _>(
        trials,
        servers,
        "postgres",
        &name("uuid"),
        rows_land::<Native>,
    );
    on_scratch::<DB, _, _>(
        trials,
        servers,
        "postgres",
        &name("bytea"),
        rows_land::<Bytes>,
    );
    on_scratch::<DB, _, _>(
        trials,
        servers,
        "postgres",
        &name("text"),
        rows_land::<Char>,
    );
    on_scratch::<DB, _, _>(
        trials,
        servers,
        "postgres",
        &name("bigint"),
        rows_land::<Number>,
    );
    for (name, test) in crate::database::tests![
        "partitions::created_by_eight_at_once": eight_at_once,
        "partitions::created_by_eight_at_once_that_read_repeatably": eight_readers,
        "partitions::bytes_are_read_as_the_session_writes_them": escaped,
        "partitions::a_unit_of_work_flushes_into_them_once": flushes,
        "partitions::what_cannot_be_created_is_an_error": refused,
        "partitions::keys_of_long_steps_have_them": coarse,
    ] {
        on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, test);
    }
}

/// Creates the table with the column that the entity declares.
async fn create<E>(pool: &Pool<Postgres>, partitions: &Partitions<E>) -> Outcome
where
    E: OrderedKey<Field: KeyField<Leading = KeyOf<E>>>,
    KeyOf<E>:
        StoredAs<Postgres, Column: ColumnOn<dialect::Postgres>> + KeyType<Scheme: TimeOrdered>,
    Sqlx<Postgres>: PartitionDriver<E>,
{
    let key =
        <<KeyOf<E> as StoredAs<Postgres>>::Column as ColumnOn<dialect::Postgres>>::primary_key(
            "id",
        );
    let by = partitions.partition_by_sql();
    Postgres::script(pool, &format!("CREATE TABLE events ({key}) {by}")).await?;
    Ok(())
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(millis).unwrap()
}

async fn rows_land<E>(pool: Pool<Postgres>) -> Outcome
where
    E: OrderedKey<Field: KeyField<Leading = KeyOf<E>>>,
    KeyOf<E>:
        StoredAs<Postgres, Column: ColumnOn<dialect::Postgres>> + KeyType<Scheme: TimeOrdered>,
    Sqlx<Postgres>: PartitionDriver<E> + TableDriver<Error = sqlx::Error>,
    for<'c> <Sqlx<Postgres> as TableDriver>::Source<'c>: From<&'c Pool<Postgres>>,
{
    let events = Partitions::<E>::new(Period::Day);
    create(&pool, &events).await?;
    // The days are 2024-02-28, 2024-02-29 and 2024-03-01.
    let first = 1_709_078_400_000;
    let days = [0, 1, 2].map(|day| first + day * DAY);
    for day in days {
        for _ in 0..2 {
            Postgres::script(&pool, &events.create_sql(at(day + 4_711))?).await?;
        }
    }
    let literal = |millis: u64| -> Outcome<String> {
        let key = KeyOf::<E>::range(at(millis)..at(millis))?.start;
        Ok(<<KeyOf<E> as StoredAs<Postgres>>::Column as ColumnOn<
            dialect::Postgres,
        >>::literal(key.to_raw()))
    };
    let names = ["events_20240228", "events_20240229", "events_20240301"];
    for (day, name) in days.into_iter().zip(names) {
        for millis in [day, day + DAY / 2, day + DAY - 1] {
            let insert = format!(
                "INSERT INTO events VALUES ({}) RETURNING tableoid::regclass::text",
                literal(millis)?
            );
            assert_eq!(Postgres::texts(&pool, &insert).await?, [name]);
        }
    }
    for outside in [first - 1, first + 3 * DAY] {
        let insert = format!("INSERT INTO events VALUES ({})", literal(outside)?);
        let error = Postgres::script(&pool, &insert).await.unwrap_err();
        assert!(
            error.to_string().contains("no partition of relation"),
            "{error}"
        );
    }

    // A query for a time reads the partition of that time alone.
    let (from, to) = (literal(days[1])?, literal(days[2])?);
    let select = format!("SELECT id FROM events WHERE id >= {from} AND id < {to}");
    let plan = Postgres::texts(&pool, &format!("EXPLAIN {select}"))
        .await?
        .join("\n");
    for name in names {
        assert_eq!(plan.contains(name), name == names[1], "{plan}");
    }
    let count = Postgres::count(&pool, &format!("({select}) of_day")).await?;
    assert_eq!(count, 3);

    let created = events.create_next(&pool, 2).await?;
    assert_eq!(created.len(), 3);
    let today = SystemClock.now();
    assert!(created[0].from <= Some(today) && Some(today) < created[1].to);
    assert_eq!(events.create_next(&pool, 2).await?, []);
    assert_eq!(events.create_next(&pool, 3).await?.len(), 1);

    let list = events.list(&pool).await?;
    assert_eq!(list.len(), 7);
    for (partition, (day, name)) in list.iter().zip(days.into_iter().zip(names)) {
        assert_eq!((&*partition.name, &*partition.schema), (name, "public"));
        assert_eq!(partition.from, Some(at(day)));
        assert_eq!(partition.to, Some(at(day + DAY)));
    }
    let old = events.older_than(&pool, Duration::from_hours(24)).await?;
    assert_eq!(old, list[..3]);
    let age = today.as_unix_millis() - days[1];
    let old = events.older_than(&pool, Duration::from_millis(age)).await?;
    assert_eq!(old, list[..1]);
    Postgres::script(&pool, &events.detach_sql(&old[0])).await?;
    assert_eq!(events.list(&pool).await?, list[1..]);
    assert_eq!(Postgres::count(&pool, names[0]).await?, 3);
    assert_eq!(Postgres::count(&pool, "events").await?, 6);
    // The detached table still exists, so its name is taken.
    let create = events.create_sql(at(first))?;
    let error = Postgres::script(&pool, &create).await.unwrap_err();
    assert!(error.to_string().contains("already exists"), "{error}");
    Ok(())
}

/// A pool whose sessions have a setting.
async fn with(pool: &Pool<Postgres>, setting: [&str; 2]) -> Outcome<Pool<Postgres>> {
    let options = (*pool.connect_options()).clone();
    let options = options.options([(setting[0], setting[1])]);
    Ok(sqlx::pool::PoolOptions::new()
        .max_connections(8)
        .connect_with(options)
        .await?)
}

/// The script that waits for another has read before it, and does not see what that has made.
async fn eight_readers(pool: Pool<Postgres>) -> Outcome {
    eight_at_once(with(&pool, ["default_transaction_isolation", "repeatable read"]).await?).await
}

async fn escaped(pool: Pool<Postgres>) -> Outcome {
    rows_land::<Bytes>(with(&pool, ["bytea_output", "escape"]).await?).await
}

async fn eight_at_once(pool: Pool<Postgres>) -> Outcome {
    let events = Partitions::<Native>::new(Period::Week);
    create(&pool, &events).await?;
    events.create_next(&pool, 0).await?;
    // `create_next` does not wait for a transaction that has written to the table.
    let mut open = pool.begin().await?;
    sqlx::query("INSERT INTO events VALUES ($1)")
        .bind(NativeId::generate())
        .execute(&mut *open)
        .await?;
    let many = sqlx::pool::PoolOptions::<Postgres>::new()
        .max_connections(8)
        .connect_with((*pool.connect_options()).clone())
        .await?;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let many = many.clone();
            tokio::spawn(async move { events.create_next(&many, 9).await })
        })
        .collect();
    for task in tasks {
        let within = tokio::time::timeout(Duration::from_secs(60), task).await;
        let missing = within???;
        assert!(missing.len() <= 9, "{missing:?}");
    }
    open.commit().await?;
    let list = events.list(&pool).await?;
    assert_eq!(list.len(), 10);
    assert!(list.windows(2).all(|pair| pair[0].to == pair[1].from));
    assert_eq!(events.create_next(&pool, 9).await?, []);
    many.close().await;
    Ok(())
}

#[derive(KeyType)]
#[ordid(sqlx)]
struct LineId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "lines")]
struct Line {
    id: LineId,
    #[ordid(parent)]
    event: NativeId,
}

async fn flushes(pool: Pool<Postgres>) -> Outcome {
    let events = Partitions::<Native>::new(Period::Month);
    crate::guide::run_each(&pool, "partitions: table").await?;
    let statement = crate::guide::statements("partitions: table").remove(0);
    assert!(
        statement.ends_with(&events.partition_by_sql().replace('"', "")),
        "{statement}"
    );
    Postgres::script(
        &pool,
        "CREATE TABLE lines (id uuid PRIMARY KEY, event uuid NOT NULL REFERENCES events)",
    )
    .await?;
    events.create_next(&pool, 1).await?;
    let mut work = UnitOfWork::new();
    let mut keys = Vec::new();
    for _ in 0..3_000 {
        let event = NativeId::generate();
        work.add(Native { id: event });
        work.add(Line {
            id: LineId::generate(),
            event,
        });
        keys.push(event);
    }
    assert_eq!(work.flush(&pool).await?.rows(), 6_000);
    // A flush with a key that exists already writes nothing.
    work.add(Native { id: keys[7] });
    work.add(Native {
        id: NativeId::generate(),
    });
    let error = work.flush(&pool).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    let found: Vec<NativeId> = query_scalar("SELECT id FROM events ORDER BY id")
        .fetch_all(&pool)
        .await?;
    assert_eq!(found, keys);
    Ok(())
}

/// No day begins where a step of 588 ms does, so the bounds are read back as earlier times.
async fn coarse(pool: Pool<Postgres>) -> Outcome {
    let events = Partitions::<Coarse>::new(Period::Day);
    create(&pool, &events).await?;
    assert_eq!(events.create_next(&pool, 2).await?.len(), 3);
    assert_eq!(events.create_next(&pool, 2).await?, []);
    assert_eq!(events.create_next(&pool, 3).await?.len(), 1);

    // The period in which the scheme's time begins has no lower bound. The script may run twice.
    let years = Partitions::<Begins>::new(Period::Week);
    Postgres::script(&pool, "DROP TABLE events").await?;
    create(&pool, &years).await?;
    for _ in 0..2 {
        Postgres::script(&pool, &years.create_sql(at(1_577_836_800_000))?).await?;
        let list = years.list(&pool).await?;
        assert_eq!(list.len(), 1);
        assert_eq!(
            (list[0].from, list[0].to),
            (None, Some(at(1_578_268_800_000)))
        );
    }
    assert!(
        years
            .create_sql(at(1_570_000_000_000))
            .unwrap_err()
            .is_clock()
    );
    Ok(())
}

async fn refused(pool: Pool<Postgres>) -> Outcome {
    let events = Partitions::<Native>::new(Period::Day);
    let error = events.list(&pool).await.unwrap_err();
    assert!(error.driver().is_some() && !error.is_transient() && !error.is_connection_lost());
    let text = error.to_string();
    assert!(
        text.starts_with("partitions of \"events\": error returned from database: relation \"events\" does not exist"),
        "{text}"
    );
    Postgres::script(&pool, "CREATE TABLE events (id uuid PRIMARY KEY)").await?;
    assert_eq!(events.list(&pool).await?, []);
    let error = events.create_next(&pool, 0).await.unwrap_err();
    assert!(error.to_string().contains("is not partitioned"), "{error}");

    Postgres::script(&pool, "DROP TABLE events").await?;
    create(&pool, &events).await?;
    events.create_next(&pool, 0).await?;
    let months = Partitions::<Native>::new(Period::Month);
    let error = months.create_next(&pool, 0).await.unwrap_err();
    assert!(error.to_string().contains("would overlap"), "{error}");
    Postgres::script(&pool, "CREATE TABLE rest PARTITION OF events DEFAULT").await?;
    let list = events.list(&pool).await?;
    assert_eq!(list.len(), 2);
    assert!(list[1].name == "rest" && list[1].from.is_none() && list[1].to.is_none());
    assert_eq!(events.older_than(&pool, Duration::ZERO).await?, []);
    assert_eq!(events.create_next(&pool, 0).await?, []);

    // A partition of the name that has other bounds.
    Postgres::script(&pool, "DROP TABLE events").await?;
    create(&pool, &events).await?;
    let today = events.create_next(&pool, 0).await?.remove(0);
    let tomorrow = today.to.expect("it has an end");
    let sql = events.create_sql(tomorrow)?;
    let named = sql.split("CREATE TABLE \"").nth(1);
    let name = named.and_then(|it| it.split('"').next()).expect("its name");
    Postgres::script(
        &pool,
        &format!("ALTER TABLE {} RENAME TO {name}", today.name),
    )
    .await?;
    let error = events.create_next(&pool, 1).await.unwrap_err();
    assert!(error.is_unexpected_bound(), "{error}");
    assert!(error.to_string().contains(name), "{error}");
    let error = Postgres::script(&pool, &sql).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("has the bounds FOR VALUES FROM"), "{text}");
    assert!(text.contains(name), "{text}");

    // These bounds are no keys of the scheme.
    raw_sql(AssertSqlSafe(format!(
        "CREATE TABLE before PARTITION OF events FOR VALUES FROM (MINVALUE) TO ('{}')",
        Uuid::nil()
    )))
    .execute(&pool)
    .await?;
    let error = events.list(&pool).await.unwrap_err();
    assert!(error.is_unexpected_bound(), "{error}");
    assert!(
        error.to_string().starts_with(
            "partitions of \"events\": the partition before has the bounds FOR VALUES FROM"
        ),
        "{error}"
    );
    Ok(())
}
