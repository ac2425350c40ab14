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
//! The switch renames columns and exchanges triggers under LOCK TABLES: whoever reads or writes in between waits. If the
//! process dies there, the server lets the tables go in between, with some names exchanged and no triggers. The next
//! `apply --resume` sees that by the triggers that are missing, and first corrects the rows that were written meanwhile.

use ordid_core::storage::{Dialect as _, dialect::MySql};

use super::{Found, FoundColumn, quote};
use crate::migration::{
    model::{Action, Check, Statement, Step},
    subject::{Column, ForeignKey, Index, Moved, literal, named, replace_identifier},
    target::Target,
};

const BRIEF: &str = "each table for some milliseconds, once its running transactions are done; nobody waits longer than the lock \
                     timeout";
const NONE: &str = "no table";
const ONLINE: &str = ", ALGORITHM=INPLACE, LOCK=NONE";

/// Writes the SQL.
pub(super) struct Writer<'a> {
    pub(super) found: &'a Found,
    pub(super) target: &'a Target,
    pub(super) created: Option<&'a FoundColumn>,
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
        steps.push(self.check());
        steps.push(self.primary());
        steps.push(self.switch());
        steps
    }

    fn columns(&self) -> Step {
        let statement = |table: &Moved| {
            let columns = Self::each(table, |it| {
                format!(
                    "ADD COLUMN {} {} NULL",
                    quote(&it.new_name()),
                    self.sql_type()
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
            "Adds an empty column beside each moved column",
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

    fn indexes(&self) -> Step {
        let statement = |table: &Moved| {
            let mut parts = Vec::new();
            for index in &table.indexes {
                let unique = if index.is_unique { "UNIQUE " } else { "" };
                parts.push(format!(
                    "ADD {unique}INDEX {} ({})",
                    quote(&Self::new_index(index)),
                    Self::list_of_new(table, index)
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
        };
        Self::online(
            "indexes",
            "Builds the same indexes on the new columns, and a unique one on the old key, which will not be the primary key",
            "no table: others read and write meanwhile",
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

    /// Returns statements that set `m` to the microseconds of a new row.
    fn row_time(&self) -> String {
        let now = "FLOOR(UNIX_TIMESTAMP(NOW(6))*1000000)";
        let Some(column) = self.created else {
            return format!("SET m = {now};");
        };
        let name = format!("NEW.{}", quote(&column.name));
        let set = match column.sql_type.starts_with("timestamp") {
            true => format!("SET m = COALESCE(FLOOR(UNIX_TIMESTAMP({name})*1000000), {now});"),
            false => format!("SET m = COALESCE({}, {now});", micros(&name)),
        };
        // Rows of one second would have keys in no order, if their time has no fraction.
        let unit = match (column.sql_type.as_str(), column.precision) {
            ("date", _) => 86_400_000_000_i64,
            (_, Some(digits @ 0..3)) => 10_i64.pow(6 - digits),
            _ => return format!("{set} SET m = GREATEST(m, 0);"),
        };
        format!(
            "{set} IF m > {now} - {unit} AND m <= {now} THEN SET m = {now}; END IF; SET m = GREATEST(m, 0);"
        )
    }

    /// The triggers of a table: their names, schemas and definitions. `before` the switch they fill new columns, after
    /// it old ones.
    fn triggers(&self, table: &Moved, before: bool) -> Vec<(String, String, String)> {
        let names = |column: &Column| match before {
            true => (quote(&column.name), quote(&column.new_name())),
            false => (quote(&column.name), quote(&column.old_name())),
        };
        let is_main = table.title() == self.main().title();
        let (key, other_key) = names(self.key());
        let mut references = String::new();
        let mut updates = String::new();
        for (column, _) in table.references() {
            let (from, to) = names(column);
            let filled = if before {
                self.sql_type()
            } else {
                &column.sql_type
            };
            let mut lookup = format!(
                "(SELECT it.{other_key} FROM {} AS it WHERE it.{key} = NEW.{from} LOCK IN SHARE MODE)",
                self.table(self.main())
            );
            // A row that is not there is for the foreign key to complain about.
            if column.not_null {
                lookup = format!("COALESCE({lookup}, {})", nothing(filled));
            }
            let own = match is_main {
                true => {
                    format!("ELSEIF NEW.{from} = NEW.{key} THEN SET NEW.{to} = NEW.{other_key}; ")
                }
                false => String::new(),
            };
            let set = format!(
                "IF NEW.{from} IS NULL THEN SET NEW.{to} = NULL; {own}ELSE SET NEW.{to} = {lookup}; END IF;"
            );
            references.push_str(&format!(" {set}"));
            updates.push_str(&format!(
                " IF NOT (NEW.{from} <=> OLD.{from}) OR NEW.{to} IS NULL THEN {set} END IF;"
            ));
        }
        let mut insert = String::new();
        if is_main {
            let make = self.target.mysql("m");
            insert = match before {
                true => format!(
                    " DECLARE m BIGINT; {} SET NEW.{other_key} = {make};",
                    self.row_time()
                ),
                false => String::new(),
            };
            if !before && !self.found.key.is_auto_increment() && self.found.key.default.is_none() {
                let old = &self.found.key.sql_type;
                let uuid = match old.as_str() {
                    "binary(16)" => "UNHEX(REPLACE(UUID(), '-', ''))",
                    _ => "UUID()",
                };
                insert.push_str(&format!(
                    " IF NEW.{other_key} IS NULL OR NEW.{other_key} = CAST({} AS {}) THEN SET NEW.{other_key} = {uuid}; END IF;",
                    nothing(old),
                    match old.as_str() {
                        "binary(16)" => "BINARY(16)",
                        "uuid" => "UUID",
                        _ => "CHAR",
                    }
                ));
            }
        }
        let [on_insert, on_update] = Self::trigger_names(table);
        let trigger = |name: String, event: &str, body: &str| {
            let sql = format!(
                "CREATE TRIGGER {} BEFORE {event} ON {} FOR EACH ROW BEGIN{body} END",
                MySql::quote_table(Some(&table.schema), &name),
                self.table(table)
            );
            (name, table.schema.clone(), sql)
        };
        let mut all = Vec::new();
        let body = format!("{insert}{references}");
        if !body.is_empty() {
            all.push(trigger(on_insert, "INSERT", &body));
        }
        if !updates.is_empty() {
            all.push(trigger(on_update, "UPDATE", &updates));
        }
        all
    }

    fn trigger_names(table: &Moved) -> [String; 2] {
        [
            named("ordid_insert_", &table.name, ""),
            named("ordid_update_", &table.name, ""),
        ]
    }

    fn work_list(&self) -> Step {
        let key = quote(&self.key().name);
        let table = self.table(self.main());
        let now = "FLOOR(UNIX_TIMESTAMP(NOW(6))*1000000)";
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
                        micros(&format!("MIN({column})"))
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

    /// What keeps columns that change by themselves as they are.
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
            Action::Keys {
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
            },
        )
    }

    fn references(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (number, table) in self.found.tables.iter().enumerate() {
            for (column, _) in table.references() {
                let (from, to) = (quote(&column.name), quote(&column.new_name()));
                steps.push(Self::step(
                    "references",
                    &format!("Fills the new column of {}.{} in chunks", table.title(), column.name),
                    "the rows of a chunk, until its COMMIT",
                    self.rows(10_000.0),
                    Action::References {
                        read: format!(
                            "SELECT MAX(position) FROM (SELECT position FROM {} WHERE position > {{after}} ORDER BY position LIMIT \
                             {{chunk}}) AS it",
                            self.work()
                        ),
                        write: vec![format!(
                            "UPDATE {} AS w STRAIGHT_JOIN {} AS it ON it.{} = w.old_key STRAIGHT_JOIN {} AS c ON c.{from} = w.old_key SET \
                             c.{to} = it.{}{} WHERE w.position > {{after}} AND w.position <= {{last}} AND c.{to} IS NULL",
                            self.work(),
                            self.table(self.main()),
                            quote(&self.key().name),
                            self.table(table),
                            quote(&self.key().new_name()),
                            self.kept(number, "c")
                        )],
                    },
                ));
            }
        }
        steps
    }

    fn check(&self) -> Step {
        let (main, key, new) = (
            self.table(self.main()),
            quote(&self.key().name),
            quote(&self.key().new_name()),
        );
        let mut checks = vec![
            Check::new(
                format!(
                    "rows of {} without a new key of their own",
                    self.main().title()
                ),
                format!("SELECT COUNT(*) - COUNT(DISTINCT {new}) FROM {main}"),
            ),
            Check::new(
                format!(
                    "rows of {} whose keys are not in the order of the work list",
                    self.main().title()
                ),
                format!(
                    "SELECT COUNT(*) FROM (SELECT it.{new} < LAG(it.{new}) OVER (ORDER BY w.position) AS falls FROM {} AS w JOIN \
                     {main} AS it ON it.{key} = w.old_key) AS pairs WHERE falls",
                    self.work()
                ),
            ),
        ];
        for table in &self.found.tables {
            for (column, _) in table.references() {
                checks.push(Check::new(
                    format!("rows of {} whose new {} is another row's", table.title(), column.name),
                    format!(
                        "SELECT COUNT(*) FROM {} AS c LEFT JOIN {main} AS it ON it.{new} = c.{} WHERE NOT (c.{} <=> it.{key})",
                        self.table(table),
                        quote(&column.new_name()),
                        quote(&column.name)
                    ),
                ));
            }
        }
        Self::step(
            "check",
            "Counts and joins old and new keys: nothing is switched unless every row has its key, and every reference its row",
            NONE,
            self.rows(200_000.0),
            Action::Check { checks },
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

    fn primary(&self) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            let Some(index) = table.indexes.iter().find(|it| it.is_primary) else {
                continue;
            };
            let mut parts = Vec::new();
            for column in Self::in_primary(table) {
                let default = match column.reference {
                    None => format!(
                        "({})",
                        self.target.mysql("FLOOR(UNIX_TIMESTAMP(NOW(6))*1000000)")
                    ),
                    Some(_) => nothing(self.sql_type()).to_owned(),
                };
                parts.push(format!(
                    "MODIFY {} {} NOT NULL DEFAULT {default}",
                    quote(&column.new_name()),
                    self.sql_type()
                ));
            }
            parts.push("DROP PRIMARY KEY".to_owned());
            parts.push(format!(
                "ADD PRIMARY KEY ({})",
                Self::list_of_new(table, index)
            ));
            parts.push(format!("DROP INDEX {}", quote(&Self::new_index(index))));
            statements.push(
                Statement::new(format!(
                    "ALTER TABLE {} {}{ONLINE}",
                    self.table(table),
                    parts.join(", ")
                ))
                .unless(not(&index_exists(table, &Self::new_index(index)))),
            );
        }
        Self::online(
            "primary_key",
            "Rebuilds the table in the order of the new key, which becomes the primary key; the old one stays unique",
            "no table while it is rebuilt; at the end each table for some milliseconds",
            self.rows(100_000.0),
            statements,
        )
    }

    fn lock(&self) -> Vec<String> {
        let mut tables: Vec<String> = self
            .found
            .tables
            .iter()
            .map(|table| format!("{} WRITE", self.table(table)))
            .collect();
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

    /// Corrects what was written while a process that died had left the tables without triggers, and some of their names
    /// exchanged.
    fn repairs(&self) -> Vec<Statement> {
        let mut statements = Vec::new();
        let (old, key, new) = (
            quote(&self.key().old_name()),
            quote(&self.key().name),
            quote(&self.key().new_name()),
        );
        let main_moved = column_exists(self.main(), &self.key().old_name());
        for table in &self.found.tables {
            for (column, _) in table.references() {
                let moved = column_exists(table, &column.old_name());
                let [trigger, _] = Self::trigger_names(table);
                let guard = format!("NOT EXISTS ({})", trigger_exists(&table.schema, &trigger));
                let (c_old, c_key, c_new) = (
                    quote(&column.old_name()),
                    quote(&column.name),
                    quote(&column.new_name()),
                );
                let cases = [
                    (
                        format!("NOT EXISTS ({main_moved}) AND NOT EXISTS ({moved})"),
                        &key,
                        &new,
                        &c_key,
                        &c_new,
                    ),
                    (
                        format!("EXISTS ({main_moved}) AND NOT EXISTS ({moved})"),
                        &old,
                        &key,
                        &c_key,
                        &c_new,
                    ),
                    (
                        format!("EXISTS ({main_moved}) AND EXISTS ({moved})"),
                        &key,
                        &old,
                        &c_key,
                        &c_old,
                    ),
                ];
                for (case, by, value, from, to) in cases {
                    statements.push(
                        Statement::new(format!(
                            "UPDATE {} AS c LEFT JOIN {} AS it ON it.{by} = c.{from} SET c.{to} = it.{value} WHERE NOT (c.{to} <=> \
                             it.{value})",
                            self.table(table),
                            self.table(self.main()),
                        ))
                        .unless(format!("SELECT 1 FROM dual WHERE NOT ({guard} AND {case})")),
                    );
                }
            }
        }
        statements
    }

    fn switch(&self) -> Step {
        let mut statements = self.repairs();
        statements.extend(self.drop_triggers());
        for table in &self.found.tables {
            let renames = Self::each(table, |it| {
                format!(
                    "RENAME COLUMN {1} TO {2}, RENAME COLUMN {0} TO {1}",
                    quote(&it.new_name()),
                    quote(&it.name),
                    quote(&it.old_name())
                )
            });
            let indexes: String = table
                .indexes
                .iter()
                .filter(|it| !it.is_primary)
                .map(|it| {
                    format!(
                        ", RENAME INDEX {0} TO {1}, RENAME INDEX {2} TO {0}",
                        quote(&it.name),
                        quote(&Self::old_index(it)),
                        quote(&Self::new_index(it))
                    )
                })
                .collect();
            statements.push(
                Statement::new(format!(
                    "ALTER TABLE {} {renames}{indexes}{ONLINE}",
                    self.table(table)
                ))
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
                statements,
                unlock: vec!["UNLOCK TABLES".to_owned()],
            },
        )
    }

    /// The old columns that nobody but a trigger fills after the switch: they have a default until then.
    fn given_defaults<'t>(&self, table: &'t Moved) -> impl Iterator<Item = &'t Column> {
        let key_makes_itself =
            self.found.key.is_auto_increment() || self.found.key.default.is_some();
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

    pub(super) fn undo(&self) -> Vec<Step> {
        let mut steps = vec![self.drop_foreign_keys()];
        let mut primary = Vec::new();
        for table in &self.found.tables {
            let Some(index) = table.indexes.iter().find(|it| it.is_primary) else {
                continue;
            };
            let nullable: String = Self::in_primary(table)
                .map(|it| {
                    format!(
                        "MODIFY {} {} NULL, ",
                        quote(&it.new_name()),
                        self.sql_type()
                    )
                })
                .collect();
            primary.push(
                Statement::new(format!(
                    "ALTER TABLE {} DROP PRIMARY KEY, ADD PRIMARY KEY ({}), {nullable}DROP INDEX {}{ONLINE}",
                    self.table(table),
                    index.definition,
                    quote(&Self::old_index(index))
                ))
                .unless(format!(
                    "SELECT 1 FROM dual WHERE NOT EXISTS ({}) OR EXISTS ({})",
                    index_exists(table, &Self::old_index(index)),
                    index_exists(table, &Self::new_index(index))
                )),
            );
        }
        steps.push(Self::online(
            "primary_key",
            "Rebuilds the table in the order of the old key, which becomes the primary key again",
            "no table while it is rebuilt; at the end each table for some milliseconds",
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
                    .unless(not(&column_exists(table, &table.columns[0].new_name()))),
            );
        }
        columns.push(Statement::new(format!(
            "DROP TABLE IF EXISTS {}",
            self.work()
        )));
        steps.push(Self::online(
            "drop_columns",
            "Drops the new columns, their indexes and the work list",
            "no table while it is rebuilt; at the end each table for some milliseconds",
            self.rows(100_000.0),
            columns,
        ));
        steps
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

    pub(super) fn back(&self) -> Vec<Step> {
        let mut statements = self.drop_triggers();
        for table in &self.found.tables {
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
            let renames = Self::each(table, |it| {
                format!(
                    "RENAME COLUMN {1} TO {0}, RENAME COLUMN {2} TO {1}",
                    quote(&it.new_name()),
                    quote(&it.name),
                    quote(&it.old_name())
                )
            });
            let indexes: String = table
                .indexes
                .iter()
                .filter(|it| !it.is_primary)
                .map(|it| {
                    format!(
                        ", RENAME INDEX {0} TO {2}, RENAME INDEX {1} TO {0}",
                        quote(&it.name),
                        quote(&Self::old_index(it)),
                        quote(&Self::new_index(it))
                    )
                })
                .collect();
            statements.push(
                Statement::new(format!(
                    "ALTER TABLE {} {renames}{indexes}{ONLINE}",
                    self.table(table)
                ))
                .unless(not(&column_exists(table, &table.columns[0].old_name()))),
            );
        }
        statements.extend(self.create_triggers(true));
        let mut steps = vec![Self::step(
            "switch_back",
            "Under LOCK TABLES: gives the old columns their names again; triggers fill the new ones",
            "all tables, for some tens of milliseconds, once their running transactions are done",
            0.1,
            Action::Switch {
                lock: self.lock(),
                statements,
                unlock: vec!["UNLOCK TABLES".to_owned()],
            },
        )];
        steps.extend(self.undo());
        steps
    }

    pub(super) fn finish(&self) -> Vec<Step> {
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
                            super::of(&table.schema, &table.name),
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
            let mut parts: Vec<String> = table
                .indexes
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
                        "MODIFY {} {} NOT NULL",
                        quote(&column.name),
                        self.sql_type()
                    ),
                });
            }
            columns.push(
                Statement::new(format!("ALTER TABLE {name} {}{ONLINE}", parts.join(", ")))
                    .unless(not(&column_exists(table, &table.columns[0].old_name()))),
            );
        }
        locked.extend(self.drop_triggers());
        if !self.found.key.is_auto_increment()
            && let Some(index) = self.main().indexes.iter().find(|it| it.is_primary)
        {
            // Nothing fills the old key any more, and its default is there once only.
            let name = quote(&Self::old_index(index));
            locked.push(
                Statement::new(format!(
                    "ALTER TABLE {0} DROP INDEX {name}, ADD INDEX {name} ({1}){ONLINE}",
                    self.table(self.main()),
                    quote(&self.key().old_name())
                ))
                .unless(not(&column_exists(self.main(), &self.key().old_name()))),
            );
        }
        columns.push(Statement::new(format!(
            "DROP TABLE IF EXISTS {}",
            self.work()
        )));
        vec![
            Self::step(
                "drop_triggers",
                "Under LOCK TABLES: drops the old foreign keys and the triggers",
                "all tables, for some milliseconds",
                0.1,
                Action::Switch {
                    lock: self.lock(),
                    statements: locked,
                    unlock: vec!["UNLOCK TABLES".to_owned()],
                },
            ),
            Self::online(
                "drop_columns",
                "Drops the old columns and their indexes, and gives the foreign keys their names",
                "no table while it is rebuilt; at the end each table for some milliseconds",
                self.rows(100_000.0),
                columns,
            ),
        ]
    }
}

fn micros(column: &str) -> String {
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
