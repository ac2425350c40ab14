//! The triggers of MySQL and MariaDB, which keep old and new columns in step.

use ordid_core::storage::{Dialect as _, dialect::MySql};

use super::{NOW, Writer, is_uuid, micros, new_uuid, nothing};
use crate::{
    engine::Engine,
    migration::{
        mysql::quote,
        subject::{Column, Moved, literal, named},
    },
};

impl Writer<'_> {
    /// Returns statements that set `m` to the microseconds of a new row.
    fn row_time(&self) -> String {
        let now = micros(NOW);
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
    pub(super) fn triggers(&self, table: &Moved, before: bool) -> Vec<(String, String, String)> {
        let names = |column: &Column| match before {
            true => (quote(&column.name), quote(&column.new_name())),
            false => (quote(&column.name), quote(&column.old_name())),
        };
        let is_main = table.title() == self.main().title();
        let (key, other_key) = names(self.key());
        let (mut inserts, mut updates) = (String::new(), String::new());
        for (column, _) in table.references() {
            let (from, to) = names(column);
            let mut lookup = format!(
                "(SELECT it.{other_key} FROM {} AS it WHERE it.{key} = NEW.{from} LOCK IN SHARE MODE)",
                self.table(self.main())
            );
            // A row that is not there is for the foreign key to complain about. One that has no new key yet has NULL.
            if column.not_null && !before {
                lookup = format!("COALESCE({lookup}, {})", nothing(&column.sql_type));
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
            if !before {
                inserts.push_str(&self.found_by_old(column, is_main));
            }
            inserts.push_str(&format!(" {set}"));
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
            // The work list has the old key of a row. One whose old key changes is found by nobody, and gets its new key here.
            if before {
                updates = format!(
                    " DECLARE m BIGINT; IF NEW.{other_key} IS NULL AND NOT (NEW.{key} <=> OLD.{key}) THEN {} SET NEW.{other_key} = \
                     {make}; END IF;{updates}",
                    self.row_time()
                );
            }
            if !before && self.needs_old_keys() {
                let old = &self.found.key.sql_type;
                let uuid = new_uuid(old);
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
        let body = format!("{insert}{inserts}");
        if !body.is_empty() {
            all.push(trigger(on_insert, "INSERT", &body));
        }
        if !updates.is_empty() {
            all.push(trigger(on_update, "UPDATE", &updates));
        }
        all
    }

    /// Returns a statement for an INSERT after the switch that gives the old column alone, as one by the place of columns may on
    /// servers without invisible columns: the trigger would empty the old column, and the link would be lost.
    fn found_by_old(&self, column: &Column, is_main: bool) -> String {
        let (from, to) = (quote(&column.name), quote(&column.old_name()));
        let (key, old_key) = (quote(&self.key().name), quote(&self.key().old_name()));
        let is_given = match column.not_null {
            // It has a default until --finish.
            true => format!("NEW.{to} <> {}", nothing(&column.sql_type)),
            false => format!("NEW.{to} IS NOT NULL"),
        };
        let own = match is_main {
            true => format!("IF NEW.{to} = NEW.{old_key} THEN SET NEW.{from} = NEW.{key}; ELSE "),
            false => String::new(),
        };
        let lookup = format!(
            "SET NEW.{from} = (SELECT it.{key} FROM {} AS it WHERE it.{old_key} = NEW.{to} LOCK IN SHARE MODE);",
            self.table(self.main())
        );
        let end = if is_main { " END IF;" } else { "" };
        let text = literal(&format!(
            "ordid: no row has the old key in {}",
            column.old_name()
        ))
        .replace('\\', "\\\\");
        format!(
            " IF NEW.{from} IS NULL AND {is_given} THEN {own}{lookup}{end} IF NEW.{from} IS NULL THEN SIGNAL SQLSTATE '45000' SET \
             MESSAGE_TEXT = {text}; END IF; END IF;"
        )
    }

    /// Whether a trigger has to make old keys: UUIDs of which the server makes none, or not if an INSERT has no list of columns
    /// (MySQL 9.7 leaves the default of an invisible column out then, if it is an expression).
    fn needs_old_keys(&self) -> bool {
        let key = &self.found.key;
        let is_left_out = self.engine == Engine::Mysql
            && self.found.hides_columns
            && key.extra.contains("default_generated")
            && is_uuid(&key.sql_type);
        !self.key_makes_itself() || is_left_out
    }

    pub(super) fn trigger_names(table: &Moved) -> [String; 2] {
        [
            named("ordid_insert_", &table.name, ""),
            named("ordid_update_", &table.name, ""),
        ]
    }
}
