//! Limits: a flush that may take so long, statements and rows that a server takes up to a size.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_harness::Server;
use ordid_sqlx::Retry;
use sqlx::{Connection as _, Database};

use super::{
    Flusher, Found, Graph, Library, PATIENCE, Remote as _, Served, Shape, Site, cut::through,
    on_own_server, on_server,
};
use crate::{
    proxy::{Fault, Proxy},
    servers::Servers,
    trials::Outcome,
};

const LOCKED: &str = "limits::a_lock_that_does_not_come_ends_the_flush_at_its_deadline";
const UNANSWERED: &str = "limits::a_commit_that_nobody_answers_is_unknown_at_the_deadline";
const LARGE: &str = "limits::rows_that_are_large_together_or_alone_are_written";
const TOO_LARGE: &str = "limits::a_row_that_is_larger_than_the_server_takes_is_named";

const MB: usize = 1 << 20;

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", LOCKED, async |site| {
        locked::<L::Postgres>(site, "BEGIN; LOCK TABLE customers IN SHARE MODE").await
    });
    on_server::<L::Postgres, _, _>(
        trials,
        servers,
        "postgres",
        UNANSWERED,
        unanswered::<L::Postgres>,
    );
    on_server::<L::MySql, _, _>(
        trials,
        servers,
        "mariadb",
        UNANSWERED,
        unanswered::<L::MySql>,
    );
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", LARGE, async |site| {
        site.execute("ALTER TABLE orders DROP CONSTRAINT orders_label_key, ALTER label TYPE text")
            .await?;
        for labels in [of(1_000, 20_000), of(3, 10 * MB)] {
            large::<L::Postgres>(&site, &labels).await?;
        }
        Ok(())
    });
    for server in ["mariadb", "mysql"] {
        on_server::<L::MySql, _, _>(trials, servers, server, LOCKED, async |site| {
            locked::<L::MySql>(site, "LOCK TABLES customers READ").await
        });
        on_own_server::<L::MySql, _, _>(trials, servers, server, LARGE, packets::<L::MySql>);
        on_own_server::<L::MySql, _, _>(trials, servers, server, TOO_LARGE, too_large::<L::MySql>);
    }
}

/// Returns so many sizes.
fn of(rows: usize, size: usize) -> Vec<usize> {
    vec![size; rows]
}

/// Somebody else has locked the table for longer than any of its sessions would wait by itself. The flush of a library
/// whose calls block ends when the server gives the statement up.
async fn locked<W: Flusher<Database: Served>>(site: Site<W::Database>, lock: &str) -> Outcome {
    let mut holder = <W::Database as Database>::Connection::connect_with(site.options()).await?;
    <W::Database as super::Engine>::execute_sql(&mut holder, lock).await?;
    let (release, released) = mpsc::channel::<()>();
    let holding = thread::spawn(move || {
        let _ = released.recv_timeout(Duration::from_secs(20));
        drop(holder);
    });
    let graph = Graph::new(1, Shape::SMALL);
    let mut work = W::of(&graph, Retry::DEFAULT);
    work.within(Duration::from_millis(200));
    let begun = Instant::now();
    let outcome = work.flush_to(site.options(), PATIENCE).await;
    // MySQL and MariaDB count in seconds.
    assert!(begun.elapsed() < Duration::from_secs(10), "{outcome:?}");
    drop(release);
    holding.join().expect("it only waits");
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::None);
    let error = outcome.expect_err("the table is locked");
    assert!(error.is_timeout && !error.is_commit_unknown, "{error}");
    work.within(PATIENCE);
    site.flush_again(&graph, &mut work).await
}

/// How long a flush may take that has to come to its COMMIT.
const DEADLINE: Duration = Duration::from_secs(10);

/// The network goes silent at COMMIT. A call that blocks is not given up: the flush ends when the connection breaks.
async fn unanswered<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    let cases = [
        (Fault::SilenceAtCommit, Found::None),
        (Fault::SilenceAfterCommit, Found::All),
    ];
    for (unit, (fault, found)) in (1..).zip(cases) {
        let proxy = Proxy::start(W::Database::address(site.options())?).await?;
        proxy.always(fault);
        let graph = Graph::new(unit, Shape::SMALL);
        let mut work = W::of(&graph, Retry::DEFAULT);
        work.within(DEADLINE);
        let silent = through(&site, &proxy);
        let mut flush = Box::pin(work.flush_to(silent.options(), PATIENCE));
        // At COMMIT, less than the whole deadline is left.
        let patience = match W::BLOCKS {
            true => DEADLINE + Duration::from_secs(1),
            false => PATIENCE,
        };
        let after_commit = async {
            while proxy.traffic().iter().all(|it| it.commit.is_none()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::time::sleep(patience).await;
        };
        let ended = tokio::select! {
            outcome = &mut flush => Some(outcome),
            () = after_commit => None,
        };
        assert_eq!(ended.is_none(), W::BLOCKS, "{ended:?}");
        assert!(proxy.traffic().iter().any(|it| it.commit.is_some()));
        // Client and server hear that the other is gone.
        drop(proxy);
        let outcome = match ended {
            Some(outcome) => outcome,
            None => flush.as_mut().await,
        };
        drop(flush);
        site.settle().await?;
        assert_eq!(site.judge(&graph, &work, &outcome).await?, found);
        let error = outcome.expect_err("nobody answered");
        assert!(error.is_timeout && error.is_commit_unknown, "{error}");
        work.within(PATIENCE);
        site.flush_again(&graph, &mut work).await?;
    }
    Ok(())
}

/// Flushes orders whose labels have these sizes, at one attempt.
async fn large<W: Flusher>(site: &Site<W::Database>, labels: &[usize]) -> Outcome {
    let graph = with_labels(1, labels);
    let mut work = W::of(&graph, Retry::NONE);
    let outcome = work.flush_to(site.options(), PATIENCE).await;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
    outcome?;
    for table in ["items", "orders", "customers"] {
        site.execute(&format!("DELETE FROM {table}")).await?;
    }
    Ok(())
}

/// Makes orders whose labels have these sizes.
pub(super) fn with_labels(unit: u32, labels: &[usize]) -> Graph {
    let shape = Shape {
        customers: 1,
        orders: u32::try_from(labels.len()).expect("few labels"),
        items: 1,
    };
    let mut graph = Graph::new(unit, shape);
    for (order, size) in graph.orders.iter_mut().zip(labels) {
        order.label = "x".repeat(*size);
    }
    graph
}

/// Makes the tables on a server that takes packets of this size.
async fn site_with<D: Served>(server: &Server, packet: usize) -> Outcome<Site<D>> {
    let site = Site::<D>::create(server.url().parse()?).await?;
    site.execute("ALTER TABLE orders DROP INDEX label, MODIFY label LONGTEXT NOT NULL")
        .await?;
    site.execute(&format!("SET GLOBAL max_allowed_packet = {packet}"))
        .await?;
    Ok(site)
}

/// The sizes of case 18, and a large row behind small ones.
async fn packets<W: Flusher<Database: Served>>(server: Server) -> Outcome {
    let site = site_with::<W::Database>(&server, MB).await?;
    let behind_small_ones = [of(100, 2_000), of(1, 900_000), of(1, 2_000)].concat();
    for labels in [of(11, 100_000), of(20_000, 2_000), behind_small_ones] {
        large::<W>(&site, &labels).await?;
    }
    for (packet, labels) in [
        (16 * MB, of(1_000, 20_000)),
        (16 * MB, of(2, 10 * MB)),
        (64 * MB, of(1_000, 70_000)),
    ] {
        site.execute(&format!("SET GLOBAL max_allowed_packet = {packet}"))
            .await?;
        large::<W>(&site, &labels).await?;
    }
    Ok(())
}

async fn too_large<W: Flusher<Database: Served>>(server: Server) -> Outcome {
    let site = site_with::<W::Database>(&server, MB).await?;
    let graph = with_labels(1, &[10, 2 * MB, 10]);
    let mut work = W::of(&graph, Retry::DEFAULT);
    let outcome = work.flush_to(site.options(), PATIENCE).await;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::None);
    let error = outcome.expect_err("the row is too large");
    let says = |what: &str| error.message.contains(what);
    assert!(
        says("the server takes 1048576 (`@@max_allowed_packet`)"),
        "{error}"
    );
    assert!(says(&graph.orders[1].id.to_string()), "{error}");
    assert_eq!((error.retries, error.is_connection_lost), (0, false));
    site.execute("SET GLOBAL max_allowed_packet = 16777216")
        .await?;
    site.flush_again(&graph, &mut work).await
}
