//! `ordid sql`: SQL functions for the time of a key, and the keys of a time.
//!
//! Without `--scheme` and `--all` the text lists the schemes that have functions. The JSON is always a list of functions,
//! of all schemes if none is named: `name`, `schema` (or null), `scheme`, `column`, `returns` (`time`, `lowest` or
//! `highest`), `has_bucket`, `create_sql`, `drop_sql`. On SQLite `create_sql` is an expression and `drop_sql` is empty.

use clap::{Args, ValueEnum as _};
use ordid_sql::functions::{Engine as FunctionsOf, Functions};
use serde::Serialize;

use crate::{
    engine::Engine,
    failure::{Failure, Outcome},
    output::{Output, shell_word},
    scheme::{Known, Named, column_names},
};

/// Arguments of `ordid sql`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ordid sql postgres                                      which schemes have functions
  ordid sql postgres --scheme uuid_v7 --schema app | psql
  ordid sql mysql --scheme ulid --column char26 | mysql shop
  ordid sql sqlite --scheme snowflake

  SELECT ordid_uuid_v7_time(id), * FROM orders
  WHERE id >= ordid_uuid_v7_lowest('2026-11-01Z') AND id < ordid_uuid_v7_lowest('2026-12-01Z')")]
pub(crate) struct Arguments {
    /// The database engine
    engine: Engine,
    /// The scheme of the functions; may be repeated. Without it, and without --all, the schemes are listed
    #[arg(long, value_name = "SCHEME", hide_possible_values = true)]
    scheme: Vec<Named>,
    /// Print the functions of all schemes whose keys tell a time
    #[arg(long, conflicts_with = "scheme")]
    all: bool,
    /// Only the functions for this column, such as `uuid`, `binary16` or `char26`
    #[arg(long, value_name = "COLUMN", value_parser = Known(column_names), hide_possible_values = true)]
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
            if schema.contains("://") {
                return Err(Failure::wrong(
                    "--schema has a URL, expected the name of a schema",
                ));
            }
            if self.engine == Engine::Sqlite {
                return Err(Failure::wrong(
                    "SQLite has no functions of SQL, so --schema has no meaning: leave it out",
                ));
            }
            functions = functions.in_schema(schema);
        }
        for scheme in &self.scheme {
            functions = functions.of_scheme(scheme.0.name).map_err(Failure::wrong)?;
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
        } else if self.scheme.is_empty() && !self.all {
            output.text(&self.schemes(&functions))?;
        } else if self.drop {
            output.text(&functions.drop_script())?;
        } else {
            output.text(&functions.create_script())?;
        }
        Ok(Outcome::Fine)
    }

    /// Lists the schemes that have functions, each with the columns. All of it is comments, so that nothing happens if
    /// the output goes to the engine.
    fn schemes(&self, functions: &Functions) -> String {
        let mut schemes: Vec<(&str, Vec<&str>)> = Vec::new();
        for function in functions.list() {
            match schemes.last_mut() {
                Some((scheme, columns)) if *scheme == function.scheme => {
                    if !columns.contains(&function.column) {
                        columns.push(function.column);
                    }
                }
                _ => schemes.push((function.scheme, vec![function.column])),
            }
        }
        let mut command = format!("ordid sql {}", self.word());
        for (option, value) in [("--schema", &self.schema), ("--column", &self.column)] {
            if let Some(value) = value {
                command = format!("{command} {option} {}", shell_word(value));
            }
        }
        if self.drop {
            command.push_str(" --drop");
        }
        let example = schemes
            .iter()
            .find(|(scheme, _)| *scheme == "uuid_v7")
            .or(schemes.first())
            .map_or("SCHEME", |(scheme, _)| scheme);
        let width = schemes
            .iter()
            .map(|(scheme, _)| scheme.len())
            .max()
            .unwrap_or_default();
        let mut text = format!(
            "-- These schemes have functions on {}, for keys in these columns. Name one or several:\n\
             --   {command} --scheme {example}\n\
             -- or print all of them:\n\
             --   {command} --all\n--\n",
            self.engine
        );
        for (scheme, columns) in schemes {
            text.push_str(&format!("-- {scheme:width$}  {}\n", columns.join(", ")));
        }
        text
    }

    /// Returns the engine as the user writes it.
    fn word(&self) -> String {
        let value = self.engine.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
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
