//! Decides which columns `SELECT *` and an INSERT without columns see: the old ones until the switch, and then the new ones.

use super::{Writer, nothing};
use crate::{
    engine::Engine,
    migration::{
        model::Statement,
        mysql::{definition_of, quote},
        subject::{Column, Moved},
    },
};

impl Writer<'_> {
    /// Shows the new columns, which have the names, and hides the old ones.
    pub(super) fn show_new(&self, table: &Moved) -> Option<Statement> {
        let given: Vec<&str> = self
            .given_defaults(table)
            .map(|it| it.name.as_str())
            .collect();
        self.change(table, |writer, it| {
            let default = match given.contains(&it.name.as_str()) {
                true => format!(" DEFAULT {}", nothing(&it.sql_type)),
                false => String::new(),
            };
            let old = format!("{}{default}", writer.old_definition(table, it));
            [
                writer.visibility(&it.name, &writer.new_definition(table, it), true),
                writer.visibility(&it.old_name(), &old, false),
            ]
        })
    }

    /// Shows the old columns while they have other names.
    pub(super) fn show_old(&self, table: &Moved) -> Option<Statement> {
        self.change(table, |writer, it| {
            let old = writer.old_definition(table, it);
            [writer.visibility(&it.old_name(), old, true)]
        })
    }

    /// Hides the new columns when the old ones have their names again.
    pub(super) fn hide_new(&self, table: &Moved) -> Option<Statement> {
        self.change(table, |writer, it| {
            [writer.visibility(&it.new_name(), &writer.new_definition(table, it), false)]
        })
    }

    /// It is a statement of its own, since the server does not let it name columns that are renamed by the same one.
    fn change<const N: usize>(
        &self,
        table: &Moved,
        parts: impl Fn(&Self, &Column) -> [String; N],
    ) -> Option<Statement> {
        if !self.found.hides_columns {
            return None;
        }
        let parts: Vec<String> = table
            .columns
            .iter()
            .flat_map(|it| parts(self, it))
            .collect();
        Some(Statement::new(format!(
            "ALTER TABLE {} {}, ALGORITHM=INSTANT",
            self.table(table),
            parts.join(", ")
        )))
    }

    /// MariaDB has no other way than to say the whole definition again.
    fn visibility(&self, name: &str, definition: &str, is_visible: bool) -> String {
        let name = quote(name);
        match (self.engine, is_visible) {
            (Engine::Mariadb, true) => format!("MODIFY {name} {definition}"),
            (Engine::Mariadb, false) => format!("MODIFY {name} {definition} INVISIBLE"),
            (_, true) => format!("ALTER COLUMN {name} SET VISIBLE"),
            (_, false) => format!("ALTER COLUMN {name} SET INVISIBLE"),
        }
    }

    /// Returns the definition of an old column, as the server writes it. A plan without one is refused.
    fn old_definition<'c>(&'c self, table: &Moved, column: &'c Column) -> &'c str {
        definition_of(self.catalog, table, column).unwrap_or(&column.sql_type)
    }
}
