//! Corrects what a switch that was cut off has left.

use super::{Writer, column_exists, new_uuid, nothing, trigger_exists};
use crate::{
    engine::Engine,
    migration::{model::Statement, mysql::quote},
};

impl Writer<'_> {
    /// Corrects what was written while a process that died had left the tables without triggers, and some of their names
    /// exchanged.
    pub(super) fn repairs(&self) -> Vec<Statement> {
        let mut statements = Vec::new();
        let (old, key, new) = (
            quote(&self.key().old_name()),
            quote(&self.key().name),
            quote(&self.key().new_name()),
        );
        let main_moved = column_exists(self.main(), &self.key().old_name());
        statements.extend(self.missing_old_key(&main_moved));
        statements.extend(self.missing_new_key(&main_moved));
        for (number, table) in self.found.tables.iter().enumerate() {
            for (column, _) in table.references() {
                let moved = column_exists(table, &column.old_name());
                let [on_insert, on_update] = Self::trigger_names(table);
                let guard = format!(
                    "(NOT EXISTS ({}) OR NOT EXISTS ({}))",
                    trigger_exists(&table.schema, &on_insert),
                    trigger_exists(&table.schema, &on_update)
                );
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
                    // On the way back.
                    (
                        format!("NOT EXISTS ({main_moved}) AND EXISTS ({moved})"),
                        &new,
                        &key,
                        &c_key,
                        &c_old,
                    ),
                ];
                for (case, by, value, from, to) in cases {
                    statements.push(
                        Statement::new(format!(
                            "UPDATE {} AS c{number} LEFT JOIN {} AS it ON it.{by} = c{number}.{from} SET c{number}.{to} = it.{value} \
                             WHERE NOT (c{number}.{to} <=> it.{value})",
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

    /// Makes the old key of a row that was inserted without a trigger and has the default instead. There is one row at most, as
    /// the column is unique.
    fn missing_old_key(&self, main_moved: &str) -> Option<Statement> {
        if self.key_makes_itself() {
            return None;
        }
        let (sql_type, column) = (&self.key().sql_type, quote(&self.key().old_name()));
        let [on_insert, _] = Self::trigger_names(self.main());
        let update = format!(
            "UPDATE {} SET {column} = {} WHERE {column} = {}",
            self.table(self.main()),
            new_uuid(sql_type),
            nothing(sql_type)
        );
        Some(Statement::new(update).unless(format!(
            "SELECT 1 FROM dual WHERE EXISTS ({}) OR NOT EXISTS ({main_moved})",
            trigger_exists(&self.main().schema, &on_insert)
        )))
    }

    /// Makes the new key of a row that was inserted without a trigger and without a list of columns: MySQL 9.7 gives an invisible
    /// column zeros then, and not its default if that is an expression.
    fn missing_new_key(&self, main_moved: &str) -> Vec<Statement> {
        if self.engine != Engine::Mysql || !self.found.hides_columns {
            return Vec::new();
        }
        let [on_insert, _] = Self::trigger_names(self.main());
        let has_trigger = trigger_exists(&self.main().schema, &on_insert);
        let statement = |column: &str, is_elsewhere: &str| {
            let column = quote(column);
            let update = format!(
                "UPDATE {} SET {column} = {} WHERE {column} = REPEAT(CHAR(0), 16)",
                self.table(self.main()),
                self.new_key()
            );
            Statement::new(update).unless(format!(
                "SELECT 1 FROM dual WHERE EXISTS ({has_trigger}) OR {is_elsewhere} ({main_moved})"
            ))
        };
        vec![
            statement(&self.key().new_name(), "EXISTS"),
            statement(&self.key().name, "NOT EXISTS"),
        ]
    }
}
