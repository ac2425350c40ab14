//! What `diesel print-schema` makes of a column, from the type that the database says it has.
//!
//! The command is no library, so these are its rules for the types of keys, as of diesel_cli 2.3
//! (`infer_schema_internals/{pg,mysql,sqlite}.rs`): the tests hold the databases' own answers against
//! them, and the command itself where it is installed.

use std::{error::Error, process::Command};

/// What a database says of a column's type.
#[derive(diesel::QueryableByName)]
pub struct Declared {
    #[diesel(sql_type = diesel::sql_types::Text)]
    pub declared: String,
}

/// Looks for the command.
pub fn command() -> Result<(), String> {
    let found = Command::new("diesel").arg("--version").output();
    match found.is_ok_and(|output| output.status.success()) {
        true => Ok(()),
        false => Err("diesel_cli is not installed".to_owned()),
    }
}

/// Returns the type that the command prints for a column.
pub fn by_command(
    url: &str,
    table: &str,
    column: &str,
) -> Result<String, Box<dyn Error + Send + Sync>> {
    let mut command = Command::new("diesel");
    command.args([
        "print-schema",
        "--database-url",
        url,
        "--only-tables",
        table,
    ]);
    // SQLite's `INTEGER`, which no other database has as a key's.
    command.arg("--sqlite-integer-primary-key-is-bigint");
    // Where there is no `diesel.toml`.
    let output = command.current_dir(std::env::temp_dir()).output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut lines = printed.lines().map(str::trim);
    let line = lines.find_map(|line| line.strip_prefix(column)?.strip_prefix(" -> "));
    let line = line.ok_or_else(|| {
        let problem = String::from_utf8_lossy(&output.stderr);
        format!("no {table}.{column} in {printed:?}: {problem}")
    })?;
    Ok(line.trim_end_matches(',').to_owned())
}

/// PostgreSQL's `udt_name`, of which the first letter becomes a capital.
pub fn postgres(declared: &str) -> String {
    capital(declared)
}

/// MySQL's `column_type` without its length, of which `unsigned` is told apart. Of a type that Diesel does
/// not know, the command makes one of the schema's own, with the table's and the column's name before this.
pub fn mysql(declared: &str) -> String {
    let name = declared.split(['(', ' ']).next().unwrap_or(declared);
    match declared.ends_with(" unsigned") {
        true => format!("Unsigned<{}>", capital(name)),
        false => capital(name),
    }
}

/// What SQLite's column was declared as. An `INTEGER` is `BigInt` as a primary key and where it refers to
/// one, if `diesel.toml` says `sqlite_integer_primary_key_is_bigint = true`, otherwise `Integer`.
pub fn sqlite(declared: &str) -> String {
    match declared.to_lowercase().as_str() {
        "blob" => "Binary".to_owned(),
        "integer" => "BigInt".to_owned(),
        other => capital(other),
    }
}

fn capital(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}

/// The one of several names that a SQL type has here, without its path.
pub fn sql_type(name: &str) -> String {
    use diesel::sql_types::{BigInt, Binary, Bytea, Char, Int8, Text, Varchar};

    // They are names of the same types.
    let _: [fn(Bytea) -> Binary; 1] = [|it| it];
    let _: [fn(Int8) -> BigInt; 1] = [|it| it];
    let _: [fn(Char) -> Text; 1] = [|it| it];
    let _: [fn(Varchar) -> Text; 1] = [|it| it];
    let name = name.replace(' ', "").replace("diesel::sql_types::", "");
    match name.as_str() {
        "Bytea" => "Binary",
        "Int8" | "Bigint" => "BigInt",
        "Char" | "Varchar" => "Text",
        "Unsigned<Bigint>" => "Unsigned<BigInt>",
        other => other,
    }
    .to_owned()
}
