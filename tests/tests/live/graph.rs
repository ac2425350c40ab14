//! Random graphs of foreign keys, flushed to databases that check them: up to fifty tables and five
//! hundred rows, with rows that refer to themselves, circles, keys that can be NULL and keys that can
//! wait for COMMIT.
//!
//! Which graph it is follows from its number, on each database. A test that fails says it, and
//! `ORDID_TEST_GRAPH=number` runs that graph alone.

mod draw;
mod judge;
mod schema;

use std::collections::HashMap;

use libtest_mimic::Trial;
use ordid::uuid::Uuid;
use ordid_core::unit_of_work::Action;
use ordid_sqlx::{Backend, FlushPlan, UnitOfWork, flushes_table};
use ordid_tests::{servers::Servers, soak};
use sqlx::{
    AssertSqlSafe, Pool, Postgres, Sqlite, pool::PoolOptions, query_as, query_scalar, raw_sql,
    sqlite::SqliteConnectOptions,
};

use self::{
    judge::Judge,
    schema::{ANCHOR, KINDS, Keys, NAMES, Row, Schema, TABLES, Table, UP},
};
use crate::{Outcome, on_scratch, run, sqlite};

/// How many graphs one schema serves.
const OF_A_SCHEMA: u64 = 10;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    trials.push(Trial::test("sqlite::any_graph_goes_in", || {
        run(|| flushed::<Sqlite>(times(300, 10_000), None))
    }));
    let name = "any_graph_goes_in";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, |pool| {
        flushed(times(40, 1_000), Some(pool))
    });
    sqlite::add(
        trials,
        "a_row_without_its_parent_is_refused",
        a_row_without_its_parent_is_refused,
    );
}

/// How many graphs are flushed: `cargo xtask soak` asks for more.
fn times(short: usize, long: usize) -> usize {
    if soak() { long } else { short }
}

/// A database that graphs are flushed to.
trait Engine: Backend + Sized {
    /// The column type of a key.
    const KEY: &'static str;

    fn literal(key: Uuid) -> String;

    /// What can be done with rows of each table, of each kind.
    fn tables() -> [[Table<Self>; TABLES]; KINDS];

    /// Makes the tables of a schema in a database that has no others.
    async fn create(before: Option<Pool<Self>>, schema: &Schema) -> Outcome<Pool<Self>>;

    /// Reads rows of a table's number, a key, and the foreign keys.
    async fn read(pool: &Pool<Self>, sql: String) -> Result<Vec<Read>, sqlx::Error>;

    /// Asks for the tables with rows whose parents are missing, where the database can tell.
    async fn dangling(pool: &Pool<Self>) -> Result<Vec<String>, sqlx::Error>;
}

type Read = (
    i64,
    Uuid,
    Option<Uuid>,
    Option<Uuid>,
    Option<Uuid>,
    Option<Uuid>,
);

impl Engine for Sqlite {
    const KEY: &'static str = "BLOB";

    fn literal(key: Uuid) -> String {
        format!("x'{}'", key.simple())
    }

    fn tables() -> [[Table<Self>; TABLES]; KINDS] {
        [
            schema::tables::<Self, 0>(),
            schema::tables::<Self, 1>(),
            schema::tables::<Self, 2>(),
        ]
    }

    async fn create(before: Option<Pool<Self>>, schema: &Schema) -> Outcome<Pool<Self>> {
        if let Some(before) = before {
            before.close().await;
        }
        let options = SqliteConnectOptions::new().filename(":memory:");
        // The database is the connection's, and ends with it.
        let pool = PoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options.foreign_keys(true))
            .await?;
        let ddl = schema.ddl::<Self>(true);
        let triggers = if schema.by_row {
            schema.triggers()
        } else {
            String::new()
        };
        let flushes = flushes_table::<Self>();
        // The first rows refer to each other.
        let sql =
            format!("BEGIN; PRAGMA defer_foreign_keys = ON; {ddl} COMMIT; {triggers} {flushes}");
        raw_sql(AssertSqlSafe(sql)).execute(&pool).await?;
        let checks: i64 = query_scalar("PRAGMA foreign_keys").fetch_one(&pool).await?;
        assert_eq!(checks, 1);
        Ok(pool)
    }

    async fn read(pool: &Pool<Self>, sql: String) -> Result<Vec<Read>, sqlx::Error> {
        query_as(AssertSqlSafe(sql)).fetch_all(pool).await
    }

    async fn dangling(pool: &Pool<Self>) -> Result<Vec<String>, sqlx::Error> {
        let sql = "SELECT \"table\" FROM pragma_foreign_key_check";
        query_scalar(sql).fetch_all(pool).await
    }
}

impl Engine for Postgres {
    const KEY: &'static str = "uuid";

    fn literal(key: Uuid) -> String {
        format!("'{key}'")
    }

    fn tables() -> [[Table<Self>; TABLES]; KINDS] {
        [
            schema::tables::<Self, 0>(),
            schema::tables::<Self, 1>(),
            schema::tables::<Self, 2>(),
        ]
    }

    async fn create(before: Option<Pool<Self>>, schema: &Schema) -> Outcome<Pool<Self>> {
        let pool = before.ok_or("PostgreSQL's tests are given a database")?;
        // All in one transaction.
        let sql = format!(
            "SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public; \
             {} {}",
            schema.ddl::<Self>(false),
            flushes_table::<Self>()
        );
        raw_sql(AssertSqlSafe(sql)).execute(&pool).await?;
        Ok(pool)
    }

    async fn read(pool: &Pool<Self>, sql: String) -> Result<Vec<Read>, sqlx::Error> {
        query_as(AssertSqlSafe(sql)).fetch_all(pool).await
    }

    /// Its constraints are always checked.
    async fn dangling(_: &Pool<Self>) -> Result<Vec<String>, sqlx::Error> {
        Ok(Vec::new())
    }
}

/// What graphs were seen: a test in which one of these is zero has shown nothing of it.
#[derive(Debug, Default)]
struct Seen {
    flushed: usize,
    refused: usize,
    without_circle: usize,
    fixed_up: usize,
    unlinked: usize,
    deferred: usize,
    rows: usize,
    of_themselves: usize,
    /// The most of any graph.
    most_tables: usize,
    most_rows: usize,
}

impl Seen {
    fn check(&self) {
        let graphs = self.flushed;
        for seen in [
            self.fixed_up,
            self.deferred,
            self.unlinked,
            self.without_circle,
        ] {
            assert!(seen >= graphs / 20, "{self:?}");
        }
        assert!(self.refused >= graphs / 40, "{self:?}");
        assert!(self.of_themselves >= graphs, "{self:?}");
        assert!(
            self.most_tables == TABLES && self.most_rows == draw::MOST_ROWS,
            "{self:?}"
        );
    }
}

/// Says which graph it was, however its test fails.
struct Number {
    number: u64,
    has_passed: bool,
}

impl Drop for Number {
    fn drop(&mut self) {
        if !self.has_passed {
            let number = self.number;
            eprintln!("graph {number} failed: ORDID_TEST_GRAPH={number} runs it alone");
        }
    }
}

/// Flushes so many graphs, and those between them that cannot be.
async fn flushed<DB: Engine>(graphs: usize, mut pool: Option<Pool<DB>>) -> Outcome {
    let alone = std::env::var("ORDID_TEST_GRAPH").ok();
    let alone: Option<u64> = alone.map(|number| number.parse()).transpose()?;
    let tables = DB::tables();
    let mut seen = Seen::default();
    let mut schema = None;
    for number in alone.unwrap_or(0).. {
        let mut failing = Number {
            number,
            has_passed: false,
        };
        if schema.is_none() || number.is_multiple_of(OF_A_SCHEMA) {
            let drawn = Schema::draw(number / OF_A_SCHEMA);
            pool = Some(DB::create(pool, &drawn).await?);
            schema = Some(drawn);
        }
        if let (Some(pool), Some(schema)) = (&pool, &schema) {
            let graph = Graph::<DB> {
                schema,
                tables: &tables[schema.kind],
                rows: draw::graph(schema, number),
            };
            graph.test(pool, &mut seen).await?;
        }
        failing.has_passed = true;
        if alone.is_some() || seen.flushed == graphs {
            break;
        }
    }
    eprintln!("{}: {seen:?}", DB::NAME);
    if alone.is_none() {
        seen.check();
    }
    Ok(())
}

struct Graph<'a, DB: Engine> {
    schema: &'a Schema,
    tables: &'a [Table<DB>; TABLES],
    /// In two orders of adding.
    rows: [Vec<Row>; 2],
}

impl<DB: Engine> Graph<'_, DB> {
    fn work(&self, rows: &[Row]) -> UnitOfWork<DB> {
        let mut work = UnitOfWork::new();
        for row in rows {
            (self.tables[row.table].add)(&mut work, *row);
        }
        work
    }

    async fn test(&self, pool: &Pool<DB>, seen: &mut Seen) -> Outcome {
        let [rows, again] = &self.rows;
        let judge = Judge::new(self.schema, rows);
        let (mut work, mut other) = (self.work(rows), self.work(again));
        if judge.has_circle(|link| link.is_hard()) {
            // That cannot be sent to, so this comes before anything is.
            let closed = pool
                .options()
                .clone()
                .connect_lazy_with((*pool.connect_options()).clone());
            closed.close().await;
            let error = work.flush(&closed).await.err();
            let error = error.ok_or("a circle that cannot be broken was flushed")?;
            assert!(error.is_plan(), "{error}");
            assert!(judge.is_circle(&error.to_string()), "{error}");
            let same = other.plan().err().ok_or("or planned")?;
            assert_eq!(same.to_string(), error.to_string());
            seen.refused += 1;
            return Ok(());
        }

        let plan = work.plan()?;
        assert!(
            work.plan()? == plan,
            "the plan differs when it is made again"
        );
        assert!(
            other.plan()? == plan,
            "the plan differs by the order of adding"
        );
        let counts = |plan: &FlushPlan, is: fn(&Action) -> bool| {
            let tables = plan.tables.iter().filter(|it| is(&it.action));
            tables.map(|it| it.rows).sum::<usize>()
        };
        let defers = plan.defers.is_some();
        let fixed_up = counts(&plan, |it| matches!(it, Action::FixUp { .. }));
        if !judge.has_circle(|_| true) {
            assert!(fixed_up == 0 && !defers, "no circle");
            seen.without_circle += 1;
        }
        assert_eq!(work.flush(pool).await?.rows(), rows.len());
        self.check(pool, rows).await?;

        other.clear();
        for (work, rows) in [(&mut work, again), (&mut other, rows)] {
            for row in rows {
                (self.tables[row.table].delete)(work, *row);
            }
        }
        let plan = work.plan()?;
        assert!(
            other.plan()? == plan,
            "the plan differs by the order of adding"
        );
        let unlinked = counts(&plan, |it| matches!(it, Action::Unlink { .. }));
        assert_eq!(work.flush(pool).await?.deleted(), rows.len());
        self.check(pool, &[]).await?;

        let mut tables: Vec<usize> = rows.iter().map(|row| row.table).collect();
        tables.sort_unstable();
        tables.dedup();
        let own = |row: &&Row| {
            let mut up = self.schema.links[row.table].iter().zip(row.up);
            up.any(|(link, up)| (link.target, up) == (row.table, Some(row.id)))
        };
        seen.flushed += 1;
        seen.fixed_up += usize::from(fixed_up > 0);
        seen.unlinked += usize::from(unlinked > 0);
        seen.deferred += usize::from(defers);
        seen.rows += rows.len();
        seen.of_themselves += rows.iter().filter(own).count();
        seen.most_tables = seen.most_tables.max(tables.len());
        seen.most_rows = seen.most_rows.max(rows.len());
        Ok(())
    }

    /// Whether these rows are in the database once, beside those that were there before, with the
    /// foreign keys that they were given.
    async fn check(&self, pool: &Pool<DB>, rows: &[Row]) -> Outcome {
        let up = UP.join(", ");
        let selects = NAMES
            .iter()
            .enumerate()
            .map(|(table, name)| format!("SELECT CAST({table} AS BIGINT), id, {up} FROM {name}"));
        let sql = selects.collect::<Vec<_>>().join(" UNION ALL ");
        let read = DB::read(pool, sql).await?;
        let length = read.len();
        let read: HashMap<(usize, Uuid), Keys> = read
            .into_iter()
            .map(|(table, id, a, b, c, d)| Ok(((table.try_into()?, id), [a, b, c, d])))
            .collect::<Outcome<_>>()?;
        assert_eq!(read.len(), length, "a row is there twice");
        let anchors = self.schema.anchors();
        for row in rows.iter().chain(&anchors) {
            assert_eq!(read.get(&(row.table, row.id)), Some(&row.up), "{row:?}");
        }
        assert_eq!(length, rows.len() + anchors.len(), "rows that nobody added");
        let dangling = DB::dangling(pool).await?;
        assert!(dangling.is_empty(), "{dangling:?}");
        Ok(())
    }
}

/// The tests above could not fail were the keys not checked: neither by constraints, nor row by row.
async fn a_row_without_its_parent_is_refused(_: Pool<Sqlite>) -> Outcome {
    let mut by_constraint = 0;
    let mut by_trigger = 0;
    for number in 0..6 {
        let schema = Schema::draw(number);
        let pool = Sqlite::create(None, &schema).await?;
        for (table, links) in schema.links.iter().enumerate() {
            for (column, link) in links.iter().enumerate().filter(|(_, link)| link.declared) {
                let missing = Uuid::from_u128(7);
                let up: Vec<String> = (0..UP.len())
                    .map(|it| Sqlite::literal(if it == column { missing } else { ANCHOR }))
                    .collect();
                let sql = format!(
                    "INSERT INTO {} (id, {}) VALUES ({}, {})",
                    NAMES[table],
                    UP.join(", "),
                    Sqlite::literal(Uuid::from_u128(9)),
                    up.join(", ")
                );
                let refused = raw_sql(AssertSqlSafe(sql))
                    .execute(&pool)
                    .await
                    .unwrap_err();
                let refused = refused.as_database_error().ok_or("of the database")?;
                if schema.by_row && !link.deferrable {
                    assert_eq!(refused.message(), "a row without its parent");
                    by_trigger += 1;
                } else {
                    assert!(refused.is_foreign_key_violation(), "{refused}");
                    by_constraint += 1;
                }
            }
        }
        pool.close().await;
    }
    assert!(by_trigger > 100 && by_constraint > 100);
    Ok(())
}
