//! Questions to an engine's catalog and settings, which a flush asks before its first attempt or while a COMMIT is
//! unresolved.

use std::fmt::Write as _;

use crate::text::TableNames;

/// Stands at the end of a query that reads committed rows only, also in a session that reads uncommitted ones. A row
/// that a transaction has inserted and not committed is locked, and passed over: the query does not wait for that
/// transaction, which may take long. MySQL's `FOR SHARE` needs no other privilege than `SELECT`, from 8.0.22 on; `FOR UPDATE`
/// would.
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

/// Has 1 in a Galera cluster, and 0 in a replication group.
#[cfg(feature = "leases")]
pub(crate) const MYSQL_IS_GALERA: &str = if_cluster!("variable_name = 'wsrep_on'");

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
/// would refuse the same row a second time, and no rule and no trigger, of the table or of a partition, can replace its
/// values before it is inserted. The index holds only columns that are sent: the key alone, or the key and columns that cannot be NULL, which is usual in a
/// table that is partitioned by time.
///
/// `tgtype` has a bit for each of `ROW`, `BEFORE` and `INSERT`, the lowest three: `src/include/catalog/pg_trigger.h`.
pub(crate) fn postgres(names: &TableNames, sent: &[usize]) -> String {
    let table = postgres_text(&names.table);
    let column = |at: &usize| postgres_text(&unquoted(&names.columns[*at], '"'));
    let key = list(&names.keys, column);
    let sent = list(sent, column);
    format!(
        "FROM pg_catalog.pg_index AS i \
         WHERE i.indrelid = to_regclass({table}) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL \
         AND i.indnkeyatts = (SELECT count(*) FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = i.indrelid \
         AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]) \
         AND a.attname IN ({sent}) AND (a.attnotnull OR a.attname IN ({key}))) \
         AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_rewrite AS r WHERE r.ev_class = i.indrelid AND r.ev_type = '3' \
         AND r.ev_enabled <> 'D') \
         AND NOT EXISTS (WITH RECURSIVE part (id) AS (SELECT to_regclass({table})::oid UNION SELECT h.inhrelid \
         FROM pg_catalog.pg_inherits AS h JOIN part ON h.inhparent = part.id) \
         SELECT 1 FROM pg_catalog.pg_trigger AS t JOIN part ON t.tgrelid = part.id \
         WHERE t.tgtype & 7 = 7 AND t.tgenabled <> 'D')"
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
         SUM(i.column_name IN ({sent}) AND (i.nullable = '' OR i.column_name IN ({key})))"
    )
}

/// Does the same as [`postgres`] for SQL Server. An index with `IGNORE_DUP_KEY` refuses nothing, and a trigger that stands in
/// the place of an insert may write anything. A synonym, a view, and a table that the user may not see, have no index here.
///
/// Source: Microsoft's "System catalog views": `sys.indexes`, `sys.index_columns`, `sys.trigger_events`. A column that the
/// server has added to an index because the table is partitioned has no `key_ordinal`.
pub(crate) fn sql_server(names: &TableNames, sent: &[usize]) -> String {
    format!(
        "{} AND i.has_filter = 0 AND i.ignore_dup_key = 0 AND NOT EXISTS (SELECT 1 {})",
        sql_server_index(names, sent),
        instead_of("i.object_id", OF_INSERT)
    )
}

/// Returns a query that has a row, with a word for the reason, if rows that are loaded into a table of SQL Server in bulk may
/// be left out: the answer to a load has no count that would show it. The base tables of a view are not known, nor is what
/// the user may not see.
pub(crate) fn sql_server_leaves_rows_out(table: &str) -> String {
    let table = format!("OBJECT_ID({})", unicode(table));
    format!(
        "SELECT N'unknown' WHERE NOT EXISTS (SELECT 1 FROM sys.tables WHERE object_id = {table}) \
         UNION ALL SELECT N'trigger' {} \
         UNION ALL SELECT N'index' FROM sys.indexes WHERE object_id = {table} AND ignore_dup_key = 1",
        instead_of(&table, OF_INSERT)
    )
}

/// Does the same as [`sql_server`] for Babelfish, whose `is_padded` says what `has_filter` should, and whose triggers are known
/// to no view by their events. Before version 4.2, `sys.index_columns` has no column of a key, so no table is protected.
///
/// Source: `contrib/babelfishpg_tsql/sql/sys_views.sql` of babelfish_extensions, and its upgrade to 4.2.0.
pub(crate) fn babelfish(names: &TableNames, sent: &[usize]) -> String {
    format!(
        "{} AND i.is_padded = 0 AND NOT EXISTS (SELECT 1 {})",
        sql_server_index(names, sent),
        instead_of("i.object_id", "")
    )
}

/// Returns the text of a query for a unique index of the table. Each column of the index is sent, and is either a
/// column of the key or never NULL.
fn sql_server_index(names: &TableNames, sent: &[usize]) -> String {
    let table = unicode(&names.table);
    let column = |at: &usize| unicode(&in_brackets(&names.columns[*at]));
    let key = list(&names.keys, column);
    let sent = list(sent, column);
    let columns = "FROM sys.index_columns AS x LEFT JOIN sys.columns AS c \
                   ON c.object_id = x.object_id AND c.column_id = x.column_id \
                   WHERE x.object_id = i.object_id AND x.index_id = i.index_id \
                   AND x.key_ordinal > 0 AND x.is_included_column = 0";
    format!(
        "FROM sys.indexes AS i \
         WHERE i.object_id = OBJECT_ID({table}) AND i.is_unique = 1 AND i.is_disabled = 0 AND i.is_hypothetical = 0 \
         AND EXISTS (SELECT 1 {columns}) AND NOT EXISTS (SELECT 1 {columns} AND (c.column_id IS NULL \
         OR c.name NOT IN ({sent}) OR (c.is_nullable = 1 AND c.name NOT IN ({key}))))"
    )
}

/// A trigger is for inserts.
const OF_INSERT: &str = " AND EXISTS (SELECT 1 FROM sys.trigger_events AS e WHERE e.object_id = t.object_id AND e.type = 1)";

/// Returns the text that follows the select list of a query for the `INSTEAD OF` triggers of a table, for which another
/// condition holds.
fn instead_of(table: &str, condition: &str) -> String {
    format!(
        "FROM sys.triggers AS t WHERE t.parent_id = {table} AND t.is_instead_of_trigger = 1 \
         AND t.is_disabled = 0{condition}"
    )
}

/// Does the same as [`postgres`] for Oracle, whose key may also be a constraint over an index that is not unique. A column
/// with `DEFAULT ON NULL` takes a NULL, and stores something else each time. The name may be a synonym; a view has no index
/// here.
///
/// Source: "Database Reference" of 12.1: `ALL_INDEXES`, `ALL_IND_COLUMNS`, `ALL_CONSTRAINTS`, `ALL_CONS_COLUMNS`,
/// `ALL_TAB_COLUMNS`, `ALL_TRIGGERS`, `ALL_SYNONYMS`.
pub(crate) fn oracle(names: &TableNames, sent: &[usize]) -> String {
    let (schema, table) = split(&names.table, '"');
    let table = literal(&table);
    // A public synonym is for a name without a schema.
    let (schema, owners) = match schema {
        Some(schema) => (literal(&schema), literal(&schema)),
        None => {
            let current = "SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')".to_owned();
            let owners = format!("{current}, 'PUBLIC'");
            (current, owners)
        }
    };
    let column = |at: &usize| literal(&unquoted(&names.columns[*at], '"'));
    let key = list(&names.keys, column);
    let sent = list(sent, column);
    // Whether these columns, of an index or a constraint, refuse the same row a second time.
    let refuses = |columns: &str, owner: &str, of: &str| {
        format!(
            "EXISTS (SELECT 1 FROM {columns} x WHERE {of}) \
             AND NOT EXISTS (SELECT 1 FROM {columns} x LEFT JOIN all_tab_columns c ON c.owner = x.{owner} \
             AND c.table_name = x.table_name AND c.column_name = x.column_name \
             WHERE {of} AND (c.column_name IS NULL OR x.column_name NOT IN ({sent}) \
             OR ((c.nullable = 'Y' OR c.default_on_null = 'YES') AND x.column_name NOT IN ({key}))))"
        )
    };
    let index = refuses(
        "all_ind_columns",
        "table_owner",
        "x.index_owner = i.owner AND x.index_name = i.index_name",
    );
    let constraint = refuses(
        "all_cons_columns",
        "owner",
        "x.owner = n.owner AND x.constraint_name = n.constraint_name",
    );
    format!(
        "FROM (SELECT MAX(o) KEEP (DENSE_RANK FIRST ORDER BY p) o, MAX(t) KEEP (DENSE_RANK FIRST ORDER BY p) t FROM \
         (SELECT owner o, object_name t, 0 p FROM all_objects WHERE owner = {schema} AND object_name = {table} \
         AND object_type IN ('TABLE', 'VIEW', 'MATERIALIZED VIEW') \
         UNION ALL SELECT table_owner, table_name, CASE owner WHEN 'PUBLIC' THEN 2 ELSE 1 END FROM all_synonyms \
         WHERE synonym_name = {table} AND owner IN ({owners}) AND db_link IS NULL)) r \
         WHERE (EXISTS (SELECT 1 FROM all_indexes i WHERE i.table_owner = r.o AND i.table_name = r.t \
         AND i.uniqueness = 'UNIQUE' AND i.index_type <> 'LOB' AND {index}) \
         OR EXISTS (SELECT 1 FROM all_constraints n WHERE n.owner = r.o AND n.table_name = r.t \
         AND n.constraint_type IN ('P', 'U') AND n.status = 'ENABLED' AND {constraint})) \
         AND NOT EXISTS (SELECT 1 FROM all_triggers t WHERE t.table_owner = r.o AND t.table_name = r.t \
         AND t.status = 'ENABLED' AND t.triggering_event LIKE '%INSERT%' \
         AND (t.trigger_type IN ('BEFORE EACH ROW', 'INSTEAD OF') \
         OR (t.trigger_type = 'COMPOUND' AND (t.before_row = 'YES' OR t.instead_of_row = 'YES'))))"
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

/// A string of PostgreSQL that no setting reads in another way, as `standard_conforming_strings` does.
pub(crate) fn postgres_text(name: &str) -> String {
    format!("convert_from(decode('{}', 'hex'), 'UTF8')", hex(name))
}

/// A string of MySQL that no setting reads in another way, as `NO_BACKSLASH_ESCAPES` does.
fn text(name: &str) -> String {
    format!("CONVERT(0x{} USING utf8mb4)", hex(name))
}

/// A string of SQL Server.
fn unicode(name: &str) -> String {
    format!("N{}", literal(name))
}

/// A string of standard SQL.
fn literal(name: &str) -> String {
    format!("'{}'", name.replace('\'', "''"))
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

/// Returns a name of SQL Server without its brackets.
fn in_brackets(quoted: &str) -> String {
    let inner = quoted.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    inner.map_or_else(|| quoted.to_owned(), |inner| inner.replace("]]", "]"))
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
        assert_eq!(in_brackets("[a]]b]"), "a]b");
        assert_eq!(in_brackets("plain"), "plain");
        assert_eq!(unicode("it's"), "N'it''s'");
    }
}
