//! Flushes that are dropped before their end, as by a timeout: what is left in the database, and what the next user of the
//! connection finds.

use std::{env, process::Command, time::Duration};

use ::mysql_async::{
    Conn, PoolConstraints, PoolOpts, Row, TxOpts,
    prelude::{FromRow, Queryable},
};
use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_mysql_async::{EngineProfile, Follower, Position, Retry, UnitOfWork};
use ordid_tests::{
    servers::Servers,
    trials::{Outcome, cut_off},
};

use sqlx::MySql;

use crate::{FIRST_FLUSH, SESSIONS, connect, execute, keys::Native, mysql, number};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>, server: &'static str) {
    ordid_tests::address_tests!(
        trials, servers, MySql: server, "drops::";
        a_dropped_flush_leaves_nothing_open_in_a_pool,
        a_dropped_flush_closes_its_connection,
        a_dropped_flush_ends_the_transaction,
        a_dropped_query_of_the_user_ends_the_flush,
        a_dropped_query_of_the_user_ends_the_flush_in_a_transaction,
        a_dropped_query_of_the_user_ends_the_call_of_a_follower,
        a_dropped_call_of_a_follower_closes_its_connection,
        the_first_flush_of_a_process_notices_an_answer_to_another_question,
    );
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "authors")]
struct Author {
    id: Native,
    name: String,
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "books")]
struct Book {
    id: Native,
    #[ordid(parent = Author)]
    author: Native,
}

const ROWS: usize = 155;

/// Ten rows in a statement, so that a flush waits for many answers.
const ENGINE: EngineProfile = {
    let mut engine = EngineProfile::MYSQL;
    engine.max_rows = 10;
    engine
};

fn unit() -> UnitOfWork {
    let mut work = UnitOfWork::new().with_engine(ENGINE);
    for number in 0..5 {
        let author = work.add(Author {
            id: Native::generate(),
            name: number.to_string(),
        });
        for _ in 0..30 {
            work.add(Book {
                id: Native::generate(),
                author,
            });
        }
    }
    work
}

async fn create(conn: &mut Conn) -> Outcome {
    let tables = [
        "CREATE TABLE authors (id BINARY(16) NOT NULL PRIMARY KEY, name TEXT NOT NULL)",
        "CREATE TABLE books (id BINARY(16) NOT NULL PRIMARY KEY, author BINARY(16) NOT NULL, \
         FOREIGN KEY (author) REFERENCES authors (id))",
        "CREATE TABLE marks (n BIGINT NOT NULL PRIMARY KEY)",
    ];
    execute(conn, &tables).await
}

async fn count(conn: &mut Conn) -> Outcome<usize> {
    let sql = "(SELECT COUNT(*) FROM authors) + (SELECT COUNT(*) FROM books)";
    Ok(usize::try_from(number(conn, sql).await?)?)
}

async fn clear(conn: &mut Conn) -> Outcome {
    let deletes = [
        "DELETE FROM books",
        "DELETE FROM authors",
        "DELETE FROM marks",
    ];
    execute(conn, &deletes).await
}

/// The pool has one connection, which is lent anew at once.
async fn a_dropped_flush_leaves_nothing_open_in_a_pool(url: String) -> Outcome {
    let mut looks = connect(&url).await?;
    create(&mut looks).await?;
    for resets in [true, false] {
        let one = PoolConstraints::new(1, 1).ok_or("one is not too many")?;
        let options = PoolOpts::default().with_constraints(one);
        let options = options.with_reset_connection(resets);
        let pool = ::mysql_async::Pool::new(mysql::options(&url)?.pool_opts(options));
        let (mut nothing, mut all, mut polls) = (0, 0, 0);
        // How often it waits depends on how the answers come in. The last time is at COMMIT.
        for round in 0..1_000 {
            polls += 1;
            let mut work = unit();
            let outcome = cut_off(work.flush(&pool), polls).await;
            let mut conn = pool.get_conn().await?;
            conn.exec_drop("INSERT INTO marks VALUES (?)", (round,))
                .await?;
            let sql = "SELECT n FROM marks WHERE n = ?";
            let mark: Option<i64> = conn.exec_first(sql, (round,)).await?;
            assert_eq!(mark, Some(round), "after {polls} polls");
            drop(conn);
            let marks = number(&mut looks, "COUNT(*) FROM marks").await?;
            assert_eq!(marks, 1, "it is not committed after {polls} polls");
            let left = settled(&mut looks, &work, 1).await?;
            if let Some(outcome) = outcome {
                assert_eq!((outcome?.rows(), left), (ROWS, ROWS));
                clear(&mut looks).await?;
                if all > 0 {
                    break;
                }
                polls /= 2;
                continue;
            }
            nothing += usize::from(left == 0);
            all += usize::from(left == ROWS);
            // With the same keys; it asks first where it may have been committed.
            assert_eq!(work.flush(&pool).await?.rows(), ROWS);
            assert_eq!(count(&mut looks).await?, ROWS);
            clear(&mut looks).await?;
        }
        assert!(
            nothing > 3 && all > 0,
            "{nothing} times nothing, {all} times all"
        );
        pool.disconnect().await?;
    }
    Ok(())
}

/// Waits until the server has ended what was sent over a connection that is closed, and only so many others are open.
/// Returns how many rows are there.
async fn settled(looks: &mut Conn, work: &UnitOfWork, open: i64) -> Outcome<usize> {
    while number(looks, SESSIONS).await? > open {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let left = count(looks).await?;
    assert!(left == 0 || left == ROWS, "{left} rows are left");
    assert!(work.is_empty() || work.len() == ROWS, "nothing is lost");
    Ok(left)
}

/// mysql_async would take the answer to the flush for that to the next statement.
async fn a_dropped_flush_closes_its_connection(url: String) -> Outcome {
    let mut looks = connect(&url).await?;
    create(&mut looks).await?;
    let (mut nothing, mut polls) = (0, 0);
    // How often it waits depends on how the answers come in.
    loop {
        polls += 1;
        let mut conn = connect(&url).await?;
        if polls == 1 {
            // What a connection is closed by is prepared once in a process.
            unit().flush_on(&mut conn).await?;
            clear(&mut looks).await?;
        }
        let mut work = unit();
        if let Some(outcome) = cut_off(work.flush_on(&mut conn), polls).await {
            assert_eq!(outcome?.rows(), ROWS);
            if nothing > 3 {
                return Ok(());
            }
            clear(&mut looks).await?;
            polls = 0;
            continue;
        }
        let next: Result<Option<i64>, _> = conn.query_first("SELECT 7").await;
        assert!(next.is_err(), "it got {next:?} after {polls} polls");
        let error = unit().flush_on(&mut conn).await.unwrap_err();
        assert!(error.is_connection_lost(), "{error}");
        drop(conn);
        nothing += usize::from(settled(&mut looks, &work, 0).await? == 0);
        let mut other = connect(&url).await?;
        assert_eq!(work.flush_on(&mut other).await?.rows(), ROWS);
        assert_eq!(count(&mut looks).await?, ROWS);
        clear(&mut looks).await?;
    }
}

/// Nothing of the transaction is committed.
async fn a_dropped_flush_ends_the_transaction(url: String) -> Outcome {
    let mut looks = connect(&url).await?;
    create(&mut looks).await?;
    let (mut nothing, mut polls) = (0, 0);
    // How often it waits depends on how the answers come in.
    loop {
        polls += 1;
        let mut conn = connect(&url).await?;
        if polls == 1 {
            unit().flush_on(&mut conn).await?;
            clear(&mut looks).await?;
        }
        let mut transaction = conn.start_transaction(TxOpts::default()).await?;
        transaction
            .query_drop("INSERT INTO marks VALUES (1)")
            .await?;
        let mut work = unit();
        let outcome = cut_off(work.flush_in(&mut transaction), polls).await;
        if let Some(outcome) = outcome {
            assert_eq!(outcome?.rows(), ROWS);
            transaction.commit().await?;
            assert_eq!(count(&mut looks).await?, ROWS);
            if nothing > 3 {
                return Ok(());
            }
            clear(&mut looks).await?;
            polls = 0;
            continue;
        }
        assert!(
            transaction
                .query_drop("INSERT INTO marks VALUES (2)")
                .await
                .is_err()
        );
        assert!(transaction.commit().await.is_err());
        drop(conn);
        assert_eq!(settled(&mut looks, &work, 0).await?, 0);
        assert_eq!(number(&mut looks, "COUNT(*) FROM marks").await?, 0);
        nothing += 1;
    }
}

/// What a user sends after a query that was dropped. It gets the answer to that query, and the next statement gets its own:
/// rows of another shape, a text that is part of the flush's question, an error.
const NEXT: [Option<&str>; 6] = [
    None,
    Some("SELECT 1, 2"),
    Some("SELECT NULL"),
    Some("SELECT ''"),
    Some("SELECT 'ordid'"),
    Some("SELECT nothing"),
];

/// Drops a query in the middle, and sends the next one.
async fn drop_a_query(conn: &mut impl Queryable, next: Option<&str>) -> Outcome {
    let dropped = cut_off(conn.query_drop("DO SLEEP(0.3)"), 1).await;
    assert!(dropped.is_none(), "it is too early for an answer");
    if let Some(next) = next {
        let rows: Vec<Row> = conn.query(next).await?;
        assert!(rows.is_empty(), "this is the answer to the first query");
    }
    Ok(())
}

/// The connection is closed, and nothing is written.
async fn a_dropped_query_of_the_user_ends_the_flush(url: String) -> Outcome {
    let mut looks = connect(&url).await?;
    create(&mut looks).await?;
    // What a connection is closed by is prepared once in a process.
    unit().flush_on(&mut looks).await?;
    clear(&mut looks).await?;
    for next in NEXT {
        let mut conn = connect(&url).await?;
        drop_a_query(&mut conn, next).await?;
        let mut work = unit();
        let error = work.flush_on(&mut conn).await.unwrap_err();
        assert!(error.is_connection_lost(), "{next:?}: {error}");
        assert!(!error.is_commit_unknown(), "{next:?}: {error}");
        assert!(conn.query_drop("SELECT 7").await.is_err(), "{next:?}");
        drop(conn);
        assert_eq!(settled(&mut looks, &work, 0).await?, 0, "{next:?}");
        assert_eq!(work.flush_on(&mut looks).await?.rows(), ROWS);
        clear(&mut looks).await?;
    }
    Ok(())
}

/// The transaction ends with its connection.
async fn a_dropped_query_of_the_user_ends_the_flush_in_a_transaction(url: String) -> Outcome {
    let mut looks = connect(&url).await?;
    create(&mut looks).await?;
    unit().flush_on(&mut looks).await?;
    clear(&mut looks).await?;
    for next in NEXT {
        let mut conn = connect(&url).await?;
        let mut transaction = conn.start_transaction(TxOpts::default()).await?;
        transaction
            .query_drop("INSERT INTO marks VALUES (1)")
            .await?;
        drop_a_query(&mut transaction, next).await?;
        let mut work = unit();
        let error = work.flush_in(&mut transaction).await.unwrap_err();
        assert!(error.is_connection_lost(), "{next:?}: {error}");
        assert!(transaction.commit().await.is_err(), "{next:?}");
        drop(conn);
        assert_eq!(settled(&mut looks, &work, 0).await?, 0, "{next:?}");
        assert_eq!(number(&mut looks, "COUNT(*) FROM marks").await?, 0);
        assert_eq!(work.flush_on(&mut looks).await?.rows(), ROWS);
        clear(&mut looks).await?;
    }
    Ok(())
}

#[derive(OrderedKey, FromRow, Debug)]
#[ordid(table = "marks")]
struct Mark {
    #[ordid(key)]
    n: Native,
}

/// It does not take another answer for its rows.
async fn a_dropped_query_of_the_user_ends_the_call_of_a_follower(url: String) -> Outcome {
    let mut looks = connect(&url).await?;
    create(&mut looks).await?;
    unit().flush_on(&mut looks).await?;
    let follower = Follower::<Mark>::settled_after(Duration::from_secs(1));
    for next in NEXT {
        let mut conn = connect(&url).await?;
        drop_a_query(&mut conn, next).await?;
        let delivered = follower.next(&mut conn, &Position::START, 1).await;
        let error = delivered.expect_err("an answer is due");
        assert!(error.is_connection_lost(), "{next:?}: {error}");
        assert!(conn.query_drop("SELECT 7").await.is_err(), "{next:?}");
    }
    Ok(())
}

/// The table is locked, so that the answer does not come before the call is dropped.
async fn a_dropped_call_of_a_follower_closes_its_connection(url: String) -> Outcome {
    let (mut looks, mut conn) = (connect(&url).await?, connect(&url).await?);
    create(&mut looks).await?;
    unit().flush_on(&mut looks).await?;
    execute(&mut looks, &["LOCK TABLES marks WRITE"]).await?;
    let follower = Follower::<Mark>::settled_after(Duration::from_secs(1));
    let call = follower.next(&mut conn, &Position::START, 1);
    let cut = tokio::time::timeout(Duration::from_millis(200), call).await;
    assert!(cut.is_err(), "it waits for the lock");
    let next: Result<Option<i64>, _> = conn.query_first("SELECT 7").await;
    assert!(next.is_err(), "it got {next:?}");
    Ok(())
}

/// Only the first flush of a process prepares what connections are closed by, so it runs in a process of its own.
async fn the_first_flush_of_a_process_notices_an_answer_to_another_question(
    url: String,
) -> Outcome {
    let mut looks = connect(&url).await?;
    create(&mut looks).await?;
    let mut command = Command::new(env::current_exe()?);
    command.env(FIRST_FLUSH, &url);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(count(&mut looks).await?, ROWS);
    Ok(())
}

/// What the process does: its pool lends a connection on which an answer is due that nobody waits for.
pub async fn first_flush(url: String) -> Outcome {
    let one = PoolConstraints::new(1, 1).ok_or("one is not too many")?;
    let options = PoolOpts::default().with_constraints(one);
    let options = options.with_reset_connection(false);
    let pool = ::mysql_async::Pool::new(mysql::options(&url)?.pool_opts(options));
    let mut conn = pool.get_conn().await?;
    let first = cut_off(conn.query_drop("DO SLEEP(0.3)"), 1).await;
    let second = cut_off(conn.prep("SELECT 1"), 1).await.map(drop);
    let mut third = conn.query_drop("DO SLEEP(30)");
    let begun = cut_off(&mut third, 1).await;
    assert!(first.is_none() && second.is_none() && begun.is_none());
    // The pool would close a connection that can be read. The answers to the first two are read at once.
    tokio::time::sleep(Duration::from_secs(2)).await;
    third.await?;
    drop(conn);
    let mut work = unit().with_retry(Retry::NONE);
    let flushed = work.flush(&pool).await;
    let error = flushed.expect_err("it gets the answer to the second query");
    assert!(error.is_connection_lost(), "{error}");
    assert!(error.to_string().contains("out of order"), "{error}");
    // The connection is closed, and the pool makes another one.
    assert_eq!(work.flush(&pool).await?.rows(), ROWS);
    Ok(pool.disconnect().await?)
}
