//! `ordid partition`: range partitions of a table of PostgreSQL by the time in its key.
//!
//! JSON, one document: `schema`, `table`, `key`, `scheme`, `column`, `by`, `partitions` (those that were there), `create`,
//! `detach`, `applied`. A partition has `schema`, `name`, `from` and `to` (RFC 3339; null if open), and `sql` where it is
//! created or detached.

use clap::{Args, ValueEnum};
use ordid_core::clock::{Clock as _, SystemClock};
use ordid_sql::partitions::{AnyPartitions, Partition, Period};
use serde::Serialize;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::{
    database::{Access, Database},
    failure::{Failure, Outcome},
    interrupt::{self, Interrupt},
    output::{Output, Style},
    scheme::Named,
};

mod found;

use found::Table;

/// How long a partition covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum By {
    /// From midnight to midnight
    Day,
    /// From Monday to Monday
    Week,
    /// From the first day of a month on
    Month,
    /// From the first day of a year on
    Year,
}

impl By {
    const fn period(self) -> Period {
        match self {
            Self::Day => Period::Day,
            Self::Week => Period::Week,
            Self::Month => Period::Month,
            Self::Year => Period::Year,
        }
    }
}

/// Arguments of `ordid partition`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --apply it changes nothing and prints the statements, for psql. Exit codes: 0 nothing is to be done, or all of it \
was done; 1 there is something to do; 2 wrong use; 3 it could not be done.

Partitions are detached, never dropped: they are tables of their own afterwards.")]
pub(crate) struct Arguments {
    /// The database: postgres://..
    #[arg(env = "DATABASE_URL", hide_env_values = true)]
    url: String,
    /// The table, with its schema where it is not on the search path: `app.orders`
    #[arg(long, value_name = "TABLE")]
    table: String,
    /// How long a partition covers, in UTC
    #[arg(long, value_name = "PERIOD", default_value = "month")]
    by: By,
    /// How many partitions after the current one there have to be
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=1000))]
    ahead: u32,
    /// Detach all but this many of the periods that are over
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    keep: Option<u32>,
    /// The scheme of the keys; without it the rows tell it
    #[arg(long, hide_possible_values = true)]
    scheme: Option<Named>,
    /// Do it
    #[arg(long)]
    apply: bool,
    /// How long a statement waits for a lock, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    lock_timeout: u32,
}

/// A partition, in JSON.
#[derive(Serialize)]
struct Row {
    schema: String,
    name: String,
    from: Option<String>,
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sql: Option<String>,
}

impl Row {
    fn new(partition: &Partition, sql: Option<String>) -> Self {
        Self {
            schema: partition.schema.clone(),
            name: partition.name.clone(),
            from: partition.from.map(|time| time.to_string()),
            to: partition.to.map(|time| time.to_string()),
            sql,
        }
    }

    fn span(&self) -> String {
        let day = |time: &Option<String>, open| match time {
            Some(time) => time
                .strip_suffix("T00:00:00.000Z")
                .unwrap_or(time)
                .to_owned(),
            None => String::from(open),
        };
        let (from, to) = (day(&self.from, "the beginning"), day(&self.to, "the end"));
        format!("{from} to {to}")
    }
}

/// The answer, in JSON.
#[derive(Serialize)]
struct Answer {
    schema: String,
    table: String,
    key: String,
    scheme: &'static str,
    column: &'static str,
    by: By,
    partitions: Vec<Row>,
    create: Vec<Row>,
    detach: Vec<Row>,
    applied: bool,
}

impl Arguments {
    /// Prints or does what is to be done.
    ///
    /// # Errors
    ///
    /// The table is none, or not partitioned by its key; its keys are not ordered by time; the database refuses.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let is_applied = self.apply;
        let answer = interrupt::run(|interrupt| async move { self.work(&interrupt).await })?;
        let has_work = !answer.create.is_empty() || !answer.detach.is_empty();
        if output.is_json() {
            output.json(&answer)?;
        } else {
            answer.write(output)?;
        }
        Ok(match has_work && !is_applied {
            true => Outcome::Findings,
            false => Outcome::Fine,
        })
    }

    async fn work(&self, interrupt: &Interrupt) -> Result<Answer, Failure> {
        let access = match self.apply {
            true => Access::Write,
            false => Access::Read,
        };
        let database = Database::connect(&self.url, access).await?;
        let Database::Postgres(pool) = database else {
            return Err(Failure::wrong(format_args!(
                "partitions by the time in the key are PostgreSQL's, and this is {}",
                database.engine()
            )));
        };
        let mut connection = pool.acquire().await?;
        let timeout = format!("SET lock_timeout = '{}s'", self.lock_timeout);
        execute(&mut connection, &timeout).await?;
        let table = Table::find(&mut connection, &self.table).await?;
        let scheme = self.scheme.map(|Named(entry)| entry);
        let now = SystemClock.now();
        let (scheme, column) = table
            .scheme_and_column(&mut connection, scheme, now)
            .await?;
        let partitions = AnyPartitions::new(
            &table.schema,
            &table.name,
            &table.key,
            scheme,
            column,
            self.by.period(),
        )
        .map_err(Failure::wrong)?;
        if !table.is_partitioned {
            // The statements may run over the end of this period, and new keys have to stay below the bound.
            let (_, next) = self.by.period().around(now);
            let bound = partitions.end_sql(next).map_err(Failure::wrong)?;
            return Err(table.first_partition(&partitions.partition_by_sql(), &bound));
        }
        let there = list(&mut connection, &partitions).await?;
        let missing = partitions
            .missing(&there, now, self.ahead)
            .map_err(Failure::wrong)?;
        let create = missing
            .iter()
            .map(|(it, sql)| Row::new(it, Some(sql.clone())));
        let old = self.keep.map(|keep| partitions.old(&there, now, keep));
        let is_concurrent = table.can_detach_concurrently();
        let detach = old.unwrap_or_default().into_iter().map(|it| {
            let sql = partitions.detach_sql(it, is_concurrent);
            Row::new(it, Some(sql))
        });
        let pending = table.pending.iter().map(|(schema, name)| Row {
            schema: schema.clone(),
            name: name.clone(),
            from: None,
            to: None,
            sql: Some(table.finalize_sql(schema, name)),
        });
        let answer = Answer {
            create: create.collect(),
            detach: pending.chain(detach).collect(),
            partitions: there.iter().map(|it| Row::new(it, None)).collect(),
            scheme: scheme.name,
            column: column.name,
            by: self.by,
            applied: self.apply,
            schema: table.schema.clone(),
            table: table.name.clone(),
            key: table.key.clone(),
        };
        if self.apply {
            self.apply(&mut connection, &answer, interrupt).await?;
            let there = list(&mut connection, &partitions).await?;
            let left = partitions.missing(&there, now, self.ahead);
            if let Some((partition, _)) = left.map_err(Failure::wrong)?.first() {
                return Err(Failure::could_not(format_args!(
                    "there is a table {}.{} that is not the partition of this name: rename it",
                    partition.schema, partition.name
                )));
            }
        }
        Ok(answer)
    }

    /// Does it, statement by statement: each is a transaction, or cannot be in one.
    async fn apply(
        &self,
        connection: &mut PgConnection,
        answer: &Answer,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let all = answer.create.iter().chain(&answer.detach);
        let count = answer.create.len() + answer.detach.len();
        for (done, row) in all.enumerate() {
            if interrupt.is_set() {
                return Err(Failure::could_not(format_args!(
                    "interrupted: {done} of {count} statements are done, and another run does the rest"
                )));
            }
            let sql = row.sql.as_deref().unwrap_or_default();
            execute(connection, sql).await.map_err(|failure| match failure {
                Failure::CouldNot(message) => Failure::could_not(format_args!(
                    "{}.{}: {message}; {done} of {count} statements are done, and another run does the rest",
                    row.schema, row.name
                )),
                other => other,
            })?;
        }
        Ok(())
    }
}

async fn execute(connection: &mut PgConnection, sql: &str) -> Result<(), Failure> {
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await?;
    Ok(())
}

async fn list(
    connection: &mut PgConnection,
    partitions: &AnyPartitions,
) -> Result<Vec<Partition>, Failure> {
    let rows = sqlx::query_scalar(AssertSqlSafe(partitions.list_sql()));
    let rows: Vec<String> = rows.fetch_all(connection).await?;
    partitions.read(&rows).map_err(Failure::could_not)
}

impl Answer {
    fn write(&self, output: &mut Output) -> Result<(), Failure> {
        let Self {
            schema,
            table,
            scheme,
            column,
            ..
        } = self;
        let by = match self.by {
            By::Day => "day",
            By::Week => "week",
            By::Month => "month",
            By::Year => "year",
        };
        let heading = format!(
            "-- {schema}.{table}: {scheme} keys in a column {column}, by {by}; {} partitions are there",
            self.partitions.len()
        );
        output.line(&output.paint(Style::Bold, &heading))?;
        for (verb, done, rows) in [
            ("create", "created", &self.create),
            ("detach", "detached", &self.detach),
        ] {
            for row in rows {
                let Row { schema, name, .. } = row;
                let verb = if self.applied { done } else { verb };
                output.line(&format!("-- {verb} {schema}.{name}, {}", row.span()))?;
                if let (Some(sql), false) = (&row.sql, self.applied) {
                    output.line(&format!("{sql};"))?;
                }
            }
        }
        let (create, detach) = (self.create.len(), self.detach.len());
        let end = match (create + detach, self.applied) {
            (0, _) => "-- nothing is to be done".to_owned(),
            (_, true) => format!("-- created {create}, detached {detach}"),
            (_, false) => format!("-- {create} to create, {detach} to detach; --apply does it"),
        };
        output.line(&output.paint(Style::Dim, &end))
    }
}
