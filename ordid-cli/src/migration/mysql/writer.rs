//! The SQL of a move on MySQL and MariaDB.
//!
//! DDL is no part of a transaction here, so each statement has a query that tells whether it has been carried out. Two
//! things decide the order:
//!
//! - InnoDB's foreign keys delete and empty rows without their triggers. So the new columns have the same foreign keys
//!   from the beginning, when all of them are still empty.
//! - The primary key is the table. It changes online, by a rebuild during which others write, before the switch. Until
//!   then rows are found by the old key as before, which is unique and keeps its AUTO_INCREMENT.
//!
//! `SELECT *` and an INSERT without columns see as many columns as before: new columns are INVISIBLE until the switch, and old
//! ones after it ([`visibility`]).
//!
//! The switch renames columns and exchanges triggers under LOCK TABLES: whoever reads or writes in between waits. If the
//! process dies there, the server lets the tables go in between, with some names exchanged and no triggers. The next
//! `apply --resume` sees that by the triggers that are missing, and first corrects the rows that were written meanwhile.

mod guards;
mod references;
mod repairs;
mod switch;
mod triggers;
mod visibility;

use ordid_core::storage::{Dialect as _, dialect::MySql};

use super::{Found, FoundColumn, quote};
use crate::{
    engine::Engine,
    migration::{
        model::{Action, Keys, Statement, Step, Table},
        subject::{Column, ForeignKey, Index, Moved, literal, named, replace_identifier},
        target::Target,
    },
};

const BRIEF: &str = "each table for some milliseconds, once its running transactions are done; nobody waits longer than the lock \
                     timeout";
const NONE: &str = "no table";
const REBUILT: &str = "no table while it is rebuilt; at the beginning and the end each table for some milliseconds, once its running \
                       transactions are done: others wait no longer than a tenth of the rebuild, 30 s at most, or the lock timeout";
/// The time in UTC: `UNIX_TIMESTAMP` would read a local time, of which an hour comes twice a year.
const NOW: &str = "UTC_TIMESTAMP(6)";
const ONLINE: &str = ", ALGORITHM=INPLACE, LOCK=NONE";

/// Writes the SQL.
pub(super) struct Writer<'a> {
    pub(super) found: &'a Found,
    pub(super) target: &'a Target,
    pub(super) created: Option<&'a FoundColumn>,
    pub(super) engine: Engine,
    /// The tables, as the server writes their definitions.
    pub(super) catalog: &'a [Table],
    pub(super) journal: String,
}

/// Whether a type stores UUIDs, of which the server can make a new one.
pub(super) fn is_uuid(sql_type: &str) -> bool {
    matches!(sql_type, "uuid" | "char(36)" | "varchar(36)" | "binary(16)")
}

/// Returns a value that no row has, for columns that a trigger always fills.
fn nothing(sql_type: &str) -> &'static str {
    match sql_type {
        "uuid" | "UUID" => "'00000000-0000-0000-0000-000000000000'",
        other if other.contains("int") || other.contains("decimal") => "0",
        _ => "''",
    }
}

/// Returns an expression of a new UUID in a column of a type of [`is_uuid`].
fn new_uuid(sql_type: &str) -> &'static str {
    match sql_type {
        "binary(16)" => "UNHEX(REPLACE(UUID(), '-', ''))",
        _ => "UUID()",
    }
}

impl Writer<'_> {
    fn main(&self) -> &Moved {
        &self.found.tables[0]
    }

    fn key(&self) -> &Column {
        &self.main().columns[0]
    }

    fn table(&self, table: &Moved) -> String {
        MySql::quote_table(Some(&table.schema), &table.name)
    }

    fn work(&self) -> String {
        MySql::quote_table(
            Some(&self.found.schema),
            &named("ordid_work_", &self.found.name, ""),
        )
    }

    fn chunk(&self) -> String {
        MySql::quote_table(
            Some(&self.found.schema),
            &named("ordid_chunk_", &self.found.name, ""),
        )
    }

    fn sql_type(&self) -> &'static str {
        self.target.column.sql_type
    }

    fn rows(&self, per_second: f64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
        let rows = self.found.rows as f64;
        (rows / per_second).max(0.1)
    }

    fn step(name: &str, what: &str, locks: &str, seconds: f64, action: Action) -> Step {
        Step {
            name: name.to_owned(),
            on: None,
            what: what.to_owned(),
            locks: locks.to_owned(),
            seconds,
            action,
        }
    }

    fn online(
        name: &str,
        what: &str,
        locks: &str,
        seconds: f64,
        statements: Vec<Statement>,
    ) -> Step {
        Self::step(name, what, locks, seconds, Action::Online { statements })
    }

    /// The columns of a table, behind the word for each of them.
    fn each(table: &Moved, text: impl Fn(&Column) -> String) -> String {
        let all: Vec<String> = table.columns.iter().map(text).collect();
        all.join(", ")
    }

    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = vec![
            self.columns(),
            self.indexes(),
            self.foreign_keys(),
            Self::online(
                "triggers",
                "Creates the triggers that fill the new columns of rows which others write from now on",
                BRIEF,
                0.1,
                // The table itself comes last: a row of it that has its key from the trigger is not in the work list, so
                // whatever refers to that row needs its trigger by then.
                self.found
                    .tables
                    .iter()
                    .rev()
                    .flat_map(|table| self.triggers(table, true))
                    .map(|(name, schema, sql)| {
                        Statement::new(sql).unless(trigger_exists(&schema, &name))
                    })
                    .collect(),
            ),
            self.work_list(),
            self.keys(),
        ];
        steps.extend(self.references());
        steps.extend(self.stragglers());
        steps.push(self.check());
        steps.push(self.primary());
        steps.push(self.switch());
        steps
    }

    fn columns(&self) -> Step {
        let statement = |table: &Moved| {
            let columns = Self::each(table, |it| {
                format!(
                    "ADD COLUMN {} {} NULL{}{}",
                    quote(&it.new_name()),
                    self.sql_type(),
                    comment_of(it.comment.as_ref()),
                    self.hidden()
                )
            });
            Statement::new(format!(
                "ALTER TABLE {} {columns}, ALGORITHM=INSTANT",
                self.table(table)
            ))
            .unless(column_exists(table, &table.columns[0].new_name()))
        };
        Self::online(
            "columns",
            match self.found.hides_columns {
                true => {
                    "Adds an empty column beside each moved column, which `SELECT *` and an INSERT without columns do not see"
                }
                false => "Adds an empty column beside each moved column",
            },
            BRIEF,
            0.1,
            self.found.tables.iter().map(statement).collect(),
        )
    }

    fn new_index(index: &Index) -> String {
        named("ordid_new_", &index.name, "")
    }

    fn old_index(index: &Index) -> String {
        named("ordid_old_", &index.name, "")
    }

    /// An index's list, with the new columns.
    fn list_of_new(table: &Moved, index: &Index) -> String {
        let mut list = index.definition.clone();
        for column in &table.columns {
            let quoted = quote(&column.name);
            list = replace_identifier(&list, &quoted, &quoted, &quote(&column.new_name()));
        }
        list
    }

    /// Returns the options of an index, with a space before each.
    fn options_of(&self, index: &Index) -> String {
        let hidden = match (index.is_hidden, self.engine) {
            (false, _) => "",
            (true, Engine::Mariadb) => " IGNORED",
            (true, _) => " INVISIBLE",
        };
        format!("{}{hidden}", comment_of(index.comment.as_ref()))
    }

    fn indexes(&self) -> Step {
        let statement = |table: &Moved| {
            let mut parts = Vec::new();
            for index in &table.indexes {
                let unique = if index.is_unique { "UNIQUE " } else { "" };
                parts.push(format!(
                    "ADD {unique}INDEX {} ({}){}",
                    quote(&Self::new_index(index)),
                    Self::list_of_new(table, index),
                    self.options_of(index)
                ));
                if index.is_primary {
                    parts.push(format!(
                        "ADD UNIQUE INDEX {} ({})",
                        quote(&Self::old_index(index)),
                        index.definition
                    ));
                }
            }
            let first = table
                .indexes
                .first()
                .map(Self::new_index)
                .unwrap_or_default();
            Statement::new(format!(
                "ALTER TABLE {} {}{ONLINE}",
                self.table(table),
                parts.join(", ")
            ))
            .unless(index_exists(table, &first))
            .waiting()
        };
        Self::online(
            "indexes",
            "Builds the same indexes on the new columns, and a unique one on the old key, which will not be the primary key",
            REBUILT,
            self.rows(300_000.0),
            self.found.tables.iter().map(statement).collect(),
        )
    }

    fn new_key_of(foreign_key: &ForeignKey) -> String {
        named("ordid_new_", &foreign_key.name, "")
    }

    fn foreign_keys(&self) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            for (column, foreign_key) in table.references() {
                let name = Self::new_key_of(foreign_key);
                statements.push(
                    Statement::new(self.add_foreign_key(
                        table,
                        &name,
                        &column.new_name(),
                        &self.key().new_name(),
                        &foreign_key.actions,
                    ))
                    .unless(foreign_key_exists(table, &name)),
                );
            }
        }
        Self::online(
            "foreign_keys",
            "Adds the same foreign keys between the new columns, so that deleted rows empty them, too",
            BRIEF,
            0.1,
            statements,
        )
    }

    fn add_foreign_key(
        &self,
        table: &Moved,
        name: &str,
        from: &str,
        to: &str,
        actions: &str,
    ) -> String {
        format!(
            "ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({}) {actions}{ONLINE}",
            self.table(table),
            quote(name),
            quote(from),
            self.table(self.main()),
            quote(to)
        )
    }

    fn work_list(&self) -> Step {
        let key = quote(&self.key().name);
        let table = self.table(self.main());
        let now = micros(NOW);
        let (time, order) = match self.created {
            None => (
                format!(
                    "{now} - CAST(COUNT(*) OVER () AS SIGNED)*1000 + CAST(ROW_NUMBER() OVER (ORDER BY {key}) AS SIGNED)*1000"
                ),
                key.clone(),
            ),
            Some(column) => {
                let column = quote(&column.name);
                (
                    format!(
                        "COALESCE({}, (SELECT {} FROM {table}), {now})",
                        micros(&column),
                        // A zero date has none.
                        format_args!("MIN({})", micros(&column))
                    ),
                    format!("{column}, {key}"),
                )
            }
        };
        let work = self.work();
        Self::online(
            "work_list",
            &match self.created {
                Some(column) => format!(
                    "Lists the rows without a new key in the order of {}, and of the old key where times are equal",
                    column.name
                ),
                None => "Lists the rows without a new key in the order of the old key".to_owned(),
            },
            NONE,
            self.rows(200_000.0),
            vec![
                Statement::new(format!(
                    "CREATE TABLE {work} (position BIGINT NOT NULL PRIMARY KEY) ENGINE=InnoDB AS SELECT CAST(ROW_NUMBER() OVER \
                     (ORDER BY {order}) AS SIGNED) AS position, {key} AS old_key, {time} AS micros FROM {table} WHERE {} IS NULL",
                    quote(&self.key().new_name())
                ))
                .after(format!("DROP TABLE IF EXISTS {work}")),
                Statement::new(format!("ANALYZE TABLE {work}")),
            ],
        )
    }

    /// Returns the assignments that keep columns as they are which change by themselves.
    fn kept(&self, table: usize, alias: &str) -> String {
        let columns = self.found.touched.get(table).map_or(&[][..], Vec::as_slice);
        columns
            .iter()
            .map(|it| format!(", {alias}.{0} = {alias}.{0}", quote(it)))
            .collect()
    }

    fn keys(&self) -> Step {
        let (work, chunk) = (self.work(), self.chunk());
        let new = quote(&self.key().new_name());
        Self::step(
            "keys",
            "Gives each listed row a key of its time, made by ordid, in chunks",
            "the rows of a chunk, until its COMMIT",
            self.rows(10_000.0),
            Action::Keys(Keys {
                session: vec![format!(
                    "CREATE TEMPORARY TABLE IF NOT EXISTS {chunk} (position BIGINT NOT NULL PRIMARY KEY, new_key {} NOT NULL)",
                    self.sql_type()
                )],
                read: format!(
                    "SELECT position, micros FROM {work} WHERE position > {{after}} ORDER BY position LIMIT {{chunk}}"
                ),
                row: "({position},{key})".to_owned(),
                write: vec![
                    format!("DELETE FROM {chunk}"),
                    format!("INSERT INTO {chunk} VALUES {{rows}}"),
                    format!(
                        "UPDATE {chunk} AS k STRAIGHT_JOIN {work} AS w ON w.position = k.position STRAIGHT_JOIN {} AS it ON it.{} = \
                         w.old_key SET it.{new} = k.new_key{} WHERE it.{new} IS NULL",
                        self.table(self.main()),
                        quote(&self.key().name),
                        self.kept(0, "it")
                    ),
                ],
            }),
        )
    }

    /// The columns of a primary key that are moved.
    fn in_primary(table: &Moved) -> impl Iterator<Item = &Column> {
        let list = table
            .indexes
            .iter()
            .find(|it| it.is_primary)
            .map(|it| it.definition.as_str())
            .unwrap_or_default();
        table.columns.iter().filter(|it| {
            list.split(", ")
                .any(|part| part.trim_end_matches(" DESC") == quote(&it.name))
        })
    }

    /// Returns the definition of a new column at the switch: those of a primary key are NOT NULL.
    fn new_definition(&self, table: &Moved, column: &Column) -> String {
        let sql_type = self.sql_type();
        let comment = comment_of(column.comment.as_ref());
        if !Self::in_primary(table).any(|it| it.name == column.name) {
            return format!("{sql_type} NULL{comment}");
        }
        match column.reference {
            None => format!("{sql_type} NOT NULL DEFAULT ({}){comment}", self.new_key()),
            Some(_) => format!("{sql_type} NOT NULL DEFAULT {}{comment}", nothing(sql_type)),
        }
    }

    /// Returns an expression of a key of now.
    fn new_key(&self) -> String {
        self.target.mysql(&micros(NOW))
    }

    /// Returns the word that hides a column, with a space before it.
    fn hidden(&self) -> &'static str {
        match self.found.hides_columns {
            true => " INVISIBLE",
            false => "",
        }
    }

    fn primary(&self) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            let Some(index) = table.indexes.iter().find(|it| it.is_primary) else {
                continue;
            };
            let mut parts = Vec::new();
            for column in Self::in_primary(table) {
                parts.push(format!(
                    "MODIFY {} {}{}",
                    quote(&column.new_name()),
                    self.new_definition(table, column),
                    self.hidden()
                ));
            }
            parts.push("DROP PRIMARY KEY".to_owned());
            parts.push(format!(
                "ADD PRIMARY KEY ({}){}",
                Self::list_of_new(table, index),
                self.options_of(index)
            ));
            parts.push(format!("DROP INDEX {}", quote(&Self::new_index(index))));
            statements.push(
                Statement::new(format!(
                    "ALTER TABLE {} {}{ONLINE}",
                    self.table(table),
                    parts.join(", ")
                ))
                .unless(not(&index_exists(table, &Self::new_index(index))))
                .waiting(),
            );
        }
        Self::online(
            "primary_key",
            "Rebuilds the table in the order of the new key, which becomes the primary key; the old one stays unique",
            REBUILT,
            self.rows(100_000.0),
            statements,
        )
    }
}

/// Returns a comment behind a space, in the literals of `apply`: a backslash means something there.
fn comment_of(comment: Option<&String>) -> String {
    match comment {
        Some(comment) => format!(" COMMENT {}", literal(&comment.replace('\\', "\\\\"))),
        None => String::new(),
    }
}

pub(super) fn micros(column: &str) -> String {
    format!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', {column})")
}

fn not(query: &str) -> String {
    format!("SELECT 1 FROM dual WHERE NOT EXISTS ({query})")
}

fn column_exists(table: &Moved, column: &str) -> String {
    format!(
        "SELECT 1 FROM information_schema.columns WHERE {} AND column_name = {}",
        super::of(&table.schema, &table.name),
        literal(column)
    )
}

fn index_exists(table: &Moved, index: &str) -> String {
    format!(
        "SELECT 1 FROM information_schema.statistics WHERE {} AND index_name = {}",
        super::of(&table.schema, &table.name),
        literal(index)
    )
}

fn foreign_key_exists(table: &Moved, name: &str) -> String {
    format!(
        "SELECT 1 FROM information_schema.table_constraints WHERE {} AND constraint_name = {} AND constraint_type = 'FOREIGN KEY'",
        super::of(&table.schema, &table.name),
        literal(name)
    )
}

fn trigger_exists(schema: &str, name: &str) -> String {
    format!(
        "SELECT 1 FROM information_schema.triggers WHERE trigger_schema = {} AND trigger_name = {}",
        literal(schema),
        literal(name)
    )
}
