//! Checks the links of the table of thirty things in the guide, and has those of its tests that are in no other file.

use std::{collections::HashSet, fs, path::Path, time::Duration};

use ordid::{
    KeyType, OrderedKey,
    page::{Connection, Cursor, ListOrder, Page},
    uuid::Uuid,
};
use ordid_sqlx::{Entity, Follower, Position, UnitOfWork};
use sqlx::{Sqlite, SqlitePool, pool::PoolOptions};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[derive(KeyType)]
#[ordid(prefix = "ord", sqlx)]
struct OrderId(Uuid);

async fn database(tables: &'static str) -> Result<SqlitePool, sqlx::Error> {
    let one = PoolOptions::new().max_connections(1);
    let pool = one.connect("sqlite::memory:").await?;
    sqlx::raw_sql(tables).execute(&pool).await?;
    ordid_sqlx::create_flushes_table(&pool).await?;
    Ok(pool)
}

/// Returns the links of a text, each with the text that it shows.
fn links(text: &str) -> Vec<(&str, &str)> {
    let of = |part: &'static str| text.match_indices(part).map(|(at, _)| at);
    of("](")
        .filter_map(|at| {
            let shown = &text[text[..at].rfind('[')? + 1..at];
            let target = text[at + 2..].split(')').next()?;
            Some((shown, target))
        })
        .collect()
}

/// Returns the anchors of a document's sections, as GitHub makes them of plain headings.
fn anchors(document: &str) -> HashSet<String> {
    let headings = document.lines().filter_map(|line| line.strip_prefix("## "));
    headings
        .map(|heading| heading.to_lowercase().replace(' ', "-").replace('\'', ""))
        .collect()
}

/// The chapter that has the table.
const CHAPTER: &str = "faq.md";

/// Returns what is wrong with a link of the chapter, which is in this folder.
fn mistake(folder: &Path, shown: &str, target: &str) -> Option<String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => folder.join(CHAPTER),
        file => folder.join(file),
    };
    if !path.exists() {
        return Some(format!("{target}: there is no such file"));
    }
    if path.is_dir() {
        let is_package = path.join("Cargo.toml").exists();
        return (!is_package).then(|| format!("{target}: not a package"));
    }
    let text = fs::read_to_string(&path).unwrap();
    if !anchor.is_empty() {
        let found = anchors(&text).contains(anchor);
        return (!found).then(|| format!("{target}: there is no such section"));
    }
    let name = shown.trim_matches('`');
    // The name of a test of a server may be only in a string.
    let is_there = [
        format!("fn {name}("),
        format!("fn {name}<"),
        format!("::{name}\""),
    ];
    let is_there = is_there.iter().any(|written| text.contains(written));
    (!is_there).then(|| format!("{target}: there is no test `{name}`"))
}

#[test]
fn the_table_has_thirty_rows_and_links_that_lead_somewhere() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src");
    let chapter = fs::read_to_string(folder.join(CHAPTER)).unwrap();
    let (_, table) = chapter
        .split_once("\n## Thirty things that users try\n")
        .unwrap();
    let (table, _) = table.split_once("\n## ").unwrap_or((table, ""));
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .collect();
    assert_eq!(rows.len(), 31, "thirty, and the heading");
    for row in &rows[1..] {
        assert!(!links(row).is_empty(), "{row}");
        for (shown, target) in links(row) {
            assert_eq!(mistake(&folder, shown, target), None, "{row}");
        }
    }
    // The check finds links that lead nowhere.
    for (shown, target) in [
        ("`links`", "../../tests/tests/thirty_one.rs"),
        ("`no_such_test`", "../../tests/tests/thirty.rs"),
        ("Pages", "pages.md#pages-by-number"),
        ("tests", "../../tests/ui/adapter"),
    ] {
        assert!(mistake(&folder, shown, target).is_some(), "{target}");
    }
}

#[derive(OrderedKey, sqlx::FromRow, Debug, PartialEq)]
#[ordid(table = "orders")]
struct Order {
    id: OrderId,
    total: i64,
}

/// The SQL of the guide.
const DESCENDING: &str = "SELECT id, total FROM orders WHERE id > coalesce(?1, x'') \
     AND id < coalesce(?2, x'ffffffffffffffffffffffffffffffffff') ORDER BY id DESC LIMIT ?3";
const ASCENDING: &str = "SELECT id, total FROM orders WHERE id > coalesce(?1, x'') \
     AND id < coalesce(?2, x'ffffffffffffffffffffffffffffffffff') ORDER BY id LIMIT ?3";

/// Reads a page with the SQL of the guide.
async fn page(
    pool: &SqlitePool,
    page: Page<OrderId>,
    order: ListOrder,
) -> Result<Connection<OrderId, Order>, Box<dyn std::error::Error>> {
    let slice = page.slice(order, 100)?;
    let sql = if slice.is_descending {
        DESCENDING
    } else {
        ASCENDING
    };
    let rows: Vec<Order> = sqlx::query_as(sql)
        .bind(slice.above)
        .bind(slice.below)
        .bind(slice.rows())
        .fetch_all(pool)
        .await?;
    Ok(Connection::new(&slice, rows, |order| order.id))
}

const ORDERS: &str =
    "CREATE TABLE orders (id BLOB PRIMARY KEY, total INTEGER NOT NULL) WITHOUT ROWID";

/// A page far behind costs as much as the first one. A scan would read all rows before the page.
#[tokio::test]
async fn pages_are_found_in_the_index() -> Outcome {
    let guide =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/pages.md"))?;
    let pool = database(ORDERS).await?;
    for sql in [ASCENDING, DESCENDING] {
        assert!(guide.contains(sql), "the guide has it: {sql}");
        let steps: Vec<(i64, i64, i64, String)> =
            sqlx::query_as(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")))
                .fetch_all(&pool)
                .await?;
        let details: Vec<&str> = steps.iter().map(|step| &*step.3).collect();
        assert_eq!(details, ["SEARCH orders USING PRIMARY KEY (id>? AND id<?)"]);
    }
    Ok(())
}

/// Reads forwards by `first` and `after`, and backwards by `last` and `before`, in both orders and in pages of each
/// size.
#[tokio::test]
async fn pages_in_both_directions_are_the_whole_list() -> Outcome {
    const ROWS: usize = 13;
    let pool = database(ORDERS).await?;
    let mut work = UnitOfWork::new();
    // It begins with the byte `ff`.
    let last = Uuid::from_u128(0xffff_ffff_ffff_7fff_bfff_ffff_ffff_ffff);
    let mut keys: Vec<OrderId> = (1..ROWS)
        .map(|_| OrderId::generate())
        .chain([OrderId::from_raw(last)?])
        .map(|id| work.add(Order { id, total: 1 }))
        .collect();
    work.flush(&pool).await?;
    for order in [ListOrder::Ascending, ListOrder::Descending] {
        for size in 1..=14_u32 {
            for is_forward in [true, false] {
                let asked = if is_forward {
                    Page::first(size)
                } else {
                    Page::last(size)
                };
                let mut found = Vec::new();
                let mut next = asked;
                loop {
                    let read = page(&pool, next, order).await?;
                    let mut of_page: Vec<OrderId> = read.nodes().map(|order| order.id).collect();
                    assert!(of_page.len() <= usize::try_from(size)?);
                    let info = read.page_info;
                    assert_eq!(info.start_cursor.map(Cursor::key), of_page.first().copied());
                    assert_eq!(info.end_cursor.map(Cursor::key), of_page.last().copied());
                    let (has_more, from) = if is_forward {
                        found.append(&mut of_page);
                        assert_eq!(info.has_previous_page, next.after.is_some());
                        (info.has_next_page, info.end_cursor)
                    } else {
                        of_page.append(&mut found);
                        found = of_page;
                        assert_eq!(info.has_next_page, next.before.is_some());
                        (info.has_previous_page, info.start_cursor)
                    };
                    assert_eq!(
                        has_more,
                        found.len() < ROWS,
                        "no row is promised that is not there"
                    );
                    let Some(from) = from.filter(|_| has_more) else {
                        break;
                    };
                    next = if is_forward {
                        asked.after(from)
                    } else {
                        asked.before(from)
                    };
                }
                assert_eq!(found, keys, "{order:?} by {size}, forward: {is_forward}");
            }
        }
        // Reads the rows between two others, from each end.
        let between = |page: Page<OrderId>| {
            page.after(Cursor::new(keys[2]))
                .before(Cursor::new(keys[8]))
        };
        for (asked, expected) in [
            (Page::ALL, &keys[3..8]),
            (Page::first(2), &keys[3..5]),
            (Page::last(2), &keys[6..8]),
            (Page::first(0), &[]),
        ] {
            let read = page(&pool, between(asked), order).await?;
            assert!(
                read.nodes().map(|order| &order.id).eq(expected),
                "{asked:?}"
            );
        }
        keys.reverse();
    }
    Ok(())
}

#[derive(OrderedKey)]
#[ordid(table = "events")]
struct Event<T> {
    id: OrderId,
    body: T,
}

/// The field may have any type that the database stores. A generic function can add such rows without knowing the type.
#[tokio::test]
async fn rows_of_a_generic_entity_are_written() -> Outcome {
    fn add<T>(work: &mut UnitOfWork<Sqlite>, body: T) -> OrderId
    where
        Event<T>: Entity<Sqlite> + OrderedKey<Field = OrderId>,
    {
        work.add(Event {
            id: OrderId::generate(),
            body,
        })
    }
    let pool = database("CREATE TABLE events (id BLOB PRIMARY KEY, body)").await?;
    let mut work = UnitOfWork::new();
    let text = add(&mut work, "packed".to_owned());
    let number = add(&mut work, 42_i64);
    work.flush(&pool).await?;
    let rows: Vec<(OrderId, String)> =
        sqlx::query_as("SELECT id, typeof(body) FROM events ORDER BY id")
            .fetch_all(&pool)
            .await?;
    assert_eq!(
        rows,
        [(text, "text".to_owned()), (number, "integer".to_owned())]
    );
    Ok(())
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "notes", columns)]
struct Note {
    id: OrderId,
    text: String,
    deleted_at: Option<i64>,
}

/// Marks a row as deleted by an update of one column. `SELECT`s leave such rows out, and so does a unique index with a
/// `WHERE`.
#[tokio::test]
async fn a_row_that_is_marked_as_deleted_stays() -> Outcome {
    let pool = database(
        "CREATE TABLE notes (id BLOB PRIMARY KEY, text TEXT NOT NULL, deleted_at INTEGER); \
         CREATE UNIQUE INDEX one_text ON notes (text) WHERE deleted_at IS NULL",
    )
    .await?;
    let note = Note {
        id: OrderId::generate(),
        text: "milk".into(),
        deleted_at: None,
    };
    let mut work = UnitOfWork::new();
    work.add(note.clone());
    work.flush(&pool).await?;
    let deleted = Note {
        deleted_at: Some(1_700_000_000),
        ..note.clone()
    };
    work.update_columns(deleted, Note::deleted_at);
    work.flush(&pool).await?;
    let again = work.add(Note {
        id: OrderId::generate(),
        ..note.clone()
    });
    work.flush(&pool).await?;
    let all: i64 = sqlx::query_scalar("SELECT count(*) FROM notes")
        .fetch_one(&pool)
        .await?;
    let shown: Vec<OrderId> = sqlx::query_scalar("SELECT id FROM notes WHERE deleted_at IS NULL")
        .fetch_all(&pool)
        .await?;
    assert_eq!((all, shown), (2, vec![again]));
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
enum State {
    Open,
    Closed,
}

#[derive(OrderedKey, sqlx::FromRow)]
#[ordid(table = "issues")]
struct Issue {
    id: OrderId,
    state: State,
    /// JSON as text. With SQLx's feature `json`, `sqlx::types::Json<T>` is a field like any other.
    labels: String,
}

#[tokio::test]
async fn enums_and_json_are_columns() -> Outcome {
    let pool = database(
        "CREATE TABLE issues (id BLOB PRIMARY KEY, state TEXT NOT NULL, labels TEXT NOT NULL CHECK (json_valid(labels)))",
    )
    .await?;
    let mut work = UnitOfWork::new();
    for state in [State::Open, State::Closed] {
        let labels = serde_json::json!(["urgent"]).to_string();
        work.add(Issue {
            id: OrderId::generate(),
            state,
            labels,
        });
    }
    work.flush(&pool).await?;
    let found: Vec<Issue> =
        sqlx::query_as("SELECT * FROM issues WHERE labels ->> 0 = 'urgent' ORDER BY state")
            .fetch_all(&pool)
            .await?;
    let states: Vec<State> = found.iter().map(|issue| issue.state).collect();
    assert_eq!(states, [State::Closed, State::Open]);
    Ok(())
}

#[derive(OrderedKey, sqlx::FromRow)]
#[ordid(table = "receipts")]
struct Receipt {
    id: OrderId,
    #[ordid(returning)]
    #[sqlx(try_from = "String")]
    tax: ordid::Assigned<String>,
}

/// SQLite treats a quoted name that no table has as a text. So the value of a column that a migration forgot would be
/// its name.
#[tokio::test]
async fn a_column_that_the_database_should_fill_and_does_not_have_is_an_error() -> Outcome {
    let receipt = || Receipt {
        id: OrderId::generate(),
        tax: ordid::Assigned::new(),
    };
    let pool = database("CREATE TABLE receipts (id BLOB PRIMARY KEY)").await?;
    let (mut work, row) = (UnitOfWork::new(), receipt());
    let tax = row.tax.clone();
    work.add(row);
    let error = work
        .flush(&pool)
        .await
        .expect_err("there is no such column");
    assert!(error.to_string().contains("tax"), "{error}");
    assert!(tax.is_empty());

    let pool =
        database("CREATE TABLE receipts (id BLOB PRIMARY KEY, tax TEXT DEFAULT 'none')").await?;
    work.flush(&pool).await?;
    assert_eq!(tax.get().as_deref(), Some("none"));
    Ok(())
}

#[tokio::test]
async fn a_followed_row_has_what_the_database_has_filled() -> Outcome {
    let pool =
        database("CREATE TABLE receipts (id BLOB PRIMARY KEY, tax TEXT DEFAULT 'none')").await?;
    let mut work = UnitOfWork::new();
    work.add(Receipt {
        id: OrderId::generate(),
        tax: ordid::Assigned::new(),
    });
    work.flush(&pool).await?;
    let bound = Duration::from_millis(1);
    tokio::time::sleep(20 * bound).await;
    let follower = Follower::<Sqlite, Receipt>::settled_after(bound);
    let batch = follower.next(&pool, &Position::START, 10).await?;
    let taxes: Vec<_> = batch.rows.iter().map(|row| row.tax.get()).collect();
    assert_eq!(taxes, [Some("none".to_owned())]);
    Ok(())
}
