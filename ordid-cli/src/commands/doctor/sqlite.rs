//! Reads SQLite's schema.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    model::{
        Collation, Column, Compares, Counter, Dangling, Definition, Durability, Index, Insertion,
        Kind, Leaves, Reference, Storage, Table, TableName, Unseen,
    },
    postgres::Server,
    session::{Session, number},
    sql::Sql,
};
use crate::{
    database::text,
    engine::Engine,
    failure::Failure,
    migration::sqlite_ddl::{rowid_beside, uses_rowid},
};

const SQL: Sql = Sql(Engine::Sqlite);

/// The pages below which a tree's fill says nothing.
const FEW_PAGES: u64 = 64;

/// How full SQLite's leaves are when keys come in order: `bench engines` measured 0.877.
const ORDERED_FILL: f64 = 0.877;

/// Reads the version. What SQLite calls settings are each connection's own.
pub(crate) async fn server(session: &mut Session) -> Result<Server, Failure> {
    let version = session.catalog("SELECT sqlite_version()").await?;
    Ok(Server {
        version: version
            .into_iter()
            .flatten()
            .flatten()
            .next()
            .unwrap_or_default(),
        settings: BTreeMap::new(),
        prepared: Vec::new(),
    })
}

/// Reads the tables, without their rows.
pub(crate) async fn tables(session: &mut Session) -> Result<Vec<Table>, Failure> {
    let list = "SELECT l.name, l.wr, s.sql FROM pragma_table_list AS l \
                JOIN sqlite_schema AS s ON s.name = l.name AND s.type = 'table' \
                WHERE l.schema = 'main' AND l.type = 'table' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1";
    let sequences = match session
        .rows("SELECT name, seq FROM sqlite_sequence")
        .await?
    {
        Ok(rows) => rows
            .into_iter()
            .map(|row| (text(&row, 0), number(&row, 1)))
            .collect(),
        // No table is AUTOINCREMENT.
        Err(_) => BTreeMap::new(),
    };
    let taken = session.catalog("SELECT name FROM sqlite_schema").await?;
    let taken: Arc<[String]> = taken.iter().map(|row| text(row, 0)).collect();
    let codes = session
        .catalog("SELECT name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger') ORDER BY 1")
        .await?;
    let rowid_user = codes.iter().find(|row| uses_rowid(&text(row, 1)));
    let rowid_user = rowid_user.map(|row| text(row, 0));
    let mut tables = Vec::new();
    for row in session.catalog(list).await? {
        let (name, has_no_rowid) = (text(&row, 0), text(&row, 1) == "1");
        let quoted = SQL.text(&name);
        let columns = format!(
            "SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo({quoted}) WHERE hidden <> 1"
        );
        let columns = session.catalog(&columns).await?;
        let in_key = columns.iter().filter(|row| number(row, 3) > 0).count();
        let (mut indexes, collations) = indexes(session, &quoted, has_no_rowid).await?;
        let sequence = sequences.get(&name).copied();
        let columns: Vec<Column> = columns
            .iter()
            .map(|row| column(row, has_no_rowid, in_key == 1, &collations, sequence))
            .collect();
        let rowid = columns.iter().find(|column| column.is_rowid);
        if let Some(rowid) = rowid {
            // The table itself is its tree.
            indexes.push(Index {
                name: name.clone(),
                columns: vec![rowid.name.clone()],
                is_unique: true,
                is_primary: true,
                is_whole: true,
                ..Index::default()
            });
        }
        let insertion = match (has_no_rowid, rowid) {
            (true, _) => Err("the table has no rowid".to_owned()),
            (false, Some(_)) => Err("the key is the rowid".to_owned()),
            (false, None) => Ok(Insertion {
                sql: "rowid".to_owned(),
                by: "rowid".to_owned(),
            }),
        };
        let definition = Definition {
            rowid_user: rowid_user.clone(),
            rowid: rowid_beside(columns.iter().map(|column| column.name.as_str()))
                .filter(|_| !has_no_rowid),
            ..definition(session, &quoted, text(&row, 2), sequence.is_some(), &taken).await?
        };
        tables.push(Table {
            name: TableName { schema: None, name },
            rows: None,
            is_counted: false,
            bytes: None,
            storage: match (has_no_rowid, rowid) {
                (true, _) | (false, Some(_)) => Storage::Clustered,
                (false, None) => Storage::Rowid,
            },
            durability: Durability::Transactions,
            partitioned_by: None,
            created: super::created(&columns, true),
            columns,
            indexes,
            references: references(session, &quoted).await?,
            dangling: Vec::new(),
            insertion,
            definition: Some(definition),
            sample: Default::default(),
        });
    }
    for at in 0..tables.len() {
        resolve(&mut tables, at);
    }
    Ok(tables)
}

async fn definition(
    session: &mut Session,
    table: &str,
    create: String,
    is_autoincrement: bool,
    taken: &Arc<[String]>,
) -> Result<Definition, Failure> {
    let columns =
        format!("SELECT name FROM pragma_table_xinfo({table}) WHERE hidden = 0 ORDER BY cid");
    let columns = session.catalog(&columns).await?;
    let others = format!(
        "SELECT type, name, sql FROM sqlite_schema WHERE tbl_name = {table} COLLATE NOCASE \
         AND type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY 1, 2"
    );
    let others = session.catalog(&others).await?;
    Ok(Definition {
        create,
        columns: columns.iter().map(|row| text(row, 0)).collect(),
        others: others
            .iter()
            .map(|row| (text(row, 0), text(row, 1), text(row, 2)))
            .collect(),
        is_autoincrement,
        taken: Arc::clone(taken),
        rowid_user: None,
        rowid: None,
    })
}

/// A reference that names no columns means the parent's primary key, and names are as good in any case.
fn resolve(tables: &mut [Table], at: usize) {
    let known = |names: &mut [String], table: &Table| {
        for name in names {
            let same = |column: &&Column| column.name.eq_ignore_ascii_case(name);
            if let Some(column) = table.columns.iter().find(same) {
                name.clone_from(&column.name);
            }
        }
    };
    for place in 0..tables[at].references.len() {
        let mut reference = tables[at].references[place].clone();
        known(&mut reference.columns, &tables[at]);
        let mut names = tables.iter().map(|table| &table.name);
        if let Some(name) =
            names.find(|name| name.name.eq_ignore_ascii_case(&reference.parent.name))
        {
            reference.parent = name.clone();
        }
        if let Some(parent) = tables.iter().find(|table| table.name == reference.parent) {
            known(&mut reference.parent_columns, parent);
        }
        tables[at].references[place] = reference;
        let reference = &tables[at].references[place];
        if reference.parent_columns.iter().any(String::is_empty) {
            let parent = tables.iter().find(|table| table.name == reference.parent);
            let columns = parent.and_then(|parent| parent.primary().map(|key| key.columns.clone()));
            tables[at].references[place].parent_columns = columns.unwrap_or_default();
        }
    }
}

type Collations = BTreeMap<String, String>;

async fn indexes(
    session: &mut Session,
    table: &str,
    has_no_rowid: bool,
) -> Result<(Vec<Index>, Collations), Failure> {
    let list = format!("SELECT name, \"unique\", origin, partial FROM pragma_index_list({table})");
    let (mut indexes, mut collations) = (Vec::new(), Collations::new());
    for row in session.catalog(&list).await? {
        let name = text(&row, 0);
        let parts = format!(
            "SELECT name, coll FROM pragma_index_xinfo({}) WHERE key = 1 ORDER BY seqno",
            SQL.text(&name)
        );
        let parts = session.catalog(&parts).await?;
        let is_primary = text(&row, 2) == "pk";
        for part in &parts {
            // The key's own collation goes before that of an index that somebody has added.
            if is_primary || !collations.contains_key(&text(part, 0)) {
                collations.insert(text(part, 0), text(part, 1));
            }
        }
        let mut columns: Vec<String> = parts.iter().map(|part| text(part, 0)).collect();
        if is_primary && has_no_rowid {
            // The tree has all columns, and the key's stand in front.
            let keys =
                format!("SELECT name FROM pragma_table_info({table}) WHERE pk > 0 ORDER BY pk");
            let keys = session.catalog(&keys).await?;
            columns = keys.iter().map(|key| text(key, 0)).collect();
        }
        indexes.push(Index {
            name,
            columns,
            is_unique: number(&row, 1) == 1,
            is_primary,
            is_whole: number(&row, 3) == 0,
            ..Index::default()
        });
    }
    Ok((indexes, collations))
}

async fn references(session: &mut Session, table: &str) -> Result<Vec<Reference>, Failure> {
    let list = format!(
        "SELECT id, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list({table}) ORDER BY id, seq"
    );
    let mut references: Vec<Reference> = Vec::new();
    for row in session.catalog(&list).await? {
        let name = reference_name(&text(&row, 0));
        if references
            .last()
            .is_none_or(|reference| reference.name != name)
        {
            references.push(Reference {
                name,
                columns: Vec::new(),
                parent: TableName {
                    schema: None,
                    name: text(&row, 1),
                },
                parent_columns: Vec::new(),
                actions: String::new(),
            });
        }
        if let Some(reference) = references.last_mut() {
            reference.columns.push(text(&row, 2));
            reference.parent_columns.push(text(&row, 3));
        }
    }
    Ok(references)
}

fn column(
    row: &[Option<String>],
    has_no_rowid: bool,
    is_single_key: bool,
    collations: &Collations,
    sequence: Option<i64>,
) -> Column {
    let (name, declared) = (text(row, 0), text(row, 1));
    let is_key = number(row, 3) > 0;
    let is_rowid =
        is_key && is_single_key && !has_no_rowid && declared.eq_ignore_ascii_case("integer");
    let kind = affinity(&declared);
    let collation = collations
        .get(&name)
        .map(String::as_str)
        .unwrap_or("BINARY");
    let collation = Collation {
        name: collation.to_owned(),
        compares: match collation {
            "BINARY" | "RTRIM" => Compares::Bytes,
            "NOCASE" => Compares::IgnoringCase,
            _ => Compares::Language,
        },
        bytes_a_character: 1,
    };
    let counter = is_rowid.then(|| Counter {
        name: "rowid".to_owned(),
        last: sequence.map(i128::from),
        highest: i128::from(i64::MAX),
    });
    Column {
        name,
        declared,
        kind,
        collation: matches!(kind, Kind::Text { .. }).then_some(collation),
        // The key of a table without rowid refuses NULL by itself.
        is_nullable: number(row, 2) == 0 && !is_rowid && !(is_key && has_no_rowid),
        counter,
        is_rowid,
    }
}

/// Returns what a declared type holds, by section 3.1 of "Datatypes In SQLite": the first rule that fits.
pub(crate) fn affinity(declared: &str) -> Kind {
    let declared = declared.to_ascii_uppercase();
    let has = |part: &str| declared.contains(part);
    if has("INT") {
        Kind::Integer {
            bits: 64,
            is_signed: true,
        }
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        Kind::Text {
            length: None,
            is_padded: false,
        }
    } else if has("BLOB") || declared.is_empty() {
        Kind::Bytes { fixed: None }
    } else if has("DATE") || has("TIME") {
        Kind::Time
    } else {
        Kind::Numeric
    }
}

/// Asks dbstat for the size and fill of a table's tree and of its unique indexes. It reads each page of them, within the
/// time limit.
///
/// # Errors
///
/// The file cannot be read.
pub(crate) async fn leaves(session: &mut Session, table: &mut Table) -> Result<(), Failure> {
    let main = table.name.name.clone();
    if let Some((bytes, _)) = tree(session, &main).await? {
        table.bytes = Some(bytes);
    }
    let has_own_tree = table.storage == Storage::Clustered;
    for index in table.indexes.iter_mut().filter(|index| index.is_unique) {
        // dbstat knows the tree of a table without rowid by the table's name.
        let name = if index.is_primary && has_own_tree {
            &main
        } else {
            &index.name
        };
        if let Some((bytes, leaves)) = tree(session, name).await? {
            index.bytes = Some(bytes);
            index.leaves = leaves;
        }
    }
    Ok(())
}

/// Counts the rows that refer to rows which are not there, within the time limit: SQLite checks foreign keys only on
/// connections that ask for it. `PRAGMA foreign_key_check` is no help, as one wrong foreign key ends it for the whole table.
///
/// # Errors
///
/// The file cannot be read.
pub(crate) async fn dangling(
    session: &mut Session,
    table: &mut Table,
) -> Result<Vec<Unseen>, Failure> {
    let (mut dangling, mut unseen) = (Vec::new(), Vec::new());
    for (place, reference) in table.references.iter().enumerate() {
        let parent = format!(
            "SELECT 1 FROM sqlite_schema WHERE type IN ('table', 'view') AND name = {} COLLATE NOCASE",
            SQL.text(&reference.parent.name)
        );
        let has_parent = !session.catalog(&parent).await?.is_empty();
        let condition = refers_to_nothing(table, reference, has_parent);
        let query = format!(
            "SELECT count(*) FROM {} WHERE {condition}",
            SQL.table(&table.name)
        );
        let answer = if has_parent && reference.columns.len() != reference.parent_columns.len() {
            Err(format!(
                "the foreign key does not name as many columns as the primary key of {} has",
                reference.parent
            ))
        } else {
            match session.rows(&query).await? {
                // Where SQLite refuses the foreign key, its rows are not what has to be corrected first.
                Ok(_) if has_parent && !is_enforceable(session, reference).await? => Err(format!(
                    "SQLite refuses the foreign key, and any change of the table where foreign keys are on: {} of {} {} no \
                     unique index",
                    reference.parent_columns.join(", "),
                    reference.parent,
                    if reference.parent_columns.len() == 1 {
                        "has"
                    } else {
                        "have"
                    }
                )),
                answer => answer.map_err(|why| why.to_string()),
            }
        };
        match answer {
            Ok(rows) => {
                let rows = rows.first().map_or(0, |row| number(row, 0));
                let rows = u64::try_from(rows).unwrap_or_default();
                if rows > 0 || !has_parent {
                    dangling.push(Dangling {
                        reference: place,
                        rows,
                        condition,
                        has_parent,
                    });
                }
            }
            Err(why) => unseen.push(Unseen {
                table: table.name.clone(),
                what: "rows without the rows that they refer to",
                why,
                query,
            }),
        }
    }
    table.dangling = dangling;
    Ok(unseen)
}

/// Whether the columns that a foreign key refers to are the primary key of a table, or have a unique index of the whole table.
async fn is_enforceable(session: &mut Session, reference: &Reference) -> Result<bool, Failure> {
    let parent = SQL.text(&reference.parent.name);
    let unique = format!(
        "SELECT '', name FROM pragma_table_info({parent}) WHERE pk > 0 UNION ALL SELECT 'i' || l.name, i.name \
         FROM pragma_index_list({parent}) AS l JOIN pragma_index_info(l.name) AS i WHERE l.\"unique\" AND NOT l.partial"
    );
    let mut indexes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in session.catalog(&unique).await? {
        let columns = indexes.entry(text(&row, 0)).or_default();
        columns.push(text(&row, 1).to_lowercase());
    }
    let in_order = |mut columns: Vec<String>| {
        columns.sort();
        columns
    };
    let wanted = reference.parent_columns.iter().map(|it| it.to_lowercase());
    let wanted = in_order(wanted.collect());
    Ok(indexes
        .into_values()
        .any(|columns| in_order(columns) == wanted))
}

/// Returns the condition of a row that refers to nothing.
fn refers_to_nothing(table: &Table, reference: &Reference, has_parent: bool) -> String {
    let name = SQL.table(&table.name);
    let column = |column: &String| format!("{name}.{}", SQL.name(column));
    let mut conditions: Vec<String> = reference
        .columns
        .iter()
        .map(|it| format!("{} IS NOT NULL", column(it)))
        .collect();
    if has_parent {
        // An alias that cannot be the table's own name: it would hide the table.
        let alias = SQL.name(&format!("{}_referred", table.name.name));
        let pairs = reference.columns.iter().zip(&reference.parent_columns);
        // The right side has no affinity, so that of the key applies, as in SQLite's check of foreign keys.
        let equal: Vec<String> = pairs
            .map(|(child, key)| format!("{alias}.{} = +{}", SQL.name(key), column(child)))
            .collect();
        conditions.push(format!(
            "NOT EXISTS (SELECT 1 FROM {} AS {alias} WHERE {})",
            SQL.table(&reference.parent),
            equal.join(" AND ")
        ));
    }
    conditions.join(" AND ")
}

fn reference_name(id: &str) -> String {
    format!("foreign key {id}")
}

async fn tree(session: &mut Session, name: &str) -> Result<Option<(u64, Option<Leaves>)>, Failure> {
    let query = format!(
        "SELECT count(*), sum(pgsize), sum(unused), (SELECT sum(pgsize) FROM dbstat WHERE name = {0}) \
         FROM dbstat WHERE name = {0} AND pagetype = 'leaf'",
        SQL.text(name)
    );
    // A SQLite without dbstat, or too little time.
    let Ok(rows) = session.rows(&query).await? else {
        return Ok(None);
    };
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let figure = |at| u64::try_from(number(row, at)).unwrap_or_default();
    let (pages, bytes, unused) = (figure(0), figure(1), figure(2));
    if bytes == 0 {
        return Ok(None);
    }
    let leaves = (pages >= FEW_PAGES).then(|| Leaves {
        pages,
        fill: 1.0 - unused as f64 / bytes as f64,
        ordered_fill: ORDERED_FILL,
        query,
        source: "dbstat",
    });
    Ok(Some((figure(3), leaves)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_have_the_affinity_that_the_manual_gives_them() {
        for name in ["UUID", "GUID", "STRING", "BINARY(16)", "DECIMAL"] {
            assert_eq!(affinity(name), Kind::Numeric, "{name}");
        }
        for name in ["BIGINT", "INTEGER", "UNSIGNED BIG INT"] {
            assert!(matches!(affinity(name), Kind::Integer { .. }), "{name}");
        }
        for name in ["VARCHAR(36)", "TEXT", "CLOB", "uuid_text"] {
            assert!(matches!(affinity(name), Kind::Text { .. }), "{name}");
        }
        for name in ["BLOB", ""] {
            assert_eq!(affinity(name), Kind::Bytes { fixed: None }, "{name:?}");
        }
    }
}
