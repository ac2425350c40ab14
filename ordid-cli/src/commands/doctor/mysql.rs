//! Reads the catalogs of MySQL and MariaDB.

use std::collections::BTreeMap;

use super::{
    model::{
        Collation, Column, Compares, Counter, Durability, Index, Insertion, Kind, Leaves,
        Reference, Storage, Table, TableName,
    },
    postgres::Server,
    session::{Rows, Session, number},
    sql::Sql,
};
use crate::{database::text, failure::Failure};

/// The pages below which a tree's fill says nothing.
const FEW_PAGES: u64 = 64;

/// A page of InnoDB, unless the server says otherwise.
const PAGE: u64 = 16_384;

/// The part of a page that InnoDB leaves free when keys come in order.
const ORDERED_FILL: f64 = 15.0 / 16.0;

/// The server's prepared transactions, of all programs.
pub(crate) const XA_RECOVER: &str = "XA RECOVER";

const OURS: &str = "TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') \
     AND (DATABASE() IS NULL OR DATABASE() IN ('mysql') OR TABLE_SCHEMA = DATABASE())";

/// Reads version, settings and the transactions that ordid has prepared, as far as the user may see them.
pub(crate) async fn server(session: &mut Session) -> Result<Server, Failure> {
    let version = session.catalog("SELECT VERSION()").await?;
    let isolation = match session.engine() {
        crate::engine::Engine::Mariadb => "@@GLOBAL.tx_isolation",
        _ => "@@GLOBAL.transaction_isolation",
    };
    let settings = format!(
        "SELECT @@GLOBAL.autocommit, {isolation}, @@GLOBAL.sql_mode, @@GLOBAL.innodb_flush_log_at_trx_commit, \
         @@GLOBAL.innodb_page_size, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, @@GLOBAL.innodb_doublewrite"
    );
    let row = session
        .catalog(&settings)
        .await?
        .into_iter()
        .next()
        .unwrap_or_default();
    let names = [
        "autocommit",
        "transaction_isolation",
        "sql_mode",
        "innodb_flush_log_at_trx_commit",
        "innodb_page_size",
        "log_bin",
        "sync_binlog",
        "innodb_doublewrite",
    ];
    let values = names.iter().enumerate();
    Ok(Server {
        version: version
            .into_iter()
            .flatten()
            .flatten()
            .next()
            .unwrap_or_default(),
        settings: values
            .map(|(at, name)| ((*name).to_owned(), text(&row, at)))
            .collect(),
        prepared: match session.rows(XA_RECOVER).await? {
            Ok(rows) => rows
                .iter()
                .filter_map(|row| prepared(&text(row, 3)))
                .collect(),
            Err(_) => Vec::new(),
        },
    })
}

/// Returns the id of a prepared transaction of a flush, and how many seconds ago the flush began. XA keeps no time, and
/// the key of the flush, which is the third part of the id, does.
fn prepared(gid: &str) -> Option<(String, i64)> {
    let mut parts = gid.strip_prefix("ordid:")?.split(':');
    let flush: uuid::Uuid = parts.nth(1)?.parse().ok()?;
    let (seconds, _) = flush.get_timestamp()?.to_unix();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .ok()?;
    let age = i64::try_from(now.as_secs()).ok()? - i64::try_from(seconds).ok()?;
    Some((gid.to_owned(), age))
}

/// Reads the tables, without their rows.
pub(crate) async fn tables(session: &mut Session) -> Result<Vec<Table>, Failure> {
    let sql = Sql(session.engine());
    let tables = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE, TABLE_ROWS, DATA_LENGTH, AUTO_INCREMENT, \
         (SELECT e.TRANSACTIONS FROM information_schema.ENGINES AS e WHERE e.ENGINE = TABLES.ENGINE), \
         CREATE_OPTIONS LIKE '%partitioned%' \
         FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND {OURS} ORDER BY 1, 2"
    );
    let columns = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, CHARACTER_MAXIMUM_LENGTH, \
         COLLATION_NAME, EXTRA, cs.MAXLEN FROM information_schema.COLUMNS \
         LEFT JOIN information_schema.CHARACTER_SETS AS cs ON cs.CHARACTER_SET_NAME = COLUMNS.CHARACTER_SET_NAME \
         WHERE {OURS} ORDER BY 1, 2, ORDINAL_POSITION"
    );
    let indexes = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, NON_UNIQUE, CASE WHEN SUB_PART IS NULL THEN COLUMN_NAME END, \
         INDEX_TYPE FROM information_schema.STATISTICS WHERE {OURS} ORDER BY 1, 2, INDEX_NAME, SEQ_IN_INDEX"
    );
    let references = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, \
         REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME, \
         (SELECT CONCAT(' ON DELETE ', DELETE_RULE, ' ON UPDATE ', UPDATE_RULE) FROM information_schema.REFERENTIAL_CONSTRAINTS AS r \
         WHERE r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND r.TABLE_NAME = k.TABLE_NAME) \
         FROM information_schema.KEY_COLUMN_USAGE AS k WHERE REFERENCED_TABLE_NAME IS NOT NULL AND {OURS} ORDER BY 1, 2, 3, ORDINAL_POSITION"
    );
    let columns = by_name(session.catalog(&columns).await?);
    let indexes = by_name(session.catalog(&indexes).await?);
    let references = by_name(session.catalog(&references).await?);
    let trees = trees(session).await?;
    let mut found = Vec::new();
    for row in session.catalog(&tables).await? {
        let key = (text(&row, 0), text(&row, 1));
        let next = row
            .get(5)
            .cloned()
            .flatten()
            .and_then(|next| next.parse::<i128>().ok());
        let columns: Vec<Column> = columns
            .get(&key)
            .into_iter()
            .flatten()
            .map(|row| column(row, next))
            .collect();
        let mut indexes = gather(indexes.get(&key).into_iter().flatten());
        for index in &mut indexes {
            index.bytes = trees
                .get(&(key.0.clone(), key.1.clone(), index.name.clone()))
                .map(|tree| tree.0);
        }
        let created = super::created(&columns, false);
        let auto = columns.iter().find(|column| column.counter.is_some());
        let insertion = auto.map(|column| Insertion {
            sql: sql.name(&column.name),
            by: format!("{}, which is AUTO_INCREMENT", column.name),
        });
        found.push(Table {
            name: TableName {
                schema: Some(key.0.clone()),
                name: key.1.clone(),
            },
            rows: u64::try_from(number(&row, 3)).ok(),
            is_counted: false,
            bytes: u64::try_from(number(&row, 4)).ok(),
            storage: match text(&row, 2).eq_ignore_ascii_case("innodb") {
                true => Storage::Clustered,
                false => Storage::Other,
            },
            durability: match &*text(&row, 6) {
                "NO" => Durability::NoTransactions(text(&row, 2)),
                _ => Durability::Transactions,
            },
            partitioned_by: (number(&row, 7) == 1).then(Vec::new),
            created,
            columns,
            indexes,
            references: referring(references.get(&key).into_iter().flatten()),
            dangling: Vec::new(),
            insertion: insertion
                .ok_or_else(|| "InnoDB keeps rows in the order of the key".to_owned()),
            definition: None,
            sample: Default::default(),
        });
    }
    Ok(found)
}

/// A tree's bytes and leaves, by schema, table and index.
type Trees = BTreeMap<(String, String, String), (u64, u64)>;

/// Reads InnoDB's persistent statistics; nothing where the user has no right to them.
async fn trees(session: &mut Session) -> Result<Trees, Failure> {
    let query = "SELECT database_name, table_name, index_name, \
                 MAX(CASE stat_name WHEN 'size' THEN stat_value END), \
                 MAX(CASE stat_name WHEN 'n_leaf_pages' THEN stat_value END) \
                 FROM mysql.innodb_index_stats WHERE stat_name IN ('size', 'n_leaf_pages') \
                 AND database_name <> 'mysql' GROUP BY 1, 2, 3";
    let Ok(rows) = session.rows(query).await? else {
        return Ok(Trees::new());
    };
    let mut trees = Trees::new();
    for row in rows {
        let pages = |at| u64::try_from(number(&row, at)).unwrap_or_default();
        let table = text(&row, 1);
        // Each partition has a tree of its own, of the name `orders#P#p0`.
        let whole = table
            .to_ascii_lowercase()
            .find("#p#")
            .map_or(&*table, |end| &table[..end]);
        let tree = trees
            .entry((text(&row, 0), whole.to_owned(), text(&row, 2)))
            .or_default();
        tree.0 += pages(3) * PAGE;
        tree.1 += pages(4);
    }
    Ok(trees)
}

fn column(row: &[Option<String>], next: Option<i128>) -> Column {
    let declared = text(row, 4);
    let is_signed = !declared.to_ascii_lowercase().contains("unsigned");
    let integer = |bits| Kind::Integer { bits, is_signed };
    let length = text(row, 6).parse().ok();
    let kind = match &*text(row, 3).to_ascii_lowercase() {
        "tinyint" => integer(8),
        "smallint" => integer(16),
        "mediumint" => integer(24),
        "int" => integer(32),
        "bigint" => integer(64),
        "uuid" => Kind::Uuid,
        "binary" => Kind::Bytes { fixed: length },
        "varbinary" | "tinyblob" | "blob" => Kind::Bytes { fixed: None },
        "char" => Kind::Text {
            length,
            is_padded: true,
        },
        "varchar" => Kind::Text {
            length,
            is_padded: false,
        },
        "tinytext" | "text" => Kind::Text {
            length: None,
            is_padded: false,
        },
        "datetime" | "timestamp" => Kind::Time,
        _ => Kind::Other,
    };
    let collation = row.get(7).cloned().flatten().map(|name| Collation {
        compares: compares(&name),
        bytes_a_character: text(row, 9).parse().unwrap_or(1),
        name,
    });
    let is_auto = text(row, 8).contains("auto_increment");
    let counter = is_auto.then(|| Counter {
        name: "AUTO_INCREMENT".to_owned(),
        last: next.map(|next| next - 1),
        highest: kind.highest().unwrap_or_default(),
    });
    Column {
        name: text(row, 2),
        declared,
        kind,
        collation,
        is_nullable: text(row, 5) == "YES",
        counter,
        is_rowid: false,
    }
}

/// Reads what a collation does from its name, as the servers give them.
fn compares(name: &str) -> Compares {
    let is_marked = |mark: &str| name.split('_').any(|part| part == mark);
    if name == "binary" || is_marked("bin") {
        Compares::Bytes
    } else if is_marked("cs") {
        Compares::Language
    } else {
        Compares::IgnoringCase
    }
}

fn gather<'a>(rows: impl Iterator<Item = &'a Vec<Option<String>>>) -> Vec<Index> {
    let mut indexes: Vec<Index> = Vec::new();
    for row in rows {
        let name = text(row, 2);
        if indexes.last().is_none_or(|index| index.name != name) {
            indexes.push(Index {
                is_unique: text(row, 3) == "0",
                is_primary: name == "PRIMARY",
                is_whole: text(row, 5) == "BTREE",
                name,
                ..Index::default()
            });
        }
        if let Some(index) = indexes.last_mut() {
            index.columns.push(text(row, 4));
        }
    }
    indexes
}

fn referring<'a>(rows: impl Iterator<Item = &'a Vec<Option<String>>>) -> Vec<Reference> {
    let mut references: Vec<Reference> = Vec::new();
    for row in rows {
        let name = text(row, 2);
        if references
            .last()
            .is_none_or(|reference| reference.name != name)
        {
            references.push(Reference {
                name,
                columns: Vec::new(),
                parent: TableName {
                    schema: Some(text(row, 4)),
                    name: text(row, 5),
                },
                parent_columns: Vec::new(),
                actions: text(row, 7),
            });
        }
        if let Some(reference) = references.last_mut() {
            reference.columns.push(text(row, 3));
            reference.parent_columns.push(text(row, 6));
        }
    }
    references
}

fn by_name(rows: Rows) -> BTreeMap<(String, String), Rows> {
    let mut grouped: BTreeMap<(String, String), Rows> = BTreeMap::new();
    for row in rows {
        grouped
            .entry((text(&row, 0), text(&row, 1)))
            .or_default()
            .push(row);
    }
    grouped
}

/// Computes how full the leaves of a clustered index are: InnoDB's own statistics know pages, and its rows are as long as
/// their values, with what each row needs besides.
///
/// # Errors
///
/// The connection is lost.
pub(crate) async fn leaves(session: &mut Session, table: &mut Table) -> Result<(), Failure> {
    let sql = Sql(session.engine());
    let (Some(rows), Storage::Clustered, Some(primary)) =
        (table.rows, table.storage, table.primary())
    else {
        return Ok(());
    };
    let name = &table.name;
    let (value, of_table) = match table.partitioned_by {
        None => ("stat_value", "table_name"),
        Some(_) => (
            "CAST(SUM(stat_value) AS UNSIGNED)",
            "SUBSTRING_INDEX(LOWER(table_name), '#p#', 1)",
        ),
    };
    let own = match table.partitioned_by {
        None => name.name.clone(),
        Some(_) => name.name.to_lowercase(),
    };
    let query = format!(
        "SELECT {value} FROM mysql.innodb_index_stats WHERE database_name = {} AND {of_table} = {} \
         AND index_name = 'PRIMARY' AND stat_name = 'n_leaf_pages'",
        sql.text(name.schema.as_deref().unwrap_or_default()),
        sql.text(&own),
    );
    let pages = session
        .rows(&query)
        .await?
        .ok()
        .and_then(|rows| rows.into_iter().flatten().flatten().next());
    let pages = pages
        .and_then(|pages| pages.parse::<u64>().ok())
        .unwrap_or_default();
    if pages < FEW_PAGES || primary.bytes.is_none() {
        return Ok(());
    }
    // 5 bytes of header, 13 of transaction and undo, 2 of the directory, a bit for NULL, the length of what varies.
    let mut terms = vec!["20".to_owned()];
    for column in &table.columns {
        terms.push(stored_bytes(sql, column));
    }
    let length = format!(
        "SELECT AVG({}) FROM (SELECT * FROM {} LIMIT 1000) AS some",
        terms.join(" + "),
        sql.table(name)
    );
    let Ok(answer) = session.rows(&length).await? else {
        return Ok(());
    };
    let length = answer.into_iter().flatten().flatten().next();
    let Some(length) = length.and_then(|length| length.parse::<f64>().ok()) else {
        return Ok(());
    };
    let fill = (rows as f64 * length / (pages as f64 * PAGE as f64)).min(1.0);
    if let Some(primary) = table.indexes.iter_mut().find(|index| index.is_primary) {
        primary.leaves = Some(Leaves {
            pages,
            fill,
            ordered_fill: ORDERED_FILL,
            query,
            source: "InnoDB's statistics, and the length of 1,000 rows",
        });
    }
    Ok(())
}

/// Returns an expression for the bytes that a value takes in a row.
fn stored_bytes(sql: Sql, column: &Column) -> String {
    let fixed = match column.kind {
        Kind::Integer { bits, .. } => Some(bits / 8),
        Kind::Uuid => Some(16),
        Kind::Bytes {
            fixed: Some(length),
        } => Some(length),
        Kind::Time => Some(8),
        _ => None,
    };
    match fixed {
        Some(bytes) => bytes.to_string(),
        None => format!("COALESCE(LENGTH({}), 0) + 1", sql.name(&column.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_collations_say_how_they_compare() {
        for (name, expected) in [
            ("ascii_bin", Compares::Bytes),
            ("utf8mb4_nopad_bin", Compares::Bytes),
            ("binary", Compares::Bytes),
            ("latin1_general_cs", Compares::Language),
            ("utf8mb4_0900_as_cs", Compares::Language),
            ("utf8mb4_uca1400_as_cs", Compares::Language),
            ("utf8mb4_uca1400_ai_ci", Compares::IgnoringCase),
            ("utf8mb4_general_ci", Compares::IgnoringCase),
            ("utf8mb4_0900_bin", Compares::Bytes),
        ] {
            assert_eq!(compares(name), expected, "{name}");
        }
    }
}
