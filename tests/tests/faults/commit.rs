//! A COMMIT that lands when its client no longer listens.

use std::time::Duration;

use libtest_mimic::Trial;
use ordid_sqlx::Retry;
use ordid_tests::{
    faults::{Found, Graph, Remote, Shape, Site},
    proxy::{At, Fault, Proxy},
    servers::Servers,
    trials::Outcome,
};
use sqlx::{MySql, Postgres};

use crate::{
    cut::{EAGER, learn, through},
    on_server,
};

/// How many sessions wait for a lock that another one holds.
const POSTGRES_WAITS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = \
                              current_database() AND wait_event_type = 'Lock'";
/// MariaDB's `innodb_trx` is not written anew for who asks for it again and again.
const MARIADB_WAITS: &str = "SELECT COUNT(*) FROM information_schema.processlist, \
                             information_schema.global_status WHERE db = DATABASE() AND info LIKE \
                             'INSERT%' AND time_ms > 200 AND variable_name = \
                             'Innodb_row_lock_current_waits' AND variable_value > 0";

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($server:literal, $database:ty, $bulk:expr, $waits:expr) => {
            on_server::<$database, _, _>(
                trials,
                servers,
                $server,
                "a_commit_that_lands_after_the_question_is_no_second_copy",
                |site| late(site, $bulk, $waits, EAGER),
            );
            on_server::<$database, _, _>(
                trials,
                servers,
                $server,
                "a_commit_that_lands_in_the_next_flush_is_no_second_copy",
                |site| late(site, $bulk, $waits, Retry::NONE),
            );
            on_server::<$database, _, _>(
                trials,
                servers,
                $server,
                "a_commit_of_which_nobody_can_ask_is_unknown",
                |site| unanswered(site, $bulk),
            );
        };
    }
    add!("postgres", Postgres, &[1_100, 2_050, 0], POSTGRES_WAITS);
    add!("mariadb", MySql, &[0, 0, 0], MARIADB_WAITS);
}

/// The COMMIT is under way while the rows are looked for, and not found; and while they are sent
/// again, which waits for it.
async fn late<DB: Remote>(site: Site<DB>, bulk: &[usize], waits: &str, retry: Retry) -> Outcome {
    let proxy = Proxy::start(DB::address(site.options())?).await?;
    let conversation = learn(&site, &proxy, bulk).await?;
    let graph = Graph::new(1, Shape::CHUNKS);
    let mut work = site.work(&graph, retry);
    let pool = through(&site, &proxy).pool();
    proxy.plan([Fault::Hold(conversation.before_commit)]);
    if retry == Retry::NONE {
        let error = work.flush(&pool).await.expect_err("no answer came");
        assert!(error.is_commit_unknown(), "{error}");
        assert_eq!(work.len(), graph.len());
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
    let (outcome, landed) = tokio::join!(work.flush(&pool), landing);
    landed?;
    pool.close().await;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
    outcome?;
    Ok(())
}

/// COMMIT is held back and no other connection comes through; then it lands.
async fn unanswered<DB: Remote>(site: Site<DB>, bulk: &[usize]) -> Outcome {
    for lands in [true, false] {
        let proxy = Proxy::start(DB::address(site.options())?).await?;
        let conversation = learn(&site, &proxy, bulk).await?;
        let graph = Graph::new(1 + u32::from(lands), Shape::CHUNKS);
        let mut work = site.work(&graph, EAGER);
        let pool = through(&site, &proxy).pool();
        proxy.always(Fault::Cut(At::Up(0)));
        proxy.plan([Fault::Hold(conversation.before_commit)]);
        let error = work.flush(&pool).await.expect_err("nobody could be asked");
        pool.close().await;
        assert!(
            error.is_commit_unknown() && error.is_connection_lost(),
            "{error}"
        );
        assert_eq!(work.len(), graph.len());
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
