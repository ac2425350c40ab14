//! A COMMIT that lands when its client no longer listens.

use std::time::Duration;

use libtest_mimic::Trial;
use ordid_tests::{
    faults::{Found, Graph, Outcome, Remote, Shape, Site},
    proxy::{Fault, Proxy},
    servers::Servers,
};
use sqlx::{MySql, Postgres};

use crate::{
    cut::{learn, through},
    on_server,
};

/// How many sessions wait for a lock that another one holds.
const POSTGRES_WAITS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = \
                              current_database() AND wait_event_type = 'Lock'";
const MARIADB_WAITS: &str =
    "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($server:literal, $database:ty, $copied:expr, $waits:expr) => {
            on_server::<$database, _, _>(
                trials,
                servers,
                $server,
                "a_commit_that_lands_late_is_no_second_copy",
                |site| late(site, $copied, $waits),
            );
        };
    }
    add!("postgres", Postgres, &[1_100, 2_050, 0], POSTGRES_WAITS);
    add!("mariadb", MySql, &[0, 0, 0], MARIADB_WAITS);
}

/// The COMMIT is under way while the rows are looked for, and not found; and while they are sent
/// again, which waits for it.
async fn late<DB: Remote>(site: Site<DB>, copied: &[usize], waits: &str) -> Outcome {
    let proxy = Proxy::start(DB::address(site.options())?).await?;
    let conversation = learn(&site, &proxy, copied).await?;
    let graph = Graph::new(1, Shape::CHUNKS);
    let mut work = site.work(&graph);
    let pool = through(&site, &proxy).pool();
    proxy.plan([Fault::Hold(conversation.before_commit)]);
    let error = work.flush(&pool).await.expect_err("no answer came");
    assert!(error.is_commit_unknown(), "{error}");
    assert_eq!(work.len(), graph.len());
    assert_eq!(
        site.look(&graph).await?,
        Found::None,
        "the COMMIT is held back"
    );

    let landing = async {
        while site.numbers(waits).await? == [0] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        proxy.release();
        Ok::<(), sqlx::Error>(())
    };
    let (again, landed) = tokio::join!(work.flush(&pool), landing);
    landed?;
    let error = again.expect_err("the rows have landed meanwhile");
    assert!(error.is_unique_violation(), "{error}");
    pool.close().await;
    site.settle().await?;
    assert_eq!(site.look(&graph).await?, Found::All);
    Ok(())
}
