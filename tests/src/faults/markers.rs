//! The table of marker rows: made on request, missing, cleaned, and done without.

use std::time::Duration;

use libtest_mimic::Trial;
use ordid::{
    clock::{Clock as _, SystemClock, Timestamp},
    scheme::{TimeOrdered as _, UuidV7},
    uuid::Uuid,
};
use ordid_sqlx::Retry;
use sqlx::Sqlite;

use super::{
    Engine, Flusher, Found, Graph, Library, PATIENCE, Remote as _, Served, Shape, Site,
    cut::{EAGER, through},
    graph::CHANGED,
    on_file, on_server,
};
use crate::{
    proxy::{Fault, Proxy},
    servers::Servers,
    trials::Outcome,
};

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    of::<L::Postgres>(servers, trials, "postgres");
    for server in ["mariadb", "mysql"] {
        of::<L::MySql>(servers, trials, server);
    }
    on_files::<L::Sqlite>(trials);
}

/// Adds those of SQLite.
pub fn on_files<W: Flusher<Database = Sqlite>>(trials: &mut Vec<Trial>) {
    on_file::<W, _, _>(trials, MISSING, missing::<W>);
    on_file::<W, _, _>(trials, CREATED, created::<W>);
}

const MISSING: &str = "a_missing_table_of_marker_rows_is_told_with_its_statement";
const CREATED: &str = "the_table_of_marker_rows_is_made_and_cleaned";

fn of<W: Flusher<Database: Served>>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    server: &'static str,
) {
    on_server::<W, _, _>(trials, servers, server, MISSING, missing::<W>);
    on_server::<W, _, _>(trials, servers, server, CREATED, created::<W>);
    on_server::<W, _, _>(
        trials,
        servers,
        server,
        "the_server_is_asked_which_engine_it_is",
        detected::<W>,
    );
    on_server::<W, _, _>(
        trials,
        servers,
        server,
        "changes_without_a_marker_row_are_not_sent_again_after_a_lost_commit",
        unmarked::<W>,
    );
}

/// Rows to be changed, and a unit of work that changes them.
async fn changes<W: Flusher>(site: &Site<W::Database>) -> Outcome<(Graph, W)> {
    let graph = Graph::new(1, Shape::SMALL);
    let mut work = W::of(&graph, Retry::NONE);
    work.flush_to(site.options(), PATIENCE).await?;
    let mut work = W::begin(EAGER);
    work.change_graph(&graph);
    Ok((graph, work))
}

/// Returns how many customers are changed, and how many items are left.
async fn changed<DB: Engine>(site: &Site<DB>) -> Outcome<[i64; 2]> {
    let customers = format!("SELECT COUNT(*) FROM customers WHERE bucket = {CHANGED}");
    let items = site.numbers("SELECT COUNT(*) FROM items").await?;
    Ok([site.numbers(&customers).await?[0], items[0]])
}

/// The statement of the error makes the table.
async fn missing<W: Flusher>(site: Site<W::Database>) -> Outcome {
    let (graph, mut work) = changes::<W>(&site).await?;
    site.execute("DROP TABLE ordid_flushes").await?;
    let error = work.flush_to(site.options(), PATIENCE).await.unwrap_err();
    assert!(error.is_flushes_table_missing, "{error}");
    assert_eq!(error.retries, 0, "{error}");
    let error = error.message;
    let (_, statement) = error
        .split_once("::flushes_table` returns: ")
        .ok_or("no statement")?;
    let (statement, _) = statement
        .split_once("; or flush `without_record`")
        .ok_or("no end")?;
    site.execute(statement).await?;
    assert_eq!(changed(&site).await?, [0, 40]);
    work.flush_to(site.options(), PATIENCE).await?;
    assert_eq!(changed(&site).await?, [20, 0]);

    // Without a marker row, no table is needed.
    site.execute("DROP TABLE ordid_flushes").await?;
    let removed = W::remove_old_markers(site.options()).await;
    assert!(removed.unwrap_err().is_flushes_table_missing);
    let mut work = W::begin(EAGER).without_marker();
    work.change_graph(&Graph {
        items: Vec::new(),
        ..graph
    });
    assert_eq!(work.flush_to(site.options(), PATIENCE).await?.updated(), 20);
    Ok(())
}

/// By several programs at the same time.
async fn created<W: Flusher>(site: Site<W::Database>) -> Outcome {
    let (_, mut work) = changes::<W>(&site).await?;
    site.execute("DROP TABLE ordid_flushes").await?;
    let options = site.options();
    let create = || W::create_flushes_table(options);
    if W::Database::SESSIONS.is_some() {
        let (first, second, third) = tokio::join!(create(), create(), create());
        first.and(second).and(third)?;
    } else {
        // One that finds a file locked may be without a busy timeout.
        create().await?;
        create().await?;
    }
    work.flush_to(options, PATIENCE).await?;
    assert_eq!(changed(&site).await?, [20, 0]);

    let key = |id: Uuid| match W::Database::KEY {
        "uuid" => format!("'{id}'"),
        _ => format!("x'{}'", id.simple()),
    };
    let now = SystemClock.now().as_unix_millis();
    for hours in [1, 23, 25, 1_000] {
        let made = now - hours * 60 * 60 * 1_000;
        let (id, _) = UuidV7::bounds_at(Timestamp::from_unix_millis(made)?)?;
        let insert = format!("INSERT INTO ordid_flushes (id) VALUES ({})", key(id));
        site.execute(&insert).await?;
    }
    assert_eq!(W::remove_old_markers(options).await?, 2);
    assert_eq!(W::remove_old_markers(options).await?, 0);
    // More than one transaction deletes.
    let (last, _) = UuidV7::bounds_at(Timestamp::from_unix_millis(1_000)?)?;
    for first in (0..2_500).step_by(500) {
        let keys = (first..first + 500).map(|number| key(Uuid::from_u128(last.as_u128() + number)));
        let keys: Vec<_> = keys.map(|key| format!("({key})")).collect();
        let insert = format!("INSERT INTO ordid_flushes (id) VALUES {}", keys.join(", "));
        site.execute(&insert).await?;
    }
    assert_eq!(W::remove_old_markers(options).await?, 2_500);
    let kept = site.numbers("SELECT COUNT(*) FROM ordid_flushes").await?;
    assert_eq!(kept, [3], "two of today, and that of the flush");
    Ok(())
}

/// Aurora DSQL is known by a table that PostgreSQL does not have.
async fn detected<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    let options = site.options();
    let own = W::detect_engine(options).await?;
    if W::Database::KEY == "uuid" {
        assert_eq!(own, Some("PostgreSQL"));
        site.execute("CREATE SCHEMA sys").await?;
        let table = "CREATE TABLE sys.iam_pg_role_mappings (pg_role_name text)";
        site.execute(table).await?;
        assert_eq!(W::detect_engine(options).await?, Some("Aurora DSQL"));
    } else {
        assert_eq!(own, Some("MySQL"));
    }
    Ok(())
}

/// COMMIT is under way, and its answer is lost; then it lands, or does not.
async fn unmarked<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    for lands in [true, false] {
        site.execute("DELETE FROM items").await?;
        site.execute("DELETE FROM orders").await?;
        site.execute("DELETE FROM customers").await?;
        let (_, work) = changes::<W>(&site).await?;
        let mut work = work.without_marker();
        let proxy = Proxy::start(W::Database::address(site.options())?).await?;
        proxy.plan([Fault::HoldCommit]);
        let through = through(&site, &proxy);
        let error = work
            .flush_to(through.options(), PATIENCE)
            .await
            .unwrap_err();
        assert!(error.is_commit_unknown && error.retries == 0, "{error}");
        assert!(
            error.message.contains("`without_record` cannot find out"),
            "{error}"
        );
        assert_eq!(changed(&site).await?, [0, 40], "COMMIT is held back");
        if lands {
            proxy.release();
        } else {
            drop(proxy);
        }
        site.settle().await?;
        let found = changed(&site).await?;
        assert_eq!(found, if lands { [20, 0] } else { [0, 40] });
        // Nobody can say which of the two it was, so nothing is sent.
        let again = work.flush_to(site.options(), Duration::from_secs(5)).await;
        assert!(again.is_err_and(|error| error.is_commit_unknown));
        assert_eq!(changed(&site).await?, found);
        assert_eq!(work.held(), 60);

        // New rows are found by their keys as always.
        let proxy = Proxy::start(W::Database::address(site.options())?).await?;
        proxy.plan([Fault::HoldCommit]);
        let through = super::cut::through(&site, &proxy);
        let new = Graph::new(2, Shape::SMALL);
        let mut work = W::of(&new, Retry::NONE).without_marker();
        let error = work
            .flush_to(through.options(), PATIENCE)
            .await
            .unwrap_err();
        assert!(error.is_commit_unknown, "{error}");
        proxy.release();
        site.settle().await?;
        work.flush_to(site.options(), PATIENCE).await?;
        assert_eq!(site.look(&new).await?, Found::All);
    }
    Ok(())
}
