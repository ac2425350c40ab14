//! Questions to an engine's catalog and settings, which a flush asks before its first attempt or while a COMMIT is
//! unresolved.

use std::fmt::Write as _;

use crate::text::TableNames;

/// Stands at the end of a query that reads committed rows only, also in a session that reads uncommitted ones. A row
/// that a transaction has inserted and not committed is locked, and passed over: the query does not wait for that
/// transaction, which may take long. MySQL's `FOR SHARE` needs no other privilege than `SELECT`, as `FOR UPDATE` would.
///
/// MariaDB before 10.6 waits. See `if_cluster!` for the comments.
pub(crate) const MYSQL_COMMITTED: &str =
    " /*M! LOCK IN SHARE MODE *//*M!100600 SKIP LOCKED *//*!80000 FOR SHARE SKIP LOCKED */";

/// As [`MYSQL_COMMITTED`], but waits for rows that another transaction has locked.
pub(crate) const MYSQL_WAITS: &str = " /*M! LOCK IN SHARE MODE *//*!80000 FOR SHARE */";

/// Has a row in a Galera cluster and in a replication group, with this column of the variable that shows it.
///
/// MariaDB runs what stands in `/*M! */`, MySQL what stands in `/*!50700 */`: each has the variables in another schema.
/// Sources: "Comment Syntax" of both manuals.
macro_rules! if_cluster {
    ($column:literal) => {
        concat!(
            "SELECT ",
            $column,
            " FROM /*M! information_schema *//*!50700 performance_schema */.global_variables \
             WHERE (variable_name = 'wsrep_on' AND variable_value = 'ON') \
             OR (variable_name = 'group_replication_group_name' AND variable_value <> '') LIMIT 1"
        )
    };
}

/// Has a row in a Galera cluster and in a replication group, whose members know their own locks only, and compare before a
/// COMMIT what each of them has written.
pub(crate) const MYSQL_CLUSTER: &str = if_cluster!("1");

/// Has the name of the variable, in lower case, that shows in which of them the server is.
pub(crate) const MYSQL_ENGINE: &str = if_cluster!("LOWER(variable_name)");

/// Has the name of a table that only Aurora DSQL or Citus has. It reads no more of the catalog than Aurora DSQL is
/// documented to have.
pub(crate) const POSTGRES_ENGINE: &str = "SELECT c.relname::text FROM pg_catalog.pg_class AS c \
     JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
     WHERE (n.nspname = 'sys' AND c.relname = 'iam_pg_role_mappings') \
     OR (n.nspname = 'pg_catalog' AND c.relname = 'pg_dist_partition') LIMIT 1";

/// A member of a replication group that has ended the transaction refuses this query, with 1180. If a savepoint comes first,
/// the member forgets the end (seen on 9.7.4). The query touches a table of the data dictionary, but reads no row of it, which
/// would fix what later reads of the transaction see. MariaDB has no such groups.
pub(crate) const MYSQL_ASK: &str =
    "SELECT 1 /*!80000 FROM information_schema.collations LIMIT 0 */";

/// Returns the text that follows the select list of a query on PostgreSQL. The query returns a row if a unique index
/// would refuse the same row a second time, and no trigger can replace its values before it is inserted. The index
/// holds only columns that are sent: the key alone, or the key and columns that cannot be NULL, which is usual in a
/// table that is partitioned by time.
///
/// `tgtype` has a bit for each of `ROW`, `BEFORE` and `INSERT`, the lowest three: `src/include/catalog/pg_trigger.h`.
pub(crate) fn postgres(names: &TableNames, sent: &[usize]) -> String {
    let text = |name: &str| format!("convert_from(decode('{}', 'hex'), 'UTF8')", hex(name));
    let table = text(&names.table);
    let column = |at: &usize| text(&unquoted(&names.columns[*at], '"'));
    let key = list(&names.keys, column);
    let sent = list(sent, column);
    format!(
        "FROM pg_catalog.pg_index AS i \
         WHERE i.indrelid = to_regclass({table}) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL \
         AND i.indnkeyatts = (SELECT count(*) FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = i.indrelid \
         AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]) \
         AND a.attname IN ({sent}) AND (a.attnotnull OR a.attname IN ({key}))) \
         AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid = i.indrelid \
         AND t.tgtype & 7 = 7 AND t.tgenabled <> 'D') LIMIT 1"
    )
}

/// Does the same as [`postgres`] for MySQL and MariaDB, which show triggers only to users with the privilege `TRIGGER`.
/// Both queries have the names as constants, since MariaDB would otherwise open all tables of the server.
pub(crate) fn mysql(names: &TableNames, sent: &[usize]) -> String {
    let (schema, table) = mysql_table(names);
    let column = |at: &usize| text(&unquoted(&names.columns[*at], '`'));
    let key = list(&names.keys, column);
    let sent = list(sent, column);
    format!(
        "FROM information_schema.statistics AS i \
         WHERE i.table_schema = {schema} AND i.table_name = {table} AND i.non_unique = 0 \
         AND NOT EXISTS (SELECT 1 FROM information_schema.triggers AS t \
         WHERE t.event_object_schema = {schema} AND t.event_object_table = {table} \
         AND t.action_timing = 'BEFORE' AND t.event_manipulation = 'INSERT') \
         GROUP BY i.index_name HAVING COUNT(*) = \
         SUM(i.column_name IN ({sent}) AND (i.nullable = '' OR i.column_name IN ({key}))) LIMIT 1"
    )
}

/// Returns a query that has a row if rows of a table can go through a temporary table: the server is PostgreSQL from
/// version 10 on, and the user may make such a table and read the columns whose types it takes.
///
/// Other servers of the same protocol refuse temporary tables, and a statement that is refused spoils the transaction.
pub(crate) fn postgres_can_stage(names: &TableNames) -> String {
    let table = hex(&names.table);
    format!(
        "SELECT 1 WHERE pg_catalog.version() LIKE 'PostgreSQL % on %' \
         AND pg_catalog.version() NOT LIKE '%-YB-%' AND pg_catalog.version() NOT LIKE '%Redshift%' \
         AND pg_catalog.current_setting('server_version_num')::int >= 100000 \
         AND pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY') \
         AND pg_catalog.has_table_privilege(to_regclass(convert_from(decode('{table}', 'hex'), 'UTF8')), 'SELECT')"
    )
}

/// Does the same as [`postgres_can_stage`] for MySQL and MariaDB. There a temporary table that is refused spoils nothing.
/// But with `sql_safe_updates` the server refuses an `UPDATE` that reads a whole table, also a temporary one. And without
/// strict mode a temporary table, which has no triggers, makes an empty value of a NULL that a trigger would replace.
pub(crate) fn mysql_can_stage(_: &TableNames) -> String {
    "SELECT 1 FROM DUAL WHERE @@sql_safe_updates = 0 AND @@sql_mode LIKE '%STRICT%'".to_owned()
}

/// Returns a query that has a row if `INSERT .. ON DUPLICATE KEY UPDATE` finds rows by these columns alone: they are those of
/// the table's only unique index, and no trigger can change them before that the user may see.
pub(crate) fn mysql_can_write(names: &TableNames, found_by: &[usize]) -> String {
    let (schema, table) = mysql_table(names);
    let columns = list(found_by, |at| text(&unquoted(&names.columns[*at], '`')));
    let number = found_by.len();
    format!(
        "SELECT 1 FROM information_schema.statistics AS i \
         WHERE i.table_schema = {schema} AND i.table_name = {table} AND i.non_unique = 0 \
         AND NOT EXISTS (SELECT 1 FROM information_schema.triggers AS t \
         WHERE t.event_object_schema = {schema} AND t.event_object_table = {table} \
         AND t.action_timing = 'BEFORE' AND t.event_manipulation = 'INSERT') \
         HAVING COUNT(*) = {number} AND COUNT(DISTINCT i.index_name) = 1 \
         AND SUM(i.column_name IN ({columns}) AND i.sub_part IS NULL) = {number}"
    )
}

/// Does the same as [`mysql_can_write`] for `INSERT .. ON CONFLICT` of SQLite. A key that is the number of the row has no
/// index. With another unique index, a row that is there would be refused if it has the same values in that one, too.
///
/// Diesel quotes names of SQLite as MySQL does. A table without a schema's name has to be in the file that is opened first.
/// Triggers are few on SQLite, and there is no
/// privilege to see them, so that any of them is a reason to be careful.
pub(crate) fn sqlite_can_write(names: &TableNames, found_by: &[usize]) -> String {
    let text = |name: &str| format!("CAST(x'{}' AS TEXT)", hex(name));
    let quote = match names.table.starts_with('`') {
        true => '`',
        false => '"',
    };
    let (schema, table) = split(&names.table, quote);
    let (schema, table) = (schema.unwrap_or_else(|| "main".to_owned()), text(&table));
    let quoted = format!("\"{}\"", schema.replace('"', "\"\""));
    let schema = text(&schema);
    let columns = list(found_by, |at| text(&unquoted(&names.columns[*at], quote)));
    let number = found_by.len();
    let indexes = format!("pragma_index_list({table}, {schema})");
    let of_table = format!("= {table} COLLATE NOCASE");
    format!(
        "SELECT 1 WHERE (SELECT count(*) = {number} AND count(DISTINCT i) = 1 \
         AND sum(name COLLATE NOCASE IN ({columns})) = {number} FROM (\
         SELECT name, '' AS i FROM pragma_table_info({table}, {schema}) WHERE pk > 0 \
         AND NOT EXISTS (SELECT 1 FROM {indexes} WHERE origin = 'pk') UNION ALL \
         SELECT CASE WHEN l.partial THEN NULL ELSE c.name END, l.name FROM {indexes} AS l, \
         pragma_index_xinfo(l.name, {schema}) AS c WHERE l.\"unique\" AND c.key)) \
         AND EXISTS (SELECT 1 FROM {quoted}.sqlite_master WHERE type = 'table' AND name {of_table}) \
         AND NOT EXISTS (SELECT 1 FROM {quoted}.sqlite_master WHERE type = 'trigger' AND tbl_name {of_table}) \
         AND NOT EXISTS (SELECT 1 FROM temp.sqlite_master WHERE tbl_name {of_table})"
    )
}

/// Writes a list of columns.
fn list(columns: &[usize], text: impl FnMut(&usize) -> String) -> String {
    columns.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Returns the texts of a table's schema and name.
fn mysql_table(names: &TableNames) -> (String, String) {
    match split(&names.table, '`') {
        (Some(schema), table) => (text(&schema), text(&table)),
        (None, table) => ("DATABASE()".to_owned(), text(&table)),
    }
}

/// A string of MySQL that no setting reads in another way, as `NO_BACKSLASH_ESCAPES` does.
fn text(name: &str) -> String {
    format!("CONVERT(0x{} USING utf8mb4)", hex(name))
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Returns the schema, if there is one, and the name of a quoted table.
fn split(name: &str, quote: char) -> (Option<String>, String) {
    // A quote inside a name stands twice.
    let mut is_inside = false;
    let dot = name.char_indices().find_map(|(at, character)| {
        is_inside ^= character == quote;
        (character == '.' && !is_inside).then_some(at)
    });
    let dot = dot.filter(|_| name.starts_with(quote));
    match dot {
        Some(dot) => (
            Some(unquoted(&name[..dot], quote)),
            unquoted(&name[dot + 1..], quote),
        ),
        None => (None, unquoted(name, quote)),
    }
}

/// Returns a name without its quotes.
fn unquoted(name: &str, quote: char) -> String {
    let inner = name
        .strip_prefix(quote)
        .and_then(|it| it.strip_suffix(quote));
    let twice = format!("{quote}{quote}");
    inner.map_or_else(
        || name.to_owned(),
        |inner| inner.replace(&twice, &quote.to_string()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_quotes() {
        assert_eq!(unquoted("`a``b`", '`'), "a`b");
        assert_eq!(unquoted("plain", '`'), "plain");
        assert_eq!(split("`s`.`t``u`", '`'), (Some("s".into()), "t`u".into()));
        assert_eq!(split("`t.u`", '`'), (None, "t.u".into()));
        assert_eq!(split("`t``.``u`", '`'), (None, "t`.`u".into()));
        assert_eq!(split("`s``.`.`t`", '`'), (Some("s`.".into()), "t".into()));
        assert_eq!(split("plain", '`'), (None, "plain".into()));
        assert_eq!(hex("aß"), "61c39f");
    }
}
