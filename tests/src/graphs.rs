//! Random graphs of foreign keys, flushed to databases that check them: up to fifty tables and five
//! hundred rows, with rows that refer to themselves, circles, keys that can be NULL and keys that can
//! wait for COMMIT.
//!
//! Which graph it is follows from its number, on each database. A test that fails says it, and
//! `ORDID_TEST_GRAPH=number` runs that graph alone.

mod checks;
mod draw;
mod engine;
mod judge;
mod schema;

use std::{
    collections::{BTreeMap, HashMap},
    future::Future,
};

use libtest_mimic::Trial;
use ordid::{Sink, storage::Dialect as _, uuid::Uuid};
use ordid_sql::Action;
use ordid_sqlx::{Binder, FlushPlan, Flushed, StoredAs, UnitOfWork};
use sqlx::{MySql, Pool, Postgres, Sqlite};

pub use self::{
    checks::trials as trials_of_checks,
    engine::{Engine, Read},
    schema::{Entities, Keys, NAMES, Row, TABLES, UP, parents, typed},
};
use self::{
    judge::Judge,
    schema::{KINDS, Schema, Table},
};
use crate::{
    faults::Failed,
    servers::{Scratch, Servers},
    soak,
    trials::{Outcome, on_scratch, run},
};

/// How many graphs one schema serves.
const OF_A_SCHEMA: u64 = 10;

/// Adds the tests of a library: its units of work for SQLite, PostgreSQL, MariaDB and MySQL.
pub fn trials<S, P, M>(servers: &Servers, trials: &mut Vec<Trial>)
where
    S: GraphWork<Database = Sqlite>,
    P: GraphWork<Database = Postgres>,
    M: GraphWork<Database = MySql>,
{
    on_files::<S>(trials);
    on_server::<P>(servers, trials, "postgres");
    on_server::<M>(servers, trials, "mariadb");
    on_server::<M>(servers, trials, "mysql");
}

/// Adds that of SQLite.
pub fn on_files<W: GraphWork<Database = Sqlite>>(trials: &mut Vec<Trial>) {
    let name = format!("sqlite::{}any_graph_goes_in", W::PREFIX);
    trials.push(Trial::test(name, || {
        run(|| flushed::<W>(times(300, 10_000), None))
    }));
}

/// Adds that of a server.
pub fn on_server<W>(servers: &Servers, trials: &mut Vec<Trial>, server: &'static str)
where
    W: GraphWork<Database: Scratch>,
{
    let name = format!("{}any_graph_goes_in", W::PREFIX);
    on_scratch::<W::Database, _, _>(trials, servers, server, &name, |pool| {
        flushed::<W>(times(40, 1_000), Some(pool))
    });
}

/// How many graphs are flushed: `cargo xtask soak` asks for more.
fn times(short: usize, long: usize) -> usize {
    if soak() { long } else { short }
}

/// A library's unit of work, for rows of graphs.
pub trait GraphWork: Sized {
    /// The database, as it is looked into.
    type Database: Engine;

    /// What the names of its tests begin with.
    const PREFIX: &'static str;

    /// Makes an empty one.
    fn begin() -> Self;

    /// Adds a row of this table, as an entity of the table's type.
    fn add<const KIND: usize, const TABLE: usize>(&mut self, row: Row);

    /// Adds a delete of a row of this table.
    fn delete<const KIND: usize, const TABLE: usize>(&mut self, row: Row);

    /// Says what a flush would do.
    ///
    /// # Errors
    ///
    /// The library's.
    fn plan(&mut self) -> Result<FlushPlan, Failed>;

    /// Flushes to the database that this pool is of.
    fn flush(
        &mut self,
        pool: &Pool<Self::Database>,
    ) -> impl Future<Output = Result<Flushed, Failed>>;
}

/// `ordid-sqlx`'s entities, whatever the database.
#[derive(Debug)]
pub struct OfSqlx;

impl Entities for OfSqlx {
    type Key = Uuid;
    type Of<const KIND: usize, const TABLE: usize> = Numbered<KIND, TABLE>;
}

crate::numbered! {
    /// A row as an entity of the table's type.
    struct Numbered of OfSqlx
}

impl<DB: Engine> GraphWork for UnitOfWork<DB>
where
    Uuid: StoredAs<DB>,
    Binder<DB>: Sink<Uuid> + Sink<Option<Uuid>>,
{
    type Database = DB;

    const PREFIX: &'static str = "";

    fn begin() -> Self {
        Self::new()
    }

    fn add<const KIND: usize, const TABLE: usize>(&mut self, row: Row) {
        self.add(Numbered::<KIND, TABLE>(row));
    }

    fn delete<const KIND: usize, const TABLE: usize>(&mut self, row: Row) {
        self.delete(&Numbered::<KIND, TABLE>(row));
    }

    fn plan(&mut self) -> Result<FlushPlan, Failed> {
        let plan = self.plan();
        plan.map_err(|error| Failed::from(&error))
    }

    async fn flush(&mut self, pool: &Pool<DB>) -> Result<Flushed, Failed> {
        let outcome = self.flush(pool).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}

/// What graphs were seen: a test in which one of these is zero has shown nothing of it.
#[derive(Debug, Default)]
struct Seen {
    flushed: usize,
    refused: usize,
    without_circle: usize,
    with_circle: usize,
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
    fn check(&self, defers: bool) {
        let graphs = self.flushed;
        for seen in [
            self.without_circle,
            self.with_circle,
            self.fixed_up,
            self.unlinked,
        ] {
            assert!(seen >= graphs / 20, "{self:?}");
        }
        if defers {
            assert!(self.deferred >= graphs / 20, "{self:?}");
        } else {
            assert_eq!(self.deferred, 0, "{self:?}");
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
async fn flushed<W: GraphWork>(graphs: usize, mut pool: Option<Pool<W::Database>>) -> Outcome {
    let folder = tempfile::tempdir()?;
    let alone = std::env::var("ORDID_TEST_GRAPH").ok();
    let alone: Option<u64> = alone.map(|number| number.parse()).transpose()?;
    let tables: [_; KINDS] = [
        schema::tables::<W, 0>(),
        schema::tables::<W, 1>(),
        schema::tables::<W, 2>(),
    ];
    let mut seen = Seen::default();
    let mut schema = None;
    for number in alone.unwrap_or(0).. {
        let mut failing = Number {
            number,
            has_passed: false,
        };
        if schema.is_none() || number.is_multiple_of(OF_A_SCHEMA) {
            let drawn = Schema::draw::<W::Database>(number / OF_A_SCHEMA);
            pool = Some(W::Database::create(pool, folder.path(), &drawn).await?);
            schema = Some(drawn);
        }
        if let (Some(pool), Some(schema)) = (&pool, &schema) {
            let graph = Graph::<W> {
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
    eprintln!(
        "{}{}: {seen:?}",
        W::PREFIX,
        <W::Database as sqlx::Database>::NAME
    );
    if alone.is_none() {
        seen.check(<W::Database as ordid_sqlx::Backend>::Dialect::DEFERS);
    }
    Ok(())
}

/// The plan of the same rows in two orders of adding.
fn same_plan<W: GraphWork>(work: &mut W, other: &mut W) -> Result<FlushPlan, Failed> {
    let plan = work.plan()?;
    assert!(
        work.plan()? == plan,
        "the plan differs when it is made again"
    );
    assert!(
        other.plan()? == plan,
        "the plan differs by the order of adding"
    );
    Ok(plan)
}

/// How many rows are planned for an action.
fn count(plan: &FlushPlan, is: fn(&Action) -> bool) -> usize {
    let tables = plan.tables.iter().filter(|it| is(&it.action));
    tables.map(|it| it.rows).sum()
}

/// How many statements a flush sends for each table.
fn statements(
    of: impl IntoIterator<Item = (&'static str, usize)>,
) -> BTreeMap<&'static str, usize> {
    let mut statements = BTreeMap::new();
    for (table, count) in of {
        *statements.entry(table).or_default() += count;
    }
    statements
}

/// Whether it sent what was planned: the rows are too few for a bulk command.
fn is_as_planned(flushed: &Flushed, plan: &FlushPlan) -> bool {
    let planned = plan.tables.iter().map(|it| (it.table, it.statements.len()));
    let sent = flushed.tables.iter().map(|it| (it.table, it.statements));
    statements(planned) == statements(sent)
}

struct Graph<'a, W> {
    schema: &'a Schema,
    tables: &'a [Table<W>; TABLES],
    /// In two orders of adding.
    rows: [Vec<Row>; 2],
}

impl<W: GraphWork> Graph<'_, W> {
    fn work(&self, rows: &[Row]) -> W {
        let mut work = W::begin();
        for row in rows {
            (self.tables[row.table].add)(&mut work, *row);
        }
        work
    }

    fn deletes(&self, rows: &[Row]) -> W {
        let mut work = W::begin();
        for row in rows {
            (self.tables[row.table].delete)(&mut work, *row);
        }
        work
    }

    async fn test(&self, pool: &Pool<W::Database>, seen: &mut Seen) -> Outcome {
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
            assert!(error.is_plan, "{error}");
            assert!(judge.is_circle(&error.message), "{error}");
            let same = other.flush(&closed).await.err().ok_or("or flushed")?;
            assert_eq!(same.message, error.message);
            let same = other.plan().err().ok_or("or planned")?;
            assert_eq!(same.message, error.message);
            seen.refused += 1;
            return Ok(());
        }

        let plan = same_plan(&mut work, &mut other)?;
        let has_circle = judge.has_circle(|_| true);
        seen.with_circle += usize::from(has_circle);
        seen.without_circle += usize::from(!has_circle);
        let fixed_up = count(&plan, |it| matches!(it, Action::FixUp { .. }));
        let defers = plan.defers.is_some();
        assert!(
            has_circle || (fixed_up == 0 && !defers),
            "there is no circle"
        );
        seen.fixed_up += usize::from(fixed_up > 0);
        seen.deferred += usize::from(defers);
        let flushed = work.flush(pool).await?;
        assert_eq!(flushed.rows(), rows.len());
        assert!(is_as_planned(&flushed, &plan), "{flushed:?}, {plan:?}");
        self.check(pool, rows).await?;

        let (mut work, mut other) = (self.deletes(again), self.deletes(rows));
        let plan = same_plan(&mut work, &mut other)?;
        let unlinked = count(&plan, |it| matches!(it, Action::Unlink { .. }));
        seen.unlinked += usize::from(unlinked > 0);
        let flushed = work.flush(pool).await?;
        assert_eq!(flushed.deleted(), rows.len());
        assert!(is_as_planned(&flushed, &plan), "{flushed:?}, {plan:?}");
        self.check(pool, &[]).await?;

        let mut tables: Vec<usize> = rows.iter().map(|row| row.table).collect();
        tables.sort_unstable();
        tables.dedup();
        let own = |row: &&Row| {
            let mut up = self.schema.links[row.table].iter().zip(row.up);
            up.any(|(link, up)| (link.target, up) == (row.table, Some(row.id)))
        };
        seen.flushed += 1;
        seen.rows += rows.len();
        seen.of_themselves += rows.iter().filter(own).count();
        seen.most_tables = seen.most_tables.max(tables.len());
        seen.most_rows = seen.most_rows.max(rows.len());
        Ok(())
    }

    /// Whether these rows are in the database once, beside those that were there before, with the
    /// foreign keys that they were given.
    async fn check(&self, pool: &Pool<W::Database>, rows: &[Row]) -> Outcome {
        let up = UP.join(", ");
        let selects = NAMES
            .iter()
            .enumerate()
            .map(|(table, name)| format!("SELECT {table}, id, {up} FROM {name}"));
        let sql = selects.collect::<Vec<_>>().join(" UNION ALL ");
        let read = W::Database::read(pool, sql).await?;
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
        let dangling = W::Database::dangling(pool).await?;
        assert!(dangling.is_empty(), "{dangling:?}");
        Ok(())
    }
}
