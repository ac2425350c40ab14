//! Spread keys on live databases: a flush in bulk, then pages and ranges in the order of time, over all buckets.

use std::collections::HashMap;

use libtest_mimic::Trial;
use ordid::{
    KeyType, OrderedKey,
    clock::Timestamp,
    page::{Connection, ListOrder, Page, Slice},
    scheme::{SpreadKey, spread},
    uuid::Uuid,
};
use ordid_sqlx::{Backend, Entity, UnitOfWork};
use ordid_tests::servers::Servers;
use sqlx::{MySql, Pool, Postgres, Sqlite};

use crate::{
    Outcome,
    database::{Live, read},
    on_scratch, sqlite,
};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7_spread(buckets = 16), sqlx)]
struct EventId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "events")]
struct Event {
    id: EventId,
    number: i64,
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let name = "spread_keys_are_read_in_the_order_of_time";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, |pool| {
        read_by_time(pool, "UUID", |key| format!("'{key}'::uuid"))
    });
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(trials, servers, server, name, |pool| {
            read_by_time(pool, "BINARY(16)", hexadecimal)
        });
    }
    sqlite::add(trials, name, |pool: Pool<Sqlite>| {
        read_by_time(pool, "BLOB", hexadecimal)
    });
}

fn hexadecimal(key: Uuid) -> String {
    format!("X'{}'", key.simple())
}

/// 3,000 rows of 1,500 milliseconds, read as a program does.
async fn read_by_time<DB: Live + Backend>(
    pool: Pool<DB>,
    column: &str,
    literal: fn(Uuid) -> String,
) -> Outcome
where
    Event: Entity<DB>,
{
    const ROWS: i64 = 3_000;
    let sql =
        format!("CREATE TABLE events (id {column} NOT NULL PRIMARY KEY, number BIGINT NOT NULL)");
    DB::script(&pool, &sql).await?;
    let start = 1_700_000_000_000;
    let at = |millis: i64| Timestamp::from_unix_millis(start + millis.cast_unsigned());
    // Keys for given times do not rise within a millisecond, so there is one in each.
    let mut work = UnitOfWork::<DB>::new();
    let mut keys = HashMap::new();
    for number in (0..ROWS).rev() {
        let id = EventId::generate_at(at(number)?)?;
        keys.insert(number, id);
        work.add(Event { id, number });
    }
    work.flush(&pool).await?;

    let select = async |slice: &Slice<EventId>| -> Result<Vec<i64>, sqlx::Error> {
        let mut sql = "SELECT number FROM events WHERE number >= 0".to_owned();
        for (bound, is) in [(slice.above, ">"), (slice.below, "<")] {
            if let Some(bound) = bound {
                sql += &format!(" AND id {is} {}", literal(bound.to_raw()));
            }
        }
        let direction = if slice.is_descending { " DESC" } else { "" };
        sql += &format!(" ORDER BY id{direction} LIMIT {}", slice.rows());
        let rows: Vec<(i64,)> = read(&pool, &sql).await?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    };
    for (order, expected) in [
        (ListOrder::Ascending, (0..ROWS).collect::<Vec<_>>()),
        (ListOrder::Descending, (0..ROWS).rev().collect()),
    ] {
        let mut found: Vec<i64> = Vec::new();
        let mut page = Page::first(700);
        loop {
            let slice = page.slice(order, 1_000)?;
            let mut of_buckets = Vec::new();
            for bucket in slice.buckets() {
                of_buckets.push(select(&bucket).await?);
            }
            let rows = spread::merge(of_buckets, slice.is_descending, |number| keys[number]);
            let connection = Connection::new(&slice, rows, |number| keys[number]);
            found.extend(connection.nodes());
            match connection.page_info.end_cursor {
                Some(cursor) if connection.page_info.has_next_page => {
                    page = Page::first(700).after(cursor);
                }
                _ => break,
            }
        }
        assert_eq!(found, expected, "{order:?}");
    }

    let mut found = Vec::new();
    for range in EventId::ranges(at(1_000)?..at(1_100)?)? {
        let [from, to] = [range.start, range.end].map(|key| literal(key.to_raw()));
        let sql = format!("SELECT number FROM events WHERE id >= {from} AND id < {to} ORDER BY id");
        let rows: Vec<(i64,)> = read(&pool, &sql).await?;
        found.push(rows.into_iter().map(|row| row.0).collect());
    }
    let merged = spread::merge(found, false, |number| keys[number]);
    assert_eq!(merged, (1_000..1_100).collect::<Vec<_>>());
    Ok(())
}
