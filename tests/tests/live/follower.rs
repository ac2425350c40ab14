//! Tests of readers that follow a table by its keys.

use std::{
    str::FromStr as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sql::follower::FollowDialect;
use ordid_sqlx::{Backend, EngineProfile, Follower, Position, StoredAs, UnitOfWork};
use ordid_tests::{everyday, servers::Servers, soak, stores::on_own_server};
use sqlx::{
    AssertSqlSafe, Connection as _, FromRow, MySql, Pool, Postgres, Sqlite, pool::PoolOptions,
    postgres::PgConnectOptions, query, query_as, query_scalar, raw_sql,
};
use tokio::time::sleep;

use crate::{Outcome, database::Live, on_scratch, sqlite};

#[derive(KeyType)]
#[ordid(sqlx)]
struct EventId(Uuid);

#[derive(OrderedKey, FromRow, Debug, Clone)]
#[ordid(table = "events")]
struct Event {
    id: EventId,
    changes: i32,
}

const TABLE: &str = "CREATE TABLE events (id uuid PRIMARY KEY, changes integer NOT NULL)";

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    type DB = Postgres;

    for (name, test) in crate::database::tests![
        "follower::each_late_row_is_delivered_once": each_late_row_once,
        "follower::rows_of_its_own_transaction_come_after_its_commit": own_rows_come_later,
        "follower::many_rows_come_in_pages": pages,
        "follower::a_position_of_elsewhere_is_refused": other_positions,
        "follower::statements_of_the_guide": statements,
        "follower::rows_that_are_attached_are_delivered_if_they_are_updated": attached,
        "follower::the_column_is_added_without_writing_rows": added_column,
        "follower::no_row_is_missed_and_none_comes_twice_under_load": under_load,
    ] {
        on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, test);
    }
    on_own_server(
        trials,
        servers,
        "postgres",
        "follower::a_prepared_transaction_is_open_and_a_standby_is_refused",
        prepared_and_standby,
    );
    let name = "follower::tables_on_many_nodes_are_refused";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, many_nodes);
    let name = "follower::rows_are_delivered_once_through_pgbouncer";
    on_scratch::<Postgres, _, _>(trials, servers, "pgbouncer", name, through_pgbouncer);
    let name = "follower::settled_rows_are_delivered_once";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, settled);
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(trials, servers, server, name, settled);
    }
    sqlite::add(trials, name, settled::<Sqlite>);
    let name = "follower::a_session_that_reads_uncommitted_rows_is_refused";
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(trials, servers, server, name, uncommitted);
    }
}

/// Creates the table, with the column for a follower.
async fn create(pool: &Pool<Postgres>) -> Outcome<Follower<Postgres, Event>> {
    raw_sql(TABLE).execute(pool).await?;
    let follower = Follower::by_transaction();
    for sql in follower.create_sql() {
        raw_sql(AssertSqlSafe(sql)).execute(pool).await?;
    }
    Ok(follower)
}

/// A follower that keeps its position as text.
struct Reader {
    follower: Follower<Postgres, Event>,
    position: String,
}

impl Reader {
    async fn next(&mut self, pool: &Pool<Postgres>) -> Outcome<Vec<EventId>> {
        let position = self.position.parse()?;
        let batch = self.follower.next(pool, &position, 100).await?;
        assert!(batch.is_complete);
        self.position = batch.position.to_string();
        Ok(keys(&batch.rows))
    }
}

fn keys(rows: &[Event]) -> Vec<EventId> {
    rows.iter().map(|row| row.id).collect()
}

async fn insert(over: impl sqlx::PgExecutor<'_>, keys: &[EventId]) -> Result<(), sqlx::Error> {
    let sql = "INSERT INTO events (id, changes) SELECT key, 0 FROM unnest($1::uuid[]) key";
    query(sql).bind(keys).execute(over).await.map(drop)
}

fn made<const N: usize>() -> [EventId; N] {
    std::array::from_fn(|_| EventId::generate())
}

async fn each_late_row_once(pool: Pool<Postgres>) -> Outcome {
    let follower = create(&pool).await?;
    let position = Position::<EventId>::START.to_string();
    let mut reader = Reader { follower, position };
    let update = "UPDATE events SET changes = changes + 1";

    // The key is made first, and the row is committed last.
    let [late, early] = made();
    let mut slow = pool.begin().await?;
    insert(&mut *slow, &[late]).await?;
    insert(&pool, &[early]).await?;
    assert_eq!(reader.next(&pool).await?, [early]);
    slow.commit().await?;
    assert_eq!(reader.next(&pool).await?, [late]);
    assert_eq!(reader.next(&pool).await?, []);

    // Rows that were delivered are not delivered again when they change.
    raw_sql(update).execute(&pool).await?;
    assert_eq!(reader.next(&pool).await?, []);
    // Rows that change before they are delivered are delivered once.
    let [changed] = made();
    insert(&pool, &[changed]).await?;
    raw_sql(update).execute(&pool).await?;
    assert_eq!(reader.next(&pool).await?, [changed]);
    raw_sql(update).execute(&pool).await?;
    assert_eq!(reader.next(&pool).await?, []);

    // Savepoints have subtransactions. The reader reads while they are open, before the COMMIT.
    let [released, undone, last] = made();
    let mut slow = pool.begin().await?;
    for (key, end) in [
        (released, "RELEASE SAVEPOINT s"),
        (undone, "ROLLBACK TO SAVEPOINT s"),
    ] {
        raw_sql("SAVEPOINT s").execute(&mut *slow).await?;
        insert(&mut *slow, &[key]).await?;
        let [between] = made();
        insert(&pool, &[between]).await?;
        assert_eq!(reader.next(&pool).await?, [between]);
        raw_sql(end).execute(&mut *slow).await?;
    }
    insert(&mut *slow, &[last]).await?;
    assert_eq!(reader.next(&pool).await?, []);
    slow.commit().await?;
    assert_eq!(reader.next(&pool).await?, [released, last]);

    // Rows that are rolled back, or deleted before they are read, are not delivered.
    let [undone, deleted] = made();
    let mut slow = pool.begin().await?;
    insert(&mut *slow, &[undone]).await?;
    assert_eq!(reader.next(&pool).await?, []);
    slow.rollback().await?;
    insert(&pool, &[deleted]).await?;
    query("DELETE FROM events WHERE id = $1")
        .bind(deleted)
        .execute(&pool)
        .await?;
    assert_eq!(reader.next(&pool).await?, []);

    // A new row whose key is very old is delivered.
    let old = EventId::generate_at(ordid::clock::Timestamp::from_unix_millis(1_000_000)?)?;
    insert(&pool, &[old]).await?;
    assert_eq!(reader.next(&pool).await?, [old]);
    let rows: Vec<Event> = query_as("SELECT id, changes FROM events")
        .fetch_all(&pool)
        .await?;
    assert_eq!(rows.len(), 8);
    Ok(())
}

async fn own_rows_come_later(pool: Pool<Postgres>) -> Outcome {
    let follower = create(&pool).await?;
    let [before, own, after, other] = made();
    insert(&pool, &[before]).await?;
    let mut transaction = pool.begin().await?;
    insert(&mut *transaction, &[own]).await?;
    // This row has a transaction with a higher number, so the snapshot's end is above the reader's own transaction.
    insert(&pool, &[other]).await?;
    let batch = follower
        .next(&mut transaction, &Position::START, 100)
        .await?;
    assert_eq!(keys(&batch.rows), [before, other]);
    insert(&mut *transaction, &[after]).await?;
    let again = follower
        .next(&mut transaction, &batch.position, 100)
        .await?;
    assert_eq!(keys(&again.rows), []);
    transaction.commit().await?;
    let batch = follower.next(&pool, &again.position, 100).await?;
    assert_eq!(keys(&batch.rows), [own, after]);
    Ok(())
}

async fn pages(pool: Pool<Postgres>) -> Outcome {
    let follower = create(&pool).await?;
    let [first, second, between, third, fourth] = made();
    insert(&pool, &[first, second, third, fourth]).await?;
    let mut position = Position::<EventId>::START.to_string();
    let mut next = async |most| -> Outcome<(Vec<EventId>, bool)> {
        let batch = follower.next(&pool, &position.parse()?, most).await?;
        position = batch.position.to_string();
        Ok((keys(&batch.rows), batch.is_complete))
    };
    assert_eq!(next(0).await?, (vec![first], false));
    // The new row is delivered after the rows that were committed before it, although its key is between theirs.
    insert(&pool, &[between]).await?;
    assert_eq!(next(2).await?, (vec![second, third], false));
    assert_eq!(next(2).await?, (vec![fourth], false));
    assert_eq!(next(2).await?, (vec![between], true));
    assert_eq!(next(2).await?, (vec![], true));
    // A full batch does not know that it is the last one.
    let last: [EventId; 2] = made();
    insert(&pool, &last).await?;
    assert_eq!(next(2).await?, (last.to_vec(), false));
    assert_eq!(next(2).await?, (vec![], false));
    assert_eq!(next(2).await?, (vec![], true));
    Ok(())
}

async fn other_positions(pool: Pool<Postgres>) -> Outcome {
    let follower = create(&pool).await?;
    let [early, late] = made();
    insert(&pool, &[early]).await?;

    let ahead = "seen 4000000000000:4000000000000:".parse()?;
    let error = follower.next(&pool, &ahead, 1).await.unwrap_err();
    assert!(error.is_position_ahead() && !error.is_transient());
    let text = error.to_string();
    assert!(
        text.starts_with(
            "follower of \"events\": the position has seen 4000000000000:4000000000000:, but the database is at "
        ),
        "{text}"
    );

    // A snapshot that is older than the position does not show all rows that the position has seen.
    let mut old = pool.begin().await?;
    raw_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        .execute(&mut *old)
        .await?;
    insert(&pool, &[late]).await?;
    let now = follower.now(&pool).await?;
    let error = follower.next(&mut old, &now, 1).await.unwrap_err();
    assert!(error.is_position_ahead(), "{error}");
    let batch = follower.next(&mut old, &Position::START, 10).await?;
    assert_eq!(keys(&batch.rows), [early], "in its own past it may read");
    old.rollback().await?;
    let batch = follower.next(&pool, &batch.position, 10).await?;
    assert_eq!(keys(&batch.rows), [late]);
    assert!(follower.next(&pool, &now, 10).await?.rows.is_empty());

    let settled = Follower::<Postgres, Event>::settled_after(Duration::ZERO);
    assert!(settled.create_sql().is_empty());
    let error = settled.next(&pool, &now, 1).await.unwrap_err();
    assert!(error.is_other_position());
    assert_eq!(
        error.to_string(),
        "follower of \"events\": the position is of a follower by another rule, expected `above ..` or `start`"
    );
    let above = format!("above {late}").parse()?;
    let error = follower.next(&pool, &above, 1).await.unwrap_err();
    assert!(error.is_other_position());

    let elsewhere = follower.in_column("xact");
    let error = elsewhere
        .next(&pool, &Position::START, 1)
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(
            "follower of \"events\": error returned from database: column \"xact\" does not exist"
        ),
        "{text}"
    );
    assert!(text.ends_with("are in `Follower::create_sql`"), "{text}");
    assert!(error.driver().is_some() && !error.is_connection_lost() && !error.is_standby());
    Ok(())
}

/// Adds the column to a table with rows. The table is not rewritten, and its old rows are delivered from the start, or
/// not.
async fn added_column(pool: Pool<Postgres>) -> Outcome {
    raw_sql(TABLE).execute(&pool).await?;
    let old: [EventId; 3] = made();
    insert(&pool, &old).await?;
    let file = "SELECT pg_relation_filenode('events')::text";
    let before = Postgres::texts(&pool, file).await?;
    let follower = Follower::<Postgres, Event>::by_transaction();
    for sql in follower.create_sql() {
        raw_sql(AssertSqlSafe(sql)).execute(&pool).await?;
    }
    assert_eq!(Postgres::texts(&pool, file).await?, before);
    let now = follower.now(&pool).await?;
    let [new] = made();
    // A unit of work does not know the column, which has a default.
    let mut work = UnitOfWork::new();
    work.add(Event {
        id: new,
        changes: 0,
    });
    work.flush(&pool).await?;
    let batch = follower.next(&pool, &now, 10).await?;
    assert_eq!(keys(&batch.rows), [new]);
    let batch = follower.next(&pool, &Position::START, 10).await?;
    assert_eq!(keys(&batch.rows), [old[0], old[1], old[2], new]);
    Ok(())
}

/// Checks that the statements of the guide are those of `create_sql`.
async fn statements(pool: Pool<Postgres>) -> Outcome {
    #[derive(OrderedKey, FromRow)]
    #[ordid(table = "orders")]
    struct Order {
        id: EventId,
    }

    raw_sql("CREATE TABLE orders (id uuid PRIMARY KEY)")
        .execute(&pool)
        .await?;
    crate::guide::run_each(&pool, "follower: column").await?;
    let follower = Follower::<Postgres, Order>::by_transaction();
    let text = follower.create_sql().join(";\n").replace('"', "");
    assert_eq!(
        crate::guide::statements("follower: column").join(";\n"),
        text
    );
    let error = raw_sql(AssertSqlSafe(follower.create_sql().remove(1)))
        .execute(&pool)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("already exists"), "{error}");
    let [id] = made();
    let mut work = UnitOfWork::new();
    work.add(Order { id });
    work.flush(&pool).await?;
    let batch = follower.next(&pool, &Position::START, 1).await?;
    assert_eq!(batch.rows[0].id, id);
    Ok(())
}

/// Attaches a partition that has a row, without and with the update that the guide shows.
async fn attached(pool: Pool<Postgres>) -> Outcome {
    #[derive(OrderedKey, FromRow)]
    #[ordid(table = "orders")]
    struct Order {
        id: EventId,
    }

    let mut statements = crate::guide::statements("follower: attached rows");
    assert_eq!(statements.remove(0), "BEGIN");
    assert_eq!(statements.pop().as_deref(), Some("COMMIT"));
    let attach = statements[0].clone();

    raw_sql("CREATE TABLE orders (id uuid PRIMARY KEY) PARTITION BY RANGE (id)")
        .execute(&pool)
        .await?;
    let follower = Follower::<Postgres, Order>::by_transaction();
    for sql in follower.create_sql() {
        let sql = sql.replace("CONCURRENTLY ", "");
        raw_sql(AssertSqlSafe(sql)).execute(&pool).await?;
    }
    raw_sql("CREATE TABLE orders_2026 (LIKE orders INCLUDING DEFAULTS)")
        .execute(&pool)
        .await?;
    // 2026-05-28
    let id = EventId::generate_at(ordid::clock::Timestamp::from_unix_millis(
        1_780_000_000_000,
    )?)?;
    query("INSERT INTO orders_2026 (id) VALUES ($1)")
        .bind(id)
        .execute(&pool)
        .await?;
    let now = follower.now(&pool).await?;

    raw_sql(AssertSqlSafe(attach)).execute(&pool).await?;
    assert_eq!(Postgres::count(&pool, "orders").await?, 1);
    let batch = follower.next(&pool, &now, 10).await?;
    assert!(batch.rows.is_empty(), "it is missed");

    raw_sql("ALTER TABLE orders DETACH PARTITION orders_2026")
        .execute(&pool)
        .await?;
    let mut transaction = pool.begin().await?;
    for sql in statements {
        raw_sql(AssertSqlSafe(sql))
            .execute(&mut *transaction)
            .await?;
    }
    let batch = follower.next(&pool, &batch.position, 10).await?;
    assert!(batch.rows.is_empty(), "the transaction is open");
    transaction.commit().await?;
    let batch = follower.next(&pool, &batch.position, 10).await?;
    assert_eq!(batch.rows.len(), 1);
    assert_eq!(batch.rows[0].id, id);
    let batch = follower.next(&pool, &batch.position, 10).await?;
    assert!(batch.rows.is_empty());
    Ok(())
}

/// Reads through PgBouncer in its mode `transaction`, with more clients than connections to the server.
async fn through_pgbouncer(pool: Pool<Postgres>) -> Outcome {
    let follower = create(&pool).await?.with_engine(EngineProfile::PGBOUNCER);
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (pool, follower) = (pool.clone(), follower.clone());
            tokio::spawn(async move {
                let mut read = 0;
                let mut position = follower.now(&pool).await.map_err(|it| it.to_string())?;
                for _ in 0..20 {
                    let sql = format!(
                        "INSERT INTO events (id, changes) VALUES ('{}', 0)",
                        EventId::generate().to_raw()
                    );
                    Postgres::script(&pool, &sql)
                        .await
                        .map_err(|it| it.to_string())?;
                    let batch = follower.next(&pool, &position, 1_000).await;
                    let batch = batch.map_err(|it| it.to_string())?;
                    assert!(!batch.rows.is_empty(), "its own row at least");
                    read += batch.rows.len();
                    position = batch.position;
                }
                Ok::<_, String>(read)
            })
        })
        .collect();
    for client in clients {
        assert!(client.await?? >= 20);
    }
    let mut found = Vec::new();
    let mut position = Position::START;
    loop {
        let batch = follower.next(&pool, &position, 7).await?;
        found.extend(keys(&batch.rows));
        position = batch.position;
        if batch.rows.is_empty() {
            break;
        }
    }
    assert!(found.len() == 160 && found.is_sorted_by(|left, right| left < right));
    Ok(())
}

async fn prepared_and_standby(server: ordid_harness::Server) -> Outcome {
    let pool = Pool::<Postgres>::connect(&server.url()).await?;
    let follower = create(&pool).await?;
    let [prepared, other] = made();
    let mut transaction = pool.begin().await?;
    insert(&mut *transaction, &[prepared]).await?;
    raw_sql("PREPARE TRANSACTION 'prepared'")
        .execute(&mut *transaction)
        .await?;
    drop(transaction);
    insert(&pool, &[other]).await?;
    let batch = follower.next(&pool, &Position::START, 10).await?;
    assert_eq!(keys(&batch.rows), [other]);
    raw_sql("COMMIT PREPARED 'prepared'").execute(&pool).await?;
    let batch = follower.next(&pool, &batch.position, 10).await?;
    assert_eq!(keys(&batch.rows), [prepared]);

    raw_sql(
        "CREATE SCHEMA answered_by_primary; CREATE FUNCTION answered_by_primary.pg_is_in_recovery() RETURNS boolean \
         LANGUAGE sql AS 'SELECT false'",
    )
    .execute(&pool)
    .await?;

    let url = server.url();
    let (server, standby) = tokio::task::spawn_blocking(move || {
        let standby = ordid_harness::postgres_standby(&server);
        (server, standby)
    })
    .await?;
    let standby = standby?;
    assert_ne!(standby.url(), url);
    let copy = Pool::<Postgres>::connect(&standby.url()).await?;
    let error = follower.next(&copy, &batch.position, 10).await.unwrap_err();
    assert!(error.is_standby(), "{error}");
    assert_eq!(
        error.to_string(),
        "follower of \"events\": a standby does not tell which transactions are open: follow on the primary, \
         or by `settled_after`"
    );
    copy.close().await;

    // The first statement of a call was answered by the primary, and the query for the rows is not.
    let options = PgConnectOptions::from_str(&standby.url())?
        .options([("search_path", "answered_by_primary,pg_catalog,public")]);
    let copy = Pool::<Postgres>::connect_with(options).await?;
    for position in [Position::START, batch.position] {
        let error = follower.next(&copy, &position, 10).await.unwrap_err();
        assert!(error.is_standby(), "{error}");
    }
    copy.close().await;
    pool.close().await;
    drop((standby, server));
    Ok(())
}

/// A server that answers as YugabyteDB does, and one whose catalog has Citus' table. The real table stands in `pg_catalog`, too.
async fn many_nodes(pool: Pool<Postgres>) -> Outcome {
    let follower = create(&pool).await?;
    raw_sql(
        "CREATE SCHEMA yugabytedb; CREATE FUNCTION yugabytedb.version() RETURNS text LANGUAGE sql \
         AS $$SELECT 'PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu'$$; \
         CREATE SCHEMA citus; CREATE TABLE citus.pg_dist_partition \
         (logicalrelid regclass, partmethod \"char\", colocationid integer, repmodel \"char\")",
    )
    .execute(&pool)
    .await?;
    let over = async |schema: &str| {
        let path = format!("{schema},pg_catalog,public");
        let options = PgConnectOptions::clone(&pool.connect_options());
        let options = options.options([("search_path", path)]);
        Pool::<Postgres>::connect_with(options).await
    };

    let pool = over("yugabytedb").await?;
    let error = follower.now(&pool).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "follower of \"events\": each node of YugabyteDB has transaction numbers of its own: follow by `settled_after`"
    );
    pool.close().await;

    let pool = over("citus").await?;
    let start = follower.now(&pool).await?;
    // Distributed by a column; a reference table; one without a distribution column, in a group; one that was only added.
    for (distribution, is_refused) in [
        ("'h', 1, 's'", true),
        ("'n', 2, 't'", true),
        ("'n', 3, 's'", true),
        ("'n', 0, 's'", false),
    ] {
        let insert = format!(
            "DELETE FROM pg_dist_partition; INSERT INTO pg_dist_partition VALUES ('events', {distribution})"
        );
        raw_sql(AssertSqlSafe(insert)).execute(&pool).await?;
        match follower.next(&pool, &start, 10).await {
            Ok(_) => assert!(!is_refused, "{distribution}"),
            Err(error) => {
                assert!(is_refused, "{distribution}: {error}");
                let error = error.to_string();
                assert!(
                    error.contains("each node of Citus has transaction"),
                    "{error}"
                );
            }
        }
    }
    pool.close().await;
    Ok(())
}

/// A sequence of numbers that is the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Counts what the writers have done.
#[derive(Default)]
struct Written {
    rows: AtomicU64,
    undone: AtomicU64,
    savepoints: AtomicU64,
    updates: AtomicU64,
}

const WRITERS: u64 = 8;

async fn write(pool: Pool<Postgres>, writer: u64, rows: u64, written: Arc<Written>) -> Outcome {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (writer + 1) << 32);
    let mut committed: Vec<EventId> = Vec::new();
    while written.rows.load(Ordering::Relaxed) < rows {
        // The keys are made before the transaction begins.
        let mut keys = vec![EventId::generate(); usize::try_from(dice.below(240))? + 2];
        EventId::fill(&mut keys);
        if dice.below(10) == 0 {
            let mut work = UnitOfWork::new();
            for id in &keys {
                work.add(Event {
                    id: *id,
                    changes: 0,
                });
            }
            work.flush(&pool).await?;
        } else {
            let pause = match dice.below(40) {
                0 => dice.below(2_500),
                1..10 => dice.below(60),
                _ => 0,
            };
            let mut transaction = pool.begin().await?;
            let (first, second) = keys.split_at(keys.len() / 2);
            insert(&mut *transaction, first).await?;
            sleep(Duration::from_millis(pause)).await;
            let mut kept = second.len();
            match dice.below(8) {
                0 => {
                    raw_sql("SAVEPOINT s").execute(&mut *transaction).await?;
                    insert(&mut *transaction, second).await?;
                    raw_sql("ROLLBACK TO SAVEPOINT s")
                        .execute(&mut *transaction)
                        .await?;
                    kept = 0;
                    written.savepoints.fetch_add(1, Ordering::Relaxed);
                }
                1 | 2 => {
                    raw_sql("SAVEPOINT s").execute(&mut *transaction).await?;
                    insert(&mut *transaction, second).await?;
                    raw_sql("RELEASE SAVEPOINT s")
                        .execute(&mut *transaction)
                        .await?;
                    written.savepoints.fetch_add(1, Ordering::Relaxed);
                }
                _ => insert(&mut *transaction, second).await?,
            }
            if dice.below(3) == 0 && !committed.is_empty() {
                let from = usize::try_from(dice.below(committed.len() as u64))?;
                let old = &committed[from..committed.len().min(from + 50)];
                query("UPDATE events SET changes = changes + 1 WHERE id = ANY($1)")
                    .bind(old)
                    .execute(&mut *transaction)
                    .await?;
                written.updates.fetch_add(1, Ordering::Relaxed);
            }
            if dice.below(8) == 0 {
                transaction.rollback().await?;
                written.undone.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            transaction.commit().await?;
            keys.truncate(first.len() + kept);
        }
        written.rows.fetch_add(keys.len() as u64, Ordering::Relaxed);
        committed.extend(keys);
    }
    Ok(())
}

/// Delivers rows, and stores the position in the same transaction. Some of these transactions are rolled back, as if
/// the program had crashed.
async fn follow(
    pool: Pool<Postgres>,
    follower: Follower<Postgres, Event>,
    is_over: Arc<AtomicBool>,
) -> Outcome {
    let mut dice = Dice(4_711);
    loop {
        let was_over = is_over.load(Ordering::Acquire);
        let mut transaction = pool.begin().await?;
        let position: String =
            query_scalar("SELECT position FROM followers WHERE name = 'test' FOR UPDATE")
                .fetch_one(&mut *transaction)
                .await?;
        let most = u32::try_from(dice.below(900))? + 1;
        let batch = follower
            .next(&mut transaction, &position.parse()?, most)
            .await?;
        let rows = keys(&batch.rows);
        assert!(rows.is_sorted_by(|left, right| left < right));
        query("INSERT INTO delivered SELECT unnest($1::uuid[])")
            .bind(&rows)
            .execute(&mut *transaction)
            .await?;
        query("UPDATE followers SET position = $1")
            .bind(batch.position.to_string())
            .execute(&mut *transaction)
            .await?;
        if dice.below(10) == 0 {
            transaction.rollback().await?;
            continue;
        }
        transaction.commit().await?;
        if batch.is_complete {
            if was_over {
                return Ok(());
            }
            sleep(Duration::from_millis(3)).await;
        }
    }
}

/// Remembers the highest key that it has seen. Returns the number of rows that it has found.
async fn follow_naively(pool: Pool<Postgres>, is_over: Arc<AtomicBool>) -> Outcome<i64> {
    let mut highest: Option<EventId> = None;
    let mut found = 0;
    loop {
        let was_over = is_over.load(Ordering::Acquire);
        let sql = "SELECT id FROM events WHERE $1::uuid IS NULL OR id > $1 ORDER BY id LIMIT 1000";
        let rows: Vec<EventId> = query_scalar(sql).bind(highest).fetch_all(&pool).await?;
        highest = rows.last().copied().or(highest);
        found += i64::try_from(rows.len())?;
        if rows.is_empty() && was_over {
            return Ok(found);
        }
        sleep(Duration::from_millis(3)).await;
    }
}

async fn under_load(pool: Pool<Postgres>) -> Outcome {
    let rows: u64 = if soak() { 1_000_000 } else { 100_000 };
    let follower = create(&pool).await?;
    raw_sql(
        "CREATE TABLE delivered (id uuid NOT NULL);
         CREATE TABLE followers (name text PRIMARY KEY, position text NOT NULL);
         INSERT INTO followers VALUES ('test', 'start')",
    )
    .execute(&pool)
    .await?;
    let many = PoolOptions::<Postgres>::new()
        .max_connections(16)
        .connect_with((*pool.connect_options()).clone())
        .await?;

    let long: [EventId; 100] = made();
    let mut longest = pool.begin().await?;
    insert(&mut *longest, &long[..50]).await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let written = Arc::new(Written::default());
    let reader = tokio::spawn(follow(many.clone(), follower.clone(), Arc::clone(&is_over)));
    let naive = tokio::spawn(follow_naively(many.clone(), Arc::clone(&is_over)));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write(many.clone(), writer, rows, Arc::clone(&written))))
        .collect();
    for writer in writers {
        writer.await??;
    }

    // One transaction is still open. It does not hold the reader up.
    let committed = Postgres::count(&pool, "events").await?;
    let deadline = Instant::now() + Duration::from_mins(if soak() { 20 } else { 3 });
    while Postgres::count(&pool, "delivered").await? < committed {
        assert!(!reader.is_finished(), "{:?}", reader.await);
        assert!(Instant::now() < deadline, "rows that are not delivered");
        sleep(Duration::from_millis(20)).await;
    }
    insert(&mut *longest, &long[50..]).await?;
    longest.commit().await?;
    is_over.store(true, Ordering::Release);
    reader.await??;
    let found = naive.await??;

    let all = Postgres::count(&pool, "events").await?;
    assert_eq!(all, committed + 100);
    assert!(all >= i64::try_from(rows)?);
    let missed = "events WHERE NOT EXISTS (SELECT FROM delivered WHERE delivered.id = events.id)";
    assert_eq!(Postgres::count(&pool, missed).await?, 0);
    assert_eq!(Postgres::count(&pool, "delivered").await?, all, "once each");
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let [undone, savepoints, updates] =
        [&written.undone, &written.savepoints, &written.updates].map(of);
    println!(
        "{all} rows, {undone} transactions rolled back, {savepoints} savepoints, {updates} updates; \
         the highest key alone misses {} rows",
        all - found
    );
    assert!(undone > 10 && savepoints > 10 && updates > 10);
    assert!(
        all - found > 100,
        "the naive reader has missed too few rows"
    );

    // A reader that has read all rows finds new ones by the index.
    raw_sql("VACUUM ANALYZE events").execute(&many).await?;
    // A transaction that is older than the rows, in another database too, keeps them in the range that is read.
    let in_range = "SELECT EXISTS (SELECT FROM events WHERE inserted_in >= pg_snapshot_xmin(pg_current_snapshot()))";
    let deadline = Instant::now() + Duration::from_mins(3);
    while query_scalar::<_, bool>(in_range).fetch_one(&pool).await? {
        assert!(Instant::now() < deadline, "a transaction that does not end");
        sleep(Duration::from_millis(20)).await;
    }
    let now = follower.now(&pool).await?.to_string();
    let now = now.trim_start_matches("seen ");
    let xmin = now.split(':').next().unwrap_or_default();
    let plan = Postgres::texts(
        &pool,
        &format!(
            "EXPLAIN SELECT id, changes FROM events WHERE inserted_in >= '{xmin}'::xid8 \
             AND inserted_in < '99999999'::xid8 \
             AND NOT pg_visible_in_snapshot(inserted_in, '{now}'::pg_snapshot) \
             AND pg_visible_in_snapshot(inserted_in, '{now}'::pg_snapshot) ORDER BY id LIMIT 500"
        ),
    )
    .await?
    .join("\n");
    assert!(plan.contains("events_inserted_in_idx"), "{plan}");
    many.close().await;
    Ok(())
}

const SETTLED: Duration = Duration::from_secs(2);

/// Follows by the time in the keys, on any database. Rows that are committed later than the bound are missed.
async fn settled<DB>(pool: Pool<DB>) -> Outcome
where
    DB: Live + Backend<Dialect: FollowDialect>,
    EventId: StoredAs<DB>,
    Event: for<'r> FromRow<'r, DB::Row>,
{
    let key = DB::KEY;
    let table =
        format!("CREATE TABLE events (id {key} NOT NULL PRIMARY KEY, changes INTEGER NOT NULL)");
    DB::script(&pool, &table).await?;
    let insert = async |id: EventId| {
        let id = DB::literal(id.to_raw());
        DB::script(&pool, &format!("INSERT INTO events VALUES ({id}, 0)")).await
    };
    let follower = Follower::<DB, Event>::settled_after(SETTLED);
    let mut position = Position::<EventId>::START.to_string();
    let mut next = async |most| -> Outcome<Vec<EventId>> {
        let batch = follower.next(&pool, &position.parse()?, most).await?;
        position = batch.position.to_string();
        assert_eq!(batch.is_complete, batch.rows.len() < most as usize);
        Ok(keys(&batch.rows))
    };
    let wait = || sleep(SETTLED + Duration::from_millis(100));

    let [late, early] = made();
    insert(early).await?;
    assert_eq!(next(9).await?, [], "others may still come");
    insert(late).await?;
    wait().await;
    assert_eq!(next(1).await?, [late]);
    assert_eq!(next(9).await?, [early]);
    assert_eq!(next(9).await?, []);

    // A row that is committed later than the bound is missed.
    let [too_late, in_time] = made();
    insert(in_time).await?;
    wait().await;
    assert_eq!(next(9).await?, [in_time]);
    insert(too_late).await?;
    assert_eq!(next(9).await?, [], "it is missed");
    // It is delivered if no row with a higher key was delivered before.
    let [alone] = made();
    wait().await;
    assert_eq!(next(9).await?, []);
    insert(alone).await?;
    assert_eq!(next(9).await?, [alone]);

    let now = follower.now(&pool).await?;
    assert!(follower.next(&pool, &now, 9).await?.rows.is_empty());
    let mut transaction = pool.begin().await?;
    let all = follower.next(&mut transaction, &Position::START, 9).await?;
    assert_eq!(keys(&all.rows), [late, early, too_late, in_time, alone]);
    transaction.rollback().await?;
    Ok(())
}

/// At READ UNCOMMITTED, a row would be delivered that is rolled back later.
async fn uncommitted(pool: Pool<MySql>) -> Outcome {
    let key = <MySql as everyday::Engine>::KEY;
    let table =
        format!("CREATE TABLE events (id {key} NOT NULL PRIMARY KEY, changes INTEGER NOT NULL)");
    MySql::script(&pool, &table).await?;
    let follower = Follower::<MySql, Event>::settled_after(Duration::ZERO);
    let id = <MySql as everyday::Engine>::literal(EventId::generate().to_raw());
    let mut open = pool.begin().await?;
    raw_sql(AssertSqlSafe(format!(
        "INSERT INTO events VALUES ({id}, 0)"
    )))
    .execute(&mut *open)
    .await?;
    sleep(Duration::from_millis(20)).await;

    let mut connection = pool.acquire().await?;
    for level in ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ"] {
        let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        raw_sql(AssertSqlSafe(set))
            .execute(&mut *connection)
            .await?;
        let mut transaction = connection.begin().await?;
        let next = follower.next(&mut transaction, &Position::START, 9).await;
        if level == "READ UNCOMMITTED" {
            assert_eq!(
                next.unwrap_err().to_string(),
                "follower of `events`: the session is at READ UNCOMMITTED and may read rows that are rolled back \
                 later: set READ COMMITTED or REPEATABLE READ"
            );
        } else {
            assert!(next?.rows.is_empty(), "{level}");
        }
        transaction.rollback().await?;
    }
    open.rollback().await?;
    Ok(())
}
