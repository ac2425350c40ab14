//! The SQL of a rebuild.

use super::{
    super::{
        model::{Action, Check, Step},
        request::Refusals,
        sqlite_ddl::{has_word, retyped, without_rowid},
        subject::{literal, map_name, map_steps, named},
        target::Target,
    },
    Rebuilt, quote,
};

/// The kind of the old keys, and of those that a rollback gives to new rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OldKey {
    /// Numbers: the next ones.
    Number,
    /// UUIDs, or whatever is a text.
    Text,
    /// UUIDs of 16 bytes.
    Blob,
}

/// Writes the SQL.
pub(super) struct Writer<'a> {
    pub(super) tables: &'a [Rebuilt],
    pub(super) key: &'a str,
    /// The type of the old key and its collation.
    pub(super) map_type: &'a str,
    pub(super) old_key: OldKey,
    pub(super) created: Option<&'a str>,
    pub(super) target: &'a Target,
    pub(super) rows: i64,
    /// Whether the table gets the option `WITHOUT ROWID`.
    pub(super) is_without_rowid: bool,
}

/// Returns an expression of the microseconds of a column; 0 where it has no time that can be read. A REAL may be a Julian day,
/// here one from 1970 to 9999; as seconds these numbers would be days of 1970.
pub(super) fn micros_of(column: &str) -> String {
    let column = quote(column);
    format!(
        "coalesce(CASE WHEN typeof({column}) = 'text' THEN CAST(round((julianday({column}) - 2440587.5) * 86400000) AS INTEGER) * \
         1000 WHEN typeof({column}) = 'blob' THEN NULL WHEN typeof({column}) = 'real' AND {column} BETWEEN 2440587.5 AND 5373484.5 THEN \
         CAST(round(({column} - 2440587.5) * 86400000) AS INTEGER) * 1000 WHEN {column} > 100000000000000 THEN {column} WHEN {column} > 100000000000 \
         THEN {column} * 1000 ELSE CAST({column} * 1000000 AS INTEGER) END, 0)"
    )
}

/// Shows the rows whose reference is to no row.
///
/// The sign takes the affinity from a reference, so that the key's is applied to its value, as a foreign key does. Otherwise
/// the reference 7 in a column of integers would find the key `'007'`, too.
pub(super) fn dangling(table: &str, column: &str, parent: &str, key: &str) -> Check {
    let column_name = quote(column);
    Check::of_rows(
        format!("rows of {table} whose {column} is not in {parent}"),
        format!(
            "SELECT * FROM {} AS it WHERE it.{column_name} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {} AS o WHERE o.{} = \
             +it.{column_name})",
            quote(table),
            quote(parent),
            quote(key)
        ),
    )
}

impl Writer<'_> {
    fn beside(&self, prefix: &str) -> String {
        quote(&named(prefix, &self.tables[0].name, ""))
    }

    fn map(&self) -> String {
        self.beside("ordid_map_")
    }

    /// The table that keeps what the tables were after the move.
    fn definitions(&self) -> String {
        self.beside("ordid_tables_")
    }

    /// The table that keeps the counters of `AUTOINCREMENT`, which go with the old tables.
    fn sequences(&self) -> String {
        self.beside("ordid_sequences_")
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.tables.iter().map(|it| literal(&it.name)).collect();
        names.join(", ")
    }

    /// Whether one of the tables has a counter.
    fn has_sequences(&self) -> bool {
        self.tables
            .iter()
            .any(|it| has_word(&it.create, "AUTOINCREMENT"))
    }

    fn seconds(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
        let rows = self.rows as f64;
        (rows / 100_000.0).max(0.1)
    }

    /// Returns an expression of the microseconds of a row.
    fn micros(&self) -> String {
        match self.created {
            Some(column) => micros_of(column),
            None => format!(
                "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000 - (count(*) OVER () - row_number() OVER (ORDER BY {0})) \
                 * 1000",
                quote(self.key)
            ),
        }
    }

    /// Returns the name by which the copy of a table gets the rowids of its rows, of which others may have notes, such as a
    /// full-text index. `None` if a column has them already, or the copy has none.
    fn kept_rowid(&self, table: &Rebuilt, is_back: bool) -> Option<&'static str> {
        let is_in_a_column = table.integer_key.as_ref().is_some_and(|key| {
            // The move gives this key another type, so it is not the rowid any more.
            is_back || !table.moved.iter().any(|(moved, _)| moved == key)
        });
        let loses_it = self.is_without_rowid && table.name == self.tables[0].name;
        table.rowid.filter(|_| !is_in_a_column && !loses_it)
    }

    /// Copies each table into one of the new definition, which takes its place.
    fn copies(&self, create: impl Fn(&Rebuilt) -> String, is_back: bool) -> Vec<String> {
        let (value, by) = match is_back {
            true => ("old_key", "new_key"),
            false => ("new_key", "old_key"),
        };
        let mut sql = Vec::new();
        for table in self.tables {
            let new = quote(&named("ordid_new_", &table.name, ""));
            let name = quote(&table.name);
            let definition = create(table);
            let has_sequence = has_word(&definition, "AUTOINCREMENT");
            sql.push(definition);
            let mut columns: Vec<String> = table.columns.iter().map(|it| quote(it)).collect();
            // In the order of the new key, so that its pages are full.
            let is_key = |column: &String| {
                table
                    .moved
                    .iter()
                    .any(|(name, is_key)| *is_key && name == column)
            };
            let order = match table.columns.iter().position(is_key) {
                Some(at) => format!(" ORDER BY {}", at + 1),
                None => String::new(),
            };
            let mut values: Vec<String> = table
                .columns
                .iter()
                .map(|it| match table.moved.iter().any(|(moved, _)| moved == it) {
                    true => format!(
                        // A reference to a row that is not there stays what it is, and the check finds it.
                        "coalesce((SELECT m.{value} FROM {0} AS m WHERE m.{by} = +it.{1}), it.{1})",
                        self.map(),
                        quote(it)
                    ),
                    false => format!("it.{}", quote(it)),
                })
                .collect();
            if let Some(rowid) = self.kept_rowid(table, is_back) {
                columns.push(rowid.to_owned());
                values.push(format!("it.{rowid}"));
            }
            sql.push(format!(
                "INSERT INTO {new} ({}) SELECT {} FROM {name} AS it{order}",
                columns.join(", "),
                values.join(", ")
            ));
            sql.push(format!("DROP TABLE {name}"));
            sql.push(format!("ALTER TABLE {new} RENAME TO {name}"));
            if has_sequence {
                sql.extend(self.restored_sequence(&table.name));
            }
            sql.extend(table.others.iter().cloned());
            // They went with the old table.
            if table.has_statistics {
                sql.push(format!("ANALYZE {name}"));
            }
        }
        sql
    }

    /// Sets the counter of a table at least to what it was, so that no key is given out a second time.
    fn restored_sequence(&self, table: &str) -> [String; 2] {
        let (kept, name) = (self.sequences(), literal(table));
        [
            format!(
                "INSERT INTO sqlite_sequence (name, seq) SELECT name, seq FROM {kept} WHERE name = {name} AND NOT EXISTS (SELECT 1 \
                 FROM sqlite_sequence WHERE name = {name})"
            ),
            format!(
                "UPDATE sqlite_sequence SET seq = max(seq, coalesce((SELECT k.seq FROM {kept} AS k WHERE k.name = {name}), 0)) WHERE \
                 name = {name}"
            ),
        ]
    }

    fn counts(&self) -> Vec<Check> {
        let count = |table: &Rebuilt| {
            Check::new(
                format!("rows of {}", table.name),
                format!("SELECT count(*) FROM {}", quote(&table.name)),
            )
        };
        self.tables.iter().map(count).collect()
    }

    fn checks(&self) -> Vec<Check> {
        let main = &self.tables[0].name;
        let mut checks = Vec::new();
        for table in self.tables {
            for (column, _) in table.moved.iter().filter(|(_, is_key)| !is_key) {
                checks.push(dangling(&table.name, column, main, self.key));
            }
        }
        checks
    }

    pub(super) fn forth(&self, refusals: &mut Refusals) -> Step {
        let map = self.map();
        let name = quote(&self.tables[0].name);
        let key = quote(self.key);
        let order = match self.created {
            Some(column) => format!("{}, {}, {key}", self.micros(), quote(column)),
            None => key.clone(),
        };
        let sql_type = self.target.column.sql_type;
        for table in self.tables {
            if let Err(reason) = retyped(&table.create, "x", &table.moved, sql_type) {
                refusals.add(format!("{}: {reason}", table.name));
            }
        }
        let create = |table: &Rebuilt| {
            let new = quote(&named("ordid_new_", &table.name, ""));
            let new = retyped(&table.create, &new, &table.moved, sql_type).unwrap_or_default();
            match self.is_without_rowid && table.name == self.tables[0].name {
                true => without_rowid(&new),
                false => new,
            }
        };
        let mut before_copies = vec![
            format!("DROP TABLE IF EXISTS {map}"),
            format!(
                "CREATE TABLE {map} (position INTEGER NOT NULL PRIMARY KEY, old_key {} NOT NULL UNIQUE, micros INTEGER, new_key {} UNIQUE)",
                // With another affinity than the columns', the index would not be used.
                self.map_type,
                sql_type.split(' ').next().unwrap_or_default()
            ),
            format!(
                "INSERT INTO {map} (position, old_key, micros) SELECT row_number() OVER (ORDER BY {order}), {key}, {} FROM {name}",
                self.micros()
            ),
        ];
        if self.has_sequences() {
            let kept = self.sequences();
            before_copies.extend([
                format!("DROP TABLE IF EXISTS {kept}"),
                format!(
                    "CREATE TABLE {kept} (name TEXT NOT NULL PRIMARY KEY, seq INTEGER NOT NULL)"
                ),
                self.kept_sequences(),
            ]);
        }
        let mut statements = self.copies(create, false);
        let definitions = self.definitions();
        statements.extend([
            format!("DROP TABLE IF EXISTS {definitions}"),
            format!(
                "CREATE TABLE {definitions} AS SELECT tbl_name AS name, sql AS definition FROM sqlite_schema WHERE tbl_name IN ({}) \
                 AND sql IS NOT NULL ORDER BY type, name",
                self.names()
            ),
        ]);
        Step {
            name: "rebuild".to_owned(),
            on: None,
            what: "In one transaction: makes a key for each row, in the order of their times, and rebuilds the tables with it".to_owned(),
            locks: "the file: others wait to write until the COMMIT".to_owned(),
            seconds: self.seconds(),
            action: Action::Rebuild {
                before: before(),
                expected: String::new(),
                counts: self.counts(),
                map: before_copies,
                read: format!(
                    "SELECT position, micros FROM {map} WHERE position > {{after}} ORDER BY position LIMIT {{chunk}}"
                ),
                row: "({position},{key})".to_owned(),
                write: format!(
                    "UPDATE {map} SET new_key = k.column2 FROM (VALUES {{rows}}) AS k WHERE position = k.column1"
                ),
                statements,
                checks: self.checks(),
                after: after(),
            },
        }
    }

    /// Notes the counters, which only rise.
    fn kept_sequences(&self) -> String {
        format!(
            "INSERT INTO {} (name, seq) SELECT name, coalesce(max(seq), 0) FROM sqlite_sequence WHERE name IN ({}) GROUP BY name ON \
             CONFLICT (name) DO UPDATE SET seq = max(seq, excluded.seq)",
            self.sequences(),
            self.names()
        )
    }

    /// Returns an expression of the old key of a row that has none.
    fn fresh(&self) -> String {
        let text = "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a' || \
                    substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))";
        match self.old_key {
            OldKey::Text => text.to_owned(),
            OldKey::Blob => format!("unhex({text}, '-')"),
            OldKey::Number => {
                let highest = format!("SELECT max(old_key) AS seq FROM {}", self.map());
                let highest = match self.has_sequences() {
                    true => format!(
                        "{highest} UNION ALL SELECT seq FROM {} WHERE name = {}",
                        self.sequences(),
                        literal(&self.tables[0].name)
                    ),
                    false => highest,
                };
                format!(
                    "(SELECT coalesce(max(seq), 0) FROM ({highest})) + row_number() OVER (ORDER BY {})",
                    quote(self.key)
                )
            }
        }
    }

    pub(super) fn back(&self) -> Step {
        let map = self.map();
        let (name, key) = (quote(&self.tables[0].name), quote(self.key));
        let create = |table: &Rebuilt| {
            let new = quote(&named("ordid_new_", &table.name, ""));
            retyped(&table.create, &new, &[], "").unwrap_or_default()
        };
        let mut statements = Vec::new();
        if self.has_sequences() {
            statements.push(self.kept_sequences());
        }
        statements.extend([
            // Before the keys of rows that are gone are forgotten: they are not given out again.
            format!(
                "INSERT INTO {map} (position, old_key, new_key) SELECT (SELECT coalesce(max(position), 0) FROM {map}) + row_number() OVER \
                 (ORDER BY {key}), {}, {key} FROM {name} WHERE {key} NOT IN (SELECT new_key FROM {map})",
                self.fresh()
            ),
            format!("DELETE FROM {map} WHERE new_key NOT IN (SELECT {key} FROM {name})"),
        ]);
        statements.extend(self.copies(create, true));
        statements.extend(self.drops());
        Step {
            name: "rebuild".to_owned(),
            on: None,
            what: "In one transaction: rebuilds the tables with their old keys; rows that have none get one".to_owned(),
            locks: "the file: others wait to write until the COMMIT".to_owned(),
            seconds: self.seconds(),
            action: Action::Rebuild {
                before: before(),
                expected: format!("SELECT name, definition FROM {}", self.definitions()),
                counts: self.counts(),
                map: Vec::new(),
                read: String::new(),
                row: String::new(),
                write: String::new(),
                statements,
                checks: self.checks(),
                after: after(),
            },
        }
    }

    /// Drops what is beside the tables. It has to be there: otherwise a rollback was faster than the end.
    fn drops(&self) -> Vec<String> {
        let mut names = vec![self.map(), self.definitions()];
        if self.has_sequences() {
            names.push(self.sequences());
        }
        let drop = |name: &String| format!("DROP TABLE {name}");
        names.iter().map(drop).collect()
    }

    pub(super) fn kept_map(&self) -> Vec<Step> {
        let name = map_name(&self.tables[0].name);
        let kept = quote(&name);
        map_steps(
            format!(
                "SELECT name FROM sqlite_schema WHERE name = {} COLLATE NOCASE",
                literal(&name)
            ),
            self.seconds(),
            Action::Transaction {
                statements: vec![
                    format!(
                        "CREATE TABLE {kept} (old_key {} NOT NULL PRIMARY KEY, new_key {} NOT NULL)",
                        self.map_type,
                        self.target
                            .column
                            .sql_type
                            .split(' ')
                            .next()
                            .unwrap_or_default()
                    ),
                    format!(
                        "INSERT INTO {kept} (old_key, new_key) SELECT old_key, new_key FROM {}",
                        self.map()
                    ),
                ],
            },
        )
    }

    pub(super) fn drop_map(&self) -> Step {
        Step {
            name: "drop_map".to_owned(),
            on: None,
            what: "Drops the map of old and new keys".to_owned(),
            locks: "the file, for some milliseconds".to_owned(),
            seconds: 0.1,
            action: Action::Transaction {
                statements: self.drops(),
            },
        }
    }
}

/// Settings that have no effect inside of a transaction.
fn before() -> Vec<String> {
    vec![
        "PRAGMA foreign_keys = OFF".to_owned(),
        // Views and triggers that name a table are left as they are while it is gone.
        "PRAGMA legacy_alter_table = ON".to_owned(),
    ]
}

fn after() -> Vec<String> {
    vec![
        "PRAGMA legacy_alter_table = OFF".to_owned(),
        "PRAGMA foreign_keys = ON".to_owned(),
    ]
}
