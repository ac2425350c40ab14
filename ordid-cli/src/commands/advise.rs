//! `ordid advise`: which scheme, column and DDL for an engine, and why.
//!
//! JSON, one document: `engine`, `machines`, `library`, `public`, `bits`, `scheme`, `column`, `sql_type`, `unknown_bits`,
//! `derive`, `ddl` (a list of statements), `statements` (a list of `text` and `source`).

use clap::{Args, ValueEnum};
use ordid_core::{
    KeyType,
    key::Generated,
    scheme::{
        SnowflakeSpread, UuidV7Spread,
        catalogue::{self, AnyColumn, Entry},
    },
    storage::{
        ColumnOn, Stores,
        column::{BigInt, Binary16, Uuid as UuidColumn},
        dialect::{MySql, Postgres},
    },
};
use ordid_sql::EngineProfile;
use serde::Serialize;

use crate::{
    engine::Engine,
    failure::{Failure, Outcome},
    output::{Output, Style},
    scheme::ordered_column,
};

mod facts;

use facts::{Fact, facts};

/// The table of the examples.
const TABLE: &str = "orders";

/// An engine, on one machine or on many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Target {
    /// PostgreSQL
    #[value(alias = "postgresql")]
    Postgres,
    /// MySQL
    Mysql,
    /// MariaDB
    Mariadb,
    /// SQLite
    Sqlite,
    /// SQL Server
    #[value(alias = "mssql")]
    SqlServer,
    /// Oracle
    Oracle,
    /// CockroachDB
    #[value(alias = "cockroach")]
    Cockroachdb,
    /// YugabyteDB
    #[value(alias = "yugabyte")]
    Yugabytedb,
    /// TiDB
    Tidb,
    /// Citus
    Citus,
    /// Vitess, PlanetScale
    Vitess,
    /// Aurora DSQL
    Dsql,
    /// Galera
    Galera,
}

impl Target {
    /// Returns the engine whose columns it has.
    const fn engine(self) -> Engine {
        match self {
            Self::Postgres | Self::Cockroachdb | Self::Yugabytedb | Self::Citus | Self::Dsql => {
                Engine::Postgres
            }
            Self::Mysql | Self::Tidb | Self::Vitess => Engine::Mysql,
            Self::Mariadb | Self::Galera => Engine::Mariadb,
            Self::Sqlite => Engine::Sqlite,
            Self::SqlServer => Engine::SqlServer,
            Self::Oracle => Engine::Oracle,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Cockroachdb => "CockroachDB",
            Self::Yugabytedb => "YugabyteDB",
            Self::Tidb => "TiDB",
            Self::Citus => "Citus",
            Self::Vitess => "Vitess",
            Self::Dsql => "Aurora DSQL",
            Self::Galera => "Galera",
            _ => self.engine().name(),
        }
    }

    /// Whether it cuts tables into ranges of the key, over many machines.
    const fn has_ranges(self) -> bool {
        matches!(
            self,
            Self::Cockroachdb | Self::Yugabytedb | Self::Tidb | Self::Dsql
        )
    }
}

/// How many machines make keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Machines {
    /// One process
    One,
    /// Several processes or machines
    Many,
}

/// A library that ordid has an adapter for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Library {
    /// SQLx
    Sqlx,
    /// Diesel
    Diesel,
    /// SeaORM
    #[value(aliases = ["seaorm", "sea_orm"])]
    SeaOrm,
    /// tokio-postgres
    #[value(alias = "tokio_postgres")]
    TokioPostgres,
    /// mysql_async
    #[value(alias = "mysql_async")]
    MysqlAsync,
    /// rusqlite
    Rusqlite,
    /// Tiberius
    Tiberius,
    /// The crate oracle
    Oracle,
}

impl Library {
    /// Returns the one to take where the user names none.
    const fn of(engine: Engine) -> Self {
        match engine {
            Engine::SqlServer => Self::Tiberius,
            Engine::Oracle => Self::Oracle,
            _ => Self::Sqlx,
        }
    }

    /// Returns the word in `#[ordid(..)]`.
    const fn word(self) -> &'static str {
        match self {
            Self::Sqlx => "sqlx",
            Self::Diesel => "diesel",
            Self::SeaOrm => "sea_orm",
            Self::TokioPostgres => "tokio_postgres",
            Self::MysqlAsync => "mysql_async",
            Self::Rusqlite => "rusqlite",
            Self::Tiberius => "tiberius",
            Self::Oracle => "oracle",
        }
    }

    /// Whether it speaks to the engine.
    const fn speaks_to(self, engine: Engine) -> bool {
        match self {
            Self::Sqlx | Self::Diesel | Self::SeaOrm => {
                !matches!(engine, Engine::SqlServer | Engine::Oracle)
            }
            Self::TokioPostgres => matches!(engine, Engine::Postgres),
            Self::MysqlAsync => matches!(engine, Engine::Mysql | Engine::Mariadb),
            Self::Rusqlite => matches!(engine, Engine::Sqlite),
            Self::Tiberius => matches!(engine, Engine::SqlServer),
            Self::Oracle => matches!(engine, Engine::Oracle),
        }
    }

    /// Returns the option of a key type's derive.
    fn option(self, engine: Engine, column: &str) -> String {
        let engine = match engine {
            Engine::Postgres => "postgres",
            Engine::Mysql | Engine::Mariadb => "mysql",
            Engine::Sqlite => "sqlite",
            Engine::SqlServer => "sql_server",
            Engine::Oracle => "oracle",
        };
        match self {
            // A key type has one column for all engines there.
            Self::SeaOrm => format!("{}({column})", self.word()),
            _ => format!("{}({engine} = {column})", self.word()),
        }
    }
}

/// Arguments of `ordid advise`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The database engine
    engine: Target,
    /// How many machines make keys
    #[arg(long, default_value = "many")]
    machines: Machines,
    /// The library that the program uses
    #[arg(long)]
    library: Option<Library>,
    /// People outside see the keys, in URLs for example
    #[arg(long)]
    public: bool,
    /// Keys of 64 bits
    #[arg(long = "64-bit")]
    bits_64: bool,
}

/// The answer.
#[derive(Serialize)]
struct Advice {
    engine: Target,
    machines: Machines,
    library: Library,
    public: bool,
    bits: u8,
    scheme: &'static str,
    column: &'static str,
    sql_type: &'static str,
    unknown_bits: u32,
    derive: String,
    ddl: Vec<String>,
    statements: Vec<Fact>,
}

/// The question: an engine and what its user needs.
#[derive(Debug, Clone, Copy)]
struct Question {
    server: Target,
    machines: Machines,
    is_public: bool,
    is_64: bool,
}

impl Question {
    /// Returns the name of the scheme.
    const fn scheme(self) -> &'static str {
        match (self.is_64, self.server.has_ranges(), self.server.engine()) {
            (true, true, _) => "snowflake_spread",
            (true, false, _) => "snowflake",
            (false, true, _) => "uuid_v7_spread",
            // It rises in `uniqueidentifier` for every program that reads it.
            (false, _, Engine::SqlServer) => "uuid_v8_sql_server",
            (false, ..) if self.is_public => "uuid_v7_unguessable",
            _ => "uuid_v7",
        }
    }
}

impl Arguments {
    /// Prints the advice.
    ///
    /// # Errors
    ///
    /// The library does not speak to the engine, or the output cannot be written.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let engine = self.engine.engine();
        let library = self.library.unwrap_or_else(|| Library::of(engine));
        if !library.speaks_to(engine) {
            return Err(Failure::wrong(format_args!(
                "ordid's adapter `{}` does not speak to {}: leave --library out, or name another",
                library.word(),
                self.engine.name()
            )));
        }
        let question = Question {
            server: self.engine,
            machines: self.machines,
            is_public: self.public,
            is_64: self.bits_64,
        };
        let advice = advise(question, library)?;
        match output.is_json() {
            true => output.json(&advice)?,
            false => advice.write(output)?,
        }
        Ok(Outcome::Fine)
    }
}

fn advise(question: Question, library: Library) -> Result<Advice, Failure> {
    let engine = question.server.engine();
    let scheme = catalogue::find(question.scheme()).expect("a scheme of the catalogue");
    let column = ordered_column(scheme, engine, None)?;
    Ok(Advice {
        engine: question.server,
        machines: question.machines,
        library,
        public: question.is_public,
        bits: if question.is_64 { 64 } else { 128 },
        scheme: scheme.name,
        column: column.name,
        sql_type: column.sql_type,
        unknown_bits: scheme.unknown_bits,
        derive: derive(scheme, engine, library, &column),
        ddl: ddl(question.server, &column),
        statements: facts(question, scheme, &column),
    })
}

/// Returns the line above a key type.
fn derive(scheme: &Entry, engine: Engine, library: Library, column: &AnyColumn) -> String {
    let word = match scheme.name {
        "uuid_v7_spread" | "snowflake_spread" => format!("{}(buckets = 16)", scheme.name),
        name => name.to_owned(),
    };
    format!(
        "#[ordid(scheme = {word}, {})]",
        library.option(engine, column.name)
    )
}

/// Returns the statements that make a table.
fn ddl(server: Target, column: &AnyColumn) -> Vec<String> {
    let engine = server.engine();
    let quote = |name: &str| column.quote(name);
    let table = quote(TABLE);
    let key = column.primary_key("id");
    let not_key = key.replace(" PRIMARY KEY", "");
    let (id, tenant) = (quote("id"), quote("tenant_id"));
    let lines = |lines: &[String], end: &str| {
        format!(
            "CREATE TABLE {table} (\n    {}\n){end}",
            lines.join(",\n    ")
        )
    };
    let splits = |profile: EngineProfile| match column.name {
        "bigint" => split::<SpreadInteger, BigInt>(engine, &profile),
        "binary16" => profile.split_by_bucket::<SpreadUuid, Binary16, MySql>(TABLE),
        _ => profile.split_by_bucket::<SpreadUuid, UuidColumn, Postgres>(TABLE),
    };
    match server {
        Target::Sqlite if column.name == "blob" => vec![lines(&[key], " WITHOUT ROWID")],
        Target::Cockroachdb => {
            let mut all = vec![lines(&[key], "")];
            all.extend(splits(EngineProfile::COCKROACHDB));
            all
        }
        Target::Yugabytedb => {
            let end =
                splits(EngineProfile::YUGABYTEDB).map_or_else(String::new, |end| format!(" {end}"));
            vec![lines(&[not_key, format!("PRIMARY KEY ({id} ASC)")], &end)]
        }
        Target::Tidb => {
            let mut all = vec![lines(
                &[
                    not_key,
                    format!("PRIMARY KEY ({id}) /*T![clustered_index] CLUSTERED */"),
                ],
                "",
            )];
            all.extend(splits(EngineProfile::TIDB));
            all
        }
        Target::Citus => {
            // The tenant has a key of the same kind.
            let tenant_column = not_key.replace(&id, &tenant);
            let key = format!("PRIMARY KEY ({tenant}, {id})");
            vec![
                lines(&[tenant_column, not_key, key], ""),
                format!("SELECT create_distributed_table('{TABLE}', 'tenant_id')"),
            ]
        }
        Target::Vitess => {
            let tenant_column = not_key.replace(&id, &tenant);
            let key = format!("PRIMARY KEY ({tenant}, {id})");
            vec![
                lines(&[tenant_column, not_key, key], ""),
                format!("ALTER VSCHEMA ON {TABLE} ADD VINDEX xxhash({tenant}) USING xxhash"),
            ]
        }
        _ => vec![lines(&[key], "")],
    }
}

/// Returns the statement that gives each bucket of integers a range.
fn split<K, C>(engine: Engine, profile: &EngineProfile) -> Option<String>
where
    K: ordid_core::scheme::SpreadKey,
    C: ColumnOn<Postgres> + ColumnOn<MySql> + Stores<K::Raw>,
{
    match engine {
        Engine::Postgres => profile.split_by_bucket::<K, C, Postgres>(TABLE),
        _ => profile.split_by_bucket::<K, C, MySql>(TABLE),
    }
}

/// A key type of a scheme that spreads keys, of which the library tells where its buckets begin.
macro_rules! spread_key {
    ($name:ident, $raw:ty, $scheme:ty) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        struct $name($raw);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl KeyType for $name {
            type Raw = $raw;
            type Scheme = $scheme;

            const NAME: &'static str = stringify!($name);
            const PREFIX: Option<&'static str> = None;

            fn from_generated(key: Generated<Self::Scheme>) -> Self {
                Self(key.into_raw())
            }

            fn to_raw(self) -> $raw {
                self.0
            }

            fn from_raw(raw: $raw) -> Result<Self, ordid_core::Error> {
                Generated::check(raw, Self::NAME).map(Self::from_generated)
            }
        }
    };
}

spread_key!(SpreadUuid, uuid::Uuid, UuidV7Spread<16>);
spread_key!(SpreadInteger, i64, SnowflakeSpread<16>);

impl Advice {
    fn write(&self, output: &mut Output) -> Result<(), Failure> {
        let raw = if self.bits == 64 { "i64" } else { "Uuid" };
        let heading = format!(
            "{}: {} in a column {}",
            self.engine.name(),
            self.scheme,
            self.column
        );
        output.line(&output.paint(Style::Bold, &heading))?;
        output.line("")?;
        for line in [
            "#[derive(KeyType)]",
            &self.derive,
            &format!("struct OrderId({raw});"),
        ] {
            output.line(&format!("    {line}"))?;
        }
        output.line("")?;
        for statement in &self.ddl {
            for line in format!("{statement};").lines() {
                output.line(&format!("    {line}"))?;
            }
        }
        output.line("")?;
        for Fact { text, source } in &self.statements {
            output.line(&format!("- {text}"))?;
            let source = format!("  {source}");
            output.line(&output.paint(Style::Dim, &source))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
