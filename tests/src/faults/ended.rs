//! The user's transaction, which MySQL and `MariaDB` end by themselves at a deadlock and, if they are told to, at a lock
//! that does not come in time. The savepoint of the flush is gone with it.

use std::{future::Future, time::Duration};

use libtest_mimic::Trial;
use ordid_harness::Server;
use ordid_sqlx::{Flushed, Retry};
use sqlx::{Connection as _, Database, MySql};

use super::{
    Engine, Failed, Flusher, Found, Graph, Library, PATIENCE, Shape, Site, trials::on_server,
};
use crate::{
    servers::{Options, Servers},
    trials::{Outcome, ignored, run},
};

/// A library's unit of work that is flushed inside of the user's transaction.
pub trait FlushesWithin: Flusher {
    /// Begins a transaction over a connection of its own, sends these statements, flushes inside, and rolls the transaction
    /// back as a program does which is told of the error.
    fn flush_within(
        &mut self,
        options: &Options<Self::Database>,
        before: &'static [&'static str],
    ) -> impl Future<Output = Result<Flushed, Failed>>;
}

impl FlushesWithin for ordid_sqlx::UnitOfWork<MySql> {
    async fn flush_within(
        &mut self,
        options: &Options<MySql>,
        before: &'static [&'static str],
    ) -> Result<Flushed, Failed> {
        let connection = <MySql as Database>::Connection::connect_with(options).await;
        let mut connection = connection.expect("the server is there");
        let begun = connection.begin().await;
        let mut transaction = begun.expect("nothing is open");
        for sql in before {
            let sent = MySql::execute_sql(&mut transaction, sql).await;
            sent.expect("nobody holds the row");
        }
        let outcome = self.flush_in(&mut transaction).await;
        let _ = transaction.rollback().await;
        outcome.map_err(|error| Failed::from(&error))
    }
}

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    for server in ["mariadb", "mysql"] {
        let name = format!(
            "{server}::{}ended::a_transaction_that_the_server_has_ended_is_over",
            L::MySql::PREFIX
        );
        trials.push(match servers.url(server) {
            Err(reason) => ignored(name, reason),
            Ok(_) => Trial::test(name, move || run(async || over::<L::MySql>(server).await)),
        });
        let name = "ended::a_transaction_that_the_user_s_own_statement_has_committed_is_not_there";
        on_server::<L::MySql, _, _>(trials, servers, server, name, committed::<L::MySql>);
    }
}

/// How many of the flush's statements wait for a lock. Each server runs what stands in the comments that are its own.
const WAITS: &str = "SELECT COUNT(*) FROM /*M! information_schema.processlist WHERE db = DATABASE() \
                     AND info LIKE 'UPDATE%' AND time_ms > 200 *//*!80000 performance_schema.data_lock_waits */";

/// The statements of the user, before the flush.
const BEFORE: &[&str] = &[
    "SET SESSION innodb_lock_wait_timeout = 1",
    "UPDATE marks SET n = 2",
];

/// A statement that changes tables commits. No library counts that, and each row would be committed by itself.
async fn committed<W: FlushesWithin<Database = MySql>>(site: Site<MySql>) -> Outcome {
    const CHANGES_TABLES: &[&str] = &["CREATE TABLE others (n BIGINT NOT NULL PRIMARY KEY)"];
    const COUNT: &str = "SELECT COUNT(*) FROM customers UNION ALL SELECT COUNT(*) FROM items";
    let old = Graph::new(0, Shape::SMALL);
    W::of(&old, Retry::NONE)
        .flush_to(site.options(), PATIENCE)
        .await?;
    let before = site.numbers(COUNT).await?;
    let new = Graph::new(1, Shape::SMALL);
    // The row that the server would refuse would be sought.
    let mut refused = Graph::new(2, Shape::SMALL);
    refused.items.push(old.items[0].clone());
    for graph in [new, refused] {
        site.execute("DROP TABLE IF EXISTS others").await?;
        let mut work = W::of(&graph, Retry::DEFAULT);
        let outcome = work.flush_within(site.options(), CHANGES_TABLES).await;
        let error = outcome.expect_err("no transaction is open");
        assert!(!error.is_commit_unknown, "{error}");
        assert!(error.message.contains("no transaction is open"), "{error}");
        site.settle().await?;
        assert_eq!(site.numbers(COUNT).await?, before, "{error}");
    }
    Ok(())
}

async fn over<W: FlushesWithin<Database = MySql>>(server: &str) -> Outcome {
    const OPTIONS: &[&str] = &["--innodb-rollback-on-timeout=ON"];
    let server: Server = match server {
        "mysql" => ordid_harness::mysql_with(OPTIONS)?,
        _ => ordid_harness::mariadb_with(OPTIONS)?,
    };
    let site = Site::<MySql>::create(server.url().parse()?).await?;
    site.execute("CREATE TABLE marks (n BIGINT NOT NULL PRIMARY KEY) ENGINE=InnoDB")
        .await?;
    site.execute("INSERT INTO marks VALUES (1)").await?;
    let old = Graph::new(0, Shape::SMALL);
    let mut work = W::of(&old, Retry::NONE);
    work.flush_to(site.options(), PATIENCE).await?;
    for is_deadlock in [true, false] {
        let mut other = <MySql as Database>::Connection::connect_with(site.options()).await?;
        MySql::execute_sql(&mut other, "BEGIN").await?;
        MySql::execute_sql(&mut other, "UPDATE customers SET bucket = bucket + 1").await?;
        let waits = async {
            if is_deadlock {
                // Until the user has changed the row.
                while site.numbers(WAITS).await? == [0] {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                MySql::execute_sql(&mut other, "UPDATE marks SET n = 3").await?;
            }
            Outcome::Ok(())
        };
        let mut work = W::begin(Retry::DEFAULT);
        work.change_graph(&old);
        let held = work.held();
        let flushing = work.flush_within(site.options(), BEFORE);
        let (outcome, waited) = tokio::join!(flushing, waits);
        waited?;
        let error = outcome.expect_err("somebody has locked the rows");
        assert!(
            error.is_transaction_over && !error.is_commit_unknown,
            "{error}"
        );
        assert!(
            error.message.contains("your transaction is over"),
            "{error}"
        );
        assert_eq!((error.retries, work.held()), (0, held));
        drop(other);
        site.settle().await?;
        assert_eq!(site.numbers("SELECT n FROM marks").await?, [1], "{error}");
        assert_eq!(site.look(&old).await?, Found::All);
    }
    Ok(())
}
