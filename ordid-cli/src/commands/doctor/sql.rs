//! The SQL of evidence and fixes, in each engine's words.

use ordid_core::storage::{
    Dialect as _,
    dialect::{MySql, Postgres, Sqlite},
};

use super::model::{Column, Kind, Table, TableName, Value};
use crate::engine::Engine;

/// Writes SQL for an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sql(pub(crate) Engine);

impl Sql {
    /// Whether it is MySQL or MariaDB.
    pub(crate) fn is_mysql(self) -> bool {
        matches!(self.0, Engine::Mysql | Engine::Mariadb)
    }

    /// Quotes a name.
    pub(crate) fn name(self, name: &str) -> String {
        match self.0 {
            Engine::Mysql | Engine::Mariadb => MySql::quote(name),
            Engine::Sqlite => Sqlite::quote(name),
            _ => Postgres::quote(name),
        }
    }

    /// Quotes names.
    pub(crate) fn names(self, names: &[String]) -> String {
        let names: Vec<String> = names.iter().map(|name| self.name(name)).collect();
        names.join(", ")
    }

    /// Quotes a table's name.
    pub(crate) fn table(self, table: &TableName) -> String {
        let schema = table.schema.as_deref();
        match self.0 {
            Engine::Mysql | Engine::Mariadb => MySql::quote_table(schema, &table.name),
            Engine::Sqlite => Sqlite::quote_table(schema, &table.name),
            _ => Postgres::quote_table(schema, &table.name),
        }
    }

    /// Quotes a text. MySQL's session takes backslashes as they are.
    pub(crate) fn text(self, text: &str) -> String {
        format!("'{}'", text.replace('\'', "''"))
    }

    /// Writes a value as a literal.
    pub(crate) fn literal(self, value: &Value) -> String {
        match value {
            Value::Null => "NULL".to_owned(),
            Value::Integer(number) => number.to_string(),
            Value::Real(number) => number.clone(),
            Value::Text(text) => self.text(text),
            Value::Uuid(bytes) => {
                let uuid = uuid::Uuid::from_bytes(*bytes).hyphenated();
                format!("'{uuid}'")
            }
            Value::Bytes(bytes) => match self.0 {
                Engine::Postgres => format!("'\\x{}'", hex(bytes)),
                _ => format!("X'{}'", hex(bytes)),
            },
        }
    }

    /// Returns a condition that finds this value.
    pub(crate) fn finds(self, column: &str, value: &Value) -> String {
        format!("{} = {}", self.name(column), self.literal(value))
    }

    /// Returns an expression for a column's value as text: lower-case hex of bytes.
    pub(crate) fn as_text(self, column: &Column) -> String {
        let name = self.name(&column.name);
        match (self.0, column.kind) {
            (Engine::Sqlite, _) => {
                format!("CASE typeof({name}) WHEN 'blob' THEN lower(hex({name})) ELSE {name} END")
            }
            (Engine::Postgres, Kind::Bytes { .. }) => format!("encode({name}, 'hex')"),
            (Engine::Postgres, Kind::Text { .. }) => name,
            (Engine::Postgres, _) => format!("{name}::text"),
            (_, Kind::Bytes { .. }) => format!("LOWER(HEX({name}))"),
            _ => name,
        }
    }

    /// Returns an expression for a column's value that the sampler reads: of SQLite with the value's own class.
    pub(crate) fn cell(self, column: &Column) -> String {
        let name = self.name(&column.name);
        match self.0 {
            Engine::Sqlite => format!(
                "substr(typeof({name}), 1, 1) || CASE typeof({name}) WHEN 'blob' THEN hex({name}) \
                 ELSE CAST({name} AS TEXT) END"
            ),
            _ => self.as_text(column),
        }
    }

    /// Reads what [`cell`](Self::cell) says.
    pub(crate) fn read(self, column: &Column, cell: Option<String>) -> Value {
        let Some(cell) = cell else {
            return Value::Null;
        };
        let bytes = |text: &str| match unhex(text) {
            Some(bytes) => Value::Bytes(bytes),
            None => Value::Text(text.to_owned()),
        };
        let integer = |text: &str| match text.parse() {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::Text(text.to_owned()),
        };
        if self.0 == Engine::Sqlite {
            let Some((class, text)) = cell.split_at_checked(1) else {
                return Value::Null;
            };
            return match class {
                "i" => integer(text),
                "b" => bytes(text),
                "r" => Value::Real(text.to_owned()),
                "n" => Value::Null,
                _ => Value::Text(text.to_owned()),
            };
        }
        match column.kind {
            Kind::Integer { .. } => integer(&cell),
            Kind::Bytes { .. } => bytes(&cell),
            Kind::Uuid => match cell.parse::<uuid::Uuid>() {
                Ok(uuid) => Value::Uuid(uuid.into_bytes()),
                Err(_) => Value::Text(cell),
            },
            _ => Value::Text(cell),
        }
    }

    /// Returns an expression for the milliseconds since 1970 of a column with a time.
    pub(crate) fn millis(self, column: &Column) -> String {
        let name = self.name(&column.name);
        match self.0 {
            Engine::Postgres => format!("floor(extract(epoch FROM {name}) * 1000)::bigint"),
            Engine::Sqlite => format!(
                "CASE typeof({name}) WHEN 'integer' THEN \
                 CASE WHEN abs({name}) > 100000000000 THEN {name} ELSE {name} * 1000 END \
                 ELSE CAST((julianday({name}) - 2440587.5) * 86400000 AS INTEGER) END"
            ),
            _ => format!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {name}) DIV 1000"),
        }
    }

    /// Returns the query of how many rows stand below the row that was inserted before them.
    pub(crate) fn steps_down(self, table: &Table, column: &str) -> Option<String> {
        let insertion = table.insertion.as_ref().ok()?;
        let (key, place) = (self.name(column), &insertion.sql);
        Some(format!(
            "SELECT count(*) FROM (SELECT {key} AS k, lag({key}) OVER (ORDER BY {place}, {key}) AS previous \
             FROM {}) AS pairs WHERE k < previous",
            self.sampled(table),
        ))
    }

    /// Returns what evidence about values reads: the table, or as much of it as was sampled.
    pub(crate) fn sampled(self, table: &Table) -> String {
        match table.sample.is_whole {
            true => self.table(&table.name),
            false => format!("({}) AS sampled", table.sample.source),
        }
    }

    /// Returns the query that counts the versions of a column's UUIDs.
    pub(crate) fn versions(self, table: &Table, column: &Column) -> String {
        let position = match (self.0, column.kind) {
            (_, Kind::Bytes { .. }) => 13,
            (Engine::Sqlite, _) => {
                return format!(
                    "SELECT substr(replace({}, '-', ''), 13, 1) AS version, count(*) FROM {} GROUP BY 1 ORDER BY 2 DESC",
                    self.as_text(column),
                    self.sampled(table)
                );
            }
            _ => 15,
        };
        format!(
            "SELECT substr({}, {position}, 1) AS version, count(*) FROM {} GROUP BY 1 ORDER BY 2 DESC",
            self.as_text(column),
            self.sampled(table)
        )
    }

    /// Returns a type as it is declared. SQLite takes any text between quotes for one.
    pub(crate) fn declared(self, declared: &str) -> String {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " _(),".contains(letter);
        match declared.chars().all(is_plain) {
            true => declared.to_owned(),
            false => self.name(declared),
        }
    }
}

/// Writes bytes as hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes what is written");
        text
    })
}

/// Reads hex.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}
