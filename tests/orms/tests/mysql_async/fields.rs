//! Fields of mysql_async's types, rows that an update finds as they are, and transactions that are open.

use std::{sync::mpsc, thread, time::Duration};

use ::mysql_async::{
    TxOpts, Value,
    prelude::{FromRow, Queryable as _},
};
use libtest_mimic::Trial;
use ordid::{Assigned, KeyType as _, OrderedKey};
use ordid_mysql_async::{Retry, UnitOfWork};
use ordid_tests::{
    servers::{Client as _, Scratch as _, Servers},
    stores::on_own_server,
    trials::{self, Outcome},
};

use sqlx::MySql;

use crate::{connect, execute, keys::Native, mysql, number, work};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>, server: &'static str) {
    ordid_tests::address_tests!(
        trials, servers, MySql: server, "fields::";
        values_of_each_kind_are_written,
        rows_that_have_the_values_already_count_as_updated,
        names_that_have_marks_of_parameters_are_names,
        an_open_transaction_is_refused,
        a_savepoint_that_fails_leaves_the_transaction_as_it_was,
        a_transaction_that_has_ended_is_refused_and_its_connection_is_left,
        what_the_database_fills_may_be_of_any_type,
        statements_that_are_not_kept_are_closed,
    );
    // It stops all commits of the server.
    let name = "fields::a_commit_that_does_not_get_its_lock_leaves_the_connection";
    on_own_server(trials, servers, server, name, async |server| {
        let (pool, _) = MySql::scratch(&server.url()).await?;
        let url = MySql::client_url(&pool.connect_options());
        pool.close().await;
        a_commit_that_does_not_get_its_lock_leaves_the_connection(url).await
    });
}

#[derive(OrderedKey, Clone, Debug, PartialEq, FromRow)]
#[mysql(crate_name = "mysql_async")]
#[ordid(table = "people", columns)]
struct Person {
    id: Native,
    name: String,
    raw: Option<Vec<u8>>,
    height: f64,
    weight: Option<f32>,
    count: u64,
    little: i8,
    is_here: bool,
    born: Value,
}

const PEOPLE: &str = "CREATE TABLE people (id BINARY(16) NOT NULL PRIMARY KEY, name TEXT NOT NULL, raw BLOB, \
     height DOUBLE NOT NULL, weight FLOAT, `count` BIGINT UNSIGNED NOT NULL, little TINYINT NOT NULL, \
     is_here BOOL NOT NULL, born DATETIME(6) NOT NULL) CHARACTER SET utf8mb4";

fn person(number: u8) -> Person {
    Person {
        id: Native::generate(),
        name: format!("Ada \"Ω\" '{number}' 🦀"),
        raw: number
            .is_multiple_of(2)
            .then(|| vec![0, 0xff, b'\'', number]),
        height: f64::from(number) / 3.0,
        weight: (!number.is_multiple_of(3)).then_some(f32::from(number) / 4.0),
        count: u64::MAX - u64::from(number),
        little: -7,
        is_here: number.is_multiple_of(2),
        born: Value::Date(1815, 12, 10, 1, 2, 3, u32::from(number)),
    }
}

async fn values_of_each_kind_are_written(url: String) -> Outcome {
    let mut conn = connect(&url).await?;
    execute(&mut conn, &[PEOPLE, ordid_mysql_async::flushes_table()]).await?;
    let mut people: Vec<Person> = (0..50).map(person).collect();
    work(people.clone()).flush_on(&mut conn).await?;
    let sql = "SELECT * FROM people WHERE little = ? ORDER BY id";
    let found: Vec<Person> = conn.exec(sql, (-7,)).await?;
    assert_eq!(found, people);

    let mut changes = UnitOfWork::new();
    for (number, person) in people.iter_mut().enumerate() {
        person.name.push('!');
        match number % 3 {
            0 => changes.update(person.clone()),
            1 => changes.update_columns(person.clone(), Person::name),
            _ => {
                changes.upsert(person.clone());
            }
        }
    }
    people.push(person(7));
    changes.upsert(people[50].clone());
    changes.flush_on(&mut conn).await?;
    let found: Vec<Person> = conn.exec(sql, (-7,)).await?;
    assert_eq!(found, people);
    Ok(())
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "numbers")]
struct Numbered {
    id: Native,
    number: i32,
}

const NUMBERS: &str =
    "CREATE TABLE numbers (id BINARY(16) NOT NULL PRIMARY KEY, number INT NOT NULL)";

fn numbers(count: i32) -> Vec<Numbered> {
    let rows = (0..count).map(|number| Numbered {
        id: Native::generate(),
        number,
    });
    rows.collect()
}

/// The server counts them if a connection asks for it, and otherwise says so in a text. A row that is gone is an error
/// either way.
async fn rows_that_have_the_values_already_count_as_updated(url: String) -> Outcome {
    for found_rows in [false, true] {
        for language in ["en_US", "ja_JP"] {
            let options = mysql::options(&url)?.client_found_rows(found_rows);
            let mut conn = ::mysql_async::Conn::new(options).await?;
            execute(
                &mut conn,
                &[
                    "DROP TABLE IF EXISTS numbers",
                    NUMBERS,
                    ordid_mysql_async::flushes_table(),
                    &format!("SET lc_messages = '{language}'"),
                ],
            )
            .await?;
            // By one statement, by a few, and through a temporary table.
            for count in [1, 40, 1_500] {
                let mut rows = numbers(count);
                work(rows.clone()).flush_on(&mut conn).await?;
                let mut update = UnitOfWork::new();
                rows[0].number = -1;
                rows.iter().cloned().for_each(|it| update.update(it));
                update.flush_on(&mut conn).await?;

                rows.push(numbers(1).remove(0));
                let mut update = UnitOfWork::new();
                rows.iter().cloned().for_each(|it| update.update(it));
                let error = update.flush_on(&mut conn).await.unwrap_err();
                assert!(error.is_missing_row(), "{error}");
                let gone = rows[rows.len() - 1].id.to_string();
                assert_eq!(error.key(), Some(&*gone), "{error}");
            }
        }
    }
    Ok(())
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "a `:table` ? --")]
struct Named {
    id: Native,
    #[ordid(column = ":number?")]
    number: i32,
}

/// mysql_async looks for named parameters in a text.
async fn names_that_have_marks_of_parameters_are_names(url: String) -> Outcome {
    let mut conn = connect(&url).await?;
    let create = "CREATE TABLE `a ``:table`` ? --` (id BINARY(16) NOT NULL PRIMARY KEY, `:number?` INT NOT NULL)";
    execute(&mut conn, &[create]).await?;
    let id = Native::generate();
    work([Named { id, number: 7 }]).flush_on(&mut conn).await?;
    assert_eq!(
        number(&mut conn, "`:number?` FROM `a ``:table`` ? --`").await?,
        7
    );
    Ok(())
}

async fn an_open_transaction_is_refused(url: String) -> Outcome {
    let (mut conn, mut looks) = (connect(&url).await?, connect(&url).await?);
    execute(&mut conn, &[NUMBERS, "BEGIN"]).await?;
    let sql = "INSERT INTO numbers VALUES (REPEAT('a', 16), 1)";
    execute(&mut conn, &[sql]).await?;
    let mut unit = work(numbers(3));
    let error = unit.flush_on(&mut conn).await.unwrap_err();
    assert!(error.is_connection_state(), "{error}");
    execute(&mut conn, &["ROLLBACK"]).await?;
    assert_eq!(number(&mut looks, "COUNT(*) FROM numbers").await?, 0);
    unit.flush_on(&mut conn).await?;
    assert_eq!(number(&mut looks, "COUNT(*) FROM numbers").await?, 3);

    // One that mysql_async rolls back with the next statement.
    let mut transaction = conn.start_transaction(TxOpts::default()).await?;
    transaction.query_drop(sql).await?;
    drop(transaction);
    work(numbers(2)).flush_on(&mut conn).await?;
    assert_eq!(number(&mut looks, "COUNT(*) FROM numbers").await?, 5);
    Ok(())
}

async fn a_commit_that_does_not_get_its_lock_leaves_the_connection(url: String) -> Outcome {
    let mut conn = connect(&url).await?;
    execute(&mut conn, &[PEOPLE, "SET SESSION lock_wait_timeout = 1"]).await?;
    let mut work = work([person(1)]).with_retry(Retry::NONE);
    let (ends, end) = mpsc::channel();
    let mut holds = Some((url, end));
    work.observe(move |_| {
        let (is_locked, locked) = mpsc::channel();
        if let Some((url, end)) = holds.take() {
            thread::spawn(move || trials::run(|| hold_commits(url, is_locked, end)));
        }
        let _ = locked.recv();
    });
    let error = work.flush_on(&mut conn).await.unwrap_err();
    assert!(
        error.is_transient() && !error.is_commit_unknown(),
        "{error}"
    );
    drop(ends);
    assert_eq!(number(&mut conn, "COUNT(*) FROM people").await?, 0);
    execute(&mut conn, &["SET SESSION lock_wait_timeout = 20"]).await?;
    work.observe(|_| ());
    assert_eq!(work.flush_on(&mut conn).await?.rows(), 1);
    assert_eq!(number(&mut conn, "COUNT(*) FROM people").await?, 1);
    Ok(())
}

/// Lets no COMMIT through until the other end of `end` is dropped.
async fn hold_commits(
    url: String,
    is_locked: mpsc::Sender<()>,
    end: mpsc::Receiver<()>,
) -> Outcome {
    let mut holder = connect(&url).await?;
    let lock = [
        "SET SESSION lock_wait_timeout = 20",
        "FLUSH TABLES WITH READ LOCK",
    ];
    execute(&mut holder, &lock).await?;
    is_locked.send(())?;
    let _ = end.recv();
    Ok(holder.disconnect().await?)
}

async fn a_savepoint_that_fails_leaves_the_transaction_as_it_was(url: String) -> Outcome {
    let (mut conn, mut looks) = (connect(&url).await?, connect(&url).await?);
    execute(&mut conn, &[NUMBERS]).await?;
    let rows = numbers(1_200);
    let mut transaction = conn.start_transaction(TxOpts::default()).await?;
    let mut first = work(rows[1_100..].to_vec());
    assert_eq!(first.flush_in(&mut transaction).await?.rows(), 100);
    assert_eq!(first.len(), 100, "they stay");
    let mut all = work(rows.clone());
    let error = all.flush_in(&mut transaction).await.unwrap_err();
    assert!(
        error.is_unique_violation() && !error.is_transaction_over(),
        "{error}"
    );
    assert_eq!(error.key(), Some(&*rows[1_100].id.to_string()), "{error}");
    let mut others = work(rows[..50].to_vec());
    others.flush_in(&mut transaction).await?;
    assert_eq!(number(&mut looks, "COUNT(*) FROM numbers").await?, 0);
    transaction.commit().await?;
    assert_eq!(number(&mut looks, "COUNT(*) FROM numbers").await?, 150);
    Ok(())
}

/// It was ended behind mysql_async's back, or by the server at a deadlock.
async fn a_transaction_that_has_ended_is_refused_and_its_connection_is_left(
    url: String,
) -> Outcome {
    let (mut conn, mut looks) = (connect(&url).await?, connect(&url).await?);
    execute(&mut conn, &[NUMBERS]).await?;
    let mut transaction = conn.start_transaction(TxOpts::default()).await?;
    transaction.query_drop("COMMIT").await?;
    let error = work(numbers(3))
        .flush_in(&mut transaction)
        .await
        .unwrap_err();
    assert!(error.is_connection_state(), "{error}");
    transaction.commit().await?;
    assert_eq!(number(&mut looks, "COUNT(*) FROM numbers").await?, 0);

    // The server ends the transaction that has written less.
    execute(&mut conn, &[ordid_mysql_async::flushes_table()]).await?;
    let mut rows = numbers(60);
    work(rows.clone()).flush_on(&mut conn).await?;
    let sql = "UPDATE numbers SET number = -1 WHERE id = ?";
    let mut transaction = conn.start_transaction(TxOpts::default()).await?;
    transaction.exec_drop(sql, (rows[0].id,)).await?;
    execute(&mut looks, &["BEGIN"]).await?;
    for row in &rows[1..] {
        looks.exec_drop(sql, (row.id,)).await?;
    }
    let mut update = UnitOfWork::new();
    rows[1].number = -2;
    update.update(rows[1].clone());
    let waits = update.flush_in(&mut transaction);
    let crosses = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        looks.exec_drop(sql, (rows[0].id,)).await
    };
    let (flushed, crossed) = tokio::join!(waits, crosses);
    crossed?;
    let error = flushed.unwrap_err();
    assert!(
        error.is_transient() && error.is_transaction_over(),
        "{error}"
    );
    execute(&mut looks, &["COMMIT"]).await?;
    transaction.rollback().await?;
    let changed = number(&mut conn, "COUNT(*) FROM numbers WHERE number = -1").await?;
    assert_eq!(changed, 60);
    Ok(())
}

#[derive(OrderedKey)]
#[ordid(table = "receipts")]
struct Receipt {
    id: Native,
    total: i64,
    #[ordid(returning)]
    tax: Assigned<f64>,
    #[ordid(returning)]
    note: Assigned<Option<String>>,
    #[ordid(returning)]
    number: Assigned<u64>,
}

async fn what_the_database_fills_may_be_of_any_type(url: String) -> Outcome {
    let pool = mysql::pool(&url);
    let mut conn = pool.get_conn().await?;
    let create = "CREATE TABLE receipts (id BINARY(16) NOT NULL PRIMARY KEY, total BIGINT NOT NULL, \
                  tax DOUBLE AS (total * 0.25) STORED, note VARCHAR(20) DEFAULT 'ß', \
                  number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE)";
    execute(&mut conn, &[create]).await?;
    let mut work = UnitOfWork::new();
    let mut assigned = Vec::new();
    for total in 0..1_200 {
        let (tax, note, number) = (Assigned::new(), Assigned::new(), Assigned::new());
        assigned.push((total, tax.clone(), note.clone(), number.clone()));
        let id = Native::generate();
        work.add(Receipt {
            id,
            total,
            tax,
            note,
            number,
        });
    }
    work.flush(&pool).await?;
    for (number, (total, tax, note, count)) in (1_u64..).zip(assigned) {
        assert_eq!(tax.get(), Some(f64::from(i32::try_from(total)?) * 0.25));
        assert_eq!(note.get(), Some(Some("ß".to_owned())));
        assert_eq!(count.get(), Some(number));
    }
    drop(conn);
    Ok(pool.disconnect().await?)
}

/// Also over a connection that keeps none: a server has room for some thousands.
async fn statements_that_are_not_kept_are_closed(url: String) -> Outcome {
    for kept in [0, 1, 32] {
        let options = mysql::options(&url)?.stmt_cache_size(kept);
        let mut conn = ::mysql_async::Conn::new(options).await?;
        execute(&mut conn, &["DROP TABLE IF EXISTS numbers", NUMBERS]).await?;
        for count in [1, 700, 2_300, 1, 701, 2_300] {
            work(numbers(count)).flush_on(&mut conn).await?;
        }
        let sql = "SHOW SESSION STATUS LIKE 'Com_stmt_%'";
        let counts: Vec<(String, i64)> = conn.query(sql).await?;
        let count = |name: &str| counts.iter().find(|it| it.0 == name).map_or(0, |it| it.1);
        let open = count("Com_stmt_prepare") - count("Com_stmt_close");
        assert!(open <= i64::try_from(kept)?, "{open} of {kept}: {counts:?}");
        conn.disconnect().await?;
    }
    Ok(())
}
