//! The statements of a follower.

use std::fmt::Write as _;

use ordid_core::{
    OrderedKey,
    storage::{Dialect as _, dialect::Postgres},
};

use super::{FollowDialect, FollowNames, Snapshot};
use crate::{catalog::postgres_text, words::first};

/// Asks for the transactions that are open, the number of the current transaction, if it has one, and what the server is:
/// [`STANDBY_SERVER`], [`YUGABYTEDB`], [`WITH_CITUS`] or another word.
pub(super) const SNAPSHOT: &str = "SELECT pg_current_snapshot()::text || ' ' || \
     coalesce(pg_current_xact_id_if_assigned()::text, '-') || ' ' || \
     CASE WHEN pg_is_in_recovery() THEN 'standby' WHEN version() LIKE '%-YB-%' THEN 'YugabyteDB' \
     WHEN to_regclass('pg_dist_partition') IS NOT NULL THEN 'citus' ELSE 'primary' END";

/// A server that does not show which transactions are open.
pub(super) const STANDBY_SERVER: &str = "standby";
/// A node of YugabyteDB.
pub(super) const YUGABYTEDB: &str = "YugabyteDB";
/// A server in whose database Citus is installed. It may have tables that Citus does not distribute.
pub(super) const WITH_CITUS: &str = "citus";

/// Returns the query that has a row if Citus distributes the table to other nodes, or copies it to them. Citus also lists
/// tables that it leaves where they are: these have no distribution, no copies and no group of tables.
pub(super) fn is_distributed(names: &FollowNames) -> String {
    format!(
        "SELECT logicalrelid::text FROM pg_dist_partition WHERE logicalrelid = to_regclass({}) \
         AND NOT (partmethod = 'n' AND repmodel <> 't' AND colocationid = 0)",
        postgres_text(&names.table)
    )
}

/// Returns the statements that add the column and its index. The column's default does not have to be evaluated for
/// each row, so `ADD COLUMN` does not rewrite the rows.
pub(super) fn create<E: OrderedKey>(names: &FollowNames, column: &str) -> Vec<String> {
    let (table, quoted) = (&names.table, Postgres::quote(column));
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

/// Is part of each query for rows on PostgreSQL, and makes it fail on a standby: a pooler may send it to another server
/// than the question before it, and a standby may lack rows that the snapshot counts as committed. It is evaluated once
/// for each query, also if the table is empty. The primary does not call the function, which would use up a number.
const ON_PRIMARY: &str = " AND (SELECT CASE WHEN pg_catalog.pg_is_in_recovery() \
     THEN pg_catalog.pg_current_xact_id() END) IS NULL";

/// The error of [`FollowDialect::COMMITTED`] contains this.
pub(super) const UNCOMMITTED: &str = "READ-UNCOMMITTED";

/// The error of [`ON_PRIMARY`] contains this in every language of the server.
pub(super) const STANDBY: &str = "pg_current_xact_id()";

/// Returns the query for the rows of transactions that had ended in one snapshot, but not in the other. The numbers are
/// written into the text, since a plan for parameters would read the whole table.
pub(super) fn committed(
    names: &FollowNames,
    column: &str,
    seen: &Snapshot,
    until: &Snapshot,
    is_above: bool,
    most: u32,
) -> String {
    let column = Postgres::quote(column);
    let [before, behind] = first::<Postgres>(most);
    let mut sql = select::<Postgres>(names, &before);
    let _ = write!(
        sql,
        " WHERE {column} >= '{}'::xid8 AND {column} < '{}'::xid8 \
         AND NOT pg_visible_in_snapshot({column}, '{seen}'::pg_snapshot) \
         AND pg_visible_in_snapshot({column}, '{until}'::pg_snapshot)",
        seen.xmin(),
        until.xmax()
    );
    sql.push_str(ON_PRIMARY);
    if is_above {
        sql.push_str(" AND ");
        push_bound::<Postgres>(&mut sql, names, '>', 1);
    }
    push_end(&mut sql, names, &behind);
    sql
}

/// Returns the query for the rows whose keys compare with the parameters as `bounds` says, in this order.
pub(super) fn settled<D: FollowDialect>(
    names: &FollowNames,
    bounds: impl IntoIterator<Item = char>,
    most: u32,
) -> String {
    let [before, behind] = first::<D>(most);
    let mut sql = select::<D>(names, &before);
    let mut conditions = 0;
    for comparison in bounds {
        sql.push_str(if conditions == 0 { " WHERE " } else { " AND " });
        conditions += 1;
        push_bound::<D>(&mut sql, names, comparison, conditions);
    }
    if conditions == 0 && !D::COMMITTED.is_empty() {
        sql.push_str(" WHERE 1 = 1");
    }
    sql.push_str(D::COMMITTED);
    push_end(&mut sql, names, &behind);
    sql
}

fn select<D: FollowDialect>(names: &FollowNames, first: &str) -> String {
    let (selected, table, hint) = (&names.selected, &names.table, D::HINT);
    format!("SELECT {first}{selected} FROM {table}{hint}")
}

fn push_bound<D: FollowDialect>(
    sql: &mut String,
    names: &FollowNames,
    comparison: char,
    number: usize,
) {
    let _ = write!(sql, "{} {comparison} ", names.key);
    match names.placeholder {
        Some(placeholder) => sql.push(placeholder),
        None => D::push_placeholder(sql, number),
    }
}

fn push_end(sql: &mut String, names: &FollowNames, first: &str) {
    let _ = write!(sql, " ORDER BY {}{first}", names.key);
}
