//! The switch, the ways back, and the end.

use ordid_core::storage::{Dialect as _, dialect::Postgres};

use super::{BRIEF, NONE, Writer, constraints::comment_on};
use crate::migration::{
    model::{Action, Guard, LOST_INDEXES, Statement, Step},
    postgres::{depends, published, quote, secured},
    subject::{Column, Index, Moved, literal, map_name, map_steps, named_by_column},
};

impl Writer<'_> {
    fn locks(&self) -> Vec<String> {
        let lock = |table| format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", self.table(table));
        self.found.tables.iter().map(lock).collect()
    }

    /// The query of what depends on the columns that have the names, and was not there when the plan was made.
    fn unknown(&self) -> String {
        depends(&self.found.tables, |it| it.name.clone(), &self.found.known)
    }

    /// The statements that give the mark of `CLUSTER` to other indexes, behind their names of now. An index keeps it when it
    /// is renamed.
    fn cluster_on(&self, name: fn(&Index) -> String) -> Vec<String> {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            let marked = table.indexes.iter().filter(|it| it.is_clustered);
            statements.extend(marked.map(|index| {
                format!(
                    "ALTER TABLE {} CLUSTER ON {}",
                    self.table(table),
                    quote(&name(index))
                )
            }));
        }
        statements
    }

    pub(super) fn switch(&self) -> Step {
        let main = self.table(self.main());
        let mut sql = self.drop_lost_indexes();
        for table in &self.found.tables {
            for (_, foreign_key) in table.references() {
                sql.push(drop_constraint(&self.table(table), &foreign_key.name));
            }
        }
        sql.extend(self.cluster_on(Self::copy_of));
        for table in &self.found.tables {
            let name = self.table(table);
            sql.push(format!("DROP TRIGGER zzzz_ordid_sync ON {name}"));
            for index in table.indexes.iter().filter(|it| it.is_primary) {
                sql.push(drop_constraint(&name, &index.name));
            }
            for column in &table.columns {
                if column.not_null {
                    sql.push(format!(
                        "ALTER TABLE {name} ALTER COLUMN {} SET NOT NULL",
                        quote(&column.new_name())
                    ));
                }
                if column.not_null {
                    sql.push(format!(
                        "ALTER TABLE {name} DROP CONSTRAINT {}",
                        Self::check_of(column)
                    ));
                }
                sql.push(rename(&name, &column.name, &column.old_name()));
                sql.push(rename(&name, &column.new_name(), &column.name));
            }
            for index in &table.indexes {
                let copy = Self::copy_of(index);
                let comment = comment_on(&name, &index.name, index.constraint_comment.as_ref());
                if index.is_primary {
                    sql.push(primary_key(&name, &index.name, &copy));
                    sql.extend(comment);
                    continue;
                }
                let (old, new) = (
                    self.in_schema(table, &index.name),
                    self.in_schema(table, &copy),
                );
                sql.push(format!(
                    "ALTER INDEX {old} RENAME TO {}",
                    quote(&Self::twin_of(index))
                ));
                sql.push(format!(
                    "ALTER INDEX {new} RENAME TO {}",
                    quote(&index.name)
                ));
                if index.is_constraint {
                    sql.push(format!(
                        "ALTER TABLE {name} ADD CONSTRAINT {0} UNIQUE USING INDEX {0}",
                        quote(&index.name)
                    ));
                    sql.extend(comment);
                }
            }
            for (_, foreign_key) in table.references() {
                sql.push(format!(
                    "ALTER TABLE {name} RENAME CONSTRAINT {} TO {}",
                    quote(&Self::new_key_of(foreign_key)),
                    quote(&foreign_key.name)
                ));
            }
            sql.push(self.sync_function(table, false));
            sql.push(format!(
                "CREATE TRIGGER zzzz_ordid_sync BEFORE INSERT OR UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION {}()",
                self.function(table)
            ));
        }
        if self.found.key.default.is_some() || self.found.key.is_identity {
            sql.push(format!(
                "ALTER TABLE {main} ALTER COLUMN {} SET DEFAULT {}()",
                quote(&self.key().name),
                self.key_function()
            ));
        }
        Self::step(
            "switch",
            "In one transaction: renames the columns, so that the new ones have the old names, and makes the new key the \
             primary key; triggers now fill the old columns"
                .to_owned(),
            "all tables, for some milliseconds and at most twice the lock timeout; it lets go and tries again while it does not \
             get them",
            0.1,
            Action::Switch {
                lock: self.locks(),
                guards: vec![
                    secured(&self.found.tables),
                    published(&self.found.tables),
                    Guard::before_switch(self.unknown()),
                ],
                checks: self.lost_links("new", Column::new_name),
                repairs: Vec::new(),
                statements: sql.into_iter().map(Statement::new).collect(),
                unlock: Vec::new(),
            },
        )
    }

    pub(super) fn in_schema(&self, table: &Moved, name: &str) -> String {
        Postgres::quote_table(Some(&table.schema), name)
    }

    /// Drops what belongs to the new columns, behind their names of now.
    fn drop_columns(&self, name: fn(&Column) -> String) -> Vec<Step> {
        let mut steps = Vec::new();
        for table in self.found.tables.iter().rev() {
            // The key comes last: a reference of the table to itself depends on it.
            let columns: Vec<String> = table
                .columns
                .iter()
                .rev()
                .map(|it| format!("DROP COLUMN IF EXISTS {}", quote(&name(it))))
                .collect();
            steps.push(Self::step(
                "drop_columns",
                format!(
                    "Drops the trigger and the columns of {} that are no longer needed",
                    table.title()
                ),
                BRIEF,
                0.1,
                Action::Transaction {
                    statements: vec![
                        format!(
                            "DROP TRIGGER IF EXISTS zzzz_ordid_sync ON {}",
                            self.table(table)
                        ),
                        format!("DROP FUNCTION IF EXISTS {}()", self.function(table)),
                        format!("ALTER TABLE {} {}", self.table(table), columns.join(", ")),
                    ],
                },
            ));
        }
        steps
    }

    fn leftovers(&self, drops_function: bool) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            for index in &table.indexes {
                if index.is_primary {
                    statements.push(drop_index(&self.in_schema(table, &Self::twin_of(index))));
                }
            }
            for (column, _) in table.references() {
                let name = named_by_column("ordid_work_", &table.name, &column.name);
                statements.push(drop_index(&self.in_schema(table, &name)));
            }
        }
        statements.push(Statement::new(format!(
            "DROP TABLE IF EXISTS {}",
            self.work()
        )));
        if drops_function {
            statements.push(Statement::new(format!(
                "DROP FUNCTION IF EXISTS {}(timestamptz)",
                self.key_function()
            )));
        }
        Self::step(
            "leftovers",
            "Drops the work list, and what is left of indexes and functions".to_owned(),
            NONE,
            0.1,
            Action::Online { statements },
        )
    }

    pub(in crate::migration::postgres) fn undo(&self) -> Vec<Step> {
        let mut steps = self.drop_columns(Column::new_name);
        steps.push(self.leftovers(true));
        steps
    }

    pub(in crate::migration::postgres) fn back(&self) -> Vec<Step> {
        let mut sql = self.drop_lost_indexes();
        for table in &self.found.tables {
            for (_, foreign_key) in table.references() {
                sql.push(drop_constraint(&self.table(table), &foreign_key.name));
            }
        }
        sql.extend(self.cluster_on(Self::twin_of));
        for table in &self.found.tables {
            let name = self.table(table);
            sql.push(format!("DROP TRIGGER zzzz_ordid_sync ON {name}"));
            for index in &table.indexes {
                if index.is_primary {
                    sql.push(drop_constraint(&name, &index.name));
                    continue;
                }
                if index.is_constraint {
                    sql.push(drop_constraint(&name, &index.name));
                } else {
                    sql.push(format!("DROP INDEX {}", self.in_schema(table, &index.name)));
                }
                let old = self.in_schema(table, &Self::twin_of(index));
                sql.push(format!(
                    "ALTER INDEX {old} RENAME TO {}",
                    quote(&index.name)
                ));
            }
            for column in &table.columns {
                sql.push(rename(&name, &column.name, &column.new_name()));
                sql.push(rename(&name, &column.old_name(), &column.name));
            }
            for column in table.columns.iter().filter(|it| it.not_null) {
                let new = quote(&column.new_name());
                sql.push(format!(
                    "ALTER TABLE {name} ALTER COLUMN {new} DROP NOT NULL"
                ));
            }
            for index in table.indexes.iter().filter(|it| it.is_primary) {
                sql.push(primary_key(&name, &index.name, &Self::twin_of(index)));
                sql.extend(comment_on(
                    &name,
                    &index.name,
                    index.constraint_comment.as_ref(),
                ));
            }
        }
        let mut validate = Vec::new();
        for table in &self.found.tables {
            let name = self.table(table);
            for (_, foreign_key) in table.references() {
                sql.push(format!(
                    "ALTER TABLE {name} ADD CONSTRAINT {} {} NOT VALID",
                    quote(&foreign_key.name),
                    foreign_key.definition,
                ));
                sql.extend(comment_on(
                    &name,
                    &foreign_key.name,
                    foreign_key.comment.as_ref(),
                ));
                validate.push(
                    Statement::new(format!(
                        "ALTER TABLE {name} VALIDATE CONSTRAINT {}",
                        quote(&foreign_key.name)
                    ))
                    .waiting(),
                );
            }
        }
        let indexes: Vec<Statement> = (self.found.tables.iter())
            .flat_map(|table| self.lost_indexes(table, Column::old_name))
            .collect();
        // The check comes first: if it refuses the way back, the move can still be finished.
        let mut steps = vec![Self::step(
            "check",
            "Counts and joins new and old keys: there is no way back unless every row has its old key, and every reference \
             its row"
                .to_owned(),
            NONE,
            self.rows(300_000.0),
            Action::Check {
                checks: self.pairs("old", Column::old_name),
                guards: Vec::new(),
            },
        )];
        if !indexes.is_empty() {
            steps.push(Self::step(
                LOST_INDEXES,
                "Builds indexes of the rows without their old reference, of which there are none: they are counted under the lock"
                    .to_owned(),
                NONE,
                self.rows(1_000_000.0),
                Action::Online {
                    statements: indexes,
                },
            ));
        }
        steps.extend([
            Self::step(
                "switch_back",
                "In one transaction: gives the old columns their names again, and the table its old primary key".to_owned(),
                "all tables, for some milliseconds and at most twice the lock timeout",
                0.1,
                Action::Switch {
                    lock: self.locks(),
                    guards: vec![
                        secured(&self.found.tables),
                        Guard::before_back(self.unknown()),
                    ],
                    checks: self.lost_links("old", Column::old_name),
                    repairs: Vec::new(),
                    statements: sql.into_iter().map(Statement::new).collect(),
                    unlock: Vec::new(),
                },
            ),
            Self::step(
                "validate",
                "Lets the server check the old foreign keys of all rows".to_owned(),
                "no table: others read and write meanwhile",
                self.rows(500_000.0),
                Action::Online {
                    statements: validate,
                },
            ),
        ]);
        steps.extend(self.undo());
        steps
    }

    pub(in crate::migration::postgres) fn map(&self) -> Vec<Step> {
        let name = map_name(&self.found.name);
        let (map, key) = (self.name(&name), self.key());
        let old = quote(&key.old_name());
        map_steps(
            format!(
                "SELECT {} WHERE to_regclass({}) IS NOT NULL",
                literal(&format!("{}.{name}", self.found.schema)),
                literal(&map)
            ),
            self.rows(500_000.0),
            Action::Transaction {
                statements: vec![
                    format!(
                        "CREATE TABLE {map} (old_key {} PRIMARY KEY, new_key {} NOT NULL)",
                        key.sql_type, self.target.column.sql_type
                    ),
                    format!(
                        "INSERT INTO {map} (old_key, new_key) SELECT {old}, {} FROM {} WHERE {old} IS NOT NULL",
                        quote(&key.name),
                        self.table(self.main())
                    ),
                ],
            },
        )
    }

    pub(in crate::migration::postgres) fn finish(&self) -> Vec<Step> {
        let check = Self::step(
            "check",
            "Looks for what others have made on the old columns, which would be dropped with them"
                .to_owned(),
            NONE,
            0.1,
            Action::Check {
                checks: Vec::new(),
                guards: vec![Guard::before_finish(depends(
                    &self.found.tables,
                    Column::old_name,
                    &[],
                ))],
            },
        );
        let mut steps = vec![check];
        if let Some(sequence) = &self.found.sequence
            && sequence.others.is_some()
        {
            steps.push(Self::step(
                "keep_sequence",
                format!(
                    "Takes the sequence {} from the old column, since others use it",
                    sequence.name
                ),
                BRIEF,
                0.1,
                Action::Transaction {
                    statements: vec![format!("ALTER SEQUENCE {} OWNED BY NONE", sequence.name)],
                },
            ));
        }
        steps.extend(self.drop_columns(Column::old_name));
        let has_default = self.found.key.default.is_some() || self.found.key.is_identity;
        steps.push(self.leftovers(!has_default));
        steps
    }
}

fn rename(table: &str, from: &str, to: &str) -> String {
    format!(
        "ALTER TABLE {table} RENAME COLUMN {} TO {}",
        quote(from),
        quote(to)
    )
}

fn drop_constraint(table: &str, name: &str) -> String {
    format!("ALTER TABLE {table} DROP CONSTRAINT {}", quote(name))
}

fn primary_key(table: &str, name: &str, index: &str) -> String {
    format!(
        "ALTER TABLE {table} ADD CONSTRAINT {} PRIMARY KEY USING INDEX {}",
        quote(name),
        quote(index)
    )
}

fn drop_index(name: &str) -> Statement {
    Statement::new(format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).waiting()
}
