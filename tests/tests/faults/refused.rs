//! What a database refuses in the midst of a flush: a value that is taken.

use libtest_mimic::Trial;
use ordid_sqlx::{Error, Retry};
use ordid_tests::{
    faults::{Engine, Graph, Shape, Site},
    servers::Servers,
    trials::Outcome,
};
use sqlx::{MySql, Postgres};

use crate::{on_file, on_server};

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
