//! Servers as people run them: settings, keys, triggers and policies under which a probe, a duplicate or a refused
//! COMMIT says less than on a server that is made for tests.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_harness::Server;
use ordid_sqlx::{Flushed, Retry};
use sqlx::{Postgres, Sqlite};

use super::{
    Failed, Flusher, Found, Graph, Library, PATIENCE, Remote, Served, Shape, Site,
    commit::{MYSQL_WAITS, POSTGRES_WAITS},
    cut::{EAGER, through},
    on_file, on_own_server, on_server,
};
use crate::{
    proxy::{Fault, Proxy},
    servers::Servers,
    soak,
    trials::Outcome,
};

const NOT_UNIQUE: &str = "truth::a_late_commit_of_keys_that_are_not_unique_is_written_once";
const NOT_ASKED_FOR: &str =
    "truth::a_late_commit_of_keys_that_are_not_unique_is_no_second_copy_without_a_marker_row";
const PARTITIONED: &str =
    "truth::a_late_commit_to_a_table_that_is_partitioned_by_a_column_of_the_row_is_written_once";
const TRIGGER: &str = "truth::a_late_commit_of_keys_that_a_trigger_replaces_is_written_once";
const IN_TIME: &str = "truth::a_flush_in_doubt_ends_at_its_deadline_although_the_keys_are_locked";
const NO_MARKER_TABLE: &str =
    "truth::rows_that_the_database_would_take_twice_are_refused_without_a_table_of_marker_rows";

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    on_server::<L::Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "truth::a_commit_that_finds_the_key_taken_is_no_sign_that_nothing_was_written",
        async |site| {
            postgres_keys(&site, "PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED").await?;
            written_once::<L::Postgres>(site, POSTGRES_WAITS).await
        },
    );
    on_server::<L::Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "truth::a_row_that_a_policy_hides_leaves_the_commit_unknown",
        hidden::<L::Postgres>,
    );
    on_server::<L::Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "truth::an_older_transaction_that_does_not_end_is_not_waited_for_without_end",
        endless::<L::Postgres>,
    );
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", IN_TIME, in_time::<L::Postgres>);
    on_server::<L::Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "truth::a_row_that_a_trigger_leaves_out_fails_the_flush",
        async |site| {
            site.execute(
                "CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
            )
            .await?;
            let left_out = "CREATE TRIGGER leave_out BEFORE INSERT ON items FOR EACH ROW WHEN \
                            (NEW.position = 3) EXECUTE FUNCTION leave_out()";
            left_out_by::<L::Postgres>(site, left_out, "DROP TRIGGER leave_out ON items").await
        },
    );
    on_server::<L::Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "truth::a_row_that_a_rule_leaves_out_fails_the_flush",
        async |site| {
            let left_out = "CREATE RULE leave_out AS ON INSERT TO items WHERE NEW.position = 3 DO INSTEAD NOTHING";
            left_out_by::<L::Postgres>(site, left_out, "DROP RULE leave_out ON items").await
        },
    );
    on_server::<L::Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "truth::a_row_that_a_view_leaves_out_fails_the_flush",
        async |site| {
            let takes = "CREATE OR REPLACE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS \
                         'BEGIN INSERT INTO all_items SELECT NEW.*; RETURN NEW; END'";
            let leaves_out = takes.replace(
                "BEGIN",
                "BEGIN IF NEW.position = 3 THEN RETURN NULL; END IF;",
            );
            let view = format!(
                "ALTER TABLE items RENAME TO all_items; CREATE VIEW items AS SELECT * FROM all_items; {leaves_out}; \
                 CREATE TRIGGER take INSTEAD OF INSERT ON items FOR EACH ROW EXECUTE FUNCTION take()"
            );
            left_out_by::<L::Postgres>(site, &view, takes).await
        },
    );
    on_files::<L::Sqlite>(trials);
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", NOT_UNIQUE, async |site| {
        postgres_not_unique(&site).await?;
        written_once::<L::Postgres>(site, POSTGRES_WAITS).await
    });
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", NOT_ASKED_FOR, async |site| {
        postgres_not_unique(&site).await?;
        not_sent_again::<L::Postgres>(site).await
    });
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", NO_MARKER_TABLE, async |site| {
        postgres_not_unique(&site).await?;
        refused::<L::Postgres>(site).await
    });
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", PARTITIONED, async |site| {
        partitioned(&site).await?;
        written_once::<L::Postgres>(site, POSTGRES_WAITS).await
    });
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", TRIGGER, async |site| {
        postgres_keys(&site, "PRIMARY KEY (id)").await?;
        site.execute(ANOTHER_KEY).await?;
        for table in ["customers", "orders", "items"] {
            site.execute(&format!(
                "CREATE TRIGGER another BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION another()"
            ))
            .await?;
        }
        written_once_under_other_keys::<L::Postgres>(site, "").await
    });
    let name =
        "truth::a_late_commit_of_keys_that_a_trigger_of_a_partition_replaces_is_written_once";
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", name, async |site| {
        partitioned(&site).await?;
        site.execute(ANOTHER_KEY).await?;
        for table in ["customers", "orders", "items"] {
            site.execute(&format!(
                "CREATE TRIGGER another BEFORE INSERT ON part_of_{table} FOR EACH ROW EXECUTE FUNCTION another()"
            ))
            .await?;
        }
        written_once_under_other_keys::<L::Postgres>(site, "").await
    });
    let name = "truth::a_late_commit_of_rows_that_a_rule_puts_elsewhere_is_written_once";
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", name, async |site| {
        postgres_keys(&site, "PRIMARY KEY (id)").await?;
        for table in ["customers", "orders", "items"] {
            site.execute(&format!(
                "CREATE TABLE stored_{table} (LIKE {table} INCLUDING DEFAULTS); \
                 CREATE RULE elsewhere AS ON INSERT TO {table} DO INSTEAD INSERT INTO stored_{table} VALUES (NEW.*)"
            ))
            .await?;
        }
        written_once_under_other_keys::<L::Postgres>(site, "stored_").await
    });
    // They share a dialect, and differ in what they take.
    for server in ["mariadb", "mysql"] {
        mysql::<L>(trials, servers, server);
    }
}

/// Adds that of SQLite.
pub fn on_files<W: Flusher<Database = Sqlite>>(trials: &mut Vec<Trial>) {
    on_file::<W, _, _>(
        trials,
        "truth::a_row_that_a_trigger_leaves_out_fails_the_flush",
        async |site| {
            let left_out = "CREATE TRIGGER leave_out BEFORE INSERT ON items WHEN NEW.position = 3 \
                            BEGIN SELECT RAISE(IGNORE); END";
            left_out_by::<W>(site, left_out, "DROP TRIGGER leave_out").await
        },
    );
    on_file::<W, _, _>(
        trials,
        "truth::rows_of_a_view_fail_the_flush_where_nobody_counts_them",
        async |site| {
            // SQLite counts no row that a trigger of a view inserts.
            let view = "ALTER TABLE items RENAME TO all_items; CREATE VIEW items AS SELECT * FROM all_items; \
                        CREATE TRIGGER take INSTEAD OF INSERT ON items BEGIN \
                        INSERT INTO all_items VALUES (NEW.id, NEW.order_id, NEW.unit, NEW.position); END";
            let drop = "DROP VIEW items; ALTER TABLE all_items RENAME TO items";
            left_out_at::<W>(site, 0, view, drop).await
        },
    );
}

fn mysql<L: Library>(trials: &mut Vec<Trial>, servers: &Servers, server: &'static str) {
    on_server::<L::MySql, _, _>(trials, servers, server, NOT_UNIQUE, async |site| {
        mysql_keys(&site, MYSQL_NOT_UNIQUE).await?;
        written_once::<L::MySql>(site, MYSQL_WAITS).await
    });
    on_server::<L::MySql, _, _>(trials, servers, server, NOT_ASKED_FOR, async |site| {
        mysql_keys(&site, MYSQL_NOT_UNIQUE).await?;
        not_sent_again::<L::MySql>(site).await
    });
    on_server::<L::MySql, _, _>(trials, servers, server, NO_MARKER_TABLE, async |site| {
        mysql_keys(&site, MYSQL_NOT_UNIQUE).await?;
        refused::<L::MySql>(site).await
    });
    on_server::<L::MySql, _, _>(trials, servers, server, PARTITIONED, async |site| {
        mysql_keys(&site, "ADD PRIMARY KEY (unit, id)").await?;
        for table in ["items", "orders", "customers"] {
            site.execute(&format!(
                "ALTER TABLE {table} PARTITION BY HASH (unit) PARTITIONS 2"
            ))
            .await?;
        }
        written_once::<L::MySql>(site, MYSQL_WAITS).await
    });
    on_server::<L::MySql, _, _>(trials, servers, server, TRIGGER, async |site| {
        mysql_keys(&site, "ADD PRIMARY KEY (id)").await?;
        for table in ["customers", "orders", "items"] {
            site.execute(&format!(
                "CREATE TRIGGER of_{table} BEFORE INSERT ON {table} FOR EACH ROW \
                 SET NEW.id = UNHEX(REPLACE(UUID(), '-', ''))"
            ))
            .await?;
        }
        written_once_under_other_keys::<L::MySql>(site, "").await
    });
    on_own_server::<L::MySql, _, _>(trials, servers, server, IN_TIME, async |server| {
        let site = Site::<<L::MySql as Flusher>::Database>::create(server.url().parse()?).await?;
        site.execute("SET GLOBAL innodb_lock_wait_timeout = 50")
            .await?;
        if L::MySql::PREFIX.is_empty() || soak() {
            endless::<L::MySql>(site).await?;
            let options = server.url().parse()?;
            return in_time::<L::MySql>(Site::open(options)).await;
        }
        in_time::<L::MySql>(site).await
    });
    on_own_server::<L::MySql, _, _>(
        trials,
        servers,
        server,
        "truth::rows_that_are_not_committed_are_not_found",
        uncommitted::<L::MySql>,
    );
    on_own_server::<L::MySql, _, _>(
        trials,
        servers,
        server,
        "truth::a_server_that_does_not_commit_by_itself_has_the_rows_once",
        without_autocommit::<L::MySql>,
    );
}

/// Creates a function for triggers that replace the key.
const ANOTHER_KEY: &str = "CREATE FUNCTION another() RETURNS trigger LANGUAGE plpgsql AS \
                           'BEGIN NEW.id := gen_random_uuid(); RETURN NEW; END'";

/// Replaces the tables by ones that are partitioned by a column of the row.
async fn partitioned(site: &Site<Postgres>) -> Outcome {
    for table in ["customers", "orders", "items"] {
        site.execute(&format!(
            "ALTER TABLE {table} RENAME TO old_{table}; \
             CREATE TABLE {table} (LIKE old_{table} INCLUDING DEFAULTS, PRIMARY KEY (unit, id)) \
             PARTITION BY HASH (unit); \
             CREATE TABLE part_of_{table} PARTITION OF {table} FOR VALUES WITH (MODULUS 1, REMAINDER 0)"
        ))
        .await?;
    }
    Ok(())
}

/// Replaces the primary keys, and drops every other constraint.
async fn postgres_keys(site: &Site<Postgres>, key: &str) -> Outcome {
    site.execute("ALTER TABLE items DROP CONSTRAINT items_order_id_fkey")
        .await?;
    site.execute(
        "ALTER TABLE orders DROP CONSTRAINT orders_customer_fkey, DROP CONSTRAINT orders_label_key",
    )
    .await?;
    for table in ["customers", "orders", "items"] {
        site.execute(&format!(
            "ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, ADD {key}"
        ))
        .await?;
    }
    Ok(())
}

/// Gives the tables the primary keys of tables that are partitioned by time. The rows have no value for the other
/// column.
///
/// # Errors
///
/// Returns the error of the database.
pub async fn postgres_not_unique(site: &Site<Postgres>) -> Outcome {
    for table in ["customers", "orders", "items"] {
        site.execute(&format!(
            "ALTER TABLE {table} ADD at timestamptz NOT NULL DEFAULT clock_timestamp()"
        ))
        .await?;
    }
    postgres_keys(site, "PRIMARY KEY (id, at)").await
}

/// The same change as that of [`postgres_not_unique`].
const MYSQL_NOT_UNIQUE: &str =
    "ADD at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), ADD PRIMARY KEY (id, at)";

/// As [`postgres_keys`]; `change` adds the primary key.
async fn mysql_keys<D: Served>(site: &Site<D>, change: &str) -> Outcome {
    for table in ["items", "orders", "customers"] {
        if table != "customers" {
            site.execute(&format!(
                "ALTER TABLE {table} DROP FOREIGN KEY {table}_ibfk_1"
            ))
            .await?;
        }
        site.execute(&format!("ALTER TABLE {table} DROP PRIMARY KEY, {change}"))
            .await?;
    }
    site.execute("ALTER TABLE orders DROP INDEX label").await?;
    Ok(())
}

/// Flushes while the COMMIT of the first attempt is held back, and lets it through once another attempt waits for it.
async fn released<W: Flusher<Database: Served>>(
    work: &mut W,
    watched: &Site<W::Database>,
    through: &Site<W::Database>,
    proxy: &Proxy,
    waits: &str,
) -> Outcome<Result<Flushed, Failed>> {
    proxy.plan([Fault::HoldCommit]);
    let landing = async {
        while watched.numbers(waits).await? == [0] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        proxy.release();
        Outcome::Ok(())
    };
    let (outcome, landed) = tokio::join!(work.flush_to(through.options(), PATIENCE), landing);
    landed?;
    Ok(outcome)
}

async fn written_once<W: Flusher<Database: Served>>(
    site: Site<W::Database>,
    waits: &str,
) -> Outcome {
    let proxy = Proxy::start(W::Database::address(site.options())?).await?;
    let graph = Graph::new(1, Shape::SMALL);
    let mut work = W::of(&graph, EAGER).with_new_memory();
    let through = through(&site, &proxy);
    let outcome = released(&mut work, &site, &through, &proxy, waits).await?;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
    outcome?;
    Ok(())
}

/// The server does not notice that the client is gone, and holds the keys.
async fn endless<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    let proxy = Proxy::start(W::Database::address(site.options())?).await?;
    let graph = Graph::new(1, Shape::SMALL);
    let mut work = W::of(&graph, EAGER.with_attempts(2));
    let through = through(&site, &proxy);
    proxy.plan([Fault::HoldCommit]);
    let begun = Instant::now();
    let outcome = work.flush_to(through.options(), PATIENCE).await;
    // InnoDB's own bound is 50 s.
    assert!(begun.elapsed() < Duration::from_secs(40), "{outcome:?}");
    let error = outcome.expect_err("the keys are held");
    assert!(error.is_commit_unknown, "{error}");
    proxy.release();
    site.settle().await?;
    site.flush_again(&graph, &mut work).await
}

/// The older transaction holds the keys. In the second round somebody also waits to alter the table, and everybody who
/// comes later waits behind, the probe too.
async fn in_time<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    for unit in [2, 3] {
        let proxy = Proxy::start(W::Database::address(site.options())?).await?;
        let graph = Graph::new(unit, Shape::SMALL);
        // The time ends before the attempts do.
        let mut work = W::of(&graph, EAGER.with_attempts(10_000));
        // It has to come to its COMMIT.
        work.within(Duration::from_secs(10));
        let through = through(&site, &proxy);
        proxy.plan([Fault::HoldCommit]);
        let is_over = AtomicBool::new(false);
        let altering = async {
            while proxy.traffic().first().is_none_or(|it| it.commit.is_none()) {
                if is_over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            if unit == 3 {
                site.execute("ALTER TABLE customers ADD COLUMN later INT")
                    .await?;
            }
            Outcome::Ok(())
        };
        let begun = Instant::now();
        let flushing = async {
            let outcome = work.flush_to(through.options(), PATIENCE).await;
            let elapsed = begun.elapsed();
            is_over.store(true, Ordering::Relaxed);
            proxy.release();
            (outcome, elapsed)
        };
        let ((outcome, elapsed), altered) = tokio::join!(flushing, altering);
        altered?;
        // InnoDB's own bound is 50 s.
        assert!(
            elapsed < Duration::from_secs(20),
            "{elapsed:?}: {outcome:?}"
        );
        site.judge(&graph, &work, &outcome).await?;
        let error = outcome.expect_err("the keys are held");
        assert!(error.is_commit_unknown && error.is_timeout, "{error}");
        work.within(PATIENCE);
        site.flush_again(&graph, &mut work).await?;
    }
    Ok(())
}

/// The user may insert rows and not see them: the duplicate and the probe contradict each other.
async fn hidden<W: Flusher<Database = Postgres>>(site: Site<Postgres>) -> Outcome {
    let user = format!("app_{}", std::process::id());
    let user = format!("{user}_{}", W::PREFIX.replace("::", ""));
    site.execute(&format!("CREATE ROLE {user} LOGIN")).await?;
    for table in ["customers", "orders", "items"] {
        site.execute(&format!(
            "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; GRANT SELECT, INSERT ON {table} TO {user}; \
             CREATE POLICY inserts ON {table} FOR INSERT WITH CHECK (true); \
             CREATE POLICY sees ON {table} FOR SELECT USING (false)"
        ))
        .await?;
    }
    let app = Site::<Postgres>::open(site.options().clone().username(&user));
    let proxy = Proxy::start(Postgres::address(site.options())?).await?;
    let graph = Graph::new(1, Shape::SMALL);
    let mut work = W::of(&graph, EAGER);
    let through = through(&app, &proxy);
    let outcome = released(&mut work, &site, &through, &proxy, POSTGRES_WAITS).await?;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
    let error = outcome.expect_err("the rows cannot be seen");
    assert!(
        error.is_commit_unknown && error.is_unique_violation,
        "{error}"
    );
    // Whoever sees the rows finds out.
    site.flush_again(&graph, &mut work).await?;
    drop(proxy);
    site.settle().await?;
    site.execute(&format!("DROP OWNED BY {user}; DROP ROLE {user}"))
        .await?;
    Ok(())
}

/// The COMMIT takes effect while another attempt waits for it, or at once. The stored keys are others than those that
/// were sent, or the rows are in tables with this prefix, so only the marker row shows that they are there.
async fn written_once_under_other_keys<W: Flusher<Database: Served>>(
    site: Site<W::Database>,
    prefix: &str,
) -> Outcome {
    let count = async || {
        let tables = ["customers", "orders", "items"];
        let counts = tables.map(|it| format!("SELECT COUNT(*) FROM {prefix}{it} UNION ALL "));
        let count = format!("{}SELECT COUNT(*) FROM ordid_flushes", counts.concat());
        Outcome::Ok(site.numbers(&count).await?)
    };
    let graph = Graph::new(1, Shape::SMALL);
    let rows = [graph.customers.len(), graph.orders.len(), graph.items.len()];
    let [customers, orders, items] = rows.map(|it| i64::try_from(it).unwrap_or_default());
    for (flushes, delay) in (1..).zip([300, 0]) {
        let proxy = Proxy::start(W::Database::address(site.options())?).await?;
        let mut work = W::of(&graph, EAGER).with_new_memory();
        let through = through(&site, &proxy);
        proxy.plan([Fault::HoldCommit]);
        let landing = async {
            while proxy.traffic().first().is_none_or(|it| it.commit.is_none()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(Duration::from_millis(delay)).await;
            proxy.release();
        };
        let (outcome, ()) = tokio::join!(work.flush_to(through.options(), PATIENCE), landing);
        drop(proxy);
        site.settle().await?;
        outcome?;
        let times = |rows: i64| flushes * rows;
        assert_eq!(
            count().await?,
            [times(customers), times(orders), times(items), flushes],
            "after {delay} ms"
        );
    }
    Ok(())
}

/// The flush is refused before a row is sent. The error names the statement that creates the table of marker rows.
async fn refused<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    site.execute("DROP TABLE ordid_flushes").await?;
    let graph = Graph::new(1, Shape::SMALL);
    let mut work = W::of(&graph, EAGER).with_new_memory();
    for _ in 0..2 {
        let error = work.flush_to(site.options(), PATIENCE).await;
        let error = error.expect_err("there is no table of marker rows");
        assert!(
            error.is_flushes_table_missing && error.retries == 0,
            "{error}"
        );
        assert!(
            !error.is_commit_unknown && error.message.contains("the rows of "),
            "{error}"
        );
        assert!(
            error.message.contains("; or flush `without_record`"),
            "{error}"
        );
        assert_eq!(site.look(&graph).await?, Found::None);
    }
    W::create_flushes_table(site.options()).await?;
    site.flush_again(&graph, &mut work).await?;
    // A unit of work without marker rows does not need the table.
    site.execute("DROP TABLE ordid_flushes").await?;
    let graph = Graph::new(2, Shape::SMALL);
    let mut work = W::of(&graph, EAGER).without_marker();
    site.flush_again(&graph, &mut work).await
}

/// The rows are not sent again, as the database would take them twice; once the COMMIT has landed, they are found.
async fn not_sent_again<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    let proxy = Proxy::start(W::Database::address(site.options())?).await?;
    let graph = Graph::new(1, Shape::SMALL);
    let mut work = W::of(&graph, EAGER).without_marker();
    let through = through(&site, &proxy);
    proxy.plan([Fault::HoldCommit]);
    let outcome = work.flush_to(through.options(), PATIENCE).await;
    let error = outcome.expect_err("the COMMIT is held back");
    assert!(error.is_commit_unknown, "{error}");
    assert_eq!(site.look(&graph).await?, Found::None);
    proxy.release();
    site.settle().await?;
    assert_eq!(site.look(&graph).await?, Found::All);
    site.flush_again(&graph, &mut work).await
}

/// The trigger is there, and then it is not.
async fn left_out_by<W: Flusher>(site: Site<W::Database>, trigger: &str, drop: &str) -> Outcome {
    left_out_at::<W>(site, 3, trigger, drop).await
}

/// This item is the first one that is left out.
async fn left_out_at<W: Flusher>(
    site: Site<W::Database>,
    item: usize,
    trigger: &str,
    drop: &str,
) -> Outcome {
    site.execute(trigger).await?;
    let graph = Graph::new(1, Shape::SMALL);
    let mut work = W::of(&graph, Retry::DEFAULT);
    let outcome = work.flush_to(site.options(), PATIENCE).await;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::None);
    let error = outcome.expect_err("one row is left out");
    assert_eq!(error.table.as_deref(), Some("items"));
    assert!(error.message.contains("uncounted"), "{error}");
    assert!(
        error.message.contains(&graph.items[item].id.to_string()),
        "{error}"
    );
    site.execute(drop).await?;
    site.flush_again(&graph, &mut work).await
}

/// The rows of an attempt that dies are seen by whoever reads what is not committed.
async fn uncommitted<W: Flusher<Database: Served>>(server: Server) -> Outcome {
    let site = Site::<W::Database>::create(server.url().parse()?).await?;
    site.execute("SET GLOBAL TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
        .await?;
    let proxy = Proxy::start(W::Database::address(site.options())?).await?;
    let graph = Graph::new(1, Shape::SMALL);
    let mut work = W::of(&graph, EAGER);
    let through = through(&site, &proxy);
    proxy.plan([Fault::HoldCommit]);
    let killing = async {
        while proxy.traffic().first().is_none_or(|it| it.commit.is_none()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Long enough for the probe of the next attempt.
        tokio::time::sleep(Duration::from_millis(300)).await;
        // The session that waits for COMMIT, which will not come.
        // MySQL's `information_schema` fails on the bytes of the keys in the statements of others.
        let idle = "SELECT CAST(id AS SIGNED) FROM /*M! information_schema *//*!50700 performance_schema */.processlist \
                    WHERE db = DATABASE() AND command = 'Sleep' AND id <> CONNECTION_ID()";
        for id in site.numbers(idle).await? {
            // It may have ended by itself.
            let _ = site.execute(&format!("KILL {id}")).await;
        }
        Outcome::Ok(())
    };
    let (outcome, killed) = tokio::join!(work.flush_to(through.options(), PATIENCE), killing);
    killed?;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
    outcome?;
    Ok(())
}

async fn without_autocommit<W: Flusher<Database: Served>>(server: Server) -> Outcome {
    let site = Site::<W::Database>::create(server.url().parse()?).await?;
    site.execute("SET GLOBAL autocommit = 0").await?;
    let proxy = Proxy::start(W::Database::address(site.options())?).await?;
    let through = through(&site, &proxy);
    let graph = Graph::new(1, Shape::SMALL);
    let mut work = W::of(&graph, EAGER);
    let outcome = work.flush_to(site.options(), PATIENCE).await;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
    outcome?;
    // With a COMMIT that is lost.
    let graph = Graph::new(2, Shape::SMALL);
    let mut work = W::of(&graph, EAGER);
    let outcome = released(&mut work, &site, &through, &proxy, MYSQL_WAITS).await?;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
    outcome?;
    Ok(())
}
