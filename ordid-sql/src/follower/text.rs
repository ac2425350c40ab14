//! The statements of a follower.

use std::fmt::Write as _;

use ordid_core::{
    OrderedKey,
    storage::{Dialect, dialect::Postgres},
};

use super::{FollowDialect, Snapshot};

/// Asks for the transactions that are open, the number of the current transaction, if it has one, and whether this is a
/// standby.
pub(super) const SNAPSHOT: &str = "SELECT pg_current_snapshot()::text || ' ' || \
     coalesce(pg_current_xact_id_if_assigned()::text, '-') || ' ' || pg_is_in_recovery()::text";

pub(super) fn table<D: Dialect, E: OrderedKey>() -> String {
    D::quote_table(E::SCHEMA, E::TABLE)
}

/// Returns the statements that add the column and its index. The column's default does not have to be evaluated for
/// each row, so `ADD COLUMN` does not rewrite the rows.
pub(super) fn create<E: OrderedKey>(column: &str) -> Vec<String> {
    let (table, quoted) = (table::<Postgres, E>(), Postgres::quote(column));
    // PostgreSQL would truncate the name.
    let name: String = format!("{}_{column}_idx", E::TABLE);
    let name = match name.len() {
        0..=63 => Postgres::quote(&name),
        _ => String::new(),
    };
    let space = if name.is_empty() { "" } else { " " };
    vec![
        format!(
            "ALTER TABLE {table} ADD COLUMN {quoted} xid8 NOT NULL DEFAULT pg_current_xact_id()"
        ),
        format!("CREATE INDEX CONCURRENTLY {name}{space}ON {table} ({quoted})"),
    ]
}

/// Returns the query for the rows of transactions that had ended in one snapshot, but not in the other. The numbers are
/// written into the text, since a plan for parameters would read the whole table.
pub(super) fn committed<E: OrderedKey>(
    column: &str,
    seen: &Snapshot,
    until: &Snapshot,
    is_above: bool,
    most: u32,
) -> String {
    let column = Postgres::quote(column);
    let mut sql = select::<Postgres, E>();
    let _ = write!(
        sql,
        " WHERE {column} >= '{}'::xid8 AND {column} < '{}'::xid8 \
         AND NOT pg_visible_in_snapshot({column}, '{seen}'::pg_snapshot) \
         AND pg_visible_in_snapshot({column}, '{until}'::pg_snapshot)",
        seen.xmin(),
        until.xmax()
    );
    if is_above {
        sql.push_str(" AND ");
        push_bound::<Postgres, E>(&mut sql, '>', 1);
    }
    push_end::<Postgres, E>(&mut sql, most);
    sql
}

/// Returns the query for the rows below a key and, if `is_above`, above another key.
pub(super) fn settled<D: FollowDialect, E: OrderedKey>(is_above: bool, most: u32) -> String {
    let mut sql = select::<D, E>();
    sql.push_str(" WHERE ");
    if is_above {
        push_bound::<D, E>(&mut sql, '>', 1);
        sql.push_str(" AND ");
    }
    push_bound::<D, E>(&mut sql, '<', 1 + usize::from(is_above));
    push_end::<D, E>(&mut sql, most);
    sql
}

fn select<D: FollowDialect, E: OrderedKey>() -> String {
    // A derived entity has the columns that the database fills only in `RETURNING`, and an entity of SeaORM has them in
    // both lists.
    let filled = E::RETURNING.iter().filter(|it| !E::COLUMNS.contains(it));
    let columns: Vec<_> = E::COLUMNS
        .iter()
        .chain(filled)
        .map(|column| D::quote(column))
        .collect();
    format!("SELECT {} FROM {}", columns.join(", "), table::<D, E>())
}

fn push_bound<D: FollowDialect, E: OrderedKey>(sql: &mut String, comparison: char, number: usize) {
    let _ = write!(sql, "{} {comparison} ", D::quote(E::KEY_COLUMN));
    D::push_placeholder(sql, number);
}

fn push_end<D: FollowDialect, E: OrderedKey>(sql: &mut String, most: u32) {
    let _ = write!(sql, " ORDER BY {} LIMIT {most}", D::quote(E::KEY_COLUMN));
}
