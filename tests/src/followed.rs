//! Followers and partitions of tables, over every library that has them: the reading and the writing itself. What they
//! promise is held by the tests of `SQLx`'s, whose decisions and statements are the same.

use std::{future::Future, time::Duration};

use libtest_mimic::Trial;
use ordid::{KeyType as _, uuid::Uuid};
use sqlx::{MySql, Pool, Postgres, Sqlite};
use tokio::time::sleep;

use crate::{
    everyday::Engine,
    servers::{Scratch, Servers},
    trials::{Outcome, on_scratch, over_sqlite, run, sqlite_file},
};

/// What a call of a follower has delivered.
#[derive(Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The numbers of the rows.
    pub numbers: Vec<i64>,
    /// The position after them.
    pub position: String,
    /// Whether there were no others.
    pub is_complete: bool,
}

/// A library's follower of the table `events`, which has an `id` and a `number`.
pub trait Follows: 'static {
    /// The database, as it is looked into.
    type Database: Engine;

    /// What the names of its tests begin with.
    const PREFIX: &'static str;

    /// Reads rows that are older than this.
    fn settled(
        pool: &Pool<Self::Database>,
        longest: Duration,
        position: &str,
        most: u32,
    ) -> impl Future<Output = Outcome<Delivered>>;
}

/// What there is on PostgreSQL alone.
pub trait FollowsPostgres: Follows<Database = Postgres> {
    /// Returns the statements that add the column with the transaction.
    fn create_sql() -> Vec<String>;

    /// Reads rows whose transaction has ended.
    fn committed(
        pool: &Pool<Postgres>,
        position: &str,
        most: u32,
    ) -> impl Future<Output = Outcome<Delivered>>;

    /// Returns the position after all rows that there are.
    fn now(pool: &Pool<Postgres>) -> impl Future<Output = Outcome<String>>;

    /// Returns the clause that partitions the table by days.
    fn partition_by_sql() -> String;

    /// Creates the partitions of today and of so many days after it. Returns the names of those that were missing, and of
    /// all.
    fn partitions(
        pool: &Pool<Postgres>,
        count: u32,
    ) -> impl Future<Output = Outcome<[Vec<String>; 2]>>;
}

const SETTLED: &str = "settled_rows_are_delivered_once";

/// Adds the tests of a library on all four databases.
pub fn trials<S, P, M>(servers: &Servers, trials: &mut Vec<Trial>)
where
    S: Follows<Database = Sqlite>,
    P: FollowsPostgres,
    M: Follows<Database = MySql>,
{
    on_files::<S>(trials);
    on_postgres::<P>(servers, trials);
    on_server::<M>(servers, trials, "mariadb");
    on_server::<M>(servers, trials, "mysql");
}

/// Adds that of SQLite.
pub fn on_files<F: Follows<Database = Sqlite>>(trials: &mut Vec<Trial>) {
    let name = format!("sqlite::{}{SETTLED}", F::PREFIX);
    trials.push(Trial::test(name, || {
        run(async || {
            let (_folder, options) = sqlite_file()?;
            over_sqlite(options, 1, settled_rows_are_delivered_once::<F>).await
        })
    }));
}

/// Adds that of a server.
pub fn on_server<F: Follows<Database: Scratch>>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    server: &'static str,
) {
    let name = format!("{}{SETTLED}", F::PREFIX);
    let test = settled_rows_are_delivered_once::<F>;
    on_scratch::<F::Database, _, _>(trials, servers, server, &name, test);
}

/// Adds those of PostgreSQL.
pub fn on_postgres<F: FollowsPostgres>(servers: &Servers, trials: &mut Vec<Trial>) {
    on_server::<F>(servers, trials, "postgres");
    let name = |name| format!("{}{name}", F::PREFIX);
    on_scratch::<Postgres, _, _>(
        trials,
        servers,
        "postgres",
        &name("a_row_that_is_committed_late_is_delivered_once"),
        late_row_is_delivered_once::<F>,
    );
    on_scratch::<Postgres, _, _>(
        trials,
        servers,
        "postgres",
        &name("the_next_partitions_are_created_once"),
        partitions_are_created_once::<F>,
    );
}

async fn create<DB: Engine>(pool: &Pool<DB>, by: &str) -> Outcome {
    let key = DB::KEY;
    let sql =
        format!("CREATE TABLE events (id {key} NOT NULL PRIMARY KEY, number BIGINT NOT NULL) {by}");
    DB::execute_sql(pool, sql).await
}

fn insert<DB: Engine>(number: i64) -> String {
    let id = DB::literal(Uuid::generate());
    format!("INSERT INTO events (id, number) VALUES ({id}, {number})")
}

async fn settled_rows_are_delivered_once<F: Follows>(pool: Pool<F::Database>) -> Outcome {
    const LONGEST: Duration = Duration::from_millis(40);

    create::<F::Database>(&pool, "").await?;
    for number in 0..5 {
        F::Database::execute_sql(&pool, insert::<F::Database>(number)).await?;
    }
    let early = F::settled(&pool, Duration::from_hours(1), "start", 2).await?;
    assert_eq!((early.numbers, early.is_complete), (Vec::new(), true));
    sleep(LONGEST + Duration::from_millis(20)).await;
    let mut position = early.position;
    for expected in [&[0, 1][..], &[2, 3], &[4], &[]] {
        let delivered = F::settled(&pool, LONGEST, &position, 2).await?;
        assert_eq!(delivered.numbers, expected);
        assert_eq!(delivered.is_complete, expected.len() < 2);
        position = delivered.position;
    }
    F::Database::execute_sql(&pool, insert::<F::Database>(5)).await?;
    sleep(LONGEST + Duration::from_millis(20)).await;
    let delivered = F::settled(&pool, LONGEST, &position, 2).await?;
    assert_eq!(delivered.numbers, [5]);
    let error = F::settled(&pool, LONGEST, "seen 10:20:", 2).await;
    let error = error.expect_err("a position of another kind").to_string();
    assert!(error.contains("above"), "{error}");
    Ok(())
}

async fn late_row_is_delivered_once<F: FollowsPostgres>(pool: Pool<Postgres>) -> Outcome {
    create::<Postgres>(&pool, "").await?;
    let error = F::committed(&pool, "start", 1).await;
    let error = error.expect_err("the column is missing").to_string();
    assert!(
        error.contains("inserted_in") && error.contains("`Follower::create_sql`"),
        "{error}"
    );
    for sql in F::create_sql() {
        Postgres::execute_sql(&pool, sql).await?;
    }
    let begin = F::now(&pool).await?;
    let (late, early) = (insert::<Postgres>(0), insert::<Postgres>(1));
    let mut slow = pool.begin().await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(late))
        .execute(&mut *slow)
        .await?;
    Postgres::execute_sql(&pool, early).await?;
    let first = F::committed(&pool, &begin, 10).await?;
    assert_eq!((&first.numbers[..], first.is_complete), (&[1][..], true));
    slow.commit().await?;
    let second = F::committed(&pool, &first.position, 10).await?;
    assert_eq!(second.numbers, [0]);
    let third = F::committed(&pool, &second.position, 10).await?;
    assert_eq!(third.numbers, [0; 0]);
    // In pages, from the beginning: by key.
    let page = F::committed(&pool, &begin, 1).await?;
    assert_eq!((&page.numbers[..], page.is_complete), (&[0][..], false));
    let page = F::committed(&pool, &page.position, 1).await?;
    assert_eq!(page.numbers, [1]);
    Ok(())
}

async fn partitions_are_created_once<F: FollowsPostgres>(pool: Pool<Postgres>) -> Outcome {
    create::<Postgres>(&pool, &F::partition_by_sql()).await?;
    let [created, all] = F::partitions(&pool, 1).await?;
    assert_eq!((created.len(), &created), (2, &all));
    let [created, all] = F::partitions(&pool, 2).await?;
    assert_eq!((created.len(), all.len()), (1, 3));
    assert_eq!(created[0], all[2]);
    // A row of now has a partition.
    Postgres::execute_sql(&pool, insert::<Postgres>(1)).await
}
