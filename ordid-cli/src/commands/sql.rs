//! `ordid sql`: SQL functions for the time of a key, and the keys of a time.
//!
//! The JSON is a list of functions: `name`, `schema` (or null), `scheme`, `column`, `returns` (`time`, `lowest` or
//! `highest`), `has_bucket`, `create_sql`, `drop_sql`. On SQLite `create_sql` is an expression and `drop_sql` is empty.

use clap::Args;
use ordid_sql::functions::{Engine as FunctionsOf, Functions};
use serde::Serialize;

use crate::{
    engine::Engine,
    failure::{Failure, Outcome},
    output::Output,
};

/// Arguments of `ordid sql`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ordid sql postgres --scheme uuid_v7 --schema app | psql
  ordid sql mysql --scheme ulid --column char26 | mysql shop
  ordid sql sqlite --scheme snowflake

  SELECT ordid_uuid_v7_time(id), * FROM orders
  WHERE id >= ordid_uuid_v7_lowest('2026-11-01Z') AND id < ordid_uuid_v7_lowest('2026-12-01Z')")]
pub(crate) struct Arguments {
    /// The database engine
    engine: Engine,
    /// Only the functions of this scheme; of all that tell a time if it is left out
    #[arg(long, value_name = "SCHEME")]
    scheme: Option<String>,
    /// Only the functions for this column, such as `uuid`, `binary16` or `char26`
    #[arg(long, value_name = "COLUMN")]
    column: Option<String>,
    /// Create them in this schema, which is there (on MySQL and MariaDB, a database)
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    /// Print the statements that drop them
    #[arg(long)]
    drop: bool,
}

/// A function, in JSON.
#[derive(Serialize)]
struct Row<'a> {
    name: String,
    schema: Option<&'a str>,
    scheme: &'static str,
    column: &'static str,
    returns: &'static str,
    has_bucket: bool,
    create_sql: String,
    drop_sql: String,
}

impl Arguments {
    /// Prints the functions.
    ///
    /// # Errors
    ///
    /// There is no such scheme, column or schema, or the output cannot be written.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let mut functions = Functions::new(functions_of(self.engine));
        if let Some(schema) = &self.schema {
            if schema.trim().is_empty() || schema.contains('\0') {
                return Err(Failure::wrong(
                    "--schema is empty, expected the name of a schema",
                ));
            }
            if self.engine == Engine::Sqlite {
                return Err(Failure::wrong(
                    "SQLite has no functions of SQL, so --schema has no meaning: leave it out",
                ));
            }
            functions = functions.in_schema(schema);
        }
        if let Some(scheme) = &self.scheme {
            functions = functions.of_scheme(scheme).map_err(Failure::wrong)?;
        }
        if let Some(column) = &self.column {
            functions = functions.of_column(column).map_err(Failure::wrong)?;
        }
        if output.is_json() {
            let rows = functions.list().into_iter().map(|function| Row {
                name: function.name,
                schema: self.schema.as_deref(),
                scheme: function.scheme,
                column: function.column,
                returns: function.returns.word(),
                has_bucket: function.has_bucket,
                create_sql: function.create_sql,
                drop_sql: function.drop_sql,
            });
            output.json(&rows.collect::<Vec<_>>())?;
        } else if self.drop {
            output.text(&functions.drop_script())?;
        } else {
            output.text(&functions.create_script())?;
        }
        Ok(Outcome::Fine)
    }
}

const fn functions_of(engine: Engine) -> FunctionsOf {
    match engine {
        Engine::Postgres => FunctionsOf::Postgres,
        Engine::Mysql => FunctionsOf::MySql,
        Engine::Mariadb => FunctionsOf::MariaDb,
        Engine::Sqlite => FunctionsOf::Sqlite,
        Engine::SqlServer => FunctionsOf::SqlServer,
        Engine::Oracle => FunctionsOf::Oracle,
    }
}
