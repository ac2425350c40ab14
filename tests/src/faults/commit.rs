//! A COMMIT that lands when its client no longer listens.

use std::time::Duration;

use libtest_mimic::Trial;
use ordid_sqlx::Retry;

use super::{
    Flusher, Found, Graph, Library, PATIENCE, Remote as _, Served, Shape, Site,
    cut::{EAGER, through},
    on_both, on_server,
};
use crate::{
    proxy::{At, Fault, Proxy},
    servers::Servers,
    trials::Outcome,
};

/// How many sessions wait for a lock that another one holds.
pub(super) const POSTGRES_WAITS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = \
                              current_database() AND wait_event_type = 'Lock'";
/// MariaDB's `innodb_trx` is not written anew for who asks for it again and again. Each of MariaDB and MySQL runs what
/// stands in the comments that are its own.
pub(super) const MYSQL_WAITS: &str = "SELECT COUNT(*) FROM \
    /*M! information_schema.processlist, information_schema.global_status WHERE db = DATABASE() \
    AND info LIKE 'INSERT%' AND time_ms > 200 AND variable_name = 'Innodb_row_lock_current_waits' \
    AND variable_value > 0 *//*!80000 performance_schema.data_lock_waits */";

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    of::<L::Postgres>(servers, trials, "postgres", POSTGRES_WAITS);
    on_both(trials, |trials, server| {
        of::<L::MySql>(servers, trials, server, MYSQL_WAITS)
    });
}

fn of<W: Flusher<Database: Served>>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    server: &'static str,
    waits: &'static str,
) {
    on_server::<W, _, _>(
        trials,
        servers,
        server,
        "a_commit_that_lands_after_the_question_is_no_second_copy",
        move |site| late::<W>(site, waits, EAGER),
    );
    on_server::<W, _, _>(
        trials,
        servers,
        server,
        "a_commit_that_lands_in_the_next_flush_is_no_second_copy",
        move |site| late::<W>(site, waits, Retry::NONE),
    );
    on_server::<W, _, _>(
        trials,
        servers,
        server,
        "a_commit_of_which_nobody_can_ask_is_unknown",
        unanswered::<W>,
    );
    on_server::<W, _, _>(
        trials,
        servers,
        server,
        "rows_that_are_added_in_doubt_are_refused",
        added::<W>,
    );
}

/// The COMMIT is under way while the rows are looked for, and not found; and while they are sent
/// again, which waits for it.
async fn late<W: Flusher<Database: Served>>(
    site: Site<W::Database>,
    waits: &str,
    retry: Retry,
) -> Outcome {
    let proxy = Proxy::start(W::Database::address(site.options())?).await?;
    let graph = Graph::new(1, Shape::CHUNKS);
    let mut work = W::of(&graph, retry);
    let through = through(&site, &proxy);
    proxy.plan([Fault::HoldCommit]);
    if retry == Retry::NONE {
        let error = work
            .flush_to(through.options(), PATIENCE)
            .await
            .expect_err("no answer came");
        assert!(error.is_commit_unknown, "{error}");
        assert_eq!(work.held(), graph.len());
        assert_eq!(site.look(&graph).await?, Found::None);
    }
    let landing = async {
        while site.numbers(waits).await? == [0] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(site.look(&graph).await?, Found::None, "COMMIT is held back");
        proxy.release();
        Outcome::Ok(())
    };
    let (outcome, landed) = tokio::join!(work.flush_to(through.options(), PATIENCE), landing);
    landed?;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
    outcome?;
    Ok(())
}

/// COMMIT is held back and no other connection comes through; then it lands.
async fn unanswered<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    for lands in [true, false] {
        let proxy = Proxy::start(W::Database::address(site.options())?).await?;
        let graph = Graph::new(1 + u32::from(lands), Shape::CHUNKS);
        let mut work = W::of(&graph, EAGER);
        let through = through(&site, &proxy);
        proxy.always(Fault::Cut(At::Up(0)));
        proxy.plan([Fault::HoldCommit]);
        let error = work
            .flush_to(through.options(), PATIENCE)
            .await
            .expect_err("nobody could be asked");
        assert!(
            error.is_commit_unknown && error.is_connection_lost,
            "{error}"
        );
        assert_eq!(work.held(), graph.len());
        assert_eq!(site.look(&graph).await?, Found::None, "COMMIT is held back");
        if lands {
            proxy.release();
        }
        // Without it, the server rolls back when the proxy is gone.
        let found = if lands { Found::All } else { Found::None };
        if !lands {
            drop(proxy);
        }
        site.settle().await?;
        assert_eq!(site.look(&graph).await?, found);
        site.flush_again(&graph, &mut work).await?;
        site.execute("DELETE FROM items").await?;
        site.execute("DELETE FROM orders").await?;
        site.execute("DELETE FROM customers").await?;
    }
    Ok(())
}

/// With them the flush could not tell what became of those before.
async fn added<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    let proxy = Proxy::start(W::Database::address(site.options())?).await?;
    let [graph, later] = [1, 2].map(|unit| Graph::new(unit, Shape::SMALL));
    let mut work = W::of(&graph, Retry::NONE);
    let through = through(&site, &proxy);
    proxy.plan([Fault::HoldCommit]);
    let outcome = work.flush_to(through.options(), PATIENCE).await;
    let error = outcome.expect_err("no answer came");
    assert!(error.is_commit_unknown, "{error}");
    work.add_graph(&later);
    let outcome = work.flush_to(through.options(), PATIENCE).await;
    let error = outcome.expect_err("rows were added");
    assert!(error.is_plan && error.is_commit_unknown, "{error}");
    assert_eq!(work.held(), graph.len() + later.len());
    proxy.release();
    site.settle().await?;
    assert_eq!(site.look(&graph).await?, Found::All);
    assert_eq!(site.look(&later).await?, Found::None);
    Ok(())
}
