//! What a database refuses in the midst of a flush: a value that is taken, rows for which the disk
//! has no room.

use std::process::Command;

use libtest_mimic::Trial;
use ordid_sqlx::{Error, Retry};
use ordid_tests::{
    faults::{Engine, Found, Graph, Shape, Site},
    servers::Servers,
    trials::Outcome,
};
use sqlx::{ConnectOptions, MySql, Postgres, Sqlite};

use crate::{kill::Flusher, on_file, on_server, times};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    const NAME: &str = "a_label_that_is_taken_leaves_no_row";
    on_server::<Postgres, _, _>(trials, servers, "postgres", NAME, taken_when_sent);
    on_server::<MySql, _, _>(trials, servers, "mariadb", NAME, taken_when_sent);
    on_file(trials, NAME, taken_when_sent);
    on_server::<Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "a_label_that_is_found_taken_at_commit_leaves_no_row",
        async |site| {
            site.execute(
                "ALTER TABLE orders DROP CONSTRAINT orders_label_key, ADD CONSTRAINT late UNIQUE \
                 (label) DEFERRABLE INITIALLY DEFERRED",
            )
            .await?;
            taken_at_commit(site).await
        },
    );
    on_file(trials, "a_database_that_may_not_grow_leaves_no_row", full);
    on_file(trials, "a_disk_without_room_leaves_no_row", |site| {
        no_room(site, false)
    });
    on_file(
        trials,
        "a_disk_without_room_for_the_log_leaves_no_row",
        async |site| {
            site.execute("PRAGMA journal_mode = WAL").await?;
            no_room(site, true).await
        },
    );
}

/// Refused where it is sent.
async fn taken_when_sent<DB: Engine>(site: Site<DB>) -> Outcome {
    taken(site, |error| {
        assert_eq!((error.table(), error.chunk()), (Some("orders"), Some(1)));
        assert_eq!(error.rows(), Some(1_000..2_000));
    })
    .await
}

/// The database answers to COMMIT, so there is no doubt.
async fn taken_at_commit(site: Site<Postgres>) -> Outcome {
    taken(site, |error| assert_eq!(error.table(), None, "{error}")).await
}

/// The label of one row in the middle of the second chunk.
async fn taken<DB: Engine>(site: Site<DB>, check: impl FnOnce(&Error)) -> Outcome {
    let mut earlier = Graph::new(0, Shape::SMALL);
    let graph = Graph::new(1, Shape::CHUNKS);
    let pool = site.pool();
    earlier.orders[7]
        .label
        .clone_from(&graph.orders[1_500].label);
    site.work(&earlier, Retry::DEFAULT).flush(&pool).await?;
    let mut work = site.work(&graph, Retry::DEFAULT);
    let outcome = work.flush(&pool).await;
    pool.close().await;
    site.judge(&graph, &work, &outcome).await?;
    let error = outcome.expect_err("the label is taken");
    assert_eq!(error.retries(), 0, "it would be refused again");
    assert!(
        error.is_unique_violation() && !error.is_commit_unknown(),
        "{error}"
    );
    check(&error);
    site.execute("UPDATE orders SET label = 'free' WHERE unit = 0 AND position = 7")
        .await?;
    site.flush_again(&graph, &mut work).await
}

/// `SQLITE_FULL`, at every stage of the flush.
async fn full(site: Site<Sqlite>) -> Outcome {
    let empty = site.numbers("PRAGMA page_count").await?[0];
    let graph = Graph::new(0, Shape::CHUNKS);
    let pool = site.pool();
    site.work(&graph, Retry::DEFAULT).flush(&pool).await?;
    pool.close().await;
    let pages = site.numbers("PRAGMA page_count").await?[0] - empty;
    assert!(pages > 50, "{pages}");
    let steps = i64::from(times(8, 100));
    for (unit, step) in (1..).zip(0..steps) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = site.work(&graph, Retry::DEFAULT);
        let now = site.numbers("PRAGMA page_count").await?[0];
        let most = now + step * pages / steps * 9 / 10;
        let options = site.options().clone();
        let narrow = options.pragma("max_page_count", most.to_string());
        let pool = Site::<Sqlite>::open(narrow).pool();
        let outcome = work.flush(&pool).await;
        pool.close().await;
        site.judge(&graph, &work, &outcome).await?;
        let error = outcome.expect_err("there is no room");
        assert!(error.to_string().contains("full"), "{step}: {error}");
        site.flush_again(&graph, &mut work).await?;
    }
    Ok(())
}

/// A limit on the size of files stands for a full disk: writes fail, those of COMMIT among them.
async fn no_room(site: Site<Sqlite>, is_log: bool) -> Outcome {
    let url = site.options().to_url_lossy().to_string();
    // What a unit of work adds, in blocks of 512 bytes.
    let before = blocks(&site).await?;
    site.flush_anew(&Graph::new(0, Shape::CHUNKS), Found::None)
        .await?;
    let added = blocks(&site).await? - before;
    let (mut refused, mut committed) = (0, 0);
    let steps = times(12, 200);
    for (unit, step) in (1..).zip(0..steps) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        // From nearly no room to room enough. The log's index alone takes 64.
        let most = if is_log {
            80 + i64::from(step) * 2 * added / i64::from(steps)
        } else {
            blocks(&site).await? + i64::from(step) * 2 * added / i64::from(steps)
        };
        // Without the trap the signal would end the program.
        let script = "trap '' XFSZ; ulimit -f $1; shift; exec \"$@\"";
        let program = env!("CARGO_BIN_EXE_flush_unit");
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", &most.to_string(), program]);
        let mut flusher = Flusher::start(command, &url, unit)?;
        flusher.go()?;
        let said = flusher.hear()?;
        drop(flusher);
        let found = site.look(&graph).await?;
        match (said.split(':').next().unwrap_or_default(), found) {
            ("committed", Found::All) => committed += 1,
            ("refused", Found::None) => refused += 1,
            _ => return Err(format!("room for {most}: {found:?} and {said:?}").into()),
        }
        site.flush_anew(&graph, found).await?;
    }
    eprintln!("SQLite without room: {refused} refused, {committed} committed");
    assert!(refused >= steps / 4 && committed > 0);
    Ok(())
}

/// The size of the file.
async fn blocks(site: &Site<Sqlite>) -> Outcome<i64> {
    let pages = site.numbers("PRAGMA page_count").await?[0];
    Ok(pages * site.numbers("PRAGMA page_size").await?[0] / 512)
}
