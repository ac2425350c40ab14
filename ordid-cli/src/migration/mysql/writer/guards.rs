//! Looks for things that must not be there before the switch, the way back and the end: indexes, foreign keys and checks of moved columns
//! that the plan does not know.

use super::{Writer, column_exists, index_exists};
use crate::{
    engine::Engine,
    migration::{
        model::Guard,
        mysql::{
            dependents::{NOT_IN_PLACE, generated},
            of, reads_in_default, refers_to,
        },
        subject::{Column, Index, Moved, literal},
    },
};

impl Writer<'_> {
    pub(super) fn guards_before_switch(&self) -> Vec<Guard> {
        let mut guards = vec![
            Guard::before_switch(self.unknown(|it| it.name.clone(), true)),
            Guard::new(
                "is missing, and the switch renames it",
                self.missing(Column::new_name, Self::new_index),
                "create it again and go on with --resume, or go back with --rollback",
            ),
        ];
        guards.extend(self.generated("go on with --resume"));
        guards
    }

    pub(super) fn guards_before_back(&self) -> Vec<Guard> {
        vec![
            Guard::before_back(self.unknown(|it| it.name.clone(), true)),
            Guard::new(
                "is missing, and the way back renames it",
                self.missing(Column::old_name, Self::old_index),
                "create it again and repeat --rollback, or end the move with --finish",
            ),
        ]
    }

    pub(super) fn guards_before_finish(&self) -> Vec<Guard> {
        let mut guards = vec![Guard::before_finish(self.unknown(Column::old_name, false))];
        guards.extend(self.generated("repeat --finish"));
        guards
    }

    /// Generated columns that were made after the plan, and beside which the old columns could not be dropped.
    fn generated(&self, then: &str) -> Option<Guard> {
        let queries: Vec<String> = self.found.tables.iter().map(generated).collect();
        (self.engine == Engine::Mariadb).then(|| {
            Guard::new(
                NOT_IN_PLACE,
                queries.join(" UNION ALL "),
                format!("drop it and {then}, or go back with --rollback"),
            )
        })
    }

    /// The query of what a switch renames and does not find: it could not be completed, and triggers would be gone.
    fn missing(&self, column: fn(&Column) -> String, index: fn(&Index) -> String) -> String {
        let mut parts = Vec::new();
        let mut need = |what: &str, name: &str, table: &Moved, exists: String| {
            parts.push(format!(
                "SELECT {} AS name FROM dual WHERE NOT EXISTS ({exists})",
                literal(&format!("{what} {name} of {}", table.title()))
            ));
        };
        for table in &self.found.tables {
            for name in table
                .columns
                .iter()
                .flat_map(|it| [it.name.clone(), column(it)])
            {
                need("column", &name, table, column_exists(table, &name));
            }
            let others = table.indexes.iter().filter(|it| !it.is_primary);
            for name in others.flat_map(|it| [it.name.clone(), index(it)]) {
                need("index", &name, table, index_exists(table, &name));
            }
        }
        parts.join(" UNION ALL ")
    }

    /// The query of what has columns of these names. Indexes and foreign keys of the plan have columns that have the names,
    /// and after the switch the foreign keys of the old columns.
    fn unknown(&self, name: fn(&Column) -> String, knows_indexes: bool) -> String {
        let list = |names: Vec<String>| names.join(", ");
        let mut parts = Vec::new();
        for table in &self.found.tables {
            let title = literal(&format!(" of {}", table.title()));
            let here = of(&table.schema, &table.name);
            let columns = list(table.columns.iter().map(|it| literal(&name(it))).collect());
            let mut known = vec!["''".to_owned()];
            if knows_indexes {
                known.extend(table.indexes.iter().map(|it| literal(&it.name)));
            }
            // An index of an expression has no column's name.
            parts.push(format!(
                "SELECT CONCAT('index ', index_name, {title}) AS name FROM information_schema.statistics WHERE {here} AND \
                 (column_name IN ({columns}) OR column_name IS NULL) AND index_name NOT IN ({}) AND index_name NOT LIKE 'ordid\\_%'",
                list(known)
            ));
            let known = table.references().map(|(_, it)| literal(&it.name));
            let known = list([String::from("''")].into_iter().chain(known).collect());
            parts.push(format!(
                "SELECT CONCAT('foreign key ', constraint_name, {title}) FROM information_schema.key_column_usage WHERE {here} AND \
                 column_name IN ({columns}) AND referenced_table_name IS NOT NULL AND constraint_name NOT IN ({known}) AND \
                 constraint_name NOT LIKE 'ordid\\_%'"
            ));
            for column in &table.columns {
                parts.push(format!(
                    "SELECT CONCAT('check ', c.constraint_name, {title}) FROM information_schema.check_constraints c JOIN \
                     information_schema.table_constraints t ON t.constraint_schema = c.constraint_schema AND t.constraint_name = \
                     c.constraint_name WHERE t.table_schema = {} AND t.table_name = {} AND c.check_clause LIKE {}",
                    literal(&table.schema),
                    literal(&table.name),
                    literal(&format!("%`{}`%", name(column)))
                ));
                parts.push(format!(
                    "SELECT CONCAT('default of ', column_name, {title}) FROM information_schema.columns WHERE {here} AND {}",
                    reads_in_default(&name(column))
                ));
                parts.push(format!(
                    "SELECT CONCAT('generated column ', column_name, {title}) FROM information_schema.columns WHERE {here} AND \
                     generation_expression LIKE {}",
                    literal(&format!("%`{}`%", name(column)))
                ));
            }
        }
        // Tables that have come to refer to the key.
        let known = self.found.tables.iter().flat_map(|table| {
            table
                .references()
                .map(|(_, it)| literal(&format!("{}.{}", table.title(), it.name)))
        });
        let known = list([String::from("''")].into_iter().chain(known).collect());
        parts.push(format!(
            "SELECT CONCAT('foreign key ', constraint_name, ' of ', table_schema, '.', table_name) FROM \
             information_schema.key_column_usage k WHERE {} AND referenced_column_name = {} AND CONCAT(table_schema, '.', \
             table_name, '.', constraint_name) NOT IN ({known}) AND \
             constraint_name NOT LIKE 'ordid\\_%'",
            refers_to(&self.found.schema, &self.found.name),
            literal(&name(self.key()))
        ));
        format!(
            "SELECT DISTINCT name FROM ({}) AS them ORDER BY 1",
            parts.join(" UNION ALL ")
        )
    }
}
