//! Behind PgBouncer, which gives each transaction another connection to the server.

use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_tests::{servers::Servers, trials::Outcome};
use ordid_tokio_postgres::{EngineProfile, UnitOfWork};

use sqlx::Postgres;

use crate::{keys::Native, tokio::connect};

/// Clients at a time, more than the server's connections.
const CLIENTS: usize = 8;
/// Rows of a flush: some chunks of the same text, which is what would be kept prepared.
const ROWS: i64 = 2_500;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    ordid_tests::address_tests!(
        trials, servers, Postgres: "pgbouncer", "pgbouncer::";
        flushes_at_once_write_each_row_once_and_leave_no_statement,
    );
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "numbers")]
struct Numbered {
    id: Native,
    number: i64,
}

fn unit() -> UnitOfWork {
    UnitOfWork::new().with_engine(EngineProfile::PGBOUNCER)
}

/// Inserts rows, changes them, and upserts some.
async fn one_client(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    let mut work = unit();
    let rows = (0..ROWS).map(|number| Numbered {
        id: Native::generate(),
        number,
    });
    let rows: Vec<Numbered> = rows.collect();
    for row in rows.iter().cloned() {
        work.add(row);
    }
    work.flush_with(|| connect(&url)).await?;
    let mut work = unit();
    for (place, row) in rows.into_iter().enumerate() {
        let row = Numbered { number: -1, ..row };
        match place % 2 {
            0 => work.update(row),
            _ => {
                work.upsert(row);
            }
        }
    }
    work.flush(&mut client).await?;
    Ok(())
}

async fn flushes_at_once_write_each_row_once_and_leave_no_statement(url: String) -> Outcome {
    let looks = connect(&url).await?;
    // By the simple protocol, which needs no name.
    looks
        .batch_execute("CREATE TABLE numbers (id uuid PRIMARY KEY, number bigint NOT NULL)")
        .await?;
    looks
        .batch_execute(ordid_tokio_postgres::flushes_table())
        .await?;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| ::tokio::spawn(one_client(url.clone())))
        .collect();
    for client in clients {
        client.await??;
    }
    let count = i64::try_from(CLIENTS)? * ROWS;
    let right = format!("count(*) = {count} AND bool_and(number = -1) FROM numbers");
    let row = looks.query_typed(&format!("SELECT {right}"), &[]).await?;
    assert!(row[0].try_get::<_, bool>(0)?);
    assert_eq!(prepared(&url).await?, 0, "statements stay on the server");
    Ok(())
}

/// Returns how many statements are prepared by name, over all connections to the server.
async fn prepared(url: &str) -> Outcome<i64> {
    let sql = "SELECT pg_backend_pid(), (SELECT count(*) FROM pg_prepared_statements)";
    // All transactions are open at the same time, so each has another connection.
    let (mut open, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let client = connect(url).await?;
        client.batch_execute("BEGIN").await?;
        let rows = client.query_typed(sql, &[]).await?;
        let session = rows[0].try_get::<_, i32>(0)?;
        counts.push((session, rows[0].try_get::<_, i64>(1)?));
        open.push(client);
    }
    for client in open {
        client.batch_execute("ROLLBACK").await?;
    }
    counts.sort_unstable();
    counts.dedup();
    assert_eq!(counts.len(), 3, "three connections: {counts:?}");
    Ok(counts.into_iter().map(|(_, count)| count).sum())
}
