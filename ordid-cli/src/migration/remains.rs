//! Finds what is left of a move whose journal is gone, since somebody has dropped it.
//!
//! Without the journal nobody knows how far that move was. A new one would take its columns and triggers for its own.

use ordid_core::storage::{
    Dialect as _,
    dialect::{MySql, Postgres},
};

use super::{
    family,
    model::Plan,
    mysql,
    session::Session,
    subject::{Moved, literal, named},
};
use crate::{database::text, engine::Engine, failure::Failure};

/// The things that such a move has left.
pub(crate) struct Remains {
    /// Each thing, by its kind and its name.
    names: Vec<String>,
    /// Whether old columns are there, which have their names since the switch.
    is_switched: bool,
    /// The new columns, each behind the name of its table, quoted.
    new_columns: Vec<[String; 2]>,
    engine: Engine,
}

impl Remains {
    /// Whether the plan's way back before the switch removes it: that of another move would leave columns there.
    pub(crate) fn can_be_undone_by(&self, plan: &Plan) -> bool {
        let undo: Vec<&str> = plan.undo.iter().flat_map(|it| it.action.sql()).collect();
        let drops = |[table, column]: &[String; 2]| {
            let mut dropped = undo
                .iter()
                .filter_map(|sql| sql.split_once(" DROP COLUMN "));
            dropped.any(|(before, columns)| before.contains(table) && columns.contains(column))
        };
        !undo.is_empty() && !self.is_switched && self.new_columns.iter().all(drops)
    }

    /// Returns the reason to refuse another move, with a way out.
    pub(crate) fn reason(&self) -> String {
        let advice = match (self.engine, self.is_switched) {
            (Engine::Sqlite, _) => {
                "drop these tables, if the old keys in them are no longer needed"
            }
            (_, false) => {
                "remove all of it by `ordid apply PLAN --rollback`, with the plan of that move"
            }
            (Engine::Postgres, true) => {
                "the columns ordid_old_* have the old keys: if they are no longer needed, drop the triggers, their functions, and then \
                 these columns"
            }
            (_, true) => {
                "the columns ordid_old_* have the old keys: if they are no longer needed, drop the triggers, the foreign keys of these \
                 columns, and then the columns"
            }
        };
        format!(
            "a move whose journal was dropped has left {}; {advice}",
            self.names.join(", ")
        )
    }
}

/// Looks for what a move has left on the table and those that refer to it. It is asked only where no move has a journal.
///
/// # Errors
///
/// The database refuses.
pub(crate) async fn find(
    session: &mut Session,
    schema: Option<&str>,
    name: &str,
) -> Result<Option<Remains>, Failure> {
    let engine = session.engine();
    let mut found = Remains {
        names: Vec::new(),
        is_switched: false,
        new_columns: Vec::new(),
        engine,
    };
    if engine == Engine::Sqlite {
        // A rebuild leaves nothing in the tables.
        let names = ["ordid_map_", "ordid_tables_", "ordid_sequences_"];
        let names = names.map(|prefix| literal(&named(prefix, name, "")));
        let query = format!(
            "SELECT 'table ' || name FROM sqlite_schema WHERE type = 'table' AND name IN ({}) ORDER BY name",
            names.join(", ")
        );
        let rows = session.rows(&query).await?;
        found.names.extend(rows.iter().map(|row| text(row, 0)));
    } else {
        let tables = family(session, schema, name).await?;
        for table in &tables {
            let (query, quote): (_, fn(&str) -> String) = match engine {
                Engine::Postgres => (of_postgres(table), Postgres::quote),
                _ => (of_mysql(table), MySql::quote),
            };
            for row in session.rows(&query).await? {
                let column = text(&row, 0);
                found.is_switched |= column.starts_with("ordid_old_");
                if column.starts_with("ordid_new_") {
                    found.new_columns.push([quote(&table.name), quote(&column)]);
                }
                found.names.push(text(&row, 1));
            }
        }
    }
    Ok((!found.names.is_empty()).then_some(found))
}

fn of_postgres(table: &Moved) -> String {
    let regclass = format!(
        "{}::regclass",
        literal(&Postgres::quote_table(Some(&table.schema), &table.name))
    );
    let [sync, key] =
        ["ordid_sync_", "ordid_key_of_"].map(|prefix| literal(&named(prefix, &table.name, "")));
    let title = literal(&table.title());
    let columns = format!(
        "SELECT attname::text, 'column ' || {title} || '.' || attname FROM pg_attribute WHERE attrelid = {regclass} AND attnum > 0 AND \
         NOT attisdropped AND left(attname, 10)"
    );
    // A finished move leaves the function that makes keys.
    format!(
        "{columns} IN ('ordid_new_', 'ordid_old_') UNION ALL SELECT '', 'trigger ' || tgname || ' of ' || {title} FROM pg_trigger WHERE \
         tgrelid = {regclass} AND tgname = 'zzzz_ordid_sync' UNION ALL SELECT '', 'function ' || n.nspname || '.' || p.proname FROM pg_proc \
         p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = {} AND (p.proname = {sync} OR (p.proname = {key} AND EXISTS \
         ({columns} = 'ordid_new_')))",
        literal(&table.schema)
    )
}

fn of_mysql(table: &Moved) -> String {
    let triggers = ["ordid_insert_", "ordid_update_"]
        .map(|prefix| literal(&named(prefix, &table.name, "")))
        .join(", ");
    let (title, here) = (
        literal(&table.title()),
        mysql::of(&table.schema, &table.name),
    );
    format!(
        "SELECT column_name, CONCAT('column ', {title}, '.', column_name) FROM information_schema.columns WHERE {here} AND \
         LEFT(column_name, 10) IN ('ordid_new_', 'ordid_old_') UNION ALL SELECT '', CONCAT('index ', index_name, ' of ', {title}) FROM \
         information_schema.statistics WHERE {here} AND LEFT(index_name, 10) IN ('ordid_new_', 'ordid_old_') AND seq_in_index = 1 UNION \
         ALL SELECT '', CONCAT('trigger ', trigger_name, ' of ', {title}) FROM information_schema.triggers WHERE event_object_schema = {} \
         AND event_object_table = {} AND trigger_name IN ({triggers})",
        literal(&table.schema),
        literal(&table.name)
    )
}
