//! Constraints, indexes and foreign keys of the new columns, and the counts before the switch.

use ordid_core::storage::{Dialect as _, dialect::Postgres};

use super::{BRIEF, NONE, Writer, concurrently};
use crate::migration::{
    model::{Action, Check, Statement, Step},
    postgres::quote,
    subject::{
        Column, Index, Moved, Words, find_outside, literal, named, named_by_column, pairs,
        replace_identifier,
    },
};

impl Writer<'_> {
    pub(super) fn constraints(&self) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            for column in &table.columns {
                let new = quote(&column.new_name());
                let rule = match column.not_null {
                    true => format!("{new} IS NOT NULL"),
                    false => format!("({new} IS NULL) = ({} IS NULL)", quote(&column.name)),
                };
                let check = Self::check_of(column);
                statements.push(
                    Statement::new(format!(
                        "ALTER TABLE {} ADD CONSTRAINT {check} CHECK ({rule}) NOT VALID",
                        self.table(table)
                    ))
                    .unless(format!(
                        "SELECT 1 FROM pg_constraint WHERE conrelid = {}::regclass AND conname = {}",
                        literal(&self.table(table)),
                        literal(&named("ordid_check_", &column.name, ""))
                    )),
                );
                statements.push(
                    Statement::new(format!(
                        "ALTER TABLE {} VALIDATE CONSTRAINT {check}",
                        self.table(table)
                    ))
                    .waiting(),
                );
            }
        }
        Self::step(
            "constraints",
            "Declares that no new column is empty, and lets the server read all rows for that"
                .to_owned(),
            BRIEF,
            self.rows(1_000_000.0),
            Action::Online { statements },
        )
    }

    /// The copies of all indexes that have moved columns.
    pub(super) fn copies(&self) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            for index in &table.indexes {
                let name = Self::copy_of(index);
                let mut definition = index.definition.clone();
                for column in &table.columns {
                    definition = replace_columns(&definition, column);
                }
                statements.push(concurrently(
                    &table.schema,
                    &name,
                    &renamed_index(&definition, &name),
                ));
                statements.extend(self.comment_on(table, index, &name));
                if index.is_primary {
                    let name = Self::twin_of(index);
                    statements.push(concurrently(
                        &table.schema,
                        &name,
                        &renamed_index(&index.definition, &name),
                    ));
                    statements.extend(self.comment_on(table, index, &name));
                }
            }
            statements.extend(self.lost_indexes(table, Column::new_name));
            statements.push(Statement::new(format!("ANALYZE {}", self.table(table))).waiting());
        }
        Self::step(
            "indexes",
            "Builds the same indexes on the new columns, and for the way back an index on the old key".to_owned(),
            "no table: CREATE INDEX CONCURRENTLY; it waits for running transactions",
            self.rows(300_000.0),
            Action::Online { statements },
        )
    }

    /// Gives the index of this name the comment of another one.
    fn comment_on(&self, table: &Moved, index: &Index, name: &str) -> Option<Statement> {
        let comment = index.comment.as_ref()?;
        Some(Statement::new(format!(
            "COMMENT ON INDEX {} IS {}",
            self.in_schema(table, name),
            literal(comment)
        )))
    }

    pub(super) fn foreign_keys(&self) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            for (column, foreign_key) in table.references() {
                if !column.not_null {
                    // It has served. Two foreign keys that set their columns to NULL, one after the other, would break it.
                    statements.push(Statement::new(format!(
                        "ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}",
                        self.table(table),
                        Self::check_of(column)
                    )));
                }
                let name = Self::new_key_of(foreign_key);
                statements.push(
                    Statement::new(format!(
                        "ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({}) {} NOT VALID",
                        self.table(table),
                        quote(&name),
                        quote(&column.new_name()),
                        self.table(self.main()),
                        quote(&self.key().new_name()),
                        foreign_key.actions
                    ))
                    .unless(format!(
                        "SELECT 1 FROM pg_constraint WHERE conrelid = {}::regclass AND conname = {}",
                        literal(&self.table(table)),
                        literal(&name)
                    )),
                );
                let comment = comment_on(&self.table(table), &name, foreign_key.comment.as_ref());
                statements.extend(comment.map(Statement::new));
            }
        }
        Self::step(
            "foreign_keys",
            "Adds the same foreign keys between the new columns".to_owned(),
            BRIEF,
            0.1,
            Action::Online { statements },
        )
    }

    pub(super) fn validate_constraints(&self) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            for (_, foreign_key) in table.references() {
                statements.push(
                    Statement::new(format!(
                        "ALTER TABLE {} VALIDATE CONSTRAINT {}",
                        self.table(table),
                        quote(&Self::new_key_of(foreign_key))
                    ))
                    .waiting(),
                );
            }
        }
        Self::step(
            "validate",
            "Lets the server check the new foreign keys of all rows".to_owned(),
            "no table: others read and write meanwhile",
            self.rows(500_000.0),
            Action::Online { statements },
        )
    }

    pub(super) fn check(&self) -> Step {
        let (main, key, new) = (
            self.table(self.main()),
            quote(&self.key().name),
            quote(&self.key().new_name()),
        );
        let mut checks = self.pairs("new", Column::new_name);
        checks.push(Check::new(
            format!(
                "rows of {} whose keys are not in the order of the work list",
                self.main().title()
            ),
            format!(
                "SELECT count(*) FROM (SELECT it.{new} < lag(it.{new}) OVER (ORDER BY w.position) AS falls FROM {} AS w \
                 JOIN {main} AS it ON it.{key} = w.old) AS pairs WHERE falls",
                self.work()
            ),
        ));
        Self::step(
            "check",
            "Counts and joins old and new keys: nothing is switched unless every row has its key, and every reference its row"
                .to_owned(),
            NONE,
            self.rows(300_000.0),
            Action::Check {
                checks,
                guards: Vec::new(),
            },
        )
    }
}

impl Writer<'_> {
    /// Returns the counts by which the other columns are held against those that have the names.
    pub(super) fn pairs(&self, word: &str, other: fn(&Column) -> String) -> Vec<Check> {
        let words = Words {
            quote,
            table: |table| Postgres::quote_table(Some(&table.schema), &table.name),
            differ: |left, right| format!("{left} IS DISTINCT FROM {right}"),
        };
        pairs(&self.found.tables, words, word, other)
    }

    /// The counts under the lock: links that only one of two columns has. Columns that cannot be NULL have no such rows. The
    /// others have an index of such rows alone, since a count that reads a table would keep everybody waiting.
    pub(super) fn lost_links(&self, word: &str, other: fn(&Column) -> String) -> Vec<Check> {
        let mut checks = Vec::new();
        for table in &self.found.tables {
            for column in nullable(table) {
                checks.push(Check::new(
                    format!("rows of {} without a {word} {}", table.title(), column.name),
                    format!(
                        "SELECT count(*) FROM {} WHERE {}",
                        self.table(table),
                        is_lost(column, other)
                    ),
                ));
            }
        }
        checks
    }

    /// The indexes of the rows that [`lost_links`](Self::lost_links) counts. They are empty if all is well.
    pub(super) fn lost_indexes(
        &self,
        table: &Moved,
        other: fn(&Column) -> String,
    ) -> Vec<Statement> {
        let index = |column: &Column| {
            let name = Self::lost_name(table, column);
            concurrently(
                &table.schema,
                &name,
                &format!(
                    "CREATE INDEX CONCURRENTLY {} ON {} ({}) WHERE {}",
                    quote(&name),
                    self.table(table),
                    quote(&column.name),
                    is_lost(column, other)
                ),
            )
        };
        nullable(table).map(index).collect()
    }

    fn lost_name(table: &Moved, column: &Column) -> String {
        named_by_column("ordid_lost_", &table.name, &column.name)
    }

    /// Drops these indexes when the rows are counted.
    pub(super) fn drop_lost_indexes(&self) -> Vec<String> {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            let names = nullable(table).map(|column| Self::lost_name(table, column));
            statements.extend(
                names.map(|name| format!("DROP INDEX IF EXISTS {}", self.in_schema(table, &name))),
            );
        }
        statements
    }
}

/// Returns the referring columns that may be NULL.
fn nullable(table: &Moved) -> impl Iterator<Item = &Column> {
    table
        .references()
        .map(|(column, _)| column)
        .filter(|it| !it.not_null)
}

/// The condition of rows whose link only the column has that has the name.
fn is_lost(column: &Column, other: fn(&Column) -> String) -> String {
    format!(
        "{} IS NULL AND {} IS NOT NULL",
        quote(&other(column)),
        quote(&column.name)
    )
}

/// Returns the statement that gives a constraint its comment, if there is one.
pub(super) fn comment_on(table: &str, name: &str, comment: Option<&String>) -> Option<String> {
    let comment = literal(comment?);
    Some(format!(
        "COMMENT ON CONSTRAINT {} ON {table} IS {comment}",
        quote(name)
    ))
}

/// Gives an index another name, and lets it be built while others write.
fn renamed_index(definition: &str, name: &str) -> String {
    let unique = if definition.starts_with("CREATE UNIQUE") {
        "UNIQUE "
    } else {
        ""
    };
    let behind = find_outside(definition, " ON ").map_or("", |at| &definition[at..]);
    format!("CREATE {unique}INDEX CONCURRENTLY {}{behind}", quote(name))
}

/// Replaces a column in the lists of an index, not in the names before them, nor in its options or its tablespace.
fn replace_columns(definition: &str, column: &Column) -> String {
    let end = find_outside(definition, " WITH (")
        .or_else(|| find_outside(definition, " TABLESPACE "))
        .unwrap_or(definition.len());
    let (definition, options) = definition.split_at(end);
    let start = find_outside(definition, " USING ").unwrap_or(0);
    let (head, lists) = definition.split_at(start);
    let start = find_outside(lists, "(").unwrap_or(0);
    let (method, lists) = lists.split_at(start);
    let new = quote(&column.new_name());
    format!(
        "{head}{method}{}{options}",
        replace_identifier(lists, &column.name, &quote(&column.name), &new)
    )
}
