//! Versions of rows: in circles, whose rows are written twice in a flush, on every shard, and as times with an offset.

use libtest_mimic::Trial;
use ordid::{KeyType, OrderedKey, Version, uuid::Uuid};
use ordid_sqlx::{
    Backend, ChunkLimits, Entity, ShardedUnitOfWork, Sharding, UnitOfWork, flushes_table,
};
use ordid_tests::servers::Servers;
use sqlx::{
    AssertSqlSafe, FromRow, MySql, Pool, Postgres, SqlSafeStr as _, Sqlite, query_as, raw_sql,
};
use time::{OffsetDateTime, UtcOffset};

use crate::{Outcome, on_scratch, sqlite};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
struct PartId(Uuid);

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let raised = "versions::a_circle_keeps_versions_that_the_database_raises";
    let stale = "versions::chunks_do_not_unlink_a_row_that_has_changed";
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(trials, servers, server, raised, raised_by_the_database);
        on_scratch::<MySql, _, _>(trials, servers, server, stale, |pool| {
            changed_meanwhile(pool, "BINARY(16)")
        });
    }
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", stale, |pool| {
        changed_meanwhile(pool, "uuid")
    });
    let clock = "versions::rows_that_are_everywhere_have_no_version_of_a_clock";
    trials.push(Trial::test(clock, || {
        everywhere();
        Ok(())
    }));
    let offset = "versions::a_time_keeps_its_offset";
    sqlite::add(trials, offset, with_offset);
    sqlite::add(trials, stale, |pool: Pool<Sqlite>| {
        changed_meanwhile(pool, "BLOB")
    });
}

/// The time of the last change, as the database writes it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::Type)]
#[sqlx(transparent)]
struct Changed(String);

impl Version for Changed {
    fn next(&self) -> Self {
        Self::from_number(self.to_number() + 1)
    }

    fn to_number(&self) -> i128 {
        let digits = self.0.chars().filter(char::is_ascii_digit);
        digits.collect::<String>().parse().expect("it has digits")
    }

    fn from_number(number: i128) -> Self {
        let digits = format!("{number:020}");
        let part = |start: usize, end: usize| &digits[start..end];
        Self(format!(
            "{}-{}-{} {}:{}:{}.{}",
            part(0, 4),
            part(4, 6),
            part(6, 8),
            part(8, 10),
            part(10, 12),
            part(12, 14),
            part(14, 20)
        ))
    }

    fn to_text(&self) -> String {
        self.0.clone()
    }
}

#[derive(OrderedKey, Clone, FromRow)]
#[ordid(table = "assemblies")]
struct Assembly {
    id: PartId,
    #[ordid(parent = Assembly)]
    inside: Option<PartId>,
    #[ordid(version)]
    changed: Changed,
}

async fn raised_by_the_database(pool: Pool<MySql>) -> Outcome {
    let flushes = flushes_table::<MySql>();
    let tables = format!(
        "CREATE TABLE assemblies (id BINARY(16) PRIMARY KEY, inside BINARY(16), changed DATETIME(6) NOT NULL DEFAULT \
         CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), FOREIGN KEY (inside) REFERENCES assemblies (id)); {flushes}"
    );
    raw_sql(AssertSqlSafe(tables)).execute(&pool).await?;
    let [left, right] = [PartId::generate(), PartId::generate()];
    let circle = [(left, right), (right, left)].map(|(id, inside)| Assembly {
        id,
        inside: Some(inside),
        changed: Changed("2026-01-02 03:04:05.678901".to_owned()),
    });
    let mut work = UnitOfWork::new();
    circle.iter().for_each(|it| {
        work.add(it.clone());
    });
    work.flush(&pool).await?;
    let found: Vec<Assembly> =
        query_as("SELECT id, inside, CAST(changed AS CHAR) AS changed FROM assemblies ORDER BY id")
            .fetch_all(&pool)
            .await?;
    assert!(found.iter().all(|it| it.changed == circle[0].changed));
    found.iter().for_each(|it| work.delete(it));
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.deleted(), 2);
    Ok(())
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "deliveries", columns)]
struct Delivery {
    id: PartId,
    #[ordid(version)]
    changed: OffsetDateTime,
}

/// SQLite compares the text, which has the offset.
async fn with_offset(pool: Pool<Sqlite>) -> Outcome {
    let tables = format!(
        "CREATE TABLE deliveries (id BLOB PRIMARY KEY, changed TEXT NOT NULL); {}",
        flushes_table::<Sqlite>()
    );
    raw_sql(AssertSqlSafe(tables)).execute(&pool).await?;
    let changed = OffsetDateTime::UNIX_EPOCH.to_offset(UtcOffset::from_hms(2, 0, 0)?);
    let mut work = UnitOfWork::new();
    let id = work.add(Delivery {
        id: PartId::generate(),
        changed,
    });
    work.flush(&pool).await?;
    let (changed,): (OffsetDateTime,) = query_as("SELECT changed FROM deliveries")
        .fetch_one(&pool)
        .await?;
    work.delete(&Delivery { id, changed });
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.deleted(), 1);
    Ok(())
}

/// A version that another call would make otherwise, as a time.
#[derive(Clone, sqlx::Type)]
#[sqlx(transparent)]
struct Clock(i64);

impl Version for Clock {
    const READS_CLOCK: bool = true;

    fn next(&self) -> Self {
        Self(self.0 + 1)
    }

    fn to_number(&self) -> i128 {
        self.0.into()
    }

    fn from_number(number: i128) -> Self {
        Self(number.try_into().unwrap_or_default())
    }

    fn to_text(&self) -> String {
        self.0.to_string()
    }
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "suppliers", columns)]
struct Supplier {
    id: PartId,
    #[ordid(version)]
    changed: Clock,
    name: String,
}

fn everywhere() {
    let sharding = Sharding::by_hash(2).expect("two are some");
    let supplier = || Supplier {
        id: PartId::generate(),
        changed: Clock(1),
        name: "Ada".to_owned(),
    };
    let mut apart = ShardedUnitOfWork::<Sqlite>::new(sharding.clone());
    apart.update(supplier()).expect("each is on one shard");
    let mut work = ShardedUnitOfWork::<Sqlite>::new(sharding.everywhere::<Supplier>());
    let errors = [
        work.update(supplier()).unwrap_err(),
        work.update_columns(supplier(), Supplier::name).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(
            error.to_string(),
            "rows of suppliers are on each of the 2 shards, and their version is a time, of which each shard would write \
             another one: use an integer as the version"
        );
        assert!(error.is_plan());
    }
    assert_eq!(work.len(), 0);
    // What is inserted and deleted is the same on each shard.
    work.add(supplier()).expect("it has a key");
    work.delete(&supplier()).expect("it has a version");
    assert_eq!(work.len(), 4);
}

#[derive(OrderedKey, Clone, Debug, PartialEq, FromRow)]
#[ordid(table = "parts")]
struct Part {
    id: PartId,
    #[ordid(parent = Part)]
    inside: Option<PartId>,
    #[ordid(version)]
    version: i64,
}

/// Each statement is committed by itself. Nothing may be written over what somebody else has.
async fn changed_meanwhile<DB: Backend>(pool: Pool<DB>, key: &str) -> Outcome
where
    Part: Entity<DB> + for<'r> FromRow<'r, DB::Row>,
    for<'a> <DB as sqlx::Database>::Arguments: sqlx::IntoArguments<DB>,
    for<'c> &'c Pool<DB>: sqlx::Executor<'c, Database = DB>,
{
    let tables = format!(
        "CREATE TABLE parts (id {key} PRIMARY KEY, inside {key}, version BIGINT NOT NULL, FOREIGN KEY (inside) REFERENCES \
         parts (id)); {}",
        flushes_table::<DB>()
    );
    let mut connection = pool.acquire().await?;
    DB::run_script(&mut connection, AssertSqlSafe(tables).into_sql_str()).await?;
    let [left, right] = [PartId::generate(), PartId::generate()];
    let circle = [(left, right), (right, left)].map(|(id, inside)| Part {
        id,
        inside: Some(inside),
        version: 1,
    });
    drop(connection);
    let mut work = UnitOfWork::new();
    circle.iter().for_each(|it| {
        work.add(it.clone());
    });
    work.flush(&pool).await?;
    let mut connection = pool.acquire().await?;
    let change = AssertSqlSafe("UPDATE parts SET version = 2".to_owned());
    DB::run_script(&mut connection, change.into_sql_str()).await?;
    drop(connection);
    let mut work = UnitOfWork::new().in_chunks(ChunkLimits::rows(1));
    circle.iter().for_each(|it| work.delete(it));
    let error = work.flush(&pool).await.expect_err("the rows are stale");
    assert!(error.is_stale(), "{error}");
    assert_eq!(error.found_version(), Some("2"), "{error}");
    assert_eq!(error.committed_chunks(), 0, "{error}");
    let found: Vec<Part> = query_as("SELECT id, inside, version FROM parts ORDER BY id")
        .fetch_all(&pool)
        .await?;
    let changed = circle.map(|it| Part { version: 2, ..it });
    assert_eq!(found, changed);
    Ok(())
}
