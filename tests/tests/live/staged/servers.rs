//! Servers that refuse a temporary table, write a log, have triggers, or fill in the times of changes.

use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_harness::Server;
use ordid_sqlx::{Backend, Entity, OnConflict, UnitOfWork, flushes_table};
use ordid_tests::servers::{Scratch as _, Servers};
use sqlx::{
    AssertSqlSafe, Connection as _, MySql, MySqlConnection, PgConnection, Pool, Postgres, Row as _,
    query_scalar, raw_sql,
};

use super::{
    Item, ItemId, MANY, Staged as _, change, create, insert, items,
    values_arrive_as_by_other_statements, what_is_planned_is_sent, works,
};
use crate::{Outcome, database::Live as _, on_scratch, settings::on_own_server};

pub(super) fn add(servers: &Servers, trials: &mut Vec<Trial>) {
    let special = "staged::triggers_collations_and_times_of_changes_do_as_elsewhere";
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(trials, servers, server, special, special_on_mysql);
    }
    let closes = "staged::flushes_close_no_statement_that_they_need_not";
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(trials, servers, server, closes, closes_few);
    }
    let kept = "staged::a_row_that_is_there_and_is_not_updated_is_not_inserted";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", kept, not_updated);
    let changes = "staged::a_connection_that_changes_its_database_needs_a_profile";
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(trials, servers, server, changes, other_database);
    }
    let refuses = "staged::an_event_trigger_that_refuses_it_refuses_no_rows";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", refuses, event_trigger);
    let logged = "staged::servers_with_a_binary_log_take_it";
    for (server, options) in [
        (
            "mariadb",
            &["--log-bin", "--binlog-format=STATEMENT", "--server-id=1"][..],
        ),
        (
            "mysql",
            &[
                "--log-bin",
                "--gtid-mode=ON",
                "--enforce-gtid-consistency=ON",
                "--server-id=1",
            ],
        ),
    ] {
        on_own_server(trials, servers, server, logged, options, with_a_log);
    }
    let refused = "staged::a_server_that_refuses_it_gets_other_statements";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", refused, refused_on_postgres);
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(trials, servers, server, refused, refused_on_mysql);
    }
}

/// MariaDB writes statements to the log, also of temporary tables; MySQL takes some of them only outside of transactions
/// where they would be in the log.
async fn with_a_log(server: Server) -> Outcome {
    let (pool, cleanup) = MySql::scratch(&server.url()).await?;
    values_arrive_as_by_other_statements(pool.clone()).await?;
    what_is_planned_is_sent(emptied(pool).await?).await?;
    Ok(cleanup.await?)
}

async fn emptied(pool: Pool<MySql>) -> Outcome<Pool<MySql>> {
    MySql::script(&pool, "DROP TABLE items, ordid_flushes").await?;
    Ok(pool)
}

async fn refused_on_mysql(pool: Pool<MySql>) -> Outcome {
    create(&pool).await?;
    let database: String = query_scalar("SELECT DATABASE()").fetch_one(&pool).await?;
    let name = format!("limited_{database}");
    let user = format!(
        "CREATE USER {name}@'%'; GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.* TO {name}@'%'"
    );
    raw_sql(AssertSqlSafe(user)).execute(&pool).await?;
    let options = (*pool.connect_options()).clone();
    let mut limited = MySqlConnection::connect_with(&options.clone().username(&name)).await?;
    let mut safe = MySqlConnection::connect_with(&options).await?;
    raw_sql("SET SESSION sql_safe_updates = 1")
        .execute(&mut safe)
        .await?;
    let mut all = items(MANY);
    insert(&pool, &all).await?;
    let mut lax = MySqlConnection::connect_with(&options).await?;
    raw_sql("SET SESSION sql_mode = ''")
        .execute(&mut lax)
        .await?;
    for connection in [&mut limited, &mut safe, &mut lax] {
        change(&mut all);
        let flushed = updated::<MySql>(&all, connection).await?;
        assert!(flushed >= MANY, "a statement for each row, not {flushed}");
        all.iter_mut().for_each(|item| item.small = 7);
    }
    let drop = format!("DROP USER {name}@'%'");
    raw_sql(AssertSqlSafe(drop)).execute(&pool).await?;
    Ok(())
}

/// The packet behind a statement that SQLx closes waits for 40 ms. Of many rows, only the last chunk of each kind is closed.
async fn closes_few(pool: Pool<MySql>) -> Outcome {
    create(&pool).await?;
    let all = items(MANY);
    let mut connection = pool.acquire().await?;
    for (rows, most) in [(3, 0), (10, 0), (MANY, 8)] {
        MySql::script(&pool, "DELETE FROM items").await?;
        let all = &all[..rows];
        for way in 0..4 {
            let mut work = UnitOfWork::<MySql>::new();
            for item in all {
                let item = item.clone();
                match way {
                    0 => drop(work.add(item)),
                    1 => work.update(item),
                    2 => drop(work.upsert(item)),
                    _ => work.delete(&item),
                }
            }
            work.flush_on(&mut connection).await?;
        }
        let closed = raw_sql("SHOW SESSION STATUS LIKE 'Com_stmt_close'");
        let closed: String = closed.fetch_one(&mut *connection).await?.try_get(1)?;
        assert!(closed.parse::<u32>()? <= most, "{closed} of {rows} rows");
    }
    Ok(())
}

/// A statement that is kept prepared belongs to the database in which it was prepared.
async fn other_database(pool: Pool<MySql>) -> Outcome {
    let first: String = query_scalar("SELECT DATABASE()").fetch_one(&pool).await?;
    let second = format!("{first}_2");
    create(&pool).await?;
    let copy = format!("CREATE DATABASE {second}; CREATE TABLE {second}.items LIKE {first}.items");
    MySql::script(&pool, &copy).await?;
    let mut without = MySql::PROFILE;
    without.prepares = false;
    for (profile, moves) in [(MySql::PROFILE, false), (without, true)] {
        let mut connection = MySqlConnection::connect_with(&pool.connect_options()).await?;
        for database in [&first, &second] {
            let script = AssertSqlSafe(format!("USE {database}"));
            raw_sql(script).execute(&mut connection).await?;
            let mut work = UnitOfWork::<MySql>::new().with_engine(profile);
            work.add(items(1).remove(0));
            work.flush_on(&mut connection).await?;
            MySql::script(&pool, "UPDATE items SET code = UUID_SHORT() % 1000000007").await?;
        }
        let moved = MySql::count(&pool, &format!("{second}.items")).await? > 0;
        assert_eq!(moved, moves, "prepares: {}", profile.prepares);
    }
    MySql::script(&pool, &format!("DROP DATABASE {second}")).await?;
    Ok(())
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "stamps", columns)]
struct Stamp {
    id: ItemId,
    name: String,
    changed: String,
    filled: Option<String>,
}

/// A column whose default the server would write anew, names that are equal though their texts differ, and a NULL that a
/// trigger replaces.
async fn special_on_mysql(pool: Pool<MySql>) -> Outcome {
    let tables = format!(
        "CREATE TABLE stamps (id BINARY(16) PRIMARY KEY, name VARCHAR(20) COLLATE utf8mb4_general_ci NOT NULL UNIQUE, \
         changed DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, filled VARCHAR(20)); {}",
        flushes_table::<MySql>()
    );
    MySql::script(&pool, &tables).await?;
    let stamps: Vec<Stamp> = (0..200)
        .map(|number| Stamp {
            id: ItemId::generate(),
            name: format!("name {number}"),
            changed: "2020-02-02 20:20:20".to_owned(),
            filled: Some("by us".to_owned()),
        })
        .collect();
    let mut work = UnitOfWork::<MySql>::new();
    for stamp in stamps.iter().step_by(2) {
        work.add(stamp.clone());
    }
    work.flush(&pool).await?;
    for stamp in &stamps {
        work.upsert(stamp.clone());
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!([flushed.updated(), flushed.rows()], [100, 100]);
    assert!(flushed.tables[0].statements < 20, "{flushed:?}");
    let kept = "stamps WHERE changed = '2020-02-02 20:20:20'";
    assert_eq!(MySql::count(&pool, kept).await?, 200);

    // The last one of two rows of the same name wins, as by other statements.
    for (number, name) in stamps
        .iter()
        .map(|it| &it.name)
        .chain([&"NAME 7".to_owned()])
        .enumerate()
    {
        let stamp = Stamp {
            id: ItemId::generate(),
            name: name.clone(),
            changed: "2021-01-01 00:00:00".to_owned(),
            filled: Some(format!("row {number}")),
        };
        work.upsert_with(stamp, OnConflict::of(Stamp::name).set(Stamp::filled));
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!((flushed.updated(), flushed.retries), (201, 0));
    let last = "stamps WHERE name = 'name 7' AND filled = 'row 200'";
    assert_eq!(MySql::count(&pool, last).await?, 1);

    let trigger = "ALTER TABLE stamps MODIFY filled VARCHAR(20) NOT NULL; \
        CREATE TRIGGER fills BEFORE UPDATE ON stamps FOR EACH ROW SET NEW.filled = COALESCE(NEW.filled, 'by a trigger')";
    MySql::script(&pool, trigger).await?;
    for stamp in &stamps {
        let filled = None;
        work.update(Stamp {
            filled,
            ..stamp.clone()
        });
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!((flushed.updated(), flushed.retries), (200, 0));
    assert_eq!(
        MySql::count(&pool, "stamps WHERE filled = 'by a trigger'").await?,
        200
    );
    Ok(())
}

/// Two rows with the same values, of which an `UPDATE` takes one, and a trigger that keeps rows as they are; without a unique
/// index that would refuse them.
async fn not_updated(pool: Pool<Postgres>) -> Outcome {
    create(&pool).await?;
    Postgres::script(&pool, "ALTER TABLE items DROP CONSTRAINT items_code_key").await?;
    let there = items(MANY);
    insert(&pool, &there).await?;
    let before = Postgres::contents(&pool).await?;
    let trigger = "CREATE TRIGGER keeps BEFORE UPDATE ON items FOR EACH ROW \
        EXECUTE FUNCTION suppress_redundant_updates_trigger()";
    for (setup, twins) in [("SELECT 1", 2), (trigger, 1)] {
        Postgres::script(&pool, setup).await?;
        let mut texts = Vec::new();
        let again: Vec<_> = there[..twins - 1]
            .iter()
            .chain(&there)
            .map(|item| Item {
                id: ItemId::generate(),
                ..item.clone()
            })
            .collect();
        for mut work in works::<Postgres>() {
            for item in &again {
                let by_code = OnConflict::of(Item::code).set(Item::small);
                work.upsert_with(item.clone(), by_code);
            }
            let error = work.flush(&pool).await.expect_err("a row is not updated");
            assert!(!error.is_commit_unknown(), "{error}");
            texts.push(error.to_string());
            assert_eq!(Postgres::contents(&pool).await?, before);
        }
        assert_eq!(texts[0], texts[1]);
    }
    Ok(())
}

async fn event_trigger(pool: Pool<Postgres>) -> Outcome {
    create(&pool).await?;
    let mut all = items(MANY);
    insert(&pool, &all).await?;
    let refuses = "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS \
        $$ BEGIN RAISE EXCEPTION 'no tables here'; END $$; \
        CREATE EVENT TRIGGER refuses ON ddl_command_start EXECUTE FUNCTION refuse()";
    Postgres::script(&pool, refuses).await?;
    change(&mut all);
    let mut connection = pool.acquire().await?;
    assert_eq!(updated::<Postgres>(&all, &mut connection).await?, 2);
    Ok(())
}

async fn refused_on_postgres(pool: Pool<Postgres>) -> Outcome {
    create(&pool).await?;
    let database: String = query_scalar("SELECT current_database()")
        .fetch_one(&pool)
        .await?;
    let name = format!("limited_{database}");
    let user = format!(
        "CREATE ROLE {name} LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}; \
         REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC"
    );
    raw_sql(AssertSqlSafe(user)).execute(&pool).await?;
    let options = (*pool.connect_options()).clone();
    let mut limited = PgConnection::connect_with(&options.username(&name)).await?;
    let mut all = items(MANY);
    insert(&pool, &all).await?;
    change(&mut all);
    assert_eq!(
        updated::<Postgres>(&all, &mut limited).await?,
        2,
        "a statement for each chunk"
    );
    // Who may not read all columns may update them.
    let grants = format!(
        "REVOKE SELECT ON items FROM {name}; GRANT SELECT (id) ON items TO {name}; \
         GRANT TEMPORARY ON DATABASE {database} TO {name}"
    );
    raw_sql(AssertSqlSafe(grants)).execute(&pool).await?;
    assert_eq!(updated::<Postgres>(&all, &mut limited).await?, 2);
    raw_sql(AssertSqlSafe(format!("GRANT SELECT ON items TO {name}")))
        .execute(&pool)
        .await?;
    assert_eq!(
        updated::<Postgres>(&all, &mut limited).await?,
        5,
        "through a temporary table"
    );
    let drop = format!("DROP OWNED BY {name}; DROP ROLE {name}");
    raw_sql(AssertSqlSafe(drop)).execute(&pool).await?;
    Ok(())
}

/// Updates rows, and returns how many statements that took.
async fn updated<DB: Backend>(items: &[Item], connection: &mut DB::Connection) -> Outcome<usize>
where
    Item: Entity<DB>,
{
    let mut work = UnitOfWork::<DB>::new();
    for item in items {
        work.update(item.clone());
    }
    let flushed = work.flush_on(connection).await?;
    assert_eq!(flushed.updated(), items.len());
    Ok(flushed.tables[0].statements)
}
