//! Every claim about mysql_async, on MariaDB and MySQL.

mod drops;
mod fields;
mod journal;
mod keys;
#[path = "../shared/mysql.rs"]
mod mysql;
mod pools;
mod shards;

use ::mysql_async::{Conn, prelude::Queryable as _};
use ordid::{OrderedKey, entity::EnsuredKey};
use ordid_mysql_async::{Entity, UnitOfWork};
use ordid_tests::{
    next_run,
    trials::{self, Outcome, run_all},
};

/// Says that this process is one for the first flush of a process, and into which database.
const FIRST_FLUSH: &str = "ORDID_TEST_FIRST_FLUSH";

fn main() {
    if let Ok(url) = std::env::var(FIRST_FLUSH) {
        let outcome = trials::run(|| drops::first_flush(url));
        return outcome.expect("the process that began this one reads why");
    }
    run_all(&["mariadb", "mysql"], |servers, trials| {
        keys::trials(servers, trials);
        for server in ["mariadb", "mysql"] {
            fields::trials(servers, trials, server);
            drops::trials(servers, trials, server);
            pools::trials(servers, trials, server);
            shards::trials(servers, trials, server);
            next_run::trials::<journal::Run>(servers, trials, server);
        }
    });
}

/// A unit of work of these rows.
fn work<E>(rows: impl IntoIterator<Item = E>) -> UnitOfWork
where
    E: Entity + OrderedKey<Field: EnsuredKey>,
{
    let mut work = UnitOfWork::new();
    for row in rows {
        work.add(row);
    }
    work
}

/// Connects.
async fn connect(url: &str) -> Outcome<Conn> {
    Ok(Conn::new(mysql::options(url)?).await?)
}

/// Executes statements, one after the other.
async fn execute(conn: &mut Conn, statements: &[&str]) -> Outcome {
    for sql in statements {
        conn.query_drop(*sql).await?;
    }
    Ok(())
}

/// How many other sessions are in this database. MySQL's older table fails at a statement that has bytes in it (3854).
const SESSIONS: &str = "COUNT(*) FROM /*M! information_schema *//*!50700 performance_schema */.processlist \
    WHERE db = DATABASE() AND id <> CONNECTION_ID()";

/// Returns the number that an expression is.
async fn number(conn: &mut Conn, sql: &str) -> Outcome<i64> {
    let number = conn.query_first(format!("SELECT {sql}")).await?;
    Ok(number.ok_or("no row")?)
}
