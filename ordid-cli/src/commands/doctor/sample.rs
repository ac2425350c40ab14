//! Chooses the rows that are read, and reads them.

use super::{
    model::{Insertion, Kind, Row, Storage, Table, Unseen, Value},
    rules::grouped,
    session::{Refusal, Session},
    sql::{Sql, hex},
};
use crate::{engine::Engine, failure::Failure};

/// The estimate up to which rows are counted.
const COUNTED: u64 = 1_000_000;

/// How many stretches of the key's order are read where not all rows are.
const STRETCHES: u64 = 4;

/// Counts the rows and reads a sample of them.
///
/// # Errors
///
/// The connection is lost. What the server refuses becomes an [`Unseen`].
pub(crate) async fn read(
    session: &mut Session,
    table: &mut Table,
    size: u64,
) -> Result<Option<Unseen>, Failure> {
    let sql = Sql(session.engine());
    if let (Err(_), Some(created)) = (&table.insertion, &table.created) {
        table.insertion = Ok(Insertion {
            sql: sql.name(created),
            by: format!("the time in {created}"),
        });
    }
    table.sample.columns = table.key_columns();
    if table.sample.columns.is_empty() {
        return Ok(None);
    }
    let unseen = |table: &Table, what, why: Refusal, query: String| {
        Ok(Some(Unseen {
            table: table.name.clone(),
            what,
            why: why.to_string(),
            query,
        }))
    };
    if table.rows.is_none_or(|rows| rows < COUNTED) {
        let count = format!("SELECT count(*) FROM {}", sql.table(&table.name));
        match session.rows(&count).await? {
            Ok(rows) => {
                let rows = rows.into_iter().flatten().flatten().next();
                table.rows = rows.and_then(|rows| rows.parse().ok());
                table.is_counted = true;
            }
            Err(why @ Refusal::Refused(_)) => return unseen(table, "the rows", why, count),
            Err(Refusal::TimedOut(_)) => {}
        }
    }
    choose(session, table, size).await?;
    let query = selected(sql, table);
    match session.rows(&query).await? {
        Ok(rows) => {
            let mut sampled = Vec::with_capacity(rows.len());
            for row in rows {
                sampled.push(decoded(sql, table, row));
                // Ctrl-C ends it between any two rows.
                if sampled.len().is_multiple_of(1_000) {
                    tokio::task::yield_now().await;
                }
            }
            table.sample.rows = sampled;
            if table.sample.is_whole && !table.is_counted {
                table.rows = u64::try_from(table.sample.rows.len()).ok();
                table.is_counted = true;
            }
            Ok(None)
        }
        Err(why) => {
            table.sample.how = format!("none: {why}");
            unseen(table, "the values of its keys", why, query)
        }
    }
}

/// Settles which rows are read.
async fn choose(session: &mut Session, table: &mut Table, size: u64) -> Result<(), Failure> {
    let sql = Sql(session.engine());
    let name = sql.table(&table.name);
    let all = format!("SELECT {} FROM {name}", seen(sql, table));
    let is_small = table.rows.is_none_or(|rows| rows <= size);
    if is_small && table.is_counted {
        table.sample.is_whole = true;
        table.sample.how = "all rows".to_owned();
        table.sample.source = all;
        return Ok(());
    }
    let rows = table.rows.unwrap_or_default();
    if session.engine() == Engine::Postgres && rows > size {
        let percent = (100.0 * size as f64 / rows as f64).min(100.0);
        table.sample.source = format!(
            "{all} TABLESAMPLE SYSTEM ({percent:.6}) REPEATABLE (1) LIMIT {}",
            size * 2
        );
        table.sample.how =
            format!("the rows of {percent:.2} % of the pages, which TABLESAMPLE SYSTEM has chosen");
        return Ok(());
    }
    let key = table
        .primary()
        .and_then(|primary| primary.columns.first())
        .cloned();
    let Some(key) = key.filter(|_| rows > size && table.storage != Storage::Other) else {
        table.sample.source = format!("{all} LIMIT {size}");
        table.sample.how = format!("the first {} rows that the server returns", grouped(size));
        return Ok(());
    };
    let bounds = stretches(session, table, &key).await?;
    let quoted = sql.name(&key);
    let each = size / STRETCHES;
    let stretch = |condition: String, direction: &str, number: usize| {
        format!(
            "SELECT * FROM ({all}{condition} ORDER BY {quoted}{direction} LIMIT {each}) AS part_{number}"
        )
    };
    let mut parts = vec![stretch(String::new(), "", 1)];
    for bound in &bounds {
        let condition = format!(" WHERE {quoted} >= {}", sql.literal(bound));
        parts.push(stretch(condition, "", parts.len() + 1));
    }
    parts.push(stretch(String::new(), " DESC", parts.len() + 1));
    let each = grouped(each);
    table.sample.how = match bounds.len() {
        0 => format!("the {each} lowest and the {each} highest keys"),
        between => format!(
            "the {each} lowest keys, the {each} highest, and {between} stretches of {each} between them"
        ),
    };
    // A row in two stretches is one.
    table.sample.source = parts.join(" UNION ");
    Ok(())
}

/// Returns the columns that evidence looks at: those of keys, and what tells the order of insertion.
fn seen(sql: Sql, table: &Table) -> String {
    let mut names: Vec<String> = table
        .sample
        .columns
        .iter()
        .map(|name| sql.name(name))
        .collect();
    let created = table.created.as_ref().map(|name| sql.name(name));
    // The place of a row is a column behind the derived table only if it is named.
    let place = table
        .insertion
        .as_ref()
        .ok()
        .map(|insertion| match &*insertion.sql {
            "ctid" | "rowid" => format!("{0} AS {0}", insertion.sql),
            column => column.to_owned(),
        });
    for name in created.into_iter().chain(place) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// Returns values that divide the keys between the lowest and the highest; none for texts.
async fn stretches(session: &mut Session, table: &Table, key: &str) -> Result<Vec<Value>, Failure> {
    let sql = Sql(session.engine());
    let Some(column) = table.column(key) else {
        return Ok(Vec::new());
    };
    let (cell, quoted, name) = (sql.cell(column), sql.name(key), sql.table(&table.name));
    let mut ends = Vec::new();
    for direction in ["ASC", "DESC"] {
        let query = format!("SELECT {cell} FROM {name} ORDER BY {quoted} {direction} LIMIT 1");
        let Ok(rows) = session.rows(&query).await? else {
            return Ok(Vec::new());
        };
        let end = rows.into_iter().flatten().next().flatten();
        ends.push(sql.read(column, end));
    }
    let inside = 1..STRETCHES - 1;
    Ok(match (&ends[0], &ends[1]) {
        (Value::Integer(low), Value::Integer(high)) => inside
            .map(|number| low + (high - low) / i128::from(STRETCHES - 1) * i128::from(number))
            .map(Value::Integer)
            .collect(),
        (Value::Bytes(low), Value::Bytes(high)) if low.len() == 16 && high.len() == 16 => {
            let number = |bytes: &[u8]| u128::from_str_radix(&hex(bytes), 16).unwrap_or_default();
            let (low, high) = (number(low), number(high));
            let step = high.saturating_sub(low) / u128::from(STRETCHES - 1);
            inside
                .map(|number| low + step * u128::from(number))
                .map(|bound| Value::Bytes(bound.to_be_bytes().to_vec()))
                .collect()
        }
        _ => Vec::new(),
    })
}

/// Returns the query of the sample: the cells of its columns, the place, and the time.
fn selected(sql: Sql, table: &Table) -> String {
    let columns = table
        .sample
        .columns
        .iter()
        .filter_map(|name| table.column(name));
    let mut cells: Vec<String> = columns.map(|column| sql.cell(column)).collect();
    cells.push(place(sql, table));
    let created = table.created.as_ref().and_then(|name| table.column(name));
    cells.push(created.map_or("NULL".to_owned(), |column| sql.millis(column)));
    format!("SELECT {} FROM {}", cells.join(", "), sql.sampled(table))
}

/// Returns an expression for a row's place in the order of insertion, as an integer.
fn place(sql: Sql, table: &Table) -> String {
    match &table.insertion {
        Err(_) => "NULL".to_owned(),
        Ok(insertion) if insertion.sql == "ctid" => {
            "(ctid::text::point)[0]::bigint * 65536 + (ctid::text::point)[1]::bigint".to_owned()
        }
        Ok(insertion) => {
            let column = table
                .columns
                .iter()
                .find(|column| sql.name(&column.name) == insertion.sql);
            match column {
                Some(column)
                    if !matches!(column.kind, Kind::Integer { .. })
                        || table.created.as_ref() == Some(&column.name) =>
                {
                    sql.millis(column)
                }
                _ => insertion.sql.clone(),
            }
        }
    }
}

fn decoded(sql: Sql, table: &Table, row: Vec<Option<String>>) -> Row {
    let mut cells = row.into_iter();
    let columns = table
        .sample
        .columns
        .iter()
        .filter_map(|name| table.column(name));
    let values = columns
        .map(|column| sql.read(column, cells.next().flatten()))
        .collect();
    let mut number = || cells.next().flatten();
    Row {
        values,
        place: number().and_then(|place| place.parse().ok()),
        created: number().and_then(|time| time.parse().ok()),
    }
}
