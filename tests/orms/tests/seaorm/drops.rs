//! Flushes that are dropped before their end, as by a timeout: what is left in the database, and what the
//! pool's next user finds.

use ordid_seaorm::{Retry, UnitOfWork};
use ordid_tests::trials::{Outcome, cut_off};
use sea_orm::{
    ConnectionTrait as _, DatabaseConnection, DbBackend, SqlxMySqlConnector, SqlxPostgresConnector,
    SqlxSqliteConnector, Statement, TransactionTrait as _,
};
use sqlx::{mysql::MySqlPoolOptions, postgres::PgPoolOptions, sqlite::SqlitePoolOptions};

use crate::{
    Databases, create,
    models::{author, book, count, empty, written},
};

pub fn add(to: &mut Databases<'_>) {
    all!(to.on_all, "drops::"; a_dropped_flush_leaves_no_transaction_in_the_pool);
    // Of MariaDB, SQLx 0.9 does not find its way back to the connection.
    all!(to.on_postgres, "drops::"; a_flush_that_is_dropped_in_a_transaction_goes_with_it);
    all!(to.on_sqlite, "drops::"; a_flush_that_is_dropped_in_a_transaction_goes_with_it);
}

/// The same database, over one connection.
async fn single(db: &DatabaseConnection) -> Outcome<DatabaseConnection> {
    Ok(match db.get_database_backend() {
        DbBackend::Postgres => {
            let options = db.get_postgres_connection_pool().connect_options();
            let pools = PgPoolOptions::new().max_connections(1);
            let pool = pools.connect_with(options.as_ref().clone()).await?;
            SqlxPostgresConnector::from_sqlx_postgres_pool(pool)
        }
        DbBackend::MySql => {
            let options = db.get_mysql_connection_pool().connect_options();
            let pools = MySqlPoolOptions::new().max_connections(1);
            let pool = pools.connect_with(options.as_ref().clone()).await?;
            SqlxMySqlConnector::from_sqlx_mysql_pool(pool)
        }
        _ => {
            let options = db.get_sqlite_connection_pool().connect_options();
            let pools = SqlitePoolOptions::new().max_connections(1);
            let pool = pools.connect_with(options.as_ref().clone()).await?;
            SqlxSqliteConnector::from_sqlx_sqlite_pool(pool)
        }
    })
}

const ROWS: usize = 2_505;

/// Five authors with 500 books each: four statements.
fn work() -> UnitOfWork {
    written(Retry::NONE, 500)
}

/// A mark that is seen by others: nothing is open on the connection that sets it.
async fn check_nothing_is_open(db: &DatabaseConnection, single: &DatabaseConnection) -> Outcome {
    single
        .execute_unprepared("INSERT INTO marks VALUES (1)")
        .await?;
    let marks = Statement::from_string(db.get_database_backend(), "SELECT n FROM marks");
    let marks = db.query_all_raw(marks).await?.len();
    assert_eq!(marks, 1, "others do not see what was written");
    single.execute_unprepared("DELETE FROM marks").await?;
    Ok(())
}

async fn library(db: &DatabaseConnection) -> Outcome {
    create(db, author::Entity).await?;
    create(db, book::Entity).await?;
    db.execute_unprepared("CREATE TABLE marks (n BIGINT NOT NULL)")
        .await?;
    Ok(())
}

/// Cut off at each poll, once over a connection that knows the statements and once over a new one.
async fn a_dropped_flush_leaves_no_transaction_in_the_pool(db: DatabaseConnection) -> Outcome {
    library(&db).await?;
    for is_new in [false, true] {
        let mut single_one = single(&db).await?;
        let (mut nothing, mut polls) = (0, 0);
        loop {
            polls += 1;
            if is_new {
                single_one.close_by_ref().await?;
                single_one = single(&db).await?;
            }
            let mut work = work();
            let outcome = cut_off(work.flush(&single_one), polls).await;
            check_nothing_is_open(&db, &single_one).await?;
            let left = count(&db).await?;
            match outcome {
                Some(outcome) => assert_eq!((outcome?.rows(), left), (ROWS, ROWS)),
                None => {
                    assert_eq!(work.len(), ROWS, "nothing is lost");
                    assert!(left == 0 || left == ROWS, "{left} rows after {polls} polls");
                    nothing += usize::from(left == 0);
                    // With the same keys; it asks first where it may have been committed.
                    assert_eq!(work.flush(&single_one).await?.rows(), ROWS);
                    assert_eq!(count(&db).await?, ROWS);
                    empty(&db).await?;
                    continue;
                }
            }
            empty(&db).await?;
            break;
        }
        assert!(nothing > 0, "dropped {polls} times, never before COMMIT");
        single_one.close().await?;
    }
    Ok(())
}

/// Cut off at each poll inside the user's transaction, which is dropped then: nothing of it is left.
async fn a_flush_that_is_dropped_in_a_transaction_goes_with_it(db: DatabaseConnection) -> Outcome {
    library(&db).await?;
    let mut work = work();
    for polls in 1.. {
        let single = single(&db).await?;
        let transaction = single.begin().await?;
        transaction
            .execute_unprepared("INSERT INTO marks VALUES (2)")
            .await?;
        let outcome = cut_off(work.flush_in(&transaction), polls).await;
        drop(transaction);
        single.close().await?;
        assert_eq!(count(&db).await?, 0, "after {polls} polls");
        assert_eq!(work.len(), ROWS);
        if let Some(outcome) = outcome {
            assert_eq!(outcome?.rows(), ROWS);
            assert!(polls > 1, "{polls}");
            break;
        }
    }
    let marks = Statement::from_string(db.get_database_backend(), "SELECT n FROM marks");
    assert!(db.query_all_raw(marks).await?.is_empty());
    Ok(())
}
