//! Reads PostgreSQL's catalog.

use std::collections::BTreeMap;

use super::{
    model::{
        Collation, Column, Compares, Counter, Durability, Index, Insertion, Kind, Leaves,
        Reference, Storage, Table, TableName,
    },
    session::{Session, by_table, names, number},
    sql::Sql,
};
use crate::{database::text, engine::Engine, failure::Failure};

const SQL: Sql = Sql(Engine::Postgres);

/// The pages below which a tree's fill says nothing.
const FEW_PAGES: u64 = 64;

const SETTINGS: &str = "SELECT name, reset_val FROM pg_settings WHERE name IN \
    ('default_transaction_isolation', 'default_transaction_read_only', 'synchronous_commit', \
    'max_prepared_transactions', 'full_page_writes', 'fsync') \
    UNION ALL SELECT 'prepared_transactions', count(*)::text FROM pg_prepared_xacts";

/// The database's prepared transactions of flushes.
pub(crate) const PREPARED: &str = "SELECT gid, floor(extract(epoch FROM now() - prepared))::bigint FROM pg_prepared_xacts \
    WHERE database = current_database() AND gid LIKE 'ordid:%' ORDER BY prepared";

/// Tables that no extension owns; of partitioned ones the whole.
const TABLES: &str = "SELECT c.oid, n.nspname, c.relname, c.relkind, c.reltuples::bigint, \
    CASE c.relkind WHEN 'p' THEN (SELECT sum(pg_relation_size(p.relid)) FROM pg_partition_tree(c.oid) p) \
        ELSE pg_relation_size(c.oid) END::bigint, \
    coalesce(s.n_tup_upd, 0) + coalesce(s.n_tup_del, 0), c.relpersistence, \
    (SELECT json_agg(coalesce(a.attname, '')) FROM pg_partitioned_table p, unnest(p.partattrs::int[]) AS k (number) \
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number AND k.number > 0 \
        WHERE p.partrelid = c.oid) \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid \
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't' \
    AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' \
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') \
    ORDER BY 2, 3";

/// The sequence of a column comes from the catalog: `pg_get_serial_sequence` fails as a whole where one schema is closed to the user,
/// or one table was dropped meanwhile.
const COLUMNS: &str = "SELECT a.attrelid, a.attname, format_type(a.atttypid, a.atttypmod), \
    coalesce(nullif(t.typbasetype, 0), t.oid)::regtype, \
    CASE WHEN coalesce(nullif(t.typtypmod, -1), a.atttypmod) > 4 \
        THEN coalesce(nullif(t.typtypmod, -1), a.atttypmod) - 4 END, \
    NOT a.attnotnull, co.collname, co.collprovider, co.collcollate, \
    co.collisdeterministic, \
    (SELECT quote_ident(sn.nspname) || '.' || quote_ident(s.relname) FROM pg_depend d JOIN pg_class s ON s.oid = d.objid \
        AND s.relkind = 'S' JOIN pg_namespace sn ON sn.oid = s.relnamespace WHERE d.classid = 'pg_class'::regclass \
        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum \
        AND d.deptype IN ('a', 'i') LIMIT 1) \
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation co ON co.oid = a.attcollation \
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped \
    AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' ORDER BY a.attrelid, a.attnum";

const DATABASE: &str = "SELECT datcollate, coalesce(to_jsonb(d) ->> 'datlocprovider', 'c'), \
    coalesce(to_jsonb(d) ->> 'daticulocale', to_jsonb(d) ->> 'datlocale') \
    FROM pg_database d WHERE datname = current_database()";

const SEQUENCES: &str = "SELECT quote_ident(schemaname) || '.' || quote_ident(sequencename), last_value, max_value \
    FROM pg_sequences";

const INDEXES: &str = "SELECT i.indrelid, ic.relname, i.indisprimary, i.indisunique, \
    i.indpred IS NULL AND i.indisvalid, \
    CASE ic.relkind WHEN 'I' THEN (SELECT sum(pg_relation_size(p.relid)) FROM pg_partition_tree(ic.oid) p) \
        ELSE pg_relation_size(ic.oid) END::bigint, \
    am.amname, n.nspname, ic.relkind, \
    (SELECT json_agg(coalesce(a.attname, '') ORDER BY k.place) \
        FROM unnest(i.indkey::int[]) WITH ORDINALITY AS k (number, place) \
        LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND k.number > 0 \
        WHERE k.place <= i.indnkeyatts) \
    FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am am ON am.oid = ic.relam \
    JOIN pg_namespace n ON n.oid = ic.relnamespace \
    WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' ORDER BY i.indrelid, ic.relname";

const REFERENCES: &str = "SELECT f.conrelid, f.conname, n.nspname, p.relname, \
    (SELECT json_agg(a.attname ORDER BY k.place) FROM unnest(f.conkey) WITH ORDINALITY AS k (number, place) \
        JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.number), \
    (SELECT json_agg(a.attname ORDER BY k.place) FROM unnest(f.confkey) WITH ORDINALITY AS k (number, place) \
        JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = k.number) \
    FROM pg_constraint f JOIN pg_class p ON p.oid = f.confrelid JOIN pg_namespace n ON n.oid = p.relnamespace \
    WHERE f.contype = 'f' AND f.conparentid = 0 ORDER BY f.conrelid, f.conname";

/// Reads the settings of the whole database.
pub(crate) struct Server {
    pub(crate) version: String,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) prepared: Vec<(String, i64)>,
}

/// Reads version, settings and prepared transactions.
pub(crate) async fn server(session: &mut Session) -> Result<Server, Failure> {
    let version = session
        .catalog("SELECT current_setting('server_version')")
        .await?;
    let settings = session.catalog(SETTINGS).await?;
    let prepared = session.catalog(PREPARED).await?;
    Ok(Server {
        version: version
            .into_iter()
            .flatten()
            .flatten()
            .next()
            .unwrap_or_default(),
        settings: settings
            .into_iter()
            .map(|row| (text(&row, 0), text(&row, 1)))
            .collect(),
        prepared: prepared
            .into_iter()
            .map(|row| (text(&row, 0), number(&row, 1)))
            .collect(),
    })
}

/// Reads the tables, without their rows.
pub(crate) async fn tables(session: &mut Session) -> Result<Vec<Table>, Failure> {
    let database = session.catalog(DATABASE).await?;
    let counters = counters(session).await?;
    let columns = by_table(session.catalog(COLUMNS).await?);
    let indexes = by_table(session.catalog(INDEXES).await?);
    let references = by_table(session.catalog(REFERENCES).await?);
    let pgstattuple = "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace \
                       WHERE e.extname = 'pgstattuple'";
    let pgstattuple = session
        .catalog(pgstattuple)
        .await?
        .into_iter()
        .flatten()
        .flatten()
        .next();
    let mut tables = Vec::new();
    for row in session.catalog(TABLES).await? {
        let id = text(&row, 0);
        let default = database.first().cloned().unwrap_or_default();
        let columns: Vec<Column> = columns
            .get(&id)
            .into_iter()
            .flatten()
            .map(|row| column(row, &default, &counters))
            .collect();
        let rows = u64::try_from(number(&row, 4)).ok();
        let is_partitioned = text(&row, 3) == "p";
        let insertion = match (is_partitioned, number(&row, 6)) {
            (true, _) => Err("its rows are in several partitions".to_owned()),
            (false, 0) => Ok(Insertion {
                sql: "ctid".to_owned(),
                by: "ctid; no row was updated or deleted since statistics began".to_owned(),
            }),
            (false, changed) => Err(format!("{changed} updates and deletes have moved its rows")),
        };
        let mut indexes: Vec<Index> = indexes
            .get(&id)
            .into_iter()
            .flatten()
            .map(|row| index(row))
            .collect();
        if let Some(schema) = &pgstattuple {
            for index in &mut indexes {
                leaves(session, schema, &text(&row, 1), index).await?;
            }
        }
        tables.push(Table {
            name: TableName {
                schema: Some(text(&row, 1)),
                name: text(&row, 2),
            },
            rows,
            is_counted: false,
            bytes: u64::try_from(number(&row, 5)).ok(),
            storage: Storage::Heap,
            durability: match &*text(&row, 7) {
                "u" => Durability::Unlogged,
                _ => Durability::Transactions,
            },
            partitioned_by: is_partitioned.then(|| names(&row, 8)),
            created: super::created(&columns, false),
            columns,
            indexes,
            references: references
                .get(&id)
                .into_iter()
                .flatten()
                .map(|row| reference(row))
                .collect(),
            dangling: Vec::new(),
            insertion,
            definition: None,
            sample: Default::default(),
        });
    }
    Ok(tables)
}

async fn counters(session: &mut Session) -> Result<BTreeMap<String, Counter>, Failure> {
    let rows = session.catalog(SEQUENCES).await?;
    let counter = |row: Vec<Option<String>>| {
        let name = text(&row, 0);
        let counter = Counter {
            name: name.clone(),
            last: row[1].as_deref().and_then(|last| last.parse().ok()),
            highest: text(&row, 2).parse().unwrap_or(i128::from(i64::MAX)),
        };
        (name, counter)
    };
    Ok(rows.into_iter().map(counter).collect())
}

fn column(
    row: &[Option<String>],
    database: &[Option<String>],
    counters: &BTreeMap<String, Counter>,
) -> Column {
    let declared = text(row, 2);
    let length = row[4].as_deref().and_then(|length| length.parse().ok());
    let kind = match &*text(row, 3) {
        "smallint" => Kind::Integer {
            bits: 16,
            is_signed: true,
        },
        "integer" => Kind::Integer {
            bits: 32,
            is_signed: true,
        },
        "bigint" => Kind::Integer {
            bits: 64,
            is_signed: true,
        },
        "uuid" => Kind::Uuid,
        "bytea" => Kind::Bytes { fixed: None },
        "character" => Kind::Text {
            length,
            is_padded: true,
        },
        "text" | "character varying" => Kind::Text {
            length,
            is_padded: false,
        },
        "timestamp with time zone" | "timestamp without time zone" => Kind::Time,
        _ => Kind::Other,
    };
    let collation = row[6].as_ref().map(|name| {
        let is_default = name == "default";
        let (provider, locale) = match is_default {
            true => (text(database, 1), text(database, 0)),
            false => (text(row, 7), text(row, 8)),
        };
        let is_bytes = match &*provider {
            "i" => false,
            // Version 17 has these: C and C.UTF-8 compare code points, and so does PG_UNICODE_FAST.
            "b" => true,
            _ => {
                let locale = locale.to_ascii_lowercase();
                matches!(&*locale, "c" | "posix" | "c.utf-8" | "c.utf8" | "ucs_basic")
                    || name == "ucs_basic"
            }
        };
        let compares = match (is_bytes, text(row, 9) == "f") {
            (true, _) => Compares::Bytes,
            (false, true) => Compares::IgnoringCase,
            (false, false) => Compares::Language,
        };
        let name = match (is_default, &*provider) {
            (true, "i") => format!("the database's own, {}", text(database, 2)),
            (true, _) => format!("the database's own, {locale}"),
            _ => name.clone(),
        };
        Collation {
            name,
            compares,
            bytes_a_character: 1,
        }
    });
    Column {
        name: text(row, 1),
        declared,
        kind,
        collation,
        is_nullable: text(row, 5) == "t",
        counter: row[10]
            .as_ref()
            .and_then(|sequence| counters.get(sequence))
            .cloned(),
        is_rowid: false,
    }
}

fn index(row: &[Option<String>]) -> Index {
    Index {
        name: text(row, 1),
        columns: names(row, 9),
        is_primary: text(row, 2) == "t",
        is_unique: text(row, 3) == "t",
        is_whole: text(row, 4) == "t",
        // Only trees have leaves whose fill says something.
        bytes: (text(row, 6) == "btree")
            .then(|| u64::try_from(number(row, 5)).ok())
            .flatten(),
        leaves: None,
    }
}

fn reference(row: &[Option<String>]) -> Reference {
    Reference {
        name: text(row, 1),
        columns: names(row, 4),
        parent: TableName {
            schema: Some(text(row, 2)),
            name: text(row, 3),
        },
        parent_columns: names(row, 5),
        actions: String::new(),
    }
}

/// Asks pgstattuple about a unique index. It reads the whole of it, within the time limit.
async fn leaves(
    session: &mut Session,
    extension: &str,
    schema: &str,
    index: &mut Index,
) -> Result<(), Failure> {
    let few = FEW_PAGES * 8_192;
    if !index.is_unique || index.bytes.is_none_or(|bytes| bytes < few) {
        return Ok(());
    }
    let name = TableName {
        schema: Some(schema.to_owned()),
        name: index.name.clone(),
    };
    let query = format!(
        "SELECT avg_leaf_density, leaf_pages FROM {}.pgstatindex({}::regclass)",
        SQL.name(extension),
        SQL.text(&SQL.table(&name)),
    );
    // Without the right to it, or the time, the size is all that is known.
    if let Ok(rows) = session.rows(&query).await?
        && let Some(row) = rows.first()
        && let Ok(density) = text(row, 0).parse::<f64>()
    {
        index.leaves = Some(Leaves {
            pages: u64::try_from(number(row, 1)).unwrap_or_default(),
            fill: density / 100.0,
            ordered_fill: 0.9,
            query,
            source: "pgstattuple",
        });
    }
    Ok(())
}

/// Computes how full the leaves of the unique indexes of one column are, where pgstattuple does not say so: from the size
/// of the index, the rows and the bytes of an entry.
pub(crate) fn computed_leaves(table: &mut Table) {
    let Some(rows) = table.rows.filter(|rows| *rows > 0) else {
        return;
    };
    let sizes: Vec<Option<f64>> = table
        .indexes
        .iter()
        .map(|index| entry_bytes(table, index))
        .collect();
    let schema = table.name.schema.clone();
    let is_partitioned = table.partitioned_by.is_some();
    for (index, entry) in table.indexes.iter_mut().zip(sizes) {
        let (Some(bytes), Some(entry), None) = (index.bytes, entry, &index.leaves) else {
            continue;
        };
        let pages = bytes / 8_192;
        if pages < FEW_PAGES || !index.is_unique || !index.is_whole {
            continue;
        }
        let name = TableName {
            schema: schema.clone(),
            name: index.name.clone(),
        };
        index.leaves = Some(Leaves {
            pages,
            fill: (rows as f64 * entry / bytes as f64).min(1.0),
            ordered_fill: 0.9,
            query: match (is_partitioned, SQL.text(&SQL.table(&name))) {
                (false, name) => format!("SELECT pg_relation_size({name}::regclass)"),
                (true, name) => {
                    format!(
                        "SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree({name}::regclass)"
                    )
                }
            },
            source: "computed from size and rows",
        });
    }
}

/// The bytes of an entry: its header and its pointer in the page, and the key.
fn entry_bytes(table: &Table, index: &Index) -> Option<f64> {
    let [name] = &index.columns[..] else {
        return None;
    };
    let column = table.column(name)?;
    let key = match column.kind {
        Kind::Uuid => 16.0,
        Kind::Integer { .. } => 8.0,
        Kind::Text { .. } | Kind::Bytes { .. } => {
            let at = table
                .sample
                .columns
                .iter()
                .position(|sampled| sampled == name)?;
            let lengths = table.sample.rows.iter().map(|row| match &row.values[at] {
                super::model::Value::Text(text) => text.len() + 1,
                super::model::Value::Bytes(bytes) => bytes.len() + 1,
                _ => 0,
            });
            let count = table.sample.rows.len();
            let total: usize = lengths.map(|length| length.next_multiple_of(8)).sum();
            total as f64 / count.max(1) as f64
        }
        _ => return None,
    };
    Some(key + 8.0 + 4.0)
}
