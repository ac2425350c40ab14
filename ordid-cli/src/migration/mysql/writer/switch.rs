//! The switch, the ways back, and the end.

use ordid_core::storage::{Dialect as _, dialect::MySql};

use super::{
    BRIEF, NONE, ONLINE, REBUILT, Writer, column_exists, comment_of, foreign_key_exists,
    index_exists, not, nothing, trigger_exists,
};
use crate::migration::{
    model::{Action, Statement, Step},
    mysql::{of, quote},
    subject::{Column, Index, Moved, literal, map_name, map_steps, named},
};

/// The names that columns and indexes have while others have theirs.
#[derive(Clone, Copy)]
struct Names {
    column: fn(&Column) -> String,
    index: fn(&Index) -> String,
}

/// Before the switch.
const NEW: Names = Names {
    column: Column::new_name,
    index: Writer::new_index,
};

/// After it.
const OLD: Names = Names {
    column: Column::old_name,
    index: Writer::old_index,
};

impl Writer<'_> {
    fn lock(&self) -> Vec<String> {
        let mut tables: Vec<String> = self
            .found
            .tables
            .iter()
            .enumerate()
            .map(|(number, table)| format!("{0} WRITE, {0} AS c{number} WRITE", self.table(table)))
            .collect();
        // By the names by which repairs read them.
        tables.push(format!("{} AS it WRITE", self.table(self.main())));
        tables.push(format!("{} WRITE", self.journal));
        vec![format!("LOCK TABLES {}", tables.join(", "))]
    }

    fn drop_triggers(&self) -> Vec<Statement> {
        self.found
            .tables
            .iter()
            .flat_map(|table| Self::trigger_names(table).map(|name| (table, name)))
            .map(|(table, name)| {
                let name = MySql::quote_table(Some(&table.schema), &name);
                Statement::new(format!("DROP TRIGGER IF EXISTS {name}"))
            })
            .collect()
    }

    /// Whether the server makes old keys without a trigger.
    pub(super) fn key_makes_itself(&self) -> bool {
        self.found.key.is_auto_increment() || self.found.key.default.is_some()
    }

    /// Writes the statement that exchanges names: what has the names of columns and indexes gets those of `away`, and what has
    /// those of `here` gets the names.
    fn exchange(&self, table: &Moved, away: Names, here: Names) -> String {
        let columns = Self::each(table, |it| {
            format!(
                "RENAME COLUMN {1} TO {2}, RENAME COLUMN {0} TO {1}",
                quote(&(here.column)(it)),
                quote(&it.name),
                quote(&(away.column)(it))
            )
        });
        let indexes = table.indexes.iter().filter(|it| !it.is_primary).map(|it| {
            format!(
                ", RENAME INDEX {0} TO {1}, RENAME INDEX {2} TO {0}",
                quote(&it.name),
                quote(&(away.index)(it)),
                quote(&(here.index)(it))
            )
        });
        format!(
            "ALTER TABLE {} {columns}{}{ONLINE}",
            self.table(table),
            indexes.collect::<String>()
        )
    }

    pub(super) fn switch(&self) -> Step {
        let mut statements = self.drop_triggers();
        for table in &self.found.tables {
            statements.push(
                Statement::new(self.exchange(table, OLD, NEW))
                    .unless(column_exists(table, &table.columns[0].old_name())),
            );
            for column in self.given_defaults(table) {
                statements.push(Statement::new(format!(
                    "ALTER TABLE {} ALTER COLUMN {} SET DEFAULT {}",
                    self.table(table),
                    quote(&column.old_name()),
                    nothing(&column.sql_type)
                )));
            }
            statements.extend(self.show_new(table));
        }
        statements.extend(self.create_triggers(false));
        Self::step(
            "switch",
            "Under LOCK TABLES: renames the columns, so that the new ones have the old names; triggers now fill the old columns",
            "all tables, for some tens of milliseconds, once their running transactions are done; it lets go and tries again while it \
             does not get them",
            0.1,
            Action::Switch {
                lock: self.lock(),
                guards: self.guards_before_switch(),
                checks: self.lost_links("new", Column::new_name),
                repairs: self.repairs(),
                statements,
                unlock: vec!["UNLOCK TABLES".to_owned()],
            },
        )
    }

    /// The old columns that nobody but a trigger fills after the switch: they have a default until then.
    pub(super) fn given_defaults<'t>(&self, table: &'t Moved) -> impl Iterator<Item = &'t Column> {
        let key_makes_itself = self.key_makes_itself();
        table
            .columns
            .iter()
            .filter(move |it| it.not_null && !(it.reference.is_none() && key_makes_itself))
    }

    fn create_triggers(&self, before: bool) -> Vec<Statement> {
        self.found
            .tables
            .iter()
            .flat_map(|table| self.triggers(table, before))
            .map(|(_, _, sql)| Statement::new(sql))
            .collect()
    }

    pub(in crate::migration::mysql) fn undo(&self) -> Vec<Step> {
        let mut steps = vec![self.missing_triggers(), self.drop_foreign_keys()];
        let mut primary = Vec::new();
        for table in &self.found.tables {
            let Some(index) = table.indexes.iter().find(|it| it.is_primary) else {
                continue;
            };
            let nullable: String = Self::in_primary(table)
                .map(|it| {
                    format!(
                        "MODIFY {} {} NULL{}, ",
                        quote(&it.new_name()),
                        self.sql_type(),
                        self.hidden()
                    )
                })
                .collect();
            primary.push(
                Statement::new(format!(
                    "ALTER TABLE {} DROP PRIMARY KEY, ADD PRIMARY KEY ({}){}, {nullable}DROP INDEX {}{ONLINE}",
                    self.table(table),
                    index.definition,
                    self.options_of(index),
                    quote(&Self::old_index(index))
                ))
                .unless(format!(
                    "SELECT 1 FROM dual WHERE NOT EXISTS ({}) OR EXISTS ({})",
                    index_exists(table, &Self::old_index(index)),
                    index_exists(table, &Self::new_index(index))
                ))
                .waiting(),
            );
        }
        steps.push(Self::online(
            "primary_key",
            "Rebuilds the table in the order of the old key, which becomes the primary key again",
            REBUILT,
            self.rows(100_000.0),
            primary,
        ));
        steps.push(Self::online(
            "drop_triggers",
            "Drops the triggers",
            BRIEF,
            0.1,
            self.drop_triggers(),
        ));
        let mut columns = Vec::new();
        for table in self.found.tables.iter().rev() {
            let mut names: Vec<String> = table.indexes.iter().map(Self::new_index).collect();
            names.extend(
                table
                    .indexes
                    .iter()
                    .filter(|it| it.is_primary)
                    .map(Self::old_index),
            );
            for name in names {
                columns.push(
                    Statement::new(format!(
                        "ALTER TABLE {} DROP INDEX {}{ONLINE}",
                        self.table(table),
                        quote(&name)
                    ))
                    .unless(not(&index_exists(table, &name))),
                );
            }
            let drops = Self::each(table, |it| format!("DROP COLUMN {}", quote(&it.new_name())));
            columns.push(
                Statement::new(format!("ALTER TABLE {} {drops}{ONLINE}", self.table(table)))
                    .unless(not(&column_exists(table, &table.columns[0].new_name())))
                    .waiting(),
            );
        }
        columns.push(Statement::new(format!(
            "DROP TABLE IF EXISTS {}",
            self.work()
        )));
        steps.push(Self::online(
            "drop_columns",
            "Drops the new columns, their indexes and the work list",
            REBUILT,
            self.rows(100_000.0),
            columns,
        ));
        steps
    }

    /// A switch that was cut off before it exchanged a name has dropped triggers, and rows that refer to others are refused
    /// without them. Triggers that never were are not made: the work list comes after them, and the server may refuse them.
    fn missing_triggers(&self) -> Step {
        let mut statements = Vec::new();
        let work = named("ordid_work_", &self.found.name, "");
        let had_triggers = format!(
            "SELECT 1 FROM information_schema.tables WHERE {}",
            of(&self.found.schema, &work)
        );
        for table in &self.found.tables {
            let needs = [
                column_exists(self.main(), &self.key().new_name()),
                column_exists(table, &table.columns[0].new_name()),
            ];
            for (name, schema, sql) in self.triggers(table, true) {
                statements.push(Statement::new(sql).unless(format!(
                    "SELECT 1 FROM dual WHERE EXISTS ({}) OR NOT EXISTS ({had_triggers}) OR NOT EXISTS ({}) OR NOT EXISTS ({})",
                    trigger_exists(&schema, &name),
                    needs[0],
                    needs[1]
                )));
            }
        }
        Self::online(
            "triggers",
            "Creates triggers again that a switch has dropped which was cut off",
            BRIEF,
            0.1,
            statements,
        )
    }

    fn drop_foreign_keys(&self) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            for (_, foreign_key) in table.references() {
                let name = Self::new_key_of(foreign_key);
                statements.push(
                    Statement::new(format!(
                        "ALTER TABLE {} DROP FOREIGN KEY {}",
                        self.table(table),
                        quote(&name)
                    ))
                    .unless(not(&foreign_key_exists(table, &name))),
                );
            }
        }
        Self::online(
            "foreign_keys",
            "Drops the foreign keys between the new columns",
            BRIEF,
            0.1,
            statements,
        )
    }

    pub(in crate::migration::mysql) fn back(&self) -> Vec<Step> {
        let mut statements = self.drop_triggers();
        for table in &self.found.tables {
            let is_done = not(&column_exists(table, &table.columns[0].old_name()));
            statements.extend(self.show_old(table).map(|it| it.unless(is_done)));
            for column in self.given_defaults(table) {
                statements.push(
                    Statement::new(format!(
                        "ALTER TABLE {} ALTER COLUMN {} DROP DEFAULT",
                        self.table(table),
                        quote(&column.old_name())
                    ))
                    .unless(not(&column_exists(table, &column.old_name()))),
                );
            }
            statements.push(
                Statement::new(self.exchange(table, NEW, OLD))
                    .unless(not(&column_exists(table, &table.columns[0].old_name()))),
            );
            statements.extend(self.hide_new(table));
        }
        statements.extend(self.create_triggers(true));
        let check = Self::step(
            "check",
            "Counts and joins new and old keys: there is no way back unless every row has its old key, and every reference its row",
            NONE,
            self.rows(200_000.0),
            Action::Check {
                checks: self.pairs("old", Column::old_name),
                guards: Vec::new(),
            },
        );
        let switch = Self::step(
            "switch_back",
            "Under LOCK TABLES: gives the old columns their names again; triggers fill the new ones",
            "all tables, for some tens of milliseconds, once their running transactions are done",
            0.1,
            Action::Switch {
                lock: self.lock(),
                guards: self.guards_before_back(),
                checks: self.lost_links("old", Column::old_name),
                repairs: self.repairs(),
                statements,
                unlock: vec!["UNLOCK TABLES".to_owned()],
            },
        );
        let mut steps = vec![check, switch];
        steps.extend(self.undo());
        steps
    }

    pub(in crate::migration::mysql) fn map(&self) -> Vec<Step> {
        let name = map_name(&self.found.name);
        let map = MySql::quote_table(Some(&self.found.schema), &name);
        // The columns are like those that they are read from: other collations would take two keys for one.
        let create = format!(
            "CREATE TABLE {map} (PRIMARY KEY (old_key)) ENGINE=InnoDB AS SELECT {} AS old_key, {} AS new_key FROM {}",
            quote(&self.key().old_name()),
            quote(&self.key().name),
            self.table(self.main())
        );
        map_steps(
            format!(
                "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables WHERE {}",
                of(&self.found.schema, &name)
            ),
            self.rows(200_000.0),
            Action::Online {
                statements: vec![
                    Statement::new(create).after(format!("DROP TABLE IF EXISTS {map}")),
                ],
            },
        )
    }

    pub(in crate::migration::mysql) fn finish(&self) -> Vec<Step> {
        let mut locked = Vec::new();
        let mut columns = Vec::new();
        for table in self.found.tables.iter().rev() {
            let name = self.table(table);
            for (column, foreign_key) in table.references() {
                let new = Self::new_key_of(foreign_key);
                // While there is the other name: this one belongs to the old column.
                locked.push(
                    Statement::new(format!("ALTER TABLE {name} DROP FOREIGN KEY {}", quote(&foreign_key.name)))
                        .unless(not(&format!(
                            "SELECT 1 FROM information_schema.key_column_usage WHERE {} AND constraint_name = {} AND column_name = {}",
                            of(&table.schema, &table.name),
                            literal(&foreign_key.name),
                            literal(&column.old_name())
                        ))),
                );
                columns.push(
                    Statement::new(self.add_foreign_key(
                        table,
                        &foreign_key.name,
                        &column.name,
                        &self.key().name,
                        &foreign_key.actions,
                    ))
                    .unless(foreign_key_exists(table, &foreign_key.name)),
                );
                columns.push(
                    Statement::new(format!(
                        "ALTER TABLE {name} DROP FOREIGN KEY {}",
                        quote(&new)
                    ))
                    .unless(not(&foreign_key_exists(table, &new))),
                );
            }
            // Nothing fills the old columns any more: rows would have the same default. AUTO_INCREMENT goes on, and needs its
            // index.
            let is_filled = |index: &Index| {
                index.is_primary
                    && table.title() == self.main().title()
                    && self.found.key.is_auto_increment()
            };
            let (unique, rest): (Vec<&Index>, Vec<&Index>) = table
                .indexes
                .iter()
                .partition(|index| index.is_unique && !is_filled(index));
            for index in unique {
                let index = Self::old_index(index);
                locked.push(
                    Statement::new(format!(
                        "ALTER TABLE {name} DROP INDEX {}{ONLINE}",
                        quote(&index)
                    ))
                    .unless(not(&index_exists(table, &index))),
                );
            }
            let mut parts: Vec<String> = rest
                .iter()
                .map(|it| format!("DROP INDEX {}", quote(&Self::old_index(it))))
                .collect();
            parts.push(Self::each(table, |it| {
                format!("DROP COLUMN {}", quote(&it.old_name()))
            }));
            let in_primary: Vec<&str> =
                Self::in_primary(table).map(|it| it.name.as_str()).collect();
            for column in table
                .columns
                .iter()
                .filter(|it| it.not_null && it.reference.is_some())
            {
                parts.push(match in_primary.contains(&column.name.as_str()) {
                    true => format!("ALTER COLUMN {} DROP DEFAULT", quote(&column.name)),
                    false => format!(
                        "MODIFY {} {} NOT NULL{}",
                        quote(&column.name),
                        self.sql_type(),
                        comment_of(column.comment.as_ref())
                    ),
                });
            }
            columns.push(
                Statement::new(format!("ALTER TABLE {name} {}{ONLINE}", parts.join(", ")))
                    .unless(not(&column_exists(table, &table.columns[0].old_name())))
                    .waiting(),
            );
        }
        locked.extend(self.drop_triggers());
        columns.push(Statement::new(format!(
            "DROP TABLE IF EXISTS {}",
            self.work()
        )));
        vec![
            Self::step(
                "check",
                "Looks for what others have made on the old columns, which would be dropped with them",
                NONE,
                0.1,
                Action::Check {
                    checks: Vec::new(),
                    guards: self.guards_before_finish(),
                },
            ),
            Self::step(
                "drop_triggers",
                "Under LOCK TABLES: drops the old foreign keys and the triggers",
                "all tables, for some milliseconds",
                0.1,
                Action::Switch {
                    lock: self.lock(),
                    guards: Vec::new(),
                    checks: Vec::new(),
                    repairs: Vec::new(),
                    statements: locked,
                    unlock: vec!["UNLOCK TABLES".to_owned()],
                },
            ),
            Self::online(
                "drop_columns",
                "Drops the old columns and their indexes, and gives the foreign keys their names",
                REBUILT,
                self.rows(100_000.0),
                columns,
            ),
        ]
    }
}
