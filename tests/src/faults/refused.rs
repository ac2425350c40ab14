//! What a database refuses in the midst of a flush: a value that is taken.

use libtest_mimic::Trial;
use ordid_sqlx::Retry;

use super::{Failed, Flusher, Graph, Library, PATIENCE, Shape, Site, on_file, on_server};
use crate::{servers::Servers, trials::Outcome};

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    const NAME: &str = "a_label_that_is_taken_leaves_no_row";
    on_server::<L::Postgres, _, _>(
        trials,
        servers,
        "postgres",
        NAME,
        taken_when_sent::<L::Postgres>,
    );
    on_server::<L::MySql, _, _>(
        trials,
        servers,
        "mariadb",
        NAME,
        taken_when_sent::<L::MySql>,
    );
    on_file::<L::Sqlite, _, _>(trials, NAME, taken_when_sent::<L::Sqlite>);
    on_server::<L::Postgres, _, _>(
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
            taken_at_commit::<L::Postgres>(site).await
        },
    );
}

/// Refused where it is sent.
async fn taken_when_sent<W: Flusher>(site: Site<W::Database>) -> Outcome {
    taken::<W>(site, |error| {
        let place = (error.table.as_deref(), error.chunk, error.rows.clone());
        assert_eq!(place, (Some("orders"), Some(1), Some(1_000..2_000)));
    })
    .await
}

/// The database answers to COMMIT, so there is no doubt.
async fn taken_at_commit<W: Flusher>(site: Site<W::Database>) -> Outcome {
    taken::<W>(site, |error| {
        assert_eq!(error.table.as_deref(), None, "{error}")
    })
    .await
}

/// The label of one row in the middle of the second chunk.
async fn taken<W: Flusher>(site: Site<W::Database>, check: impl FnOnce(&Failed)) -> Outcome {
    let mut earlier = Graph::new(0, Shape::SMALL);
    let graph = Graph::new(1, Shape::CHUNKS);
    earlier.orders[7]
        .label
        .clone_from(&graph.orders[1_500].label);
    let mut work = W::of(&earlier, Retry::DEFAULT);
    work.flush_to(site.options(), PATIENCE).await?;
    let mut work = W::of(&graph, Retry::DEFAULT);
    let outcome = work.flush_to(site.options(), PATIENCE).await;
    site.judge(&graph, &work, &outcome).await?;
    let error = outcome.expect_err("the label is taken");
    assert_eq!(error.retries, 0, "it would be refused again");
    assert!(
        error.is_unique_violation && !error.is_commit_unknown,
        "{error}"
    );
    check(&error);
    site.execute("UPDATE orders SET label = 'free' WHERE unit = 0 AND position = 7")
        .await?;
    site.flush_again(&graph, &mut work).await
}
