//! What a database refuses in the midst of a flush: a value that is taken, and what else a constraint is for.

use libtest_mimic::Trial;
use ordid_sqlx::Retry;
use sqlx::Sqlite;

use super::{Engine, Failed, Flusher, Graph, Library, PATIENCE, Shape, Site, on_file, on_server};
use crate::{servers::Servers, trials::Outcome};

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
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
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", NAMES, async |site| {
        let unique = [Some("orders_pkey"), None, Some("orders_label"), None];
        named::<L::Postgres>(site, unique, Some("orders_customer")).await
    });
    for server in ["mariadb", "mysql"] {
        on_server::<L::MySql, _, _>(trials, servers, server, NAMES, async |site| {
            let unique = [Some("PRIMARY"), None, Some("orders_label"), None];
            named::<L::MySql>(site, unique, Some("orders_customer")).await
        });
    }
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", KEPT, kept::<L::Postgres>);
    for server in ["mariadb", "mysql"] {
        on_server::<L::MySql, _, _>(trials, servers, server, KEPT, kept::<L::MySql>);
    }
    on_files::<L::Sqlite>(trials);
}

/// Adds those of SQLite.
pub fn on_files<W: Flusher<Database = Sqlite>>(trials: &mut Vec<Trial>) {
    on_file::<W, _, _>(trials, NAME, taken_when_sent::<W>);
    on_file::<W, _, _>(trials, KEPT, kept::<W>);
    on_file::<W, _, _>(trials, NAMES, async |site| {
        let unique = [None, Some("id"), None, Some("label")];
        named::<W>(site, unique, None).await
    });
}

const NAME: &str = "a_label_that_is_taken_leaves_no_row";
const NAMES: &str = "an_error_says_what_was_violated_and_names_its_constraint_or_column";

/// A primary key and a unique key that are taken, each as constraint and column; a missing parent; a check; and a column
/// that nobody writes.
async fn named<W: Flusher>(
    site: Site<W::Database>,
    [key, key_column, label, label_column]: [Option<&str>; 4],
    customer: Option<&str>,
) -> Outcome {
    let mut unit = 0;
    let mut refused = async |with: &str, spoil: fn(&mut Graph, &Graph)| -> Outcome<Failed> {
        create_orders(&site, with).await?;
        let shape = Shape {
            items: 0,
            ..Shape::SMALL
        };
        let (earlier, mut graph) = (Graph::new(unit, shape), Graph::new(unit + 1, shape));
        unit += 2;
        if with.is_empty() {
            W::of(&earlier, Retry::NONE)
                .flush_to(site.options(), PATIENCE)
                .await?;
        }
        spoil(&mut graph, &earlier);
        let mut work = W::of(&graph, Retry::NONE);
        let outcome = work.flush_to(site.options(), PATIENCE).await;
        Ok(outcome.expect_err("a row is refused"))
    };
    let taken_key = refused("", |graph, earlier| {
        graph.orders[7].id = earlier.orders[0].id
    })
    .await?;
    let taken_label = refused("", |graph, earlier| {
        graph.orders[7].label.clone_from(&earlier.orders[0].label);
    });
    let taken_label = taken_label.await?;
    let no_parent = refused("", |graph, _| {
        graph.orders[7].customer = Graph::new(u32::MAX, Shape::SMALL).customers[0].id;
    });
    let no_parent = no_parent.await?;
    let check = refused("", |graph, _| graph.orders[7].bucket = -1).await?;
    let null = refused("extra BIGINT NOT NULL,", |_, _| ()).await?;
    for (error, expected, constraint, column) in [
        (taken_key, (true, false), key, key_column),
        (taken_label, (true, false), label, label_column),
        (no_parent, (false, true), customer, None),
        (check, (false, false), Some("orders_bucket"), None),
        (null, (false, false), None, Some("extra")),
    ] {
        let violated = (error.is_unique_violation, error.is_foreign_key_violation);
        assert_eq!(violated, expected, "{error}");
        let [found, of_column] = &*error.names;
        assert_eq!(found.as_deref(), constraint, "{error}");
        assert_eq!(of_column.as_deref(), column, "{error}");
    }
    Ok(())
}

const KEPT: &str = "a_row_that_still_has_children_violates_a_foreign_key";

/// PostgreSQL 18 and SQLite have codes of their own for `RESTRICT`.
async fn kept<W: Flusher>(site: Site<W::Database>) -> Outcome {
    let key = W::Database::KEY;
    for (unit, action) in [(1, "NO ACTION"), (2, "RESTRICT")] {
        let graph = Graph::new(unit, Shape::SMALL);
        W::of(&graph, Retry::NONE)
            .flush_to(site.options(), PATIENCE)
            .await?;
        for sql in [
            "DROP TABLE IF EXISTS notes",
            &format!(
                "CREATE TABLE notes (item {key} NOT NULL, of_order {key} NOT NULL, PRIMARY KEY (item, of_order), FOREIGN KEY (item, of_order) \
                 REFERENCES items (id, order_id) ON DELETE {action}) {}",
                W::Database::TABLE_OPTIONS
            ),
            &format!(
                "INSERT INTO notes SELECT id, order_id FROM items WHERE unit = {unit} AND position = 3"
            ),
        ] {
            site.execute(sql).await?;
        }
        let mut work = W::begin(Retry::NONE);
        work.change_graph(&graph);
        let error = work.flush_to(site.options(), PATIENCE).await;
        let error = error.expect_err("an item has a note");
        assert!(error.is_foreign_key_violation, "{action}: {error}");
        let key = graph.items[3].id.to_string();
        let found = error.row.key.clone().unwrap_or_default();
        assert!(found.contains(&key), "{action}, {key}: {error}");
        site.execute("DROP TABLE notes").await?;
        work.flush_to(site.options(), PATIENCE).await?;
    }
    Ok(())
}

/// Makes the table of orders anew, with constraints that have names.
async fn create_orders<DB: Engine>(site: &Site<DB>, columns: &str) -> Outcome {
    let (key, options) = (DB::KEY, DB::TABLE_OPTIONS);
    for sql in [
        "DROP TABLE IF EXISTS items",
        "DROP TABLE orders",
        &format!(
            "CREATE TABLE orders (id {key} NOT NULL PRIMARY KEY, customer {key} NOT NULL, {columns} unit \
             BIGINT NOT NULL, position BIGINT NOT NULL, bucket BIGINT NOT NULL, label VARCHAR(40) NOT NULL, \
             CONSTRAINT orders_label UNIQUE (label), CONSTRAINT orders_bucket CHECK (bucket >= 0), \
             CONSTRAINT orders_customer FOREIGN KEY (customer) REFERENCES customers (id)) {options}"
        ),
    ] {
        site.execute(sql).await?;
    }
    Ok(())
}

/// Refused where it is sent.
async fn taken_when_sent<W: Flusher>(site: Site<W::Database>) -> Outcome {
    taken::<W>(site, |error| {
        let place = (error.table.as_deref(), error.chunk, error.rows.clone());
        let chunk = TAKEN / W::CHUNK;
        let rows = chunk * W::CHUNK..(chunk + 1) * W::CHUNK;
        assert_eq!(place, (Some("orders"), Some(chunk), Some(rows)));
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

/// The row whose label is taken: in the middle of a chunk that is not the first.
const TAKEN: usize = 1_530;

/// The label of one row.
async fn taken<W: Flusher>(site: Site<W::Database>, check: impl FnOnce(&Failed)) -> Outcome {
    let mut earlier = Graph::new(0, Shape::SMALL);
    let graph = Graph::new(1, Shape::CHUNKS);
    earlier.orders[7]
        .label
        .clone_from(&graph.orders[TAKEN].label);
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
