//! SQL functions for people who look at tables: the time of a key, and the lowest and the highest key of a time.
//!
//! ```text
//! ordid_uuid_v7_time(id)            the time in the key; NULL if the value is no key of the scheme in this column
//! ordid_uuid_v7_lowest(moment)      the lowest and the highest key of the millisecond that the time is in,
//! ordid_uuid_v7_highest(moment)     for WHERE id >= ordid_uuid_v7_lowest(..) AND id < ordid_uuid_v7_lowest(..)
//! ordid_uuid_v7_time_char26(id)     the same for a column of another form
//! ```
//!
//! They give what the library gives: [`Scheme::timestamp`](ordid_core::Scheme::timestamp) and
//! [`TimeOrdered::bounds_at`](ordid_core::scheme::TimeOrdered::bounds_at). A time that the scheme's layout does not have
//! is an error, as NULL would make a query return no rows. Schemes that spread their keys have a second parameter, the
//! bucket. There is no lowest and highest key in a column that does not keep the scheme's order, as no range of it has
//! the keys of a time.
//!
//! | engine | form | time |
//! |---|---|---|
//! | PostgreSQL 14 and later | SQL functions, `IMMUTABLE PARALLEL SAFE`, which the planner writes into the query: indexes and partitions can use them | `timestamptz` |
//! | MySQL | functions, `DETERMINISTIC NO SQL`; its optimizer does not call them, so a query that is to use the index takes `SET @from = ordid_uuid_v7_lowest(..)` first | `DATETIME` in UTC |
//! | MariaDB | functions, `DETERMINISTIC NO SQL`, which the optimizer calls. Like MySQL, it allows none in an index, a generated column or a partition | `DATETIME` in UTC |
//! | SQLite 3.41 and later | expressions, for views, generated columns and indexes, as it has no functions of SQL | text in UTC |
//! | SQL Server, Oracle | functions; their text was not run here | `datetime2`, `TIMESTAMP` in UTC |
//!
//! # Example
//!
//! ```
//! use ordid_sql::functions::{Engine, Functions};
//!
//! let functions = Functions::new(Engine::Postgres).of_scheme("uuid_v7")?.of_column("uuid")?;
//! let names: Vec<String> = functions.list().into_iter().map(|it| it.name).collect();
//! assert_eq!(names, ["ordid_uuid_v7_time", "ordid_uuid_v7_lowest", "ordid_uuid_v7_highest"]);
//! # Ok::<(), ordid_core::Error>(())
//! ```

use ordid_core::{
    Error,
    clock::Timestamp,
    scheme::catalogue::{self, AnyColumn, Entry, RawForm},
    storage::{Dialect as _, dialect},
};

mod form;
mod mysql;
mod oracle;
mod postgres;
mod shape;
mod sql_server;
mod sqlite;
mod writer;

use form::Form;
use shape::{Bounds, Shape};

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// PostgreSQL 14 or later.
    Postgres,
    /// MySQL.
    MySql,
    /// MariaDB.
    MariaDb,
    /// SQLite.
    Sqlite,
    /// SQL Server.
    SqlServer,
    /// Oracle.
    Oracle,
}

impl Engine {
    /// Returns the vendor's name of it, as the columns of the catalogue have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => dialect::Postgres::NAME,
            Self::MySql => dialect::MySql::NAME,
            Self::MariaDb => dialect::MariaDb::NAME,
            Self::Sqlite => dialect::Sqlite::NAME,
            Self::SqlServer => dialect::SqlServer::NAME,
            Self::Oracle => dialect::Oracle::NAME,
        }
    }

    /// Returns the last moment that the engine's type for times has, in microseconds since 1970.
    fn last_micros(self) -> i128 {
        match self {
            Self::Postgres => i128::from(Timestamp::MAX.as_unix_millis()) * 1_000 + 999,
            // 9999-12-31T23:59:59.999999
            _ => 253_402_300_799_999_999,
        }
    }

    fn quote(self, name: &str) -> String {
        match self {
            Self::Postgres => dialect::Postgres::quote(name),
            Self::MySql | Self::MariaDb => dialect::MySql::quote(name),
            Self::Sqlite => dialect::Sqlite::quote(name),
            Self::SqlServer => dialect::SqlServer::quote(name),
            Self::Oracle => dialect::Oracle::quote(name),
        }
    }
}

/// The result of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Returns {
    /// The time of a key.
    Time,
    /// The lowest key of a time.
    Lowest,
    /// The highest key of a time.
    Highest,
}

impl Returns {
    const ALL: [Self; 3] = [Self::Time, Self::Lowest, Self::Highest];

    /// Returns the word in the function's name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Lowest => "lowest",
            Self::Highest => "highest",
        }
    }
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Function {
    /// Its name, without the schema: `ordid_uuid_v7_time`.
    pub name: String,
    /// The scheme.
    pub scheme: &'static str,
    /// The column that has the key, by the name that users write.
    pub column: &'static str,
    /// The result.
    pub returns: Returns,
    /// Whether its last parameter is a bucket.
    pub has_bucket: bool,
    /// The statement that creates it. On SQLite an expression of the columns `id`, or `moment` and `bucket`.
    pub create_sql: String,
    /// The statement that drops it if it is there. Empty on SQLite.
    pub drop_sql: String,
}

/// The functions of an engine.
#[derive(Debug, Clone)]
pub struct Functions {
    engine: Engine,
    schema: Option<String>,
    /// All of them, if none is named.
    schemes: Vec<&'static Entry>,
    column: Option<&'static str>,
}

impl Functions {
    /// Takes those of all schemes whose keys tell a time, and of all columns of the engine that store them.
    pub const fn new(engine: Engine) -> Self {
        Self {
            engine,
            schema: None,
            schemes: Vec::new(),
            column: None,
        }
    }

    /// Creates them in a schema, or a database of MySQL and MariaDB, which is there.
    #[must_use]
    pub fn in_schema(self, schema: impl Into<String>) -> Self {
        Self {
            schema: Some(schema.into()),
            ..self
        }
    }

    /// Leaves those of this scheme, and of the schemes that were named before.
    ///
    /// # Errors
    ///
    /// If there is no such scheme, its keys tell no time, or they are not stored in the column that was named before: the
    /// error [`is_parse`](Error::is_parse).
    pub fn of_scheme(mut self, name: &str) -> Result<Self, Error> {
        let found = catalogue::find(name).ok_or_else(|| {
            Error::parse(format!(
                "there is no scheme {name:?}; `ordid schemes` lists them"
            ))
        })?;
        if Shape::of(found).is_none() {
            return Err(Error::parse(format!(
                "keys of {} tell no time, so there are no functions for them",
                found.name
            )));
        }
        if columns(self.engine, found).next().is_none() {
            return Err(Error::parse(format!(
                "{} has no column for keys of {}",
                self.engine.name(),
                found.name
            )));
        }
        if self.schemes.iter().all(|known| known.name != found.name) {
            self.schemes.push(found);
        }
        self.check_column()?;
        Ok(self)
    }

    /// Leaves those for one column, by the name that users write: `uuid`.
    ///
    /// # Errors
    ///
    /// If the engine has no such column for these keys, or for those of one of the schemes that are named: the error
    /// [`is_parse`](Error::is_parse), which lists the columns.
    pub fn of_column(self, name: &str) -> Result<Self, Error> {
        let mut names: Vec<&'static str> = self.parts().map(|(_, column, _)| column.name).collect();
        names.sort_unstable();
        names.dedup();
        let Some(found) = names.iter().find(|it| **it == name) else {
            return Err(Error::parse(format!(
                "{} has no column {name:?} for these keys; it has {}",
                self.engine.name(),
                names.join(", ")
            )));
        };
        let functions = Self {
            column: Some(found),
            ..self
        };
        functions.check_column()?;
        Ok(functions)
    }

    /// Refuses a column that one of the schemes is not stored in: its functions would be missing.
    fn check_column(&self) -> Result<(), Error> {
        let Some(name) = self.column else {
            return Ok(());
        };
        for scheme in &self.schemes {
            let has = columns(self.engine, scheme).map(|column| column.name);
            let has: Vec<&str> = has.collect();
            if !has.contains(&name) {
                return Err(Error::parse(format!(
                    "{} has no column {name:?} for keys of {}; it has {}",
                    self.engine.name(),
                    scheme.name,
                    has.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// Returns the schemes and columns, and whether the column is the scheme's native one.
    fn parts(&self) -> impl Iterator<Item = (Shape, AnyColumn, bool)> + '_ {
        let shapes = Shape::all().filter(|shape| {
            let is_this = |scheme: &&Entry| scheme.name == shape.entry.name;
            self.schemes.is_empty() || self.schemes.iter().any(is_this)
        });
        let parts = shapes.flat_map(|shape| {
            let columns = columns(self.engine, shape.entry).enumerate();
            columns
                .map(|(number, column)| (shape.clone(), column, number == 0))
                .collect::<Vec<_>>()
        });
        parts.filter(|(_, column, _)| self.column.is_none_or(|name| name == column.name))
    }

    /// Returns the functions.
    pub fn list(&self) -> Vec<Function> {
        let mut list = Vec::new();
        for (shape, column, is_native) in self.parts() {
            let form = Form::of(&column, &shape);
            for returns in Returns::ALL {
                let bounds = match (returns, &shape.bounds) {
                    (Returns::Time, _) => None,
                    (_, Some(bounds)) if column.keeps_order_of(shape.entry) => Some(bounds),
                    _ => continue,
                };
                let scheme = shape.entry.name;
                let mut name = format!("ordid_{scheme}_{}", returns.word());
                if !is_native {
                    name = format!("{name}_{}", column.name);
                }
                let qualified = match &self.schema {
                    Some(schema) => format!("{}.{name}", self.engine.quote(schema)),
                    None => name.clone(),
                };
                let one = One {
                    engine: self.engine,
                    name: &qualified,
                    shape: &shape,
                    column: &column,
                    form: &form,
                    bounds: bounds.map(|bounds| (bounds, returns == Returns::Highest)),
                };
                let (create_sql, drop_sql) = one.write();
                list.push(Function {
                    name,
                    scheme,
                    column: column.name,
                    returns,
                    has_bucket: bounds.is_some() && shape.bucket.is_some(),
                    create_sql,
                    drop_sql,
                });
            }
        }
        list
    }

    /// Returns a script with all of them, for the engine's own command line. It says what it is in comments.
    pub fn create_script(&self) -> String {
        let mut script = self.header();
        for function in self.list() {
            let Function {
                name,
                scheme,
                column,
                create_sql,
                drop_sql,
                ..
            } = function;
            script.push_str(&match self.engine {
                Engine::Postgres => format!("{create_sql};\n\n"),
                Engine::MySql | Engine::MariaDb => {
                    format!("DELIMITER ;\n{drop_sql};\nDELIMITER //\n{create_sql}//\n\n")
                }
                Engine::Sqlite => {
                    format!("-- {name}, of {scheme} in a column {column}\n{create_sql}\n\n")
                }
                Engine::SqlServer => format!("{create_sql};\nGO\n\n"),
                Engine::Oracle => format!("{create_sql}\n/\n\n"),
            });
        }
        if matches!(self.engine, Engine::MySql | Engine::MariaDb) {
            script.push_str("DELIMITER ;\n");
        }
        script
    }

    /// Returns a script that drops them.
    pub fn drop_script(&self) -> String {
        if self.engine == Engine::Sqlite {
            return "-- SQLite has no functions of SQL, so there is nothing to drop.\n".to_owned();
        }
        let drops = self.list().into_iter().map(|function| {
            let end = match self.engine {
                Engine::Oracle => "\n/\n",
                _ => ";\n",
            };
            function.drop_sql + end
        });
        drops.collect()
    }

    fn header(&self) -> String {
        let text: &[&str] = match self.engine {
            Engine::Postgres => &[
                "SQL functions for keys, for PostgreSQL 14 or later. They are immutable, so that indexes, partitions and",
                "partition pruning can use them; the planner writes them into the query.",
            ],
            Engine::MySql => &[
                "Functions for keys. Times are DATETIME in UTC, whatever the time zone of the session.",
                "MySQL's optimizer does not call a function, so set a variable first for a query that is to use the index:",
                "  SET @from = ordid_uuid_v7_lowest('2026-11-01'); SELECT .. WHERE id >= @from;",
                "They are deterministic, but MySQL allows none in an index, a generated column or a partition: there, write the",
                "expression. With a binary log, creating them needs log_bin_trust_function_creators = 1 or the right to set it.",
            ],
            Engine::MariaDb => &[
                "Functions for keys. Times are DATETIME in UTC, whatever the time zone of the session.",
                "They are deterministic: the optimizer calls them, and uses the index. MariaDB allows none in an index, a",
                "generated column or a partition: there, write the expression. With a binary log, creating them needs",
                "log_bin_trust_function_creators = 1 or the right to set it.",
            ],
            Engine::Sqlite => &[
                "Expressions for keys, for SQLite 3.41 or later, which has no functions of SQL. `id` is the column of the key:",
                "  CREATE VIEW events_with_time AS SELECT *, <expression> AS time FROM events;",
                "  ALTER TABLE events ADD COLUMN time TEXT AS (<expression>) VIRTUAL; CREATE INDEX events_time ON events (time);",
                "`moment` is a time in UTC, as a text of SQLite or a parameter. One that the scheme's layout does not have is the",
                "error \"integer overflow\".",
            ],
            Engine::SqlServer => &[
                "Functions for keys, as text: they have not been run on SQL Server. Times are datetime2 in UTC. They are",
                "deterministic (SCHEMABINDING).",
            ],
            Engine::Oracle => &[
                "Functions for keys, as text: they have not been run on Oracle. Times are TIMESTAMP in UTC.",
            ],
        };
        let mut header: String = text.iter().map(|line| format!("-- {line}\n")).collect();
        header.push_str("-- Made by ordid; a key of another scheme has no time (NULL).\n\n");
        header
    }
}

/// Returns the engine's columns for a scheme's keys, the native one first: a type for them alone, then bytes, then text.
fn columns(engine: Engine, entry: &'static Entry) -> impl Iterator<Item = AnyColumn> {
    let native = match (engine, entry.raw()) {
        (Engine::Postgres, RawForm::Bytes16) => "uuid",
        (Engine::SqlServer, RawForm::Bytes16) => "unique_identifier",
        (Engine::Postgres | Engine::MySql | Engine::MariaDb | Engine::Sqlite, RawForm::Bytes15) => {
            "char20"
        }
        (Engine::MySql | Engine::MariaDb, RawForm::Bytes16) => "binary16",
        (Engine::Oracle, RawForm::Bytes16) => "raw16",
        _ => "",
    };
    let mut columns = entry.columns();
    columns.retain(|column| column.dialect == engine.name());
    columns.sort_by_key(|column| column.name != native);
    columns.into_iter()
}

/// One function that is to be written.
struct One<'a> {
    engine: Engine,
    name: &'a str,
    shape: &'a Shape,
    column: &'a AnyColumn,
    form: &'a Form,
    /// What the keys have besides the time, and whether the highest is wanted; none for the time of a key.
    bounds: Option<(&'a Bounds, bool)>,
}

impl One<'_> {
    /// Returns the statements that create it and drop it.
    fn write(&self) -> (String, String) {
        match self.engine {
            Engine::Postgres => postgres::write(self),
            Engine::MySql | Engine::MariaDb => mysql::write(self),
            Engine::Sqlite => (sqlite::write(self), String::new()),
            Engine::SqlServer => sql_server::write(self),
            Engine::Oracle => oracle::write(self),
        }
    }

    /// Returns the highest ticks whose time the engine has, if the scheme has higher ones.
    fn last_ticks(&self) -> Option<u64> {
        let (ticks, millis) = self.shape.ratio();
        let since = self.engine.last_micros() - self.epoch_micros();
        // The last tick that begins before the next microsecond.
        let end = (since + 1) * i128::from(ticks) - 1;
        let last = end / (1_000 * i128::from(millis));
        let last = u64::try_from(last).unwrap_or(u64::MAX);
        (last < self.shape.last_ticks()).then_some(last)
    }

    /// Returns the ticks' epoch in microseconds since 1970.
    fn epoch_micros(&self) -> i128 {
        i128::from(self.shape.scale.epoch_unix_millis()) * 1_000
    }

    /// Returns the ticks of a time, as `(millis + epoch) * ticks / millis + rest`, by its milliseconds.
    fn ticks_of(&self, writer: &dyn writer::Writer, millis: &str, is_highest: bool) -> String {
        let (ticks, steps) = self.shape.ratio();
        let since = match self.shape.scale.epoch_unix_millis() {
            0 => millis.to_owned(),
            epoch if epoch < 0 => format!("({millis} + {})", writer.integer(epoch.unsigned_abs())),
            epoch => format!("({millis} - {})", writer.integer(epoch.unsigned_abs())),
        };
        let times = match ticks {
            1 => since,
            ticks => format!("({since} * {ticks})"),
        };
        let whole = match steps {
            1 => times,
            steps => writer.quotient(&times, steps),
        };
        match is_highest && steps == 1 && ticks > 1 {
            true => format!("({whole} + {})", ticks - 1),
            false => whole,
        }
    }

    /// Returns what is wrong with a time that the layout does not have.
    fn refusal(&self, bounds: &Bounds) -> String {
        format!(
            "the time does not fit {}: {} to {}",
            self.shape.entry.name, bounds.first, bounds.last
        )
    }

    /// Whether the time has parts of a millisecond.
    fn is_fine(&self) -> bool {
        self.shape.ratio().0 > 1
    }
}

#[cfg(test)]
mod tests;
