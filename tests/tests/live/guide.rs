//! What the guide says of databases, and its SQL.

mod snippets;

use libtest_mimic::Trial;
use ordid::{
    KeyType,
    clock::Timestamp,
    storage::{Stores, column},
    uuid::Uuid,
};
use ordid_tests::servers::Servers;
use sqlx::{AssertSqlSafe, MySql, Pool, Postgres, query, query_scalar, raw_sql};

use crate::{
    Outcome,
    database::{Live, Reads, read},
    on_scratch, sqlite,
};

/// The titles of the scripts that tests of this program run.
const TITLES: [&str; 16] = [
    "from-bigserial: children",
    "from-bigserial: columns",
    "from-bigserial: default",
    "from-bigserial: end",
    "from-bigserial: indexes",
    "from-bigserial: switch",
    "from-bigserial: times",
    "follower: attached rows",
    "follower: column",
    "ordid_flushes: mysql",
    "ordid_flushes: postgres",
    "ordid_flushes: sqlite",
    "pages of two columns: mysql",
    "pages of two columns: postgres",
    "pages of two columns: sqlite",
    "partitions: table",
];

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    snippets::trials(servers, trials);
    let name = "guide::bigserial_becomes_uuid";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, bigserial_becomes_uuid);
    let name = "guide::bigserial_goes_on_with_snowflakes";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, bigserial_goes_on);
    let name = "guide::v4_then_v7";
    on_scratch::<Postgres, _, _>(
        trials,
        servers,
        "postgres",
        name,
        v4_goes_on_with_v7::<_, column::Uuid>,
    );
    sqlite::add(trials, name, v4_goes_on_with_v7::<_, column::Blob>);
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(
            trials,
            servers,
            server,
            name,
            v4_goes_on_with_v7::<_, column::Binary16>,
        );
    }
    let name = "guide::marker_rows_by_migration";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, |pool| {
        marker_rows_by_migration(pool, "postgres")
    });
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(trials, servers, server, name, |pool| {
            marker_rows_by_migration(pool, "mysql")
        });
    }
    sqlite::add(trials, name, |pool| {
        marker_rows_by_migration(pool, "sqlite")
    });
    let name = "guide::v4_then_v7_in_uuid";
    on_scratch::<MySql, _, _>(trials, servers, "mariadb", name, async |pool| {
        let (keys, sql) = v4_then_v7("UUID", |key| format!("'{key}'"));
        MySql::script(&pool, &sql).await?;
        let sorted = MySql::texts(&pool, "SELECT CAST(id AS CHAR) FROM mixed ORDER BY id").await?;
        let sorted: Result<Vec<Uuid>, _> = sorted.iter().map(|it| it.parse()).collect();
        follow::<column::MariaDbUuid>(&keys, &sorted?);
        Ok(())
    });
}

async fn v4_goes_on_with_v7<DB: Live + Reads<(Uuid,)>, C: Stores<Uuid>>(pool: Pool<DB>) -> Outcome {
    let (keys, sql) = v4_then_v7(DB::KEY, |key| DB::literal(*key));
    DB::script(&pool, &sql).await?;
    let sorted: Vec<(Uuid,)> = read(&pool, "SELECT id FROM mixed ORDER BY id").await?;
    let sorted: Vec<Uuid> = sorted.into_iter().map(|row| row.0).collect();
    follow::<C>(&keys, &sorted);
    Ok(())
}

/// 4,000 keys of version 4, then as many of version 7, in the order in which they were made; and a
/// script that makes a table of them.
fn v4_then_v7(column: &str, literal: impl Fn(&Uuid) -> String) -> (Vec<Uuid>, String) {
    let mut keys: Vec<Uuid> = (0..4_000).map(|_| Uuid::new_v4()).collect();
    keys.extend((0..4_000).map(|_| <Uuid as KeyType>::generate()));
    let values: Vec<_> = keys
        .iter()
        .map(|key| format!("({})", literal(key)))
        .collect();
    let sql = format!(
        "CREATE TABLE mixed (id {column} NOT NULL PRIMARY KEY); INSERT INTO mixed VALUES {}",
        values.join(", ")
    );
    (keys, sql)
}

/// New keys are in the order in which they were made, old ones are not, and nearly all of them behind
/// the new ones.
fn follow<C: Stores<Uuid>>(keys: &[Uuid], sorted: &[Uuid]) {
    let mut by_column = keys.to_vec();
    by_column.sort_by_key(|key| C::sort_key(*key));
    assert!(by_column == sorted, "the column's own rule");
    let of = |version| {
        let of = move |key: &&Uuid| key.get_version_num() == version;
        (keys.iter().filter(of), sorted.iter().filter(of))
    };
    let (made, found) = of(7);
    assert!(made.eq(found));
    let (made, found) = of(4);
    assert!(made.ne(found));
    let first_new = sorted.iter().position(|key| key.get_version_num() == 7);
    let last_new = sorted.iter().rposition(|key| key.get_version_num() == 7);
    let (Some(first), Some(last)) = (first_new, last_new) else {
        panic!("no new keys");
    };
    assert_eq!(last - first, 3_999, "no old key of this very minute");
    // One in 157 of 4,000 are 25; ten times the deviation more would be 76.
    assert!(
        (1..76).contains(&first),
        "{first} old keys before the new ones"
    );
}

#[derive(KeyType)]
#[ordid(sqlx)]
struct OrderKey(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake, sqlx)]
struct OrderId(i64);

/// Returns the guide's script of this title.
pub(crate) fn script(title: &str) -> &'static str {
    assert!(TITLES.contains(&title), "add {title:?} to `TITLES`");
    let chapters = [
        include_str!("../../../docs/src/migrate.md"),
        include_str!("../../../docs/src/pages.md"),
        include_str!("../../../docs/src/retries.md"),
    ];
    let head = format!("```sql\n-- {title}\n");
    let rest = chapters
        .iter()
        .find_map(|chapter| chapter.split_once(&head))
        .expect("the script")
        .1;
    rest.split_once("```").expect("its end").0
}

/// The table is the one that ordid declares, and its functions find it.
async fn marker_rows_by_migration<DB: Live>(pool: Pool<DB>, engine: &str) -> Outcome {
    let words = |sql: &str| {
        let sql = sql.replace('(', "( ").replace(')', " )").replace(';', "");
        let words: Vec<_> = sql.split_whitespace().map(str::to_owned).collect();
        words
    };
    let up = script(&format!("ordid_flushes: {engine}"));
    assert_eq!(words(up), words(ordid_sqlx::flushes_table::<DB>()));
    for _ in 0..2 {
        DB::script(&pool, up).await?;
    }
    ordid_sqlx::create_flushes_table(&pool).await?;
    let key = DB::literal(KeyType::generate());
    DB::script(
        &pool,
        &format!("INSERT INTO ordid_flushes (id) VALUES ({key})"),
    )
    .await?;
    assert_eq!(ordid_sqlx::remove_old_markers(&pool).await?, 0);
    assert_eq!(DB::count(&pool, "ordid_flushes").await?, 1);
    DB::script(&pool, "DROP TABLE ordid_flushes").await?;
    let missing = ordid_sqlx::remove_old_markers(&pool).await.unwrap_err();
    assert!(missing.is_flushes_table_missing(), "{missing}");
    Ok(())
}

const TABLES: &str = "
    CREATE TABLE orders (id bigserial PRIMARY KEY, created_at timestamptz NOT NULL);
    CREATE TABLE order_lines (
        id bigserial PRIMARY KEY,
        order_id bigint NOT NULL REFERENCES orders,
        quantity integer NOT NULL
    );
    -- Their ids are not in the order of time, five share each millisecond, and a rounded time would be the next one.
    INSERT INTO orders (created_at)
        SELECT to_timestamp(1600000000 + ((number * 7919) % 10000) / 5) + interval '600 microseconds'
        FROM generate_series(1, 10000) number;
    INSERT INTO order_lines (order_id, quantity) SELECT id, id % 7 FROM orders;
    INSERT INTO order_lines (order_id, quantity) SELECT id, 8 FROM orders";

async fn bigserial_becomes_uuid(pool: Pool<Postgres>) -> Outcome {
    raw_sql(TABLES).execute(&pool).await?;
    let lines = "SELECT order_lines.id, orders.id, quantity FROM order_lines JOIN orders ON ";
    let before: Vec<(i64, i64, i32)> = sqlx::query_as(AssertSqlSafe(format!(
        "{lines} orders.id = order_id ORDER BY 1"
    )))
    .fetch_all(&pool)
    .await?;

    run_under_locks(&pool, "from-bigserial: columns").await?;
    let rows: Vec<(i64, i64)> = sqlx::query_as(script("from-bigserial: times"))
        .fetch_all(&pool)
        .await?;
    let mut keys = Vec::new();
    for (_, millis) in &rows {
        let made = Timestamp::from_unix_millis(u64::try_from(*millis)?)?;
        keys.push(OrderKey::generate_at(made)?);
    }
    keys.sort_unstable();
    for (rows, keys) in rows.chunks(1_000).zip(keys.chunks(1_000)) {
        let ids: Vec<i64> = rows.iter().map(|row| row.0).collect();
        query(
            "UPDATE orders SET key = v.key FROM unnest($1::bigint[], $2::uuid[]) AS v (id, key) \
             WHERE orders.id = v.id",
        )
        .bind(ids)
        .bind(keys)
        .execute(&pool)
        .await?;
    }
    for step in ["children", "indexes"] {
        run_under_locks(&pool, &format!("from-bigserial: {step}")).await?;
    }
    switch_under_locks(&pool).await?;
    run_under_locks(&pool, "from-bigserial: end").await?;
    indexes_are_used(&pool, keys[4_711]).await?;

    // A key has the time of its row, cut off to the millisecond.
    let times: Vec<(OrderKey, i64)> = sqlx::query_as(
        "SELECT key, (extract(epoch FROM date_trunc('milliseconds', created_at)) * 1000)::bigint FROM orders",
    )
    .fetch_all(&pool)
    .await?;
    assert_eq!(times.len(), 10_000);
    for (key, millis) in times {
        let time = key.timestamp().ok_or("a key without a time")?;
        assert_eq!(i64::try_from(time.as_unix_millis())?, millis);
    }

    // In the order of time, then of the old id, and in front of what is new.
    let new = OrderKey::generate();
    query("INSERT INTO orders (key, created_at) VALUES ($1, now())")
        .bind(new)
        .execute(&pool)
        .await?;
    let found: Vec<OrderKey> = query_scalar("SELECT key FROM orders ORDER BY key")
        .fetch_all(&pool)
        .await?;
    assert!(found[..10_000] == keys && found[10_000] == new);
    let ids: Vec<i64> = query_scalar("SELECT id FROM orders ORDER BY key LIMIT 10000")
        .fetch_all(&pool)
        .await?;
    assert!(ids.iter().eq(rows.iter().map(|(id, _)| id)));
    // Children have the parents that they had, and need one.
    let after: Vec<(i64, i64, i32)> = sqlx::query_as(AssertSqlSafe(format!(
        "{lines} orders.key = order_key ORDER BY 1"
    )))
    .fetch_all(&pool)
    .await?;
    assert!(before.len() == 20_000 && after == before);
    let orphan = query("INSERT INTO order_lines (order_key, quantity) VALUES ($1, 1)")
        .bind(OrderKey::generate())
        .execute(&pool)
        .await
        .unwrap_err();
    assert!(
        orphan
            .as_database_error()
            .is_some_and(|it| it.is_foreign_key_violation())
    );
    Ok(())
}

/// Returns the statements of a script, without their comments.
pub fn statements(title: &str) -> Vec<String> {
    ordid_tests::snippets::statements(script(title))
}

/// Runs the statements of a script one by one, without a transaction around them.
pub async fn run_each(pool: &Pool<Postgres>, title: &str) -> Result<(), sqlx::Error> {
    for statement in statements(title) {
        raw_sql(AssertSqlSafe(statement)).execute(pool).await?;
    }
    Ok(())
}

/// Does the same as [`run_each`], and checks that the lock in a statement's comment is the strongest that it takes on
/// these tables. The locks of a statement that cannot run in a transaction are not checked.
async fn run_under_locks(pool: &Pool<Postgres>, title: &str) -> Outcome {
    let comments = script(title)
        .lines()
        .filter_map(|line| line.split_once("--"));
    let comments: Vec<&str> = comments.map(|(_, comment)| comment.trim()).collect();
    let statements = statements(title);
    assert_eq!(statements.len(), comments.len(), "each has a comment");
    for (statement, comment) in statements.into_iter().zip(comments) {
        if statement.contains("CONCURRENTLY") || statement.starts_with("VACUUM") {
            raw_sql(AssertSqlSafe(statement)).execute(pool).await?;
            continue;
        }
        let mut transaction = pool.begin().await?;
        raw_sql(AssertSqlSafe(statement.clone()))
            .execute(&mut *transaction)
            .await?;
        let locks = locks(&mut transaction).await?;
        let (strongest, _) = locks.first().ok_or("no lock")?;
        let words = comment.split(',').next().unwrap_or_default();
        assert_eq!(*words, **strongest, "{statement}");
        transaction.commit().await?;
    }
    Ok(())
}

/// Runs the switch in one transaction over one connection, and checks that it locks both tables.
async fn switch_under_locks(pool: &Pool<Postgres>) -> Outcome {
    let mut statements = statements("from-bigserial: switch");
    assert_eq!(statements.remove(0), "BEGIN");
    assert_eq!(statements.pop().as_deref(), Some("COMMIT"));
    let mut transaction = pool.begin().await?;
    for statement in statements {
        raw_sql(AssertSqlSafe(statement))
            .execute(&mut *transaction)
            .await?;
    }
    let locks = locks(&mut transaction).await?;
    for table in ["orders", "order_lines"] {
        let is_table = |lock: &(&str, String)| *lock == ("ACCESS EXCLUSIVE", table.to_owned());
        assert!(locks.iter().any(is_table), "{locks:?}");
    }
    transaction.commit().await?;
    Ok(())
}

/// Returns the locks that a transaction has on the tables, the strongest first.
async fn locks(connection: &mut sqlx::PgConnection) -> Outcome<Vec<(&'static str, String)>> {
    const MODES: [(&str, &str); 8] = [
        ("AccessExclusiveLock", "ACCESS EXCLUSIVE"),
        ("ExclusiveLock", "EXCLUSIVE"),
        ("ShareRowExclusiveLock", "SHARE ROW EXCLUSIVE"),
        ("ShareLock", "SHARE"),
        ("ShareUpdateExclusiveLock", "SHARE UPDATE EXCLUSIVE"),
        ("RowExclusiveLock", "ROW EXCLUSIVE"),
        ("RowShareLock", "ROW SHARE"),
        ("AccessShareLock", "ACCESS SHARE"),
    ];
    let found: Vec<(String, String)> = sqlx::query_as(
        "SELECT mode, relation::regclass::text FROM pg_locks WHERE pid = pg_backend_pid() \
         AND relation IN ('orders'::regclass, 'order_lines'::regclass)",
    )
    .fetch_all(connection)
    .await?;
    let of = |(name, words): (&str, &'static str)| {
        let tables = found.iter().filter(move |(mode, _)| mode == name);
        let locks: Vec<_> = tables.map(|(_, table)| (words, table.clone())).collect();
        locks
    };
    Ok(MODES.into_iter().flat_map(of).collect())
}

/// There is one index for each purpose, all are valid, and a row is found by its key and by its parent's.
async fn indexes_are_used(pool: &Pool<Postgres>, key: OrderKey) -> Outcome {
    let indexes = Postgres::texts(
        pool,
        "SELECT indexname || ' ' || substring(indexdef FROM '\\(.*\\)') FROM pg_indexes \
         WHERE schemaname = 'public' ORDER BY indexname",
    );
    assert_eq!(
        indexes.await?,
        [
            "order_lines_by_order_key (order_key)",
            "order_lines_pkey (id)",
            "orders_id_key (id)",
            "orders_pkey (key)",
        ]
    );
    let invalid = "pg_index WHERE NOT indisvalid AND indrelid::regclass::text LIKE 'order%'";
    assert_eq!(Postgres::count(pool, invalid).await?, 0);
    let unchecked = "pg_constraint WHERE NOT convalidated";
    assert_eq!(Postgres::count(pool, unchecked).await?, 0);
    let key = key.to_raw();
    for (query, index) in [
        (
            format!("SELECT * FROM orders WHERE key = '{key}'"),
            "orders_pkey",
        ),
        (
            format!("SELECT * FROM order_lines WHERE order_key = '{key}'"),
            "order_lines_by_order_key",
        ),
        (
            "SELECT * FROM orders WHERE id = 7".to_owned(),
            "orders_id_key",
        ),
        (
            "SELECT * FROM orders ORDER BY key DESC LIMIT 10".to_owned(),
            "orders_pkey",
        ),
    ] {
        let plan = Postgres::texts(pool, &format!("EXPLAIN {query}")).await?;
        let plan = plan.join("\n");
        assert!(plan.contains(index) && !plan.contains("Seq Scan"), "{plan}");
    }
    Ok(())
}

async fn bigserial_goes_on(pool: Pool<Postgres>) -> Outcome {
    use ordid::{
        clock::SystemClock,
        entropy::ThreadEntropy,
        generator::{Generator, OrderedGenerator, Policy},
    };

    raw_sql(TABLES).execute(&pool).await?;
    run_each(&pool, "from-bigserial: default").await?;
    let generator = OrderedGenerator::with_node(
        7_u64.try_into()?,
        SystemClock,
        ThreadEntropy,
        Policy::DEFAULT,
    );
    let mut made = Vec::new();
    for _ in 0..100 {
        let key: OrderId = generator.try_generate_key()?;
        query("INSERT INTO orders VALUES ($1, now())")
            .bind(key)
            .execute(&pool)
            .await?;
        made.push(key);
    }
    let found: Vec<OrderId> = query_scalar("SELECT id FROM orders ORDER BY id")
        .fetch_all(&pool)
        .await?;
    assert!(
        found[..10_000]
            .iter()
            .map(|key| key.to_raw())
            .eq(1..=10_000)
    );
    assert!(found[10_000..] == made);
    Ok(())
}
